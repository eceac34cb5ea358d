//! What was observed, into a sink. Operators have their times in the run's own record; here is what they consist of: tasks on a
//! track per stream beside the queue, calls on a track per thread, memory as a counter.

use std::collections::BTreeMap;

use model::{Category, Ns, ProcessId, Provenance, Severity, Slice, TraceSink, TrackKey, TrackKind};

use super::{
    attribute::Attributed,
    record::{Record, When},
    session::Observed,
};

/// Where a stream's tasks lie beside its queue; the tracks of workers, which are beside queues too, count from 0.
const TASKS: i64 = 1 << 32;

impl Observed {
    /// What says in a manifest that the times of operators are MSPTI's. Written before the run's own fields, of which the first counts.
    pub fn fields(&self, attributed: &Attributed, sink: &mut dyn TraceSink) {
        let mut say = |key: &str, value: &str| sink.manifest(key, value, Provenance::Observed);
        let [told, all] = attributed.told;
        say(
            "evidence.device",
            &format!(
                "MSPTI's records of tasks, {told} of {all} of a known operator; copies by events of the engine, put around them"
            ),
        );
        say(
            "measurement.timer",
            &format!(
                "stamps of MSPTI by the wall clock of the host, put on its monotonic clock to within {} ns",
                self.within
            ),
        );
        say("measurement.traced", "by the engine itself and MSPTI");
        say("mspti.library", &self.file);
    }

    /// Writes it; times become those of the run's clock. `device` is the number that the run's device has in the capture.
    pub fn write(&self, attributed: &Attributed, process: ProcessId, device: i32, sink: &mut dyn TraceSink) {
        let mut kept: BTreeMap<&str, (u64, Ns)> = BTreeMap::new();
        let mut in_use = 0i64;
        let mut without_time = 0;
        for own in &self.found.records {
            let (what, when) = match own.record {
                Record::Task { when, .. } => ("task", when),
                Record::Call { when, .. } => ("call", when),
                Record::Memory { when, .. } => ("memory", when),
                Record::Transfer { when, .. } => ("copy or fill", when),
                Record::External { .. } => ("operator of a call", When { start: 1, end: 1 }),
            };
            if when.start == 0 || when.end < when.start {
                without_time += 1;
                continue;
            }
            let (start, end) = (self.conversion.run(when.start), self.conversion.run(when.end));
            let dur = end.saturating_sub(start);
            let (rows, time) = kept.entry(what).or_default();
            (*rows, *time) = (*rows + 1, time.saturating_add(dur));
            let name = self.found.name(own.name);
            let slice = match own.record {
                Record::Task { queue: [_, stream], .. } => {
                    let (kind, context) = (TrackKind::DeviceAnnotation, Some(TASKS + i64::from(stream)));
                    let track = sink.track(TrackKey { process, kind, device: Some(device), context, id: 0 });
                    sink.name_track(track, &format!("tasks of stream {stream}"));
                    let unit = self.found.name(own.unit).map(|unit| format!(" ({unit})")).unwrap_or_default();
                    Some((track, format!("{}{unit}", name.unwrap_or("task without a name")), Category::DeviceRange))
                }
                Record::Call { thread, .. } => {
                    let id = i64::from(thread);
                    let track =
                        sink.track(TrackKey { process, kind: TrackKind::Global, device: None, context: None, id });
                    sink.name_track(track, &format!("calls of thread {thread}"));
                    Some((track, name.unwrap_or("call without a name").to_owned(), Category::LibraryApi))
                }
                Record::Memory { bytes, .. } => {
                    in_use = in_use.saturating_add(bytes);
                    let counter = sink.intern("device_memory_allocated");
                    sink.counter(process, Some(device), counter, "B", end, in_use as f64);
                    None
                }
                // The run's own record has the call, and what was copied.
                Record::Transfer { .. } | Record::External { .. } => None,
            };
            if let Some((track, name, category)) = slice {
                let name = sink.intern(&name);
                sink.slice(Slice { track, start, dur, name, category, correlation: None, detail: None });
            }
        }
        for (what, (rows, time)) in kept {
            sink.ledger(&format!("MSPTI {what}"), rows, rows, time, "records of this process");
        }
        self.losses(attributed, without_time, sink);
    }

    /// What is counted because it is not there.
    fn losses(&self, attributed: &Attributed, without_time: u64, sink: &mut dyn TraceSink) {
        for (what, why) in &self.absent {
            sink.stat(&format!("mspti.without_{}", what.replace(' ', "_")), Severity::Notice, 1, Some(why));
        }
        for (what, (count, example)) in &self.found.wrong {
            let severity = match *what {
                "unknown_kind" | "foreign_buffer" | "operator_not_pushed" => Severity::Notice,
                _ => Severity::DataLoss,
            };
            sink.stat(&format!("mspti.{what}"), severity, *count, example.as_deref());
        }
        let counts = [
            ("without_time", without_time, Severity::DataLoss),
            // MSPTI does not say what it dropped; an operator without a task shows it.
            ("operators_without_records", attributed.missing, Severity::DataLoss),
            ("tasks_without_operator", attributed.told[1] - attributed.told[0], Severity::Notice),
        ];
        for (what, count, severity) in counts.into_iter().filter(|(_, count, _)| *count > 0) {
            sink.stat(&format!("mspti.{what}"), severity, count, None);
        }
    }
}
