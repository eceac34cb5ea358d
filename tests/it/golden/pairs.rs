//! Comparisons, each with the declaration that lies beside it: `NAME.toml`.

use std::path::Path;

use super::{accepts, all_hold, folder, held_against};
use crate::common::{
    corpus,
    pair::{Known, declaration, steady},
    printed, read, samples, schema,
};

/// Compares two captures of a folder in some languages.
fn compared(name: &str, langs: &[&str], folder_of_captures: &Path, [a, b]: [&str; 2]) {
    let declared = folder().join(format!("{name}.toml"));
    if accepts() && !declared.exists() {
        let captures = [a, b].map(|file| read(&folder_of_captures.join(file)));
        std::fs::write(&declared, declaration(captures.each_ref(), Known::Hard)).unwrap();
    }
    let json =
        printed(&["diff", "--format", "json", "--declare", declared.to_str().unwrap(), a, b], folder_of_captures);
    schema::check(&schema::read("strato.diff"), &serde_json::from_str(&json).unwrap(), name);
    all_hold(langs.iter().map(|lang| {
        let declared = declared.to_str().unwrap();
        let page = printed(&["diff", "--lang", lang, "--declare", declared, a, b], folder_of_captures);
        let ending = if *lang == "en" { "md" } else { "zh.md" };
        held_against(&format!("{name}.{ending}"), &page)
    }));
}

#[test]
fn two_runs_of_one_model_are_compared_as_accepted() {
    let files = steady();
    let names = files.each_ref().map(|file| file.file_name().unwrap().to_str().unwrap());
    compared("diff-steady", &["en", "zh"], files[0].parent().unwrap(), names);
}

/// One of the samples compiles in its first step that counts. No declaration makes such a pair comparable, and the page goes on
/// with the report on each side.
#[test]
fn a_pair_that_may_not_be_compared_is_refused_as_accepted() {
    compared("diff-samples", &["en"], &samples(), ["healthy-full-graph.json.gz", "launch-bound-eager.json.gz"]);
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn two_vendors_are_compared_as_accepted() {
    let of = |device: &str| format!("{device}/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz");
    compared("diff-qwen-h100-mi300", &["en", "zh"], &corpus().join("kineto"), [&of("tl-h100"), &of("tl-mi300")]);
}
