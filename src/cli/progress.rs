//! The progress bar of long work: on stderr, only on a terminal, and only after half a second.
//!
//! A bar shows the work of the thread that made it: stages and progress of a session arrive through [`Shown`], which subscribes to
//! its spans and events.

use std::{
    cell::RefCell,
    fmt::Display,
    io::IsTerminal,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use diagnosis::i18n::{Lang, Text};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use session::progress::{NOTE, PROGRESS, STAGE, Stage};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{Layer, layer::Context};

use super::{say, terminal_text::plain};
use crate::tui::{job::Progress, terminal};

/// Work that is over sooner than this needs no bar.
const PATIENCE: Duration = Duration::from_millis(500);

thread_local! {
    /// The bars of this thread, the newest last.
    static BARS: RefCell<Vec<Weak<Face>>> = const { RefCell::new(Vec::new()) };
}

/// Shows how far the work is.
pub struct Bar(Arc<Face>);

struct Face {
    bar: ProgressBar,
    lang: Lang,
    start: Instant,
    hidden: AtomicBool,
    /// Who else is told.
    job: Option<Arc<Progress>>,
}

impl Bar {
    /// A bar for what begins now on this thread.
    pub fn new(lang: Lang) -> Self {
        Self::make(lang, std::io::stderr().is_terminal(), None)
    }

    /// A bar that a job in the background shows elsewhere.
    pub fn of(job: &Arc<Progress>, lang: Lang) -> Self {
        Self::make(lang, false, Some(Arc::clone(job)))
    }

    /// A bar that nobody sees, for work that is part of a longer one.
    pub fn hidden() -> Self {
        Self::make(Lang::En, false, None)
    }

    fn make(lang: Lang, hidden: bool, job: Option<Arc<Progress>>) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {percent}% {eta}") {
            bar.set_style(style.progress_chars("=> "));
        }
        let face = Arc::new(Face { bar, lang, start: Instant::now(), hidden: AtomicBool::new(hidden), job });
        BARS.with_borrow_mut(|bars| {
            bars.retain(|bar| bar.strong_count() > 0);
            bars.push(Arc::downgrade(&face));
        });
        Self(face)
    }

    /// The file that is now worked on, and what is done to it.
    pub fn stage(&self, doing: &str, of: impl Display) {
        self.0.tell(doing, &of.to_string());
    }

    /// What is now being done.
    pub fn doing(&self, what: &str) {
        self.0.tell(what, "");
    }

    /// `done` of `total` bytes or rows; a total of 0 is unknown.
    pub fn at(&self, done: u64, total: u64) {
        self.0.at(done, total);
    }
}

impl Face {
    fn tell(&self, what: &str, of: &str) {
        if let Some(job) = &self.job {
            job.doing(what, of);
        }
        self.bar.set_message(plain(format!("{what} {of}").trim_end()).into_owned());
        self.at(0, 0);
    }

    fn at(&self, done: u64, total: u64) {
        if let Some(job) = &self.job {
            job.at(done, total);
        }
        if self.start.elapsed() > PATIENCE && self.hidden.swap(false, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_length(total);
        self.bar.set_position(done.min(total));
    }

    /// Says a line of its own, unless somebody else shows the work: then stderr may be under a picture.
    fn note(&self, line: &str) {
        if self.job.is_none() {
            self.bar.suspend(|| say(line));
        }
    }
}

impl Drop for Face {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The newest bar of this thread.
fn newest() -> Option<Arc<Face>> {
    BARS.with_borrow(|bars| bars.iter().rev().find_map(Weak::upgrade))
}

/// What is done at a stage, for people.
pub fn doing(stage: Stage) -> Text {
    match stage {
        Stage::Reading => Text::new("reading", "读取"),
        Stage::Loading => Text::new("loading", "加载"),
        Stage::Analysing => Text::new("analysing", "分析"),
        Stage::Diagnosing => Text::new("diagnosing", "诊断"),
        Stage::Comparing => Text::new("comparing", "对比"),
    }
}

/// Subscribes the bars to what sessions tell.
pub struct Shown;

impl<S: Subscriber> Layer<S> for Shown {
    fn on_new_span(&self, span: &span::Attributes<'_>, _: &span::Id, _: Context<'_, S>) {
        let metadata = span.metadata();
        let stage = Stage::of_span(metadata.name()).filter(|_| metadata.target() == STAGE);
        if let Some((stage, bar)) = stage.zip(newest()) {
            let mut said = Said::default();
            span.record(&mut said);
            bar.tell(doing(stage).get(bar.lang), &said.of);
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let target = event.metadata().target();
        if target != PROGRESS && target != NOTE {
            return;
        }
        let mut said = Said::default();
        event.record(&mut said);
        match (target == NOTE, newest()) {
            (false, Some(bar)) => bar.at(said.done, said.total),
            (false, None) => {}
            (true, Some(bar)) => bar.note(&format!("strato: {}", said.message)),
            (true, None) if terminal::is_taken() => {}
            (true, None) => say(&format!("strato: {}", said.message)),
        }
    }
}

/// The fields of a span or event that bars show.
#[derive(Default)]
struct Said {
    of: String,
    message: String,
    done: u64,
    total: u64,
}

impl Visit for Said {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "done" => self.done = value,
            "total" => self.total = value,
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "of" => self.of = format!("{value:?}"),
            "message" => self.message = format!("{value:?}"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tracing_subscriber::{layer::SubscriberExt, registry};

    use super::*;

    #[test]
    fn a_bar_shows_the_stages_and_the_progress_of_its_thread() {
        let progress = Arc::new(Progress::default());
        let bar = Bar::of(&progress, Lang::Zh);
        tracing::subscriber::with_default(registry().with(Shown), || {
            let of = "a/b.json";
            let _stage = tracing::info_span!(target: STAGE, "analysing", %of).entered();
            tracing::trace!(target: PROGRESS, done = 3u64, total = 7u64);
            assert_eq!(progress.look(), ("分析".to_owned(), "a/b.json".to_owned()));
            assert_eq!(progress.part(), (3, 7));
            let other = std::thread::spawn(|| tracing::trace!(target: PROGRESS, done = 5u64, total = 7u64));
            other.join().unwrap();
        });
        assert_eq!(progress.part(), (3, 7), "another thread has another bar");
        drop(bar);
        assert!(newest().is_none());
    }
}
