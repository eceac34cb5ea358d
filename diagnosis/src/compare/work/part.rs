//! Sides of the work of a step on which two captures are held against each other.

use super::{measure::measure, profile::Profile};

/// One side of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// What steps are for: training, prompts, decode.
    Stage,
    /// Sequences of a step.
    Sequences,
    /// Rows that its kernels work on: tokens.
    Tokens,
    /// Layers, by what each has once.
    Layers,
    /// Attentions of a step.
    Attention,
    /// The widest matrix product: hidden size and vocabulary.
    Width,
    /// Elements of all weights that products read.
    Weights,
    /// Elements of the largest input of a convolution: images of a size, and their channels.
    Images,
    /// Elements of a token in the cache: heads of keys and their size.
    CacheWidth,
    /// Products of experts.
    Experts,
    /// Choice of the next token, which the last stage of a pipeline alone makes.
    Sampling,
    /// Number formats of the products.
    Formats,
    /// Number format of the cache.
    Cache,
    /// Keys that a sequence attends to.
    Context,
    /// Blocks that equal kernels of equal devices were launched with.
    Grids,
    /// Exchange with other ranks.
    Exchange,
    /// Adapters beside the weights.
    Adapters,
    /// Products and attentions of a step.
    Operations,
    /// What the time of the kernels goes to, by family.
    Mix,
    /// Waiting for requests.
    Requests,
    /// What else was recorded, and slows the host.
    Recording,
}

impl Part {
    /// All, in report order.
    pub const ALL: [Self; 21] = [
        Self::Stage,
        Self::Sequences,
        Self::Tokens,
        Self::Layers,
        Self::Attention,
        Self::Width,
        Self::Weights,
        Self::Images,
        Self::CacheWidth,
        Self::Experts,
        Self::Sampling,
        Self::Formats,
        Self::Cache,
        Self::Context,
        Self::Grids,
        Self::Exchange,
        Self::Adapters,
        Self::Operations,
        Self::Mix,
        Self::Requests,
        Self::Recording,
    ];

    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Stage => "stage",
            Self::Sequences => "sequences",
            Self::Tokens => "tokens",
            Self::Layers => "layers",
            Self::Attention => "attention",
            Self::Width => "width",
            Self::Weights => "weights",
            Self::Images => "images",
            Self::CacheWidth => "cache_width",
            Self::Experts => "experts",
            Self::Sampling => "sampling",
            Self::Formats => "formats",
            Self::Cache => "cache",
            Self::Context => "context",
            Self::Grids => "grids",
            Self::Exchange => "exchange",
            Self::Adapters => "adapters",
            Self::Operations => "operations",
            Self::Mix => "mix",
            Self::Requests => "requests",
            Self::Recording => "recording",
        }
    }

    /// Distance from which on it is other work; own values. Counts that each layer has once leave no choice, rows may be padded
    /// to the next size of a graph, a population of requests varies by some.
    fn limit(self, p: &Profile, q: &Profile) -> f64 {
        let layered = p.layers().is_some() && q.layers().is_some();
        match self {
            // A graph pads the rows of as many sequences to the next size that was captured.
            Self::Tokens if p.sequences.is_some() && p.sequences == q.sequences => 0.45,
            // What is no population of requests has the same rows in each step, and one model on one device the same weights.
            Self::Tokens if p.sequences.is_none() && q.sequences.is_none() => 0.01,
            Self::Tokens => 0.1,
            Self::Attention => 0.5,
            Self::Layers => 0.02,
            Self::Weights if p.device.is_some() && p.device == q.device => 0.01,
            // On another device one product may be several kernels.
            Self::Weights => 0.1,
            Self::Images => 0.02,
            Self::Formats | Self::Requests | Self::Recording => 0.1,
            Self::Context | Self::Grids => 0.2,
            // Where layers are counted, products may be fused otherwise on the other side.
            Self::Operations if layered && !(p.whole && q.whole) => 0.5,
            Self::Operations if p.whole && q.whole => 0.02,
            Self::Operations => 0.1,
            Self::Mix if layered => 0.85,
            Self::Mix => 0.6,
            _ => 0.0,
        }
    }

    /// Whether it says how much work of which kind there is; what it was recorded with and what there is none of does not.
    pub fn is_structure(self) -> bool {
        matches!(
            self,
            Self::Sequences
                | Self::Tokens
                | Self::Layers
                | Self::Width
                | Self::Weights
                | Self::Images
                | Self::Grids
                | Self::Operations
                | Self::Mix
        )
    }

    /// Whether it is an amount of work, by which times can be divided, and no kind of work.
    pub fn is_amount(self) -> bool {
        matches!(
            self,
            Self::Sequences
                | Self::Tokens
                | Self::Layers
                | Self::Attention
                | Self::Weights
                | Self::Images
                | Self::Context
                | Self::Grids
                | Self::Operations
        )
    }

    /// Fields that are the same on both sides where this part is.
    pub fn proves(self) -> &'static [&'static str] {
        match self {
            Self::Sequences => &["caps.batch"],
            Self::Tokens => &["caps.batch", "workload.speculative"],
            Self::Layers => &["model.layers"],
            Self::Width => &["model.hidden"],
            Self::CacheWidth => &["model.heads"],
            Self::Formats => &["precision.weights", "precision.activations"],
            Self::Cache => &["precision.kv"],
            Self::Context => &["workload.prompt_len"],
            Self::Exchange => &["parallel.tp", "parallel.ep"],
            Self::Adapters => &["model.lora"],
            _ => &[],
        }
    }

    /// Fields that a pair may study, by which this part differs.
    pub fn studied_by(self) -> &'static [&'static str] {
        match self {
            Self::Sequences | Self::Tokens | Self::Images => &["caps.batch"],
            Self::Formats => &["precision.weights", "precision.activations", "precision.quantization"],
            Self::Cache => &["precision.kv"],
            Self::Weights | Self::Width | Self::CacheWidth | Self::Exchange => &["parallel.tp", "parallel.ep"],
            Self::Grids => &["parallel.tp", "parallel.ep", "caps.batch", "precision.weights", "precision.activations"],
            Self::Mix => &["parallel.tp", "caps.batch", "precision.weights"],
            _ => &[],
        }
    }
}

/// A part on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Parted {
    /// Which.
    pub part: Part,
    /// What A shows.
    pub a: Option<String>,
    /// What B shows.
    pub b: Option<String>,
    /// How far they are apart, 0 where they are equal, 1 where they have nothing in common; `None` where one side does not show
    /// it.
    pub distance: Option<f64>,
    /// The most that the same work may be apart.
    pub limit: f64,
}

impl Parted {
    /// A part of two profiles; `None` where neither shows it.
    pub fn of(part: Part, p: &Profile, q: &Profile) -> Option<Self> {
        let (a, b, distance) = measure(part, p, q);
        let limit = part.limit(p, q);
        (a.is_some() || b.is_some()).then_some(Self { part, a, b, distance, limit })
    }

    /// Whether this is other work.
    pub fn differs(&self) -> bool {
        self.distance.is_some_and(|distance| distance > self.limit)
    }

    /// Whether both sides show that there is none of it.
    pub fn is_nothing(&self) -> bool {
        [&self.a, &self.b].iter().all(|side| side.as_deref() == Some("0"))
    }
}
