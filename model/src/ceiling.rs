//! How much memory captures may take while they are read. A few megabytes of a compressed file can hold more events than a
//! machine has room for; whoever reads it is to be told so in a sentence and not by the system's ending the program.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// What a slice takes until it is diagnosed, bytes. Measured on 1.5 million kernels of one step: 100 bytes each once they are
/// imported, 350 while they are diagnosed.
pub(crate) const SLICE: u64 = 360;
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
        Self { most, taken: Arc::default() }
    }

    /// The most that captures may take, bytes.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Whether captures have come to take more than they may; then nothing more of them is kept.
    pub fn is_reached(&self) -> bool {
        self.taken.load(Ordering::Relaxed) > self.most
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
        let ceiling = Ceiling::of(10 << 20);
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
        let fit = (10 << 20) / SLICE as usize;
        assert!((fit - 500..fit + 500).contains(&kept), "{kept} of 40000 slices, and {fit} fit");
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
