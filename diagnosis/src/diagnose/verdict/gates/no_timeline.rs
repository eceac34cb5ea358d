//! Nothing ran on a device as far as the capture shows: it holds sums, or a log that times no step, or nothing.

use model::{Category, EvidenceClass, StringId};
use rustc_hash::FxHashMap;

use super::{Case, Ruling, host_only, log_rates};
use crate::{
    diagnose::{relations::Role, sums},
    i18n::{Message, Text, Value},
};

/// What it says where there is nothing.
const SENTENCE: Text = Text::new(
    "No device operation was recorded: nothing can be said about where the time goes.",
    "没有记录到任何设备算子：无法判断时间花在哪里。",
);

/// What it says where the reader met events that nothing explains.
const UNKNOWN: Text = Text::new(
    "No device operation was recognised: {events} events of the capture are of a kind that is not known here, and device work may be among them. Nothing can be said about where the time goes.",
    "没有识别出任何设备算子：采集中有 {events} 个事件的种类不为本工具所知，其中可能有设备工作。无法判断时间花在哪里。",
);
/// Statistic of the reader that counts such events.
const OF_UNKNOWN_KIND: &str = "kineto.events_of_unknown_kind";

/// What it says where the host launched work and none of it was kept.
const LOST: Text = Text::new(
    "No device operation was recorded, although the host made {launches} calls that start device work: the device's records were lost or not asked for, and nothing can be said about what the device did.{host} Record with the device's activities (CUPTI, roctracer, msprof).",
    "没有记录到任何设备算子，而主机发起了 {launches} 次下发调用：设备侧记录丢失或未采集，无法判断设备做了什么。{host}请连同设备活动（CUPTI、roctracer、msprof）一起采集。",
);

/// Calls of the host that launch device work, by their names.
fn launches(case: &Case<'_>) -> u64 {
    let trace = case.cx.trace;
    let mut known: FxHashMap<StringId, bool> = FxHashMap::default();
    let mut launches = |name: StringId| {
        *known.entry(name).or_insert_with(|| case.cx.packs.host_call(trace.strings.get(name)).is_launch())
    };
    let rows = trace.lanes.iter().flat_map(|lane| lane.category.iter().zip(&lane.name));
    rows.filter(|(category, name)| **category == Category::HostApi && launches(**name)).count() as u64
}

pub(super) fn decide(case: &Case<'_>) -> Option<Ruling> {
    if case.level.is_some() {
        return None;
    }
    if let Some(headline) = sums::headline(case.cx.trace, case.cx.packs) {
        return Some(Ruling::undecided(headline, case.rules.with(Role::SumAboveWall)));
    }
    // A log that only says how fast the engine is shows no scheduler, and so is no evidence of that kind.
    if case.cx.analysis.evidence.has(EvidenceClass::Logs) || log_rates::rates(case.cx.trace).is_some() {
        return Some(Ruling::undecided(log_rates::headline(case.cx.trace), []));
    }
    let stats = case.cx.trace.stats.iter().filter(|stat| stat.name == OF_UNKNOWN_KIND);
    let unknown = stats.map(|stat| stat.count).fold(0, u64::saturating_add);
    let headline = match launches(case) {
        0 if unknown > 0 => Message::new(UNKNOWN, [("events", Value::Count(unknown))]),
        0 => host_only::headline(case.cx.trace).unwrap_or_else(|| Message::plain(SENTENCE)),
        launches => {
            let host = host_only::largest(case.cx.trace).map_or(Value::Text(Text::new("", "")), Message::within);
            Message::new(LOST, [("launches", Value::Count(launches)), ("host", host)])
        }
    };
    Some(Ruling::undecided(headline, []))
}
