//! What is injected into what, and what a diagnosis should say of it.

use diagnosis::analysis::Layer::{self, Communication, Operator, Runtime};
use engine::{
    inject::inject,
    run::{Mode, RunOptions},
};

/// One bottleneck.
#[derive(Clone, Copy)]
pub struct Case {
    /// As `strato run --inject` takes it.
    pub inject: &'static str,
    /// Which shape suffers it.
    pub size: Size,
    /// How the step is started without it.
    pub mode: Mode,
    /// Ranks of the job.
    pub ranks: usize,
    /// Layers that are right.
    pub layers: &'static [Layer],
    /// Rank that is right, where there are several.
    pub rank: Option<u32>,
}

/// What suffers: a fault is judged where it costs something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Operators of hundreds of microseconds, which read memory: those hide the host.
    Wide,
    /// Operators of some ten microseconds: the host is about as fast.
    Narrow,
    /// Many operators of less than a microsecond: the host is slower.
    Deep,
}

const fn wide(inject: &'static str, layers: &'static [Layer]) -> Case {
    Case { inject, size: Size::Wide, mode: Mode::Eager, ranks: 1, layers, rank: None }
}

const fn narrow(inject: &'static str, layers: &'static [Layer]) -> Case {
    Case { size: Size::Narrow, ..wide(inject, layers) }
}

const fn deep(inject: &'static str, layers: &'static [Layer]) -> Case {
    Case { size: Size::Deep, ..wide(inject, layers) }
}

/// Every bottleneck that takes time; numeric faults take none.
pub const CASES: &[Case] = &[
    wide("host_delay:us=200", &[Runtime]),
    wide("host_delay:us=400", &[Runtime]),
    wide("host_delay:op=attention_decode,us=4000", &[Runtime]),
    narrow("host_delay:us=40", &[Runtime]),
    narrow("extra_sync:every=op", &[Runtime]),
    narrow("extra_sync:every=layer", &[Runtime]),
    narrow("alloc_per_op:kib=4096", &[Runtime]),
    wide("blocking_copy:mib=64", &[Runtime]),
    narrow("blocking_copy:mib=8", &[Runtime]),
    narrow("cpu_fallback:op=silu_mul", &[Operator, Runtime]),
    narrow("gil_like_stall:period_ms=20,hold_ms=8", &[Runtime]),
    Case { mode: Mode::Graph, ..deep("no_graph", &[Runtime]) },
    // Operators that are not fused also have to be launched, one by one.
    deep("unfuse", &[Operator, Runtime]),
    wide("layout_cast:op=down_proj", &[Operator]),
    wide("low_precision_off", &[Operator]),
    wide("padding:to=8", &[Operator, Runtime]),
    wide("bandwidth_thief:threads=1", &[Operator]),
    Case { ranks: 2, rank: Some(1), ..wide("slow_rank:rank=1,factor=1.5", &[Operator, Runtime]) },
];

impl Case {
    /// What is run, with or without the bottleneck.
    pub fn options(&self, on: bool) -> RunOptions {
        let default = RunOptions::default();
        // All steps have contexts of one class, so that what is promised of a class is promised of the run.
        let (prompt, steps) = match self.size {
            Size::Wide => (32, 30),
            Size::Narrow => (256, 250),
            Size::Deep => (128, 127),
        };
        let mut options = RunOptions {
            mode: self.mode,
            prompt,
            steps,
            // The host has a core of its own, as it has beside an accelerator; but where it is the launches that are to cost something,
            // it has not, because a launch to a processor is one store.
            threads: (default.threads.saturating_sub(usize::from(self.size != Size::Deep)) / self.ranks).max(1),
            ..default
        };
        if on {
            inject(self.inject, &mut options).unwrap();
        }
        assert!(!self.layers.contains(&Communication), "nothing that is injected is a link's fault");
        options
    }
}
