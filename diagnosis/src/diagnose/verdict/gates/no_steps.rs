//! No class of steps has any that count. Every gate after it asks for such a class, so this one decides where none did.

use super::Ruling;
use crate::i18n::{Message, Text};

/// What it says.
const SENTENCE: Text = Text::new("No step that counts was found in the capture.", "采集中没有可计入统计的步。");

pub(in super::super) fn ruling() -> Ruling {
    Ruling::undecided(Message::plain(SENTENCE), [])
}
