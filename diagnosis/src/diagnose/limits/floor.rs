//! The least that a step takes on the device: reading what it must read, or computing what it must compute, whichever is longer.

use model::Ns;

use super::rates::{Bound, PeakSource, Rate, RateUnit};
use crate::{
    analysis::{Class, OpKind, Rank},
    diagnose::{
        rule::Context,
        signals::{ceilings::Ceilings, reading},
    },
    i18n::Text,
    platform::{ModelShape, OpClass, Stage},
};

/// Share of the time of matrix products whose shapes must be known; own value.
const COVERED: f64 = 0.5;

/// What a floor rests on.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The shape of the model.
    Model(String),
    /// Recorded shapes of the matrix products, which cover this share of their time.
    Shapes(f64),
    /// Nothing: what would give it.
    Nothing(Text),
}

/// The floor of the steps of a class.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Floor {
    /// Rank of the job.
    pub rank: u32,
    /// Key of the class.
    pub class: String,
    /// Mean of its steps, ns.
    pub step: Ns,
    /// Whether its steps decode.
    pub decodes: bool,
    /// The least that one takes, ns; absent where nothing says it.
    pub ns: Option<Ns>,
    /// Bytes of weights that this rank must read; where shapes say it of another stage than decode, all that its matrix products
    /// read and write.
    pub weights: f64,
    /// Bytes of cache that this rank must read; absent where the length of the sequences is not known.
    pub cache: Option<f64>,
    /// Operations of this rank's matrix products.
    pub flops: f64,
    /// What binds it.
    pub bound_by: Option<Bound>,
    /// The peak that it is held against, per second.
    pub peak: Option<f64>,
    /// What that counts.
    pub unit: RateUnit,
    /// Where that comes from.
    pub peak_source: Option<PeakSource>,
    /// What it rests on.
    pub basis: Basis,
}

impl Floor {
    /// Whether what must be read is all that matrix products move, not the weights alone.
    pub fn moves_operands(&self) -> bool {
        !self.decodes && matches!(self.basis, Basis::Shapes(_))
    }

    /// How many times its floor a step takes.
    pub fn ratio(&self) -> Option<f64> {
        self.ns.filter(|ns| *ns > 0).map(|ns| self.step as f64 / ns as f64)
    }
}

/// What a step must read and compute.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Need {
    weights: f64,
    cache: Option<f64>,
    flops: f64,
}

/// Why nothing is known.
const NEEDS_MODEL: Text = Text::new(
    "shapes of its matrix products were not recorded; --model config.json|NAME says what a step must read",
    "未记录其矩阵乘的形状；--model config.json|NAME 可说明一步必须读取的数据",
);
const NEEDS_RANKS: Text = Text::new(
    "among how many ranks the model is divided is not known; declare parallel.tp",
    "不知道模型分到多少个 rank；请声明 parallel.tp",
);
const NEEDS_PEAK: Text = Text::new(
    "nothing is published here of this device, and no probe measured it; --probe gives its bandwidth",
    "没有收录该设备的公布参数，也没有探针实测；--probe 可给出其带宽",
);

/// What it says where nobody says which device it is.
const NEEDS_NAME: Text = Text::new(
    "the capture does not name its device, and no probe measured it; declare hardware.device, such as Ascend910B3, and what is published of it is taken",
    "采集未记录设备型号，也没有探针实测；声明 hardware.device（例如 Ascend910B3）后即采用其公布参数",
);

/// The floor of a class; `None` where it is neither of decode nor has recorded shapes.
pub(super) fn of(
    cx: &Context<'_>,
    rank: &Rank,
    class: &Class,
    ceilings: &Ceilings<'_>,
    rates: &[Rate],
) -> Option<Floor> {
    let step = class.total / class.steady.max(1) as Ns;
    let decodes = class.stage == Stage::Decode;
    let covered = covered(rank, class, rates);
    let shaped = covered >= COVERED;
    let (need, basis) = match &cx.analysis.model {
        Some(model) if decodes => match (Parts::of(cx, rank), tokens(class)) {
            (Some(parts), tokens) => {
                (Some(from_model(model, cx, rank, class, parts, tokens)), Basis::Model(model.name.clone()))
            }
            (None, _) if shaped => (Some(from_shapes(class, rates)), Basis::Shapes(covered)),
            (None, _) => (None, Basis::Nothing(NEEDS_RANKS)),
        },
        _ if shaped => (Some(from_shapes(class, rates)), Basis::Shapes(covered)),
        _ if decodes => (None, Basis::Nothing(NEEDS_MODEL)),
        _ => return None,
    };
    let mut floor = Floor {
        rank: rank.rank,
        class: class.key.clone(),
        step,
        decodes,
        ns: None,
        weights: 0.0,
        cache: None,
        flops: 0.0,
        bound_by: None,
        peak: None,
        unit: RateUnit::Bytes,
        peak_source: None,
        basis,
    };
    let Some(need) = need else { return Some(floor) };
    (floor.weights, floor.cache, floor.flops) = (need.weights, need.cache, need.flops);
    let Some(memory) = ceilings.bandwidth() else {
        floor.basis = Basis::Nothing(if ceilings.names_device() { NEEDS_PEAK } else { NEEDS_NAME });
        return Some(floor);
    };
    let reading = (need.weights + need.cache.unwrap_or(0.0)) / memory.best;
    let dtype = rates.iter().filter(|rate| is_product(rate)).find_map(|rate| rate.dtype);
    let computing = ceilings.arithmetic(dtype).map(|arithmetic| (need.flops / arithmetic.best, arithmetic));
    let (ns, bound, ceiling, unit) = match computing {
        Some((ns, arithmetic)) if ns > reading => (ns, Bound::Compute, arithmetic, RateUnit::Flops),
        _ => (reading, Bound::Memory, memory, RateUnit::Bytes),
    };
    floor.ns = Some(ns.round() as Ns).filter(|ns| *ns > 0);
    (floor.bound_by, floor.unit) = (Some(bound), unit);
    (floor.peak, floor.peak_source) = (Some(ceiling.best * 1e9), Some(ceiling.origin.into()));
    Some(floor)
}

/// Whether a rate is that of a matrix product of known size.
pub(super) fn is_product(rate: &Rate) -> bool {
    matches!(rate.operator, "gemm" | "grouped_gemm") && rate.flops > 0.0
}

/// Share of the time of matrix products whose shapes are known.
fn covered(rank: &Rank, class: &Class, rates: &[Rate]) -> f64 {
    let mut all: Ns = 0;
    for step in rank.steady_steps(class) {
        let ops = rank.ops_of(step).iter();
        let products = ops.filter(|op| op.kind == OpKind::Compute && op.op.class() == OpClass::Matrix);
        all = products.fold(all, |sum, op| sum.saturating_add(op.dur()));
    }
    let known: f64 = rates.iter().filter(|rate| is_product(rate)).map(|rate| rate.ns * rate.count as f64).sum();
    if all > 0 { (known / all as f64).min(1.0) } else { 0.0 }
}

/// Sequences of a step of the class, if known.
fn tokens(class: &Class) -> Option<f64> {
    class.batch.map(f64::from).filter(|tokens| *tokens > 0.0)
}

/// What the recorded products of a step read of weights, and compute; elsewhere than in decode with what they take in and give
/// out, which is no small part there.
fn from_shapes(class: &Class, rates: &[Rate]) -> Need {
    let steps = class.steady.max(1) as f64;
    let products = rates.iter().filter(|rate| is_product(rate));
    let sum = |of: fn(&Rate) -> f64| products.clone().map(|rate| of(rate) * rate.count as f64).sum::<f64>() / steps;
    // Of a token of each sequence the rest is next to nothing, and stays in a cache.
    let read: fn(&Rate) -> f64 = if class.stage == Stage::Decode { |rate| rate.operands } else { |rate| rate.bytes };
    Need { weights: sum(read), cache: None, flops: sum(|rate| rate.flops) }
}

/// Among how many ranks a model is divided; where only the number of ranks is known, among all of them, which leaves each the
/// least to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Parts {
    /// Parts of attention and dense layers.
    pub tensor: f64,
    /// Parts of the experts.
    pub experts: f64,
    /// Parts of the layers.
    pub pipeline: f64,
}

impl Parts {
    pub fn of(cx: &Context<'_>, rank: &Rank) -> Option<Self> {
        let said = |key: &str| cx.trace.manifest.count(key).filter(|n| (1..=65_536).contains(n)).map(|n| n as f64);
        let alone = !rank.timeline.ops.iter().any(|op| op.kind == OpKind::Comm);
        let tensor = said("parallel.tp").or(alone.then_some(1.0)).or_else(|| said("parallel.world_size"))?;
        let experts = said("parallel.ep").map_or(tensor, |experts| experts.max(tensor));
        Some(Self { tensor, experts, pipeline: said("parallel.pp").unwrap_or(1.0) })
    }
}

/// Bytes of an element as the manifest calls its type.
fn bytes_of(dtype: Option<&str>) -> Option<f64> {
    Some(match dtype? {
        "f32" => 4.0,
        "bf16" | "f16" => 2.0,
        "int8" | "q8" => 1.0,
        "int4" => 0.5,
        fp8 if fp8.starts_with("fp8") => 1.0,
        _ => return None,
    })
}

/// Bytes of an element of the weights: as the model was published, else as the run says, else 16 bits.
pub(super) fn weight_bytes(model: &ModelShape, cx: &Context<'_>) -> f64 {
    model.weight_bytes.or(bytes_of(cx.trace.manifest.value("precision.weights"))).unwrap_or(2.0)
}

/// Weights and cache that a rank reads for a token of each sequence. With several tokens in a layer with experts, as many
/// experts as tokens spread evenly would meet.
fn from_model(
    model: &ModelShape,
    cx: &Context<'_>,
    rank: &Rank,
    class: &Class,
    parts: Parts,
    tokens: Option<f64>,
) -> Need {
    let manifest = |key: &str| bytes_of(cx.trace.manifest.value(key));
    let weight = weight_bytes(model, cx);
    let cached = manifest("precision.kv").unwrap_or(2.0);
    let batch = tokens.unwrap_or(1.0);
    let met = model.experts_met(batch);
    let of_experts = |experts: f64| model.body(experts) - model.body(0.0);
    let shared = |experts: f64| model.body(0.0) / parts.tensor + of_experts(experts) / parts.experts;
    // The last product belongs to the last of the ranks that layers are divided among.
    let head = if parts.pipeline > 1.0 { 0.0 } else { model.head() / parts.tensor };
    let context = context(cx, rank, class);
    let heads = if model.mla.is_some() { 1.0 } else { parts.tensor.min(model.kv_heads as f64) };
    let each = model.moe.map_or(0.0, |moe| moe.per_token as f64);
    Need {
        weights: (shared(met) / parts.pipeline + head) * weight,
        cache: context.map(|tokens| model.cache(tokens, batch) * cached / heads / parts.pipeline),
        flops: 2.0 * batch * (shared(each) / parts.pipeline + head),
    }
}

/// Tokens that the sequences of a step attend to together, mean over the steps whose annotation says it.
fn context(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<f64> {
    let said = rank.steady_steps(class).filter_map(|step| cx.packs.step_label(&step.label)?.context_tokens);
    let (sum, n) = said.fold((0.0, 0u64), |(sum, n), tokens| (sum + tokens as f64, n + 1));
    if n > 0 && sum > 0.0 {
        return Some(sum / n as f64);
    }
    reading::mean_count(cx.trace, rank, "context_tokens").filter(|tokens| *tokens > 0.0)
}
