//! What is injected into what, and what a diagnosis should say of it.

use engine::{
    inject::inject,
    run::{Mode, RunOptions},
};
use stratoscope::analysis::Layer::{self, Communication, Operator, Runtime};

/// One bottleneck.
pub struct Case {
    /// As `strato run --inject` takes it.
    pub inject: &'static str,
    /// How the step is started without it.
    pub mode: Mode,
    /// Ranks of the job.
    pub ranks: usize,
    /// Layers that are right.
    pub layers: &'static [Layer],
    /// Rank that is right, where there are several.
    pub rank: Option<u32>,
}

const fn eager(inject: &'static str, layers: &'static [Layer]) -> Case {
    Case { inject, mode: Mode::Eager, ranks: 1, layers, rank: None }
}

/// Every bottleneck that takes time; numeric faults take none.
pub const CASES: &[Case] = &[
    eager("host_delay:us=400", &[Runtime]),
    eager("host_delay:op=attention_decode,us=4000", &[Runtime]),
    eager("extra_sync:every=op", &[Runtime]),
    eager("extra_sync:every=layer", &[Runtime]),
    eager("alloc_per_op:kib=1024", &[Runtime]),
    eager("blocking_copy:mib=64", &[Runtime]),
    eager("cpu_fallback:op=silu_mul", &[Operator, Runtime]),
    eager("gil_like_stall:period_ms=20,hold_ms=5", &[Runtime]),
    Case { mode: Mode::Graph, ..eager("no_graph", &[Runtime]) },
    eager("unfuse", &[Operator]),
    eager("layout_cast:op=down_proj", &[Operator]),
    eager("low_precision_off", &[Operator]),
    eager("padding:to=8", &[Operator, Runtime]),
    eager("bandwidth_thief:threads=1", &[Operator]),
    Case { ranks: 2, rank: Some(1), ..eager("slow_rank:rank=1,factor=1.5", &[Operator, Runtime]) },
];

impl Case {
    /// What is run, with or without the bottleneck.
    pub fn options(&self, on: bool) -> RunOptions {
        let default = RunOptions::default();
        let mut options = RunOptions {
            mode: self.mode,
            prompt: 16,
            steps: 24,
            // The host has a core of its own, as it has beside an accelerator.
            threads: (default.threads.saturating_sub(1) / self.ranks).max(1),
            ..default
        };
        if on {
            inject(self.inject, &mut options).unwrap();
        }
        assert!(!self.layers.contains(&Communication), "nothing that is injected is a link's fault");
        options
    }
}
