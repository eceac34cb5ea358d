//! `strato numdiff`: verdict, form and exit code of comparisons of real runs of the reference engine.

use std::process::{Command, Output};

fn strato(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strato"));
    command.arg("numdiff").args(arguments).env_clear().env("LANG", "C.UTF-8").output().unwrap()
}

fn json(arguments: &[&str], code: i32) -> serde_json::Value {
    let output = strato(&[arguments, &["--format", "json", "--prompt-len", "5", "--gen", "3", "--quiet"]].concat());
    assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn verdicts_are_those_of_the_sides_that_were_described() {
    let of = |arguments: &[&str], code| json(arguments, code)["verdict"].as_str().unwrap().to_owned();
    assert_eq!(of(&["bf16,fused", "bf16,graph,fused,kv-block=4,threads=1"], 0), "bit_equal");
    assert_eq!(of(&["f32", "bf16"], 0), "within_precision");
    assert_eq!(of(&["q8,composite", "f32,fused,portable"], 0), "within_precision");
    for (fault, op, layer) in [
        ("rope_base_wrong", "rope", 0),
        ("bf16_accum", "q_proj", 0),
        ("stale_kv:layer=1", "kv_cache_append", 1),
        ("nan_at:layer=1", "down_proj", 1),
    ] {
        let document = json(&["f32", "bf16", "--inject", fault, "--seed", "3"], 1);
        let verdict = if fault.starts_with("nan_at") { "not_finite" } else { "faulty" };
        assert_eq!(document["verdict"], verdict);
        assert_eq!((&document["first"]["op"], &document["first"]["layer"]), (&op.into(), &layer.into()), "{fault}");
    }
}

#[test]
fn the_text_names_the_operator_in_both_languages() {
    let text = |arguments: &[&str]| {
        let output = strato(&[arguments, &["--prompt-len", "4", "--gen", "2", "--inject", "nan_at:layer=1"]].concat());
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stdout).unwrap()
    };
    let english = text(&["bf16", "bf16", "--all"]);
    assert!(english.contains("B: layer 1, operator `down_proj` from step 0 on, and A nowhere.**"), "{english}");
    assert!(english.contains("A gives 0 and B "), "{english}");
    assert!(english.contains("Operators in the order of the step"), "{english}");
    let chinese = text(&["bf16", "bf16", "--lang", "zh"]);
    assert!(chinese.contains("B：第 1 层，算子 `down_proj`，始于第 0 步，A 没有。**"), "{chinese}");
    for word in ["operator", "Errors", "prompt "] {
        assert!(!chinese.contains(word), "{word}: {chinese}");
    }
}

#[test]
fn what_describes_no_side_is_refused_with_the_words_that_do() {
    for (arguments, code, words) in [
        (&["f32", "bf17"][..], 2, "f32, f16, bf16, q8"),
        (&["f32", "bf16", "--model", "gpt-5"], 2, "named shape"),
        (&["f32", "f32,model=qwen3-0.6b"], 2, "two shapes"),
        (&["f32", "bf16", "--inject", "padding:to=4"], 2, "without padding"),
        (&["f32", "bf16", "--prompt-ids", "1,600"], 2, "token 600"),
        (&["f32", "bf16", "--prompt-ids", "no/such/file"], 3, "no/such/file"),
    ] {
        let output = strato(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}
