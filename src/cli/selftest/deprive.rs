//! A capture with evidence taken away, as a poorer recording of the same run would have it.

use model::{Clock, Detail, Slice, Trace, TraceBuilder, TraceSink, TrackKind};

/// What is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Shapes and dtypes of framework operators.
    Shapes,
    /// Which call launched which operation.
    Correlation,
    /// Everything that the host did.
    Host,
    /// What the engine counts of itself.
    Counters,
    /// Every rank but the first.
    OtherRanks,
}

impl Loss {
    /// All losses, in the order of the tables.
    pub const ALL: [Self; 5] = [Self::Shapes, Self::Correlation, Self::Host, Self::Counters, Self::OtherRanks];

    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Shapes => "shapes",
            Self::Correlation => "correlation",
            Self::Host => "host",
            Self::Counters => "counters",
            Self::OtherRanks => "other_ranks",
        }
    }

    /// Whether a capture has what would be taken away.
    pub fn applies(self, trace: &Trace) -> bool {
        match self {
            Self::Shapes => trace.details.iter().any(|d| matches!(d, Detail::Op(op) if op.shapes.is_some())),
            Self::Counters => !trace.counters.is_empty(),
            Self::OtherRanks => trace.processes.len() > 1,
            Self::Correlation | Self::Host => true,
        }
    }

    /// The capture without it.
    pub fn from(self, trace: &Trace) -> Trace {
        let mut b = TraceBuilder::new(&*trace.source, &*trace.format);
        // The same texts in the same order get the same ids, so that details stay valid.
        for (_, text) in trace.strings.iter() {
            b.intern(text);
        }
        for (i, p) in trace.processes.iter().enumerate() {
            let process = b.process(i as u64);
            b.describe_process(process, p.pid, p.name.map(|n| trace.strings.get(n)), p.rank);
        }
        let keeps = |process: model::ProcessId| self != Self::OtherRanks || process.0 == 0;
        trace.devices.iter().filter(|d| keeps(d.process)).for_each(|d| b.device(d.clone()));
        for (track, lane) in trace.tracks.iter().zip(&trace.lanes) {
            let host = matches!(track.key.kind, TrackKind::HostThread | TrackKind::Global);
            if !keeps(track.key.process) || (self == Self::Host && host) {
                continue;
            }
            let id = b.track(track.key);
            for i in 0..lane.len() {
                let correlation = lane.correlation[i];
                let kept = self != Self::Correlation && correlation != model::trace::NO_CORRELATION;
                let shapes = |d: &&Detail| self != Self::Shapes || !matches!(d, Detail::Op(_));
                b.slice(Slice {
                    track: id,
                    start: lane.start[i],
                    dur: lane.dur[i],
                    name: lane.name[i],
                    category: lane.category[i],
                    correlation: kept.then_some(correlation),
                    detail: trace.detail(lane, i).filter(shapes),
                });
            }
        }
        // The counters' times stay those of the capture.
        b.clock(Clock::AsIs { unix_zero: trace.start_unix_ns });
        let mut poorer = b.finish();
        let counted = |counter: &&model::CounterTrack| self != Self::Counters && keeps(counter.process);
        poorer.counters = trace.counters.iter().filter(counted).cloned().collect();
        poorer.window = trace.window;
        poorer.manifest = trace.manifest.clone();
        poorer.simulated = trace.simulated;
        poorer
    }
}
