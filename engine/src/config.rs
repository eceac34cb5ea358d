//! The shape of a model: from a Hugging Face `config.json` of either spelling, or one of the named shapes.
//!
//! `transformers` 4 writes `rope_theta`, `rope_scaling` and `torch_dtype`; `transformers` 5 writes `rope_parameters` and
//! `dtype`. Both load.

use std::path::Path;

use serde::Deserialize;

use crate::{Dtype, Error};

mod presets;

pub use presets::{PRESETS, preset};

/// Greatest value of any dimension: far above any model, low enough that products fit 64 bits.
const MAX_DIM: usize = 1 << 24;
/// Most experts of a layer: several times what any model has.
const MAX_EXPERTS: usize = 1 << 12;

/// Which checkpoint layout and which operators a model has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Llama 2 and 3: no biases, no norms of queries and keys.
    Llama,
    /// Qwen2 and 2.5: biases of queries, keys and values.
    Qwen2,
    /// Qwen3: norms of queries and keys, heads of a width of their own.
    Qwen3,
}

/// How rotary frequencies are stretched beyond the context a model was trained on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    Default,
    /// Positions divided by a factor (arXiv 2306.15595).
    Linear {
        /// The factor.
        factor: f64,
    },
    /// The base grows with the length once it exceeds the trained one ("NTK-aware dynamic" of `transformers`).
    Dynamic {
        /// The factor.
        factor: f64,
    },
    /// Llama 3.1: low frequencies divided, high ones kept, those between blended.
    Llama3 {
        /// Divisor of the low frequencies.
        factor: f64,
        /// Wavelengths above the trained length divided by this are low frequencies.
        low: f64,
        /// Wavelengths below the trained length divided by this are high frequencies.
        high: f64,
        /// The trained length, tokens.
        original: f64,
    },
}

/// Rotary position embedding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// Base of the frequencies.
    pub theta: f64,
    /// Scaling of the frequencies.
    pub scaling: RopeScaling,
}

/// A mixture of experts in place of every feed-forward block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experts {
    /// Experts of a layer.
    pub count: usize,
    /// Experts that a token goes to.
    pub active: usize,
    /// Whether the weights of those add up to 1; else they are their shares among all experts.
    pub normed: bool,
}

/// The shape of a model. Widths are elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Family.
    pub family: Family,
    /// Tokens of the vocabulary.
    pub vocab: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Width between the two halves of the feed-forward block, or of each expert.
    pub intermediate: usize,
    /// Decoder layers.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Positions the model was made for.
    pub max_positions: usize,
    /// Added to the mean square before its root is taken.
    pub norm_eps: f32,
    /// Position embedding.
    pub rope: Rope,
    /// Whether the output head is the embedding table.
    pub tied: bool,
    /// Whether queries, keys and values have biases.
    pub qkv_bias: bool,
    /// Whether queries and keys are normed head by head.
    pub qk_norm: bool,
    /// Experts, of a mixture of them.
    pub experts: Option<Experts>,
    /// Type in which the weights were published, where that is said; no part of the shape.
    pub published: Option<Dtype>,
}

impl Config {
    /// Reads `config.json` of a checkpoint.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Damaged`] when it is not such a file, [`Error::Unsupported`] when it describes another
    /// kind of model.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = input::bytes(path, input::BY_HAND).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        let raw: Raw = serde_json::from_slice(&text)
            .map_err(|error| Error::Damaged { path: path.to_owned(), what: error.to_string() })?;
        raw.config()
    }

    /// A hash of everything that decides what is computed: equal for equal shapes, whatever the file they came from.
    pub fn fingerprint(&self) -> u64 {
        let Self { family, vocab, hidden, intermediate, layers, heads, kv_heads, head_dim, .. } = self;
        let Self { norm_eps, rope, tied, qkv_bias, qk_norm, max_positions, .. } = self;
        let text = format!(
            "{family:?} {vocab} {hidden} {intermediate} {layers} {heads} {kv_heads} {head_dim} {max_positions} \
             {norm_eps:e} {:e} {:?} {tied} {qkv_bias} {qk_norm}",
            rope.theta, rope.scaling
        );
        // What a model of one feed-forward block has always been known by stays as it is.
        let experts = self.experts.map_or(String::new(), |experts| format!(" {experts:?}"));
        crate::hash::hash(&(text + &experts))
    }

    /// Width of the queries of a token.
    pub fn q_width(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Width of the keys of a token, and of its values.
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// Parameters that a decode step of one token reads: all matrices but the embedding table, whose row is a trifle,
    /// unless it is also the head.
    pub fn step_parameters(&self) -> usize {
        let attention = self.hidden * (2 * self.q_width() + 2 * self.kv_width());
        let read = self.experts.map_or(1, |experts| experts.active);
        let router = self.experts.map_or(0, |experts| experts.count * self.hidden);
        let feed_forward = 3 * self.hidden * self.intermediate * read + router;
        self.layers * (attention + feed_forward) + self.vocab * self.hidden
    }

    pub(super) fn check(self) -> Result<Self, Error> {
        let refuse = |what: String| Err(Error::Unsupported { what });
        let dims = [
            ("vocab_size", self.vocab),
            ("hidden_size", self.hidden),
            ("intermediate_size", self.intermediate),
            ("num_hidden_layers", self.layers),
            ("num_attention_heads", self.heads),
            ("num_key_value_heads", self.kv_heads),
            ("head_dim", self.head_dim),
            ("max_position_embeddings", self.max_positions),
        ];
        if let Some((name, value)) = dims.into_iter().find(|(_, value)| !(1..=MAX_DIM).contains(value)) {
            return refuse(format!("{name} is {value}"));
        }
        if let Some(Experts { count, active, .. }) = self.experts
            && !((1..=MAX_EXPERTS).contains(&count) && (1..=count).contains(&active))
        {
            return refuse(format!("it has {count} experts, {active} for a token"));
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return refuse(format!("{} query heads do not share {} key heads evenly", self.heads, self.kv_heads));
        }
        if !self.head_dim.is_multiple_of(2) {
            return refuse(format!("rotary embedding needs heads of even width, not {}", self.head_dim));
        }
        if self.heads * self.head_dim > MAX_DIM || self.layers > 1 << 12 {
            return refuse(format!("{} layers of {} heads of {}", self.layers, self.heads, self.head_dim));
        }
        let positive = |value: f64| value.is_finite() && value > 0.0;
        let scaling = match self.rope.scaling {
            RopeScaling::Default => true,
            RopeScaling::Linear { factor } | RopeScaling::Dynamic { factor } => positive(factor),
            RopeScaling::Llama3 { factor, low, high, original } => {
                [factor, low, high, original].into_iter().all(positive) && high > low
            }
        };
        if !scaling || !positive(self.rope.theta) || !self.norm_eps.is_finite() || self.norm_eps < 0.0 {
            return refuse("rope_theta, a rope scaling factor or rms_norm_eps is not a positive number".to_owned());
        }
        Ok(self)
    }
}

/// The members of `config.json` that matter.
#[derive(Deserialize)]
struct Raw {
    model_type: String,
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    #[serde(default = "default_positions")]
    max_position_embeddings: usize,
    rms_norm_eps: f64,
    hidden_act: Option<String>,
    #[serde(default)]
    tie_word_embeddings: bool,
    dtype: Option<String>,
    /// What `transformers` 4 calls it; files that went through both have both.
    torch_dtype: Option<String>,
    /// How the weights are quantized; of such nothing is read.
    quantization_config: Option<RawQuantization>,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    #[serde(default)]
    use_sliding_window: bool,
    num_experts: Option<usize>,
    num_experts_per_tok: Option<usize>,
    moe_intermediate_size: Option<usize>,
    #[serde(default)]
    norm_topk_prob: bool,
    decoder_sparse_step: Option<usize>,
    #[serde(default)]
    mlp_only_layers: Vec<usize>,
    rope_theta: Option<f64>,
    rope_scaling: Option<RawRope>,
    rope_parameters: Option<RawRope>,
}

#[derive(Clone, Default, Deserialize)]
struct RawRope {
    rope_type: Option<String>,
    /// What older files call it; since 4.43 `transformers` writes both.
    r#type: Option<String>,
    rope_theta: Option<f64>,
    factor: Option<f64>,
    low_freq_factor: Option<f64>,
    high_freq_factor: Option<f64>,
    original_max_position_embeddings: Option<f64>,
}

/// What is said of a quantization.
#[derive(Deserialize)]
struct RawQuantization {
    quant_method: Option<String>,
}

/// What two spellings of one member say.
///
/// # Errors
/// [`Error::Unsupported`] when they say two things.
fn either<'r>(names: [&str; 2], a: Option<&'r str>, b: Option<&'r str>) -> Result<Option<&'r str>, Error> {
    match (a, b) {
        (Some(a), Some(b)) if a != b => {
            Err(Error::Unsupported { what: format!("its {} is '{a}' and its {} '{b}'", names[0], names[1]) })
        }
        _ => Ok(a.or(b)),
    }
}

/// What `transformers` assumes where a file does not say.
fn default_positions() -> usize {
    2048
}

impl Raw {
    fn config(self) -> Result<Config, Error> {
        let unsupported = |what: &str| Err(Error::Unsupported { what: what.to_owned() });
        let family = match self.model_type.as_str() {
            "llama" => Family::Llama,
            "qwen2" => Family::Qwen2,
            "qwen3" | "qwen3_moe" => Family::Qwen3,
            other => return unsupported(&format!("model_type is '{other}'")),
        };
        if self.hidden_act.as_deref().is_some_and(|act| act != "silu") {
            return unsupported("its activation is not silu");
        }
        if self.mlp_bias || (self.attention_bias && family != Family::Qwen2) {
            return unsupported("it has biases in its feed-forward or output projections");
        }
        if self.use_sliding_window {
            return unsupported("it attends to a sliding window");
        }
        if self.num_attention_heads == 0 {
            return unsupported("num_attention_heads is 0");
        }
        if let Some(quantization) = &self.quantization_config {
            let method = quantization.quant_method.as_deref().unwrap_or("an unnamed method");
            return unsupported(&format!(
                "its weights are quantized by {method} (quantization_config), whose scales are not read; take the unquantized \
                 checkpoint"
            ));
        }
        let (rope, experts) = (self.rope()?, self.experts()?);
        let dtype = either(["dtype", "torch_dtype"], self.dtype.as_deref(), self.torch_dtype.as_deref())?;
        Config {
            family,
            vocab: self.vocab_size,
            hidden: self.hidden_size,
            intermediate: match experts {
                Some(_) => self.moe_intermediate_size.unwrap_or(self.intermediate_size),
                None => self.intermediate_size,
            },
            layers: self.num_hidden_layers,
            heads: self.num_attention_heads,
            kv_heads: self.num_key_value_heads.unwrap_or(self.num_attention_heads),
            head_dim: self.head_dim.unwrap_or(self.hidden_size / self.num_attention_heads),
            max_positions: self.max_position_embeddings,
            norm_eps: self.rms_norm_eps as f32,
            rope,
            tied: self.tie_word_embeddings,
            qkv_bias: family == Family::Qwen2,
            qk_norm: family == Family::Qwen3,
            experts,
            published: match dtype {
                Some("bfloat16") => Some(Dtype::Bf16),
                Some("float16") => Some(Dtype::F16),
                Some("float32") => Some(Dtype::F32),
                _ => None,
            },
        }
        .check()
    }

    fn experts(&self) -> Result<Option<Experts>, Error> {
        if self.model_type != "qwen3_moe" {
            return Ok(None);
        }
        let unsupported = |what: &str| Err(Error::Unsupported { what: what.to_owned() });
        if self.decoder_sparse_step.is_some_and(|step| step != 1) || !self.mlp_only_layers.is_empty() {
            return unsupported("only some of its layers have experts");
        }
        match (self.num_experts, self.num_experts_per_tok) {
            (Some(count), Some(active)) => Ok(Some(Experts { count, active, normed: self.norm_topk_prob })),
            _ => unsupported("it does not say num_experts and num_experts_per_tok"),
        }
    }

    fn rope(&self) -> Result<Rope, Error> {
        let raw = self.rope_parameters.clone().or_else(|| self.rope_scaling.clone()).unwrap_or_default();
        let theta = raw.rope_theta.or(self.rope_theta).unwrap_or(10_000.0);
        let need = |value: Option<f64>, name: &str| {
            value.ok_or_else(|| Error::Unsupported { what: format!("its rope scaling has no {name}") })
        };
        let kind = either(["rope_type", "rope scaling type"], raw.rope_type.as_deref(), raw.r#type.as_deref())?;
        let scaling = match kind.unwrap_or("default") {
            "default" => RopeScaling::Default,
            "linear" => RopeScaling::Linear { factor: need(raw.factor, "factor")? },
            "dynamic" => RopeScaling::Dynamic { factor: need(raw.factor, "factor")? },
            "llama3" => RopeScaling::Llama3 {
                factor: need(raw.factor, "factor")?,
                low: need(raw.low_freq_factor, "low_freq_factor")?,
                high: need(raw.high_freq_factor, "high_freq_factor")?,
                original: need(raw.original_max_position_embeddings, "original_max_position_embeddings")?,
            },
            other => return Err(Error::Unsupported { what: format!("its rope scaling is '{other}'") }),
        };
        Ok(Rope { theta, scaling })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    const BASE: &str = r#""vocab_size": 32, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1,
        "num_attention_heads": 2, "rms_norm_eps": 1e-6"#;

    fn config(members: &str) -> Result<Config, Error> {
        serde_json::from_str::<Raw>(&format!("{{{BASE}, {members}}}")).unwrap().config()
    }

    #[test]
    fn both_spellings_of_the_rope_are_read() {
        let four =
            config(r#""model_type": "llama", "rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2}"#);
        let five = config(
            r#""model_type": "llama", "rope_parameters": {"rope_theta": 5e5, "rope_type": "linear", "factor": 2}"#,
        );
        let expected = Rope { theta: 5e5, scaling: RopeScaling::Linear { factor: 2.0 } };
        assert_eq!((four.unwrap().rope, five.unwrap().rope), (expected, expected));
        let plain = config(r#""model_type": "qwen3", "rope_scaling": null"#).unwrap();
        assert_eq!(plain.rope, Rope { theta: 10_000.0, scaling: RopeScaling::Default });
        assert!(plain.qk_norm && !plain.qkv_bias);
    }

    #[test]
    fn a_file_with_both_spellings_is_read() {
        let both =
            config(r#""model_type": "llama", "rope_scaling": {"type": "linear", "rope_type": "linear", "factor": 2}"#);
        assert_eq!(both.unwrap().rope.scaling, RopeScaling::Linear { factor: 2.0 });
    }

    #[test]
    fn both_spellings_of_the_published_type_are_read() {
        for (members, published) in [
            (r#""model_type": "llama", "torch_dtype": "bfloat16""#, Some(Dtype::Bf16)),
            (r#""model_type": "llama", "dtype": "float16""#, Some(Dtype::F16)),
            (r#""model_type": "llama", "dtype": "float16", "torch_dtype": "float16""#, Some(Dtype::F16)),
            (r#""model_type": "llama", "dtype": "auto""#, None),
            (r#""model_type": "llama""#, None),
        ] {
            let config = config(members).unwrap();
            assert_eq!(config.published, published, "{members}");
            assert_eq!(config.fingerprint(), Config { published: None, ..config.clone() }.fingerprint());
        }
    }

    #[test]
    fn a_mixture_of_experts_has_the_width_of_one_of_them() {
        let members = r#""model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 2,
            "moe_intermediate_size": 5, "norm_topk_prob": true, "mlp_only_layers": []"#;
        let config = config(members).unwrap();
        assert_eq!(config.experts, Some(Experts { count: 4, active: 2, normed: true }));
        assert_eq!(config.intermediate, 5);
        assert_ne!(config.fingerprint(), Config { experts: None, ..config.clone() }.fingerprint());
        let dense = Config { experts: None, ..config.clone() };
        assert_eq!(config.step_parameters() - dense.step_parameters(), 3 * 8 * 5 + 4 * 8);
    }

    #[test]
    fn what_the_engine_lacks_is_refused_by_name() {
        for (members, word) in [
            (r#""model_type": "mamba""#, "mamba"),
            (r#""model_type": "llama", "hidden_act": "gelu""#, "silu"),
            (r#""model_type": "qwen3_moe""#, "num_experts"),
            (r#""model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 5"#, "4 experts, 5 for a token"),
            (
                r#""model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 2, "decoder_sparse_step": 2"#,
                "some of its layers",
            ),
            (r#""model_type": "llama", "attention_bias": true"#, "biases"),
            (r#""model_type": "qwen2", "use_sliding_window": true"#, "sliding"),
            (r#""model_type": "llama", "rope_scaling": {"rope_type": "yarn", "factor": 4}"#, "yarn"),
            (r#""model_type": "llama", "rope_scaling": {"rope_type": "linear"}"#, "factor"),
            (
                r#""model_type": "llama", "rope_scaling": {"type": "linear", "rope_type": "dynamic", "factor": 2}"#,
                "'linear'",
            ),
            (r#""model_type": "llama", "dtype": "float16", "torch_dtype": "bfloat16""#, "'bfloat16'"),
            (r#""model_type": "llama", "quantization_config": {"quant_method": "fp8"}"#, "fp8"),
            (r#""model_type": "llama", "num_key_value_heads": 3"#, "evenly"),
            (r#""model_type": "llama", "num_key_value_heads": 0"#, "num_key_value_heads"),
            (r#""model_type": "llama", "head_dim": 7"#, "even width"),
            (r#""model_type": "llama", "rope_theta": -1.0"#, "rope_theta"),
        ] {
            let error = config(members).unwrap_err().to_string();
            assert!(error.contains(word), "{members}: {error}");
        }
    }
}
