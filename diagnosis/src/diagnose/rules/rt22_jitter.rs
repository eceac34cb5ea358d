//! RT-22: slow steps, and what they spend their extra time on.

use std::collections::BTreeMap;

use model::EvidenceClass::Device;

use super::{change, demand, reading};
use crate::{
    analysis::{self, Bucket, Class, Confidence, Edit, Layer, Rank, Scheduler, Step, equal_work, idle::Gap},
    diagnose::{
        Competing, Estimate, Evidence, Finding, Intervention, Severity, Trigger,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// p99 over p50; own value from the demand for low jitter.
const RATIO: f64 = 1.5;
/// Times the median from which a step loses its excess; own value, half-way to the ratio of the trigger.
const SLOW: f64 = 1.25;
/// Steps below which a 99th percentile says nothing.
const FEW: usize = 20;
/// Steps from which the 99th percentile (nearest rank) is not simply the slowest step.
const MANY: usize = 100;
/// A rank whose slow steps hold less than one part in so many of what those of another hold of the cause only waits for
/// that one; own value.
const WAITS: i64 = 10;
/// A host that others wait for had a request. They wait that long or longer, but for noise; own value.
const AWAITED: i64 = 2;
/// Slow steps from which they are no accident, unless one is so many times the median; own values.
const RECUR: usize = 4;
const LONG: i64 = 5;
/// Buckets that the finding names.
const NAMED: usize = 3;

/// The rule.
pub struct Jitter;

static DOC: Doc = Doc {
    id: "RT-22",
    title: Text::new("Step time jitter", "步时抖动"),
    layer: Layer::Runtime,
    needs: &[Device],
    advice: Advice::Host,
    relations: Relations {
        yields_to: &["CM-01", "RT-19", "RT-05", "RT-06", "RT-10", "RT-20", "RT-15"],
        ..Relations::NONE
    },
    sees: Text::new(
        "Some steps of a class take much longer than its median step; their buckets say on what.",
        "同类步中有些远慢于中位步；各时间桶说明多出的时间花在哪里。",
    ),
    matters: Text::new(
        "Users feel the slow tokens, and in a parallel job the slowest rank of each step sets the pace.",
        "用户感受到的是慢 token；并行任务中每步最慢的 rank 决定节奏。",
    ),
    trigger: Text::new(
        "p99 of the step time at least 1.5 times the median, in at least 20 steps. The excess of the slow steps over the median step is given by bucket and adds up exactly.",
        "步时 p99 至少为中位数的 1.5 倍，且不少于 20 步。慢步相对中位步的超出按时间桶给出，合计精确相等。",
    ),
    source: Text::new("1.5: own value, from the demand for low jitter.", "1.5：自定值，源于低抖动需求。"),
    guards: Text::new(
        "Steps of different classes are never mixed. The mean gain may be below 1 %: then the finding is a fact about the tail, not about throughput. The layer is that of the largest excess. A rank that only waits in its slow steps is not named. Where most of the excess is waiting for other ranks of which nothing recorded says what held them up, idle time of which nothing recorded says who caused it, or idle time between steps while it is not known whether there was a request (a step that decodes the sequences of the step before it needs none), the rule abstains. Where the batch changes, a step is slow that takes longer than its work does.",
        "不同类的步不混合统计。平均收益可能低于 1%：此时结论说的是尾延迟而非吞吐。归属层取超出最大的时间桶所在层。慢步中只是等待的 rank 不列入。若超出部分大多是对其他 rank 的等待且没有记录说明后者被什么拖住、没有记录能说明原因的空闲，或是不知有无请求时的步间空闲（解码上一步已有序列的步不需要新请求），则不作判断。批大小变化时，耗时超过其工作量者才算慢步。",
    ),
    verify: Text::new(
        "Remove the cause of the largest excess: p99 over p50 falls below 1.5.",
        "消除最大超出项的原因：p99/p50 降到 1.5 以下。",
    ),
};

impl Rule for Jitter {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn reads_logs(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let (mut found, mut waiting) = (Vec::new(), Vec::new());
        let mut unknown = false;
        for (rank, class) in cx.analysis.ranks.iter().flat_map(|r| r.classes.iter().map(move |c| (r, c))) {
            let Some(jitter) = class.jitter.as_ref().filter(|j| j.ratio >= RATIO && class.steady >= FEW) else {
                continue;
            };
            let Some(worst) = worst(cx, class) else { continue };
            if nobody_knows(cx, (rank, class), jitter, worst) {
                unknown = true;
                continue;
            }
            let labels = &cx.analysis.host_labels;
            let slow = jitter.slow.len().max(1) as i64;
            let excess: i64 = jitter.excess.iter().map(|(_, ns)| ns).sum::<i64>().max(0);
            let removes = excess / (class.steady.max(1) as i64);
            let trigger = Trigger {
                formula: Text::new("p99 / p50 of the step time", "步时 p99 / p50"),
                value: jitter.ratio,
                threshold: RATIO,
            };
            let claim = Message::new(
                if class.steady < MANY {
                    Text::new(
                        "The slowest step of {class} takes {ratio} the median step of {step}; {bucket} is most of the excess of the slow ones, {excess} each.",
                        "{class} 最慢的步为中位步 {step} 的 {ratio}；慢步平均超出 {excess}，主要是 {bucket}。",
                    )
                } else {
                    Text::new(
                        "The slow steps of {class} take {ratio} the median step of {step} (p99 over p50); {bucket} is most of their excess of {excess} each.",
                        "{class} 的慢步为中位步 {step} 的 {ratio}（p99/p50）；每个慢步平均超出 {excess}，主要是 {bucket}。",
                    )
                },
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("ratio", Value::Ratio(jitter.ratio)),
                    ("step", Value::Ns(class.p50)),
                    ("bucket", Value::Raw(worst.name(labels))),
                    ("excess", Value::Ns(excess / slow)),
                ],
            );
            let layer = if worst.layer() == Layer::Measurement { Layer::Runtime } else { worst.layer() };
            let change = Intervention { removes, layer, edits: steadied(rank, class, jitter) };
            let mut finding = cx.finding(&DOC, rank, class, claim, trigger, change);
            finding.layer = layer;
            // An empty queue of requests is no fault of the stack: a fact without a gain.
            if reading::is_host(cx.analysis, worst, "await_request") {
                finding.estimate = Estimate::none(finding.estimate.from);
                finding.severity = Severity::Info;
                finding.changes.clear();
            }
            if class.steady < MANY {
                finding.confidence = finding.confidence.min(Confidence::Medium);
            }
            for (bucket, ns) in jitter.excess.iter().take(NAMED) {
                finding = finding.with(Evidence {
                    what: Message::new(
                        Text::new(
                            "{bucket}: excess of a slow step over the median step",
                            "{bucket}：慢步相对中位步的超出",
                        ),
                        [("bucket", Value::Raw(bucket.name(labels)))],
                    ),
                    value: Value::Ns(*ns / slow),
                    rows: Vec::new(),
                });
            }
            let excess = |c: &Class| excess_of(c, worst);
            let most = alike(cx, class).map(excess).max().unwrap_or(0);
            let finding = finding.against(length(worst));
            if excess(class) * WAITS < most { waiting.push(finding) } else { found.push(finding) }
        }
        // Who only waits is no cause, but what it does longer meanwhile is changed with the rest.
        for finding in waiting {
            match found.iter_mut().find(|f: &&mut Finding| f.class == finding.class && f.layer == finding.layer) {
                Some(cause) => cause.changes.extend(finding.changes),
                None => found.push(finding),
            }
        }
        if found.is_empty() && unknown {
            return Outcome::Abstain(Message::plain(Text::new(
                "the device idles or waits for other ranks in the slow steps, and nothing recorded says what the hosts did or whether there was a request; record the host's calls, their correlation, and the engine's counters num_requests_running and num_requests_waiting",
                "慢步中设备空闲或等待其他 rank，但没有任何记录能说明主机在做什么、是否有请求；请记录主机调用及其关联，以及引擎计数器 num_requests_running 与 num_requests_waiting",
            )));
        }
        found.into_iter().collect()
    }
}

/// The class of all ranks: they run in step.
fn alike<'a>(cx: &'a Context<'_>, class: &'a Class) -> impl Iterator<Item = &'a Class> {
    cx.analysis.ranks.iter().flat_map(|r| &r.classes).filter(move |c| c.key == class.key)
}

/// What the slow steps of a class spend longer on a bucket than its median step, ns.
fn excess_of(class: &Class, bucket: Bucket) -> i64 {
    let excess = class.jitter.iter().flat_map(|j| &j.excess);
    excess.filter(|(b, _)| *b == bucket).map(|(_, ns)| ns).sum()
}

/// Whether nothing recorded says why the slow steps are slow: a wait, which is no cause; idle time for which no reason is
/// known at all, or idle time between steps in which the host does nothing known, while it is not known whether there was a
/// request. Without one no rank would wait for another.
fn nobody_knows(cx: &Context<'_>, (rank, class): (&Rank, &Class), jitter: &analysis::Jitter, worst: Bucket) -> bool {
    if is_unexplained(worst) || worst == Bucket::CommWait {
        return true;
    }
    let scheduler = Scheduler::of(cx.trace);
    if !reading::is_host(cx.analysis, worst, "unknown") || scheduler.knows_demand() {
        return false;
    }
    let step = |i: &u32| rank.steps.binary_search_by_key(i, |s| s.index).ok().and_then(|at| rank.steps.get(at));
    let slow = || jitter.slow.iter().filter_map(step);
    let idle = |between: bool| -> i64 {
        let doubt = |g: &Gap| demand::in_doubt(rank, g, &scheduler);
        let of = |s: &Step| reading::idle(rank, s, |g, b| b == worst && (!between || doubt(g)));
        slow().map(of).sum()
    };
    let of = |bucket: Bucket| alike(cx, class).map(|c| excess_of(c, bucket)).sum::<i64>();
    2 * idle(true) > idle(false) && AWAITED * of(Bucket::CommWait) < of(worst)
}

/// Idle time of which the capture does not say who caused it.
fn is_unexplained(bucket: Bucket) -> bool {
    matches!(bucket, Bucket::IdleUndecided | Bucket::Unattributed)
}

/// What most of the excess of a class's slow steps is, over all ranks: they run in step, so one cause makes the steps of all
/// of them slow. While one rank is held up each of the others waits for it; that much waiting is no cause of its own.
fn worst(cx: &Context<'_>, class: &Class) -> Option<Bucket> {
    let mut excess: BTreeMap<Bucket, i64> = BTreeMap::new();
    for (bucket, ns) in alike(cx, class).filter_map(|c| c.jitter.as_ref()).flat_map(|j| &j.excess) {
        *excess.entry(*bucket).or_default() += ns;
    }
    let others = cx.analysis.ranks.len().saturating_sub(1) as i64;
    let own = |b: &Bucket| !matches!(b, Bucket::CommWait | Bucket::CommTransfer);
    let held_up: i64 = excess.iter().filter(|(b, ns)| own(b) && **ns > 0).map(|(_, ns)| ns).sum();
    if let Some(waits) = excess.get_mut(&Bucket::CommWait) {
        *waits -= held_up.saturating_mul(others);
    }
    let most = excess.into_iter().filter(|(_, ns)| *ns > 0).max_by_key(|(b, ns)| (*ns, std::cmp::Reverse(*b)));
    most.map(|(bucket, _)| bucket)
}

/// Steps may be slow because their work is larger.
fn length(worst: Bucket) -> Competing {
    let claim = Text::new(
        "the slow steps have more work: longer contexts, more sequences",
        "慢步的工作量更大：更长上下文、更多序列",
    );
    if matches!(worst, Bucket::Compute(_) | Bucket::Unseen) {
        Competing::open(claim, Text::new("batch and context of each step decide", "每步的批大小与上下文长度可以判定"))
    } else {
        Competing::refuted(claim, Text::new("most of the excess is not compute", "超出部分大多不是计算"))
    }
}

/// Steps well above the median one lose what their host does longer than that of the median step; of excess on the device
/// there is no edit.
fn steadied(rank: &Rank, class: &Class, jitter: &analysis::Jitter) -> Vec<Edit> {
    let steps: Vec<&Step> = rank.steady_steps(class).collect();
    let evened = equal_work::windows(&steps, class.churns);
    let slow = steps.iter().zip(evened).filter(|(_, ns)| *ns as f64 > SLOW * class.p50 as f64).map(|(step, _)| *step);
    let Some(median) = rank.steady_steps(class).find(|s| s.index == jitter.median) else { return Vec::new() };
    // Of the slowest few alone not every rank need have paused in one.
    let host = class.buckets.iter().map(|(bucket, _)| *bucket).filter(|bucket| bucket.is_host_side());
    let usual = host.map(|bucket| {
        let ns = reading::idle(rank, median, |_, b| b == bucket);
        (bucket, (ns, ns))
    });
    let slow: Vec<&Step> = slow.collect();
    let long = slow.iter().any(|s| s.window.len() > LONG * class.p50);
    let edits = change::steadied(rank, slow.iter().copied(), &usual.collect());
    // A few that are somewhat slow are what every host has now and then: nobody promises that they go away.
    if slow.len() >= RECUR || long { edits } else { change::hoped(edits).collect() }
}
