#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, Ns};

use super::super::testing::{CONTIGUOUS, GEMM, Run, SORT, check, diagnosis, fires, us};
use crate::{
    analysis::script::Script,
    diagnose::{Method, Over, VerdictLayer},
};

/// Steps with 300 us between them, in which `requests` are in the engine.
fn sparse(requests: f64) -> (model::Trace, crate::analysis::Analysis) {
    Run::steps(20, move |r, _| {
        let at = r.host;
        r.script.counter("vllm:num_requests_running", at, 4.0).counter("vllm:num_requests_waiting", at, 0.0);
        r.graph(&[(GEMM, us(50)); 10], us(1)).token();
        let at = r.host;
        r.script.counter("vllm:num_requests_running", at, requests);
        r.think(us(300));
    })
}

#[test]
fn rt19_tells_a_server_without_requests_from_a_slow_host() {
    let (empty, busy) = (sparse(0.0), sparse(4.0));
    assert!(fires("RT-19", &empty) && !fires("RT-12", &empty));
    assert!(!fires("RT-19", &busy) && fires("RT-12", &busy));
    let d = diagnosis(&empty);
    assert_eq!((d.verdict.layer, &d.verdict.because[..]), (VerdictLayer::Load, &["RT-19"][..]));
    assert_eq!(d.findings[0].rule, "RT-19", "that nothing was asked of it comes before what it could do better");
    assert_eq!(diagnosis(&busy).verdict.layer, VerdictLayer::Runtime);
    let silent = Run::steps(20, |r, _| {
        r.launch(GEMM, us(50)).token().think(us(300));
    });
    let d = diagnosis(&silent);
    assert!(d.abstained.iter().any(|a| a.rule == "RT-19" && !a.needs.is_empty()));
    assert!(d.findings.iter().any(|f| f.rule == "RT-12"));
}

#[test]
fn rt12_does_not_blame_the_host_for_idle_time_that_only_some_steps_have() {
    let run = |counted: bool| {
        Run::labelled("decode", 40, move |r, i| {
            let at = r.host;
            if counted {
                r.script.counter("num_requests_running", at, 4.0).counter("num_requests_waiting", at, 0.0);
            }
            r.graph(&[(GEMM, us(50)); 10], us(1)).token().think(if i % 3 == 0 { us(10) } else { us(400) });
        })
    };
    let silent = run(false);
    assert!(!fires("RT-12", &silent));
    assert!(diagnosis(&silent).abstained.iter().any(|a| a.rule == "RT-12" && a.why.is_some()));
    assert!(fires("RT-12", &run(true)), "requests were there all the time");
    assert_eq!(diagnosis(&run(true)).verdict.layer, VerdictLayer::Runtime);
}

#[test]
fn the_first_sure_cause_leads_where_nothing_says_whether_there_was_a_request() {
    // Between the steps' ranges the host does nothing known; within, copies that only change a layout precede the products.
    let run = |copies: usize| {
        let mut r = Run { script: Script::default(), host: 0, device: 0 };
        for _ in 0..40 {
            let start = r.host;
            let layer = [(CONTIGUOUS, us(20)), (GEMM, us(60))];
            r.graph(&[layer.repeat(copies), [(GEMM, us(60))].repeat(8 - copies)].concat(), us(1)).token();
            // Nothing says which sequences decode.
            r.script.host(Category::UserRange, "decode", (start, r.host));
            r.think(us(90));
        }
        r.script.analyze()
    };
    let both = diagnosis(&run(4));
    assert!(both.findings.iter().any(|f| f.rule == "RT-12") && both.findings.iter().any(|f| f.rule == "OP-05"));
    assert_eq!((both.verdict.layer, both.verdict.because.as_slice()), (VerdictLayer::Operator, &["OP-05"][..]));
    let pause = diagnosis(&run(0));
    assert_eq!((pause.verdict.layer, pause.verdict.because.as_slice()), (VerdictLayer::Undecided, &["RT-12"][..]));
}

#[test]
fn drafts_that_nobody_counts_are_no_operators_fault() {
    let run = |drafts: usize| {
        Run::steps(20, move |r, _| {
            r.graph(&[(GEMM, us(50)); 10], us(1)).launch(SORT, us(5));
            for _ in 0..drafts {
                r.launch(GEMM, us(20)).launch(SORT, us(5));
            }
            r.token();
        })
    };
    let drafting = diagnosis(&run(3)).verdict;
    assert_eq!((drafting.layer, drafting.because.as_slice()), (VerdictLayer::Undecided, &["RT-21"][..]));
    assert_eq!(diagnosis(&run(0)).verdict.layer, VerdictLayer::Operator);
}

#[test]
fn rt20_needs_a_preemption_or_a_full_cache() {
    let run = |preempt: bool, usage: f64| {
        Run::steps(20, move |r, i| {
            let at = r.host;
            r.script.counter("num_preemptions_total", at, if preempt && i >= 12 { 5.0 } else { 3.0 });
            r.script.counter("kv_cache_usage", at, usage);
            r.graph(&[(GEMM, us(50)); 10], us(1)).token();
        })
    };
    let preempted = run(true, 0.5);
    assert!(fires("RT-20", &preempted));
    assert!((check("RT-20", &preempted)[0].trigger.value - 2.0).abs() < 1e-9);
    assert!(fires("RT-20", &run(false, 0.97)));
    assert!(!fires("RT-20", &run(false, 0.9)), "room left, and a total that does not grow");
}

#[test]
fn rt20_promises_what_the_run_gains_and_not_what_its_mixed_steps_do() {
    // Every fifth step computes a preempted request again and takes 500 us longer for it.
    let run = Run::annotated(40, |r, i| {
        let again = i % 5 == 2;
        r.script.counter("num_preemptions_total", r.host, (3 + i / 5) as f64);
        r.graph(&[(GEMM, if again { us(100) } else { us(50) }); 10], us(1)).token();
        if again { "execute_context_1(64)_generation_3(3)" } else { "execute_context_0(0)_generation_4(4)" }.to_owned()
    });
    let found = check("RT-20", &run);
    let estimate = found[0].estimate;
    assert_eq!(found[0].over, Over::Workload);
    let (least, most) = (estimate.from - estimate.to_high, estimate.from - estimate.to_low);
    assert!(
        us(60) <= least && least <= us(102) && us(102) <= most && most <= us(120),
        "{least} {most} of {}",
        estimate.from
    );
}

#[test]
fn rt20_finds_the_recomputation_in_steps_that_no_range_calls_mixed() {
    // Every fifth step computes twice as much; `preempted` says how often a request was preempted.
    let run = |preempted: bool| {
        Run::steps(40, move |r, i| {
            let again = i % 5 == 2;
            r.script.counter("num_preemptions_total", r.host, if preempted { (3 + (i + 2) / 5) as f64 } else { 3.0 });
            r.graph(&[(GEMM, if again { us(100) } else { us(50) }); 10], us(1)).token();
        })
    };
    let found = check("RT-20", &run(true));
    let estimate = found[0].estimate;
    let (least, most) = (estimate.from - estimate.to_high, estimate.from - estimate.to_low);
    // 500 us in a fifth of the steps.
    assert!(us(75) <= least && least <= us(100) && us(100) <= most && most <= us(115), "{least} {most}");
    assert!(!fires("RT-20", &run(false)), "long steps, and nobody was preempted");
}

#[test]
fn rt21_tells_the_draft_from_the_verification_by_the_sampler() {
    // One draft token for each of four sequences; nothing marks the draft.
    let run = |argmax: bool| {
        Run::steps(20, move |r, _| {
            let at = r.host;
            r.script.counter("spec_draft_tokens", at, 4.0).counter("spec_accepted_tokens", at, 0.0);
            r.launch(GEMM, us(500)).launch(SORT, us(5)).launch(GEMM, us(200));
            if argmax {
                r.launch(SORT, us(5));
            }
            r.token();
        })
    };
    let found = check("RT-21", &run(true));
    let estimate = found[0].estimate;
    let most = estimate.from - estimate.to_low;
    assert!((us(200)..us(225)).contains(&most), "{most}");
    assert!(!fires("RT-21", &run(false)), "the sampler runs once: nothing tells the draft");
}

#[test]
fn rt21_compares_what_speculation_costs_with_what_it_brings() {
    // Four sequences with four draft tokens each; the draft takes `draft`, the verification 500 us.
    let run = |accepted: f64, draft: Ns| {
        Run::steps(20, move |r, _| {
            let at = r.host;
            r.script.counter("spec_draft_tokens", at, 16.0).counter("spec_accepted_tokens", at, accepted);
            r.launch(GEMM, draft);
            let end = r.host;
            r.script.host(Category::UserRange, "gpu_model_runner: draft", (at, end));
            r.graph(&[(GEMM, us(50)); 10], us(1)).token();
        })
    };
    let wasted = run(1.0, us(300));
    assert!(fires("RT-21", &wasted));
    assert!(check("RT-21", &wasted)[0].estimate.method != Method::None);
    assert!(!fires("RT-21", &run(12.0, us(300))), "three tokens more per sequence");
    assert!(!fires("RT-21", &run(1.0, us(30))), "a cheap draft");
}

#[test]
fn rt21_prefers_the_runs_own_plain_steps() {
    let run = |accepted: f64| {
        Run::steps(40, move |r, i| {
            let at = r.host;
            let drafts = i % 2 == 0;
            let count = |n: f64| if drafts { n } else { 0.0 };
            r.script.counter("spec_draft_tokens", at, count(16.0)).counter("spec_accepted_tokens", at, count(accepted));
            if drafts {
                r.graph(&[(GEMM, us(50)); 18], us(1)).token();
            } else {
                r.launch(GEMM, us(500)).token();
            }
        })
    };
    assert!(fires("RT-21", &run(1.0)));
    assert!(!fires("RT-21", &run(8.0)));
}
