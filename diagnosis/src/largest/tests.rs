//! Captures written by hand, held against sums made here by other means.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, Conditions, KernelSummary, StepPart, StepSum, TraceSink};

use super::*;
use crate::{
    analysis::{Options, analyze, script::Script},
    platform::Packs,
};

/// Name, count, total and longest of each row of a table.
fn told(tables: &Tables, kind: Kind) -> Vec<(&str, u64, Ns, Option<Ns>)> {
    tables.of(kind).map(|row| (row.name.as_str(), row.count, row.total, row.max)).collect()
}

/// Eight steps of 1 ms: a product of 300 µs, a copy that half hides behind it, and a pause of 400 µs in which a frame runs.
/// The fourth step is ten times as long, so that nothing would hold it for a steady one.
fn steps() -> Script {
    let mut script = Script::default();
    let mut at: Ns = 1_000;
    for step in 0..8 {
        let pause = if step == 3 { 9_400_000 } else { 400_000 };
        let end = at + 600_000 + pause;
        script.host(Category::UserRange, "execute_context_0(0)_generation_4(4)", (at, end - 10_000));
        script.host(Category::PythonFrame, "model.py(7): forward", (at + 1_000, at + 20_000 + pause));
        script.host(Category::FrameworkOp, "aten::mm", (at + 5_000 + pause, at + 18_000 + pause));
        script.launch(
            (at + 10_000 + pause, at + 15_000 + pause),
            "gemm_nt",
            (at + pause + 20_000, at + pause + 320_000),
        );
        let copy = (at + pause + 220_000, at + pause + 420_000);
        script.copy("cudaMemcpyAsync", (at + pause + 30_000, at + pause + 35_000), "DtoH", "pageable", 1 << 20, copy);
        at = end;
    }
    script
}

#[test]
fn every_step_counts_however_long_it_took() {
    let (trace, analysis) = steps().analyze();
    let largest = of(&trace, &analysis, |_| Vec::new());
    let tables = largest.of(Some(analysis.ranks[0].rank)).unwrap();
    let windows: Ns = analysis.ranks[0].steps.iter().map(|step| step.window.len()).sum();
    assert_eq!((tables.over, tables.steps, tables.time), (Over::Steps, analysis.ranks[0].steps.len(), windows));
    assert_eq!(told(tables, Kind::Kernel), [("gemm_nt", 8, 8 * 300_000, Some(300_000))]);
    assert_eq!(told(tables, Kind::Copy), [("DtoH device → pageable", 8, 8 * 200_000, Some(200_000))]);
    let copy = tables.of(Kind::Copy).next().unwrap();
    assert_eq!((copy.bytes, copy.exposed), (Some(8 << 20), Some(8 * 100_000)));
    assert!((copy.rate.unwrap() - (1 << 20) as f64 / 200e-6).abs() < 1.0);
    assert_eq!((tables.exposed_copies, tables.exposed_communication), (Some(8 * 100_000), None));
    // Every pause but that before the first step is owned by the frame; the longest is that of the fourth.
    let idle = tables.of(Kind::Idle).next().unwrap();
    assert_eq!(idle.name, "model.py(7): forward");
    // The launch call at the end of a pause has its own row.
    assert_eq!(idle.max.zip(tables.gaps.first()).map(|(own, gap)| gap.ns - own), Some(196_000));
    assert_eq!(tables.gaps.first().map(|gap| (gap.ns > 9_000_000, gap.step)), Some((true, 2)), "{:?}", tables.gaps);
    assert_eq!(tables.gaps[0].ended_by.as_deref(), Some("gemm_nt"));
}

#[test]
fn records_of_the_host_have_their_own_time_and_calls_belong_to_them() {
    let (trace, analysis) = steps().analyze();
    let largest = of(&trace, &analysis, |_| Vec::new());
    let tables = &largest.tables[0];
    let own =
        |name: &str| tables.of(Kind::Host).find(|row| row.name == name).map(|row| (row.count, row.total)).unwrap();
    // The windows begin with the first kernel of a step, so that of the first step's records nothing lies in them before it.
    assert_eq!(own("aten::mm"), (7, 7 * 13_000));
    let (count, total) = own("model.py(7): forward");
    assert_eq!((count, total), (7, 6 * (419_000 - 13_000) + 9_419_000 - 13_000));
    let launches = tables.of(Kind::Call).find(|row| row.name == "cudaLaunchKernel").unwrap();
    assert_eq!((launches.count, launches.total, launches.exposed), (7, 35_000, Some(35_000)));
    assert_eq!(tables.unnamed().first().map(|row| row.kind), Some(Kind::Idle), "{:?}", tables.unnamed());
}

#[test]
fn a_row_that_a_finding_names_and_a_small_one_need_no_sentence() {
    let (trace, analysis) = steps().analyze();
    let mut largest = of(&trace, &analysis, |_| Vec::new());
    let tables = &mut largest.tables[0];
    tables.rows.iter_mut().for_each(|row| row.named = row.name.contains("forward"));
    let names: Vec<&str> = tables.unnamed().iter().map(|row| row.name.as_str()).collect();
    assert!(!names.contains(&"model.py(7): forward") && !names.contains(&"aten::mm"), "{names:?}");
}

#[test]
fn collectives_have_their_bandwidth_and_what_no_kernel_hides() {
    let mut script = Script::default();
    let mut at: Ns = 1_000;
    for _ in 0..6 {
        script.host(Category::UserRange, "execute_context_0(0)_generation_4(4)", (at, at + 900));
        script.launch((at, at + 100), "gemm_nt", (at + 1_000, at + 5_000));
        script.exchange(
            (at + 200, at + 300),
            ("allreduce", "ncclKernel", 1 << 20),
            ("tp", 2),
            None,
            (at + 4_000, at + 14_000),
        );
        at += 20_000;
    }
    let (trace, analysis) = script.analyze();
    let largest = of(&trace, &analysis, |_| Vec::new());
    let tables = &largest.tables[0];
    let row = tables.of(Kind::Collective).next().unwrap();
    assert_eq!((row.name.as_str(), row.count, row.total, row.exposed), ("allreduce", 6, 60_000, Some(54_000)));
    assert_eq!((row.bytes, row.skew), (Some(1 << 20), None));
    assert!((row.rate.unwrap() - (1 << 20) as f64 * 1e9 / 10_000.0).abs() < 1.0);
    assert_eq!(tables.exposed_communication, Some(54_000));
    // It stands among the kernels too.
    assert!(tables.of(Kind::Kernel).any(|row| row.name == "ncclKernel" && row.exposed == Some(54_000)));
}

/// Two ranks leave an all-reduce together, of which one came 3 µs later.
#[test]
fn ranks_that_come_apart_show_by_how_much() {
    let mut script = Script::default();
    for rank in 0..2 {
        script.rank(rank);
        for step in 0..6 {
            let at = 1_000 + Ns::from(step) * 20_000;
            script.launch((at, at + 100), "gemm_nt", (at + 1_000, at + 5_000));
            let begins = at + 6_000 + Ns::from(rank) * 3_000;
            script.collective((at + 200, at + 300), ("tp", 2), Some(i64::from(step)), (begins, at + 16_000));
        }
    }
    let (trace, analysis) = script.analyze();
    let largest = of(&trace, &analysis, |_| Vec::new());
    assert_eq!(largest.tables.len(), 2);
    for rank in [0, 1] {
        let row = largest.of(Some(rank)).unwrap().of(Kind::Collective).next().unwrap();
        assert_eq!(row.skew, Some((3_000, 3_000)));
        // What the last rank takes is what the bytes take.
        assert!((row.rate.unwrap() - 65_536.0 * 1e9 / 7_000.0).abs() < 1.0, "{:?}", row.rate);
    }
}

#[test]
fn a_host_without_its_device_has_the_tables_of_its_busiest_thread() {
    let mut script = Script::default();
    script.host(Category::FrameworkOp, "aten::linear", (0, 100));
    script.host(Category::FrameworkOp, "aten::addmm", (10, 90));
    script.call("cudaLaunchKernel", (20, 30));
    script.call("cudaMalloc", (40, 80));
    script.host_on(9, Category::FrameworkOp, "elsewhere", (0, 5_000));
    let (trace, analysis) = script.analyze();
    let largest = of(&trace, &analysis, |_| Vec::new());
    let tables = largest.of(None).unwrap();
    assert_eq!((tables.over, tables.time, tables.steps), (Over::Host, 100, 0));
    assert_eq!(told(tables, Kind::Call), [("cudaMalloc", 1, 40, Some(40)), ("cudaLaunchKernel", 1, 10, Some(10))]);
    // A call has its own row, so its time leaves the record around it: 868 ms of a copy held 864 ms of its call.
    assert_eq!(told(tables, Kind::Host), [("aten::addmm", 1, 30, Some(30)), ("aten::linear", 1, 20, Some(20))]);
}

#[test]
fn sums_and_kernels_that_ran_alone_have_tables_of_their_own() {
    let mut script = Script::default();
    for (name, conditions, count, total, range) in [
        ("gemm_a", Conditions::Run, 10, 600, Some((50, 90))),
        ("softmax", Conditions::Run, 4, 400, None),
        ("alone", Conditions::Isolated, 1, 70, None),
    ] {
        let kernel = script.builder.intern(name);
        let total = Some(total);
        script.builder.summary(KernelSummary { count, total, range, ..KernelSummary::of(kernel, conditions) });
    }
    let (mut trace, _) = script.analyze();
    let parts = vec![(StepPart::Computing, 60), (StepPart::ExposedCommunication, 30), (StepPart::Free, 10)];
    trace.job_sums.steps.push(StepSum { step: model::StringId(0), rank: 0, stage: None, parts });
    let analysis = analyze(&trace, &Packs::embedded().unwrap(), &Options::default());
    let largest = of(&trace, &analysis, |_| Vec::new());
    let overs: Vec<(Over, Ns)> = largest.tables.iter().map(|tables| (tables.over, tables.time)).collect();
    assert_eq!(overs, [(Over::Sums, 1_000), (Over::Sums, 100), (Over::Alone, 70)]);
    assert_eq!(told(&largest.tables[0], Kind::Kernel), [("gemm_a", 10, 600, Some(90)), ("softmax", 4, 400, None)]);
    assert_eq!(largest.tables[1].exposed_communication, Some(30));
    assert_eq!(told(&largest.tables[2], Kind::Kernel), [("alone", 1, 70, Some(70))]);
    assert!(largest.tables[2].unnamed().is_empty(), "what ran alone has no share of a run");
}

#[test]
fn samples_of_a_device_say_least_median_most_and_how_many_lie_in_the_steps() {
    let mut script = steps();
    for (t, value) in [(0, 10.0), (400_000, 50.0), (2_000_000, 30.0), (3_000_000, 70.0), (90_000_000_000, 5.0)] {
        script.device_counter("AICORE_FREQ", t, value);
        script.counter("num_requests_running", t, value);
    }
    let (trace, analysis) = script.analyze();
    let samples = of(&trace, &analysis, |_| Vec::new()).samples;
    let told: Vec<_> = samples.iter().map(|s| (s.name.as_str(), s.count, s.inside, s.min, s.median, s.max)).collect();
    assert_eq!(told, [("AICORE_FREQ", 5, 2, (30.0, 2_000_000), 30.0, (70.0, 3_000_000))]);
}

/// The first `hipMemcpy` of a program took 338 of 566 ms, before the first device operation, and stood in no table.
#[test]
fn a_long_call_outside_of_a_window_is_told_with_what_lies_outside() {
    let run = |first: Ns| {
        let mut script = Script::default();
        script.call("hipMemcpy", (0, first));
        for i in 0..40 {
            let at = first + 10_000 * i;
            script.launch((at, at + 2_000), "gemm_nt", (at + 2_000, at + 10_000));
        }
        let (trace, analysis) = script.analyze();
        let tables = of(&trace, &analysis, |_| Vec::new()).tables.remove(0);
        tables.outside.iter().map(|row| (row.name.clone(), row.count, row.total)).collect::<Vec<_>>()
    };
    assert_eq!(run(900_000), [("hipMemcpy".to_owned(), 1, 900_000)]);
    assert_eq!(run(50_000), []);
}

/// A thread of a notebook that waits for a lock was the busiest one, and its wait 100 % of the run.
#[test]
fn the_busiest_thread_is_the_one_that_works() {
    let mut script = Script::default();
    script.host(Category::PythonFrame, "<built-in method acquire of _thread.lock>", (0, 16_000_000));
    script.host_on(9, Category::FrameworkOp, "aten::addmm", (0, 15_000_000));
    let (trace, _) = script.analyze();
    let rows = of_host(&trace).unwrap().rows;
    assert_eq!(rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["aten::addmm"]);
}
