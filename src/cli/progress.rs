//! The progress bar of long work: on stderr, only on a terminal, and only after half a second.

use std::{
    fmt::Display,
    io::IsTerminal,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{say, terminal_text::plain};
use crate::tui::job::Progress;

/// Work that is over sooner than this needs no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// Shows how far the work is.
pub struct Bar {
    bar: ProgressBar,
    start: Instant,
    hidden: AtomicBool,
    /// Who else is told, and may call the work off.
    job: Option<Arc<Progress>>,
}

impl Bar {
    /// A bar for what begins now.
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {percent}% {eta}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar, start: Instant::now(), hidden: AtomicBool::new(std::io::stderr().is_terminal()), job: None }
    }

    /// A bar that a job in the background shows elsewhere.
    pub fn of(job: &Arc<Progress>) -> Self {
        let mut bar = Self::hidden();
        bar.job = Some(Arc::clone(job));
        bar
    }

    /// A bar that nobody sees, for work that is part of a longer one.
    pub fn hidden() -> Self {
        let bar = Self::new();
        bar.hidden.store(false, Ordering::Relaxed);
        bar
    }

    /// The file or capture that is now worked on, and what is done to it.
    pub fn stage(&self, doing: &str, of: impl Display) {
        self.tell(doing, &of.to_string());
    }

    /// Says a line of its own, unless somebody else shows the work: then stderr may be under a picture. Whether it was said.
    pub fn note(&self, line: &str) -> bool {
        let is_alone = self.job.is_none();
        if is_alone {
            self.bar.suspend(|| say(line));
        }
        is_alone
    }

    /// What is now being done.
    pub fn doing(&self, what: &str) {
        self.tell(what, "");
    }

    fn tell(&self, what: &str, of: &str) {
        if let Some(job) = &self.job {
            job.doing(what, of);
        }
        self.bar.set_message(plain(format!("{what} {of}").trim_end()).into_owned());
        self.at(0, 0);
    }

    /// `done` of `total` bytes or rows; a total of 0 is unknown.
    pub fn at(&self, done: u64, total: u64) {
        if let Some(job) = &self.job {
            job.at(done, total);
        }
        if self.start.elapsed() > PATIENCE && self.hidden.swap(false, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_length(total);
        self.bar.set_position(done.min(total));
    }
}

impl Default for Bar {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
