//! Shapes of models: from a pack by name, or from the `config.json` of a checkpoint, which is untrusted input.

use serde::Deserialize;
use serde_json::Value;

/// Longest `config.json` that is read, in bytes; the longest ones list the type of each layer and have some 20 KiB.
pub const MAX_CONFIG: usize = 1 << 20;

/// Largest size of any dimension.
const MAX_DIM: u64 = 1 << 24;
/// Most layers.
const MAX_LAYERS: u64 = 10_000;

/// Why a text gives no shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// It is longer than any configuration.
    #[error("it has {0} bytes, a model's config.json at most {MAX_CONFIG}")]
    TooLong(usize),
    /// It is no JSON object.
    #[error("it is no JSON object: {0}")]
    NoJson(String),
    /// A size is absent.
    #[error("it does not say `{0}`")]
    Absent(&'static str),
    /// A size cannot be.
    #[error("`{0}` is {1}, which no model has")]
    Size(&'static str, u64),
}

/// Mixture of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experts {
    /// Experts of a layer.
    pub experts: u64,
    /// Experts that a token goes to.
    pub per_token: u64,
    /// Inner width of an expert.
    pub intermediate: u64,
    /// Inner width of all shared experts together, 0 without any.
    pub shared_intermediate: u64,
    /// Layers with a dense MLP instead.
    pub dense_layers: u64,
}

/// Ranks of multi-head latent attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latent {
    /// Rank of the queries; 0 where they are not compressed.
    pub q_rank: u64,
    /// Rank of keys and values: what the cache holds of a token, next to `rope`.
    pub kv_rank: u64,
    /// Part of a query's head without position.
    pub nope: u64,
    /// Part with rotary position.
    pub rope: u64,
    /// Size of a value's head.
    pub value: u64,
}

/// Layers with linear attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearAttention {
    /// How many of the layers.
    pub layers: u64,
    /// Heads of queries and keys.
    pub key_heads: u64,
    /// Heads of values.
    pub value_heads: u64,
    /// Size of a key's head.
    pub key_dim: u64,
    /// Size of a value's head.
    pub value_dim: u64,
}

/// The shape of a decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelShape {
    /// Name on the hub, or that of a file.
    pub name: String,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Layers.
    pub layers: u64,
    /// Heads of queries.
    pub heads: u64,
    /// Heads of keys and values.
    pub kv_heads: u64,
    /// Size of a head.
    pub head_dim: u64,
    /// Inner width of a dense MLP; 0 where no layer has one.
    pub intermediate: u64,
    /// Rows of the embedding.
    pub vocab: u64,
    /// Whether the last product takes the weights of the embedding.
    pub tied: bool,
    /// Whether a dense MLP is two matrices and not three.
    pub plain_mlp: bool,
    /// Whether attention has a gate as wide as its queries.
    pub gated_attention: bool,
    /// Mixture of experts.
    pub moe: Option<Experts>,
    /// Multi-head latent attention.
    pub mla: Option<Latent>,
    /// Linear attention in some of the layers.
    pub linear: Option<LinearAttention>,
    /// Bytes of a weight, where the configuration says how they are kept.
    pub weight_bytes: Option<f64>,
    /// Published number of parameters; 0 where nobody said it.
    pub published: f64,
    /// Where the shape stands.
    pub source: String,
}

/// A row of a pack.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelEntry {
    name: String,
    hidden: u64,
    layers: u64,
    heads: u64,
    kv_heads: u64,
    head_dim: u64,
    intermediate: u64,
    vocab: u64,
    #[serde(default)]
    tied: bool,
    #[serde(default)]
    plain_mlp: bool,
    #[serde(default)]
    gated_attention: bool,
    moe: Option<Experts>,
    mla: Option<Latent>,
    linear: Option<LinearAttention>,
    parameters: f64,
    source: String,
}

impl ModelEntry {
    /// The shape of a row whose sizes can be.
    pub fn shape(self) -> Result<ModelShape, String> {
        let shape = ModelShape {
            name: self.name,
            hidden: self.hidden,
            layers: self.layers,
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            intermediate: self.intermediate,
            vocab: self.vocab,
            tied: self.tied,
            plain_mlp: self.plain_mlp,
            gated_attention: self.gated_attention,
            moe: self.moe,
            mla: self.mla,
            linear: self.linear,
            weight_bytes: None,
            published: self.parameters,
            source: self.source,
        };
        shape.bounded().map_err(|error| format!("{}: {error}", shape.name))?;
        Ok(shape)
    }
}

/// Words in names of models that say nothing of their shape.
const NOISE: [&str; 32] = [
    "meta",
    "hf",
    "instruct",
    "chat",
    "base",
    "it",
    "pt",
    "fp8",
    "bf16",
    "fp16",
    "awq",
    "gptq",
    "int8",
    "int4",
    "w8a8",
    "w4a16",
    "nvfp4",
    "mxfp4",
    "fp4",
    "quantized",
    "dynamic",
    "thinking",
    "2507",
    "0905",
    "0528",
    "0324",
    "0711",
    "preview",
    "gguf",
    "static",
    "4bit",
    "8bit",
];

/// The words of a model's name that tell its shape.
fn words(name: &str) -> Vec<String> {
    let name = name.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(name).to_ascii_lowercase();
    name.split(['-', '_', ' ']).filter(|word| !word.is_empty() && !NOISE.contains(word)).map(str::to_owned).collect()
}

impl ModelShape {
    /// Whether a name is this model's, whatever organisation, tuning or quantisation it names.
    pub fn is(&self, name: &str) -> bool {
        let asked = words(name);
        !asked.is_empty() && words(&self.name) == asked
    }

    /// Whether every size can be; the products below then stay far from what numbers hold.
    fn bounded(&self) -> Result<(), ShapeError> {
        let moe = self.moe.unwrap_or(Experts {
            experts: 1,
            per_token: 1,
            intermediate: 1,
            shared_intermediate: 0,
            dense_layers: 0,
        });
        let mla = self.mla.unwrap_or(Latent { q_rank: 0, kv_rank: 1, nope: 1, rope: 0, value: 1 });
        let linear = self.linear.unwrap_or(LinearAttention {
            layers: 0,
            key_heads: 1,
            value_heads: 1,
            key_dim: 1,
            value_dim: 1,
        });
        for (name, size, least, most) in [
            ("hidden_size", self.hidden, 1, MAX_DIM),
            ("num_hidden_layers", self.layers, 1, MAX_LAYERS),
            ("num_attention_heads", self.heads, 1, MAX_DIM),
            ("num_key_value_heads", self.kv_heads, 1, MAX_DIM),
            ("head_dim", self.head_dim, 1, MAX_DIM),
            ("intermediate_size", self.intermediate, 0, MAX_DIM),
            ("vocab_size", self.vocab, 1, MAX_DIM),
            ("num_experts", moe.experts, 1, MAX_DIM),
            ("num_experts_per_tok", moe.per_token, 1, moe.experts),
            ("moe_intermediate_size", moe.intermediate, 1, MAX_DIM),
            ("shared_expert_intermediate_size", moe.shared_intermediate, 0, MAX_DIM),
            ("first_k_dense_replace", moe.dense_layers, 0, self.layers),
            ("q_lora_rank", mla.q_rank, 0, MAX_DIM),
            ("kv_lora_rank", mla.kv_rank, 1, MAX_DIM),
            ("qk_nope_head_dim", mla.nope, 0, MAX_DIM),
            ("qk_rope_head_dim", mla.rope, 0, MAX_DIM),
            ("v_head_dim", mla.value, 1, MAX_DIM),
            ("linear_num_key_heads", linear.key_heads, 1, MAX_DIM),
            ("linear_num_value_heads", linear.value_heads, 1, MAX_DIM),
            ("linear_key_head_dim", linear.key_dim, 1, MAX_DIM),
            ("linear_value_head_dim", linear.value_dim, 1, MAX_DIM),
            ("layer_types", linear.layers, 0, self.layers),
        ] {
            if !(least..=most).contains(&size) {
                return Err(ShapeError::Size(name, size));
            }
        }
        Ok(())
    }

    /// The shape that the text of a `config.json` describes.
    ///
    /// # Errors
    /// A text that is no configuration, or one with a size that no model has.
    pub fn from_config(name: &str, text: &str) -> Result<Self, ShapeError> {
        if text.len() > MAX_CONFIG {
            return Err(ShapeError::TooLong(text.len()));
        }
        let whole: Value = serde_json::from_str(text).map_err(|error| ShapeError::NoJson(error.to_string()))?;
        let whole = whole.as_object().ok_or_else(|| ShapeError::NoJson("another value".to_owned()))?;
        // Models that see or hear keep what concerns the text apart.
        let config = whole.get("text_config").and_then(Value::as_object).unwrap_or(whole);
        let find = |keys: &[&str]| keys.iter().find_map(|key| config.get(*key).and_then(Value::as_u64));
        let need = |keys: &[&'static str]| {
            find(keys).ok_or_else(|| ShapeError::Absent(keys.first().copied().unwrap_or_default()))
        };
        let flag = |key: &str| [config, whole].iter().find_map(|at| at.get(key).and_then(Value::as_bool));
        let hidden = need(&["hidden_size", "n_embd", "d_model"])?;
        let layers = need(&["num_hidden_layers", "n_layer", "num_layers"])?;
        let heads = need(&["num_attention_heads", "n_head"])?;
        let experts = find(&["n_routed_experts", "num_local_experts", "num_experts"]).filter(|experts| *experts > 1);
        let mla = find(&["kv_lora_rank"]).map(|kv_rank| Latent {
            q_rank: find(&["q_lora_rank"]).unwrap_or(0),
            kv_rank,
            nope: find(&["qk_nope_head_dim"]).unwrap_or(0),
            rope: find(&["qk_rope_head_dim"]).unwrap_or(64),
            value: find(&["v_head_dim"]).unwrap_or(1),
        });
        let intermediate = find(&["intermediate_size", "n_inner", "ffn_hidden_size"]);
        let moe = match experts {
            None => None,
            Some(experts) => {
                let inner = find(&["moe_intermediate_size"]).or(intermediate);
                let inner = inner.ok_or(ShapeError::Absent("moe_intermediate_size"))?;
                let shared = find(&["shared_expert_intermediate_size", "shared_intermediate_size"]);
                let shared = shared.or(find(&["n_shared_experts"]).map(|n| n.saturating_mul(inner)));
                Some(Experts {
                    experts,
                    per_token: need(&["num_experts_per_tok", "moe_topk", "top_k_experts"])?,
                    intermediate: inner,
                    shared_intermediate: shared.unwrap_or(0),
                    dense_layers: find(&["first_k_dense_replace"]).unwrap_or(0),
                })
            }
        };
        let linear = match (find(&["linear_num_key_heads"]), find(&["full_attention_interval"])) {
            (Some(key_heads), Some(every)) if every > 0 => Some(LinearAttention {
                layers: layers - layers / every,
                key_heads,
                value_heads: find(&["linear_num_value_heads"]).unwrap_or(key_heads),
                key_dim: find(&["linear_key_head_dim"]).unwrap_or(128),
                value_dim: find(&["linear_value_head_dim"]).unwrap_or(128),
            }),
            _ => None,
        };
        let head_dim = mla.map(|mla| mla.nope.saturating_add(mla.rope)).or(find(&["head_dim"]));
        let shape = Self {
            name: name.to_owned(),
            hidden,
            layers,
            heads,
            kv_heads: if mla.is_some() { heads } else { find(&["num_key_value_heads"]).unwrap_or(heads) },
            head_dim: head_dim.unwrap_or(hidden / heads.max(1)),
            intermediate: match moe {
                Some(moe) if moe.dense_layers == 0 => 0,
                _ => intermediate.ok_or(ShapeError::Absent("intermediate_size"))?,
            },
            vocab: need(&["vocab_size"])?,
            tied: flag("tie_word_embeddings").unwrap_or(false),
            plain_mlp: ["gpt2", "opt", "phi", "starcoder2", "gpt_neox", "falcon"]
                .contains(&config.get("model_type").and_then(Value::as_str).unwrap_or_default()),
            gated_attention: linear.is_some(),
            moe,
            mla,
            linear,
            weight_bytes: weight_bytes(config, whole),
            published: 0.0,
            source: "config.json".to_owned(),
        };
        shape.bounded()?;
        Ok(shape)
    }

    /// Weights of the attention of a layer with softmax attention.
    pub fn attention(&self) -> f64 {
        let [hidden, heads, head] = [self.hidden, self.heads, self.head_dim].map(|n| n as f64);
        if let Some(mla) = self.mla {
            let [q_rank, kv_rank, rope, nope, value] =
                [mla.q_rank, mla.kv_rank, mla.rope, mla.nope, mla.value].map(|n| n as f64);
            let queries = if q_rank > 0.0 { hidden * q_rank + q_rank * heads * head } else { hidden * heads * head };
            return queries + hidden * (kv_rank + rope) + kv_rank * heads * (nope + value) + heads * value * hidden;
        }
        let queries = heads * head * if self.gated_attention { 2.0 } else { 1.0 };
        hidden * (queries + 2.0 * self.kv_heads as f64 * head) + heads * head * hidden
    }

    /// Weights of the attention of a layer with linear attention.
    pub fn linear_attention(&self) -> f64 {
        let Some(linear) = self.linear else { return 0.0 };
        let [keys, values] =
            [linear.key_heads * linear.key_dim, linear.value_heads * linear.value_dim].map(|n| n as f64);
        let hidden = self.hidden as f64;
        hidden * (2.0 * keys + 2.0 * values + 2.0 * linear.value_heads as f64) + values * hidden
    }

    /// Weights of a dense MLP.
    pub fn dense_mlp(&self) -> f64 {
        let matrices = if self.plain_mlp { 2.0 } else { 3.0 };
        matrices * self.hidden as f64 * self.intermediate as f64
    }

    /// Weights of one expert.
    pub fn expert(&self) -> f64 {
        self.moe.map_or(0.0, |moe| 3.0 * self.hidden as f64 * moe.intermediate as f64)
    }

    /// Weights of the shared experts and of the router of a layer.
    pub fn shared(&self) -> f64 {
        let hidden = self.hidden as f64;
        self.moe.map_or(0.0, |moe| 3.0 * hidden * moe.shared_intermediate as f64 + hidden * moe.experts as f64)
    }

    /// Layers with experts.
    pub fn moe_layers(&self) -> f64 {
        self.moe.map_or(0.0, |moe| (self.layers - moe.dense_layers) as f64)
    }

    /// Weights of everything but embedding and last product, where of each layer with experts so many are read.
    pub fn body(&self, experts: f64) -> f64 {
        let linear = self.linear.map_or(0.0, |linear| linear.layers as f64);
        let layers = self.layers as f64;
        let mlps = (layers - self.moe_layers()) * self.dense_mlp()
            + self.moe_layers() * (self.shared() + experts * self.expert());
        (layers - linear) * self.attention() + linear * self.linear_attention() + mlps
    }

    /// Weights of the last product.
    pub fn head(&self) -> f64 {
        self.vocab as f64 * self.hidden as f64
    }

    /// All parameters, norms included.
    pub fn parameters(&self) -> f64 {
        let experts = self.moe.map_or(0.0, |moe| moe.experts as f64);
        let embeddings = self.head() * if self.tied { 1.0 } else { 2.0 };
        self.body(experts) + embeddings + 2.0 * (self.hidden * self.layers) as f64
    }

    /// Elements that the cache of a token holds over all layers with softmax attention.
    pub fn cache(&self) -> f64 {
        let layers = (self.layers - self.linear.map_or(0, |linear| linear.layers)) as f64;
        let of_layer = self.mla.map_or(2 * self.kv_heads * self.head_dim, |mla| mla.kv_rank + mla.rope);
        layers * of_layer as f64
    }
}

/// Bytes of a weight as the configuration says it.
fn weight_bytes(config: &serde_json::Map<String, Value>, whole: &serde_json::Map<String, Value>) -> Option<f64> {
    let at = |key: &str| config.get(key).or_else(|| whole.get(key));
    if let Some(quantized) = at("quantization_config").and_then(Value::as_object) {
        let method = quantized.get("quant_method").and_then(Value::as_str).unwrap_or_default();
        let bits = quantized.get("bits").and_then(Value::as_u64).filter(|bits| (1..=16).contains(bits));
        return match (method, bits) {
            (_, Some(bits)) => Some(bits as f64 / 8.0),
            ("fp8" | "fbgemm_fp8", None) => Some(1.0),
            ("mxfp4", None) => Some(0.53),
            _ => None,
        };
    }
    match at("torch_dtype").or_else(|| at("dtype")).and_then(Value::as_str)? {
        "bfloat16" | "float16" => Some(2.0),
        "float32" => Some(4.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
