//! RT-11: copies from or to pageable memory, or through a blocking call, that the device waits for.

use std::collections::HashSet;

use model::{
    Detail,
    EvidenceClass::{Correlation, Device, HostApi},
    Span, Trace, TrackId,
};

use super::{ceilings::Ceilings, change, gate::recurring, reading};
use crate::{
    analysis::{AnchorKind, Class, CopyDir, DeviceOp, Edit, Layer, OpKind, Rank, Step, idle::Gap},
    diagnose::{
        Competing, Evidence, Intervention, Trigger,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::HostCall,
};

/// Share of the step; own value.
const SHARE: f64 = 0.01;

/// Time of a copy from pinned memory in percent of the same copy from pageable memory: about half in NVIDIA's guide to data
/// transfers.
const PINNED: i64 = 50;

/// Share of the published bandwidth to the host that copies from pinned memory reach at least; own value: four fifths are usual,
/// and switches are shared.
const REACHED: f64 = 0.6;
/// What a copy takes besides its bytes, ns: the link's latency and the start of the engine, generously.
const START: i64 = 10_000;

/// Bytes to the host that are more than sampled tokens, 8 bytes each, of the largest batches: logits or hidden states, which a
/// host need not see.
const MORE_THAN_TOKENS: i64 = 131_072;
/// Time of a copy whose bytes nobody knows from which it is more than tokens as well, ns; own value, many times what those
/// take on any link.
const LONGER_THAN_TOKENS: i64 = 1_000_000;

/// Copies of a step to the host that hold no more than tokens from which they are values read one by one; own value: a step that
/// reads its tokens, their probabilities and a flag has fewer.
const MANY: usize = 8;
/// What stays of the host's way from one of them to the next where one copy brings them all, in percent: the code that uses the
/// values runs all the same; own value.
const USES: i64 = 50;

/// The rule.
pub struct BlockingCopy;

static DOC: Doc = Doc {
    id: "RT-11",
    title: Text::new("Blocking or pageable copy in the step", "步内阻塞或可换页拷贝"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi, Correlation],
    advice: Advice::Device,
    relations: Relations::NONE,
    sees: Text::new(
        "A copy between host and device uses pageable memory or a call that waits for it, and no device work hides it. So do many copies of a few bytes, such as `.item()` for each request.",
        "主机与设备间的拷贝使用可换页内存或会等待的调用，且没有设备工作掩盖它。许多数字节的小拷贝（如对每个请求调用 `.item()`）也是如此。",
    ),
    matters: Text::new(
        "A pageable copy is staged by the driver on the calling thread: neither the host nor the device makes progress.",
        "可换页拷贝由驱动在调用线程上中转：主机与设备都无法前进。",
    ),
    trigger: Text::new(
        "Copies of that kind other than the readback of the token: their own exposed time and the idle time during their calls are at least 1 % of the mean step.",
        "除读回 token 之外的此类拷贝：自身暴露时间与其调用期间的设备空闲合计至少占平均步时的 1%。",
    ),
    source: Text::new(
        "The expert rules of Nsight Systems flag any such copy; the 1 % gate is our own. From pinned memory: half the time (NVIDIA's guide to data transfers), or 0.6 of the published bandwidth to the host if that is faster.",
        "Nsight Systems 的专家规则对此类拷贝一律告警；1% 门槛为自定。锁页内存：耗时减半（NVIDIA 数据传输指南），或按公布主机带宽的 0.6 计算，取更快者。",
    ),
    guards: Text::new(
        "The last device-to-host copy of less than 128 KiB in a step, or of less than 1 ms where its size was not recorded, is the token itself and does not count. A larger one holds more than tokens, such as logits, which may be sampled on the device: at best it goes away. No copy is faster than the link's latency.",
        "每步最后一次小于 128 KiB（未记录大小时短于 1 ms）的设备到主机拷贝即 token 本身，不计入。更大的拷贝不只是 token（如 logits，可在设备上采样），最好的情况是完全不需要。任何拷贝都不会快于链路时延。",
    ),
    verify: Text::new(
        "Use pinned memory and asynchronous copies: the copies run beside device work and their calls return at once.",
        "改用锁页内存与异步拷贝：拷贝与设备工作并行，调用立即返回。",
    ),
};

impl Rule for BlockingCopy {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let mut found = Vec::new();
        for (rank, class) in cx.main_classes() {
            let Some(cost) = recurring(rank, class, SHARE, |s| exposed(cx.trace, rank, s)) else { continue };
            let copies: Vec<_> = rank.steady_steps(class).flat_map(|s| blocking(cx.trace, rank, s)).collect();
            let pageable = copies.iter().filter(|(_, op, _)| is_pageable(cx.trace, op)).count();
            let trigger = Trigger {
                formula: Text::new(
                    "exposed time of blocking or pageable copies / mean step",
                    "阻塞或可分页内存拷贝的暴露时间 / 平均步时",
                ),
                value: cost.share,
                threshold: SHARE,
            };
            // Without marks nobody knows which of them belong to one step.
            let marked = rank.steady_steps(class).filter(|_| rank.anchor.kind != AnchorKind::WholeCapture);
            let singly: Vec<OneByOne<'_>> = marked.filter_map(|step| OneByOne::of(cx.trace, rank, step)).collect();
            let values: usize = singly.iter().map(|singly| singly.copies.len()).sum();
            let claim = Message::new(
                Text::new(
                    "Blocking or pageable copies in {class} keep the device from working for {cost} of {step} ({share}).{singly}",
                    "{class} 中的阻塞或可换页拷贝使设备停工 {cost}，步时 {step}（{share}）。{singly}",
                ),
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("cost", Value::Ns(cost.per_step)),
                    ("step", Value::Ns(class.mean())),
                    ("share", Value::Share(cost.share)),
                    ("singly", OneByOne::said(values, class)),
                ],
            );
            let edits = unblocked(cx, rank, class).into_iter().chain(OneByOne::together(rank, &singly)).collect();
            let change = Intervention { removes: cost.per_step, layer: Layer::Runtime, edits };
            let finding = cx
                .finding(&DOC, rank, class, claim, trigger, change)
                .with(Evidence::new(
                    Text::new(
                        "blocking or pageable copies in the steps that count",
                        "计入统计的步中的阻塞或可换页拷贝数",
                    ),
                    Value::Count(copies.len() as u64),
                    reading::sample(copies.iter().map(|(_, op, _)| op.slice)),
                ))
                .with(Evidence::new(
                    Text::new("of these, recorded with pageable memory", "其中记录为可换页内存"),
                    Value::Count(pageable as u64),
                    Vec::new(),
                ));
            let finding = if values == 0 { finding } else { finding.with(OneByOne::evidence(values, class)) };
            let finding = finding.against(Competing::open(
                Text::new("the host needs the value before it can go on", "主机必须拿到该值才能继续"),
                Text::new(
                    "then only the copy's own time can be hidden; making it asynchronous decides",
                    "若如此则只能隐藏拷贝自身时间；改为异步后即可判定",
                ),
            ));
            found.extend(finding.gated(cost.most));
        }
        found.into_iter().collect()
    }
}

/// Copies of a step that are pageable or whose call waited, without the readback of the token; with their exposed time.
fn blocking<'a>(trace: &'a Trace, rank: &'a Rank, step: &Step) -> impl Iterator<Item = (usize, &'a DeviceOp, i64)> {
    let to_host = |op: &DeviceOp| op.kind == OpKind::Copy(CopyDir::DtoH);
    let read = reading::accounted(rank, step).filter(|(_, op, _)| to_host(op) && !is_more_than_tokens(trace, op));
    let token = read.map(|(i, ..)| i).last();
    reading::accounted(rank, step).filter_map(move |(i, op, x)| {
        let crosses = to_host(op) || op.kind == OpKind::Copy(CopyDir::HtoD);
        let waits = rank.timeline.call(op).is_some_and(|c| c.blocking || c.kind == HostCall::CopySync);
        (crosses && !op.in_graph && Some(i) != token && (waits || is_pageable(trace, op))).then_some((i, op, x.busy))
    })
}

/// Whether a copy to the host holds more than the tokens of a step.
fn is_more_than_tokens(trace: &Trace, op: &DeviceOp) -> bool {
    match bytes(trace, op) {
        0 => op.dur() >= LONGER_THAN_TOKENS,
        bytes => bytes >= MORE_THAN_TOKENS,
    }
}

/// The values that a step reads one by one, such as with `.item()` for each request: a copy of a few bytes, the wait for it, and what
/// the host does before it asks for the next. One copy brings them all.
struct OneByOne<'a> {
    step: &'a Step,
    /// The copies but for the last, which brings the rest, as indices into the timeline.
    copies: Vec<u32>,
}

impl<'a> OneByOne<'a> {
    fn of(trace: &Trace, rank: &Rank, step: &'a Step) -> Option<Self> {
        let value = |op: &DeviceOp| op.kind == OpKind::Copy(CopyDir::DtoH) && !is_more_than_tokens(trace, op);
        let values = blocking(trace, rank, step).filter(|(_, op, _)| value(op) && bytes(trace, op) > 0);
        let values: HashSet<u32> = values.map(|(i, ..)| i as u32).collect();
        // What the device computes in between, the next value may depend on: then one copy cannot bring both.
        let mut runs: Vec<Vec<u32>> = vec![Vec::new()];
        for (i, op) in (step.ops.start as u32..).zip(rank.ops_of(step)) {
            match runs.last_mut() {
                Some(run) if values.contains(&i) => run.push(i),
                Some(run) if !run.is_empty() && matches!(op.kind, OpKind::Compute | OpKind::Comm) => {
                    runs.push(Vec::new())
                }
                _ => {}
            }
        }
        // The last of a run brings the rest; behind the last run comes the step's token, unless something is computed before it.
        let open = runs.pop().unwrap_or_default();
        let many = |run: &Vec<u32>| run.len() >= MANY;
        let closed = runs.into_iter().filter(many).map(|mut run| {
            run.pop();
            run
        });
        let copies: Vec<u32> = closed.chain(Some(open).filter(many)).flatten().collect();
        (!copies.is_empty()).then_some(Self { step, copies })
    }

    /// What is gone where one copy brings all: the copies, the waits for each, and part of the host's way to the next; hopefully all
    /// of it.
    fn together(rank: &Rank, singly: &[Self]) -> Vec<Edit> {
        if singly.is_empty() {
            return Vec::new();
        }
        let copies: Vec<u32> = singly.iter().flat_map(|singly| singly.copies.iter().copied()).collect();
        let ends = |gap: &Gap| gap.owner.is_some_and(|op| copies.binary_search(&op).is_ok());
        let way = |percent| {
            let steps = singly.iter().map(|singly| singly.step);
            change::host_time(rank, steps, |gap, bucket| ends(gap) && bucket.is_host_side(), percent)
        };
        let calls = copies.iter().filter_map(|op| rank.timeline.ops.get(*op as usize)?.call);
        let waits: Vec<(TrackId, Span)> = calls.filter_map(|call| awaited(rank, call)).collect();
        let certain = [Edit::Remove(copies.clone())].into_iter().chain(change::shortened(waits, 0)).chain(way(USES));
        certain.chain(change::hoped(way(0))).collect()
    }

    /// What the claim says of them: the copies alone are the smaller part.
    fn said(values: usize, class: &Class) -> Value {
        const SAYS: Text = Text::new(
            " {values} of them per step bring values one by one; the waits for each and the host's way to the next go with them.",
            "其中每步 {values} 次是逐个读回数值；对每次的等待以及主机走到下一次的时间也随之消失。",
        );
        match values {
            0 => Value::Text(Text::new("", "")),
            _ => Message::new(SAYS, [("values", Self::per_step(values, class))]).within(),
        }
    }

    fn per_step(values: usize, class: &Class) -> Value {
        Value::Number((values as f64 * 10.0 / class.steady.max(1) as f64).round() / 10.0)
    }

    fn evidence(values: usize, class: &Class) -> Evidence {
        Evidence::new(
            Text::new(
                "copies of a few bytes per step, one behind the other, each with a wait and the host's way to the next: read them at once",
                "每步逐个进行的数字节拷贝，每次都要等待并由主机走到下一次：请一次读回",
            ),
            Self::per_step(values, class),
            Vec::new(),
        )
    }
}

/// The call right behind a copy on its thread that waits for it, as a stretch of that thread.
fn awaited(rank: &Rank, copy: u32) -> Option<(TrackId, Span)> {
    let calls = rank.timeline.calls.get(copy as usize..)?;
    let (copy, rest) = calls.split_first()?;
    let next = rest.iter().take(NEAR).find(|call| call.track == copy.track && call.start >= copy.end)?;
    (next.blocking && next.ops == 0).then(|| (next.track, Span::new(next.start, next.end)))
}

/// Calls of other threads that may lie between a copy and the wait for it; own value.
const NEAR: usize = 16;

/// Bytes of a copy; 0 where the capture does not say.
fn bytes(trace: &Trace, op: &DeviceOp) -> i64 {
    let Some((track, row)) = trace.locate(op.slice) else { return 0 };
    match trace.lanes.get(track.0 as usize).and_then(|lane| trace.detail(lane, row)) {
        Some(Detail::Copy(copy)) => copy.bytes.unwrap_or(0),
        _ => 0,
    }
}

fn exposed(trace: &Trace, rank: &Rank, step: &Step) -> i64 {
    let (mut busy, mut seen, mut calls) = (0, HashSet::new(), Vec::new());
    for (_, op, own) in blocking(trace, rank, step) {
        busy += own;
        if let Some(call) = rank.timeline.call(op)
            && seen.insert(call.slice)
        {
            calls.push(Span::new(call.start, call.end));
        }
    }
    // The call of the step's first operation lies in the gap that ends the step before.
    let calls = reading::merged(calls);
    let (Some(first), Some(last)) = (calls.first(), calls.last()) else { return busy };
    let from = rank.gaps.partition_point(|g| g.span.end <= first.start);
    let to = rank.gaps.partition_point(|g| g.span.start < last.end).max(from);
    let idle: Vec<Span> = rank.gaps.get(from..to).unwrap_or(&[]).iter().map(|g| g.span).collect();
    busy + reading::overlap(&calls, &idle)
}

fn is_pageable(trace: &Trace, op: &DeviceOp) -> bool {
    touches(trace, op, "pageable")
}

/// Whether a copy is recorded as from or to this kind of memory.
fn touches(trace: &Trace, op: &DeviceOp, kind: &str) -> bool {
    let Some((track, row)) = trace.locate(op.slice) else { return false };
    let Some(lane) = trace.lanes.get(track.0 as usize) else { return false };
    match trace.detail(lane, row) {
        Some(Detail::Copy(copy)) => {
            [copy.src, copy.dst].into_iter().flatten().any(|m| trace.strings.get(m).eq_ignore_ascii_case(kind))
        }
        _ => false,
    }
}

/// The calls no longer wait, and copies from pageable memory run from pinned memory; hopefully the copies also run beside
/// the computation, and what the host need not see is not copied at all.
fn unblocked(cx: &Context<'_>, rank: &Rank, class: &Class) -> Vec<Edit> {
    let trace = cx.trace;
    let link = Ceilings::of(cx, rank)
        .chip()
        .and_then(|chip| chip.host_gb_per_s)
        .map(|published| REACHED * f64::from(published));
    let copies: Vec<(usize, &DeviceOp, i64)> =
        rank.steady_steps(class).flat_map(|s| blocking(trace, rank, s)).collect();
    // Without marks nobody knows whether the host needs what it reads before it can go on.
    let unmarked = rank.anchor.kind == AnchorKind::WholeCapture;
    let is_needed = move |op: &DeviceOp| unmarked && op.kind == OpKind::Copy(CopyDir::DtoH);
    let calls =
        |hoped: bool| copies.iter().filter(move |(_, op, _)| is_needed(op) == hoped).filter_map(|(_, op, _)| op.call);
    // What waits and is not recorded as pinned is pageable, whether or not the capture names its memory.
    let pageable = copies.iter().filter(|(_, op, _)| !touches(trace, op, "pinned"));
    let on_link =
        |op: &DeviceOp| Some(START + (bytes(trace, op) as f64 / link?) as i64).filter(|_| bytes(trace, op) > 0);
    let pinned = |op: &DeviceOp| (op.dur() * PINNED / 100).min(on_link(op).unwrap_or(i64::MAX));
    let pinned = pageable.map(|(i, op, _)| (*i as u32, pinned(op))).collect();
    let needless = |(_, op, _): &&(usize, &DeviceOp, i64)| {
        op.kind == OpKind::Copy(CopyDir::DtoH) && is_more_than_tokens(trace, op)
    };
    let (gone, needed): (Vec<_>, Vec<_>) = copies.iter().partition(needless);
    let index = |copies: &[&(usize, &DeviceOp, i64)]| copies.iter().map(|(i, ..)| *i as u32).collect::<Vec<u32>>();
    let gone = (!gone.is_empty()).then(|| Edit::Hoped(Box::new(Edit::Remove(index(&gone)))));
    let beside = (!needed.is_empty()).then(|| Edit::Hoped(Box::new(Edit::Aside(index(&needed)))));
    // Without marks the copies may be set-up and result, and nobody promises that they become shorter.
    let shorter = match unmarked {
        true => Edit::Hoped(Box::new(Edit::Resize(pinned))),
        false => Edit::Resize(pinned),
    };
    let waits = Edit::Unblock(calls(false).collect());
    let reads = unmarked.then(|| Edit::Hoped(Box::new(Edit::Unblock(calls(true).collect()))));
    [waits, shorter].into_iter().chain(reads).chain(beside).chain(gone).collect()
}
