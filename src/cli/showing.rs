//! Captures in the terminal interface while they are still being diagnosed.

use std::sync::{
    Arc,
    mpsc::{Receiver, Sender},
};

use diagnosis::platform::Packs;
use model::Trace;

use crate::tui::{self, Job, Left, Opened, Opening, Session, Settings, Sketch, opening::Over};

/// Captures that can be looked at before they are diagnosed, on their way to who shows them.
pub(super) type Early = Sender<Arc<Sketch>>;

/// Indexes the lanes of captures and sends them to who shows them.
pub(super) fn sketched(traces: &[Trace], packs: &Packs, early: &Early) -> Arc<Sketch> {
    let sketch = Arc::new(Sketch::of(traces, packs));
    // Who has left does not look any more, and the job ends when it next looks whether it was called off.
    drop(early.send(Arc::clone(&sketch)));
    sketch
}

/// Shows how far a job is, its captures as soon as they can be looked at, and what it opened.
///
/// # Errors
/// What stopped the job, and those of the terminal.
pub(super) fn open(
    session: &mut Session,
    (job, early): (Job<anyhow::Result<Opened>>, Receiver<Arc<Sketch>>),
    settings: Settings,
) -> anyhow::Result<Left> {
    let mut opening = Opening::new(job, early, settings);
    let left = session.show(&mut opening)?;
    match opening.finish() {
        Some(Over::Failed(error)) if left == Left::Done => Err(error),
        Some(Over::Panicked(_)) if left == Left::Done => {
            Err(anyhow::anyhow!("the captures could not be read: the importer panicked"))
        }
        _ => Ok(if left == Left::Done { Left::Quit } else { left }),
    }
}

/// Gives the terminal back, and ends by the signal that ended the session.
pub(super) fn end(session: Session, left: Left) {
    drop(session.give_back());
    if let Left::Signal(signal) = left {
        tui::terminal::end_by(signal);
    }
}
