#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, Ns};

use super::super::testing::{CONTIGUOUS, GEMM, NORM, Run, SORT, check, diagnosis, fires, us};
use crate::{analysis::Edit, i18n::Lang};

const ELEMENTWISE: [&str; 5] = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::pow_tensor_scalar_kernel_impl<float, float>>",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>>>",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<float>>",
    "void at::native::vectorized_elementwise_kernel<4, at::native::rsqrt_kernel_cuda>",
    "void at::native::elementwise_kernel<128, 2, at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>>",
];

#[test]
fn op03_finds_composites_and_leaves_fused_kernels_alone() {
    let layers = |norm: &'static [&'static str]| {
        let mut nodes: Vec<(&str, Ns)> = Vec::new();
        for _ in 0..6 {
            nodes.extend(norm.iter().map(|n| (*n, us(4))));
            nodes.push((GEMM, us(40)));
        }
        Run::steps(12, move |r, _| {
            r.graph(&nodes, us(1)).token();
        })
    };
    assert!(fires("OP-03", &layers(&ELEMENTWISE)));
    assert!(!fires("OP-03", &layers(&[NORM])));
    assert!(!fires("OP-03", &layers(&[ELEMENTWISE[0], ELEMENTWISE[1], ELEMENTWISE[4], ELEMENTWISE[3]])));
}

#[test]
fn op03_promises_of_attention_what_its_arithmetic_takes_and_advises_attention() {
    const SOFTMAX: &str = "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float>";
    let types = r#"["c10::BFloat16","c10::BFloat16"]"#;
    let run = |recorded: bool| {
        Run::steps(12, move |r, _| {
            // A product at 344 TFLOP/s, and an attention of an eighth of its arithmetic.
            for _ in 0..4 {
                let (scores, values) = ("[[64,512,64],[64,64,512]]", "[[64,512,512],[64,512,64]]");
                let none = "[]";
                r.shaped(GEMM, us(100), "[[2048,2048],[2048,4096]]", types);
                r.shaped(GEMM, us(60), if recorded { scores } else { none }, types).launch(SOFTMAX, us(300));
                r.shaped(GEMM, us(60), if recorded { values } else { none }, types);
            }
            r.token();
        })
    };
    let ends = |recorded: bool| {
        let found = check("OP-03", &run(recorded));
        assert!(fires("OP-03", &run(recorded)));
        assert!(found[0].remedy.iter().all(|r| r.text_en.contains("attention")), "{:?}", found[0].remedy);
        match &found[0].changes[0].1.edits[..] {
            [Edit::Fuse(fused), Edit::Hoped(best)] => match &**best {
                Edit::Resize(best) => (fused[0].1, best[0].1),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    };
    // 4.3 GFLOP at 344 TFLOP/s are 12.5 µs.
    let (worst, best) = ends(true);
    assert!((worst - 37_500).abs() < 500 && (best - 16_667).abs() < 500, "{worst} {best}");
    let (worst, best) = ends(false);
    assert!(
        worst > us(300) && best == us(60),
        "of unknown arithmetic the softmax may stay, at best its products: {worst} {best}"
    );
}

/// Attention in 32 bits went unmentioned: a third of what ordinary units reach is slower than its products were.
#[test]
fn op03_finds_attention_in_32_bits_and_its_backward_pass() {
    const SGEMM: &str = "ampere_sgemm_128x128_tn";
    const SOFTMAX: &str = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>";
    const GRADIENT: &str = "void (anonymous namespace)::softmax_warp_backward<float, float, float, 10, false, false>";
    let types = r#"["float","float"]"#;
    let (scores, values) = ("[[64,1024,64],[64,64,1024]]", "[[64,1024,1024],[64,1024,64]]");
    let run = Run::steps(12, move |r, _| {
        for _ in 0..4 {
            // 17.2 TFLOP/s, and 8.6 GFLOP for each product of the attention.
            r.shaped(SGEMM, us(500), "[[1024,2048],[2048,2048]]", types);
            r.shaped(SGEMM, us(600), scores, types).launch(SOFTMAX, us(600)).shaped(SGEMM, us(600), values, types);
            r.shaped(SGEMM, us(600), values, types).shaped(SGEMM, us(600), scores, types).launch(GRADIENT, us(2_500));
            r.shaped(SGEMM, us(600), values, types).shaped(SGEMM, us(600), values, types);
        }
        r.token();
    });
    let found = check("OP-03", &run);
    let claim = found[0].claim.render(Lang::En, |value| format!("{value:?}"));
    assert!(claim.contains("4 × attention, 4 × attention backward"), "{claim}");
    let Edit::Fuse(fused) = &found[0].changes[0].1.edits[0] else { panic!("{:?}", found[0].changes) };
    // 17.2 GFLOP at 0.6 of 17.2 TFLOP/s, and five quarters of twice that.
    assert!((fused[0].1 - 1_667_000).abs() < 3_000, "{}", fused[0].1);
}

#[test]
fn idle_time_that_nothing_explains_does_not_go_with_the_conversion_after_it() {
    // A device of which no launch was recorded: 60 µs of idle time before each conversion of 10 µs.
    let mut s = crate::analysis::script::Script::default();
    for step in 0..24 {
        let t = us(300) * step;
        for (name, from, to) in [(GEMM, 0, 100), (CONTIGUOUS, 160, 170), (GEMM, 171, 280)] {
            s.kernel(7, name, (t + us(from), t + us(to)), None, None);
        }
    }
    let all = diagnosis(&s.analyze());
    let found: Vec<_> = all.findings.iter().filter(|f| f.rule == "OP-05").collect();
    assert!(!found.is_empty());
    assert!(found.iter().all(|f| f.estimate.max_gain_share() < 0.06), "{}", found[0].estimate.max_gain_share());
}

#[test]
fn op05_counts_conversions_between_operators() {
    let conversions = |ns: Ns| {
        Run::steps(12, move |r, _| {
            r.graph(&[(GEMM, us(100)), (CONTIGUOUS, ns), (GEMM, us(100)), (NORM, us(5))], us(1)).token();
        })
    };
    assert!(fires("OP-05", &conversions(us(20))));
    assert!(!fires("OP-05", &conversions(us(1))));
}

#[test]
fn op07_sees_a_round_trip_in_the_middle_and_not_the_token_at_the_end() {
    let trip = |middle: bool| {
        Run::steps(12, move |r, _| {
            r.launch(GEMM, us(100));
            if middle {
                r.copy("cudaMemcpy", us(110), "DtoH", "pageable", us(5)).think(us(30));
                r.copy("cudaMemcpyAsync", us(5), "HtoD", "pinned", us(5));
            }
            r.launch(GEMM, us(100)).token();
        })
    };
    assert!(fires("OP-07", &trip(true)));
    assert!(!fires("OP-07", &trip(false)));
    let named = |name: &'static str, ns: Ns| {
        Run::steps(12, move |r, _| {
            r.launch(GEMM, us(100)).launch(name, ns).launch(GEMM, us(100)).token();
        })
    };
    assert!(fires("OP-07", &named("aicpu_IndexPut", us(120))));
    assert!(!fires("OP-07", &named("aicpu_IndexPut", us(15))));
    assert!(!fires("OP-07", &named("hcom_allReduce_aicpu", us(120))));
}

#[test]
fn op07_sees_an_operator_that_the_host_computes_and_rt09_leaves_its_wait_alone() {
    let host = |name: &'static str, is_middle: bool, launches: bool| {
        Run::steps(12, move |r, _| {
            r.launch(GEMM, us(100));
            if is_middle {
                let from = r.wait().host;
                r.think(us(40));
                if launches {
                    r.launch(NORM, us(5));
                }
                r.script.host(Category::FrameworkOp, name, (from, r.host));
            }
            r.launch(GEMM, us(100)).token();
        })
    };
    let silu = host("aten::silu", true, false);
    assert!(fires("OP-07", &silu) && !fires("RT-09", &silu));
    let gain = &check("OP-07", &silu)[0];
    assert!(gain.estimate.to_low < gain.estimate.from);
    // Of a short one the wait is what costs.
    let short = Run::steps(12, |r, _| {
        r.launch(GEMM, us(100)).wait().work(Category::FrameworkOp, "aten::silu", us(5));
        r.launch(GEMM, us(100)).token();
    });
    assert!(!fires("OP-07", &short) && fires("RT-09", &short));
    // What is small is the host's own, and so is its wait.
    let add = host("aten::add", true, false);
    assert!(!fires("OP-07", &add) && fires("RT-09", &add));
    assert!(!fires("OP-07", &host("aten::silu", false, false)));
    assert!(!fires("OP-07", &host("aten::silu", true, true)));
}

/// A run of graph steps of `counts` operations, each of a name and a duration.
fn mix(counts: &[(usize, &'static str, Ns)]) -> (model::Trace, crate::analysis::Analysis) {
    let nodes: Vec<(&str, Ns)> = counts.iter().flat_map(|(n, name, ns)| vec![(*name, *ns); *n]).collect();
    Run::steps(12, move |r, _| {
        r.graph(&nodes, us(1)).token();
    })
}

#[test]
fn op08_needs_most_operations_small_and_their_time_visible() {
    assert!(fires("OP-08", &mix(&[(40, ELEMENTWISE[4], us(3)), (10, GEMM, us(20))])));
    assert!(!fires("OP-08", &mix(&[(10, ELEMENTWISE[4], us(3)), (20, GEMM, us(20))])), "fewer than half are small");
    assert!(!fires("OP-08", &mix(&[(40, ELEMENTWISE[4], us(3)), (10, GEMM, us(200))])), "they take too little time");
}

#[test]
fn op08_short_named_operators_with_a_lone_addition_are_no_storm() {
    let step = |additions| mix(&[(35, NORM, us(3)), (additions, ELEMENTWISE[4], us(3)), (10, GEMM, us(20))]);
    assert!(fires("OP-08", &step(12)));
    assert!(!fires("OP-08", &step(8)), "a fused step has as many");
}

#[test]
fn op08_does_not_judge_operations_of_unknown_names() {
    let strange = mix(&[(40, "zz_1f3a", us(3)), (10, GEMM, us(20))]);
    assert!(!fires("OP-08", &strange));
    assert!(diagnosis(&strange).abstained.iter().any(|a| a.rule == "OP-08" && a.why.is_some()));
}

#[test]
fn op14_counts_sampling_but_not_the_lm_head() {
    let sampling = |sort: Ns| {
        Run::steps(12, move |r, _| {
            r.graph(&[(NORM, us(3)), (GEMM, us(300)), (GEMM, us(300))], us(1)).launch(SORT, sort).token();
        })
    };
    assert!(fires("OP-14", &sampling(us(60))));
    assert!(!fires("OP-14", &sampling(us(3))));
}

#[test]
fn op14_a_sort_of_the_vocabulary_is_seen_below_the_share_of_a_needed_choice() {
    let after = |name: &'static str, ns: Ns| {
        Run::steps(12, move |r, _| {
            r.graph(&[(NORM, us(3)), (GEMM, us(300)), (GEMM, us(300))], us(1)).launch(name, ns).token();
        })
    };
    let argmax = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>";
    assert!(fires("OP-14", &after(SORT, us(20))));
    assert!(!fires("OP-14", &after(argmax, us(20))), "a token must be chosen");
    let routing = Run::steps(12, |r, _| {
        r.graph(&[(NORM, us(3)), (SORT, us(20)), (GEMM, us(300)), (GEMM, us(300))], us(1)).token();
    });
    assert!(!fires("OP-14", &routing), "a sort before a product is not of the vocabulary");
}
