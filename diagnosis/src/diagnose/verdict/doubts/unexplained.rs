//! Idle time, or time inside replays, of which nothing recorded says what it was.

use model::{Category, EvidenceClass, ImportStat, Ns, Span, StringId, TrackKind};
use rustc_hash::FxHashMap;

use super::{super::case::opaque, Case, Unjudged};
use crate::{
    analysis::{Bucket, Class, Integrity, Rank, owners},
    diagnose::{relations::Role, signals::reading},
    i18n::{Message, Text, Value},
};

/// What it says of idle time.
const IDLE: Text = Text::new(
    "for {share} of the step nothing recorded says why the device does not work{inside}: record the host's calls and which of them launched what",
    "步时的 {share} 没有任何记录能说明设备为何不工作{inside}：请采集主机调用及其与设备操作的关联",
);
/// What it says of replays.
const REPLAYS: Text = Text::new(
    "{share} of the step lies inside graph replays of which one row was recorded: trace graphs node by node, or give the capture of the graph (--graph-capture)",
    "步时的 {share} 位于只有一行记录的图重放内：请按节点采集图，或提供图捕获（--graph-capture）",
);

/// What it says of idle time before work whose launch is unknown although calls were recorded.
const LINKS: Text = Text::new(
    "for {share} of the step nothing recorded says why the device does not work{inside}: the host's calls were recorded, but not which of them launched what; record the links between both",
    "步时的 {share} 没有任何记录能说明设备为何不工作{inside}：已采集主机调用，但缺少其与设备操作的关联；请采集两者的关联",
);
/// What it says of idle time inside replays, or long after what was launched.
const MISSING: Text = Text::new(
    "for {share} of the step nothing recorded says why the device does not work{inside}: what follows was launched long before, so work of the device is missing from the capture, and it works for more than is said here; record with larger buffers, and graphs node by node",
    "步时的 {share} 没有任何记录能说明设备为何不工作{inside}：其后的操作早已下发，说明采集缺少部分设备工作，设备的实际工作占比高于此处；请增大采集缓冲区，并按节点采集图",
);

/// What it says where kernels are missing by their own numbers.
const LOST: Text = Text::new(
    "for {share} of the step nothing recorded says why the device does not work{inside}: the numbers of the dispatches have holes, so kernels are missing and the device works for more than is said here; record every kernel",
    "步时的 {share} 没有任何记录能说明设备为何不工作{inside}：派发编号有缺口，说明缺少部分内核，设备的实际工作占比高于此处；请采集全部内核",
);

/// What the program is in for most of that time.
const INSIDE: Text =
    Text::new(", most of it while the program is in `{range}`", "（其中大部分时间程序处于 `{range}`）");
/// Share of a window from which a record that lies around holds everything, and so tells nothing.
const EVERYTHING: f64 = 0.9;

/// The shortest record of the program that holds most of the idle time that nothing explains: where it lies, not what causes it.
fn inside(case: &Case<'_>, rank: &Rank, class: &Class) -> Option<String> {
    let trace = case.cx.trace;
    let steps = || rank.steady_steps(class);
    let blind = |bucket: Bucket| matches!(bucket, Bucket::Unattributed | Bucket::IdleUndecided);
    let gaps = steps().flat_map(|step| reading::gaps(rank, step)).flat_map(|gap| gap.parts.iter());
    let idle = reading::merged(gaps.filter(|(bucket, _)| blind(*bucket)).map(|(_, span)| *span).collect());
    // Idle time before a moment: ranges may nest by the thousand, and each asks for the idle time inside it.
    let mut sums: Vec<Ns> = Vec::with_capacity(idle.len() + 1);
    sums.push(0);
    for span in &idle {
        sums.push(sums.last().copied().unwrap_or(0).saturating_add(span.len()));
    }
    let before = |t: Ns| {
        let begun = idle.partition_point(|span| span.start < t);
        let beyond = begun.checked_sub(1).and_then(|last| idle.get(last)).map_or(0, |span| (span.end - t).max(0));
        sums.get(begun).copied().unwrap_or(0) - beyond
    };
    let all: Ns = sums.last().copied().unwrap_or(0);
    let window: Ns = steps().map(|step| step.window.len()).sum();
    let lag = rank.timeline.lag;
    let mut held: FxHashMap<(bool, StringId), (Ns, Ns)> = FxHashMap::default();
    let threads = trace
        .tracks
        .iter()
        .zip(&trace.lanes)
        .filter(|(track, _)| track.key.kind == TrackKind::HostThread && track.key.process == rank.process);
    for (_, lane) in threads {
        for row in 0..lane.name.len() {
            let (Some(name), Some(start)) = (lane.name.get(row), lane.start.get(row)) else { continue };
            // The program's own ranges say more than operators.
            let is_op = match lane.category.get(row) {
                Some(Category::UserRange) => false,
                Some(Category::FrameworkOp) => true,
                _ => continue,
            };
            let own = Span::new(start.saturating_sub(lag), lane.end(row).saturating_sub(lag));
            let (within, total) = held.entry((is_op, *name)).or_default();
            *within = within.saturating_add(before(own.end) - before(own.start));
            *total = total.saturating_add(own.len());
        }
    }
    let text = |name: StringId| trace.strings.get(name);
    let tells = |((_, name), (within, total)): &((bool, StringId), (Ns, Ns))| {
        2 * within > all
            && (*total as f64) < EVERYTHING * window as f64
            && case.cx.packs.step_label(text(*name)).is_none()
            && !owners::is_plumbing(text(*name))
    };
    let found = held.into_iter().filter(tells).min_by_key(|((is_op, name), (_, total))| (*is_op, *total, *name))?;
    Some(owners::short(text(found.0.1)))
}

/// What is said of idle time: whether host calls, their links or work of the device are missing decides.
fn idle(case: &Case<'_>, rank: &Rank, class: &Class) -> Text {
    let holes = case.cx.trace.stat(ImportStat::MISSING_KERNELS) as f64;
    if holes > Integrity::LOST * (holes + case.cx.analysis.integrity.device_ops as f64) {
        return LOST;
    }
    if !case.cx.analysis.evidence.has(EvidenceClass::HostApi) {
        return IDLE;
    }
    let (mut linked, mut all): (Ns, Ns) = (0, 0);
    for gap in rank.steady_steps(class).flat_map(|step| reading::gaps(rank, step)) {
        let ns = reading::time_in(gap, |bucket| matches!(bucket, Bucket::Unattributed | Bucket::IdleUndecided));
        all = all.saturating_add(ns);
        if reading::owner(rank, gap).is_some_and(|op| op.call.is_some()) {
            linked = linked.saturating_add(ns);
        }
    }
    if 2 * linked > all { MISSING } else { LINKS }
}

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (rank, class) = case.longest?;
    let share = opaque(class);
    let replays = 2.0 * class.share(|bucket| bucket == Bucket::GraphOpaque) > share;
    if share <= case.best() {
        return None;
    }
    let text = if replays { REPLAYS } else { idle(case, rank, class) };
    let inside = match (!replays).then(|| inside(case, rank, class)).flatten() {
        Some(range) => Message::new(INSIDE, [("range", Value::Raw(range))]).within(),
        None => Value::Text(Text::new("", "")),
    };
    let sentence = Message::new(text, [("share", Value::Share(share)), ("inside", inside)]);
    Some(Unjudged { share, sentence, because: case.rules.with(Role::Unexplained).collect(), decides: true })
}
