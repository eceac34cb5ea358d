//! Healthy controls: runs that look as if something were wrong with them, and nothing is.

use serde::{Deserialize, Serialize};

use crate::{
    config::{Config, Mode},
    kernel::Slot,
};

/// A healthy run that invites a wrong diagnosis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// A kernel of few blocks by design: the context is short and there is nothing to split.
    LowOccupancy,
    /// Synchronisations each step that have nothing to wait for.
    HarmlessSync,
    /// Decode without graphs whose context is so long that the device is never idle: graphs would give nothing.
    LongContext,
}

impl Control {
    /// All controls.
    pub const ALL: [Self; 3] = [Self::LowOccupancy, Self::HarmlessSync, Self::LongContext];

    /// Its name in reports and file names; the serialised one.
    pub fn key(self) -> &'static str {
        match self {
            Self::LowOccupancy => "low_occupancy",
            Self::HarmlessSync => "harmless_sync",
            Self::LongContext => "long_context",
        }
    }
}

impl Config {
    /// A healthy configuration, turned into `control`.
    pub fn draw_control(seed: u64, control: Control) -> Self {
        let mut config = Self { async_scheduling: false, ..Self::draw(seed) };
        match control {
            Control::LowOccupancy => {
                config.split_attention = false;
                (config.batch, config.context_tokens) = (1, 512);
                config.kernel_ns.insert(Slot::Attention, 6_000);
            }
            Control::HarmlessSync => config.idle_syncs = 3,
            Control::LongContext => {
                config.mode = Mode::Eager;
                config.context_tokens = 131_072;
                (config.framework_ns, config.launch_ns) = (1_500, 3_000);
                config.kernel_ns.insert(Slot::Attention, 400_000);
            }
        }
        config
    }
}
