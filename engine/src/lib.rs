//! The reference decode engine: a transformer whose every operator is one call that every backend runs, so that runs on
//! different platforms can be laid side by side operator by operator.

pub mod ascend;
mod backend;
mod batch;
mod buffer;
mod clock;
mod comm;
mod config;
pub mod cpu;
pub mod cuda;
mod device_model;
mod error;
mod faults;
mod footprint;
mod futex;
mod hash;
mod hook;
pub mod inject;
mod kv;
pub mod library;
pub mod numdiff;
pub mod opencl;
mod options;
pub mod program;
pub mod record;
mod rope;
pub mod run;
mod shard;
mod target;
mod tensor;
mod weights;

pub use backend::{Backend, Device, PlanId};
pub use batch::Batch;
pub use buffer::{Buffer, Number};
pub use config::{Config, Experts, Family, PRESETS, Rope, RopeScaling, preset};
pub use error::Error;
pub use footprint::Footprint;
pub use kv::{KvLayout, KvPlan};
pub use run::open;
pub use shard::Shard;
pub use target::Target;
pub use tensor::{Dtype, Q8_BLOCK, Tensor, q8_scale};
pub use weights::{Checkpoint, LayerWeights, Seeded, Sequence, Source, Synthetic, Weights};
