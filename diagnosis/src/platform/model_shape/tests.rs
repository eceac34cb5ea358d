#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::platform::Packs;

#[test]
fn the_parameters_of_every_known_model_follow_from_its_shape() {
    let packs = Packs::embedded().unwrap();
    assert!(packs.models().len() >= 60, "{}", packs.models().len());
    for model in packs.models() {
        let off = model.parameters() / model.published - 1.0;
        assert!(
            off.abs() < 0.03,
            "{}: {:.3e} by its shape, {:.3e} published",
            model.name,
            model.parameters(),
            model.published
        );
        assert!(model.source.contains("config.json"), "{}", model.name);
        let same = packs.models().iter().filter(|other| other.is(&model.name));
        assert_eq!(same.count(), 1, "{}: two models have one name", model.name);
    }
}

#[test]
fn a_wrong_row_would_not_stay() {
    let packs = Packs::embedded().unwrap();
    let wrong = ModelShape { layers: 38, ..packs.model("Qwen3-8B").unwrap().clone() };
    assert!((wrong.parameters() / packs.model("Qwen3-8B").unwrap().published - 1.0).abs() > 0.03);
}

#[test]
fn models_are_known_by_the_names_of_their_versions() {
    let packs = Packs::embedded().unwrap();
    let name = |asked: &str| packs.model(asked).map(|model| model.name.as_str());
    assert_eq!(name("Qwen/Qwen3-8B-FP8"), Some("Qwen/Qwen3-8B"));
    assert_eq!(name("llama-3.1-8b-instruct"), Some("meta-llama/Meta-Llama-3.1-8B"));
    assert_eq!(name("/models/DeepSeek-R1-0528"), Some("deepseek-ai/DeepSeek-R1"));
    assert_eq!(name("gpt-oss-120b"), Some("openai/gpt-oss-120b"));
    for unknown in ["Qwen3-9B", "", "/", "instruct", "Llama"] {
        assert_eq!(name(unknown), None, "{unknown}");
    }
}

const QWEN3: &str = r#"{"model_type":"qwen3","hidden_size":4096,"num_hidden_layers":36,"num_attention_heads":32,
    "num_key_value_heads":8,"head_dim":128,"intermediate_size":12288,"vocab_size":151936,"tie_word_embeddings":false,
    "torch_dtype":"bfloat16"}"#;

#[test]
fn a_configuration_gives_the_shape_of_the_pack() {
    let packs = Packs::embedded().unwrap();
    let read = ModelShape::from_config("x", QWEN3).unwrap();
    let known = packs.model("Qwen3-8B").unwrap();
    assert_eq!((read.parameters(), read.cache()), (known.parameters(), known.cache()));
    assert_eq!(read.weight_bytes, Some(2.0));
    let moe = r#"{"text_config":{"hidden_size":2048,"num_hidden_layers":48,"num_attention_heads":32,"num_key_value_heads":4,
        "head_dim":128,"intermediate_size":6144,"vocab_size":151936,"num_experts":128,"num_experts_per_tok":8,
        "moe_intermediate_size":768},"quantization_config":{"quant_method":"fp8"}}"#;
    let read = ModelShape::from_config("x", moe).unwrap();
    assert_eq!((read.parameters(), read.weight_bytes), (packs.model("Qwen3-30B-A3B").unwrap().parameters(), Some(1.0)));
}

#[test]
fn a_configuration_that_cannot_be_is_refused_and_no_number_overflows() {
    for (from, to, why) in [
        ("\"hidden_size\":4096,", "", ShapeError::Absent("hidden_size")),
        ("4096", "0", ShapeError::Size("hidden_size", 0)),
        ("36", "18446744073709551615", ShapeError::Size("num_hidden_layers", u64::MAX)),
        ("151936", "99999999999", ShapeError::Size("vocab_size", 99_999_999_999)),
    ] {
        assert_eq!(ModelShape::from_config("x", &QWEN3.replacen(from, to, 1)).unwrap_err(), why);
    }
    for text in ["", "[]", "{", "null", "{\"hidden_size\":-1}", "{\"hidden_size\":4096,\"num_hidden_layers\":1e9}"] {
        assert!(ModelShape::from_config("x", text).is_err(), "{text}");
    }
    let long = " ".repeat(MAX_CONFIG + 1);
    assert_eq!(ModelShape::from_config("x", &long).unwrap_err(), ShapeError::TooLong(MAX_CONFIG + 1));
    let experts = QWEN3.replacen(
        '{',
        "{\"num_experts\":16777216,\"num_experts_per_tok\":16777216,\"n_shared_experts\":99999999999,",
        1,
    );
    assert!(ModelShape::from_config("x", &experts).is_err());
}
