//! Starting an operator: an operator with nothing to do, through the engine's worker pool. The floor below which no operator
//! can be, and what the host spends until the workers have been told.

use engine::{
    Target,
    record::{Kind, Log, Record, Span},
};
use model::{ProbeRow, ProbeUnit, Statistic};

use crate::{Of, Probe, Setup, device::Device, repeat::repeat, row};

pub const PROBE: Probe = Probe {
    name: "launch",
    about: ["an empty operator through the engine's device", "经由引擎设备的空算子"],
    of: Of::Engine,
    run,
};

/// Operators of a run.
pub const OPS: usize = 1000;

fn run(setup: &Setup) -> Vec<ProbeRow> {
    let counts = setup.thread_counts();
    let part = setup.part(4 * counts.len());
    counts
        .into_iter()
        .flat_map(|threads| {
            let setup = Setup { threads, ..setup.clone() };
            let setting = || setup.setting(threads);
            let unrecorded = || -> Result<Statistic, String> {
                let mut device = Device::empty(&setup, OPS)?;
                repeat(part, || whole(&mut device))
            };
            // From the call to the start of the first worker's share, and from there to the end of the last worker's. Other
            // devices are far behind a host that enqueues a thousand operators: of those it is the call alone.
            let call = match setup.target {
                Target::Cpu => recorded(&setup, part, |r| r.device.start - r.host.start),
                Target::OpenCl(_) | Target::Cuda(_) | Target::Ascend(_) => {
                    recorded(&setup, part, |r| r.host.end - r.host.start)
                }
            };
            let floor = recorded(&setup, part, |r| r.device.end - r.device.start);
            [
                row(PROBE.name, "time", ProbeUnit::Ns, setting(), unrecorded()),
                row(PROBE.name, "call", ProbeUnit::Ns, setting(), call),
                row(PROBE.name, "floor", ProbeUnit::Ns, setting(), floor),
                row(PROBE.name, "gap", ProbeUnit::Ns, setting(), gap(&setup, part)),
            ]
        })
        .collect()
}

/// Time of one operator of a run, ns.
pub fn whole(device: &mut Device) -> Result<f64, String> {
    let clock = std::time::Instant::now();
    device.run(&mut Log::off())?;
    Ok(clock.elapsed().as_nanos() as f64 / device.ops().max(1) as f64)
}

/// Median of the times from the end of an operator to the start of the next one, which has long been launched, ns. Every compute
/// unit has a part of them, as of the operators of a model: one that only one unit runs is followed sooner.
fn gap(setup: &Setup, part: std::time::Duration) -> Result<Statistic, String> {
    let mut device = Device::nearly_empty(setup, OPS)?;
    repeat(part, || {
        let log = logged(setup, &mut device)?;
        let ran: Vec<Span> = operators(&log).map(|record| record.device).collect();
        let gaps = ran.array_windows().map(|[before, next]| (next.start - before.end).max(0) as f64);
        Ok(Statistic::of(gaps).ok_or("the engine recorded no two operators")?.median)
    })
}

/// Median over the operators of a run of what `of` reads off the engine's own record, ns.
fn recorded(setup: &Setup, part: std::time::Duration, of: fn(&Record) -> i64) -> Result<Statistic, String> {
    let mut device = Device::empty(setup, OPS)?;
    repeat(part, || {
        let log = logged(setup, &mut device)?;
        let ops = operators(&log).map(|record| of(record) as f64);
        Ok(Statistic::of(ops).ok_or("the engine recorded no operator")?.median)
    })
}

/// What the engine records of a run.
fn logged(setup: &Setup, device: &mut Device) -> Result<Log, String> {
    let mut log = Log::with_capacity(OPS + 8, setup.target.workers(setup.threads));
    device.run(&mut log)?;
    Ok(log)
}

fn operators(log: &Log) -> impl Iterator<Item = &Record> {
    log.records().iter().filter(|record| matches!(record.kind, Kind::Op(_)))
}
