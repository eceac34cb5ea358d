//! What one block of the file says, in a form of its own that a worker can build without the sink: texts, tracks and
//! details are numbered within the batch and get their final ids when the batch is merged.

use model::{Category, Detail, Ns, Severity, Span, TrackKind};
use rustc_hash::FxHashMap;

/// Absent index.
pub(super) const NONE: u32 = u32::MAX;

/// Process or thread of an event, with words numbered in the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Id {
    /// The event names none.
    None,
    /// A number.
    Int(i64),
    /// Words.
    Text(u32),
}

/// A track as events name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TrackRef {
    /// What lies on it.
    pub kind: TrackKind,
    /// `pid` of the events.
    pub pid: Id,
    /// `tid` of the events.
    pub tid: Id,
    /// Device ordinal of a device track.
    pub device: Option<i32>,
    /// Device context.
    pub context: Option<i64>,
    /// Stream or thread number, if there is one.
    pub number: Option<i64>,
}

/// A slice.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // as in `model::Slice`
pub(super) struct Row {
    pub start: Ns,
    pub dur: Ns,
    pub correlation: Option<i64>,
    pub track: u32,
    pub name: u32,
    pub detail: u32,
    pub category: Category,
}

/// One sample of a counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Device ordinal.
    pub device: Option<i32>,
    /// Name.
    pub name: u32,
    /// Unit.
    pub unit: &'static str,
    /// Time.
    pub t: Ns,
    /// Value.
    pub value: f64,
}

/// One end of a forward-backward link.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowEnd {
    /// Id shared by both ends.
    pub id: i64,
    /// Whether it is the start.
    pub start: bool,
    /// Track.
    pub track: u32,
    /// Time.
    pub t: Ns,
}

/// One end of a slice that is written as two events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Half {
    /// Process.
    pub pid: Id,
    /// Thread.
    pub tid: Id,
    /// Its name, possibly empty.
    pub name: u32,
    /// Time.
    pub at: Ns,
    /// The slice, which lasts no time yet, where this is its beginning.
    pub begun: Option<Row>,
}

/// A name that a metadata event gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Label {
    /// Whether it names a thread; otherwise a process.
    pub thread: bool,
    /// Process.
    pub pid: Id,
    /// Thread.
    pub tid: Id,
    /// The name.
    pub text: u32,
}

/// Counts of one category of the source.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Events read.
    pub read: u64,
    /// Events kept.
    pub kept: u64,
    /// Their durations, ns.
    pub time: Ns,
    /// What became of them.
    pub note: &'static str,
}

/// An oddity and how often it was met.
#[derive(Clone, Debug)]
pub(super) struct Oddity {
    /// How bad it is.
    pub severity: Severity,
    /// How often.
    pub count: u64,
    /// The first one.
    pub example: String,
}

/// Everything that a block says.
#[derive(Default)]
#[allow(missing_docs)] // the fields are named after their types
pub(super) struct Batch {
    pub texts: Vec<Box<str>>,
    pub tracks: Vec<TrackRef>,
    pub details: Vec<Detail>,
    pub rows: Vec<Row>,
    pub samples: Vec<Sample>,
    pub flow_ends: Vec<FlowEnd>,
    pub halves: Vec<Half>,
    pub labels: Vec<Label>,
    pub ledger: FxHashMap<u32, Tally>,
    pub oddities: FxHashMap<&'static str, Oddity>,
    pub window: Option<Span>,
    pub vendor: Option<&'static str>,
    pub host_pid: Option<i64>,
    /// Events of which neither category nor phase says what they are.
    pub unknown: u64,
    /// Arrows from calls to device work.
    pub arrows: Arrows,
}

/// Ends of arrows: behind the slice that they touch, and elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrows {
    /// Those at calls.
    pub calls: (u64, u64),
    /// Those at device work.
    pub work: (u64, u64),
}

impl Arrows {
    /// Takes in those of another block.
    pub fn add(&mut self, other: Self) {
        for (own, other) in [(&mut self.calls, other.calls), (&mut self.work, other.work)] {
            *own = (own.0 + other.0, own.1 + other.1);
        }
    }
}

impl Batch {
    /// Counts something out of the ordinary.
    pub fn odd(&mut self, name: &'static str, severity: Severity, example: impl FnOnce() -> String) {
        let oddity = self.oddities.entry(name).or_insert_with(|| Oddity { severity, count: 0, example: example() });
        oddity.count += 1;
    }
}
