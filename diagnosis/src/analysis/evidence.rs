//! What a capture can and cannot show.

use model::{Category, Detail, Evidence, EvidenceClass, Trace, TrackKind};

use super::{
    anchor::AnchorKind,
    measured::Measured,
    model::Rank,
    scheduler::{self, Scheduler},
};

/// The classes of evidence that a capture holds.
pub fn of(trace: &Trace, ranks: &[Rank], measured: &Measured) -> Evidence {
    let mut evidence = Evidence::default();
    let mut hold = |class, held: bool| {
        if held {
            evidence.insert(class);
        }
    };
    let timelines = || ranks.iter().map(|r| &r.timeline);
    hold(EvidenceClass::Device, timelines().any(|t| !t.ops.is_empty()));
    // Without a device there is no timeline, and the calls were recorded all the same.
    let calls = || trace.lanes.iter().any(|lane| lane.category.contains(&Category::HostApi));
    hold(EvidenceClass::HostApi, timelines().any(|t| !t.calls.is_empty()) || (ranks.is_empty() && calls()));
    hold(EvidenceClass::Correlation, timelines().any(|t| t.ops.iter().any(|op| op.call.is_some())));
    // Eager runs count too: that no graph was launched is known as soon as calls are.
    hold(
        EvidenceClass::Graph,
        timelines()
            .any(|t| !t.calls.is_empty() || t.ops.iter().any(|op| op.in_graph || op.kind == super::OpKind::Opaque)),
    );
    hold(EvidenceClass::Shapes, trace.details.iter().any(|d| matches!(d, Detail::Op(op) if op.shapes.is_some())));
    hold(EvidenceClass::Probes, trace.probes.rows.iter().any(|row| row.statistic().is_some()));
    hold(EvidenceClass::MultiRank, ranks.len() > 1);
    let logged = ranks.iter().any(|rank| rank.anchor.kind == AnchorKind::Log);
    let device_counter = |c: &model::CounterTrack| c.device.is_some() && !trace.strings.get(c.name).contains("memory");
    hold(EvidenceClass::Logs, Scheduler::of(trace).is_known() || scheduler::counts_steps(trace) || logged);
    // Without a timeline there is nothing that measurements could be joined to, and they were taken all the same.
    let counted = || trace.summaries.iter().any(|s| !s.metrics.is_empty() || !s.counters.is_empty());
    hold(
        EvidenceClass::Counters,
        measured.joined.matched > 0 || trace.counters.iter().any(device_counter) || (ranks.is_empty() && counted()),
    );
    let queue_waits =
        trace.tracks.iter().zip(&trace.lanes).any(|(track, lane)| {
            track.key.kind == TrackKind::DeviceQueue && lane.category.contains(&Category::DeviceSync)
        });
    hold(EvidenceClass::PairDetail, queue_waits);
    // The launches of one command know of each other; what was given beside a capture only whoever read both knows.
    let launches = trace.manifest.value("measurement.repeats").and_then(|count| count.trim().parse::<u64>().ok());
    hold(EvidenceClass::SecondRun, launches.is_some_and(|count| count > 1));
    evidence
}
