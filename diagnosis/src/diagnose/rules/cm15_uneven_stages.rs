//! CM-15: the stages of a pipeline compute for unequal times, and the others stand still for the slow one.

use std::collections::BTreeMap;

use model::{Area, EvidenceClass, Ns, Span, TrackId};

use super::{
    change, gate,
    stages::{self, Beyond, Member, Stage},
};
use crate::{
    analysis::{Call, Confidence, Edit, Layer, OpKind, Step},
    diagnose::{
        Competing, Evidence, Finding, Intervention, Trigger,
        relations::{Advice, Feeds, Relations, Role},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
    platform::CanonicalOp,
};

/// Compute of the slowest stage over the mean of the others, as between ranks of any job (NVIDIA triage guide).
const RATIO: f64 = 1.2;
/// Share of the mean step that a stage waits for its neighbours; own value, that of waits in general.
const SHARE: f64 = 0.05;
/// Layers of a stage over those of another from which the layers are uneven; own value: a layer more on fourteen is not.
const LAYERS: f64 = 1.15;

/// Calls looked back upon for the last one of a thread before a step.
const LOOKBACK: usize = 64;

/// The rule.
pub struct UnevenStages;

static DOC: Doc = Doc {
    id: "CM-15",
    title: Text::new("Uneven pipeline stages: a bubble in every step", "流水线阶段不均：每步都有气泡"),
    layer: Layer::Communication,
    needs: &[EvidenceClass::Device, EvidenceClass::MultiRank],
    advice: Advice::Host,
    relations: Relations {
        precedes: &["CM-01", "CM-12", "CM-14"],
        board: &[Feeds::Area(Area::Communication)],
        role: Some(Role::UnevenStages),
        ..Relations::NONE
    },
    sees: Text::new(
        "One stage of a pipeline computes longer than the others, which wait for what it sends or receives. What it computes beside the layers that all stages have, or how many more layers it has, is the reason.",
        "流水线的一个阶段比其他阶段计算更久，其他阶段等待它的收发。原因是它比其他阶段多出的层，或层之外的计算（输出层、损失、嵌入）。",
    ),
    matters: Text::new(
        "The slowest stage sets the pace of the pipeline; what the others wait for it is a bubble that no faster link removes.",
        "最慢的阶段决定流水线的节奏；其他阶段的等待是气泡，换更快的链路无法消除。",
    ),
    trigger: Text::new(
        "Between stages that send to each other the slowest computes at least 1.2 times the mean of the others, and another one waits for its neighbours for at least 5 % of the mean step.",
        "在互相收发的阶段中，最慢阶段的计算至少为其他阶段均值的 1.2 倍，且另有阶段等待相邻阶段至少占平均步时的 5%。",
    ),
    source: Text::new(
        "1.2: imbalance of ranks in NVIDIA's triage guide. 5 %: as for other waits. Partition of layers: Megatron-LM (first and last stage hold embedding and output layer), vLLM VLLM_PP_LAYER_PARTITION.",
        "1.2：NVIDIA 排查指南中 rank 间不均衡的界限。5%：与其他等待相同。层的划分：Megatron-LM（首末阶段含嵌入层与输出层）、vLLM VLLM_PP_LAYER_PARTITION。",
    ),
    guards: Text::new(
        "Silent where the stages compute alike: then the bubble is that of filling and draining the pipeline, which more micro-batches make smaller. A slow device makes a stage slow too: its kernels are then slower one by one, while here it has more of them or others.",
        "各阶段计算相当时不报告：此时气泡来自流水线的填充与排空，增加微批数可减小。设备慢也会使阶段变慢：那时同样的算子逐个变慢，而这里是算子更多或不同。",
    ),
    verify: Text::new(
        "Move layers from the slow stage to the others and capture all stages again: what they compute becomes alike and the waiting falls.",
        "将慢阶段的层移到其他阶段并重新采集所有阶段：各阶段的计算趋于一致，等待下降。",
    ),
};

impl Rule for UnevenStages {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn needs_steps(&self) -> bool {
        true
    }

    fn check(&self, cx: &Context<'_>) -> Outcome {
        let stages = stages::of(cx);
        uneven(cx, &stages).into_iter().collect()
    }
}

fn uneven(cx: &Context<'_>, stages: &[Stage<'_>]) -> Option<Finding> {
    let (at, slow) = stages.iter().enumerate().max_by_key(|(_, stage)| stage.compute())?;
    let others: Vec<&Stage<'_>> = stages.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, s)| s).collect();
    let mean = others.iter().map(|stage| stage.compute()).sum::<Ns>().checked_div(others.len() as Ns)?;
    let ratio = slow.compute() as f64 / mean.max(1) as f64;
    let (waiting, idle) = stages.iter().enumerate().max_by_key(|(_, stage)| stage.bubble())?;
    let waits = idle.recorded().or(idle.members.first())?;
    let in_pairs = |step: &Step| -> Ns {
        let waits = cx.analysis.job.waits_in(waits.index, &step.ops).iter();
        waits.filter(|wait| in_pair(cx, wait.instance)).map(|wait| wait.exposed).sum()
    };
    let cost = gate::recurring(waits.rank, waits.class, SHARE, in_pairs)?;
    let own = slow.recorded()?;
    if ratio < RATIO || waiting == at || mean == 0 {
        return None;
    }
    let fast = others.iter().filter_map(|stage| stage.recorded()).min_by_key(|member| member.compute);
    let beyond = fast.map(|fast| stages::beyond(own, fast)).unwrap_or_default();
    let even = stages.iter().map(Stage::compute).sum::<Ns>() / (stages.len().max(1) as Ns);
    let certain = moved(slow.compute(), even, &beyond, stages.len());
    let mut finding = said(cx, stages, (at, own), (waiting, &cost), ratio, &beyond);
    finding.changes = edits(stages, &beyond, (even, certain), slow.compute());
    let most = finding.changes.first().map(|(_, change)| change.removes);
    finding.estimate = crate::diagnose::estimate::of_class(
        &own.rank.workload(own.class),
        own.class,
        &Intervention { removes: most.unwrap_or(0), layer: Layer::Communication, edits: Vec::new() },
    );
    finding.severity = crate::diagnose::Severity::of_estimate(&finding.estimate);
    for (nr, stage) in stages.iter().enumerate() {
        finding = finding.with(Evidence {
            what: Message::new(
                Text::new(
                    "stage {stage} (rank {ranks}) computes per step; it waits {bubble} for its neighbours",
                    "阶段 {stage}（rank {ranks}）每步计算；等待相邻阶段 {bubble}",
                ),
                [
                    ("stage", Value::Count(nr as u64)),
                    ("ranks", Value::Raw(ranks(stage))),
                    ("bubble", Value::Ns(stage.bubble())),
                ],
            ),
            value: Value::Ns(stage.compute()),
            rows: Vec::new(),
        });
    }
    let other = Text::new("the device of the slow stage is slower", "慢阶段的设备更慢");
    let rival = match beyond.layers > LAYERS || beyond.rest > 0 {
        true => Competing::refuted(
            other,
            Text::new(
                "it runs more kernels, or others, than the other stage; like kernels do not take longer on it alone",
                "它运行的算子更多或不同，而非同样的算子更慢",
            ),
        ),
        false => Competing::open(other, Text::new("its kernels one by one decide", "逐个比较其算子可以判定")),
    };
    finding.against(rival).gated(cost.most.min(Confidence::High))
}

fn in_pair(cx: &Context<'_>, instance: usize) -> bool {
    let job = &cx.analysis.job;
    job.instances.get(instance).and_then(|i| job.groups.get(i.group)).is_some_and(|group| group.is_pair)
}

fn ranks(stage: &Stage<'_>) -> String {
    stage.members.iter().map(|member| member.rank.rank.to_string()).collect::<Vec<_>>().join(", ")
}

/// What the slow stage is sure to be able to come to, ns per step: where its layers are more, that many as the others have, and
/// what it does beside them stays; else all but a part of the excess that is as large as a layer.
fn moved(slow: Ns, even: Ns, beyond: &Beyond, stages: usize) -> Ns {
    if beyond.layers > LAYERS && beyond.in_layers > 0 {
        let others = stages.saturating_sub(1).max(1) as f64;
        let share = (beyond.layers + others) / (beyond.layers * (others + 1.0));
        return ((beyond.in_layers as f64 * share) as Ns + beyond.rest).max(even).min(slow);
    }
    even + (slow - even) / 2
}

/// What another stage comes to: its share of what the slow one gives away, and where the layers are uneven as many as all have, at
/// the time that the slow stage needs for each.
fn gained(own: Ns, given: Ns, beyond: &Beyond, stages: usize) -> Ns {
    let others = stages.saturating_sub(1).max(1) as f64;
    let share = given as f64 / others;
    if beyond.layers > LAYERS && beyond.in_layers > 0 {
        // Its own layers become `(ratio + others) / (others + 1)` times as many.
        let more = (beyond.layers + others) / (others + 1.0) - 1.0;
        return own + (beyond.in_layers as f64 / beyond.layers * more).max(share) as Ns;
    }
    own + share as Ns
}

fn said(
    cx: &Context<'_>,
    stages: &[Stage<'_>],
    (at, own): (usize, &Member<'_>),
    (waiting, cost): (usize, &gate::Cost),
    ratio: f64,
    beyond: &Beyond,
) -> Finding {
    let claim = Message::new(
        Text::new(
            "Stage {slow} of {stages} (rank {rank}) computes {own} per step, {ratio} of the others' mean; stage {idle} stands still for {bubble} of its step ({share}): a pipeline bubble. {reason}{filling}",
            "第 {slow} 阶段（共 {stages} 个，rank {rank}）每步计算 {own}，为其他阶段均值的 {ratio}；第 {idle} 阶段每步空等 {bubble}（{share}），即流水线气泡。{reason}{filling}",
        ),
        [
            ("slow", Value::Count(at as u64)),
            ("stages", Value::Count(stages.len() as u64)),
            ("rank", Value::Raw(stages.get(at).map(ranks).unwrap_or_default())),
            ("own", Value::Ns(stages.get(at).map_or(0, Stage::compute))),
            ("ratio", Value::Ratio(ratio)),
            ("idle", Value::Count(waiting as u64)),
            ("bubble", Value::Ns(cost.per_step)),
            ("share", Value::Share(cost.share)),
            ("reason", Value::Text(reason(at, stages.len(), beyond))),
            ("filling", filling(cx, stages, cost.per_step).unwrap_or(Value::Text(Text::new("", "")))),
        ],
    );
    let trigger = Trigger {
        formula: Text::new("compute of the slowest stage / mean of the others", "最慢阶段的计算 / 其他阶段的均值"),
        value: ratio,
        threshold: RATIO,
    };
    let nothing = Intervention { removes: 0, layer: Layer::Operator, edits: Vec::new() };
    let mut finding = cx.finding(&DOC, own.rank, own.class, claim, trigger, nothing);
    finding.ranks = stages.get(at).map(|s| s.members.iter().map(|m| m.rank.rank).collect()).unwrap_or_default();
    if beyond.layers > LAYERS {
        finding = finding.with(Evidence::new(
            Text::new("layers of the slow stage over those of the fastest", "慢阶段与最快阶段的层数之比"),
            Value::Ratio(beyond.layers),
            Vec::new(),
        ));
    }
    for (op, ns) in &beyond.operators {
        finding = finding.with(Evidence {
            what: Message::new(
                Text::new(
                    "{op} beside the layers that the other stage has too, per step",
                    "{op}：除双方共有的层之外，每步",
                ),
                [("op", Value::Raw(op.name().to_owned()))],
            ),
            value: Value::Ns(*ns),
            rows: Vec::new(),
        });
    }
    finding
}

/// The part of a bubble that even stages would have too: the pipeline fills and drains once per step, in which the first stage
/// stands still for as many micro-batches as stages follow it.
const FILLING: Text = Text::new(
    " A step has {count} micro-batches: with even stages {inherent} of the bubble would be left while the pipeline fills and drains, (p−1)/(m+p−1) = {part} of the time, which only more micro-batches make smaller; {uneven} come from the uneven stages.",
    "每步有 {count} 个微批：即使各阶段均衡，流水线填充与排空仍留下 {inherent} 气泡，即时间的 (p−1)/(m+p−1) = {part}，只有增加微批数才能减小；{uneven} 来自阶段不均。",
);

fn filling(cx: &Context<'_>, stages: &[Stage<'_>], bubble: Ns) -> Option<Value> {
    let count = stages::micro_batches(cx, stages)?;
    let (m, follow) = (count as f64, stages.len().saturating_sub(1) as f64);
    let even = stages.iter().map(Stage::compute).sum::<Ns>() as f64 / stages.len().max(1) as f64;
    let inherent = ((even * follow / m) as Ns).min(bubble);
    let args = [
        ("count", Value::Count(count)),
        ("inherent", Value::Ns(inherent)),
        ("part", Value::Share(follow / (m + follow))),
        ("uneven", Value::Ns(bubble - inherent)),
    ];
    Some(Message::new(FILLING, args).within())
}

/// What makes the slow stage slow, in a sentence.
fn reason(at: usize, stages: usize, beyond: &Beyond) -> Text {
    let layers = beyond.layers > LAYERS;
    let first = at == 0 && stages > 1;
    let last = at + 1 == stages;
    let product = beyond.operators.iter().any(|(op, _)| *op == CanonicalOp::Gemm);
    match () {
        () if layers => Text::new("It holds more layers than the others.", "它的层数多于其他阶段。"),
        () if beyond.rest == 0 => Text::new("What it runs is not known kernel by kernel.", "其逐个算子的情况未知。"),
        () if last && product => Text::new(
            "Its layers are as many as the others'; what it has beside them is the output layer (LM head) and the loss.",
            "它的层数与其他阶段相同；多出的是输出层（LM head）与损失。",
        ),
        () if first => Text::new(
            "Its layers are as many as the others'; what it has beside them is the embedding.",
            "它的层数与其他阶段相同；多出的是嵌入层。",
        ),
        () => Text::new(
            "Its layers are as many as the others'; it has other operators beside them.",
            "它的层数与其他阶段相同；它在层之外还有其他算子。",
        ),
    }
}

/// Brings every stage to the even time, cautiously no further than what is sure. A rank of sums alone has no kernels: it keeps pace with
/// those of its stage that were recorded, and where none was, what lies between its collectives is as much shorter.
fn edits(stages: &[Stage<'_>], beyond: &Beyond, (even, certain): (Ns, Ns), slowest: Ns) -> Vec<(u32, Intervention)> {
    let scaled = |member: &Member<'_>, to: Ns| -> Edit {
        let times = |ns: Ns| (i128::from(ns) * i128::from(to) / i128::from(member.compute.max(1))) as Ns;
        let ops = member.rank.timeline.ops.iter().enumerate();
        if member.rank.timeline.collectives_only {
            let gaps = member.rank.gaps.iter().filter_map(|gap| Some((gap.owner?, gap.span.len())));
            let taken = (member.compute - to).max(0);
            let all: Ns = member.rank.gaps.iter().map(|gap| gap.span.len()).sum();
            let less = |ns: Ns| ns - (i128::from(ns) * i128::from(taken) / i128::from(all.max(1))) as Ns;
            return Edit::Gap(gaps.map(|(op, ns)| (op, less(ns))).collect());
        }
        let computes = ops.filter(|(_, op)| op.kind == OpKind::Compute);
        Edit::Resize(computes.filter_map(|(i, op)| Some((u32::try_from(i).ok()?, times(op.dur())))).collect())
    };
    let mut changes: Vec<(u32, Intervention)> = Vec::new();
    let mut slow_first: Vec<&Stage<'_>> = stages.iter().collect();
    slow_first.sort_by_key(|stage| std::cmp::Reverse(stage.compute()));
    for (nr, stage) in slow_first.into_iter().enumerate() {
        let sure = if nr == 0 { certain } else { gained(stage.compute(), slowest - certain, beyond, stages.len()) };
        let recorded = stage.recorded().is_some();
        for member in stage.members.iter().filter(|member| !(recorded && member.rank.timeline.collectives_only)) {
            let to = |to: Ns, saved: Ns| std::iter::once(scaled(member, to)).chain(earlier(member, saved));
            let hoped = to(even, certain - even).collect();
            let edits: Vec<Edit> = to(sure, slowest - certain).chain(change::hoped(hoped)).collect();
            let removes = (stage.compute() - even).max(0);
            changes.push((member.rank.rank, Intervention { removes, layer: Layer::Operator, edits }));
        }
    }
    changes
}

/// The host of a stage comes to its next step when the pipeline has room for it: where it stood still between two steps for longer
/// than what the slow stage would save, it comes earlier by that much.
fn earlier(member: &Member<'_>, saved: Ns) -> Option<Edit> {
    let timeline = &member.rank.timeline;
    let mut spans: BTreeMap<TrackId, Vec<(Span, Ns)>> = BTreeMap::new();
    for step in &member.rank.steps {
        let launches = timeline.ops.get(step.ops.clone()).unwrap_or(&[]).iter().filter_map(|op| op.call);
        let Some((at, call)) = launches.min().and_then(|at| Some((at, timeline.calls.get(at as usize)?))) else {
            continue;
        };
        let before = timeline.calls.get(..at as usize).unwrap_or(&[]).iter().rev().take(LOOKBACK);
        let Some(last) = before.filter(|other| other.track == call.track).map(|other| other.end).max() else {
            continue;
        };
        // A wait for the device in between is the device's.
        let waits = |other: &&Call| other.blocking && other.start < call.start && other.end > last;
        let near = timeline.calls.get((at as usize).saturating_sub(LOOKBACK)..at as usize).unwrap_or(&[]);
        // And one that launches what another thread hands to it comes when that does.
        let follows = timeline.tasks.awaited(call.track, last).is_some();
        if saved > 0 && call.start - last > saved && !follows && !near.iter().any(|other| waits(&other)) {
            spans.entry(call.track).or_default().push((Span::new(last, call.start), call.start - last - saved));
        }
    }
    spans.into_iter().max_by_key(|(_, spans)| spans.len()).map(|(track, spans)| Edit::Host(track, spans))
}
