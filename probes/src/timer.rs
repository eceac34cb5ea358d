//! The clock: what looking at it costs, and the least time that it tells apart.

use std::{hint::black_box, time::Instant};

use model::{ProbeRow, ProbeUnit, Setting};

use crate::{
    Of, Probe, Setup,
    repeat::{repeat, time_each},
    row,
};

pub const PROBE: Probe = Probe {
    name: "timer",
    about: ["cost and resolution of the monotonic clock", "单调时钟的开销与分辨率"],
    of: Of::Machine,
    run,
};

/// Looks of a repeat.
const LOOKS: u32 = 10_000;

fn run(setup: &Setup) -> Vec<ProbeRow> {
    let cost = repeat(setup.part(8), || {
        Ok(time_each(LOOKS, || {
            black_box(Instant::now());
        }))
    });
    let resolution = repeat(setup.part(8), || {
        // The least step that is not nothing, over many looks.
        let mut least = f64::INFINITY;
        let mut last = Instant::now();
        for _ in 0..LOOKS {
            let now = Instant::now();
            let step = now.duration_since(last).as_nanos() as f64;
            least = if step > 0.0 { least.min(step) } else { least };
            last = now;
        }
        Ok(least)
    });
    vec![
        row(PROBE.name, "cost", ProbeUnit::Ns, Setting::new(), cost),
        row(PROBE.name, "resolution", ProbeUnit::Ns, Setting::new(), resolution),
    ]
}
