#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{collections::HashMap, io::Read, path::PathBuf};

use proptest::prelude::*;

use super::*;
use crate::platform::{CanonicalOp, Packs};

/// A sequence with a planted period.
fn planted(prologue: &[u32], body: &[u32], repeats: usize, epilogue: &[u32]) -> Vec<u32> {
    [prologue, &body.repeat(repeats), epilogue].concat()
}

#[test]
fn a_clean_repeat_is_found_whole() {
    let symbols = planted(&[90, 91], &[1, 2, 3, 4, 2], 24, &[92]);
    let period = mine(&symbols, &[]).unwrap();
    assert_eq!((period.start, period.len, period.repeats), (2, 5, 24));
    assert_eq!((period.prologue, period.epilogue), (0..2, 122..123));
    assert_eq!(period.body, [1, 2, 3, 4, 2]);
    assert!((period.agreement - 1.0).abs() < 1e-12);
}

#[test]
fn layers_of_alternating_types_are_one_body() {
    // Same length, one kernel differs: a period of one layer would be flawed in every second copy.
    let even: Vec<u32> = (0..20).collect();
    let odd: Vec<u32> = even.iter().map(|s| if *s == 7 { 99 } else { *s }).collect();
    let period = mine(&planted(&[], &[even.clone(), odd].concat(), 12, &[50]), &[0]).unwrap();
    assert_eq!((period.len, period.repeats), (40, 12));
    // One layer in six differs, as with sliding-window attention.
    let every_sixth = [even.repeat(5), even.iter().map(|s| if *s == 7 { 99 } else { *s }).collect()].concat();
    let period = mine(&planted(&[], &every_sixth, 5, &[50]), &[0]).unwrap();
    assert_eq!((period.len, period.repeats), (120, 5));
}

#[test]
fn a_few_flaws_do_not_hide_the_layers() {
    let body: Vec<u32> = (0..16).collect();
    let mut symbols = planted(&[70; 3], &body, 24, &[71; 2]);
    for at in [20, 100, 101, 230, 300] {
        symbols[at] = 1000 + at as u32;
    }
    let period = mine(&symbols, &[]).unwrap();
    assert_eq!((period.start, period.len, period.repeats, period.flaws()), (3, 16, 24, 5));
    assert_eq!(period.body, body);
}

#[test]
fn the_cut_goes_before_the_norm_that_keeps_all_layers() {
    // The first layer's norm has no residual to add (5 instead of 6), and a final norm (6) follows the last layer.
    let layer = [6, 1, 2, 6, 3, 4];
    let mut symbols = planted(&[9], &layer, 10, &[6, 8]);
    symbols[1] = 5;
    let period = mine(&symbols, &[5, 6]).unwrap();
    assert_eq!((period.start, period.len, period.repeats), (1, 6, 10));
    assert_eq!(period.body, layer);
}

#[test]
fn noise_and_constants_have_no_period() {
    assert_eq!(mine(&[], &[]), None);
    assert_eq!(mine(&[1, 2, 1, 2], &[]), None);
    assert_eq!(mine(&[7; 500], &[]), None);
    let distinct: Vec<u32> = (0..500).collect();
    assert_eq!(mine(&distinct, &[]), None);
}

#[test]
fn the_longest_sequence_takes_less_than_seconds() {
    let body: Vec<u32> = (0..200).map(|i| i % 37).chain(100..120).collect();
    let symbols = planted(&[], &body, 200, &[]);
    let begin = std::time::Instant::now();
    let period = mine(&symbols, &[3]).unwrap();
    assert_eq!(period.len, 220);
    assert!(begin.elapsed().as_secs() < 20, "took {:?}", begin.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_planted_period_is_found(
        len in 4usize..40,
        repeats in 6usize..40,
        prologue in 0usize..6,
        epilogue in 0usize..6,
        seed in any::<u64>(),
        flaws in 0usize..4,
    ) {
        // Distinct symbols in the body leave one true period; flaws and ends use symbols of their own.
        let body: Vec<u32> = (0..len as u32).collect();
        let before: Vec<u32> = (0..prologue as u32).map(|i| 1000 + i).collect();
        let after: Vec<u32> = (0..epilogue as u32).map(|i| 2000 + i).collect();
        let mut symbols = planted(&before, &body, repeats, &after);
        let first = prologue + 2 * len;
        let room = len * (repeats - 4);
        let mut hit = std::collections::BTreeSet::new();
        for k in 0..flaws.min(len / 6) {
            let at = first + (seed.rotate_left(13 * k as u32) as usize) % room;
            symbols[at] = 3000 + k as u32;
            hit.insert(at);
        }
        let period = mine(&symbols, &[]).expect("planted");
        prop_assert_eq!(period.len, len);
        prop_assert_eq!(period.repeats, repeats);
        prop_assert_eq!(period.start, prologue);
        prop_assert_eq!(period.flaws(), hit.len());
        prop_assert_eq!(period.body, body);
    }

    #[test]
    fn what_is_found_is_consistent(symbols in proptest::collection::vec(0u32..6, 0..400), cut in 0u32..6) {
        if let Some(p) = mine(&symbols, &[cut]) {
            prop_assert!(p.repeats >= MIN_REPEATS && p.len >= 2 && p.body.len() == p.len);
            prop_assert_eq!(p.prologue.clone(), 0..p.start);
            prop_assert_eq!(p.epilogue.clone(), p.start + p.len * p.repeats..symbols.len());
            let copies = &symbols[p.start..p.epilogue.start];
            let equal = copies.iter().zip(p.body.iter().cycle()).filter(|(a, b)| a == b).count();
            prop_assert!((p.agreement - equal as f64 / copies.len() as f64).abs() < 1e-9);
            prop_assert!(p.agreement >= MIN_AGREEMENT);
        }
    }
}

/// Names of the kernels of a capture of the corpus in order of start.
fn kernels(relative: &str) -> Vec<String> {
    let corpus = std::env::var_os("STRATO_CORPUS").expect("STRATO_CORPUS has to name the folder of real captures");
    let file = std::fs::File::open(PathBuf::from(corpus).join(relative)).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let trace: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut rows: Vec<(f64, String)> = Vec::new();
    for event in trace["traceEvents"].as_array().unwrap() {
        if event["cat"] == "kernel" {
            rows.push((event["ts"].as_f64().unwrap(), event["name"].as_str().unwrap().to_owned()));
        }
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    rows.into_iter().map(|(_, name)| name).collect()
}

fn raw_symbols(names: &[String]) -> Vec<u32> {
    let mut ids: HashMap<&str, u32> = HashMap::new();
    names
        .iter()
        .map(|name| {
            let next = ids.len() as u32;
            *ids.entry(name).or_insert(next)
        })
        .collect()
}

fn canonical_symbols(names: &[String]) -> Vec<u32> {
    let packs = Packs::embedded().unwrap();
    names.iter().map(|name| packs.op(name).op as u32).collect()
}

const NORMS: [u32; 2] = [CanonicalOp::Norm as u32, CanonicalOp::AddNorm as u32];

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn gpt_oss_decode_has_12_pairs_of_layers() {
    let names = kernels("kineto/tl-vllm-decode-full/graph_execution.json.gz");
    // 24 layers that alternate between two attention kernels, the second with a combine step.
    let raw = mine(&raw_symbols(&names), &[]).unwrap();
    eprintln!("raw: start {} len {} repeats {} agreement {}", raw.start, raw.len, raw.repeats, raw.agreement);
    assert_eq!((raw.len, raw.repeats), (35, 12));
    let canonical = mine(&canonical_symbols(&names), &NORMS).unwrap();
    eprintln!("canonical: {canonical:?}");
    assert_eq!((canonical.len, canonical.repeats), (35, 12));
    assert!(NORMS.contains(&canonical.body[0]));
    assert!(canonical.agreement > 0.97);
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn qwen_prefill_has_24_layers() {
    for machine in ["tl-h100", "tl-mi300"] {
        let names = kernels(&format!("kineto/{machine}/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"));
        for symbols in [raw_symbols(&names), canonical_symbols(&names)] {
            let period = mine(&symbols, &NORMS).unwrap();
            eprintln!(
                "{machine}: n {} start {} len {} repeats {} agreement {}",
                symbols.len(),
                period.start,
                period.len,
                period.repeats,
                period.agreement
            );
            assert_eq!(period.repeats % 24, 0, "{machine}: {period:?}");
        }
    }
}
