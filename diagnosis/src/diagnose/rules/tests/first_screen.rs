//! What the first screen says beside the findings: work around a lone step, rates that nobody judged.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, ImportStat, Provenance, Severity, TraceSink};

use super::super::testing::{GEMM, NORM, Run, check, diagnosis, us};
use crate::{
    analysis::script::Script,
    diagnose::Diagnosis,
    i18n::{Lang, Message, Value},
};

pub(super) fn text(message: &Message) -> String {
    message.render(Lang::En, |value| match value {
        Value::Raw(raw) => raw.clone(),
        Value::Message(inner) => text(inner),
        Value::Text(words) => words.en.to_owned(),
        Value::Ns(ns) => format!("{ns} ns"),
        _ => "x".to_owned(),
    })
}

pub(super) fn unjudged(diagnosis: &Diagnosis) -> Vec<String> {
    diagnosis.verdict.unjudged.iter().map(|doubt| text(&doubt.sentence)).collect()
}

/// One marked step: the host prepares inside `preprocess`, then launches ten products; `more` adds another such step.
fn prepared(more: bool) -> Diagnosis {
    let mut s = Script::default();
    for (n, t) in [(1, 0), (2, us(60_000))].into_iter().take(if more { 2 } else { 1 }) {
        s.host(Category::UserRange, &format!("ProfilerStep#{n}"), (t, t + us(52_000)));
        s.host(Category::PythonFrame, "video.py(7): preprocess", (t + us(10), t + us(40_000)));
        for i in 0..10 {
            let at = t + us(41_000 + i * 1_000);
            s.launch((at, at + us(5)), GEMM, (at + us(10), at + us(1_000)));
        }
    }
    diagnosis(&s.analyze())
}

#[test]
fn host_work_before_the_only_step_is_said_with_its_owner() {
    let one = prepared(false);
    let headline = text(&one.verdict.headline);
    assert!(headline.contains("its mark lasts 52000000 ns: for 42010000 ns of it only the host works"), "{headline}");
    let doubts = unjudged(&one);
    assert!(
        doubts.iter().any(|d| d.contains("why the host works for 41010000 ns before") && d.contains("preprocess")),
        "{doubts:?}"
    );
    let two = prepared(true);
    assert!(!text(&two.verdict.headline).contains("only the host works"), "a step before holds it");
}

#[test]
fn work_that_was_not_recorded_is_no_host_work_before_the_step() {
    let mut s = Script::default();
    s.host(Category::UserRange, "ProfilerStep#1", (0, us(50_000)));
    // The kernel was launched at once, and starts only when what ran before it ends.
    s.launch((us(10), us(15)), GEMM, (us(30_000), us(40_000)));
    s.launch((us(20), us(25)), GEMM, (us(40_000), us(50_000)));
    let d = diagnosis(&s.analyze());
    assert!(!text(&d.verdict.headline).contains("only the host works"), "{}", text(&d.verdict.headline));
}

#[test]
fn steps_that_allocate_and_free_all_the_time_have_no_cache() {
    // Advice for PyTorch is given where its kernels run.
    const KERNEL: &str = "void at::native::vectorized_elementwise_kernel<4>(int)";
    let run = |frees: usize| {
        Run::steps(6, move |r, _| {
            for i in 0..10 {
                r.call("cudaMalloc", us(300)).launch(KERNEL, us(100));
                if i < frees {
                    r.call("cudaFree", us(300));
                }
            }
            r.token();
        })
    };
    let uncached = check("RT-10", &run(10));
    assert!(text(&uncached[0].claim).contains("The framework's cache is off"), "{}", text(&uncached[0].claim));
    let advice = |f: &crate::diagnose::Finding| f.remedy.iter().map(|r| r.text_en.clone()).collect::<String>();
    assert!(advice(&uncached[0]).contains("NO_CUDA_MEMORY_CACHING") && !advice(&uncached[0]).contains("expandable"));
    let growing = check("RT-10", &run(0));
    assert!(!text(&growing[0].claim).contains("cache is off"));
    assert!(advice(&growing[0]).contains("expandable") && !advice(&growing[0]).contains("NO_CUDA_MEMORY_CACHING"));
}

#[test]
fn where_no_step_is_marked_nothing_is_said_per_step() {
    let mut s = Script::default();
    s.launch((0, us(5)), NORM, (us(10), us(50)));
    for i in 0..4 {
        let at = us(100 + i * 1_000);
        s.call("cudaMalloc", (at, at + us(600)));
        s.launch((at + us(610), at + us(615)), GEMM, (at + us(620), at + us(900)));
    }
    let d = diagnosis(&s.analyze());
    let alloc = d.findings.iter().find(|finding| finding.rule == "RT-10").unwrap();
    let said = alloc.evidence.iter().map(|fact| text(&fact.what)).collect::<String>() + &text(&alloc.claim);
    assert!(!said.contains("per step"), "{said}");
    let marked = check(
        "RT-10",
        &Run::steps(6, |r, _| {
            r.call("cudaMalloc", us(300)).launch(GEMM, us(100)).token();
        }),
    );
    assert!(text(&marked[0].claim).contains("per step"));
}

#[test]
fn copies_that_fill_the_step_are_asked_about() {
    let d = diagnosis(&Run::steps(8, |r, _| {
        r.copy("cudaMemcpyAsync", us(5), "HtoD", "pinned", us(2_000)).launch(GEMM, us(100)).token();
    }));
    assert!(unjudged(&d).iter().any(|doubt| doubt.contains("copies between host and device")), "{:?}", unjudged(&d));
}

#[test]
fn kernels_of_counter_passes_are_no_run_and_nothing_is_asked_about_the_time_between_them() {
    let run = |stat: Option<(&'static str, u64)>| {
        let mut s = Script::default();
        for i in 0..4 {
            s.kernel(1, GEMM, (us(1_000 * i), us(1_000 * i + 10)), None, None);
        }
        if let Some((name, count)) = stat {
            s.builder.stat(name, Severity::DataLoss, count, None);
        }
        diagnosis(&s.analyze())
    };
    let alone = run(Some((ImportStat::RUN_ALONE, 4)));
    assert!(text(&alone.verdict.headline).contains("ran one after the other"), "{}", text(&alone.verdict.headline));
    assert!(alone.verdict.place.is_none() && alone.verdict.unjudged.is_empty());
    let holes = run(Some((ImportStat::MISSING_KERNELS, 100)));
    let said = text(&holes.verdict.headline) + &unjudged(&holes).join(" ");
    assert!(said.contains("have holes") || said.contains("ncomplete"), "{said}");
    let usual = run(None);
    assert!(usual.verdict.place.is_some() && unjudged(&usual)[0].contains("record the host's calls"));
}

/// Training steps that one thread launches forward and another one backward, slower than the device runs them; `copies` are
/// made between the products of the backward pass.
fn trained(copies: bool) -> (model::Trace, crate::analysis::Analysis) {
    let mut s = Script::default();
    for step in 0..6 {
        let t = us(20_000 * step);
        s.host(Category::UserRange, &format!("ProfilerStep#{step}"), (t, t + us(20_000)));
        s.host(Category::FrameworkOp, "Optimizer.step#SGD.step", (t + us(18_000), t + us(19_990)));
        for i in 0..90 {
            let at = t + us(10 + i * 100);
            s.host(Category::FrameworkOp, "aten::linear", (at - us(9), at + us(80)));
            s.launch((at, at + us(5)), GEMM, (at + us(8), at + us(28)));
        }
        for i in 0..90 {
            let at = t + us(9_050 + i * 95);
            s.host_on(2, Category::FrameworkOp, "MmBackward0", (at - us(9), at + us(80)));
            s.launch_from(2, (at, at + us(5)), GEMM, (at + us(8), at + us(28)));
            if copies {
                let id = s.issue("cudaMemcpyAsync", (at + us(30), at + us(33)));
                s.copied("Memcpy DtoD (Device -> Device)", (at + us(36), at + us(38)), id);
            }
        }
    }
    s.analyze()
}

#[test]
fn threads_that_take_turns_are_launch_bound_together() {
    for copies in [false, true] {
        let d = diagnosis(&trained(copies));
        let found = d.findings.iter().find(|f| f.rule == "RT-14").expect("RT-14 survives the replay");
        let gain = found.estimate.least_gain_share();
        assert!(gain > 0.4, "copies {copies}: {gain}");
        assert_eq!(d.verdict.first.as_ref().map(|first| first.rule), Some("RT-14"));
    }
}

#[test]
fn what_a_call_does_besides_launching_is_named_and_may_stay() {
    let run = |call: i64| {
        let mut s = Script::default();
        for step in 0..6 {
            let t = us(12_000 * step);
            s.host(Category::UserRange, &format!("ProfilerStep#{step}"), (t, t + us(12_000)));
            for i in 0..30 {
                let at = t + us(10 + i * 390);
                s.host(Category::FrameworkOp, "aten::conv2d", (at - us(9), at + us(370)));
                let launch = at + us(350 - call);
                s.launch((launch, launch + us(call)), GEMM, (launch + us(call + 3), launch + us(call + 23)));
            }
        }
        let d = diagnosis(&s.analyze());
        let found = d.findings.into_iter().find(|f| f.rule == "RT-14").expect("RT-14 fires");
        let named = found.evidence.iter().any(|fact| text(&fact.what).contains("most of it inside cudaLaunchKernel"));
        (named, found.estimate.least_gain_share(), found.estimate.max_gain_share())
    };
    let (named, least, most) = run(300);
    // 200 of the 390 µs from launch to launch are the call's own.
    assert!(named && (0.3..0.5).contains(&least) && most > 0.9, "{named} {least} {most}");
    let (named, least, _) = run(8);
    assert!(!named && least > 0.7, "{named} {least}");
}

/// Attention on tensors of the host was called launching, and graphs its cure; data loading beside launches hid that they bound.
#[test]
fn computing_on_the_host_is_no_launching_and_loading_data_hides_none() {
    let run = |between: &dyn Fn(&mut Script, i64)| {
        let mut s = Script::default();
        for step in 0..6 {
            let t = us(12_000 * step);
            s.host(Category::UserRange, &format!("ProfilerStep#{step}"), (t, t + us(12_000)));
            for i in 0..30 {
                let at = t + us(10 + i * 390);
                between(&mut s, at);
                s.host(Category::FrameworkOp, "aten::linear", (at + us(330), at + us(352)));
                s.launch((at + us(340), at + us(350)), GEMM, (at + us(355), at + us(360)));
            }
        }
        let d = diagnosis(&s.analyze());
        d.findings.iter().any(|f| f.rule == "RT-14")
    };
    let computed = |s: &mut Script, at: i64| {
        s.host(Category::FrameworkOp, "aten::bmm", (at, at + us(320)));
    };
    assert!(!run(&computed), "computed on the host");
    let framework = |s: &mut Script, at: i64| {
        for n in 0..8 {
            s.host(Category::FrameworkOp, "aten::view", (at + us(40 * n), at + us(40 * n + 30)));
        }
    };
    assert!(run(&framework), "launch-bound");
    let loads = |s: &mut Script, at: i64| {
        s.host(
            Category::FrameworkOp,
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            (at, at + us(110)),
        );
        for n in 3..8 {
            s.host(Category::FrameworkOp, "aten::view", (at + us(40 * n), at + us(40 * n + 30)));
        }
    };
    assert!(run(&loads), "launch-bound beside the loading of data");
    // Batches are put together by operators of the host inside the loader.
    let collates = |s: &mut Script, at: i64| {
        loads(s, at);
        s.host(Category::FrameworkOp, "aten::cat", (at + us(5), at + us(105)));
    };
    assert!(run(&collates), "launch-bound beside the loading of data, whatever the loader does");
}

#[test]
fn waiting_and_transfer_that_one_rank_cannot_tell_apart_stand_together() {
    let mut s = Script::default();
    for step in 0..80 {
        let t = us(1_000 * step);
        s.host(Category::UserRange, &format!("ProfilerStep#{step}"), (t, t + us(1_000)));
        s.launch((t + us(1), t + us(6)), GEMM, (t + us(10), t + us(100)));
        let start = t + us(101);
        s.collective((t + us(7), t + us(12)), ("tp", 4), Some(step), (start, start + us(500 + (step % 7) * 40)));
    }
    let d = diagnosis(&s.analyze());
    let place = d.verdict.place.as_ref().expect("steps");
    assert_eq!(place.bucket, "comm.transfer + comm.wait");
    assert!((place.part - place.share).abs() < 1e-9, "{} of {}", place.part, place.share);
}

#[test]
fn a_single_long_collective_is_named() {
    let run = |long: i64| {
        let mut s = Script::default();
        s.host(Category::UserRange, "ProfilerStep#1", (0, us(10_000)));
        s.launch((us(1), us(6)), GEMM, (us(10), us(100)));
        let mut at = us(101);
        for (n, length) in [(0, 300), (1, long), (2, 300)] {
            s.collective((us(7 + n * 10), us(12 + n * 10)), ("tp", 4), Some(n), (at, at + us(length)));
            at += us(length) + 10;
        }
        unjudged(&diagnosis(&s.analyze()))
    };
    let said = |doubts: &[String]| {
        doubts
            .iter()
            .any(|doubt| doubt.contains("the longest of which, one nccl") && doubt.contains("takes 5000000 ns"))
    };
    assert!(said(&run(5_000)), "{:?}", run(5_000));
    assert!(!run(300).iter().any(|doubt| doubt.contains("the longest of which")), "none stands out");
}

#[test]
fn a_blocking_copy_of_which_only_the_call_was_recorded_is_no_work_of_the_device() {
    let mut s = Script::default();
    s.call("hipMemcpy", (us(0), us(10)));
    s.launch((us(1), us(6)), GEMM, (us(10), us(110)));
    s.call("hipMemcpy", (us(120), us(1_000)));
    s.launch((us(1_001), us(1_006)), GEMM, (us(1_010), us(1_110)));
    let d = diagnosis(&s.analyze());
    let busy = d.verdict.place.as_ref().expect("a window").busy;
    assert!((busy - 200.0 / 1_100.0).abs() < 0.02, "{busy}");
}

#[test]
fn results_without_a_step_are_the_headline_of_their_file() {
    let headline = |facts: &[(&str, &str)]| {
        let mut s = Script::default();
        for (key, value) in facts {
            s.builder.manifest(key, value, Provenance::Observed);
        }
        text(&diagnosis(&s.analyze()).verdict.headline)
    };
    let links = headline(&[
        ("link.mean_busbw", "28.2632 GB/s"),
        ("link.topology.NVL", "20 to 240 GB/s"),
        ("link.topology.PCI", "24 GB/s"),
    ]);
    assert!(links.contains("28.2632 GB/s of bus bandwidth") && links.contains("NVL 20 to 240 GB/s"), "{links}");
    assert!(!links.contains("PCI"), "links that are alike need no word: {links}");
    let even = headline(&[("link.mean_busbw", "178.1 GB/s"), ("link.topology.NVL", "240 GB/s")]);
    assert!(!even.contains("slowest"), "{even}");
    let latency = headline(&[("serving.avg_latency", "0.9204")]);
    assert!(latency.contains("a batch takes 920400000 ns on average"), "{latency}");
    assert!(headline(&[]).contains("No device operation was recorded"));
}

#[test]
fn pauses_before_kernels_that_run_for_the_first_time_are_a_start_up_without_any_call_that_shows_it() {
    let run = |same: bool, twice: bool| {
        let mut s = Script::default();
        for i in 0..6 {
            let at = us(20_000 * i);
            let name = if same { GEMM.to_owned() } else { format!("void kernel_{i}<float>(float*)") };
            s.launch((at, at + us(5)), &name, (at + us(10), at + us(110)));
            if twice {
                s.launch((at + us(100), at + us(105)), &name, (at + us(110), at + us(210)));
            }
        }
        text(&diagnosis(&s.analyze()).verdict.headline)
    };
    let first = run(false, true);
    assert!(first.contains("run for the first time (x such pauses, the longest 19800000 ns)"), "{first}");
    assert!(!run(true, true).contains("first time"), "the same kernels ran before: {}", run(true, true));
    assert!(!run(false, false).contains("first time"), "one pass of a slow host looks the same: {}", run(false, false));
}

#[test]
fn launches_without_any_device_work_are_lost_records() {
    let mut s = Script::default();
    for i in 0..3 {
        s.call("cudaLaunchKernel", (us(10 * i), us(10 * i + 5)));
    }
    let said = text(&diagnosis(&s.analyze()).verdict.headline);
    assert!(said.contains("although the host made x calls that start device work"), "{said}");
}

#[test]
fn where_no_rule_names_a_cause_the_rate_of_the_longest_operator_stands_in_the_headline() {
    let run = |shapes: &'static str| {
        let (mut trace, analysis) = Run::steps(6, |r, _| {
            for _ in 0..300 {
                r.shaped(GEMM, us(14), shapes, r#"["c10::BFloat16", "c10::BFloat16"]"#);
            }
            r.token();
        });
        trace.devices[0].name = Some(trace.strings.intern("NVIDIA H100 80GB HBM3"));
        let d = diagnosis(&(trace, analysis));
        // What is left of the time is always stated.
        let named = d.findings.iter().map(|finding| finding.rule).filter(|rule| *rule != "CO-14");
        (named.collect::<Vec<_>>(), text(&d.verdict.headline))
    };
    // 33.6 MB take 10 µs at 3.35 TB/s.
    let (rules, said) = run("[[4, 4096], [4096, 4096]]");
    assert!(rules.is_empty(), "{rules:?}");
    assert!(said.contains("gemm 4×4096×4096") && said.contains("by published peaks"), "{said}");
}

#[test]
fn steps_in_which_graphs_are_recorded_are_a_start_up_whatever_little_the_device_does() {
    let mut s = Script::default();
    s.host(Category::UserRange, "ProfilerStep#1", (0, us(40_000)));
    s.call("cudaStreamBeginCapture", (us(100), us(101)));
    s.launch(
        (us(9_000), us(9_005)),
        "void at::native::vectorized_elementwise_kernel<4, FillFunctor<int>>",
        (us(9_010), us(9_015)),
    );
    s.launch(
        (us(9_020), us(9_025)),
        "void at::native::vectorized_elementwise_kernel<4, FillFunctor<int>>",
        (us(9_030), us(9_035)),
    );
    s.call("cudaStreamEndCapture", (us(39_000), us(39_001)));
    let said = text(&diagnosis(&s.analyze()).verdict.headline);
    assert!(said.contains("records graphs"), "{said}");
}
