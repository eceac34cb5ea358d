//! Much of the recording lies outside of every step: no share and no gain counts it.

use model::{Ns, Span, StringId, Trace};
use rustc_hash::FxHashMap;

use super::{super::headline::begins_late, Case, Unjudged};
use crate::{
    analysis::{AnchorKind, DeviceOp, Rank, Selection, Step, nest::Nests, owners},
    diagnose::signals::reading,
    i18n::{Message, Text, Value},
};

/// Part of the recording from which what lies outside the steps needs a word; own value: starts and ends of recordings are less.
const LEAST: f64 = 0.30;

/// What it says.
const SENTENCE: Text = Text::new(
    "what rank {rank} does outside of the steps that count: {outside} of {span} lie there, and the shares and gains leave them out; the longest pause of the device there lasts {longest}{owner}",
    "rank {rank} 在计入的步之外做了什么：{span} 中有 {outside} 在其外，占比与收益均未计入；设备在其中最长的停顿为 {longest}{owner}",
);

/// What it says of a window that begins after loading.
const LOADED: Text = Text::new(
    "what rank {rank} does in the first {outside} of {span} of the device's work, where it loads the model or warms up: the shares and gains leave them out; the longest pause of the device there lasts {longest}{owner}",
    "rank {rank} 在设备工作最初的 {outside}（共 {span}）里做了什么（其间加载模型或预热）：占比与收益均未计入；设备在其中最长的停顿为 {longest}{owner}",
);
/// The same where the device works for most of it: a prefill, or a warm-up.
const WORKS: Text = Text::new(
    "what rank {rank} does outside of the steps that count: {outside} of {span} lie there, and the shares and gains leave them out; the device works for {busy} of that, most of it {kernel}",
    "rank {rank} 在计入的步之外做了什么：{span} 中有 {outside} 在其外，占比与收益均未计入；设备在其中工作 {busy}，主要是 {kernel}",
);
/// Part of the time outside from which the device works rather than waits; heuristic.
const BUSY: f64 = 0.5;
/// What the host does in that pause.
const OWNER: Text = Text::new(", most of it in `{owner}`", "，其中大部分在 `{owner}`");
/// Part of the recording from which that needs a word; own value: it is work that a user may look for.
const LEAST_LOADED: f64 = 0.05;
/// Part of the recording outside of the steps from which the first sentence says it: then most of the time is not theirs.
const MOST: f64 = 0.5;
/// What the first sentence says where the device works there.
const MOSTLY_WORKS: Text = Text::new(
    "Most of the recording is something else: the steps that count take {part} of its {span}, and the device works for {busy} outside of them, most of it {kernel}.",
    "采集的大部分是别的内容：计入的步只占其 {span} 的 {part}，设备在其外工作 {busy}，主要是 {kernel}。",
);
/// The same where it mostly waits.
const MOSTLY_WAITS: Text = Text::new(
    "Most of the recording is something else: the steps that count take {part} of its {span}, and the device works for {busy} outside of them; its longest pause there lasts {longest}{owner}.",
    "采集的大部分是别的内容：计入的步只占其 {span} 的 {part}，设备在其外只工作 {busy}；其中最长的停顿为 {longest}{owner}。",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let found = Outside::of(case)?;
    let (text, least) = match (found.loads, found.works()) {
        (true, _) => (LOADED, LEAST_LOADED),
        (false, true) => (WORKS, LEAST),
        (false, false) => (SENTENCE, LEAST),
    };
    let sentence = Message::new(text, found.args(case.cx.trace));
    (found.share >= least).then(|| Unjudged { share: found.share, sentence, because: Vec::new(), decides: false })
}

/// What the first sentence has to say of it.
pub(in super::super) fn first(case: &Case<'_>) -> Option<Message> {
    let found = Outside::of(case).filter(|found| !found.loads && found.share >= MOST)?;
    let text = if found.works() { MOSTLY_WORKS } else { MOSTLY_WAITS };
    Some(Message::new(text, found.args(case.cx.trace)))
}

/// The time of a rank's device outside of the steps that count. Times are ns.
struct Outside {
    rank: u32,
    /// Whether it is what comes before a window that begins late.
    loads: bool,
    /// From the first operation to the last.
    span: Ns,
    /// Of that outside of the steps.
    outside: Ns,
    share: f64,
    /// How long the device works there, and the name with most of it.
    busy: Ns,
    kernel: Option<StringId>,
    /// The longest pause there, and what the host does in it.
    longest: Ns,
    owner: Option<String>,
}

impl Outside {
    fn of(case: &Case<'_>) -> Option<Self> {
        let (rank, _) = case.longest?;
        // A whole window or a log has nothing outside of it.
        let loads = rank.anchor.kind == AnchorKind::WholeCapture;
        if rank.anchor.kind == AnchorKind::Log || (loads && !begins_late(rank)) {
            return None;
        }
        let ops = &rank.timeline.ops;
        let (first, last) = (ops.iter().map(|op| op.start).min()?, ops.iter().map(|op| op.end).max()?);
        // Steps that do not count, at the start of a run, are outside as well; what the user did not ask for is no question.
        let inside = |step: &&Step| matches!(step.selection, Selection::Steady | Selection::NotAsked);
        let steps = reading::merged(rank.steps.iter().filter(inside).map(|step| step.window).collect());
        let inside: Ns = steps.iter().map(|step| (step.end.min(last) - step.start.max(first)).max(0)).sum();
        let (span, outside) = (last - first, (last - first - inside).max(0));
        let (pause, ended) = longest_pause(ops, &steps).unzip();
        let (busy, kernel) = work(ops, &steps, outside);
        Some(Self {
            rank: rank.rank,
            loads,
            span,
            outside,
            share: outside as f64 / span.max(1) as f64,
            busy,
            kernel,
            longest: pause.map_or(0, |pause| pause.len()),
            owner: pause.zip(ended).and_then(|(pause, op)| owner(case.cx.trace, rank, pause, op)),
        })
    }

    /// Whether the device works there rather than waits.
    fn works(&self) -> bool {
        self.busy as f64 >= BUSY * self.outside as f64
    }

    fn args(&self, trace: &Trace) -> [(&'static str, Value); 8] {
        let none = || Value::Text(Text::new("", ""));
        let owner =
            self.owner.clone().map_or_else(none, |owner| Message::new(OWNER, [("owner", Value::Raw(owner))]).within());
        let kernel = self.kernel.map_or_else(none, |name| Value::Kernel(trace.strings.get(name).to_owned()));
        [
            ("busy", Value::Ns(self.busy)),
            ("kernel", kernel),
            ("outside", Value::Ns(self.outside)),
            ("span", Value::Ns(self.span)),
            ("part", Value::Share(1.0 - self.share)),
            ("rank", Value::Count(self.rank.into())),
            ("longest", Value::Ns(self.longest)),
            ("owner", owner),
        ]
    }
}

/// How long the device works outside of the steps, `outside` at most, and the name that has the most of it.
fn work(ops: &[DeviceOp], steps: &[Span], outside: Ns) -> (Ns, Option<StringId>) {
    let mut names: FxHashMap<StringId, Ns> = FxHashMap::default();
    let mut done = Ns::MIN;
    let mut busy: Ns = 0;
    for op in ops {
        let next = steps.partition_point(|step| step.end <= op.start);
        if steps.get(next).is_some_and(|step| step.start < op.end) {
            continue;
        }
        *names.entry(op.name).or_default() += op.dur();
        busy += (op.end - op.start.max(done)).max(0);
        done = done.max(op.end);
    }
    let most = names.into_iter().max_by_key(|(name, ns)| (*ns, std::cmp::Reverse(*name)));
    (busy.min(outside), most.map(|(name, _)| name))
}

/// The longest time in which the device does nothing and no step is, with the operation before which it lies; operations lie in order
/// of start, steps are disjoint and in order.
fn longest_pause<'a>(ops: &'a [DeviceOp], steps: &[Span]) -> Option<(Span, &'a DeviceOp)> {
    let (mut longest, mut done, mut next): (Option<(Span, &DeviceOp)>, _, _) = (None, Ns::MAX, 0);
    for op in ops {
        let mut keep = |from: Ns, to: Ns| {
            if to - from > longest.map_or(0, |(span, _)| span.len()) {
                longest = Some((Span::new(from, to), op));
            }
        };
        let mut from = done.min(op.start);
        while let Some(step) = steps.get(next).filter(|step| step.start < op.start) {
            keep(from, step.start);
            from = from.max(step.end);
            if step.end > op.start {
                break;
            }
            next += 1;
        }
        keep(from, op.start);
        done = if done == Ns::MAX { op.end } else { done.max(op.end) };
    }
    longest
}

/// The record that covers most of a pause on the thread that launched the operation after it.
fn owner(trace: &Trace, rank: &Rank, pause: Span, op: &DeviceOp) -> Option<String> {
    let call = rank.timeline.calls.get(op.call? as usize)?;
    let lag = rank.timeline.lag;
    let on_host = Span::new(pause.start.saturating_add(lag), pause.end.saturating_add(lag));
    let mut nests = Nests::new(trace);
    let lane = nests.lane(call.track)?;
    let half = |row: &usize| Span::new(lane.start[*row], lane.end(*row)).clip(on_host).len() * 2 >= on_host.len();
    let row = nests.around(call.track, on_host.start.midpoint(on_host.end)).into_iter().find(half)?;
    Some(owners::short(trace.strings.get(*lane.name.get(row)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::script::Script;

    #[test]
    fn pauses_inside_steps_do_not_count() {
        let mut s = Script::default();
        for (start, end) in [(0, 10), (100, 110), (190, 200), (900, 950)] {
            s.launch((start, start + 1), "gemm", (start + 5, end + 5));
        }
        let (_, analysis) = s.analyze();
        let ops = &analysis.ranks[0].timeline.ops;
        let longest = |steps: &[Span]| longest_pause(ops, steps).map(|(span, _)| span.len());
        assert_eq!(longest(&[]), Some(700));
        assert_eq!(longest(&[Span::new(200, 950)]), Some(90));
        assert_eq!(longest(&[Span::new(0, 120), Span::new(300, 310), Span::new(800, 950)]), Some(490));
    }
}
