//! Products of experts that carry no shapes: what they read and compute follows from the model and the tokens of the step,
//! if tokens are spread evenly.

use model::Ns;

use super::{
    floor::{Parts, weight_bytes},
    rates::{self, Rate},
    work::{self, Work},
};
use crate::{
    analysis::{
        Class, DeviceOp, OpKind, Rank, Step, launch_shape,
        op_shapes::{self, Gemm, MEMORY_BOUND_ROWS},
    },
    diagnose::{Evidence, rule::Context, signals::ceilings::Ceilings},
    i18n::{Message, Text, Value},
    platform::{CanonicalOp, ModelShape},
};

/// Kernels that the products of one layer's experts may be: all in one, the pair of gate and up before down, or each alone.
const KERNELS: std::ops::RangeInclusive<usize> = 1..=3;
/// Bytes of an activation, which stays in 16 bits beside weights of any type.
const ACTIVATION: f64 = 2.0;

/// The products of a layer's experts on this rank, as one product.
pub(in crate::diagnose) struct Experts {
    /// Rows are those of one expert in the mean, outputs those of all experts that are met.
    gemm: Gemm,
    flops: f64,
    bytes: f64,
    /// Experts that evenly spread tokens meet, of how many, by how many tokens.
    met: [u64; 3],
    layers: usize,
}

/// Whether an operation is a product of experts.
pub(in crate::diagnose) fn is_of_experts(op: &DeviceOp) -> bool {
    op.kind == OpKind::Compute && op.op == CanonicalOp::GroupedGemm
}

fn kernels<'a>(rank: &'a Rank, step: &Step) -> impl Iterator<Item = &'a DeviceOp> {
    rank.timeline.ops.get(step.ops.clone()).unwrap_or(&[]).iter().filter(|op| is_of_experts(op))
}

impl ModelShape {
    /// Experts of a layer that so many evenly spread tokens meet in the mean.
    pub(super) fn experts_met(&self, tokens: f64) -> f64 {
        self.moe.map_or(0.0, |moe| {
            let (experts, each) = (moe.experts as f64, moe.per_token as f64);
            experts * (1.0 - (1.0 - each / experts).clamp(0.0, 1.0).powf(tokens))
        })
    }
}

impl Experts {
    /// Those of a class whose tokens are known, where the model has as many layers with experts as the step shows and recorded
    /// shapes do not say the work themselves.
    pub fn of(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Self> {
        let model = cx.analysis.model.as_deref()?;
        let moe = model.moe?;
        let parts = Parts::of(cx, rank)?;
        // With experts divided further than the rest, tokens of other ranks meet this rank's experts: how many is not known.
        if parts.pipeline > 1.0 || parts.experts > parts.tensor {
            return None;
        }
        let first = rank.steady_steps(class).next()?;
        let told = |op: &DeviceOp| {
            let operator = op_shapes::operator(cx.trace, rank, op);
            operator.is_some_and(|own| work::of(cx.trace.strings.get(own.name), &own.inputs, op.op).is_some())
        };
        if kernels(rank, first).any(told) {
            return None;
        }
        let layers = model.moe_layers() as usize;
        let count = kernels(rank, first).count();
        if layers == 0 || !count.is_multiple_of(layers) || !KERNELS.contains(&(count / layers)) {
            return None;
        }
        let tokens = first.rows.or(class.batch.map(u64::from)).filter(|rows| (1..=1 << 20).contains(rows))?;
        // Other tokens meet other experts: one step does not speak for steps of another size.
        let alike = |step: &Step| step.rows == first.rows && kernels(rank, step).count() == count;
        if class.batches.is_some_and(|(fewest, most)| fewest != most) || !rank.steady_steps(class).all(alike) {
            return None;
        }
        let met = model.experts_met(tokens as f64);
        let pairs = (tokens * moe.per_token) as f64;
        let weights = met * model.expert() / parts.tensor;
        let hidden = model.hidden as f64;
        let element = weight_bytes(model, cx);
        // Each pair of token and expert reads its row before the first product and writes one after the last.
        let bytes = weights * element + 2.0 * pairs * hidden * ACTIVATION;
        let gemm = Gemm {
            rows: (pairs / met.max(1.0)).ceil() as i64,
            outputs: (weights / hidden.max(1.0)) as i64,
            inputs: i64::try_from(model.hidden).ok()?,
            bytes: Some(bytes as i64),
            element: Some(element.ceil() as i64),
            types: None,
            batched: false,
        };
        let flops = 2.0 * pairs * model.expert() / parts.tensor;
        Some(Self { gemm, flops, bytes, met: [met.round() as u64, moe.experts, tokens], layers })
    }

    /// Their rate over all steps of the class.
    pub fn rate(&self, cx: &Context<'_>, rank: &Rank, class: &Class, ceilings: &Ceilings<'_>) -> Option<Rate> {
        let steps = rank.steady_steps(class).count();
        let all = || rank.steady_steps(class).flat_map(|step| kernels(rank, step));
        let longest = all().max_by_key(|op| op.dur())?;
        let time = all().map(DeviceOp::dur).fold(0, Ns::saturating_add);
        let [met, experts, tokens] = self.met;
        let dtype = cx.trace.manifest.value("precision.weights").and_then(rates::dtype_of);
        // So few rows are bound by reading the weights, whatever the arithmetic of their type.
        let read_only = self.gemm.rows <= i64::from(MEMORY_BOUND_ROWS) && ceilings.arithmetic(dtype).is_none();
        let work = Work {
            flops: if read_only { 0.0 } else { self.flops },
            bytes: self.bytes,
            operands: self.bytes,
            dtype,
            shape: format!("{tokens} tokens, {met} of {experts} experts"),
            gemm: None,
            done_by: |_| true,
        };
        let count = (self.layers * steps) as u64;
        let sums = rates::Sums { time, count, kernel: longest.name, blocks: launch_shape::blocks(cx.trace, longest) };
        let mut rate = rates::rate(cx, ceilings, (CanonicalOp::GroupedGemm, &work), sums, steps as Ns);
        rate.why.push(self.said());
        Some(Rate { slot: Some("experts"), flops: self.flops, ..rate })
    }

    /// Shares of the time of these products in a class that they would take at best and as a rule.
    pub fn shares(&self, rank: &Rank, class: &Class, ceilings: &Ceilings<'_>) -> Option<[f64; 2]> {
        let (best, usual, _) = ceilings.time(self.gemm)?;
        let times =
            rank.steady_steps(class).map(|step| kernels(rank, step).map(DeviceOp::dur).fold(0, Ns::saturating_add));
        let (time, steps) = times.fold((0, 0), |(sum, n): (Ns, usize), ns| (sum.saturating_add(ns), n + 1));
        let each = time as f64 / (self.layers * steps).max(1) as f64;
        (each > 0.0).then(|| [best / each, usual / each])
    }

    /// The same for a finding.
    pub fn evidence(&self) -> Evidence {
        Evidence { what: self.said(), value: Value::Count(self.met[0]), rows: Vec::new() }
    }

    /// What was taken for granted.
    fn said(&self) -> Message {
        let [met, experts, tokens] = self.met.map(Value::Count);
        Message::new(
            Text::new(
                "the model's shape gives the work: {tokens} tokens that are spread evenly meet {met} of the {experts} experts of a layer",
                "工作量按模型形状计算：{tokens} 个 token 均匀分布时，每层 {experts} 个专家中有 {met} 个被用到",
            ),
            [("tokens", tokens), ("met", met), ("experts", experts)],
        )
    }
}
