//! CM-12: ranks wait for each other, now for one, now for another.

use std::collections::BTreeMap;

use model::{Area, EvidenceClass, Ns, Span, TrackId};

use super::{
    change,
    late::{self, INSTANCES, Waiting},
    reading,
};
use crate::{
    analysis::{Bucket, Class, Confidence, Edit, Layer, Rank, Step, job::Instance},
    diagnose::{
        Competing, Evidence, Finding, Intervention, Trigger,
        relations::{Advice, Feeds, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::CanonicalOp,
};

/// Share of the mean step that is waited (method §5.3).
const SHARE: f64 = 0.05;
/// Share of the mean step that is lost by it; own value, the limit of medium severity.
const LOST: f64 = 0.03;

/// The rule.
pub struct JitterWait;

static DOC: Doc = Doc {
    id: "CM-12",
    title: Text::new("Waiting caused by jitter", "抖动造成的等待"),
    layer: Layer::Runtime,
    needs: &[EvidenceClass::Device, EvidenceClass::MultiRank],
    advice: Advice::Device,
    relations: Relations {
        yields_to: &["RT-13", "RT-16"],
        board: &[Feeds::Area(Area::Communication)],
        role: Some(Role::RankNoise),
        ..Relations::NONE
    },
    sees: Text::new(
        "Ranks wait in collectives, but no rank is late more often than the others: each step another one holds up the rest.",
        "各 rank 在集合通信中等待，但没有哪个 rank 明显更常迟到：每步由不同的 rank 拖住其余。",
    ),
    matters: Text::new(
        "With many collectives per step the slowest of all ranks counts every time, so small random delays of each add up.",
        "每步有多次集合通信时，每次都由最慢的 rank 决定，因此各 rank 的小随机延迟会累加。",
    ),
    trigger: Text::new(
        "Mean wait of a rank at least 5 % of the mean step, no rank causes half of the waiting (with two ranks three quarters), and, where the hosts set the pace, the mean wait less that of the rank that waits least, step by step, at least 3 % of the mean step.",
        "每个 rank 的平均等待至少占平均步时的 5%，没有任何 rank 造成一半以上的等待（两个 rank 时为四分之三），且在节奏由主机决定时，逐步计算的平均等待减去等待最少的 rank 的等待至少占平均步时的 3%。",
    ),
    source: Text::new(
        "5 %: detector of the diagnosis method; vllm RFC #52911 is a public case. Three quarters and 3 %: own values.",
        "5%：诊断方法的检测器；公开案例 vllm RFC #52911。四分之三与 3%：自定值。",
    ),
    guards: Text::new(
        "What all ranks wait alike in a step, each for the others in turn, costs nothing where the hosts set the pace: their work goes on meanwhile. Silent where one rank is late again and again: then CM-01 names it. Where the late ranks spend longer on kernels, the layer is operator: uneven work, not jitter of the host.",
        "若一步内各 rank 轮流等待、等待量相同，而节奏由主机决定，则没有损失：主机的工作同时在进行。若某个 rank 反复迟到则不报告，由 CM-01 指出。若迟到的 rank 多花的时间在内核上，则归属算子层：是工作不均而非主机抖动。",
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
        let by_another = groups.iter().filter(|group| is_spread(cx, group) && !by_experts(group));
        by_another.filter_map(|group| spread(cx, group, &DOC)).collect()
    }
}

/// Whether ranks of a group wait for each other without one that is usually last.
pub(super) fn is_spread(cx: &Context<'_>, group: &Waiting) -> bool {
    let latest = group.latest().map_or(1.0, |l| group.share_of(l));
    let even = group.share >= SHARE && group.decisive >= INSTANCES && latest < group.blame_share();
    even && lost(cx, group) >= LOST
}

/// Whether the late ranks' experts are what they spend longer on: tokens go now to those of one rank, now to another's.
pub(super) fn by_experts(group: &Waiting) -> bool {
    let longer = |counts: &dyn Fn(Bucket) -> bool| -> Ns {
        let causes = group.late.iter().flat_map(|l| &l.causes);
        causes.filter(|((_, bucket), ns)| **ns > 0 && counts(*bucket)).map(|(_, ns)| ns).sum()
    };
    uneven(group) && 2 * longer(&is_experts) > longer(&|bucket| bucket.layer() == Layer::Operator)
}

/// Whether a bucket is work of a layer's experts.
pub(super) fn is_experts(bucket: Bucket) -> bool {
    matches!(bucket, Bucket::Compute(CanonicalOp::GroupedGemm | CanonicalOp::MoeRoute))
}

/// What is to be said of such a group, as a finding of the rule that it belongs to.
pub(super) fn spread(cx: &Context<'_>, group: &Waiting, doc: &'static Doc) -> Option<Finding> {
    let analysis = cx.analysis;
    let waits = |rank: usize| {
        let (_, r, class) = late::counted(cx).find(|(i, ..)| *i == rank)?;
        let ns: Ns = r.steady_steps(class).flat_map(|s| analysis.job.waits_in(rank, &s.ops)).map(|w| w.ns).sum();
        Some((ns / class.steady.max(1) as Ns, r, class))
    };
    let (_, rank, class) =
        group.ranks.iter().filter_map(|r| waits(*r)).max_by_key(|(ns, r, _)| (*ns, std::cmp::Reverse(r.rank)))?;
    let uneven = uneven(group);
    let layer = if uneven { Layer::Operator } else { Layer::Runtime };
    let removes = (group.share * class.mean() as f64) as Ns;
    let latest = group.latest().map_or(0.0, |l| group.share_of(l));
    let claim = Message::new(
        Text::new(
            "Each rank of {class} waits {wait} of {step} for others ({share}), now for one, now for another: none causes more than {most} of the waiting.",
            "{class} 的每个 rank 在 {step} 中平均等待其他 rank {wait}（{share}），对象时而不同：没有哪个 rank 造成超过 {most} 的等待。",
        ),
        [
            ("class", Value::Raw(class.key.clone())),
            ("wait", Value::Ns(removes)),
            ("step", Value::Ns(class.mean())),
            ("share", Value::Share(group.share)),
            ("most", Value::Share(latest)),
        ],
    );
    let trigger = Trigger {
        formula: match uneven {
            true => Text::new("mean wait of a rank / mean step", "rank 的平均等待 / 平均步时"),
            false => Text::new(
                "(mean wait of a rank - least wait of a rank) / mean step",
                "（rank 的平均等待 − rank 的最少等待）/ 平均步时",
            ),
        },
        value: lost(cx, group),
        threshold: LOST,
    };
    let change = Intervention { removes, layer, edits: Vec::new() };
    let rows = group.late.iter().flat_map(|l| l.rows.iter().take(2)).map(|(_, slice)| *slice);
    let mut finding = cx
        .finding(doc, rank, class, claim, trigger, change)
        .with(Evidence::new(
            Text::new("waits of all ranks, all steps that count", "所有 rank 的等待（全部采用的步）"),
            Value::Ns(group.total),
            reading::sample(rows),
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
    finding.ranks = group.ranks.iter().filter_map(|r| analysis.ranks.get(*r)).map(|r| r.rank).collect();
    finding.changes = late::counted(cx)
        .filter(|(index, ..)| group.ranks.contains(index))
        .map(|of| (of.1.rank, Intervention { removes, layer, edits: calmed(cx, group, uneven, of) }))
        .collect();
    finding.gated(Confidence::Medium)
}

/// The change on one rank. Where hosts jitter, they come down to their undisturbed times: that takes away the waiting, and
/// what the last rank of each step was held up itself. Where the work is uneven, each rank takes its own time and waits for
/// nobody.
fn calmed(cx: &Context<'_>, group: &Waiting, uneven: bool, (index, rank, class): (usize, &Rank, &Class)) -> Vec<Edit> {
    // A step that does not count on one rank, as it was held up too long, is one that the others wait in.
    let all = || rank.steps.iter().filter(|step| step.class == class.index);
    if uneven {
        return vec![alone(cx, index, group)];
    }
    let Some((usual, least)) = calm(rank, class) else { return Vec::new() };
    let certain = reading::host_takes(all().flat_map(|step| down_to(rank, step, usual)));
    let more = reading::host_takes(all().flat_map(|step| down_to(rank, step, least)));
    certain.into_iter().chain(change::hoped(more)).collect()
}

/// Whether the late ranks' devices worked longer, and not their hosts.
fn uneven(group: &Waiting) -> bool {
    let known = |layer: Layer| -> Ns {
        let causes = group.late.iter().flat_map(|l| &l.causes);
        causes.filter(|((_, b), ns)| **ns > 0 && b.layer() == layer && *b != Bucket::CommWait).map(|(_, ns)| ns).sum()
    };
    known(Layer::Operator) > known(Layer::Runtime) + known(Layer::Measurement)
}

/// What the ranks of a group lose by waiting, as a share of the mean step. A device that waits is a device that does not
/// work: where their work is uneven they lose all of it. Where the hosts set the pace they go on meanwhile, and a rank that
/// waits as long as the others is late as often as they and gets back what it loses: what is lost is the mean wait of a
/// step's ranks above that of the rank that waits least.
fn lost(cx: &Context<'_>, group: &Waiting) -> f64 {
    if uneven(group) {
        return group.share;
    }
    let job = &cx.analysis.job;
    // Steps by their position in the run: the waits of each rank.
    let mut steps: BTreeMap<u32, Vec<Ns>> = BTreeMap::new();
    let mut mean: Ns = 0;
    for (index, rank, class) in late::counted(cx).filter(|(index, ..)| group.ranks.contains(index)) {
        mean = mean.max(class.mean());
        for step in rank.steady_steps(class) {
            let wait = job.waits_in(index, &step.ops).iter().map(|w| w.ns).sum();
            steps.entry(step.index).or_default().push(wait);
        }
    }
    steps.retain(|_, waits| waits.len() == group.ranks.len());
    let above = |waits: &Vec<Ns>| {
        let least = waits.iter().min().copied().unwrap_or(0);
        waits.iter().map(|wait| wait - least).sum::<Ns>() / waits.len().max(1) as Ns
    };
    let all: Ns = steps.values().map(above).sum();
    all as f64 / steps.len().max(1) as f64 / mean.max(1) as f64
}

/// The stretches in which the device waits for its host in a step, with what they take if all of them together take
/// `usual` ns; none where they take no longer.
fn down_to<'a>(rank: &'a Rank, step: &'a Step, usual: Ns) -> impl Iterator<Item = (TrackId, Span, Ns)> + 'a {
    let now = reading::idle(rank, step, |_, bucket| bucket.is_host_side());
    let gaps = reading::gaps(rank, step).iter().filter(move |_| now > usual);
    gaps.filter_map(|gap| Some((gap, reading::owner(rank, gap).and_then(|op| rank.timeline.call(op))?.track))).flat_map(
        move |(gap, track)| {
            let host = gap.parts.iter().filter(|(bucket, _)| bucket.is_host_side());
            host.map(move |(_, span)| (track, *span, change::scale(span.len(), usual, now)))
        },
    )
}

/// What the device waits for its host in undisturbed steps: the lowest decile and the least, ns. Disturbances only ever add
/// time, so the low end of many steps shows a host without them (Chen and Revels 2016). It is the step as a whole that
/// shows it: each of many launches has a low end of its own, and no step has all of them at once.
fn calm(rank: &Rank, class: &Class) -> Option<(Ns, Ns)> {
    let host = |step: &Step| reading::idle(rank, step, |_, bucket| bucket.is_host_side());
    let mut ns: Vec<Ns> = rank.steady_steps(class).map(host).collect();
    ns.sort_unstable();
    Some((*ns.get(ns.len() / 10)?, *ns.first()?))
}

/// Every collective of the group takes its transfer and waits for nobody: what the waits cost the steps, and not only the
/// collectives. Where the host sets the pace they cost nothing.
fn alone(cx: &Context<'_>, index: usize, group: &Waiting) -> Edit {
    let job = &cx.analysis.job;
    let ours = |instance: &&Instance| job.groups.get(instance.group).is_some_and(|g| g.ranks == group.ranks);
    let own = |instance: &Instance| {
        let member = instance.members.iter().find(|member| member.rank == index)?;
        Some((member.op, instance.transfer))
    };
    Edit::Alone(job.instances.iter().filter(ours).filter_map(own).collect())
}
