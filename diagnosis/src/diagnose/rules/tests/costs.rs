//! Each generator on a run that has its cost, and on a near one that has not.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use model::{Category, Detail, KernelDetail, Ns, Trace};

use crate::{
    analysis::{Analysis, Bucket, script::Script},
    cause::{Cost, Gated, Kind, Occurs, find, statement},
    diagnose::rules::testing::{GEMM, NORM, Run, us},
    i18n::{Lang, Value},
    platform::Packs,
};

type Capture = (Trace, Analysis);

fn costs((trace, analysis): &Capture) -> Vec<Gated> {
    find(trace, analysis, &Packs::embedded().unwrap())
}

/// What is said of a cost, names and times as they are.
fn said(capture: &Capture, cost: &Cost) -> String {
    fn show(value: &Value) -> String {
        match value {
            Value::Message(inner) => inner.render(Lang::En, show),
            Value::Text(text) => text.en.to_owned(),
            Value::Raw(name) | Value::Kernel(name) => name.clone(),
            Value::Ns(ns) => format!("{ns} ns"),
            other => format!("{other:?}"),
        }
    }
    statement::of(&capture.0, cost, 0).1.render(Lang::En, show)
}

fn largest(capture: &Capture) -> Option<Gated> {
    costs(capture).into_iter().next()
}

#[test]
fn the_host_code_that_keeps_the_device_waiting_owns_the_idle_time() {
    let run = |ns: Ns| {
        Run::steps(12, move |r, _| {
            r.work(Category::PythonFrame, "engine.py(12): detokenize", ns);
            r.graph(&[(GEMM, us(200)), (NORM, us(5)), (GEMM, us(200))], us(1)).token();
        })
    };
    let capture = run(us(300));
    let cost = largest(&capture).expect("a cost");
    assert!(said(&capture, &cost).contains("detokenize"), "{}", said(&capture, &cost));
    assert!((0.3..0.5).contains(&cost.share()), "{}", cost.share());
    assert_eq!(cost.occurs, Occurs::Throughout);
    assert!(!costs(&run(us(1))).iter().any(|cost| said(&capture, cost).contains("detokenize")), "hidden");
}

#[test]
fn a_cost_of_every_third_step_counts_by_its_total_and_one_event_is_told_apart() {
    let run = |each: usize| {
        Run::steps(24, move |r, i| {
            if i % each == each / 2 {
                r.work(Category::PythonFrame, "adapter.py(3): swap", us(900));
            }
            r.graph(&[(GEMM, us(300)), (NORM, us(5)), (GEMM, us(300))], us(1)).token();
        })
    };
    let third = run(3);
    let cost = largest(&third).expect("a cost");
    assert!(cost.count >= 7 && said(&third, &cost).contains("swap"), "{}", said(&third, &cost));
    assert_eq!(cost.occurs, Occurs::Throughout);
    let single = run(100);
    let cost = largest(&single);
    assert!(cost.is_none_or(|cost| cost.occurs == Occurs::Once), "one event is no cost of every step");
}

#[test]
fn launches_that_follow_one_another_are_a_chain_and_a_wait_between_them_is_a_turnaround() {
    let eager = |waits: bool| {
        Run::steps(12, move |r, _| {
            for i in 0..40 {
                r.work(Category::FrameworkOp, ["aten::linear", "aten::add", "aten::mul"][i % 3], us(12));
                r.launch([GEMM, NORM, "silu_and_mul_kernel", "rope_kernel"][i % 4], us(3));
                if waits {
                    r.wait();
                }
            }
            r.token();
        })
    };
    let first = |capture: &Capture| largest(capture).expect("a cost").kind.clone();
    assert!(matches!(first(&eager(false)), Kind::Chain(_)));
    assert!(matches!(first(&eager(true)), Kind::Turnaround { .. }), "{:?}", first(&eager(true)));
}

#[test]
fn copies_and_separate_kernels_are_costs_where_they_take_time() {
    let run = |copy: Ns, cast: Ns| {
        Run::steps(12, move |r, _| {
            for _ in 0..10 {
                r.launch(GEMM, us(60));
                if cast > 0 {
                    r.launch("void at::native::elementwise_kernel<at::native::direct_copy_kernel_cuda>", cast);
                }
            }
            if copy > 0 {
                r.copy("cudaMemcpyAsync", us(2), "HtoD", "pageable", copy);
            }
            r.token();
        })
    };
    let kinds = |capture: &Capture| costs(capture).into_iter().map(|cost| cost.kind.clone()).collect::<Vec<_>>();
    let has_copies = |capture: &Capture| kinds(capture).iter().any(|kind| matches!(kind, Kind::Copies { .. }));
    let has_class = |capture: &Capture| kinds(capture).iter().any(|kind| matches!(kind, Kind::Class { .. }));
    assert!(has_copies(&run(us(200), 0)) && !has_copies(&run(us(5), 0)));
    assert!(has_class(&run(0, us(15))) && !has_class(&run(0, us(1))));
}

#[test]
fn a_grid_that_fills_a_fraction_of_the_cores_is_below_its_floor() {
    let run = |blocks: u32| {
        Run::steps(12, move |r, _| {
            r.script.cores(132);
            for _ in 0..6 {
                r.launch_blocks(GEMM, us(120), blocks).launch(NORM, us(5));
            }
            r.token();
        })
    };
    let few = |capture: &Capture| costs(capture).iter().any(|cost| matches!(cost.kind, Kind::Underfilled { .. }));
    assert!(few(&run(8)) && !few(&run(40)));
}

/// Blocks of 4 × 4 threads were "nothing recorded says whether that is slow".
#[test]
fn blocks_of_less_than_a_warp_leave_lanes_empty() {
    let run = |threads: i64| {
        let mut s = Script::default();
        s.cores(40);
        for i in 0..60 {
            let t = i * us(900);
            let id = s.issue("cudaLaunchKernel", (t, t + us(5)));
            let block = Some([threads as u32, 1, 1]);
            let detail = KernelDetail { grid: Some([1024, 1024, 1]), block, ..KernelDetail::default() };
            s.kernel(7, "Fan2", (t + us(10), t + us(890)), Some(id), Some(Detail::Kernel(detail)));
        }
        s.analyze()
    };
    let found =
        |capture: &Capture| costs(capture).iter().find(|c| matches!(c.kind, Kind::SmallBlocks { .. })).is_some();
    assert!(found(&run(16)) && !found(&run(64)));
}

/// Steps of equal kernels; `takes` gives the time of each by step and position.
fn kernels(takes: impl Fn(usize, usize) -> Ns + Copy) -> Capture {
    Run::steps(30, move |r, step| {
        for position in 0..8 {
            r.launch([GEMM, NORM][position % 2], takes(step, position));
        }
        r.token();
    })
}

#[test]
fn one_kernel_at_one_position_tells_a_clock_from_contention() {
    let kinds = |capture: &Capture| costs(capture).into_iter().map(|cost| cost.kind.clone()).collect::<Vec<_>>();
    let slower = kernels(|step, _| us(if step < 15 { 100 } else { 125 }));
    assert!(
        kinds(&slower).iter().any(|kind| matches!(kind, Kind::Drift { ratio } if *ratio > 1.2)),
        "{:?}",
        kinds(&slower)
    );
    // Fifteen problem sizes of one kernel, from 0.5 to 252 ms, were a clock that fell.
    let sizes = kernels(|step, _| us(100 << (step / 6)));
    assert!(!kinds(&sizes).iter().any(|kind| matches!(kind, Kind::Drift { .. })), "{:?}", kinds(&sizes));
    let now_and_then = kernels(|step, position| us(if (step * 8 + position) % 13 == 5 { 300 } else { 100 }));
    assert!(
        kinds(&now_and_then).iter().any(|kind| matches!(kind, Kind::Sporadic { .. })),
        "{:?}",
        kinds(&now_and_then)
    );
    let even = kernels(|_, _| us(100));
    assert!(!kinds(&even).iter().any(|kind| matches!(kind, Kind::Drift { .. } | Kind::Sporadic { .. })));
}

#[test]
fn experts_that_take_turns_with_gathers_are_one_cost() {
    let run = |turns: usize| {
        Run::steps(12, move |r, _| {
            for _ in 0..3 {
                r.launch("flash_fwd_splitkv_kernel", us(40));
                for _ in 0..turns {
                    r.launch("void at::native::vectorized_gather_kernel", us(5)).launch(GEMM, us(15));
                }
                r.launch("void at::native::vectorized_gather_kernel", us(5));
            }
            r.launch("flash_fwd_splitkv_kernel", us(40));
            r.token();
        })
    };
    let one_by_one = |capture: &Capture| costs(capture).iter().any(|cost| matches!(cost.kind, Kind::Experts { .. }));
    assert!(one_by_one(&run(8)) && !one_by_one(&run(2)));
}

#[test]
fn a_capture_with_hardly_anything_in_it_states_facts_and_accuses_nobody() {
    let mut script = Script::default();
    for i in 0..5 {
        let at = us(1_000 * i);
        script.launch((at, at + us(5)), GEMM, (at + us(900), at + us(910)));
    }
    let costs = costs(&script.analyze());
    assert!(!costs.is_empty() && costs.iter().all(|cost| cost.inherent), "{costs:?}");
}

/// One reduction in one block took 99 % of a window, and nothing was said: the capture held four operations.
#[test]
fn a_grid_of_one_block_is_told_however_few_operations_there_are() {
    let mut script = Script::default();
    script.cores(28);
    script.launch_blocks((0, us(5)), "reduce_baseline(const int *, int *)", (us(10), us(1_000_010)), 1);
    let costs = costs(&script.analyze());
    assert!(costs.iter().any(|cost| matches!(cost.kind, Kind::Underfilled { blocks: 1, .. })), "{costs:?}");
}

/// Of 18.9 ms one call held 12.2 ms, and nothing was said: the profiler let kernels begin where the one before ended.
#[test]
fn a_long_pause_is_told_although_durations_hold_the_dispatch_time() {
    let mut script = Script::default();
    let mut at = 0;
    for i in 0..100 {
        script.launch((at, at + us(2)), GEMM, (us(1_000) + at, us(1_000) + at + us(20)));
        at += us(20);
        if i == 49 {
            script.call("hipMemcpy", (at, at + us(12_000)));
            at += us(13_000);
        }
    }
    let costs = costs(&script.analyze());
    assert!(costs.iter().any(|cost| matches!(cost.kind, Kind::Owner(_)) && cost.total > us(10_000)), "{costs:?}");
}

/// 23.7 of 138.7 ms of launches were made under one operator, and all of them were told as called from it.
#[test]
fn a_call_of_many_callers_is_called_from_none_of_them() {
    let run = |callers: &'static [&'static str]| {
        let mut script = Script::default();
        for i in 0..40 {
            let at = us(1_000) * i;
            let caller = callers[i as usize % callers.len()];
            script.host(Category::FrameworkOp, caller, (at, at + us(600)));
            script.launch((at + us(10), at + us(590)), GEMM, (at + us(595), at + us(700)));
        }
        let found = costs(&script.analyze());
        let sites = found.iter().filter_map(|cost| match &cost.kind {
            Kind::Owner(site) => Some(site.path.len()),
            _ => None,
        });
        sites.collect::<Vec<_>>()
    };
    assert!(run(&["aten::mm"]).contains(&1));
    let many = run(&["aten::bitwise_not", "aten::topk", "aten::add", "aten::softmax"]);
    assert!(!many.is_empty() && many.iter().all(|path| *path == 0), "{many:?}");
}

/// `aten::normal_` ran in both recorded steps, one of which counted, and was told as an event that does not come again.
#[test]
fn of_a_single_step_nothing_is_called_once_only() {
    let run = |steps: usize| {
        Run::steps(steps, |r, _| {
            for i in 0..40 {
                if i == 20 {
                    r.work(Category::FrameworkOp, "aten::normal_", us(5_000));
                }
                r.launch(GEMM, us(20));
            }
            r.token();
        })
    };
    let capture = run(1);
    let found = costs(&capture);
    let texts: Vec<String> = found.iter().map(|cost| said(&capture, cost)).collect();
    let once = found.iter().any(|cost| cost.occurs == Occurs::Once);
    assert!(once && texts.iter().all(|text| !text.contains("come again")), "{texts:?}");
    assert!(found.iter().all(|cost| cost.apart == 0), "one base for all shares");
}

/// Of 361 ms of copies a change was to save 377 ms, more than the window without its kernels.
#[test]
fn copies_gain_no_more_than_themselves_and_the_idle_time_there_is() {
    let mut script = Script::default();
    for i in 0..40 {
        let at = us(1_000) * i;
        script.copy("cudaMemcpy", (at, at + us(700)), "HtoD", "pageable", 1 << 20, (at, at + us(700)));
        script.launch((at + us(650), at + us(690)), GEMM, (at + us(700), at + us(1_000)));
    }
    let found = costs(&script.analyze());
    let copies = found.iter().find(|cost| matches!(cost.kind, Kind::Copies { .. })).unwrap();
    assert_eq!((copies.total, copies.bounds.1), (us(28_000), us(28_000)));
    assert!(copies.bounds.0 <= us(12_000), "the kernels hide 300 of 700 µs: {:?}", copies.bounds);
}

/// A device that another process shares does not begin what was launched for milliseconds: that was "code that no record covers".
#[test]
fn launched_work_that_does_not_begin_is_no_time_of_the_host() {
    let mut s = Script::default();
    for i in 0..60 {
        let t = i * us(3_000);
        s.launch((t, t + us(5)), GEMM, (t + us(2_500), t + us(2_900)));
    }
    let capture = s.analyze();
    let class = &capture.1.ranks[0].classes[0];
    assert!(class.share(|bucket| bucket == Bucket::Unstarted) > 0.7, "{:?}", class.buckets);
    let most = largest(&capture).unwrap();
    assert_eq!((&most.kind, most.count), (&Kind::Unstarted, 59), "{}", said(&capture, &most));
}
