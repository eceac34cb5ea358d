//! What small captures show of their run, and what they leave open.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::Ns;

use super::*;
use crate::analysis::script::Script;

const BF16: &str = r#"["c10::BFloat16", "c10::BFloat16"]"#;

/// Steps of so many layers; each kernel is launched inside its operator.
struct Run {
    script: Script,
    at: Ns,
}

impl Run {
    fn op(&mut self, operator: &str, kernel: &str, shapes: &str, types: &str) -> &mut Self {
        let at = self.at;
        self.script.operator(operator, (at, at + 8), shapes, types);
        self.script.launch((at + 1, at + 6), kernel, (at + 6, at + 9));
        self.at += 10;
        self
    }

    fn layer(&mut self, queries: u32) -> &mut Self {
        let attended = format!("[[4, 16, {queries}, 64], [4, 2, 90, 64], [4, 2, 90, 64]]");
        self.op("vllm::rms_norm", "vllm::rms_norm_kernel<c10::BFloat16>", "[[4, 1024]]", r#"["c10::BFloat16"]"#)
            .op("aten::linear", "nvjet_tst_64x8", "[[4, 1024], [1280, 1024]]", BF16)
            .op("aten::scaled_dot_product_attention", "flash_fwd_splitkv_kernel", &attended, BF16)
            .op("aten::linear", "nvjet_tst_64x8", "[[4, 1024], [1024, 1024]]", BF16)
            .op("aten::silu", "act_and_mul_kernel<c10::BFloat16, silu>", "[[4, 5632]]", r#"["c10::BFloat16"]"#)
            .op("aten::linear", "nvjet_tst_64x8", "[[4, 2816], [1024, 2816]]", BF16)
    }
}

/// A run of ten decode steps and what it shows.
fn inferred(change: impl Fn(&mut Run, usize)) -> Inferred {
    let mut run = Run { script: Script::default(), at: 1_000 };
    for step in 0..10 {
        let start = run.at;
        (0..4).for_each(|_| {
            run.layer(1);
        });
        change(&mut run, step);
        run.op("aten::linear", "nvjet_tst_64x8", "[[4, 1024], [32000, 1024]]", BF16);
        let end = run.at;
        run.script.host(model::Category::UserRange, "execute_context_0(0)_generation_4(4)", (start, end));
        run.at += 20;
    }
    let (trace, analysis) = run.script.analyze();
    Inferred::of(&trace, &analysis)
}

fn value(inferred: &Inferred, key: &str) -> Option<(String, By)> {
    inferred.found.iter().find(|found| found.key == key).map(|found| (found.value.clone(), found.by))
}

#[test]
fn a_run_whose_shapes_were_recorded_shows_its_model_and_its_work() {
    let inferred = inferred(|_, _| ());
    let has = |key: &str, wanted: &str, by: By| {
        assert_eq!(value(&inferred, key), Some((wanted.to_owned(), by)), "{inferred:?}")
    };
    has("model.layers", "4", By::Repeats);
    has("model.hidden", "1024", By::Shapes);
    has("model.heads", "16 of 64, 2 of keys", By::Shapes);
    has("precision.weights", "bf16", By::Shapes);
    has("precision.activations", "bf16", By::Shapes);
    has("caps.batch", "4", By::Marks);
    has("workload.speculative", "none", By::Shapes);
    has("parallel.tp", "1", By::Collectives);
    has("software.graph_mode", "eager", By::Calls);
    has("warmup.compile_done", "yes", By::Calls);
    assert!(value(&inferred, "warmup.change_point").unwrap().0.starts_with(model::manifest::SETTLED));
    assert_eq!(inferred.why("precision.kv"), Some(&Why::Silent));
}

/// A product of queries and keys that wrote more columns than any other made the size of a head the hidden size.
#[test]
fn a_product_of_queries_and_keys_does_not_show_the_hidden_size() {
    let inferred = inferred(|run, _| {
        run.op("aten::bmm", "nvjet_tst_64x8", "[[64, 4, 64], [64, 64, 90000]]", BF16);
        run.op("aten::bmm", "nvjet_tst_64x8", "[[64, 4, 90000], [64, 90000, 64]]", BF16);
    });
    assert_eq!(value(&inferred, "model.hidden").unwrap().0, "1024");
}

#[test]
fn what_the_steps_leave_open_stays_unknown_with_its_reason() {
    let several = inferred(|run, _| {
        run.op("aten::linear", "nvjet_sss", "[[4, 1024], [8, 1024]]", r#"["float", "float"]"#);
    });
    let said = |values: [&str; 2]| Why::Several(values.map(str::to_owned).to_vec());
    assert_eq!(several.why("precision.weights"), Some(&said(["bf16", "f32"])));
    let unread = inferred(|run, _| {
        run.op("vllm::moe", "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", "[]", "[]");
    });
    assert_eq!(unread.why("precision.weights"), Some(&Why::Silent));
    assert_eq!(value(&unread, "precision.activations").unwrap().0, "bf16");
    let drafts = inferred(|run, step| {
        run.layer(if step == 0 { 1 } else { 3 });
    });
    assert_eq!(drafts.why("workload.speculative"), Some(&said(["1", "3"])));
    let layers = inferred(|run, _| {
        run.op("x", "flash_fwd_splitkv_kernel", "[]", "[]");
    });
    assert_eq!(layers.why("model.layers"), Some(&Why::NoLayers));
}

#[test]
fn collectives_of_every_layer_are_tensor_parallelism_and_fewer_are_not() {
    let with = |number: usize, size: u32| {
        inferred(move |run, _| {
            for _ in 0..number {
                let at = run.at;
                run.script.collective((at, at + 4), ("tp", size), None, (at + 4, at + 8));
                run.at += 10;
            }
        })
    };
    assert_eq!(value(&with(8, 2), "parallel.tp").unwrap().0, "2");
    assert_eq!(with(1, 2).why("parallel.tp"), Some(&Why::Unsized));
    // The heads of one rank are not those of the model.
    assert_eq!(with(8, 2).why("model.heads"), Some(&Why::Unsized));
}

#[test]
fn nothing_that_a_capture_says_itself_is_replaced() {
    let mut trace = model::TraceBuilder::new("run", "kineto").finish();
    trace.manifest.set("caps.batch", "8", Provenance::Observed);
    trace.manifest.set("model.layers", "9", Provenance::Declared);
    let found = |key, value: &str| Found { key, value: value.to_owned(), by: By::Shapes };
    let mut inferred = Inferred { found: vec![found("caps.batch", "4"), found("model.layers", "4")], open: vec![] };
    inferred.complete(&mut trace);
    assert_eq!((trace.manifest.value("caps.batch"), trace.manifest.value("model.layers")), (Some("8"), Some("4")));
    assert_eq!((inferred.by("caps.batch"), inferred.by("model.layers")), (None, Some(By::Shapes)));
}
