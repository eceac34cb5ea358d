//! The shape of the model and of a step's work.

use std::collections::{BTreeMap, BTreeSet};

use super::{By, Inferred, View, Why, one};
use crate::{
    analysis::{
        op_shapes::{self, Gemm},
        sequences::{self, Attention},
    },
    platform::{CanonicalOp, OpClass, Stage},
};

/// How PyTorch's profiler writes modules, with the number of each among those of its class.
const MODULE: &str = "nn.Module: ";
/// How the classes of decoder layers end, in Transformers, vLLM and SGLang alike.
const LAYER: &str = "DecoderLayer";

pub(super) fn infer(view: &View<'_>, inferred: &mut Inferred) {
    match modules(view) {
        Some(layers) => inferred.put("model.layers", By::Modules, Ok(layers)),
        None => inferred.put("model.layers", By::Repeats, repeats(view)),
    }
    inferred.put("model.hidden", By::Shapes, hidden(view));
    let attention = || view.steps.iter().flat_map(|step| sequences::attention(view.trace, view.rank, step));
    // Shapes are those of one rank's part.
    let alone = inferred.found.iter().any(|found| found.key == "parallel.tp" && found.value == "1");
    let heads = one(attention().map(|a| heads(&a)), Why::NoShapes);
    inferred.put("model.heads", By::Shapes, if alone { heads } else { Err(Why::Unsized) });
    // A query per sequence: every sequence adds the one token that decoding adds.
    let tokens = one(attention().map(|a| a.queries), Why::NoShapes);
    let decodes = tokens.as_ref().is_ok_and(|tokens| *tokens == 1);
    if inferred.by("caps.batch").is_none() {
        let batch = one(attention().map(|a| a.batch), Why::NoShapes);
        let known = decodes && view.class.stage != Stage::Prefill;
        inferred.put("caps.batch", By::Shapes, if known { batch } else { Err(batch.err().unwrap_or(Why::NoShapes)) });
    }
    let speculative = if decodes { Ok("none") } else { Err(tokens.err().unwrap_or(Why::NoShapes)) };
    inferred.put("workload.speculative", By::Shapes, speculative);
}

/// Heads of the queries and of the keys, and their size.
fn heads(attention: &Attention) -> String {
    format!("{} of {}, {} of keys", attention.heads, attention.size, attention.key_heads)
}

/// Decoder layers by their modules: one class of them, numbered without a gap.
fn modules(view: &View<'_>) -> Option<usize> {
    let mut numbers: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (_, text) in view.trace.strings.iter() {
        let Some((class, number)) = text.strip_prefix(MODULE).and_then(|module| module.rsplit_once('_')) else {
            continue;
        };
        if let Some(number) = number.parse().ok().filter(|_| class.ends_with(LAYER)) {
            numbers.entry(class).or_default().insert(number);
        }
    }
    let (_, own) = numbers.pop_first().filter(|_| numbers.is_empty())?;
    (own.len() > 1 && own.last() == Some(&(own.len() - 1))).then_some(own.len())
}

/// Layers as repeats of a step's kernels: each has one attention and one activation, and no step has more of these.
fn repeats(view: &View<'_>) -> Result<usize, Why> {
    let period = view.rank.period.as_ref().ok_or(Why::NoLayers)?;
    let in_body = |op: fn(CanonicalOp) -> bool| {
        let is = |symbol: &&u32| CanonicalOp::ALL.iter().any(|own| op(*own) && *own as u32 == **symbol);
        period.body.iter().filter(is).count()
    };
    let attends = |op: CanonicalOp| op.class() == OpClass::Attention && op != CanonicalOp::AttnCombine;
    let (attention, activations) = (in_body(attends), in_body(|op| op == CanonicalOp::Act));
    let layers = period.repeats * attention;
    let of_step = |step: &&super::Step| view.rank.ops_of(step).iter().filter(|op| attends(op.op)).count() == layers;
    let agree = attention > 0 && attention == activations && view.steps.iter().all(of_step);
    if agree { Ok(layers) } else { Err(Why::NoLayers) }
}

/// The hidden size: what the widest product of a step, that of the vocabulary, reads and another product writes.
fn hidden(view: &View<'_>) -> Result<i64, Why> {
    let of_step = |step: &&super::Step| {
        let ops = view.rank.ops_of(step).iter().filter(|op| op.op == CanonicalOp::Gemm);
        let gemms = ops.filter_map(|op| op_shapes::gemm(&op_shapes::inputs(view.trace, view.rank, op)));
        // A product of queries and keys has the size of a head between them.
        let gemms: Vec<Gemm> = gemms.filter(|gemm| !gemm.batched).collect();
        let widest = gemms.iter().max_by_key(|gemm| gemm.outputs)?;
        let written = gemms.iter().any(|p| p.outputs == widest.inputs && p.outputs != widest.outputs);
        written.then_some(widest.inputs)
    };
    one(view.steps.iter().filter_map(of_step), Why::NoShapes)
}
