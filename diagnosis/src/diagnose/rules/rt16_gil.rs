//! RT-16: another Python thread works while the launching thread should.

use model::{
    Category,
    EvidenceClass::{Device, HostApi},
    Ns, Span, Trace, TrackId,
};

use super::{
    exposed::{Exposed, Saying},
    reading,
};
use crate::{
    analysis::{Bucket, Class, Confidence, Edit, Layer, Rank, Step},
    diagnose::{
        Competing, Evidence, Finding, Intervention,
        estimate::LEAST_GAIN,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of the host's part of the idle time in which another thread holds the interpreter; own value.
const PART: f64 = 0.10;
/// Frames whose thread waits and does not hold the interpreter: parts of their names.
const WAITING: &[&str] = &[
    "acquire",
    "wait",
    "poll",
    "select",
    "sleep",
    "recv",
    "accept",
    "read",
    "join",
    "_bootstrap",
    "get_nowait",
    "block_until",
];
/// A frame that stays innermost for so much of the capture is what the profiler found at its start, not work.
const STALE: f64 = 0.9;

/// The rule.
pub struct Gil;

static DOC: Doc = Doc {
    id: "RT-16",
    title: Text::new("Another Python thread in the way", "其他 Python 线程争用"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi],
    advice: Advice::Host,
    relations: Relations { precedes: &["RT-12"], ..Relations::NONE },
    sees: Text::new(
        "While the device waits for the host, a Python thread that launches nothing is at work.",
        "设备等待主机期间，一个不下发任何工作的 Python 线程正在运行。",
    ),
    matters: Text::new(
        "Only one thread of an interpreter runs Python code at a time: whatever another thread computes, the launching thread waits for.",
        "同一解释器同一时刻只有一个线程执行 Python 代码：其他线程在算什么，下发线程就在等什么。",
    ),
    trigger: Text::new(
        "Another thread of the process has an innermost Python frame that does not wait, for at least 10 % of the host's part of the idle time, and that is at least 1 % of the mean step.",
        "主机侧空闲中至少 10% 的时间里，本进程另一线程的最内层 Python 栈帧不是等待，且这段时间至少占平均步时的 1%。",
    ),
    source: Text::new("10 %: own value.", "10%：自定值。"),
    guards: Text::new(
        "Frames that wait (locks, queues, sockets, sleep) do not count, nor does time inside launch calls, synchronisation, allocation, compilation and collection. Where no thread that launches runs Python, none can wait for the interpreter. Native code may have released the interpreter: without a record that the launching thread was blocked the confidence is low.",
        "处于等待的栈帧（锁、队列、套接字、睡眠）不计入，下发调用、同步、分配、编译与回收内的时间也不计入。若下发线程均不运行 Python，则不存在等待解释器的情况。原生代码可能已释放解释器：没有下发线程被阻塞的记录时置信度为低。",
    ),
    verify: Text::new(
        "Move the other thread's work to a process of its own: the idle time of the host's part shrinks by what it took.",
        "把另一线程的工作移到独立进程：主机侧空闲相应缩短。",
    ),
};

impl Rule for Gil {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        // There is no lock to wait for in a program without an interpreter.
        if cx.trace.manifest.value("software.python") == Some("none") {
            return Outcome::Quiet;
        }
        let frames = |c: &Category| *c == Category::PythonFrame;
        if !cx.trace.lanes.iter().any(|lane| lane.category.iter().any(frames)) {
            return Outcome::Abstain(Message::plain(Text::new(
                "the capture holds no Python frames; record with stacks (with_stack in torch.profiler)",
                "采集中没有 Python 栈帧；请启用栈采集（torch.profiler 的 with_stack）",
            )));
        }
        let mut found: Vec<Finding> =
            cx.main_classes().filter_map(|(rank, class)| contended(cx, rank, class)).collect();
        join_others(cx, &mut found);
        found.into_iter().collect()
    }
}

/// Where ranks wait for each other the device of one that is held up need not wait for its own host: it waits for the other
/// ranks. What a change brings shows only where it is made on all of them.
fn join_others(cx: &Context<'_>, found: &mut [Finding]) {
    for (rank, class) in cx.main_classes() {
        let mut same = found.iter_mut().filter(|f| f.class == class.key);
        let Some(first) = same.next() else { continue };
        if first.ranks.contains(&rank.rank) || same.any(|f| f.ranks.contains(&rank.rank)) {
            continue;
        }
        let edits = released(cx, rank, class, &busy(cx, rank));
        if !edits.is_empty() {
            first.ranks.push(rank.rank);
            first.ranks.sort_unstable();
            first.changes.push((rank.rank, Intervention { edits, ..Intervention::none(Layer::Runtime) }));
        }
    }
}

/// Threads of a rank that launch work, or hand it to those that do, in order.
fn launching(rank: &Rank) -> Vec<TrackId> {
    let mut launching: Vec<TrackId> = rank.timeline.calls.iter().filter(|c| c.ops > 0).map(|c| c.track).collect();
    launching.extend(rank.timeline.tasks.feeders());
    launching.sort_unstable();
    launching.dedup();
    launching
}

/// When threads of a rank work that launch nothing and hand nothing to the thread that launches.
fn busy(cx: &Context<'_>, rank: &Rank) -> Vec<Span> {
    let launching = launching(rank);
    let others = rank.timeline.threads.iter().filter(|t| launching.binary_search(t).is_err());
    reading::merged(others.flat_map(|t| working(cx.trace, *t)).collect())
}

/// Whether idle time of a bucket may be that of a host that waits for the interpreter.
fn counts(cx: &Context<'_>, bucket: Bucket) -> bool {
    let excused = ["gc", "offcpu"];
    matches!(bucket, Bucket::Host(_)) && !excused.iter().any(|l| reading::is_host(cx.analysis, bucket, l))
}

/// What the host's part of a step's idle time is.
fn host(cx: &Context<'_>, rank: &Rank, step: &Step) -> Vec<Span> {
    let parts = reading::gaps(rank, step).iter().flat_map(|g| &g.parts);
    parts.filter(|(b, _)| counts(cx, *b)).map(|(_, span)| *span).collect()
}

/// The change on one rank: the launching thread is never held up.
fn released(cx: &Context<'_>, rank: &Rank, class: &Class, busy: &[Span]) -> Vec<Edit> {
    let stretches = rank.steady_steps(class).flat_map(|s| {
        let thread = reading::issuing_thread(rank, s);
        let lost = thread.map(|thread| {
            let waits = common(&host(cx, rank, s), busy);
            reading::merged(held(rank, s, thread, busy).chain(waits).collect())
        });
        lost.into_iter().flatten().filter_map(move |span| Some((thread?, span, 0)))
    });
    reading::host_takes(stretches)
}

/// Whether a thread that launches work of a rank runs Python: one that never does needs no interpreter.
fn launches_from_python(cx: &Context<'_>, rank: &Rank) -> bool {
    let mut lanes = launching(rank).into_iter().filter_map(|track| cx.trace.lanes.get(track.0 as usize));
    lanes.any(|lane| lane.category.contains(&Category::PythonFrame))
}

fn contended(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let busy = busy(cx, rank);
    if busy.is_empty() || !launches_from_python(cx, rank) {
        return None;
    }
    let host = |s: &Step| host(cx, rank, s);
    let contended = |s: &Step| reading::overlap(&host(s), &busy);
    let all: Ns = rank.steady_steps(class).flat_map(host).map(|s| s.len()).sum();
    let lost: Ns = rank.steady_steps(class).map(contended).sum();
    let part = lost as f64 / all.max(1) as f64;
    if part < PART {
        return None;
    }
    let blocked = class.sum(|b| reading::is_host(cx.analysis, b, "blocked"));
    let (finding, cost) = Exposed { cx, doc: &DOC, rank, class }.recurring(LEAST_GAIN, contended, |cost| Saying {
        formula: Text::new(
            "idle of the host's part while another Python thread works / mean step",
            "其他 Python 线程工作时的主机侧空闲 / 平均步时",
        ),
        claim: Text::new(
            "In {part} of the time that the host keeps the device of {class} waiting, a Python thread that launches nothing is at work: {idle} of {step} ({share}).",
            "{class} 的主机侧等待中有 {part} 的时间，一个不下发工作的 Python 线程在运行：{idle}，步时 {step}（{share}）。",
        ),
        more: vec![("part", Value::Share(part))],
        change: Intervention {
            removes: cost.per_step,
            layer: Layer::Runtime,
            edits: released(cx, rank, class, &busy),
        },
    })?;
    let native = Text::new("the other thread had released the interpreter", "另一线程已释放解释器");
    let rival = if blocked >= lost / 2 && blocked > 0 {
        Competing::refuted(
            native,
            Text::new(
                "the launching thread was blocked in the operating system meanwhile",
                "期间下发线程阻塞在操作系统中",
            ),
        )
    } else {
        Competing::open(
            native,
            Text::new(
                "a record of who holds the interpreter decides (a sampling profiler with --gil)",
                "解释器锁持有记录（带 --gil 的采样剖析器）可以判定",
            ),
        )
    };
    let most = if rival.refuted { Confidence::Medium } else { Confidence::Low };
    finding
        .with(Evidence::new(
            Text::new("idle per step while another Python thread works", "其他 Python 线程工作时的每步空闲"),
            Value::Ns(cost.per_step),
            reading::gap_rows(rank, rank.steady_steps(class), |_, b| counts(cx, b)),
        ))
        .against(rival)
        .gated(cost.most.min(most))
}

/// Of the times at which another thread works those in which the launching thread begins no call: it is held up whether the
/// device still has work or not, and is late by as much afterwards.
fn held<'a>(rank: &'a Rank, step: &Step, thread: TrackId, busy: &'a [Span]) -> impl Iterator<Item = Span> + 'a {
    let window = step.window;
    let stands = move |span: &Span| {
        let calls = rank.timeline.calls_between(span.start.saturating_add(1), span.end);
        !calls.iter().any(|call| call.track == thread)
    };
    let from = busy.partition_point(|b| b.end <= window.start);
    let inside = busy.iter().skip(from).take_while(move |b| b.start < window.end);
    inside.map(move |b| b.clip(window)).filter(stands)
}

/// Times common to two series of disjoint spans in time order.
fn common(a: &[Span], b: &[Span]) -> Vec<Span> {
    let (mut i, mut j) = reading::meet(a, b);
    let mut out = Vec::new();
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let both = x.clip(*y);
        if !both.is_empty() {
            out.push(both);
        }
        if x.end <= y.end { i += 1 } else { j += 1 }
    }
    out
}

/// When a thread's innermost Python frame is one that works.
fn working(trace: &Trace, thread: TrackId) -> Vec<Span> {
    let Some(lane) = trace.lanes.get(thread.0 as usize) else { return Vec::new() };
    let whole = trace.window.map_or(Ns::MAX, Span::len);
    let waits = |i: usize| {
        let name = trace.strings.get(lane.name[i]);
        WAITING.iter().any(|w| name.contains(w))
    };
    let mut out = Vec::new();
    let mut open: Vec<(Ns, bool)> = Vec::new();
    let mut cursor = Ns::MIN;
    let mut emit = |works: bool, from: Ns, to: Ns| {
        let stale = (to.saturating_sub(from)) as f64 > STALE * whole as f64;
        if works && !stale && to > from {
            out.push(Span::new(from, to));
        }
    };
    let frames = (0..lane.len()).filter(|i| lane.category[*i] == Category::PythonFrame);
    for (start, end, works) in
        frames.map(|i| (lane.start[i], lane.end(i), !waits(i))).chain([(Ns::MAX, Ns::MAX, false)])
    {
        while let Some((until, inner)) = open.last().copied().filter(|(until, _)| *until <= start) {
            emit(inner, cursor, until);
            cursor = cursor.max(until);
            open.pop();
        }
        if let Some((_, outer)) = open.last() {
            emit(*outer, cursor, start);
        }
        cursor = start;
        open.push((end, works));
    }
    out
}
