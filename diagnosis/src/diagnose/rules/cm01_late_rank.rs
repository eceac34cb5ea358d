//! CM-01: one rank is late again and again, and the others wait for it.

use model::{Area, EvidenceClass, Ns};
use std::collections::BTreeMap;

use super::{
    cm09_moe_imbalance,
    excess::Excess,
    late::{self, Late, Waiting},
};
use crate::{
    analysis::{Analysis, Bucket, Class, Confidence, Layer, Rank},
    diagnose::{
        Competing, Evidence, Finding, Intervention, Trigger,
        estimate::LEAST_GAIN,
        relations::{Advice, Feeds, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of the mean step that the others must wait (method §5.3).
const SHARE: f64 = 0.03;
/// Waits in doubt above which the finding is less sure; own value.
const DOUBT: f64 = 0.2;

/// The rule.
pub struct LateRank;

static DOC: Doc = Doc {
    id: "CM-01",
    title: Text::new("Persistent late rank", "持续迟到的 rank"),
    layer: Layer::Runtime,
    needs: &[EvidenceClass::Device, EvidenceClass::MultiRank],
    advice: Advice::Device,
    relations: Relations {
        yields_to: &["CM-09", "CM-10"],
        board: &[Feeds::Area(Area::Communication)],
        role: Some(Role::LateRank),
        ..Relations::NONE
    },
    sees: Text::new(
        "The ranks of a group wait for the same one again and again. Between two collectives each rank spends its time on its own clock; what the late rank spends longer on than those that wait is the cause, to the nanosecond and without comparing clocks.",
        "一个通信组的各 rank 反复等待同一个 rank。两次集合通信之间，每个 rank 在自己的时钟上消耗时间；迟到的 rank 比等待者多花时间的分类就是原因，精确到纳秒，且不比较各 rank 的时钟。",
    ),
    matters: Text::new(
        "The slowest rank sets the pace of all. The time shows as communication on every rank but the one that causes it, so a faster link would gain nothing.",
        "最慢的 rank 决定全体的节奏。这段时间在除肇因者外的所有 rank 上都表现为通信，因此更快的链路没有收益。",
    ),
    trigger: Text::new(
        "Of the instances that hold 80 % of the waiting and those half as long as the shortest of them (at least four) one rank is last in more than half, with a chance below 0.001 if each rank were last equally often; it causes at least half of the waiting (with two ranks three quarters); and the waiting is at least 3 % of the mean step.",
        "在占全部等待 80% 的实例及不短于其中最短者一半的实例中（至少四个），某个 rank 有一半以上最后到达，且若各 rank 机会均等其概率低于 0.001；它造成至少一半的等待（两个 rank 时为四分之三）；等待至少占平均步时的 3%。",
    ),
    source: Text::new(
        "Binomial test and 3 %: detector of the diagnosis method. 80 %, half and three quarters: own values. Public cases: sglang #28067 (garbage collection on one rank), vllm #5792.",
        "二项检验与 3%：诊断方法的检测器。80%、一半与四分之三：自定值。公开案例：sglang #28067（单个 rank 的垃圾回收）、vllm #5792。",
    ),
    guards: Text::new(
        "Silent where the late rank was itself waiting for another one: then that one is named. The layer is that of what the late rank spends longer on, never communication. Silent where its experts have more to do than those of the others: that is CM-09's. A larger batch also makes a rank late: the batch of each rank decides.",
        "若迟到的 rank 自己也在等待别的 rank，则不报告它，而报告后者。归属层取迟到的 rank 多花时间的分类所在层，绝不归为通信。若其专家的工作多于其他 rank，则不报告，由 CM-09 指出。更大的批也会使 rank 迟到：可由各 rank 的批大小判定。",
    ),
    verify: Text::new(
        "Remove the cause on the late rank and capture all ranks again: its share of the waiting falls to an equal one, and the step shortens on every rank.",
        "消除迟到 rank 上的原因并重新采集所有 rank：它造成的等待降到均等份额，且所有 rank 的步时缩短。",
    ),
};

impl Rule for LateRank {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let mut found: BTreeMap<u32, Finding> = BTreeMap::new();
        let experts = cm09_moe_imbalance::loaded(cx).map(|(rank, _)| rank);
        for group in late::waiting(cx).iter().filter(|g| victims(g) >= SHARE) {
            let late = group.persistent().filter(|late| Some(late.rank) != experts);
            let Some(finding) = late.and_then(|late| blame(cx, group, late)) else { continue };
            let Some(rank) = finding.ranks.first().copied() else { continue };
            let gain = |f: &Finding| f.estimate.max_gain_share();
            if found.get(&rank).is_none_or(|known| gain(known) < gain(&finding)) {
                found.insert(rank, finding);
            }
        }
        found.into_values().collect()
    }
}

/// Mean wait per step of the ranks that wait, as a share of the step.
fn victims(group: &Waiting) -> f64 {
    let ranks = group.ranks.len() as f64;
    group.share * ranks / (ranks - 1.0).max(1.0)
}

fn blame(cx: &Context<'_>, group: &Waiting, late: &Late) -> Option<Finding> {
    let analysis = cx.analysis;
    let rank = analysis.ranks.get(late.rank)?;
    if rank.timeline.collectives_only {
        return blame_unseen(cx, group, late);
    }
    let class = rank.main_class().filter(|c| c.steady > 0)?;
    let waits_itself = |bucket: Bucket| matches!(bucket, Bucket::CommWait | Bucket::CommTransfer);
    let (&(cause, culprit), &most) = late.causes.iter().max_by_key(|(_, ns)| **ns).filter(|(_, ns)| **ns > 0)?;
    if cause != late.rank || waits_itself(culprit) {
        return None;
    }
    let positive: Ns = late.causes.values().filter(|ns| **ns > 0).sum();
    let layer = if culprit.layer() == Layer::Measurement { Layer::Runtime } else { culprit.layer() };
    let steps = class.steady.max(1) as Ns;
    let excess =
        Excess::of(analysis, &group.ranks, late.rank, class, |b| b.layer() == culprit.layer() && !waits_itself(b));
    let removes = (late.alone / steps).min(excess.total).max(0);
    let change = Intervention { removes, layer, edits: excess.edits(rank, class) };
    let share = group.share_of(late);
    let trigger = Trigger {
        formula: Text::new("waits for the rank / waits of its group", "等待该 rank 的时间 / 该组全部等待时间"),
        value: share,
        threshold: group.blame_share(),
    };
    let claim = Message::new(
        Text::new(
            "The others wait for rank {rank}: {share} of the waiting in {class} is for it, {wait} per step and waiting rank; it spends longer on {bucket}.",
            "其他 rank 在等待 rank {rank}：{class} 中 {share} 的等待由它造成，每个等待的 rank 每步 {wait}；它在 {bucket} 上多花了时间。",
        ),
        [
            ("rank", Value::Count(u64::from(rank.rank))),
            ("share", Value::Share(share)),
            ("class", Value::Raw(class.key.clone())),
            ("wait", Value::Ns(late.wait / steps / (group.ranks.len().max(2) as Ns - 1))),
            ("bucket", Value::Raw(culprit.name(&analysis.host_labels))),
        ],
    );
    let mut finding = cx
        .finding(&DOC, rank, class, claim, trigger, change)
        .with(Evidence::new(
            Text::new("waits of the other ranks for it, all steps that count", "其他 rank 对它的等待（全部采用的步）"),
            Value::Ns(late.wait),
            late.rows.iter().map(|(_, slice)| *slice).collect(),
        ))
        .with(Evidence::new(
            Text::new(
                "collectives that hold most of the waiting and in which it was last",
                "占大部分等待且它最后到达的集合通信",
            ),
            Value::Count(late.instances as u64),
            Vec::new(),
        ))
        .with(Evidence {
            what: Message::new(
                Text::new("{bucket}: part of what it spends longer on", "{bucket}：在其多花时间中的占比"),
                [("bucket", Value::Raw(culprit.name(&analysis.host_labels)))],
            ),
            value: Value::Share(most as f64 / positive.max(1) as f64),
            rows: Vec::new(),
        })
        .against(Competing::refuted(
            Text::new("the link between the ranks is slow", "rank 之间的链路慢"),
            Text::new(
                "a slow link delays every rank, the last one too; here the last one does not wait",
                "链路慢会拖慢包括最后到达者在内的每个 rank；这里最后到达者没有等待",
            ),
        ));
    if matches!(culprit, Bucket::Compute(_)) {
        finding = finding.against(Competing::open(
            Text::new("the rank has more work: more tokens, a larger batch", "该 rank 的工作更多：token 更多、批更大"),
            Text::new(
                "tokens and batch of each rank decide; clocks and temperature tell a throttled device",
                "各 rank 的 token 数与批大小可以判定；频率与温度可识别降频的设备",
            ),
        ));
    }
    finding.layer = layer;
    let doubtful = doubt(analysis, late.rank) > DOUBT || culprit.layer() == Layer::Measurement;
    finding
        .gated(if doubtful { Confidence::Low } else { Confidence::High })
        .filter(|f| f.estimate.max_gain_share() >= LEAST_GAIN)
}

/// The same of a rank of which nothing but its collectives was recorded: that the others wait for it is known, and what it did
/// instead is not. The steps are those of the first rank that waits for it.
fn blame_unseen(cx: &Context<'_>, group: &Waiting, late: &Late) -> Option<Finding> {
    let rank = cx.analysis.ranks.get(late.rank)?;
    let waits = |(index, own, _): &(usize, &Rank, &Class)| {
        *index != late.rank && group.ranks.contains(index) && !own.timeline.collectives_only
    };
    let (_, waiting, class) = late::counted(cx).find(waits)?;
    let steps = class.steady.max(1) as Ns;
    let share = group.share_of(late);
    let change = Intervention { removes: late.alone / steps, layer: Layer::Communication, edits: Vec::new() };
    let trigger = Trigger {
        formula: Text::new("waits for the rank / waits of its group", "等待该 rank 的时间 / 该组全部等待时间"),
        value: share,
        threshold: group.blame_share(),
    };
    let claim = Message::new(
        Text::new(
            "The others wait for rank {rank}: {share} of the waiting in {class} is for it, {wait} per step and waiting rank; what it did instead was not recorded, only its collectives were.",
            "其他 rank 在等待 rank {rank}：{class} 中 {share} 的等待由它造成，每个等待的 rank 每步 {wait}；该 rank 仅记录了集合通信，没有记录它在此期间做了什么。",
        ),
        [
            ("rank", Value::Count(u64::from(rank.rank))),
            ("share", Value::Share(share)),
            ("class", Value::Raw(class.key.clone())),
            ("wait", Value::Ns(late.wait / steps / (group.ranks.len().max(2) as Ns - 1))),
        ],
    );
    let finding = cx
        .finding(&DOC, waiting, class, claim, trigger, change)
        .with(Evidence::new(
            Text::new("waits of the other ranks for it, all steps that count", "其他 rank 对它的等待（全部采用的步）"),
            Value::Ns(late.wait),
            late.rows.iter().map(|(_, slice)| *slice).collect(),
        ))
        .against(Competing::open(
            Text::new("its device computes longer, or its host is late", "其设备计算更久，或其主机下发更晚"),
            Text::new(
                "kernels and host calls of that rank decide: capture it as the others",
                "该 rank 的内核与主机调用可以判定：请像其他 rank 一样采集",
            ),
        ));
    finding.gated(Confidence::Low).filter(|f| f.estimate.max_gain_share() >= LEAST_GAIN)
}

/// Share of the waits for a rank in which the ranks left too far apart.
fn doubt(analysis: &Analysis, late: usize) -> f64 {
    let waits = || analysis.job.waits.iter().filter(|w| w.late == late && !w.causes.is_empty());
    waits().filter(|w| w.is_skewed()).count() as f64 / waits().count().max(1) as f64
}
