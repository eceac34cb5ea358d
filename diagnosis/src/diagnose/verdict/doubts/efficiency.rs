//! Operators that take much of the step, and of which nobody knows how fast they could be.

use model::Beside;

use super::{Case, Unjudged};
use crate::{
    analysis::{Bucket, DeviceOp, Layer, op_shapes},
    diagnose::finding::Finding,
    i18n::{Message, Text, Value},
};

/// Operations that are looked at to tell whether most are replayed; own value.
const LOOKED_AT: usize = 1000;

/// What it says where the kernels ran from replays, which carry no shapes.
const REPLAYED: Text = Text::new(
    "how fast {bucket} could be, {share} of the step: replays carry no shapes; name the model (--model config.json), or give the capture of the graph (--graph-capture)",
    "{bucket} 还能快多少（占步时 {share}）：图重放不带形状；请给出模型（--model config.json）或图捕获（--graph-capture）",
);
/// What it says where they were given, and did not tell.
const REPLAYED_UNKNOWN: Text = Text::new(
    "how fast {bucket} could be, {share} of the step: replays carry no shapes, and what was given beside the capture does not place these kernels; measure the longest of them alone with its vendor's kernel profiler",
    "{bucket} 还能快多少（占步时 {share}）：图重放不带形状，而随采集给出的信息对不上这些内核；请用厂商的内核剖析器单独测量其中最长者",
);
/// What it says elsewhere.
const SHAPELESS: Text = Text::new(
    "how fast {bucket} could be, {share} of the step: record shapes, or name the model (--model config.json)",
    "{bucket} 还能快多少（占步时 {share}）：请采集形状，或给出模型（--model config.json）",
);

/// What it says where shapes were recorded, and no rate follows from them.
const UNKNOWN: Text = Text::new(
    "how fast {bucket} could be, {share} of the step: what was recorded does not say what its kernels compute or move; record the sizes and types of all operands, or measure the longest of them alone with its vendor's kernel profiler",
    "{bucket} 还能快多少（占步时 {share}）：所采集的内容不能说明其内核的运算量或访存量；请采集所有操作数的尺寸与类型，或用厂商的内核剖析器单独测量其中最长者",
);

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
    let text = match () {
        () if replayed && told() => REPLAYED_UNKNOWN,
        () if replayed => REPLAYED,
        () if ops().any(|op| !op_shapes::inputs(case.cx.trace, rank, op).is_empty()) => UNKNOWN,
        () => SHAPELESS,
    };
    let args = [("bucket", Value::Raw(bucket.name(&case.cx.analysis.host_labels))), ("share", Value::Share(share))];
    (share > claimed).then(|| Unjudged {
        share,
        sentence: Message::new(text, args),
        because: Vec::new(),
        decides: false,
    })
}
