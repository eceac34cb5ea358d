//! Generators: each looks at every capture in one way and returns what it finds, with its size over all counted steps. None asks
//! how often something happens, only how much it costs in total.
//!
//! Definitions and thresholds come from simulated runs whose cause is known and from recorded runs whose cause an expert stated;
//! those of healthy runs set the lower limits.

mod class;
mod collective;
mod copies;
mod experts;
mod floor;
mod owner;
mod padding;
mod position;
mod prompts;

use model::Ns;

use super::{Cost, Population};
use crate::{
    ledger::device::Work,
    platform::{OpClass, Packs},
};

/// A way in which costs show.
type Generator = fn(&Population<'_>, &Packs) -> Vec<Cost>;

/// Every generator.
pub const REGISTRY: &[Generator] = &[
    owner::generate,
    class::generate,
    collective::generate,
    copies::generate,
    floor::generate,
    position::generate,
    padding::generate,
    experts::generate,
    prompts::generate,
];

/// Parts of names by which a kernel multiplies matrices, whatever else it is fused with.
const GEMM: [&str; 10] = ["gemm", "_mm_", "bmm", "addmm", "matmul", "cijk", "nvjet", "conv2d", "wgrad", "dgrad"];

/// Whether a kernel multiplies matrices, by its operator or by its name.
fn is_gemm(work: &Work, name: &str) -> bool {
    let named = || {
        let name = name.to_ascii_lowercase();
        // Ascend names the operator first and the kernel, which may be another one, last.
        let name = if name.starts_with("aclnn") { name.rsplit('_').next().unwrap_or("") } else { name.as_str() };
        GEMM.iter().any(|part| name.contains(part)) || name.ends_with("_mm") || name.starts_with("convolution")
    };
    work.is_kernel() && (work.op.class() == OpClass::Matrix || named())
}

/// The middle of some durations.
fn median(times: impl Iterator<Item = Ns>) -> Option<Ns> {
    crate::analysis::median(times.collect())
}
