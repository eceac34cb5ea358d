//! Numbers that are NaN or infinite are told as such, with the first operator that gives one: by the run, by the comparison of
//! two runs and by the diagnosis of the capture.

use std::{
    path::Path,
    process::{Command, Output},
};

const HIDDEN: usize = 16;
const VOCAB: usize = 32;
const LAYERS: usize = 2;
const CONFIG: &str = r#"{"model_type": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 24,
    "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-6,
    "torch_dtype": "float32", "dtype": "float32", "rope_scaling": {"type": "default", "rope_type": "default"}}"#;

/// Writes a checkpoint of a small model, with `value` in the place of one weight of the tensor `spoilt`.
fn checkpoint(directory: &Path, spoilt: &str, value: f32) {
    let mut tensors = vec![("model.embed_tokens.weight".to_owned(), vec![VOCAB, HIDDEN])];
    for layer in 0..LAYERS {
        for (name, shape) in [
            ("input_layernorm", vec![HIDDEN]),
            ("post_attention_layernorm", vec![HIDDEN]),
            ("self_attn.q_proj", vec![HIDDEN, HIDDEN]),
            ("self_attn.k_proj", vec![8, HIDDEN]),
            ("self_attn.v_proj", vec![8, HIDDEN]),
            ("self_attn.o_proj", vec![HIDDEN, HIDDEN]),
            ("mlp.gate_proj", vec![24, HIDDEN]),
            ("mlp.up_proj", vec![24, HIDDEN]),
            ("mlp.down_proj", vec![HIDDEN, 24]),
        ] {
            tensors.push((format!("model.layers.{layer}.{name}.weight"), shape));
        }
    }
    tensors.push(("model.norm.weight".to_owned(), vec![HIDDEN]));
    tensors.push(("lm_head.weight".to_owned(), vec![VOCAB, HIDDEN]));
    tensors.push(("vision_tower.weight".to_owned(), vec![HIDDEN]));
    let (mut header, mut data) = (serde_json::Map::new(), Vec::<u8>::new());
    let mut number = 0u32;
    for (name, shape) in tensors {
        let (start, count) = (data.len(), shape.iter().product::<usize>());
        for at in 0..count {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let made = (number >> 16) as f32 / 65_536.0 - 0.5;
            let weight = if name == spoilt && at == 5 { value } else { made };
            data.extend(weight.to_le_bytes());
        }
        let place = serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] });
        header.insert(name, place);
    }
    let header = serde_json::to_vec(&header).unwrap();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.extend(data);
    std::fs::write(directory.join("model.safetensors"), file).unwrap();
    std::fs::write(directory.join("config.json"), CONFIG).unwrap();
}

fn strato(arguments: &[&str], directory: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_strato")).args(arguments).current_dir(directory).env("LANG", "C").output().unwrap()
}

fn texts(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

const RUN: &[&str] = &["run", "--plain", "--model", ".", "--threads", "1", "--prompt-len", "4", "--gen", "6"];

#[test]
fn a_weight_that_is_no_number_is_named_by_run_numdiff_and_diagnose() {
    for (value, tensor, layer, operator) in [
        (f32::NAN, "model.layers.1.mlp.down_proj.weight", 1, "down_proj"),
        (f32::INFINITY, "model.layers.0.self_attn.q_proj.weight", 0, "q_proj"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        checkpoint(path, tensor, value);
        let place = format!("layer {layer}, operator {operator}");
        for more in [&[][..], &["--mode", "graph"], &["--tp", "1", "--numerics"]] {
            let (code, out, error) = texts(&strato(&[RUN, &["-o", "run.strato"], more].concat(), path));
            assert_eq!(code, Some(1), "{more:?}: {out}{error}");
            let line = out.lines().find(|line| line.starts_with("numbers ")).unwrap_or_else(|| panic!("{out}"));
            assert!(line.contains("not finite") && line.contains(&place), "{more:?}: {line}");
            assert!(error.contains("1 more tensors (vision_tower.weight)"), "{error}");
        }
        let said = json(&strato(&[RUN, &["--json"]].concat(), path));
        assert!(said["not_finite"].as_str().unwrap().contains(&place), "{said}");

        for sides in [["f32", "bf16"], ["f32", "f32"], ["bf16,graph", "f16"]] {
            let output =
                strato(&["numdiff", sides[0], sides[1], "--model", ".", "--format", "json", "--gen", "3"], path);
            assert_eq!(output.status.code(), Some(1), "{sides:?}");
            let document = json(&output);
            assert_eq!(document["verdict"], "not_finite", "{sides:?}");
            for side in ["a", "b"] {
                let at = &document["not_finite"][side];
                assert_eq!(
                    (&at["layer"], &at["op"]),
                    (&layer.into(), &operator.into()),
                    "{sides:?} {side}: {document}"
                );
            }
            let text = texts(&strato(&["numdiff", sides[0], sides[1], "--model", ".", "--gen", "3"], path)).1;
            assert!(!text.contains("Within precision") && text.contains("both sides at layer"), "{text}");
        }

        let (code, report, error) = texts(&strato(&["diagnose", "run.strato", "--fail-on", "critical"], path));
        assert_eq!(code, Some(1), "{report}{error}");
        assert!(report.contains("NM-01") && report.contains(&place), "{report}");
        let document = json(&strato(&["diagnose", "run.strato", "--format", "json"], path));
        let finding = &document["findings"][0];
        assert_eq!((&finding["rule"], &finding["layer"]), (&"NM-01".into(), &"operator".into()), "{finding}");
        assert!(finding["claim"].as_str().unwrap().contains(&place), "{finding}");
        let run = document["verdict"]["levels"][0]["checks"].as_array().unwrap();
        assert_eq!(run[1]["met"], false, "{run:?}");
    }
}

#[test]
fn a_run_with_finite_numbers_says_so_and_has_no_such_finding() {
    let directory = tempfile::tempdir().unwrap();
    checkpoint(directory.path(), "none", 0.0);
    let (code, out, error) = texts(&strato(&[RUN, &["-o", "run.strato", "--numerics"]].concat(), directory.path()));
    assert_eq!(code, Some(0), "{error}");
    assert!(out.contains("numbers  within precision"), "{out}");
    let shown = texts(&strato(&["manifest", "show", "run.strato"], directory.path())).1;
    assert!(shown.contains("yes: the logits of all 6 steps") && shown.contains("model.unused_tensors"), "{shown}");
    let report = texts(&strato(&["diagnose", "run.strato"], directory.path())).1;
    assert!(!report.contains("NM-01"), "{report}");
}
