#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use super::*;
use crate::{
    Family, KvLayout, Seeded,
    cpu::Isa,
    inject::inject,
    preset,
    program::Level,
    run::{Mode, Sampling},
};

/// Small models of every family, with an uneven width, several layers and shared heads.
fn shapes() -> Vec<Config> {
    let tiny = Config { layers: 3, vocab: 96, hidden: 48, intermediate: 80, ..preset("tiny").unwrap() };
    let llama = Config { family: Family::Llama, qkv_bias: false, tied: false, kv_heads: 4, ..tiny.clone() };
    let qwen3 = Config { family: Family::Qwen3, qkv_bias: false, qk_norm: true, hidden: 128, ..tiny.clone() };
    vec![tiny, llama, qwen3]
}

fn options(dtype: Dtype) -> RunOptions {
    RunOptions { dtype, batch: 2, prompt: 5, steps: 3, threads: 2, ..RunOptions::default() }
}

/// Compares two runs on the weights of a seed, which sides of one type share.
fn compared(config: &Config, seed: u64, a: &RunOptions, b: &RunOptions) -> Comparison {
    let load = |dtype| Arc::new(Weights::load(config, dtype, &mut Seeded(seed)).unwrap());
    let first = load(a.dtype);
    let second = if a.dtype == b.dtype { Arc::clone(&first) } else { load(b.dtype) };
    let sides = [Side { options: a, weights: &first }, Side { options: b, weights: &second }];
    compare(config, sides, |_| ()).unwrap()
}

fn injected(text: &str, mut options: RunOptions) -> RunOptions {
    inject(text, &mut options).unwrap();
    options
}

/// Layers and names of the rows with a fault.
fn faulty(comparison: &Comparison) -> BTreeSet<(Option<u16>, String)> {
    comparison.rows.iter().filter(|row| row.fault.is_some()).map(|row| (row.layer, row.name())).collect()
}

fn named(comparison: &Comparison) -> (Option<u16>, String) {
    let row = &comparison.rows[comparison.first.expect("an operator is named")];
    (row.layer, row.name())
}

#[test]
fn a_run_against_itself_is_equal_bit_for_bit_however_it_is_started_and_divided() {
    for config in shapes() {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::Q8] {
            for level in [Level::Composite, Level::Canonical, Level::Fused] {
                let one = RunOptions { level, ..options(dtype) };
                let other = RunOptions {
                    mode: Mode::Graph,
                    layout: KvLayout::Paged(2),
                    sampling: Sampling::Host,
                    threads: 1,
                    ..one.clone()
                };
                for b in [&one, &other] {
                    let comparison = compared(&config, 1, &one, b);
                    assert_eq!(comparison.verdict(), Verdict::Equal, "{dtype:?} {level:?}");
                    assert_eq!((comparison.tokens, comparison.split), ([8, 8], None));
                }
            }
        }
    }
}

#[test]
fn narrower_weights_are_within_their_precision() {
    for config in shapes() {
        for seed in [0, 1, 7] {
            for dtype in [Dtype::F16, Dtype::Bf16, Dtype::Q8] {
                for level in [Level::Composite, Level::Fused] {
                    let (wide, narrow) = (options(Dtype::F32), RunOptions { level, ..options(dtype) });
                    for (a, b) in [(&wide, &narrow), (&narrow, &wide)] {
                        let comparison = compared(&config, seed, a, b);
                        let error = comparison.logits.relative_l2();
                        assert_eq!(comparison.verdict(), Verdict::WithinPrecision, "{dtype:?} {seed}: {error}");
                        assert_eq!(comparison.precision, dtype);
                        assert!(error > 1e-5, "{dtype:?} {seed}: {error}");
                        let weights = comparison.rows.iter().filter_map(|row| row.weights);
                        let worst = weights.map(|weights| weights.relative_l2()).fold(0.0, f64::max);
                        println!(
                            "{:?} {dtype:?} seed {seed}: logits {error:.1e}, worst operator {worst:.1e}",
                            config.family
                        );
                        assert!(worst < rounding(dtype) / 1.5, "{dtype:?}: {worst}");
                    }
                }
            }
        }
    }
}

#[test]
fn other_divisions_and_instructions_differ_by_the_order_of_additions() {
    for config in shapes() {
        for isa in Isa::available() {
            let (composite, fused) = (
                RunOptions { level: Level::Composite, isa, ..options(Dtype::Bf16) },
                RunOptions { level: Level::Fused, isa: Isa::Portable, mode: Mode::Graph, ..options(Dtype::Bf16) },
            );
            let comparison = compared(&config, 3, &composite, &fused);
            assert_eq!(comparison.verdict(), Verdict::WithinPrecision, "{isa:?}");
            // Activations that are rounded beside some that are not differ by that, as weights do.
            let most = if isa.rounds(Dtype::Bf16) { rounding(Dtype::Bf16) / 1.5 } else { SUMS / 10.0 };
            assert!(comparison.rows.iter().all(|row| row.local.relative_l2() < most), "{isa:?}");
        }
    }
}

/// Compares every shape with a fault in B, wide and narrow weights on either side, divided alike and not, and weights of
/// several seeds.
fn each_pair(fault: &str, mut check: impl FnMut(&Config, Level, &Comparison, &str)) {
    let dtypes = [
        (Dtype::F32, Dtype::F32),
        (Dtype::Bf16, Dtype::Bf16),
        (Dtype::F32, Dtype::Bf16),
        (Dtype::Bf16, Dtype::F32),
        (Dtype::F16, Dtype::Q8),
    ];
    let levels = [(Level::Canonical, Level::Canonical), (Level::Composite, Level::Fused)];
    for (number, config) in shapes().iter().enumerate() {
        for (seed, (a, b)) in (0..).zip(dtypes) {
            let (one, level) = levels[(number + seed as usize) % 2];
            let (a, b) =
                (RunOptions { level: one, ..options(a) }, RunOptions { level, mode: Mode::Graph, ..options(b) });
            let what = format!("{fault} {:?} seed {seed} {:?} {:?} {level:?}", config.family, a.dtype, b.dtype);
            let comparison = compared(config, seed, &a, &injected(fault, b));
            let verdict = if fault.starts_with("nan_at") { Verdict::NotFinite } else { Verdict::Faulty };
            assert_eq!(comparison.verdict(), verdict, "{what}");
            check(config, level, &comparison, &what);
        }
    }
}

#[test]
fn a_wrong_rope_base_is_named_in_every_layer_and_nothing_else_is() {
    for fault in ["rope_base_wrong", "rope_base_wrong:factor=1.5"] {
        each_pair(fault, |config, _, comparison, what| {
            assert_eq!(named(comparison), (Some(0), "rope".to_owned()), "{what}");
            let all: BTreeSet<_> = (0..config.layers as u16).map(|layer| (Some(layer), "rope".to_owned())).collect();
            assert_eq!(faulty(comparison), all, "{what}");
            let row = &comparison.rows[comparison.first.unwrap()];
            assert!(matches!(row.fault, Some((0, Cause::Arithmetic { .. }))), "{what}: {:?}", row.fault);
        });
    }
}

#[test]
fn sums_in_bf16_are_named_at_the_first_product_and_at_every_other() {
    each_pair("bf16_accum", |config, level, comparison, what| {
        let (first, per_layer) = match level {
            Level::Fused => ("qkv_proj", 4),
            _ => ("q_proj", 7),
        };
        assert_eq!(named(comparison), (Some(0), first.to_owned()), "{what}");
        let faulty = faulty(comparison);
        assert_eq!(faulty.len(), per_layer * config.layers + 1, "{what}: {faulty:?}");
        assert!(faulty.iter().all(|(_, name)| name.ends_with("_proj") || name == "lm_head"), "{what}: {faulty:?}");
    });
}

#[test]
fn a_stale_cache_is_named_at_the_operator_that_should_have_filled_it() {
    for layer in 0..3u16 {
        each_pair(&format!("stale_kv:layer={layer}"), |_, _, comparison, what| {
            let expected = (Some(layer), "kv_cache_append".to_owned());
            assert_eq!(named(comparison), expected, "{what}");
            assert_eq!(faulty(comparison), [expected].into(), "{what}");
            let row = &comparison.rows[comparison.first.unwrap()];
            assert!(matches!(row.fault, Some((1, Cause::Moved { .. }))), "{what}: {:?}", row.fault);
        });
    }
}

#[test]
fn a_nan_is_named_where_it_comes_into_being() {
    for layer in 0..3u16 {
        each_pair(&format!("nan_at:layer={layer}"), |_, _, comparison, what| {
            let expected = (Some(layer), "down_proj".to_owned());
            assert_eq!(named(comparison), expected, "{what}");
            assert_eq!(faulty(comparison), [expected].into(), "{what}");
            let row = &comparison.rows[comparison.first.unwrap()];
            assert!(matches!(row.fault, Some((0, Cause::NotFinite { a: 0, b: 1.. }))), "{what}: {:?}", row.fault);
            let lost = Lost { step: 0, row: comparison.first.unwrap() };
            assert_eq!(comparison.not_finite, [None, Some(lost)], "{what}");
            // Everything after it is lost in the run as it is.
            let last = comparison.rows.iter().rfind(|row| row.name() == "lm_head").unwrap();
            assert!(last.own.b.nan > 0 && last.own.a.nan == 0, "{what}");
        });
    }
}

#[test]
fn a_fault_of_a_is_found_as_one_of_b_is() {
    let config = shapes().remove(0);
    for (fault, name) in
        [("rope_base_wrong", "rope"), ("nan_at:layer=1", "down_proj"), ("stale_kv:layer=2", "kv_cache_append")]
    {
        let comparison = compared(&config, 0, &injected(fault, options(Dtype::F32)), &options(Dtype::Bf16));
        assert_eq!(named(&comparison).1, name);
    }
}

#[test]
fn other_weights_are_named_as_such_where_they_are_first_used() {
    let config = shapes().remove(0);
    let load = |seed| Arc::new(Weights::load(&config, Dtype::Bf16, &mut Seeded(seed)).unwrap());
    let (own, other, options) = (load(0), load(1), options(Dtype::Bf16));
    let sides = [Side { options: &options, weights: &own }, Side { options: &options, weights: &other }];
    let comparison = compare(&config, sides, |_| ()).unwrap();
    assert_eq!(named(&comparison), (None, "embed".to_owned()));
    assert!(matches!(comparison.rows[0].fault, Some((0, Cause::Weights { .. }))));
    assert!(comparison.split.is_some_and(|split| !split.is_benign()));
}

#[test]
fn what_is_kept_does_not_grow_with_the_run() {
    let config = shapes().remove(0);
    let rows = |steps| {
        let options = RunOptions { steps, ..options(Dtype::F32) };
        let mut told = Vec::new();
        let weights = Arc::new(Weights::load(&config, Dtype::F32, &mut Seeded(0)).unwrap());
        let side = Side { options: &options, weights: &weights };
        let comparison = compare(&config, [side, side], |step| told.push(step)).unwrap();
        assert_eq!(told.len(), steps + 1);
        (comparison.rows.len(), comparison.rows.last().unwrap().own.count, comparison.logits.count)
    };
    let ((short, ..), (long, ..)) = (rows(1), rows(12));
    assert_eq!(short, long);
    assert_eq!(rows(3).2, (3 + 1) * 2 * 96, "logits of every step and sequence");
}

#[test]
fn sides_that_compute_other_tokens_are_refused() {
    let config = shapes().remove(0);
    let weights = Arc::new(Weights::load(&config, Dtype::F32, &mut Seeded(0)).unwrap());
    let one = options(Dtype::F32);
    for (other, words) in [
        (RunOptions { batch: 3, ..one.clone() }, "other prompts"),
        (RunOptions { padded: Some(4), ..one.clone() }, "without padding"),
    ] {
        let sides = [Side { options: &one, weights: &weights }, Side { options: &other, weights: &weights }];
        assert!(compare(&config, sides, |_| ()).unwrap_err().to_string().contains(words));
    }
}
