//! CM-11: the host takes long to issue each collective.

use model::{
    Area,
    EvidenceClass::{Correlation, Device, HostApi},
    Span, TrackId,
};
use rustc_hash::FxHashMap;

use super::{gate::recurring, reading};
use crate::{
    analysis::{Bucket, Class, Edit, Layer, OpKind, Rank, idle::Gap},
    diagnose::{
        Competing, Evidence, Intervention, Trigger,
        relations::{Advice, Feeds, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of the step; own value.
const SHARE: f64 = 0.02;
/// How much longer the device must wait for a collective than for another launch; own value, so that a step that is
/// launch-bound altogether is not blamed on its collectives.
const SLOWER: f64 = 2.0;

/// The rule.
pub struct HostPerCollective;

static DOC: Doc = Doc {
    id: "CM-11",
    title: Text::new("Host cost per collective", "集合通信的主机开销"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi, Correlation],
    advice: Advice::Device,
    relations: Relations { board: &[Feeds::Area(Area::Communication)], ..Relations::NONE },
    sees: Text::new(
        "The device is idle before collectives, much longer than before other operations, because the host is still preparing the call.",
        "集合通信之前设备空闲，且明显长于其他算子之前，因为主机仍在准备该调用。",
    ),
    matters: Text::new(
        "The process-group layer of a framework costs tens of microseconds per call; decode makes two calls per layer.",
        "框架的进程组层每次调用要数十微秒；解码每层两次。",
    ),
    trigger: Text::new(
        "Idle time owned by collectives outside graphs and spent on the host at least 2 % of the mean step, and at least twice as long per collective as per other launched operation.",
        "图外集合通信之前由主机造成的空闲至少占平均步时的 2%，且单次至少为其他下发算子的两倍。",
    ),
    source: Text::new(
        "2 %: own value; PocketLLM #273 is a public case. Twice: own value.",
        "2%：自定值；公开案例 PocketLLM #273。两倍：自定值。",
    ),
    guards: Text::new(
        "Collectives inside a graph replay have no host cost. The wait for other ranks lies inside the collective and is not counted.",
        "图重放内的集合通信没有主机开销。等待其他 rank 的时间在通信内部，不计入。",
    ),
    verify: Text::new(
        "Capture the collectives into the graph, or batch them: the idle time before them disappears.",
        "把集合通信捕获进图或合并调用：其前的空闲消失。",
    ),
};

impl Rule for HostPerCollective {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let mut found = Vec::new();
        for (rank, class) in cx.main_classes() {
            let comm = before(rank, |kind| kind == OpKind::Comm);
            let Some(cost) = recurring(rank, class, SHARE, |s| reading::idle(rank, s, &comm)) else { continue };
            let collective = per_operation(rank, class, |kind| kind == OpKind::Comm);
            let other = per_operation(rank, class, |kind| kind == OpKind::Compute);
            if (collective as f64) < SLOWER * other as f64 {
                continue;
            }
            let trigger = Trigger {
                formula: Text::new("host idle before collectives / mean step", "集合通信之前的主机侧空闲 / 平均步时"),
                value: cost.share,
                threshold: SHARE,
            };
            let claim = Message::new(
                Text::new(
                    "Before each collective of {class} the device waits {each} for the host, {idle} of {step} in all ({share}).",
                    "{class} 每次集合通信前设备等待主机 {each}，合计 {idle}，步时 {step}（{share}）。",
                ),
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("each", Value::Ns(collective)),
                    ("idle", Value::Ns(cost.per_step)),
                    ("step", Value::Ns(class.mean())),
                    ("share", Value::Share(cost.share)),
                ],
            );
            let change = Intervention { removes: cost.per_step, layer: Layer::Runtime, edits: quicker(rank, class) };
            let finding = cx
                .finding(&DOC, rank, class, claim, trigger, change)
                .with(Evidence::new(
                    Text::new("host idle before a collective", "单次集合通信前的主机空闲"),
                    Value::Ns(collective),
                    reading::gap_rows(rank, rank.steady_steps(class), &comm),
                ))
                .with(Evidence::new(
                    Text::new("the same before another launched operation", "其他下发算子前的同类空闲"),
                    Value::Ns(other),
                    Vec::new(),
                ))
                .against(Competing::refuted(
                    Text::new("the whole forward pass is launch-bound", "整个前向都受下发限制"),
                    Text::new("other operations wait less than half as long", "其他算子的等待不到其一半"),
                ));
            found.extend(finding.gated(cost.most));
        }
        found.into_iter().collect()
    }
}

/// Idle that an operation of some kind outside graphs owns, on the host's side.
fn before(rank: &Rank, kind: impl Fn(OpKind) -> bool) -> impl Fn(&Gap, Bucket) -> bool {
    move |gap, bucket| {
        bucket.is_host_side()
            && !gap.between_steps
            && reading::owner(rank, gap).is_some_and(|op| !op.in_graph && kind(op.kind))
    }
}

/// Mean host idle before an operation of some kind outside graphs, ns; operations that waited for nothing count too.
fn per_operation(rank: &Rank, class: &Class, kind: impl Fn(OpKind) -> bool + Copy) -> i64 {
    let launched = |op: &&crate::analysis::DeviceOp| !op.in_graph && kind(op.kind);
    let count: usize = rank.steady_steps(class).map(|s| rank.ops_of(s).iter().filter(launched).count()).sum();
    let idle: i64 = rank.steady_steps(class).map(|s| reading::idle(rank, s, before(rank, kind))).sum();
    idle / count.max(1) as i64
}

/// The host takes no longer before a collective than before another launched operation (median of both).
fn quicker(rank: &Rank, class: &Class) -> Vec<Edit> {
    let mut latest: FxHashMap<TrackId, i64> = FxHashMap::default();
    let before: Vec<(TrackId, Span)> = (rank.timeline.calls.iter())
        .map(|call| {
            let since = latest.insert(call.track, call.end).map_or(call.start, |end| end.min(call.start));
            (call.track, Span::new(since, call.start))
        })
        .collect();
    let stretches = |kind: fn(OpKind) -> bool| {
        let ops = rank.steady_steps(class).flat_map(|s| rank.ops_of(s)).filter(move |op| !op.in_graph && kind(op.kind));
        let firsts = ops.filter(|op| op.first_of_call).filter_map(|op| op.call);
        firsts.filter_map(|c| before.get(c as usize).copied()).collect::<Vec<_>>()
    };
    let mut others: Vec<i64> = stretches(|k| k == OpKind::Compute).iter().map(|(_, span)| span.len()).collect();
    others.sort_unstable();
    let usual = others.get(others.len() / 2).copied().unwrap_or(0);
    let comm = stretches(|k| k == OpKind::Comm).into_iter();
    comm.map(|(track, span)| Edit::Host(track, vec![(span, span.len().min(usual))])).collect()
}
