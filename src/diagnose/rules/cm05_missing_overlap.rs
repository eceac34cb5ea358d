//! CM-05: a transfer is exposed although independent work of another queue was still to come.

use model::{
    EvidenceClass::{Correlation, Device, HostApi},
    Ns,
};

use super::{
    exposed::{Exposed, Saying},
    reading,
};
use crate::{
    analysis::{Bucket, Class, Confidence, DeviceOp, Edit, Layer, OpKind, Rank, Step},
    diagnose::{
        Competing, Evidence, Finding, Intervention,
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Text, Value},
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
    sees: Text::new(
        "A transfer runs with no computation beside it, and another queue computes afterwards what did not depend on that transfer.",
        "某次传输期间没有计算与之并行，而另一队列随后执行的计算并不依赖该传输。",
    ),
    matters: Text::new(
        "Independent work such as a shared expert can hide a transfer for nothing, if it is launched before it.",
        "共享专家之类的独立计算只要先于传输下发，就能无代价地掩盖传输。",
    ),
    trigger: Text::new(
        "Exposed transfers that independent computation of the same step could hide at least 5 % of the median step, and at least half of all exposed transfers. A computation is independent if it runs on another queue after the transfer, that queue had nothing to do since before the transfer began, and no event recorded after the launch of the transfer was waited for on the way.",
        "可被同一步独立计算掩盖的暴露传输至少占中位步时的 5%，且至少占全部暴露传输的一半。独立计算指：在另一队列上于传输之后执行，该队列自传输开始前就已空闲，且其间没有等待过传输下发之后记录的事件。",
    ),
    source: Text::new(
        "5 %: exposed communication of TraceLens. Half: rule catalogue.",
        "5%：TraceLens 的暴露通信阈值。一半：规则目录。",
    ),
    guards: Text::new(
        "Work of the same queue may depend on the transfer, and nothing in a capture says otherwise: it never counts. Operations inside graphs do not count. Overlap takes memory bandwidth and cores from both sides, so the gain is an upper bound.",
        "同一队列上的后续计算可能依赖该传输，采集无法证明其独立，因此不计入。图内的算子不计入。重叠会争用带宽与核，收益是上界。",
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
        cx.main_classes().filter(|(r, _)| r.timeline.queues.len() > 1).filter_map(|(r, c)| exposed(cx, r, c)).collect()
    }
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
                "exposed transfer that independent work could hide / median step",
                "独立计算可掩盖的暴露传输 / 中位步时",
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
