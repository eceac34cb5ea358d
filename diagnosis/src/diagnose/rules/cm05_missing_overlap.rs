//! CM-05: a transfer is exposed although independent work of another queue was still to come, or was done before it.

use model::{
    Area,
    EvidenceClass::{Correlation, Device, HostApi},
    Ns,
};

use super::{
    beside::Beside,
    exposed::{Exposed, Saying},
    reading,
};
use crate::{
    analysis::{Bucket, Class, Confidence, DeviceOp, Edit, Layer, OpKind, Rank, Step},
    diagnose::{
        Competing, Evidence, Finding, Intervention,
        estimate::LEAST_GAIN,
        relations::{Advice, Feeds, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::HostCall,
};

/// Share of the step; the limit of TraceLens for exposed communication.
const SHARE: f64 = 0.05;
/// Part of the exposed transfers that the independent work could hide; rule catalogue.
const PART: f64 = 0.5;
/// Operations after a transfer among which independent work is looked for.
const AHEAD: usize = 64;

/// The rule.
pub struct MissingOverlap;

static DOC: Doc = Doc {
    id: "CM-05",
    title: Text::new("Missing overlap of communication", "通信未重叠"),
    layer: Layer::Communication,
    needs: &[Device, HostApi, Correlation],
    advice: Advice::Device,
    relations: Relations { board: &[Feeds::Area(Area::Communication)], ..Relations::NONE },
    sees: Text::new(
        "A transfer runs with no computation beside it, and another queue computes afterwards what did not depend on that transfer; or a kernel runs before a collective that in another place of the same steps runs beside one.",
        "某次传输期间没有计算与之并行，而另一队列随后执行的计算并不依赖该传输；或者某内核在集合通信之前执行，而在同一步的另一处却与集合通信并行。",
    ),
    matters: Text::new(
        "Independent work such as a shared expert can hide a transfer for nothing, if it is launched before it.",
        "共享专家之类的独立计算只要先于传输下发，就能无代价地掩盖传输。",
    ),
    trigger: Text::new(
        "Exposed transfers that independent computation of the same step could hide at least 5 % of the mean step, and at least half of all exposed transfers. A computation is independent if it runs on another queue after the transfer, that queue had nothing to do since before the transfer began, and no event recorded after the launch of the transfer was waited for on the way. Or at least 1 % of the mean step that kernels take directly before an exposed collective, after the matrix product that it needs, while the same kernel, as long within a quarter, runs beside another collective of the steps.",
        "可被同一步独立计算掩盖的暴露传输至少占平均步时的 5%，且至少占全部暴露传输的一半。独立计算指：在另一队列上于传输之后执行，该队列自传输开始前就已空闲，且其间没有等待过传输下发之后记录的事件。或者：在集合通信所需的矩阵乘之后、紧接暴露的集合通信之前执行的内核至少占平均步时的 1%，而同一内核（时长相差不超过四分之一）在这些步的其他集合通信旁并行执行。",
    ),
    source: Text::new(
        "5 %: exposed communication of TraceLens. Half: rule catalogue. 1 %: common gate. A quarter: own value.",
        "5%：TraceLens 的暴露通信阈值。一半：规则目录。1%：共同门限。四分之一：自定值。",
    ),
    guards: Text::new(
        "Work of one queue and work inside a graph may depend on the transfer, or the transfer on it, and nothing in a capture says otherwise: it counts only where the same kernel runs beside a collective elsewhere. Where nothing ever computes beside a collective and the transfers are at least 5 % of the step, the rule abstains.",
        "同一队列上或图内的计算可能依赖该传输，或为该传输所依赖，采集无法证明其独立：仅当同一内核在别处与集合通信并行时才计入。若从无计算与集合通信并行，而传输至少占步时的 5%，则本规则弃权。",
    ),
    verify: Text::new(
        "Launch the independent work before the transfer: the hidden time of computation over transfer grows, and the step shrinks.",
        "让独立计算先于传输下发：计算掩盖传输的时间增加，步时缩短。",
    ),
};

impl Rule for MissingOverlap {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let (mut found, mut unknown) = (Vec::new(), false);
        for (rank, class) in cx.main_classes() {
            let beside = Beside::of(rank, class);
            let comm = class.per_step(|b| matches!(b, Bucket::CommTransfer));
            unknown |= !beside.overlaps && comm as f64 >= SHARE * class.mean() as f64;
            let several = rank.timeline.queues.len() > 1;
            let late = several.then(|| exposed(cx, rank, class)).flatten();
            found.extend(late.or_else(|| serial(cx, rank, class, &beside)));
        }
        if found.is_empty() && unknown {
            Outcome::Abstain(Message::plain(UNKNOWN))
        } else {
            found.into_iter().collect()
        }
    }
}

/// Why the rule cannot tell.
const UNKNOWN: Text = Text::new(
    "nothing computes beside a collective, and a capture does not record what an operation reads: whether work beside the transfers is independent of them, the model's code says",
    "没有计算与集合通信并行，而采集不记录算子读取什么：传输前后的计算是否与其无关，只能由模型代码判定",
);

/// Work before collectives that runs beside one elsewhere.
fn serial(cx: &Context<'_>, rank: &Rank, class: &Class, beside: &Beside) -> Option<Finding> {
    let dur = |o: u32| rank.timeline.ops.get(o as usize).map(DeviceOp::dur);
    let edits = || beside.serial.iter().filter_map(|s| Some((s.work, dur(s.work)? - s.hidden))).collect();
    let claim = Text::new(
        "{n} kernels of {class} run before a collective although the same kernel runs beside one elsewhere in these steps; beside it they would hide {idle} of {step} ({share}).",
        "{class} 中有 {n} 个内核在集合通信之前执行，而同一内核在这些步的别处与集合通信并行；若并行可掩盖 {idle}，步时 {step}（{share}）。",
    );
    let (finding, cost) = Exposed { cx, doc: &DOC, rank, class }.recurring(
        LEAST_GAIN,
        |step| beside.hidden(step),
        |cost| Saying {
            formula: Text::new(
                "time that kernels before collectives would hide beside them / mean step",
                "集合通信之前的内核改为并行可掩盖的时间 / 平均步时",
            ),
            claim,
            more: vec![("n", Value::Count(beside.serial.len() as u64))],
            change: Intervention {
                removes: cost.per_step,
                layer: Layer::Communication,
                edits: vec![Edit::Resize(edits())],
            },
        },
    )?;
    let slices = |pick: fn(&super::beside::Serial) -> u32| {
        let ops = beside.serial.iter().filter_map(|s| rank.timeline.ops.get(pick(s) as usize));
        reading::sample(ops.map(|op| op.slice))
    };
    finding
        .with(Evidence::new(
            Text::new("time per step that would be hidden", "每步可被掩盖的时间"),
            Value::Ns(cost.per_step),
            slices(|s| s.work),
        ))
        .with(Evidence::new(
            Text::new("collectives that they run before", "它们之后的集合通信数"),
            Value::Count(beside.serial.len() as u64),
            slices(|s| s.collective),
        ))
        .against(Competing::open(
            Text::new("here the collective needs this kernel", "此处集合通信依赖该内核"),
            Text::new("the model's code decides what the collective sends", "集合通信发送的内容由模型代码判定"),
        ))
        .gated(cost.most.min(Confidence::Medium))
}

/// Transfers of a step that independent work could hide: the time, the transfers, and that work.
#[derive(Default)]
struct Slack {
    hidden: Ns,
    transfers: Vec<u32>,
    work: Vec<u32>,
}

fn exposed(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Finding> {
    let all = class.per_step(|b| matches!(b, Bucket::CommTransfer | Bucket::CommWait));
    let found: Vec<Slack> = rank.steady_steps(class).map(|s| slack(rank, s)).collect();
    let mean = found.iter().map(|s| s.hidden).sum::<Ns>() / found.len().max(1) as Ns;
    if all == 0 || (mean as f64) < PART * all as f64 {
        return None;
    }
    let work = || found.iter().flat_map(|s| s.work.iter().copied());
    let claim = Text::new(
        "Transfers of {class} are exposed for {all} per step while independent work of another queue comes later; launched first, it could hide {idle} of {step} ({share}).",
        "{class} 每步暴露的传输为 {all}，而另一队列上的独立计算在其后才执行；若先下发，可掩盖 {idle}，步时 {step}（{share}）。",
    );
    let (finding, cost) = Exposed { cx, doc: &DOC, rank, class }.recurring(
        SHARE,
        |s| slack(rank, s).hidden,
        |cost| Saying {
            formula: Text::new(
                "exposed transfer that independent work could hide / mean step",
                "独立计算可掩盖的暴露传输 / 平均步时",
            ),
            claim,
            more: vec![("all", Value::Ns(all))],
            change: Intervention {
                removes: cost.per_step,
                layer: Layer::Communication,
                edits: vec![Edit::Aside(work().collect())],
            },
        },
    )?;
    let slices = |ops: &mut dyn Iterator<Item = u32>| {
        reading::sample(ops.filter_map(|i| rank.timeline.ops.get(i as usize)).map(|op| op.slice))
    };
    finding
        .with(Evidence::new(
            Text::new("exposed transfer per step that could be hidden", "每步可被掩盖的暴露传输"),
            Value::Ns(cost.per_step),
            slices(&mut found.iter().flat_map(|s| s.transfers.iter().copied())),
        ))
        .with(Evidence::new(
            Text::new("independent operations that run after the transfers", "在传输之后执行的独立算子数"),
            Value::Count(work().count() as u64),
            slices(&mut work()),
        ))
        .against(Competing::open(
            Text::new("side by side both would be slower", "并行时两者都会变慢"),
            Text::new(
                "a run with the work launched before the transfer decides",
                "让该计算先于传输下发再跑一次可以判定",
            ),
        ))
        .gated(cost.most.min(Confidence::Medium))
}

fn slack(rank: &Rank, step: &Step) -> Slack {
    let mut out = Slack::default();
    let mut used = step.ops.start;
    for (i, transfer, exclusive) in reading::accounted(rank, step).filter(|(_, op, _)| op.kind == OpKind::Comm) {
        let exposed = exclusive.busy;
        if exposed == 0 || transfer.in_graph || i < used {
            continue;
        }
        let mut hides = 0;
        let after = rank.timeline.ops.get(i + 1..step.ops.end).unwrap_or(&[]);
        for (ahead, op) in after.iter().enumerate().take(AHEAD) {
            // What comes after the next transfer may be needed for it.
            if op.kind == OpKind::Comm || hides >= exposed {
                break;
            }
            if is_independent(rank, (i, transfer), (i + 1 + ahead, op)) {
                hides += op.dur();
                out.work.push((i + 1 + ahead) as u32);
                used = i + 1 + ahead;
            }
        }
        if hides > 0 {
            out.hidden += hides.min(exposed);
            out.transfers.push(i as u32);
        }
    }
    out
}

/// Whether an operation that starts after a transfer ends could have run beside it.
fn is_independent(rank: &Rank, (i, transfer): (usize, &DeviceOp), (j, op): (usize, &DeviceOp)) -> bool {
    if op.kind != OpKind::Compute || op.in_graph || op.queue == transfer.queue || op.start < transfer.end {
        return false;
    }
    let (Some(moves), Some(computes)) = (rank.timeline.call(transfer), rank.timeline.call(op)) else { return false };
    // The queue's last operation had ended before the transfer began: nothing of that queue was in the way.
    let between = rank.timeline.ops.get(i + 1..j).unwrap_or(&[]);
    if between.iter().any(|o| o.queue == op.queue) {
        return false;
    }
    let before = rank.timeline.ops.get(..i).unwrap_or(&[]).iter().rev().take(256).find(|o| o.queue == op.queue);
    let Some(before) = before.filter(|o| o.end <= transfer.start) else { return false };
    let Some(previous) = rank.timeline.call(before) else { return false };
    // An event recorded before the transfer was launched cannot stand for its end.
    let calls = || rank.timeline.calls_between(moves.start, computes.start).iter();
    let recorded = calls().any(|c| c.kind == HostCall::EventRecord);
    let waited =
        rank.timeline.calls_between(previous.end, computes.start).iter().any(|c| c.kind == HostCall::StreamWaitEvent);
    // A host that waited, or asked for the end, may have let the work go only then.
    let synchronised = calls().any(|c| c.blocking || c.kind == HostCall::Query);
    let tied = recorded && waited;
    !synchronised && !tied
}
