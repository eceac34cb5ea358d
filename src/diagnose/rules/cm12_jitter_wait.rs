//! CM-12: ranks wait for each other, now for one, now for another.

use std::collections::BTreeSet;

use model::{EvidenceClass, Ns};

use super::{
    change,
    late::{self, INSTANCES, Waiting},
    reading,
};
use crate::{
    analysis::{Bucket, Class, Confidence, Layer, Rank, Step},
    diagnose::{
        Competing, Evidence, Finding, Intervention, Trigger,
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of the median step (method §5.3).
const SHARE: f64 = 0.05;
/// One step in so many is fast: the 5th percentile, as of transfers (method §2.5).
const FAST: usize = 20;

/// The rule.
pub struct JitterWait;

static DOC: Doc = Doc {
    id: "CM-12",
    title: Text::new("Waiting caused by jitter", "抖动造成的等待"),
    layer: Layer::Runtime,
    needs: &[EvidenceClass::Device, EvidenceClass::MultiRank],
    sees: Text::new(
        "Ranks wait in collectives, but no rank is late more often than the others: each step another one holds up the rest.",
        "各 rank 在集合通信中等待，但没有哪个 rank 明显更常迟到：每步由不同的 rank 拖住其余。",
    ),
    matters: Text::new(
        "With many collectives per step the slowest of all ranks counts every time, so small random delays of each add up.",
        "每步有多次集合通信时，每次都由最慢的 rank 决定，因此各 rank 的小随机延迟会累加。",
    ),
    trigger: Text::new(
        "Mean wait of a rank at least 5 % of the median step, and no rank causes half of the waiting (with two ranks three quarters).",
        "每个 rank 的平均等待至少占中位步时的 5%，且没有任何 rank 造成一半以上的等待（两个 rank 时为四分之三）。",
    ),
    source: Text::new(
        "5 %: detector of the diagnosis method; vllm RFC #52911 is a public case. Three quarters: own value.",
        "5%：诊断方法的检测器；公开案例 vllm RFC #52911。四分之三：自定值。",
    ),
    guards: Text::new(
        "Silent where one rank is late again and again: then CM-01 names it. Where the late ranks spend longer on kernels, the layer is operator: uneven work, not jitter of the host.",
        "若某个 rank 反复迟到则不报告，由 CM-01 指出。若迟到的 rank 多花的时间在内核上，则归属算子层：是工作不均而非主机抖动。",
    ),
    verify: Text::new(
        "Pin the processes to cores, keep the garbage collector out of the loop, replay decode from a graph: the waiting shrinks on all ranks.",
        "将进程绑定到核心，让垃圾回收离开循环，以图重放解码：所有 rank 的等待都缩短。",
    ),
};

impl Rule for JitterWait {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let groups = late::waiting(cx);
        let even = |g: &&Waiting| {
            let latest = g.latest().map_or(1.0, |l| g.share_of(l));
            g.share >= SHARE && g.decisive >= INSTANCES && latest < g.blame_share()
        };
        groups.iter().filter(even).filter_map(|group| spread(cx, group)).collect()
    }
}

fn spread(cx: &Context<'_>, group: &Waiting) -> Option<Finding> {
    let analysis = cx.analysis;
    let waits = |rank: usize| {
        let (_, r, class) = late::counted(cx).find(|(i, ..)| *i == rank)?;
        let ns: Ns = r.steady_steps(class).flat_map(|s| analysis.job.waits_in(rank, &s.ops)).map(|w| w.ns).sum();
        Some((ns / class.steady.max(1) as Ns, r, class))
    };
    let (_, rank, class) =
        group.ranks.iter().filter_map(|r| waits(*r)).max_by_key(|(ns, r, _)| (*ns, std::cmp::Reverse(r.rank)))?;
    let known = |layer: Layer| -> Ns {
        let causes = group.late.iter().flat_map(|l| &l.causes);
        causes.filter(|((_, b), ns)| **ns > 0 && b.layer() == layer && *b != Bucket::CommWait).map(|(_, ns)| ns).sum()
    };
    let uneven = known(Layer::Operator) > known(Layer::Runtime) + known(Layer::Measurement);
    let layer = if uneven { Layer::Operator } else { Layer::Runtime };
    let wait = (group.share * class.p50 as f64) as Ns;
    let latest = group.latest().map_or(0.0, |l| group.share_of(l));
    let claim = Message::new(
        Text::new(
            "Each rank of {class} waits {wait} of {step} for others ({share}), now for one, now for another: none causes more than {most} of the waiting.",
            "{class} 的每个 rank 在 {step} 中平均等待其他 rank {wait}（{share}），对象时而不同：没有哪个 rank 造成超过 {most} 的等待。",
        ),
        [
            ("class", Value::Raw(class.key.clone())),
            ("wait", Value::Ns(wait)),
            ("step", Value::Ns(class.p50)),
            ("share", Value::Share(group.share)),
            ("most", Value::Share(latest)),
        ],
    );
    let trigger = Trigger {
        formula: Text::new("mean wait of a rank / median step", "每个 rank 的平均等待 / 中位步时"),
        value: group.share,
        threshold: SHARE,
    };
    let change = Intervention { removes: wait, layer, edits: Vec::new() };
    let rows = group.late.iter().flat_map(|l| l.rows.iter().take(2)).map(|(_, slice)| *slice);
    let mut finding = cx
        .finding(&DOC, rank, class, claim, trigger, change)
        .with(Evidence::new(
            Text::new("waits of all ranks, all steps that count", "所有 rank 的等待（全部采用的步）"),
            Value::Ns(group.total),
            super::reading::sample(rows),
        ))
        .with(Evidence::new(
            Text::new("collectives that hold most of the waiting", "占大部分等待的集合通信"),
            Value::Count(group.decisive as u64),
            Vec::new(),
        ))
        .against(Competing::refuted(
            Text::new("one rank is slow", "某个 rank 慢"),
            Text::new("no rank causes most of the waiting", "没有哪个 rank 造成大部分等待"),
        ));
    if uneven {
        finding = finding.against(Competing::open(
            Text::new("the ranks have unequal work that changes from step to step", "各 rank 的工作不等且逐步变化"),
            Text::new("tokens of each rank and step decide", "各 rank 各步的 token 数可以判定"),
        ));
    }
    finding.layer = layer;
    if !uneven {
        finding.changes = steadied(cx, group, layer);
    }
    finding.ranks = group.ranks.iter().filter_map(|r| analysis.ranks.get(*r)).map(|r| r.rank).collect();
    finding.gated(Confidence::Medium)
}

/// The host time of the kinds that made ranks late becomes usual in the steps that took longer than the fast ones:
/// cautiously the rank's median, hopefully what its fast steps take. Where the host paces a rank anyway its waiting only
/// takes the place of its own idle time, and the steps do not get longer by it: no more is taken from a step's host than
/// the step is longer than a fast one, hopefully twice that, because part of each delay hides behind those of the others.
/// The delays are nobody's alone, so only all ranks together gain.
fn steadied(cx: &Context<'_>, group: &Waiting, layer: Layer) -> Vec<(u32, Intervention)> {
    let causes = group.late.iter().flat_map(|l| &l.causes).filter(|((_, b), ns)| **ns > 0 && b.is_host_side());
    let buckets: BTreeSet<Bucket> = causes.map(|((_, bucket), _)| *bucket).collect();
    let ranks = late::counted(cx).filter(|(i, ..)| group.ranks.contains(i));
    let one = |(_, rank, class): (usize, &Rank, &Class)| {
        let fast = share(rank.steady_steps(class).map(|s| s.window.len()).collect(), FAST);
        let (mut cautious, mut hopeful) = (Vec::new(), Vec::new());
        for bucket in &buckets {
            let time = |step: &Step| reading::idle(rank, step, |_, b| b == *bucket);
            let times: Vec<Ns> = rank.steady_steps(class).map(time).collect();
            let (usual, least) = (share(times.clone(), 2), share(times.clone(), FAST));
            for (step, now) in rank.steady_steps(class).zip(times) {
                let longer = (step.window.len() - fast).max(0);
                let to = |then: Ns| {
                    let left = then.saturating_mul(100) / now.max(1);
                    change::host_time(rank, std::iter::once(step), |_, b| b == *bucket, left.min(100))
                };
                if longer > 0 && now > least {
                    cautious.extend(to(usual.max(now - longer)));
                    hopeful.extend(to(least.max(now - 2 * longer)));
                }
            }
        }
        let edits = cautious.into_iter().chain(change::hoped(hopeful)).collect();
        (rank.rank, Intervention { removes: 0, layer, edits })
    };
    ranks.map(one).collect()
}

/// The value below which one in `part` of the values lies; 0 of none.
fn share(mut values: Vec<Ns>, part: usize) -> Ns {
    let at = values.len() / part;
    if at < values.len() { *values.select_nth_unstable(at).1 } else { 0 }
}
