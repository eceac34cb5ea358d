//! What real captures show of their runs, held against what is published of the models that they are of.

use crate::common;
use std::path::Path;

use diagnosis::analysis::manifest_inference::{By, Inferred, Why};

fn shown(corpus: &Path, file: &str) -> Inferred {
    let trace = common::read(&corpus.join("kineto").join(file));
    common::examined(trace).shown
}

fn value<'s>(shown: &'s Inferred, key: &str) -> Option<(&'s str, By)> {
    shown.found.iter().find(|found| found.key == key).map(|found| (found.value.as_str(), found.by))
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn models_of_public_captures_have_the_shape_that_is_published_of_them() {
    let corpus = common::corpus();
    // Qwen1.5-0.5B: 24 layers of 1024, 16 heads; run by Transformers on two vendors.
    for device in ["tl-h100", "tl-mi300"] {
        let shown = shown(&corpus, &format!("{device}/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"));
        assert_eq!(value(&shown, "model.layers"), Some(("24", By::Modules)), "{device}");
        assert_eq!(value(&shown, "model.hidden"), Some(("1024", By::Shapes)), "{device}");
        assert_eq!(value(&shown, "model.heads"), Some(("16 of 64, 16 of keys", By::Shapes)), "{device}");
        assert_eq!(value(&shown, "precision.weights"), Some(("bf16", By::Shapes)), "{device}");
        assert_eq!(value(&shown, "parallel.tp"), Some(("1", By::Collectives)), "{device}");
        assert_eq!(value(&shown, "software.graph_mode"), Some(("eager", By::Calls)), "{device}");
        // Nothing tells a step of this capture from the next.
        assert_eq!(shown.why("warmup.change_point"), Some(&Why::FewSteps(1)), "{device}");
    }
    // Qwen3-8B: 36 layers of 4096; SGLang.
    let sglang = shown(&corpus, "tl-sglang-prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz");
    assert_eq!(value(&sglang, "model.layers"), Some(("36", By::Modules)));
    assert_eq!(value(&sglang, "model.hidden"), Some(("4096", By::Shapes)));
    assert_eq!(value(&sglang, "precision.activations"), Some(("bf16", By::Shapes)));
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn quantised_experts_leave_the_type_of_the_weights_open_and_the_replay_shows_its_batch() {
    let corpus = common::corpus();
    let vllm = shown(&corpus, "tl-vllm-decode-full/graph_execution.json.gz");
    assert_eq!(vllm.why("precision.weights"), Some(&Why::Silent));
    assert_eq!(value(&vllm, "precision.kv"), Some(("bf16", By::Names)));
    assert_eq!(value(&vllm, "caps.batch"), Some(("32", By::Marks)));
    assert_eq!(value(&vllm, "software.graph_mode"), Some(("full graph", By::Calls)));
}
