//! Rules that claim idle time by who owns it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, Ns};

use super::super::testing::{GEMM, NORM, Run, check, diagnosis, fires, us};
use crate::{diagnose::Severity, i18n::Lang};

type Capture = (model::Trace, crate::analysis::Analysis);

fn said(f: &crate::diagnose::Finding) -> String {
    f.claim.render(Lang::En, |value| match value {
        crate::i18n::Value::Raw(text) => text.clone(),
        _ => "x".into(),
    })
}

/// A run in which nothing marks the steps: `record` takes `ns` on the launching thread, then 20 products run.
fn unmarked(category: Category, record: &'static str, ns: Ns) -> Capture {
    let mut run = Run { script: Default::default(), host: 0, device: 0 };
    for _ in 0..6 {
        run.wait().work(category, record, ns);
        run.copy("cudaMemcpyAsync", us(5), "HtoD", "pageable", us(10));
        for _ in 0..20 {
            run.work(Category::FrameworkOp, "aten::mm", us(4)).launch(GEMM, us(100));
        }
    }
    run.script.analyze()
}

#[test]
fn rt24_names_a_data_loader_without_marks_and_no_one_calls_it_launching() {
    let loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
    let run = unmarked(Category::UserRange, loader, us(3_000));
    assert!(fires("RT-24", &run) && !fires("RT-14", &run));
    let first = &diagnosis(&run).findings[0];
    assert_eq!(first.rule, "RT-24");
    assert!(said(first).contains("DataLoader"), "{}", said(first));
    assert!(first.severity >= Severity::High);
    assert!(!fires("RT-24", &unmarked(Category::UserRange, loader, us(20))), "too little");
    assert!(!fires("RT-24", &unmarked(Category::PythonFrame, "app.py(3): think", us(3_000))), "not known as input");
}

#[test]
fn rt24_counts_what_lies_inside_image_preprocessing() {
    let mut run = Run { script: Default::default(), host: 0, device: 0 };
    for _ in 0..5 {
        run.wait();
        let from = run.host;
        run.think(us(100)).work(Category::PythonFrame, "<built-in function zoom_shift>", us(2_000)).think(us(100));
        let span = (from, run.host);
        run.script.host(Category::PythonFrame, "models/owl/image_processing_owl.py(30): resize", span);
        run.launch(GEMM, us(3_000));
    }
    let capture = run.script.analyze();
    let found = check("RT-24", &capture);
    assert!(said(&found[0]).contains("zoom_shift> ← image_processing_owl.py(30): resize"), "{}", said(&found[0]));
}

/// Graph steps whose forward pass thinks `ns` before its replay, under the frame `frame`.
fn forward(frame: &'static str, ns: Ns) -> Capture {
    Run::steps(12, move |r, _| {
        r.launch(NORM, us(5));
        let from = r.host;
        r.think(ns).graph(&[(GEMM, us(50)); 10], us(1));
        let span = (from, r.host);
        r.script.host(Category::PythonFrame, frame, span);
        r.token();
    })
}

#[test]
fn rt25_is_the_time_inside_the_forward_pass_before_its_first_launch() {
    let slow = forward("llama.py(374): forward", us(700));
    assert!(fires("RT-25", &slow));
    assert!(said(&check("RT-25", &slow)[0]).contains("llama.py(374): forward"));
    assert!(!fires("RT-08", &slow) && !fires("RT-03", &slow), "nothing says inputs, and there is one piece");
    assert!(!fires("RT-25", &forward("llama.py(374): forward", us(40))));
    assert!(!fires("RT-25", &forward("runner.py(9): decide", us(700))), "outside the model");
    // The whole of it goes, and no more.
    let diagnosis = diagnosis(&slow);
    let gain = diagnosis.findings.iter().find(|f| f.rule == "RT-25").unwrap().estimate;
    assert!(gain.from - gain.to_low < us(760) && gain.from - gain.to_high > us(450), "{gain:?}");
}

/// A seventh of a step lay between its inputs and its graph, inside a range for each size of the batch, and nobody named it.
#[test]
fn rt25_is_also_the_time_before_a_graph_of_which_only_the_steps_mark_is_recorded() {
    let run = |ns: Ns| {
        Run::steps(12, move |r, i| {
            let from = r.host;
            r.launch(NORM, us(5)).think(ns).graph(&[(GEMM, us(50)); 10], us(1)).token();
            let span = (from, r.host);
            r.script.host(Category::UserRange, ["step[DECODE bs=7]", "step[DECODE bs=8]"][i % 2], span);
        })
    };
    let slow = run(us(700));
    assert!(fires("RT-25", &slow));
    assert!(!fires("RT-25", &run(us(200))));
}

#[test]
fn rt26_names_the_owner_of_idle_time_that_no_rule_claims() {
    let other = forward("runner.py(9): decide", us(3_000));
    let found = diagnosis(&other).findings;
    let host = found.iter().find(|f| f.rule == "RT-26").expect("nobody else speaks of it");
    assert!(said(host).contains("runner.py(9): decide"));
    let claimed = forward("llama.py(374): forward", us(3_000));
    assert!(diagnosis(&claimed).findings.iter().all(|f| f.rule != "RT-26"), "RT-25 claims it");
    let little = forward("runner.py(9): decide", us(30));
    assert!(diagnosis(&little).findings.iter().all(|f| f.rule != "RT-26"));
}

#[test]
fn rt26_names_a_launch_call_that_takes_long_by_itself() {
    let run = |call: Ns| {
        Run::steps(12, move |r, _| {
            r.launch(NORM, us(5));
            let span = (r.host, r.host + call);
            r.script.launch(span, GEMM, (span.1 + us(2), span.1 + us(300)));
            (r.host, r.device) = (span.1, span.1 + us(300));
            r.token();
        })
    };
    let found = diagnosis(&run(us(4_000))).findings;
    let host = found.iter().find(|f| f.rule == "RT-26").expect("nobody else speaks of it");
    assert!(said(host).contains("cudaLaunchKernel"), "{}", said(host));
    assert!(diagnosis(&run(us(50))).findings.iter().all(|f| f.rule != "RT-26"));
}

#[test]
fn rt10_counts_calls_where_nothing_marks_the_steps() {
    let mut run = Run { script: Default::default(), host: 0, device: 0 };
    for _ in 0..10 {
        run.wait().call("hipFree", us(2_000)).launch(GEMM, us(100));
    }
    let capture = run.script.analyze();
    let found = check("RT-10", &capture);
    assert!(said(&found[0]).contains("hipFree"), "{}", said(&found[0]));
    let first = &diagnosis(&capture).findings[0];
    assert_eq!((first.rule, first.severity), ("RT-10", Severity::Critical));
}

#[test]
fn op07_leaves_what_lies_between_two_inferences_to_the_input_pipeline() {
    let trip = |record: Option<(Category, &'static str)>| {
        Run::steps(12, move |r, _| {
            r.launch(GEMM, us(100)).copy("cudaMemcpy", us(110), "DtoH", "pageable", us(5));
            match record {
                Some((category, name)) => r.work(category, name, us(300)),
                None => r.think(us(300)),
            };
            r.copy("cudaMemcpyAsync", us(5), "HtoD", "pinned", us(5));
            r.work(Category::FrameworkOp, "aten::mm", us(4)).launch(GEMM, us(100)).token();
        })
    };
    assert!(fires("OP-07", &trip(Some((Category::FrameworkOp, "aten::index_put_")))));
    assert!(!fires("OP-07", &trip(Some((Category::FrameworkOp, "aten::to")))), "a copy computes nothing");
    assert!(!fires("OP-07", &trip(None)), "operators are recorded, and none lies between");
    let image = trip(Some((Category::PythonFrame, "image_processing_owl.py(30): resize")));
    assert!(!fires("OP-07", &image) && !fires("RT-09", &image) && fires("RT-24", &image));
}

/// A prologue of many short operators, of which none had half of the pause, was nobody's: "nothing narrower recorded".
#[test]
fn rt26_names_operators_that_own_a_pause_together() {
    let run = |ns: Ns| {
        Run::steps(12, move |r, _| {
            let from = r.host;
            r.launch(NORM, us(5));
            for name in ["aten::arange", "aten::cat", "aten::stack", "aten::mul"] {
                r.work(Category::FrameworkOp, name, ns / 4);
            }
            r.graph(&[(GEMM, us(50)); 10], us(1)).token();
            let span = (from, r.host);
            r.script.host(Category::UserRange, "execute_context_0(0)_generation_8(8)", span);
        })
    };
    let d = diagnosis(&run(us(400)));
    let found = d.findings.iter().find(|f| f.rule == "RT-26").expect("nobody else speaks of it");
    assert!(said(found).contains("aten::cat, aten::mul, aten::stack"), "{}", said(found));
    assert!(
        diagnosis(&run(us(60))).findings.iter().all(|f| f.rule != "RT-26"),
        "the way from one operator to the next"
    );
}
