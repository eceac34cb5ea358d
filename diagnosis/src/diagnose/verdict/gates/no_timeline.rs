//! Nothing ran on a device as far as the capture shows: it holds sums, or a log that times no step, or nothing.

use model::EvidenceClass;

use super::{Case, Ruling};
use crate::{
    diagnose::{relations::Role, sums},
    i18n::{Message, Text},
};

/// What it says of a log.
const LOG_ONLY: Text = Text::new(
    "The log times no step: it says how the engine was set up and started, and nothing of where a step's time goes. Log the latency of each step, or record a trace.",
    "日志中没有步时：只说明引擎的配置与启动过程，不能说明一步的时间花在哪里。请记录每步延迟，或采集一次 trace。",
);
/// What it says where there is nothing.
const SENTENCE: Text = Text::new(
    "No device operation was recorded: nothing can be said about where the time goes.",
    "没有记录到任何设备算子：无法判断时间花在哪里。",
);

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    if case.level.is_some() {
        return None;
    }
    if let Some(headline) = sums::headline(case.cx.trace) {
        return Some(Ruling::undecided(headline, case.rules.with(Role::SumAboveWall)));
    }
    let logged = case.cx.analysis.evidence.has(EvidenceClass::Logs);
    Some(Ruling::undecided(Message::plain(if logged { LOG_ONLY } else { SENTENCE }), []))
}
