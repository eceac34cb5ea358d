//! Ranks that say nothing of themselves: the processes of one machine, each recorded in a file of its own.

use std::collections::{BTreeMap, BTreeSet};

use model::{Category, Trace, TrackKind, trace};

/// Words in the names of the kernels of collective libraries (NCCL and RCCL, HCCL).
const LIBRARIES: [&str; 3] = ["nccl", "rccl", "hcom"];
/// Percent by which the ranks of a job may differ in how many collectives were recorded of them: recordings do not begin and
/// end together. Own value.
const APART: usize = 10;

/// Joins captures that are the ranks of one job by what they did: no file says a rank, each process drives one device that no
/// other one drives, and all of them ran collectives about as often. Their ranks are in the order of their devices. Whatever
/// does not fit stays as it is.
pub(super) fn join(traces: Vec<Trace>) -> Vec<Trace> {
    let mut alike: BTreeMap<String, Vec<(i32, usize)>> = BTreeMap::new();
    for (at, trace) in traces.iter().enumerate() {
        if let Some(device) = device(trace).filter(|_| collectives(trace) > 0) {
            alike.entry(format!("{} {}", trace.format, trace.simulated)).or_default().push((device, at));
        }
    }
    let counts = |of: &[(i32, usize)]| -> Vec<usize> {
        of.iter().filter_map(|(_, at)| traces.get(*at)).map(collectives).collect()
    };
    let fits = |of: &Vec<(i32, usize)>| {
        let devices: BTreeSet<i32> = of.iter().map(|(device, _)| *device).collect();
        let counts = counts(of);
        let (least, most) = (counts.iter().min().copied().unwrap_or(0), counts.iter().max().copied().unwrap_or(0));
        of.len() > 1 && devices.len() == of.len() && (100 - APART) * most <= 100 * least
    };
    let mut jobs: Vec<Vec<(i32, usize)>> = alike.into_values().filter(fits).collect();
    jobs.iter_mut().for_each(|job| job.sort_unstable());
    let mut rest: Vec<Option<Trace>> = traces.into_iter().map(Some).collect();
    let mut out: BTreeMap<usize, Vec<Trace>> = BTreeMap::new();
    for job in jobs {
        let first = job.iter().map(|(_, at)| *at).min().unwrap_or(0);
        let parts = (0..).zip(&job).filter_map(|(rank, (_, at))| {
            let mut part = rest.get_mut(*at)?.take()?;
            part.processes.iter_mut().for_each(|process| process.rank = Some(rank));
            Some(part)
        });
        let joined = trace::join(parts.collect());
        out.insert(first, joined.map_or_else(|parts| parts, |one| vec![one]));
    }
    for (at, alone) in rest.into_iter().enumerate() {
        out.entry(at).or_default().extend(alone);
    }
    out.into_values().flatten().collect()
}

/// The one device that the only process of a capture drives, where nothing says its rank.
fn device(trace: &Trace) -> Option<i32> {
    let queues = trace.tracks.iter().zip(&trace.lanes).filter(|(track, lane)| {
        track.key.kind == TrackKind::DeviceQueue && lane.category.iter().any(|category| category.is_device_work())
    });
    let devices: BTreeSet<Option<i32>> = queues.map(|(track, _)| track.key.device).collect();
    let unsaid = trace.processes.iter().all(|process| process.rank.is_none());
    let mut devices = devices.into_iter();
    let only = devices.next().flatten().filter(|_| devices.next().is_none());
    only.filter(|_| unsaid && trace.manifest.value("parallel.world_size").is_none())
}

/// How many kernels of a collective library ran.
fn collectives(trace: &Trace) -> usize {
    let is_one = |name: &str| {
        let name = name.to_ascii_lowercase();
        LIBRARIES.iter().any(|library| name.contains(library))
    };
    let device = trace.tracks.iter().zip(&trace.lanes).filter(|(track, _)| track.key.kind == TrackKind::DeviceQueue);
    let kernels = device.flat_map(|(_, lane)| lane.category.iter().zip(&lane.name));
    kernels.filter(|(category, name)| **category == Category::Kernel && is_one(trace.strings.get(**name))).count()
}

#[cfg(test)]
mod tests {
    use model::{Slice, TraceBuilder, TraceSink, TrackKey};

    use super::*;

    fn process(device: i32, sums: i64, rank: Option<u32>) -> Trace {
        let mut b = TraceBuilder::new(format!("{device}_results.json"), "rocprofv3");
        let process = b.process(0);
        b.describe_process(process, Some(100 + i64::from(device)), None, rank);
        let key = TrackKey { kind: TrackKind::DeviceQueue, process, device: Some(device), context: None, id: 7 };
        let (track, name) = (b.track(key), b.intern("ncclDevKernel_AllReduce_Sum_bf16_RING_LL"));
        for i in 0..sums {
            let (category, start) = (Category::Kernel, 100 * i);
            b.slice(Slice { track, start, dur: 10, name, category, correlation: None, detail: None });
        }
        b.finish()
    }

    #[test]
    fn processes_with_a_device_each_that_ran_the_same_collectives_are_one_job() {
        let joined = join(vec![process(3, 20, None), process(2, 20, None)]);
        let ranks: Vec<_> = joined.iter().map(|one| one.processes.iter().map(|p| p.rank).collect::<Vec<_>>()).collect();
        assert_eq!(ranks, [vec![Some(0), Some(1)]]);
    }

    #[test]
    fn what_shares_a_device_or_ran_other_collectives_stays_apart() {
        assert_eq!(join(vec![process(2, 20, None), process(2, 20, None)]).len(), 2, "two runs of one device");
        assert_eq!(join(vec![process(2, 20, None), process(3, 9, None)]).len(), 2, "other collectives");
        assert_eq!(join(vec![process(2, 0, None), process(3, 0, None)]).len(), 2, "no collectives");
        assert_eq!(join(vec![process(2, 20, Some(0)), process(3, 20, None)]).len(), 2, "one says its rank");
    }
}
