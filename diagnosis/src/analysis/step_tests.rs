//! What a step is: whether it is whole, its stage, its graphs.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use model::{Category, Ns};

use super::{Bucket, GraphMode, Options, analyze, script::Script, tests::decode_steps};
use crate::platform::Packs;

const GEMM: &str = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64";
const NORM: &str = "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*, c10::BFloat16 const*)";
const ARGMAX: &str = "void at::native::reduce_kernel<512, 1, at::native::ArgMaxOps<float>>";

/// Steps that a readback ends: a cache write of `tokens` rows, a product, a sample and its copy.
fn read_back(tokens: &[u32], from: Ns) -> Script {
    const WRITE: &str = "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16>";
    let mut s = Script::default();
    s.host(Category::FrameworkOp, "aten::embedding", (from, 10));
    for (i, tokens) in tokens.iter().enumerate() {
        let t = i as Ns * 1_000_000;
        s.launch_blocks((t, t + 1_000), WRITE, (t + 2_000, t + 10_000), *tokens);
        s.launch((t + 1_000, t + 2_000), GEMM, (t + 10_000, t + 500_000));
        s.launch_blocks((t + 2_000, t + 3_000), ARGMAX, (t + 500_000, t + 540_000), 1);
        s.copy("cudaMemcpyAsync", (t + 3_000, t + 600_000), "DtoH", "pageable", 8, (t + 545_000, t + 560_000));
    }
    s
}

#[test]
fn a_first_step_that_begins_after_the_recording_is_whole_and_its_launches_tell_its_stage() {
    let found = |from: Ns| -> Vec<(String, usize)> {
        let (_, a) = read_back(&[1_049, 1, 1, 1, 1, 1], from).analyze();
        a.ranks[0].classes.iter().map(|class| (class.key.clone(), class.steady)).collect()
    };
    let whole = [("decode b=1 graph=eager".to_owned(), 4), ("prefill tokens=1049 graph=eager".to_owned(), 1)];
    assert_eq!(found(-500), whole);
    assert_eq!(found(0)[1].1, 0, "the recording begins with its first launch: what came before is unknown");
}

#[test]
fn a_replay_of_which_most_was_not_recorded_is_a_graph_and_its_idle_time_unattributed() {
    let mut s = Script::default();
    for i in 0..12 {
        let t = i * 10_000_000;
        s.host(Category::UserRange, "ProfilerStep#1", (t, t + 9_000_000));
        (0..8).for_each(|k| {
            let at = t + k * 10_000;
            s.launch((at, at + 5_000), NORM, (at + 8_000, at + 9_000));
        });
        // Of the whole replay one node is there, long after the launch.
        s.graph((t + 90_000, t + 95_000), &[(GEMM, (t + 6_000_000, t + 6_100_000))]);
    }
    let (_, a) = s.analyze();
    assert_eq!(a.ranks[0].classes[0].graph, GraphMode::Piecewise);
    let buckets = &a.ranks[0].classes[0].buckets;
    assert!(buckets.iter().all(|(bucket, _)| *bucket != Bucket::Dispatch), "{buckets:?}");
    assert!(a.ranks[0].classes[0].share(|bucket| bucket == Bucket::Unattributed) > 0.5, "{buckets:?}");
}

/// Profiles of XLA draw steps on the device, also where launches are known: there they were no steps.
#[test]
fn steps_that_the_device_alone_has_are_steps_where_launches_are_known() {
    let mut s = Script::default();
    for i in 0..5 {
        let t = i * 1_000_000;
        s.launch((t, t + 5_000), NORM, (t + 10_000, t + 300_000));
        s.launch((t + 20_000, t + 25_000), GEMM, (t + 300_000, t + 900_000));
        s.drawn(&format!("XLA step {i}"), (t + 10_000, t + 900_000));
    }
    let (_, a) = s.analyze();
    assert_eq!((a.ranks[0].anchor.key(), a.ranks[0].steps.len()), ("user_range:xla".to_owned(), 5));
}

/// K11: where the steps are nobody could say.
#[test]
fn k11_steps_are_the_ranges_that_were_named() {
    let mut s = decode_steps(6);
    for i in 0..3 {
        s.host(Category::UserRange, &format!("outer {i}"), (i * 2_000 - 1, (i + 1) * 2_000 - 60));
    }
    s.host(Category::UserRange, "outer loop", (-5, 90_000));
    let trace = s.trace();
    let steps = |mark: &str| {
        let options = Options { step_mark: Some(mark.into()), ..Options::default() };
        let analysis = analyze(&trace, &Packs::embedded().unwrap(), &options);
        let rank = &analysis.ranks[0];
        (rank.anchor.key(), rank.steps.len())
    };
    assert_eq!(steps("outer"), ("asked:outer".to_owned(), 3));
    assert_eq!(steps("execute_context_0(0)_generation_4(4)"), ("asked:execute_context_0(0)_generation_4(4)".into(), 6));
    // Of a name that is not there the steps are those that are found.
    assert_eq!(steps("nothing"), ("user_range:vllm".to_owned(), 6));
}

/// A benchmark of neighbours was cut into 13 steps by the sort at its end, one of which held 98 % of its kernels.
#[test]
fn marks_behind_nearly_all_kernels_are_no_steps() {
    let run = |before: Ns| {
        let mut s = Script::default();
        for i in 0..before {
            s.launch((i * 10_000, i * 10_000 + 1_000), GEMM, (i * 10_000 + 2_000, i * 10_000 + 9_000));
        }
        for i in 0..8 {
            let t = (before + 2 * i) * 10_000;
            s.launch((t, t + 1_000), GEMM, (t + 2_000, t + 9_000));
            s.launch((t + 1_000, t + 2_000), ARGMAX, (t + 9_000, t + 11_000));
            s.copy("cudaMemcpy", (t + 3_000, t + 14_000), "DtoH", "pageable", 8, (t + 12_000, t + 13_000));
        }
        s.analyze().1.ranks[0].anchor.kind
    };
    assert_eq!(run(4), super::AnchorKind::TokenReadback);
    assert_eq!(run(400), super::AnchorKind::WholeCapture);
}
