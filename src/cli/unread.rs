//! What could not be read of an input of which the rest could: said on stderr, whatever else is quiet.

use diagnosis::{analysis::Loss, diagnose::lost, i18n::Lang};

use super::{exit::Exit, say};

/// Sentences that are said; the rest is counted.
const SAID: usize = 4;

/// Says what could not be read, and how a subcommand that did the rest ends.
pub(super) fn tell(unread: &[String]) -> Exit {
    for sentence in unread.iter().take(SAID) {
        say(&format!("strato: {sentence}"));
    }
    if let Some(more) = unread.len().checked_sub(SAID).filter(|more| *more > 0) {
        say(&format!("strato: {more} further notes on what was read or left out; `strato import` counts them"));
    }
    if unread.is_empty() { Exit::Done } else { Exit::Partly }
}

/// Sentences on what was lost of a capture that was read.
pub(super) fn of_capture(source: &str, loss: &Loss, lang: Lang) -> Vec<String> {
    let note = |note: &_| format!("'{source}': {}", report::phrase::plain(note, lang));
    lost::notes(loss).iter().map(note).collect()
}
