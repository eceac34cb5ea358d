//! How far a session is, told as `tracing` spans and events: whoever shows it subscribes, and nobody has to.
//!
//! A stage of the work is a span with the target [`STAGE`]; how much of it is done is an event with the target [`PROGRESS`]; what a
//! person should know although the work goes on is an event with the target [`NOTE`].

use std::{
    fmt::Display,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tracing::{Span, info_span, trace, warn};

use crate::Error;

/// Target of the spans of stages. Their name says what is done, their field `of` to which file or capture.
pub const STAGE: &str = "strato::stage";
/// Target of events with the fields `done` and `total`, bytes or rows; a total of 0 is unknown.
pub const PROGRESS: &str = "strato::progress";
/// Target of notes for people.
pub const NOTE: &str = "strato::note";

/// A part of the work, and the name of its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A trace file is imported.
    Reading,
    /// A capture file is loaded.
    Loading,
    /// Every nanosecond gets its bucket.
    Analysing,
    /// The rules look for causes.
    Diagnosing,
    /// Two sides are compared.
    Comparing,
}

impl Stage {
    /// The stage that a span's name stands for.
    pub fn of_span(name: &str) -> Option<Self> {
        [Self::Reading, Self::Loading, Self::Analysing, Self::Diagnosing, Self::Comparing]
            .into_iter()
            .find(|stage| stage.name() == name)
    }

    /// The name of its span.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Loading => "loading",
            Self::Analysing => "analysing",
            Self::Diagnosing => "diagnosing",
            Self::Comparing => "comparing",
        }
    }

    /// The span of this stage of the work on `of`.
    pub(crate) fn span(self, of: impl Display) -> Span {
        // The name of a span has to be a literal.
        match self {
            Self::Reading => info_span!(target: STAGE, "reading", %of),
            Self::Loading => info_span!(target: STAGE, "loading", %of),
            Self::Analysing => info_span!(target: STAGE, "analysing", %of),
            Self::Diagnosing => info_span!(target: STAGE, "diagnosing", %of),
            Self::Comparing => info_span!(target: STAGE, "comparing", %of),
        }
    }
}

/// Says how much of a stage is done.
pub(crate) fn at(done: u64, total: u64) {
    trace!(target: PROGRESS, done, total);
}

/// Tells people something that does not stop the work.
pub(crate) fn note(text: &str) {
    warn!(target: NOTE, "{text}");
}

/// Calls work off from another thread.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

/// What the work unwinds with inside [`Cancel::watch`].
struct CalledOff;

impl Cancel {
    /// Calls the work off: it ends with [`Error::Cancelled`] when it next says how far it is.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work was called off.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Ends the work if it was called off. Importers ask deep inside their loops and have no other way out, so this unwinds, as far as
    /// [`Cancel::watch`].
    pub(crate) fn check(&self) {
        if self.is_cancelled() {
            resume_unwind(Box::new(CalledOff));
        }
    }

    /// Does work that [`Cancel::check`] may end.
    pub(crate) fn watch<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        // What the work was making is dropped with it: nobody sees a half of it.
        catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|why| if why.is::<CalledOff>() { Err(Error::Cancelled) } else { resume_unwind(why) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn work_that_is_called_off_ends_with_that_and_a_panic_stays_one() {
        let cancel = Cancel::default();
        assert_eq!(cancel.watch(|| Ok(1)).unwrap(), 1);
        cancel.clone().cancel();
        let ended = cancel.watch(|| {
            cancel.check();
            Ok(1)
        });
        assert!(matches!(ended, Err(Error::Cancelled)));
        let lost = std::panic::catch_unwind(AssertUnwindSafe(|| {
            cancel.watch(|| -> Result<(), Error> { resume_unwind(Box::new("lost")) })
        }));
        assert!(lost.is_err_and(|why| why.is::<&str>()));
    }

    #[test]
    fn every_stage_is_known_by_its_span() {
        for stage in [Stage::Reading, Stage::Loading, Stage::Analysing, Stage::Diagnosing, Stage::Comparing] {
            assert_eq!(Stage::of_span(stage.name()), Some(stage));
        }
    }
}
