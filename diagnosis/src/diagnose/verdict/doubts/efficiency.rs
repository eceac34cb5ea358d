//! Operators that take much of the step, and of which nobody knows how fast they could be.

use std::cmp::Reverse;

use model::{Beside, Ns, StringId};
use rustc_hash::FxHashMap;

use super::{Case, Unjudged};
use crate::{
    analysis::{Bucket, Class, DeviceOp, Layer, OpKind, Rank, op_shapes},
    diagnose::{finding::Finding, limits::Rate, signals::measured},
    i18n::{Message, Text, Value},
    platform::CanonicalOp,
};

/// Operations that are looked at to tell whether most are replayed; own value.
const LOOKED_AT: usize = 1000;

/// What it says where the kernels ran from replays, which carry no shapes.
const REPLAYED: Text = Text::new(
    "how fast {kernels} could be, {share}: replays carry no shapes; name the model (--model config.json), or give the capture of the graph (--graph-capture)",
    "{kernels} 还能快多少（{share}）：图重放不带形状；请给出模型（--model config.json）或图捕获（--graph-capture）",
);
/// What it says where they were given, and did not tell.
const REPLAYED_UNKNOWN: Text = Text::new(
    "how fast {kernels} could be, {share}: replays carry no shapes, and what was given beside the capture does not place these kernels; measure the longest of them alone with its vendor's kernel profiler",
    "{kernels} 还能快多少（{share}）：图重放不带形状，而随采集给出的信息对不上这些内核；请用厂商的内核剖析器单独测量其中最长者",
);
/// What it says elsewhere.
const SHAPELESS: Text = Text::new(
    "how fast {kernels} could be, {share}: no sizes were recorded; record shapes, name the model (--model config.json), or measure the longest of them alone with its vendor's kernel profiler",
    "{kernels} 还能快多少（{share}）：没有采集尺寸；请采集形状、给出模型（--model config.json），或用厂商的内核剖析器单独测量其中最长者",
);
/// What it says of kernels of the program's own, of which no framework and no model knows the sizes.
const OWN: Text = Text::new(
    "how fast {kernels} could be, {share}: nothing recorded says what it has to do; measure it alone with its vendor's kernel profiler (ncu, rocprof-compute, msprof op)",
    "{kernels} 还能快多少（{share}）：没有记录说明它应有的工作量；请用厂商的内核剖析器（ncu、rocprof-compute、msprof op）单独测量",
);
/// Kernels of an operator that has a name.
const KERNELS: Text = Text::new("the {op} kernels", "{op} 类 kernel");

/// What it says where a rate follows from what was recorded, and nobody knows the limit.
const PEAKLESS: Text = Text::new(
    "how fast {kernels} could be, {share}: sizes and types of its operands are known, but no peaks of this device; measure them there (strato probe --save) and give them (--probe)",
    "{kernels} 还能快多少（{share}）：操作数的尺寸与类型已知，但不知该设备的峰值；请在该设备上测量（strato probe --save）后给出（--probe）",
);
/// What it says where a profiler of kernels measured them.
const MEASURED: Text = Text::new(
    "how fast {kernels} could be, {share}: its longest kernel was measured, its busiest unit works for {busiest} of its time (memory {memory}, arithmetic {compute}); what it has to do does not follow from the recorded sizes",
    "{kernels} 还能快多少（{share}）：其最长内核已有测量，最忙的单元工作时间占 {busiest}（访存 {memory}，计算 {compute}）；其应有的工作量无法由所采集的尺寸得出",
);
/// What it says where sizes were recorded without types.
const UNTYPED: Text = Text::new(
    "how fast {kernels} could be, {share}: sizes were recorded without types, so that nobody knows what its kernels move; record both (a profiler of the framework does), or measure the longest of them alone with its vendor's kernel profiler",
    "{kernels} 还能快多少（{share}）：采集了尺寸而没有类型，无法得知其内核的访存量；请同时采集两者（框架自带的剖析器即可），或用厂商的内核剖析器单独测量其中最长者",
);
/// What it says where shapes were recorded, and no rate follows from them.
const UNKNOWN: Text = Text::new(
    "how fast {kernels} could be, {share}: sizes and types were recorded, but what its kernels compute or move does not follow from those alone; measure the longest of them alone with its vendor's kernel profiler",
    "{kernels} 还能快多少（{share}）：尺寸与类型已采集，但仅凭它们不能得出其内核的运算量或访存量；请用厂商的内核剖析器单独测量其中最长者",
);

/// How much of the step an operator takes, as everywhere on the page.
const SHARE: Text = Text::new("{share} of the step", "占步时 {share}");
/// The same where much of it has a rate.
const REST: Text = Text::new("{rest} of the {share} of the step that it takes", "占步时 {share}，其中 {rest} 未定");
/// Part of an operator's time that has a rate from which that is said; own value.
const RATED: f64 = 0.2;

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (rank, class) = case.longest?;
    let mut unrated: Vec<(Bucket, f64)> = Vec::new();
    for (bucket, ns) in &class.buckets {
        let Bucket::Compute(op) = bucket else { continue };
        let rates = case.limits.rates.iter().filter(|rate| rate.operator == op.name() && rate.share().is_some());
        let rated: f64 = rates.map(|rate| rate.ns * rate.count as f64).sum();
        unrated.push((*bucket, *ns as f64 - rated));
    }
    let (bucket, ns) = unrated.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let share = ns / class.total.max(1) as f64;
    let operator = |f: &&Finding| f.layer == Layer::Operator;
    // Of what a finding claims already, something was judged.
    let claimed = case.weighty().filter(operator).map(|f| f.estimate.max_gain_share()).fold(0.0, f64::max);
    let is_of = |op: &&DeviceOp| matches!(bucket, Bucket::Compute(of) if of == op.op);
    let ops = || rank.steady_steps(class).flat_map(|step| rank.ops_of(step)).filter(is_of).take(LOOKED_AT);
    let replayed = 2 * ops().filter(|op| op.in_graph).count() > ops().count();
    let told = || case.cx.analysis.model.is_some() || case.cx.trace.manifest.value(Beside::MATCH).is_some();
    // Of replays nodes are told by what was given beside the capture, or by the table of their profiler.
    let shaped = |op: &DeviceOp| op_shapes::inputs(case.cx.trace, rank, op);
    let has_shapes = || 2 * ops().filter(|op| !shaped(op).is_empty()).count() > ops().count();
    let typed = || ops().any(|op| shaped(op).iter().any(|tensor| tensor.element.is_some()));
    let longest = ops().filter_map(|op| Some((op.dur(), measured::of(case.cx, op)?))).max_by_key(|(ns, _)| *ns);
    let said = longest.and_then(|(_, summary)| {
        let (memory, compute) = (measured::memory(summary)?, measured::compute(summary)?);
        Some([("memory", memory), ("compute", compute), ("busiest", memory.max(compute))])
    });
    let of_it = |rate: &&Rate| matches!(bucket, Bucket::Compute(op) if rate.operator == op.name());
    let without_peak = case.limits.rates.iter().filter(of_it).filter(|rate| rate.peak.is_none());
    let peakless = without_peak.map(|rate| rate.ns * rate.count as f64).sum::<f64>();
    let own = match bucket {
        Bucket::Compute(CanonicalOp::Other) => longest_name(rank, class),
        _ => None,
    };
    let text = match () {
        () if 2.0 * peakless > ns => PEAKLESS,
        () if said.is_some() => MEASURED,
        () if replayed && !has_shapes() && told() => REPLAYED_UNKNOWN,
        () if replayed && !has_shapes() => REPLAYED,
        () if !has_shapes() && own.is_some() => OWN,
        () if !has_shapes() => SHAPELESS,
        () if typed() => UNKNOWN,
        () => UNTYPED,
    };
    let workload = rank.workload(class);
    let all: Ns = workload.classes.iter().map(|class| class.ns(bucket)).sum();
    let all = all as f64 / workload.total().max(1) as f64;
    let rated = 1.0 - ns / class.ns(bucket).max(1) as f64;
    let text_of_share = if rated < RATED { SHARE } else { REST };
    let shares = [("share", Value::Share(all)), ("rest", Value::Share(all * (1.0 - rated)))];
    let mut args = vec![
        (
            "kernels",
            own.map_or_else(|| named(bucket), |name| Value::Kernel(case.cx.trace.strings.get(name).to_owned())),
        ),
        ("share", Message::new(text_of_share, shares).within()),
    ];
    args.extend(said.into_iter().flatten().map(|(name, value)| (name, Value::Share(value))));
    (share > claimed).then(|| Unjudged {
        share,
        sentence: Message::new(text, args),
        because: Vec::new(),
        decides: false,
    })
}

/// The kernels of a bucket by their operator.
fn named(bucket: Bucket) -> Value {
    let op = match bucket {
        Bucket::Compute(op) => op.name(),
        _ => "",
    };
    Message::new(KERNELS, [("op", Value::Raw(op.to_owned()))]).within()
}

/// The kernel with the most time of those whose operator nobody knows.
fn longest_name(rank: &Rank, class: &Class) -> Option<StringId> {
    let mut names: FxHashMap<StringId, Ns> = FxHashMap::default();
    let ops = rank.steady_steps(class).flat_map(|step| rank.ops_of(step));
    for op in ops.filter(|op| op.op == CanonicalOp::Other && op.kind == OpKind::Compute) {
        *names.entry(op.name).or_default() += op.dur();
    }
    names.into_iter().max_by_key(|(name, ns)| (*ns, Reverse(*name))).map(|(name, _)| name)
}
