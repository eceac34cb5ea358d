//! So much of what ran on the devices is lost that nobody knows how long they were busy.

use super::{Case, Ruling};
use crate::i18n::{Message, Text};

/// What it says, behind what is lost.
const SENTENCE: Text = Text::new(
    "How long the device was busy and idle is not known, so this capture allows no verdict on a layer: what is said below is of the records that were read. Record again, or export again what could not be read.",
    "设备忙碌与空闲的时间未知，该采集不足以对任何层下结论：以下内容仅针对已读到的记录。请重新采集，或重新导出未能读取的部分。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    let lost = case.level.is_some() && case.cx.analysis.loss.forbids_shares();
    lost.then(|| Ruling::undecided(Message::plain(SENTENCE), ["CP-05"]))
}
