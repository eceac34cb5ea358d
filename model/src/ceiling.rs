//! How much memory captures may take while they are read. A few megabytes of a compressed file can hold more events than a
//! machine has room for; whoever reads it is to be told so in a sentence and not by the system's ending the program.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::{slice::Category, trace::Trace};

/// What is done with captures: most of what a slice takes, it takes while it is analysed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// They are read and written to a capture file.
    Import,
    /// They are diagnosed.
    #[default]
    Diagnose,
    /// They are diagnosed and drawn.
    View,
}

impl Work {
    /// What a slice takes, bytes: the analysis and the replay keep most of a call that may launch, less of a device operation, and
    /// little of other slices. Measured on own captures of 0.1, 1 and 10 million slices: `benches/memory.py`.
    pub(crate) fn slice(self, category: Category) -> u64 {
        let [device, call, other] = match self {
            Self::Import => [72, 72, 72],
            Self::Diagnose => [436, 663, 122],
            Self::View => [468, 672, 162],
        };
        match category {
            category if category.is_device_work() => device,
            category if category.can_launch() => call,
            _ => other,
        }
    }

    /// What the program takes without a capture, bytes: itself, its knowledge, what it reads ahead.
    fn program(self) -> u64 {
        match self {
            Self::Import => 60 << 20,
            Self::Diagnose => 48 << 20,
            Self::View => 52 << 20,
        }
    }
}

/// What a track, a process, a device or a series of samples takes besides what lies on it, bytes.
pub(crate) const TRACK: u64 = 1024;
/// What a text takes besides its bytes, which are kept twice.
pub(crate) const TEXT: u64 = 96;
/// What a sample, a link or a line of the manifest takes, bytes.
pub(crate) const POINT: u64 = 96;
/// What a detail or a row of sums takes, bytes.
pub(crate) const ROW: u64 = 768;

/// The most memory that captures may take together, and what they take. Clones share what is taken.
#[derive(Clone, Debug)]
pub struct Ceiling {
    most: u64,
    taken: Arc<AtomicU64>,
    work: Work,
}

impl Default for Ceiling {
    /// No ceiling.
    fn default() -> Self {
        Self::of(u64::MAX)
    }
}

impl Ceiling {
    /// A ceiling of so many bytes.
    pub fn of(most: u64) -> Self {
        Self { most, taken: Arc::default(), work: Work::default() }
    }

    /// A ceiling of so many bytes for all of a process that does this with captures.
    pub fn of_process(most: u64, work: Work) -> Self {
        Self { most, taken: Arc::new(AtomicU64::new(work.program())), work }
    }

    /// What captures take so far, as far as that is known, and of a process what it takes besides, bytes.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Counts a capture that was in memory already.
    pub fn count(&self, trace: &Trace) {
        let texts: u64 = trace.strings.iter().map(|(_, text)| 2 * text.len() as u64 + TEXT).sum();
        let points = trace.counters.iter().map(|counter| counter.t.len()).sum::<usize>() + trace.flows.len();
        let rows = trace.details.len() + trace.summaries.len();
        let categories = trace.lanes.iter().flat_map(|lane| &lane.category);
        let slices: u64 = categories.map(|category| self.work.slice(*category)).sum();
        self.take(slices + texts + points as u64 * POINT + rows as u64 * ROW + trace.tracks.len() as u64 * TRACK);
    }

    /// The most that captures may take, bytes.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Whether captures have come to take more than they may; then nothing more of them is kept.
    pub fn is_reached(&self) -> bool {
        self.taken() > self.most
    }

    /// Counts what was kept, bytes.
    pub(crate) fn take(&self, bytes: u64) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// What one capture takes, told to its ceiling in portions, so that a slice costs an addition.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    ceiling: Ceiling,
    untold: u64,
    full: bool,
}

impl Meter {
    /// Bytes that are told at once.
    const PORTION: u64 = 64 << 10;

    pub fn new(ceiling: Ceiling) -> Self {
        let full = ceiling.is_reached();
        Self { ceiling, untold: 0, full }
    }

    pub fn take_slice(&mut self, category: Category) {
        self.take(self.ceiling.work.slice(category));
    }

    /// Gives back what was taken.
    pub fn give(&mut self, bytes: u64) {
        let untold = bytes.min(self.untold);
        self.untold -= untold;
        self.ceiling.taken.fetch_sub(bytes - untold, Ordering::Relaxed);
        self.full = self.ceiling.is_reached();
    }

    pub fn take(&mut self, bytes: u64) {
        self.untold = self.untold.saturating_add(bytes);
        if self.untold >= Self::PORTION {
            self.ceiling.take(std::mem::take(&mut self.untold));
            self.full = self.ceiling.is_reached();
        }
    }

    /// Whether nothing more may be kept.
    pub fn is_full(&self) -> bool {
        self.full
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Category, Slice, StringId, TraceBuilder, TraceSink, TrackKey, TrackKind};

    #[test]
    fn what_captures_take_together_is_what_counts() {
        let ceiling = Ceiling::of(3 << 20);
        let mut kept = 0;
        for _ in 0..4 {
            let mut builder = TraceBuilder::new("t", "t");
            builder.limit(ceiling.clone());
            let process = builder.process(0);
            let kind = TrackKind::HostThread;
            let track = builder.track(TrackKey { kind, process, device: None, context: None, id: 1 });
            for start in 0..10_000 {
                let (name, category) = (StringId(0), Category::FrameworkOp);
                builder.slice(Slice { track, start, dur: 1, name, category, correlation: None, detail: None });
            }
            kept += builder.finish().slice_count();
        }
        assert!(ceiling.is_reached() && !Ceiling::default().is_reached());
        let each = Work::Diagnose.slice(Category::FrameworkOp);
        let [fit, off] = [3 << 20, 2 * Meter::PORTION].map(|bytes| (bytes / each) as usize);
        assert!((fit - off..fit + off).contains(&kept), "{kept} of 40000 slices, and {fit} fit");
    }

    #[test]
    fn texts_tracks_and_samples_count_too() {
        let many = |each: &dyn Fn(&mut TraceBuilder, u64)| {
            let ceiling = Ceiling::of(4 << 20);
            let mut builder = TraceBuilder::new("t", "t");
            builder.limit(ceiling.clone());
            (0..100_000).for_each(|i| each(&mut builder, i));
            let trace = builder.finish();
            assert!(ceiling.is_reached());
            trace
        };
        let texts = many(&|b, i| {
            b.intern(&format!("name {i}"));
        });
        assert!(texts.strings.len() < 50_000);
        let tracks = many(&|b, i| {
            b.process(i);
        });
        assert!(tracks.processes.len() < 5_000);
        let counted = many(&|b, i| b.counter(crate::ProcessId(0), None, StringId(0), "", i as i64, 1.0));
        assert!(counted.counters.iter().map(|c| c.t.len()).sum::<usize>() < 50_000);
    }
}
