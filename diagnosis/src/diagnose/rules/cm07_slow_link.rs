//! CM-07: a collective is slow although every rank is there.

use std::collections::BTreeMap;

use model::{Area, EvidenceClass, Ns, SliceId};
use rustc_hash::FxHashSet;

use super::{late::counted, reading};
use crate::{
    analysis::{Class, Confidence, DeviceOp, Edit, Layer, OpKind, Rank, Selection, Step, job::Instance},
    diagnose::{
        Competing, Evidence, Finding, Intervention, Trigger,
        relations::{Advice, Feeds, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of the mean step; own value, that of rule CM-13 for exposed transfers.
const SHARE: f64 = 0.03;
/// A transfer is slow above so many times the usual one (method §5.3).
const SLOWER: (Ns, Ns) = (3, 2);
/// Slow instances below which nothing recurs.
const RECURS: usize = 3;

/// The rule.
pub struct SlowLink;

static DOC: Doc = Doc {
    id: "CM-07",
    title: Text::new("Slow link", "链路慢"),
    layer: Layer::Communication,
    needs: &[EvidenceClass::Device, EvidenceClass::MultiRank],
    advice: Advice::Device,
    relations: Relations { board: &[Feeds::Area(Area::Communication)], ..Relations::NONE },
    sees: Text::new(
        "Collectives take longer than others of the same kind even on the rank that arrives last: the transfer itself is slow, again and again or in one group only.",
        "即使在最后到达的 rank 上，集合通信也比同类更久：传输本身慢，时有发生，或只发生在某一个通信组。",
    ),
    matters: Text::new(
        "A degraded or congested link, a wrong route or a neighbour on the same switch slows every rank of the group by the same time.",
        "链路退化或拥塞、路由错误或同一交换机上的邻居，会使组内每个 rank 都慢同样的时间。",
    ),
    trigger: Text::new(
        "Shortest duration over the ranks above 1.5 times the 5th percentile of the same operation and payload in the group (at least three times in the steps that count), or the group's median above 1.5 times that of the other groups; the excess is at least 3 % of the mean step.",
        "各 rank 中的最短时长超过组内同一操作同一负载第 5 百分位的 1.5 倍（在采用的步中至少三次），或该组的中位数超过其他组的 1.5 倍；超出部分至少占平均步时的 3%。",
    ),
    source: Text::new("1.5: detector of the diagnosis method. 3 %: own value.", "1.5：诊断方法的检测器。3%：自定值。"),
    guards: Text::new(
        "A late rank does not count: the last one to arrive does not wait. Steps that compute 1.5 times as long as the median one do not count either: they move more. Silent for a group of which a rank is missing in the capture, which may be the late one.",
        "迟到的 rank 不计入：最后到达者没有等待。计算时间为中位步 1.5 倍以上的步也不计入：其传输量更大。若采集中缺少组内某个 rank 则不报告，因为它可能就是迟到者。",
    ),
    verify: Text::new(
        "Measure the link between the ranks alone (nccl-tests, rccl-tests, hccl_test); after the repair the shortest duration falls to the usual one.",
        "单独测量 rank 之间的链路（nccl-tests、rccl-tests、hccl_test）；修复后最短时长降到通常值。",
    ),
};

/// How long a kind of collective takes in a group, ns.
struct Usual {
    fast: Ns,
    median: Ns,
}

impl Rule for SlowLink {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let job = &cx.analysis.job;
        let mut transfers: BTreeMap<(usize, u32), Vec<Ns>> = BTreeMap::new();
        for instance in &job.instances {
            transfers.entry((instance.group, instance.kind)).or_default().push(instance.transfer);
        }
        let usual: BTreeMap<(usize, u32), Usual> = transfers
            .into_iter()
            .filter_map(|(kind, mut t)| {
                t.sort_unstable();
                Some((kind, Usual { fast: *t.get(t.len() / 20)?, median: *t.get((t.len() - 1) / 2)? }))
            })
            .collect();
        let complete = (0..).zip(&job.groups).filter(|(_, g)| g.is_complete());
        complete.filter_map(|(group, _)| judge(cx, group, &usual)).collect()
    }
}

/// What an instance should have taken: as the fast ones of its group, or as other groups take.
fn expected(instance: &Instance, usual: &BTreeMap<(usize, u32), Usual>) -> Option<Ns> {
    let own = usual.get(&(instance.group, instance.kind))?;
    let mut others: Vec<Ns> = usual
        .iter()
        .filter(|((group, kind), _)| *group != instance.group && *kind == instance.kind)
        .map(|(_, u)| u.median)
        .collect();
    others.sort_unstable();
    let theirs = others.get(others.len().saturating_sub(1) / 2).filter(|m| SLOWER.1 * own.median > SLOWER.0 * **m);
    theirs.copied().or_else(|| instance.slow.then_some(own.fast)).filter(|usual| *usual < instance.transfer)
}

fn judge(cx: &Context<'_>, group: usize, usual: &BTreeMap<(usize, u32), Usual>) -> Option<Finding> {
    let job = &cx.analysis.job;
    let ranks = &job.groups.get(group)?.ranks;
    let (index, rank, class) = counted(cx).find(|(i, ..)| ranks.contains(i))?;
    let larger = larger_steps(rank, class);
    let mut slow: Vec<(u32, SliceId, Ns, Ns)> = Vec::new();
    for instance in job.instances.iter().filter(|i| i.group == group) {
        let Some(member) = instance.members.iter().find(|m| m.rank == index) else { continue };
        let Some(op) = rank.timeline.ops.get(member.op as usize).filter(|_| counts(rank, class, &larger, member.op))
        else {
            continue;
        };
        if let Some(expected) = expected(instance, usual) {
            slow.push((member.op, op.slice, instance.transfer, expected));
        }
    }
    let excess: Ns = slow.iter().map(|(.., took, expected)| took - expected).sum();
    let per_step = excess / class.steady.max(1) as Ns;
    let share = per_step as f64 / class.mean().max(1) as f64;
    if slow.len() < RECURS || share < SHARE {
        return None;
    }
    let n = slow.len() as Ns;
    let (took, expected) = (slow.iter().map(|s| s.2).sum::<Ns>() / n, slow.iter().map(|s| s.3).sum::<Ns>() / n);
    let edit = Edit::Transfer(slow.iter().map(|(op, _, _, expected)| (*op, *expected)).collect());
    let change = Intervention { removes: per_step, layer: Layer::Communication, edits: vec![edit] };
    let trigger = Trigger {
        formula: Text::new("transfer of the slow instances / usual transfer", "慢实例的传输时间 / 通常的传输时间"),
        value: took as f64 / expected.max(1) as f64,
        threshold: SLOWER.0 as f64 / SLOWER.1 as f64,
    };
    let claim = Message::new(
        Text::new(
            "{n} collectives of {class} take {took} although every rank is there; others of the same kind take {usual}. That is {excess} per step ({share}).",
            "{class} 中有 {n} 次集合通信在所有 rank 到齐后仍需 {took}，而同类只需 {usual}；合计每步 {excess}（{share}）。",
        ),
        [
            ("n", Value::Count(slow.len() as u64)),
            ("class", Value::Raw(class.key.clone())),
            ("took", Value::Ns(took)),
            ("usual", Value::Ns(expected)),
            ("excess", Value::Ns(per_step)),
            ("share", Value::Share(share)),
        ],
    );
    let mut finding = cx
        .finding(&DOC, rank, class, claim, trigger, change)
        .with(Evidence::new(
            Text::new(
                "transfer of a slow collective, shortest over its ranks",
                "慢集合通信的传输时间（各 rank 中最短）",
            ),
            Value::Ns(took),
            reading::sample(slow.iter().map(|(_, slice, ..)| *slice)),
        ))
        .with(Evidence::new(
            Text::new("usual transfer of the same kind", "同类的通常传输时间"),
            Value::Ns(expected),
            Vec::new(),
        ))
        .against(Competing::refuted(
            Text::new("a rank is late", "有 rank 迟到"),
            Text::new(
                "the last rank to arrive is slow too, and it waits for no one",
                "最后到达的 rank 同样慢，而它不等待任何人",
            ),
        ))
        .against(Competing::open(
            Text::new(
                "other traffic or compute takes the units that move the data",
                "其他流量或计算占用了搬运数据的单元",
            ),
            Text::new(
                "the same collective alone on the idle machine decides",
                "在空闲机器上单独执行同一集合通信可以判定",
            ),
        ));
    finding.ranks = ranks.iter().filter_map(|r| cx.analysis.ranks.get(*r)).map(|r| r.rank).collect();
    finding.gated(Confidence::High)
}

/// Steps with so much more computation than the median one that their collectives move more as well, by index. Not every
/// capture holds the payload, nor which steps prefill.
fn larger_steps(rank: &Rank, class: &Class) -> FxHashSet<u32> {
    let computes =
        |s: &Step| -> Ns { rank.ops_of(s).iter().filter(|op| op.kind == OpKind::Compute).map(DeviceOp::dur).sum() };
    let steps: Vec<(u32, Ns)> = rank.steady_steps(class).map(|s| (s.index, computes(s))).collect();
    let mut usual: Vec<Ns> = steps.iter().map(|(_, ns)| *ns).collect();
    usual.sort_unstable();
    let usual = usual.get(usual.len() / 2).copied().unwrap_or(0);
    steps
        .into_iter()
        .filter(|(_, ns)| ns.saturating_mul(SLOWER.1) > usual.saturating_mul(SLOWER.0))
        .map(|(i, _)| i)
        .collect()
}

fn counts(rank: &Rank, class: &Class, larger: &FxHashSet<u32>, op: u32) -> bool {
    let at = rank.steps.partition_point(|s| s.ops.end <= op as usize);
    let step = rank.steps.get(at).filter(|s| s.ops.contains(&(op as usize)));
    step.is_some_and(|s| s.class == class.index && s.selection == Selection::Steady && !larger.contains(&s.index))
}
