//! Launches at the end of a recording of whose work no record exists: the profiler stopped before the device was done.

use std::collections::HashMap;

use model::{Ns, TrackId};

use super::{Case, Unjudged};
use crate::{
    analysis::{Call, Timeline},
    diagnose::signals::reading,
    i18n::{Message, Text, Value},
    platform::HostCall,
};

/// Part of the launches from which those at the end need a word; own value: what is in flight when a profiler stops is less.
const LEAST: f64 = 0.10;
/// And how many they are at least; own value.
const FEWEST: u64 = 100;

/// What it says.
const SENTENCE: Text = Text::new(
    "what the device did for the last {missing} of {all} launches, of which it has no record: the recording ended before the device did, so its last steps may be missing; wait for the device before the profiler stops",
    "设备为最后 {missing} 次下发（共 {all} 次）做了什么：没有其执行记录，采集先于设备结束，最后的步可能缺失；请在停止剖析器之前等待设备完成",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (rank, _) = case.longest?;
    // Of a process with several devices nobody knows which of them a call without work was for.
    if case.cx.analysis.ranks.iter().filter(|other| other.process == rank.process).count() > 1 {
        return None;
    }
    let (missing, all) = unanswered(&rank.timeline);
    // A window cut out of a running program shows about as much at its beginning of what was launched before.
    let lacks = missing.saturating_sub(rank.timeline.before_recording);
    let share = missing as f64 / all.max(1) as f64;
    let args = [("missing", Value::Count(missing)), ("all", Value::Count(all))];
    let sentence = Message::new(SENTENCE, args);
    (lacks >= FEWEST && share >= LEAST).then(|| Unjudged { share, sentence, because: Vec::new(), decides: false })
}

/// Launches after the last one whose work was recorded, and all of them. A call inside another one of its thread is part of it,
/// short fills are left out by profilers, what is captured into a graph runs nothing, and of graphs not every profiler keeps the
/// work. None are missing where work without a link ran later: it may be theirs.
fn unanswered(timeline: &Timeline) -> (u64, u64) {
    let capturing = reading::merged(timeline.capturing.clone());
    let captured = |call: &Call| {
        let span = capturing.get(capturing.partition_point(|span| span.end <= call.start));
        span.is_some_and(|span| span.start <= call.start)
    };
    let other = |call: &Call| matches!(call.kind, HostCall::MemsetAsync | HostCall::GraphLaunch);
    let launches = |call: &&Call| call.kind.is_launch() && !other(call) && !captured(call);
    let Some(last) = timeline.calls.iter().filter(|call| call.ops > 0).map(|call| call.start).max() else {
        return (0, 0);
    };
    if timeline.ops.iter().any(|op| op.call.is_none() && op.start > last) {
        return (0, 0);
    }
    let mut open: HashMap<TrackId, Ns> = HashMap::new();
    let (mut missing, mut all) = (0, 0);
    for call in timeline.calls.iter().filter(launches) {
        let end = open.entry(call.track).or_insert(Ns::MIN);
        if call.end <= *end {
            continue;
        }
        *end = call.end;
        all += 1;
        missing += u64::from(call.start > last);
    }
    (missing, all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::script::Script;

    /// Of 1 556 launches of a real capture the last 923 had no work on the device, and no sentence said so.
    #[test]
    fn launches_after_the_last_record_of_the_device_are_counted() {
        let mut s = Script::default();
        for i in 0..6 {
            let at = i * 100;
            s.launch((at, at + 5), "gemm", (at + 10, at + 60));
        }
        for i in 6..10 {
            s.call("cudaLaunchKernel", (i * 100, i * 100 + 5));
            s.call("cuLaunchKernel", (i * 100 + 1, i * 100 + 4));
        }
        let (_, analysis) = s.analyze();
        assert_eq!(unanswered(&analysis.ranks[0].timeline), (4, 10));
    }
}
