//! Our buckets beside those of the simulator.

use std::collections::{BTreeMap, BTreeSet};

use diagnosis::{
    analysis::{Analysis, Bucket, Step},
    platform::{CanonicalOp, OpClass},
};
use model::Ns;

/// Our buckets in the simulator's coarser names.
pub fn comparable(analysis: &Analysis, step: &Step) -> BTreeMap<String, Ns> {
    let mut out = BTreeMap::new();
    for (bucket, ns) in &step.buckets {
        *out.entry(coarse(&analysis.host_labels, *bucket)).or_default() += ns;
    }
    out
}

fn coarse(labels: &[String], bucket: Bucket) -> String {
    let class = match bucket {
        Bucket::Compute(op) => match op.class() {
            OpClass::Matrix => "gemm",
            OpClass::Attention => "attention",
            OpClass::Norm => "norm",
            OpClass::Rope => "rope",
            OpClass::Act => "act",
            OpClass::CacheWrite => "kv_write",
            OpClass::MoeRoute => "moe",
            OpClass::Quant => "quant",
            OpClass::Format => "format",
            OpClass::Sample => "sample",
            // The canonical table counts a softmax outside attention to sampling, as the simulator does.
            _ if op == CanonicalOp::Softmax => "sample",
            OpClass::Elementwise => "elementwise",
            OpClass::Fill => "fill",
            OpClass::Index => "index",
            _ => "other",
        },
        Bucket::Host(_) => return "rt.host".into(),
        other => return other.name(labels),
    };
    format!("compute.{class}")
}

/// Half of the sum of the absolute differences: the time that lies in the wrong bucket.
pub fn misplaced(ours: &BTreeMap<String, Ns>, truth: &BTreeMap<String, Ns>) -> Ns {
    let names: BTreeSet<&String> = ours.keys().chain(truth.keys()).collect();
    let of = |m: &BTreeMap<String, Ns>, n: &String| m.get(n).copied().unwrap_or(0);
    names.into_iter().map(|n| (of(ours, n) - of(truth, n)).abs()).sum::<Ns>() / 2
}
