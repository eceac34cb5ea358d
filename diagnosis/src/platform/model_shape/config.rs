//! The shape that the `config.json` of a checkpoint describes: untrusted input.

use serde_json::{Map, Value};

use super::{Experts, Latent, LinearAttention, MAX_CONFIG, MAX_DIM, ModelShape, ShapeError, Sliding};

impl ModelShape {
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
            sliding: sliding(config, layers),
            weight_bytes: weight_bytes(config, whole),
            published: 0.0,
            source: "config.json".to_owned(),
        };
        shape.bounded()?;
        Ok(shape)
    }
}

/// Layers with a sliding window as the configuration says it.
fn sliding(config: &Map<String, Value>, layers: u64) -> Option<Sliding> {
    let number = |key: &str| config.get(key).and_then(Value::as_u64);
    let window = number("sliding_window").or(number("attention_chunk_size"))?.min(MAX_DIM);
    if config.get("use_sliding_window").and_then(Value::as_bool) == Some(false) {
        return None;
    }
    if let Some(types) = config.get("layer_types").and_then(Value::as_array) {
        let slides =
            |kind: &&Value| kind.as_str().is_some_and(|kind| kind.contains("sliding") || kind.contains("chunked"));
        return Some(Sliding { layers: (types.iter().filter(slides).count() as u64).min(layers), window });
    }
    let every = number("sliding_window_pattern").filter(|every| *every > 0);
    Some(Sliding { layers: every.map_or(layers, |every| layers - layers / every), window })
}

/// Bytes of a weight as the configuration says it.
fn weight_bytes(config: &Map<String, Value>, whole: &Map<String, Value>) -> Option<f64> {
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
