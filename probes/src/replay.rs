//! Replaying a prepared step: what a node costs, and what the replay costs beside its nodes.

use std::time::Instant;

use engine::record::Log;
use model::{ProbeRow, ProbeUnit, Statistic};

use crate::{Of, Probe, Setup, device::Device, repeat::repeat, row};

pub const PROBE: Probe = Probe {
    name: "replay",
    about: ["replay of a chain of empty nodes: per node, and fixed", "重放一串空节点：每节点与固定部分"],
    of: Of::Engine,
    run,
};

/// Nodes of the short and of the long chain.
const CHAINS: [usize; 2] = [10, 1000];

fn run(setup: &Setup) -> Vec<ProbeRow> {
    let counts = setup.thread_counts();
    let part = setup.part(2 * counts.len());
    counts
        .into_iter()
        .flat_map(|threads| {
            let setup = Setup { threads, ..setup.clone() };
            let setting = || setup.setting(threads);
            let [short, long] = CHAINS.map(|n| n as f64);
            // Both chains one after the other in every repeat, so that what disturbs the machine disturbs both.
            let of = |value: fn(f64, f64, f64, f64) -> f64| -> Result<Statistic, String> {
                let mut devices = [Device::empty(&setup, CHAINS[0])?, Device::empty(&setup, CHAINS[1])?];
                repeat(part, || {
                    let [few, many] = &mut devices;
                    Ok(value(once(few)?, once(many)?, short, long).max(0.0))
                })
            };
            let node = of(|few, many, short, long| (many - few) / (long - short));
            let fixed = of(|few, many, short, long| few - short * (many - few) / (long - short));
            [
                row(PROBE.name, "node", ProbeUnit::Ns, setting(), node),
                row(PROBE.name, "fixed", ProbeUnit::Ns, setting(), fixed),
            ]
        })
        .collect()
}

fn once(device: &mut Device) -> Result<f64, String> {
    let began = Instant::now();
    device.replay(&mut Log::off())?;
    Ok(began.elapsed().as_nanos() as f64)
}
