#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, Trace, manifest::field};

use super::{Distance, Part, Parted, Profile, kernels::Tally};
use crate::{
    analysis::{Analysis, script::Script},
    platform::CanonicalOp,
};

const PRODUCT: &str = "nvjet_tst_64x32_64x12_4x1_v_bz_TNT";

/// What the steps of a run do.
#[derive(Clone, Copy)]
struct Run {
    layers: usize,
    rows: u32,
    hidden: u32,
    context: u32,
    product: &'static str,
    experts: bool,
    marked: bool,
    steps: usize,
}

const RUN: Run =
    Run { layers: 4, rows: 8, hidden: 512, context: 75, product: PRODUCT, experts: false, marked: true, steps: 6 };

impl Run {
    fn profile(self) -> Profile {
        let (trace, analysis) = self.capture();
        Profile::of_capture((&trace, &analysis)).unwrap()
    }

    fn capture(self) -> (Trace, Analysis) {
        let Self { layers, rows, hidden, context, product, experts, marked, steps } = self;
        let mut script = Script::default();
        let mut at = 1_000;
        let kernel = |s: &mut Script, op: &str, shapes: &str, types: &str, name: &str, at: &mut i64| {
            s.operator(op, (*at, *at + 9), shapes, types);
            s.launch_blocks((*at + 1, *at + 8), name, (*at + 20, *at + 60), rows);
            *at += 100;
        };
        let both = "[\"c10::BFloat16\",\"c10::BFloat16\"]";
        for _ in 0..steps {
            let from = at;
            for _ in 0..layers {
                let norm = "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(x)";
                kernel(&mut script, "norm", &format!("[[{rows},{hidden}]]"), both, norm, &mut at);
                let weights = format!("[[{rows},{hidden}],[{hidden},{}]]", 3 * hidden);
                kernel(&mut script, "aten::mm", &weights, both, product, &mut at);
                let write = "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>(x)";
                kernel(&mut script, "write", &format!("[[{rows},128],[{rows},128]]"), both, write, &mut at);
                let types = "[\"c10::BFloat16\",\"c10::BFloat16\",\"int\"]";
                let table = format!("[[{rows},{hidden}],[99,2048],[{rows},{context}]]");
                kernel(&mut script, "attention", &table, types, "flash_fwd_splitkv_kernel", &mut at);
                if experts {
                    kernel(&mut script, "moe", "[]", "[]", "fused_moe_kernel", &mut at);
                }
                let act = "void vllm::act_and_mul_kernel<c10::BFloat16>(x)";
                kernel(&mut script, "act", &format!("[[{rows},{hidden}]]"), both, act, &mut at);
            }
            if marked {
                let name = format!("execute_context_0(0)_generation_{rows}({rows})");
                script.host(Category::UserRange, &name, (from - 5, at - 5));
            }
        }
        script.analyze()
    }
}

fn between(a: Run, b: Run) -> Distance {
    Distance::of(&a.profile(), &b.profile())
}

fn differing(a: Run, b: Run) -> Vec<&'static str> {
    between(a, b).differing().map(|own| own.part.key()).collect()
}

#[test]
fn the_same_work_is_at_no_distance_and_shows_what_nobody_needs_to_declare() {
    let own = between(RUN, RUN);
    assert_eq!(own.differing().count(), 0);
    assert_eq!(own.comparability(), Some(1.0));
    for key in ["model.layers", "caps.batch", "parallel.tp", "precision.weights", "precision.kv"] {
        assert!(own.shows(field(key).unwrap()), "{key}");
    }
    assert!(own.asks(field("workload.prompt_len").unwrap()) && !own.shows(field("model.name").unwrap()));
}

/// K17: a classifier of images was asked for the length of its prompts.
#[test]
fn k17_a_network_for_images_has_no_prompts() {
    let parted = |part, value: &str| Parted {
        part,
        a: Some(value.to_owned()),
        b: Some(value.to_owned()),
        distance: Some(0.0),
        limit: 0.0,
    };
    let asks = |parts: Vec<Parted>| Distance { parts }.asks(field("workload.prompt_len").unwrap());
    let sees = || vec![parted(Part::Images, "150528"), parted(Part::Attention, "12")];
    assert!(!asks(sees()));
    assert!(asks(sees().into_iter().chain([parted(Part::CacheWidth, "1024")]).collect()), "it also writes a cache");
    assert!(asks(vec![parted(Part::Attention, "12")]));
}

/// D7: two works were "what must be equal is" once somebody had typed equal words.
#[test]
fn d7_other_work_differs_by_what_the_traces_show() {
    let has = |other: Run, part: Part| {
        for (a, b) in [(RUN, other), (other, RUN)] {
            let own = differing(a, b);
            assert!(own.contains(&part.key()), "{}: {own:?}", part.key());
        }
    };
    has(Run { layers: 6, ..RUN }, Part::Layers);
    has(Run { rows: 16, ..RUN }, Part::Tokens);
    has(Run { rows: 16, ..RUN }, Part::Sequences);
    has(Run { hidden: 640, ..RUN }, Part::Width);
    has(Run { hidden: 640, ..RUN }, Part::Weights);
    has(Run { context: 375, ..RUN }, Part::Context);
    has(Run { product: "nvjet_qqtst_64x32_64x12_4x1_v_bz_TNT", ..RUN }, Part::Formats);
    has(Run { experts: true, ..RUN }, Part::Experts);
    assert_eq!(between(RUN, Run { layers: 6, ..RUN }).comparability(), Some(0.0));
}

/// D6: half a capture beside the whole of it was half as slow, "which comes from maturity".
#[test]
fn d6_whole_captures_of_unequal_work_are_other_work() {
    let whole = Run { marked: false, steps: 1, layers: 40, ..RUN };
    let same = differing(whole, whole);
    assert!(same.is_empty(), "{same:?}");
    let less = Run { layers: 34, ..whole };
    assert!(whole.profile().whole && less.profile().whole);
    assert!(differing(whole, less).contains(&"operations"));
}

/// Two stages of a pipeline, or a capture whose sampling was cut out, passed as the same work.
#[test]
fn a_step_that_chooses_no_token_is_other_work() {
    let sampling = Tally { calls: 1, ns: 100, ..Tally::default() };
    let (mut last, first) = (RUN.profile(), RUN.profile());
    last.kernels.ops.insert(CanonicalOp::Sample, sampling);
    let differs = |a: &Profile, b: &Profile| Distance::of(a, b).differing().any(|own| own.part == Part::Sampling);
    assert!(differs(&first, &last) && differs(&last, &first));
    assert!(!differs(&last, &last));
    // An argmax may be a reduction by name, and a host may choose from the logits that it is given.
    let (mut reduces, mut reads) = (first.clone(), first.clone());
    reduces.kernels.ops.insert(CanonicalOp::Reduce, sampling);
    reads.kernels.read_back = 151_936 * 2;
    assert!(!differs(&reduces, &last) && !differs(&reads, &last));
    // Neither of two stages before the last chooses anything.
    assert!(Distance::of(&first, &first).part(Part::Sampling).is_none());
}

#[test]
fn the_head_of_a_vocabulary_on_one_side_only_is_another_part_of_the_model() {
    // The last stage of a pipeline has all products of the first, and the head.
    let (first, mut last) = (RUN.profile(), RUN.profile());
    last.kernels.products.insert((8, 512, 151_936), 1);
    let differing = |a: &Profile, b: &Profile| -> Vec<&'static str> {
        Distance::of(a, b).differing().map(|own| own.part.key()).collect()
    };
    assert!(differing(&first, &last).contains(&"width"));
    assert!(differing(&last, &first).contains(&"width"));
    // A head is no sum of a layer's products, however near it is.
    let mut small = RUN.profile();
    small.kernels.products.insert((8, 512, 4_000), 1);
    assert!(differing(&first, &small).contains(&"width"));
    // Gate and up as one product are twice as wide; here one side has them apart.
    let (mut fused, mut apart) = (RUN.profile(), RUN.profile());
    fused.kernels.products.insert((8, 512, 2 * 2_048), 4);
    apart.kernels.products.insert((8, 512, 2_048), 8);
    assert!(!differing(&apart, &fused).contains(&"width") && !differing(&fused, &apart).contains(&"width"));
}

#[test]
fn grids_are_compared_where_neither_side_names_its_device_but_the_kernels_are_the_same() {
    let twice = Run { rows: 16, ..RUN };
    let (mut a, mut b) = (RUN.profile(), twice.profile());
    (a.device, b.device) = (None, None);
    let far = Distance::of(&a, &b);
    assert!(far.differing().any(|own| own.part == Part::Grids));
    // Half of the time in kernels that both have is not enough where nobody says that it is the same device.
    let names: Vec<String> = b.kernels.names.keys().take(2).cloned().collect();
    for name in names {
        let tally = b.kernels.names.remove(&name).unwrap();
        b.kernels.names.insert(format!("{name} of another device"), tally);
    }
    assert!(Distance::of(&a, &b).part(Part::Grids).is_none());
    // Of one device a few kernels tell, if all say the same.
    (a.device, b.device) = (Some("H100".to_owned()), Some("H100".to_owned()));
    let kept = b.kernels.names.keys().find(|name| !name.contains("another")).cloned().unwrap();
    b.kernels.names.retain(|name, _| *name == kept);
    assert!(Distance::of(&a, &b).differing().any(|own| own.part == Part::Grids));
    let tally = b.kernels.names.get_mut(&kept).unwrap();
    tally.blocks /= 2.0;
    assert!(!Distance::of(&a, &b).differing().any(|own| own.part == Part::Grids), "as many blocks");
}

/// Sequences of 559 and of 600 tokens were one work, and so were images of 224 and of 160 and a vocabulary of 151 936 and of 32 000.
#[test]
fn what_no_population_of_requests_varies_must_be_equal() {
    let differs = |change: &dyn Fn(&mut Profile), part: Part| {
        let (mut a, mut b) = (RUN.profile(), RUN.profile());
        for own in [&mut a, &mut b] {
            (own.sequences, own.rows, own.device) = (None, Some(559), Some("H100".to_owned()));
            own.kernels.convolved = (224 * 224 * 3, 1);
            own.kernels.ops.insert(CanonicalOp::Conv, Tally { calls: 1, ..Tally::default() });
            own.kernels.products.insert((8, 10_000, 30_000), 1);
        }
        assert!(Distance::of(&a, &b).differing().next().is_none(), "{part:?}");
        change(&mut b);
        [(&a, &b), (&b, &a)].map(|(p, q)| Distance::of(p, q).differing().any(|own| own.part == part))
    };
    assert_eq!(differs(&|own| own.rows = Some(600), Part::Tokens), [true; 2]);
    assert_eq!(differs(&|own| own.kernels.convolved.0 = 160 * 160 * 3, Part::Images), [true; 2]);
    let less = |own: &mut Profile| {
        own.kernels.products.remove(&(8, 10_000, 30_000));
        own.kernels.products.insert((8, 10_000, 29_500), 1);
    };
    assert_eq!(differs(&less, Part::Weights), [true; 2]);
    let elsewhere = |own: &mut Profile| {
        less(own);
        own.device = Some("MI300X".to_owned());
    };
    assert_eq!(differs(&elsewhere, Part::Weights), [false; 2], "one product may be several kernels there");
}
