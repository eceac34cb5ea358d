//! Counters that were sampled beside a capture by somebody else, on the capture's time.

use super::{CounterTrack, Trace};
use crate::{
    stat::{ImportStat, Severity},
    strings::StringId,
    track::{Process, ProcessId, TrackKind},
};

/// Adds the counters of `part`, which was sampled on the same machine meanwhile, with what it says of them. Those of a device
/// go to every process whose queues are of a device of that ordinal; the others, and those of devices that no queue is of, to a
/// process of their own. Without a wall clock on both sides nobody knows when a sample was: nothing is added then, and
/// `telemetry.no_common_clock` counts what is lost.
pub fn attach_counters(whole: &mut Trace, part: &Trace) {
    let samples: u64 = part.counters.iter().map(|counter| counter.t.len() as u64).sum();
    let known = part.manifest.iter().map(|(key, entry)| (key.to_owned(), entry.clone())).collect::<Vec<_>>();
    whole.stats.extend(part.stats.iter().cloned());
    let apart = part.start_unix_ns.zip(whole.start_unix_ns).and_then(|(part, whole)| part.checked_sub(whole));
    let Some(apart) = apart else {
        whole.stats.push(ImportStat {
            name: "telemetry.no_common_clock".to_owned(),
            severity: Severity::DataLoss,
            count: samples,
            example: Some("the capture does not say when it was taken on the wall clock".to_owned()),
        });
        return;
    };
    for (key, entry) in known {
        whole.manifest.set(&key, entry.value, entry.provenance);
    }
    whole.ledger.extend(part.ledger.iter().cloned());
    whole.ledger.sort_by(|a, b| a.category.cmp(&b.category));
    let mut apart_from_all = None;
    for counter in &part.counters {
        let homes: Vec<ProcessId> = match homes(whole, counter) {
            homes if !homes.is_empty() => homes,
            _ => vec![*apart_from_all.get_or_insert_with(|| process(whole, part))],
        };
        let name = whole.strings.intern(part.strings.get(counter.name));
        for process in homes {
            let t = counter.t.iter().map(|t| t.saturating_add(apart)).collect();
            whole.counters.push(CounterTrack { process, name, t, ..counter.clone() });
        }
    }
}

/// Processes whose queues are of the device that a counter is of.
fn homes(whole: &Trace, counter: &CounterTrack) -> Vec<ProcessId> {
    let Some(device) = counter.device else { return Vec::new() };
    let queues = whole.tracks.iter().map(|track| track.key).filter(|key| key.kind == TrackKind::DeviceQueue);
    let mut homes: Vec<ProcessId> = queues.filter(|key| key.device == Some(device)).map(|key| key.process).collect();
    homes.sort_unstable();
    homes.dedup();
    homes
}

/// A process for what belongs to no process of the capture.
fn process(whole: &mut Trace, part: &Trace) -> ProcessId {
    let name = part.processes.first().and_then(|process| process.name).map(|name| part.strings.get(name));
    let name: Option<StringId> = name.map(|name| whole.strings.intern(name));
    whole.processes.push(Process { pid: None, name, rank: None });
    ProcessId(u32::try_from(whole.processes.len() - 1).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::{
        manifest::Provenance,
        sink::{Clock, TraceSink},
        slice::{Category, Slice},
        trace::TraceBuilder,
        track::TrackKey,
    };

    /// Two processes with a queue each, of devices 0 and 1.
    fn whole(unix_zero: Option<i64>) -> Trace {
        let mut b = TraceBuilder::new("run", "nsys");
        for key in 0..2 {
            let process = b.process(key);
            let device = i32::try_from(key).ok();
            let track = b.track(TrackKey { kind: TrackKind::DeviceQueue, process, device, context: None, id: 7 });
            let name = b.intern("gemm");
            b.slice(Slice {
                track,
                start: 100,
                dur: 10,
                name,
                category: Category::Kernel,
                correlation: None,
                detail: None,
            });
        }
        b.clock(Clock::AsIs { unix_zero });
        b.finish()
    }

    fn sampled(unix_zero: Option<i64>) -> Trace {
        let mut b = TraceBuilder::new("telemetry", "strato");
        let process = b.process(0);
        b.describe_process(process, None, Some("this machine"), None);
        let [power, busy] = ["power", "cpu_busy"].map(|name| b.intern(name));
        b.counter(process, Some(1), power, "W", 30, 250.0);
        b.counter(process, Some(5), power, "W", 30, 90.0);
        b.counter(process, None, busy, "", 40, 0.5);
        b.manifest("measurement.sampler", "3 counters", Provenance::Observed);
        b.stat("telemetry.power_unavailable", Severity::Info, 1, Some("no such file"));
        b.clock(Clock::AsIs { unix_zero });
        b.finish()
    }

    #[test]
    fn samples_lie_on_the_captures_time_at_the_devices_they_are_of() {
        let mut trace = whole(Some(1_000));
        attach_counters(&mut trace, &sampled(Some(1_050)));
        let counters: Vec<_> = trace.counters.iter().map(|c| (c.process.0, c.device, c.t[0], c.value[0])).collect();
        assert_eq!(counters, [(1, Some(1), 80, 250.0), (2, Some(5), 80, 90.0), (2, None, 90, 0.5)]);
        assert_eq!(trace.processes[2].name.map(|name| trace.strings.get(name)), Some("this machine"));
        assert_eq!(trace.strings.get(trace.counters[0].name), "power");
        assert_eq!(trace.manifest.value("measurement.sampler"), Some("3 counters"));
        assert_eq!(trace.stat("telemetry.power_unavailable"), 1);
    }

    #[test]
    fn without_a_common_clock_nothing_is_added_and_the_loss_is_counted() {
        for (capture, part) in [(None, Some(5)), (Some(5), None)] {
            let mut trace = whole(capture);
            attach_counters(&mut trace, &sampled(part));
            assert_eq!((trace.counters.len(), trace.processes.len()), (0, 2));
            assert_eq!(trace.stat("telemetry.no_common_clock"), 3);
            assert_eq!(trace.manifest.value("measurement.sampler"), None);
        }
    }
}
