//! CM-14: a rank waits inside collectives for a rank that is not in the capture.

use model::{Area, EvidenceClass, Ns};

use super::{gate, reading};
use crate::{
    analysis::{Bucket, Class, Confidence, Edit, Layer, OpKind, Rank, Step, job::Wait},
    diagnose::{
        Competing, Evidence, Finding, Intervention, Trigger,
        relations::{Advice, Feeds, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of the mean step that is waited, as in CM-12 (method §5.3).
const SHARE: f64 = 0.05;

/// The rule.
pub struct RecordedWait;

static DOC: Doc = Doc {
    id: "CM-14",
    title: Text::new("Exposed waits for a rank outside the capture", "暴露的等待：等待采集之外的 rank"),
    layer: Layer::Communication,
    needs: &[EvidenceClass::Device],
    advice: Advice::Device,
    relations: Relations { board: &[Feeds::Area(Area::Communication)], ..Relations::NONE },
    sees: Text::new(
        "The profiler recorded the waits inside collectives. The rank waited for longest is not in the capture: it is named, or even the last of the captured ranks waits. So what it did meanwhile is not known.",
        "采集工具记录了集合通信内部的等待。等待最久的 rank 不在采集中：记录中指明了它，或者连最后到达的已采集 rank 也在等待。因此不知道它当时在做什么。",
    ),
    matters: Text::new(
        "No compute hides this time: the step is longer by all of it. The wait shows here, its cause lies on the other rank.",
        "这段时间没有计算可以掩盖，步时因此全额变长。等待出现在这里，原因在另一个 rank 上。",
    ),
    trigger: Text::new(
        "Waits of collectives that nothing hides are at least 5 % of the mean step, and the rank waited for longest is not in the capture; where ranks are not named, what the last captured rank waits too.",
        "未被掩盖的集合通信等待至少占平均步时的 5%，且等待最久的 rank 不在采集中；未指明 rank 时，取最后到达的已采集 rank 也在等待的部分。",
    ),
    source: Text::new(
        "5 %: as for waits between captured ranks. Ascend's profiler records a notify wait with the rank at its other end.",
        "5%：与已采集 rank 间等待的阈值相同。Ascend 采集工具记录每次 notify 等待及其对端 rank。",
    ),
    guards: Text::new(
        "Silent where the source records no waits inside collectives, and where the rank waited for is in the capture: then its own rows tell what it spent the time on. A rank waited for may itself wait for another one, or the link to it may be slow: only its own capture decides.",
        "若数据源不记录集合通信内部的等待，或被等待的 rank 在采集中，则不报告；后者由其自身记录说明时间去向。被等待的 rank 可能也在等待别的 rank，或者到它的链路慢：只有它自己的采集可以判定。",
    ),
    verify: Text::new(
        "Capture the rank that was waited for together with this one, and diagnose both as one job: what it spent longer on is then named.",
        "将被等待的 rank 与本 rank 一起采集，并作为一个作业诊断：届时会指出它多花的时间在哪里。",
    ),
};

impl Rule for RecordedWait {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let found = cx.main_classes().filter_map(|(rank, class)| wait(cx, rank, class));
        found.max_by(|a, b| a.trigger.value.total_cmp(&b.trigger.value)).into_iter().collect()
    }
}

fn wait(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let ranks = &cx.analysis.ranks;
    let exposed = |step: &crate::analysis::Step| -> Ns {
        step.buckets.iter().filter(|(bucket, _)| *bucket == Bucket::CommWait).map(|(_, ns)| *ns).sum()
    };
    let peers = &rank.collectives.notified.peers;
    let longest = peers.iter().max_by_key(|(_, ns)| **ns).map(|(peer, ns)| (*peer, *ns));
    let told = !rank.collectives.notified.transfer.is_empty();
    let (cost, claim) = match longest {
        Some((peer, _)) if ranks.iter().any(|r| r.rank == peer) => return None,
        Some((peer, _)) => {
            let cost = gate::recurring(rank, class, SHARE, exposed)?;
            (cost, claim(FOR_PEER, rank, class, &cost, Some(peer)))
        }
        // The last to arrive waits for nobody that is here.
        None if told && ranks.len() > 1 => {
            let cost = gate::recurring(rank, class, SHARE, |step| common(cx, rank, step))?;
            (cost, claim(FOR_NOBODY_HERE, rank, class, &cost, None))
        }
        None if told => {
            let cost = gate::recurring(rank, class, SHARE, exposed)?;
            (cost, claim(ALONE, rank, class, &cost, None))
        }
        None => return None,
    };
    let trigger = Trigger {
        formula: Text::new("exposed waits of collectives / mean step", "未被掩盖的集合通信等待 / 平均步时"),
        value: cost.share,
        threshold: SHARE,
    };
    let change = Intervention { removes: cost.per_step, layer: Layer::Communication, edits: vec![alone(rank, class)] };
    let waiting = rank.timeline.ops.iter().filter(|op| op.kind == OpKind::Comm).map(|op| op.slice);
    let waited = match longest {
        Some((_, ns)) => {
            (Text::new("recorded waits for that rank, whole capture", "对该 rank 的等待记录（整个采集）"), ns)
        }
        None => (Text::new("recorded waits per step", "每步记录的等待"), cost.per_step),
    };
    let evidence = Evidence::new(waited.0, Value::Ns(waited.1), reading::sample(waiting));
    let mut finding = cx.finding(&DOC, rank, class, claim, trigger, change).with(evidence);
    let also = ranks.iter().filter(|r| r.rank != rank.rank);
    let also = also.filter_map(|r| r.collectives.notified.peers.get(&longest?.0));
    let others: Ns = also.max().copied().unwrap_or(0);
    if others > 0 {
        finding = finding.with(Evidence::new(
            Text::new(
                "recorded waits of another captured rank for the same one, whole capture, the most of any",
                "其他已采集 rank 对同一 rank 的等待记录总和（整个采集，取最大者）",
            ),
            Value::Ns(others),
            Vec::new(),
        ));
    }
    finding = finding.against(Competing::open(
        Text::new("the link to that rank is slow", "到该 rank 的链路慢"),
        Text::new(
            "a capture of that rank, or a bandwidth test of the pair, decides",
            "该 rank 的采集或该对的带宽测试可以判定",
        ),
    ));
    finding.ranks = ranks.iter().map(|r| r.rank).collect();
    // Ranks that meet wait for the same one, and without it none of them does.
    let also = cx.main_classes().filter(|(other, _)| other.rank != rank.rank);
    finding.changes.extend(also.map(|(other, class)| {
        let edits = vec![alone(other, class)];
        (other.rank, Intervention { removes: 0, layer: Layer::Communication, edits })
    }));
    finding.gated(cost.most.min(Confidence::Medium).max(Confidence::Low))
}

const FOR_PEER: Text = Text::new(
    "In {class}, rank {rank} waits {wait} of {step} ({share}) inside collectives that nothing hides, longest for rank {peer}, which is not in the capture.",
    "{class} 中，rank {rank} 在 {step} 里有 {wait}（{share}）处于未被掩盖的集合通信等待，等待最久的是不在采集中的 rank {peer}。",
);
const FOR_NOBODY_HERE: Text = Text::new(
    "In {class}, every captured rank waits inside collectives, the one that arrives last too: rank {rank} {wait} of {step} ({share}). What all of them wait for is not in the capture.",
    "{class} 中，每个已采集的 rank 都在集合通信内等待，最后到达者也不例外：rank {rank} 在 {step} 里等待 {wait}（{share}）。它们共同等待的对象不在采集中。",
);
const ALONE: Text = Text::new(
    "In {class}, rank {rank} waits {wait} of {step} ({share}) inside collectives that nothing hides; for which rank, the capture does not say, and no other one is in it.",
    "{class} 中，rank {rank} 在 {step} 里有 {wait}（{share}）处于未被掩盖的集合通信等待；采集未说明等待哪个 rank，且其中没有其他 rank。",
);

fn claim(text: Text, rank: &Rank, class: &Class, cost: &gate::Cost, peer: Option<u32>) -> Message {
    let values = [
        ("class", Value::Raw(class.key.clone())),
        ("rank", Value::Raw(rank.rank.to_string())),
        ("wait", Value::Ns(cost.per_step)),
        ("step", Value::Ns(class.mean())),
        ("share", Value::Share(cost.share)),
    ];
    Message::new(text, values.into_iter().chain(peer.map(|peer| ("peer", Value::Raw(peer.to_string())))))
}

/// What a rank waits in a step together with the one that arrives last, ns.
fn common(cx: &Context<'_>, rank: &Rank, step: &Step) -> Ns {
    let job = &cx.analysis.job;
    let Some(index) = cx.analysis.ranks.iter().position(|r| std::ptr::eq(r, rank)) else { return 0 };
    let last = |wait: &Wait| -> Option<Ns> {
        let member = job.instances.get(wait.instance)?.members.iter().find(|m| m.rank == wait.late)?;
        let at = member.op as usize;
        Some(job.waits_in(wait.late, &(at..at + 1)).iter().map(|own| own.ns).sum())
    };
    let of_last = |wait: &Wait| last(wait).unwrap_or(0);
    job.waits_in(index, &step.ops).iter().map(|wait| wait.exposed.min(of_last(wait))).sum()
}

/// Every collective takes what the source says it transferred, and waits for nobody.
fn alone(rank: &Rank, class: &Class) -> Edit {
    let ops = rank.steady_steps(class).flat_map(|step| step.ops.clone());
    let told = ops.filter_map(|i| {
        let op = rank.timeline.ops.get(i)?;
        Some((u32::try_from(i).ok()?, *rank.collectives.notified.transfer.get(&op.slice)?))
    });
    Edit::Alone(told.collect())
}
