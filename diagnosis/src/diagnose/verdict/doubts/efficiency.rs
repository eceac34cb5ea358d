//! Operators that take much of the step, and of which nobody knows how fast they could be.

use model::EvidenceClass;

use super::{Case, Unjudged};
use crate::{
    analysis::{Bucket, Layer},
    diagnose::finding::Finding,
    i18n::{Message, Text, Value},
};

/// What it says where the kernels ran from replays, which carry no shapes.
const REPLAYED: Text = Text::new(
    "how fast {bucket} could be, {share} of the step: replays carry no shapes; name the model (--model config.json), or give the capture of the graph (--graph-capture)",
    "{bucket} 还能快多少（占步时 {share}）：图重放不带形状；请给出模型（--model config.json）或图捕获（--graph-capture）",
);
/// What it says elsewhere.
const SHAPELESS: Text = Text::new(
    "how fast {bucket} could be, {share} of the step: record shapes, or name the model (--model config.json)",
    "{bucket} 还能快多少（占步时 {share}）：请采集形状，或给出模型（--model config.json）",
);

pub(super) fn ask(case: &Case<'_>) -> Option<Unjudged> {
    let (rank, class) = case.longest?;
    let evidence = case.cx.analysis.evidence;
    if evidence.has(EvidenceClass::Shapes) || evidence.has(EvidenceClass::Probes) {
        return None;
    }
    let compute = class.buckets.iter().filter(|(bucket, _)| matches!(bucket, Bucket::Compute(_)));
    let (bucket, ns) = compute.max_by_key(|(_, ns)| *ns)?;
    let share = *ns as f64 / class.total.max(1) as f64;
    let operator = |f: &&Finding| f.layer == Layer::Operator;
    // Of what a finding claims already, something was judged.
    let claimed = case.weighty().filter(operator).map(|f| f.estimate.max_gain_share()).fold(0.0, f64::max);
    let replayed = rank.steady_steps(class).flat_map(|step| rank.ops_of(step)).take(1000).any(|op| op.in_graph);
    let args = [("bucket", Value::Raw(bucket.name(&case.cx.analysis.host_labels))), ("share", Value::Share(share))];
    let sentence = Message::new(if replayed { REPLAYED } else { SHAPELESS }, args);
    (share > claimed).then(|| Unjudged { share, sentence, because: Vec::new(), decides: false })
}
