//! Shapes of public models, for runs with synthetic weights. Numbers are those of each model's `config.json` on its
//! model card (read 2026-11).

use super::{Config, Experts, Family, Rope, RopeScaling};
use crate::Dtype;

/// Names of the shapes.
pub const PRESETS: [&str; 10] = [
    "tiny",
    "tiny-moe",
    "qwen2.5-0.5b",
    "qwen2.5-1.5b",
    "llama-3.2-1b",
    "llama-3.1-8b",
    "qwen3-0.6b",
    "qwen3-1.7b",
    "qwen3-8b",
    "qwen3-30b-a3b",
];

struct Shape {
    family: Family,
    vocab: usize,
    hidden: usize,
    intermediate: usize,
    layers: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    tied: bool,
}

/// The shape of that name.
pub fn preset(name: &str) -> Option<Config> {
    use Family::{Llama, Qwen2, Qwen3};
    let row = |family, vocab, hidden, intermediate, layers, heads, kv_heads, head_dim, tied| Shape {
        family,
        vocab,
        hidden,
        intermediate,
        layers,
        heads,
        kv_heads,
        head_dim,
        tied,
    };
    let shape = match name {
        "tiny" => row(Qwen2, 512, 64, 160, 2, 4, 2, 16, true),
        "tiny-moe" => row(Qwen3, 512, 64, 48, 2, 4, 2, 16, true),
        "qwen2.5-0.5b" => row(Qwen2, 151_936, 896, 4864, 24, 14, 2, 64, true),
        "qwen2.5-1.5b" => row(Qwen2, 151_936, 1536, 8960, 28, 12, 2, 128, true),
        "llama-3.2-1b" => row(Llama, 128_256, 2048, 8192, 16, 32, 8, 64, true),
        "llama-3.1-8b" => row(Llama, 128_256, 4096, 14_336, 32, 32, 8, 128, false),
        "qwen3-0.6b" => row(Qwen3, 151_936, 1024, 3072, 28, 16, 8, 128, true),
        "qwen3-1.7b" => row(Qwen3, 151_936, 2048, 6144, 28, 16, 8, 128, true),
        "qwen3-8b" => row(Qwen3, 151_936, 4096, 12_288, 36, 32, 8, 128, false),
        "qwen3-30b-a3b" => row(Qwen3, 151_936, 2048, 768, 48, 32, 4, 128, false),
        _ => return None,
    };
    let experts = match name {
        "tiny-moe" => Some(Experts { count: 8, active: 2, normed: true }),
        "qwen3-30b-a3b" => Some(Experts { count: 128, active: 8, normed: true }),
        _ => None,
    };
    let llama3 = |factor| RopeScaling::Llama3 { factor, low: 1.0, high: 4.0, original: 8192.0 };
    let (theta, scaling, max_positions, norm_eps) = match name {
        "llama-3.2-1b" => (500_000.0, llama3(32.0), 131_072, 1e-5),
        "llama-3.1-8b" => (500_000.0, llama3(8.0), 131_072, 1e-5),
        "tiny" | "tiny-moe" => (10_000.0, RopeScaling::Default, 2048, 1e-6),
        name if name.starts_with("qwen3") => (1_000_000.0, RopeScaling::Default, 40_960, 1e-6),
        _ => (1_000_000.0, RopeScaling::Default, 32_768, 1e-6),
    };
    Some(Config {
        family: shape.family,
        vocab: shape.vocab,
        hidden: shape.hidden,
        intermediate: shape.intermediate,
        layers: shape.layers,
        heads: shape.heads,
        kv_heads: shape.kv_heads,
        head_dim: shape.head_dim,
        max_positions,
        norm_eps,
        rope: Rope { theta, scaling },
        tied: shape.tied,
        qkv_bias: shape.family == Qwen2,
        qk_norm: shape.family == Qwen3,
        experts,
        // Every one of the public models; ours were never published.
        published: (!name.starts_with("tiny")).then_some(Dtype::Bf16),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn every_name_has_a_shape_that_would_load() {
        for name in PRESETS {
            assert!(preset(name).unwrap().check().is_ok(), "{name}");
        }
        assert_eq!(preset("gpt-2"), None);
        // 494.03 M parameters are the published size of Qwen2.5-0.5B, biases and norms apart.
        assert_eq!(preset("qwen2.5-0.5b").unwrap().step_parameters(), 493_961_216);
    }
}
