//! Nothing ran on a device as far as the capture shows: it holds sums, or a log that times no step, or nothing.

use model::{Category, EvidenceClass, ImportStat, StringId};
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

/// What it says of a file that was read whole and tells of no run.
const NO_RUN: Text = Text::new(
    "The file holds facts, and no operation, sum, measurement or sample of a run: nothing can be said about where the time goes. Give the trace of what ran with it.",
    "该文件只有一些事实，没有一次运行的算子、合计、测量或采样：无法判断时间花在哪里。请给出同一次运行的 trace。",
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
    "No device operation was recorded, although the host made {launches} calls that start device work: the device's records were lost or not asked for, and nothing can be said about what the device did. {record}{host}",
    "没有记录到任何设备算子，而主机发起了 {launches} 次下发调用：设备侧记录丢失或未采集，无法判断设备做了什么。{record}{host}",
);
/// What to do about it.
const RECORD: Text = Text::new(
    "Record with the device's activities (CUPTI, roctracer, msprof).",
    "请连同设备活动（CUPTI、roctracer、msprof）一起采集。",
);
/// The same where the profiler measured counters over ranges: it serializes the kernels, and every launch waits for its own.
const RANGES: Text = Text::new(
    "The profiler measured counters over {ranges} ranges instead: that slows every launch and records no kernel, so these times are not those of a usual run. Record without counters.",
    "profiler 改为对 {ranges} 个区间采集计数器：这会拖慢每次下发且不记录 kernel，因此这些时间不是正常运行的时间。请不带计数器采集。",
);
/// How the rows of such ranges end (`cuda_profiler_range`, `musa_profiler_range` of Kineto).
const RANGE: &str = "_profiler_range";

/// The format of logs.
const LOG: &str = "log";

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
    let log = case.cx.trace.format == LOG || case.cx.analysis.evidence.has(EvidenceClass::Logs);
    if log || log_rates::rates(case.cx.trace).is_some() {
        return Some(Ruling::undecided(log_rates::headline(case.cx.trace), []));
    }
    let stats = case.cx.trace.stats.iter().filter(|stat| stat.name == OF_UNKNOWN_KIND);
    let unknown = stats.map(|stat| stat.count).fold(0, u64::saturating_add);
    let headline = match launches(case) {
        0 if unknown > 0 => Message::new(UNKNOWN, [("events", Value::Count(unknown))]),
        0 if case.cx.trace.stat(ImportStat::NOTHING_KEPT) > 0 => Message::plain(NO_RUN),
        0 => host_only::headline(case.cx.trace).unwrap_or_else(|| Message::plain(SENTENCE)),
        launches => {
            let host = host_only::largest(case.cx.trace).map_or(Value::Text(Text::new("", "")), Message::within);
            let rows = case.cx.trace.ledger.iter().filter(|row| row.category.ends_with(RANGE));
            let record = match rows.map(|row| row.read).fold(0, u64::saturating_add) {
                0 => Message::plain(RECORD),
                ranges => Message::new(RANGES, [("ranges", Value::Count(ranges))]),
            };
            let args = [("launches", Value::Count(launches)), ("host", host), ("record", record.within())];
            Message::new(LOST, args)
        }
    };
    Some(Ruling::undecided(headline, []))
}
