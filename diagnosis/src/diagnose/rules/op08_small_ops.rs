//! OP-08: the step is a storm of operations too short to be worth a launch.

use model::EvidenceClass::Device;

use super::{ceilings::Ceilings, gate::recurring, reading};
use crate::{
    analysis::{Bucket, Class, Confidence, DeviceOp, Edit, GraphMode, Layer, OpKind, Rank, Step},
    diagnose::{
        Competing, Evidence, Intervention, Trigger,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::OpClass,
};

/// An operation below this is small on every device, ns (TraceLens, KernelPro).
const SMALL: i64 = 10_000;
/// One below so many times the floor of its device is small whatever it takes.
const FLOORS: i64 = 3;
/// Share of the operations that must be small.
const COUNT: f64 = 0.50;
/// Share of the step in small operations and the device's own gaps before them.
const SHARE: f64 = 0.15;
/// Share of the operations that must be small and elementary. A fused decode step has short operations too (norms, rotary
/// embedding, cache writes), and a lone addition in a layer is no storm: what counts is the excess over the operators that
/// a step consists of.
const EXCESS: f64 = 0.20;

/// The rule.
pub struct SmallOps;

static DOC: Doc = Doc {
    id: "OP-08",
    title: Text::new("Small-operation storm", "小算子风暴"),
    layer: Layer::Operator,
    needs: &[Device],
    advice: Advice::Device,
    relations: Relations { yields_to: &["OP-03", "OP-04", "OP-05", "OP-06", "OP-17"], ..Relations::NONE },
    sees: Text::new(
        "Most operations of the step are shorter than the device needs to start and finish any work, and many of them are elementary arithmetic that no fused operator has taken in.",
        "步内多数算子短到接近设备启停任何工作的下限，且其中许多是未被任何融合算子吸收的基本运算。",
    ),
    matters: Text::new(
        "A short operation costs its floor, not its work. Fused with its neighbours, most of the floors disappear.",
        "短算子付的是启停下限而不是工作量。与相邻算子融合后，大部分下限消失。",
    ),
    trigger: Text::new(
        "More than 50 % of the compute operations shorter than 10 µs, and their time with the device's own gaps before them at least 15 % of the mean step; and at least 20 % of the compute operations both that short and elementary (elementwise arithmetic or fills). Where a probe measured the floor of the device, the limit is the larger of 10 µs and three times that floor.",
        "超过 50% 的计算算子短于 10 µs，且它们的时间与其前设备自身间隙合计至少占平均步时的 15%；并且至少 20% 的计算算子既短于 10 µs 又属基本运算（逐元素运算或填充）。若探针实测了设备下限，则限值取 10 µs 与三倍下限中较大者。",
    ),
    source: Text::new(
        "10 µs: short kernels of TraceLens and KernelPro. 50 %: the tiny flag of kernel-roofline tools. 15 % and 20 %: own values.",
        "10 µs：TraceLens 与 KernelPro 的短内核标准。50%：kernel-roofline 工具的 tiny 标记。15% 与 20%：自定值。",
    ),
    guards: Text::new(
        "Idle time that the host causes belongs to RT-14 and is not counted. In a full graph the cost is the operations and node gaps alone, and a graph is no remedy. Runs of small operations keep their longest member. What an operation of unknown name does nobody can tell: where the storm would be one only with those, the rule abstains.",
        "由主机造成的空闲归 RT-14，不计入。在整图中代价只有算子与节点间隙，图执行不是补救手段。一串小算子保留其中最长者。名称未知的算子做什么无从得知：若仅在计入它们时才构成风暴，则不作判断。",
    ),
    verify: Text::new(
        "Fuse or compile: fewer kernels per layer, and the step shortens by what the fused ones no longer take.",
        "融合或编译：每层内核数减少，步时相应缩短。",
    ),
};

impl Rule for SmallOps {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let (mut found, mut unnamed) = (Vec::new(), false);
        for (rank, class) in cx.main_classes() {
            let ceilings = Ceilings::of(cx, rank);
            let floor = ceilings.floor();
            let limit = floor.map_or(SMALL, |floor| SMALL.max(FLOORS.saturating_mul(floor)));
            let storm = |counts: fn(&Storm) -> usize| {
                recurring(rank, class, SHARE, |s| {
                    let storm = storm(rank, s, limit);
                    let many = storm.small as f64 > COUNT * storm.all as f64;
                    if many && counts(&storm) as f64 >= EXCESS * storm.all as f64 { storm.time } else { 0 }
                })
            };
            let Some(cost) = storm(|s| s.elementary) else {
                unnamed |= storm(|s| s.elementary + s.unnamed).is_some();
                continue;
            };
            let sums =
                rank.steady_steps(class).map(|s| self::storm(rank, s, limit)).fold(Storm::default(), Storm::plus);
            let steps = class.steady.max(1);
            let trigger = Trigger {
                formula: Text::new(
                    "time of small operations with the device's gaps before them / mean step",
                    "小算子及其之前设备间隙的时间 / 平均步时",
                ),
                value: cost.share,
                threshold: SHARE,
            };
            let claim = Message::new(
                Text::new(
                    "{small} of {all} operations per step of {class} are shorter than {limit}; with the device's gaps before them they take {time} of {step} ({share}).",
                    "{class} 每步 {all} 个算子中有 {small} 个短于 {limit}；连同其前的设备间隙耗时 {time}，步时 {step}（{share}）。",
                ),
                [
                    ("class", Value::Raw(class.key.clone())),
                    ("limit", Value::Ns(limit)),
                    ("small", Value::Count((sums.small / steps) as u64)),
                    ("all", Value::Count((sums.all / steps) as u64)),
                    ("time", Value::Ns(cost.per_step)),
                    ("step", Value::Ns(class.mean())),
                    ("share", Value::Share(cost.share)),
                ],
            );
            let change = Intervention {
                removes: sums.fusible / steps as i64,
                layer: Layer::Operator,
                edits: fused(rank, class, limit),
            };
            let rows = rank
                .steady_steps(class)
                .flat_map(|s| rank.ops_of(s))
                .filter(|op| op.kind == OpKind::Compute && op.dur() < limit);
            let graph = Text::new("launching is the cost, and a graph removes it", "代价在下发，图执行可消除");
            let rival = if class.graph == GraphMode::Full {
                Competing::refuted(graph, Text::new("the step is one graph replay already", "该步已是一次整图重放"))
            } else {
                Competing::open(
                    graph,
                    Text::new(
                        "RT-14 looks at the launches; a run with graphs decides",
                        "RT-14 检查下发；开启图执行再跑可以判定",
                    ),
                )
            };
            let finding = cx
                .finding(&DOC, rank, class, claim, trigger, change)
                .with(Evidence::new(
                    Text::new("share of the operations that are small", "小算子占比"),
                    Value::Share(sums.small as f64 / sums.all.max(1) as f64),
                    reading::sample(rows.map(|op| op.slice)),
                ))
                .with(Evidence::new(
                    Text::new("share of the operations that are small and elementary", "既短又属基本运算的算子占比"),
                    Value::Share(sums.elementary as f64 / sums.all.max(1) as f64),
                    Vec::new(),
                ))
                .with(Evidence::new(
                    Text::new(
                        "saved per step if every run of neighbouring small operations were one operation",
                        "若每串小算子合为一个，每步可省",
                    ),
                    Value::Ns(sums.fusible / steps as i64),
                    Vec::new(),
                ))
                .against(rival);
            let finding = match floor {
                Some(floor) => finding.with(Evidence::new(
                    Text::new("floor of an operation, measured by a probe", "单个算子的下限（探针实测）"),
                    Value::Ns(floor),
                    Vec::new(),
                )),
                None => finding,
            };
            // Where nobody probed the floor of the device, 10 µs may be above or below it.
            let most = if floor.is_some() { Confidence::High } else { Confidence::Medium };
            found.extend(finding.gated(cost.most.min(most)));
        }
        if found.is_empty() && unnamed {
            return Outcome::Abstain(Message::plain(Text::new(
                "most operations are short, but their names do not say what they do; add the kernels' names to a platform pack",
                "多数算子很短，但其名称不能说明它们做什么；请把这些内核名加入平台知识包",
            )));
        }
        found.into_iter().collect()
    }
}

/// Small operations of a step or of several.
#[derive(Default)]
struct Storm {
    small: usize,
    /// Those of the small ones that are elementary.
    elementary: usize,
    /// Those of the small ones whose name no pack knows.
    unnamed: usize,
    all: usize,
    /// Time of the small operations and of the device's gaps before them, ns.
    time: i64,
    /// The same without the longest operation of each run, ns.
    fusible: i64,
}

impl Storm {
    fn plus(self, other: Self) -> Self {
        Self {
            small: self.small + other.small,
            elementary: self.elementary + other.elementary,
            unnamed: self.unnamed + other.unnamed,
            all: self.all + other.all,
            time: self.time + other.time,
            fusible: self.fusible + other.fusible,
        }
    }
}

fn storm(rank: &Rank, step: &Step, limit: i64) -> Storm {
    let own = |b: Bucket| matches!(b, Bucket::GraphInternal | Bucket::Dispatch);
    let mut gaps = reading::gaps(rank, step).iter().peekable();
    let mut storm = Storm::default();
    let (mut run, mut longest) = (0, 0);
    for (i, op, x) in reading::accounted(rank, step).filter(|(_, op, _)| op.kind == OpKind::Compute) {
        storm.all += 1;
        // Gaps and operations are both in time order.
        while gaps.next_if(|g| g.owner.is_none_or(|o| (o as usize) < i)).is_some() {}
        let gap = gaps
            .next_if(|g| g.owner == Some(i as u32))
            .map_or(0, |g| g.parts.iter().filter(|(b, _)| own(*b)).map(|(_, s)| s.len()).sum::<i64>());
        if op.dur() < limit {
            storm.small += 1;
            storm.elementary += usize::from(elementary(op, limit));
            storm.unnamed += usize::from(op.op.class() == OpClass::Other);
            storm.time += x.busy + gap;
            run += x.busy + gap;
            longest = longest.max(x.busy + gap);
        } else {
            storm.fusible += run - longest;
            (run, longest) = (0, 0);
        }
    }
    storm.fusible += run - longest;
    storm
}

/// Whether an operation is small and elementary arithmetic; what has a name of its own, such as a norm, is fused already.
fn elementary(op: &DeviceOp, limit: i64) -> bool {
    op.dur() < limit && matches!(op.op.class(), OpClass::Elementwise | OpClass::Fill)
}

/// Every run of neighbouring elementary small operations becomes one that takes as long as its longest; hopefully the
/// kernels beside it take it in altogether.
fn fused(rank: &Rank, class: &Class, limit: i64) -> Vec<Edit> {
    let mut runs: Vec<Vec<u32>> = Vec::new();
    for step in rank.steady_steps(class) {
        let mut open = false;
        for (i, op, _) in reading::accounted(rank, step).filter(|(_, op, _)| op.kind == OpKind::Compute) {
            let small = elementary(op, limit);
            match runs.last_mut().filter(|_| open && small) {
                Some(run) => run.push(i as u32),
                None if small => runs.push(vec![i as u32]),
                None => {}
            }
            open = small;
        }
    }
    let longest = |group: &[u32]| {
        let durations = group.iter().filter_map(|o| rank.timeline.ops.get(*o as usize)).map(DeviceOp::dur);
        (group.to_vec(), durations.max().unwrap_or(0))
    };
    let single = runs.iter().filter(|run| run.len() > 1).map(|run| longest(run)).collect();
    vec![Edit::Fuse(single), Edit::Hoped(Box::new(Edit::Remove(runs.concat())))]
}
