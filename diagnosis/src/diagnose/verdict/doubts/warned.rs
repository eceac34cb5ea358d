//! The profiler itself said that it does not fit the driver: what it did not record it may not have seen.

use super::{Case, Unjudged};
use crate::i18n::{Message, Text, Value};
use model::ImportStat;

/// What it says.
const SENTENCE: Text = Text::new(
    "whether the device did more: the profiler warned that it does not know this driver (\"{warning}\"); record with a profiler of the driver's version",
    "设备是否还做了别的：profiler 警告其不支持该驱动（“{warning}”）；请用与驱动版本相符的 profiler 采集",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let trace = case.cx.trace;
    let warned = trace.stats.iter().find(|stat| stat.name.ends_with(ImportStat::UNSUPPORTED_DRIVER))?;
    let silent = case.cx.analysis.ranks.iter().all(|rank| rank.timeline.ops.is_empty());
    let args = [("warning", Value::Raw(warned.example.clone().unwrap_or_default()))];
    let sentence = Message::new(SENTENCE, args);
    silent.then(|| Unjudged { share: 1.0, sentence, because: Vec::new(), decides: false })
}
