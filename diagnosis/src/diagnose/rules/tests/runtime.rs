#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, Ns, Trace};

use super::super::testing::{GEMM, NORM, Run, check, diagnosis, fires, us};
use crate::{
    analysis::{Analysis, Confidence, Edit, script::Script},
    diagnose::Severity,
    i18n::Value,
};

type Capture = (Trace, Analysis);

/// Twenty operations, each with framework work before its launch; the device needs `kernel` ns for each.
pub fn eager(kernel: Ns) -> Capture {
    Run::steps(12, |r, _| {
        for _ in 0..20 {
            r.work(Category::FrameworkOp, "aten::linear", us(15)).launch(GEMM, kernel);
        }
        r.token();
    })
}

/// One graph replay of ten products, then the token; `extra` does more in step `i` before the graph.
pub fn graph(steps: usize, mut extra: impl FnMut(&mut Run, usize)) -> Capture {
    Run::steps(steps, |r, i| {
        extra(r, i);
        r.graph(&[(GEMM, us(50)); 10], us(1)).token();
    })
}

#[test]
fn rt01_and_rt14_see_a_device_that_waits_for_launches() {
    let (slow, fast) = (eager(us(4)), eager(us(30)));
    for id in ["RT-01", "RT-14"] {
        assert!(fires(id, &slow), "{id}");
        assert!(!fires(id, &fast), "{id}");
    }
}

#[test]
fn rt14_says_how_much_of_the_chain_is_python_alone_and_how_far_launches_are_apart() {
    let capture = Run::steps(1, |r, _| {
        let start = r.host;
        for i in 0..20 {
            r.think(us(if i == 0 { 0 } else { 20 }))
                .work(Category::FrameworkOp, "aten::linear", us(15))
                .launch(GEMM, us(4));
        }
        let end = r.host;
        r.script.host(Category::PythonFrame, "model.py(1): step", (start, end));
    });
    let found = check("RT-14", &capture).remove(0);
    // 20 launches of 5 µs with 15 µs of framework and 20 µs of Python between them: 385 and 380 of 765 µs.
    let why = &found.competing[0].why;
    let chain = [("calls", Value::Share(385.0 / 765.0)), ("python", Value::Share(380.0 / 765.0))];
    assert_eq!(why.args, [[("other", Value::Ns(0))].as_slice(), &chain].concat());
    assert!(found.competing[0].refuted, "the host does nothing else");
    let pace = found.evidence.iter().find(|e| e.what.text.en.starts_with("mean time")).unwrap();
    assert_eq!(pace.value, Value::Ns(us(40)));
}

#[test]
fn rt14_keeps_quiet_where_the_host_does_something_else_between_launches() {
    let holes = Run::steps(12, |r, _| {
        for _ in 0..20 {
            r.think(us(150)).launch(GEMM, us(4));
        }
        r.token();
    });
    assert!(!fires("RT-14", &holes));
    let slow = Run::steps(12, |r, _| {
        for _ in 0..20 {
            r.work(Category::FrameworkOp, "aten::item", us(1500)).launch(GEMM, us(4));
        }
        r.token();
    });
    assert!(!fires("RT-14", &slow), "a launch every 1.5 ms is no launch chain");
    assert!(fires("RT-01", &holes));
}

#[test]
fn rt12_claims_what_lies_between_steps_and_rt01_and_rt14_do_not() {
    let run = |between: Ns| {
        Run::steps(12, move |r, _| {
            for _ in 0..20 {
                r.launch(GEMM, us(25));
            }
            r.token().think(between);
        })
    };
    let late = run(us(300));
    assert!(fires("RT-12", &late));
    assert!(!fires("RT-01", &late) && !fires("RT-14", &late));
    assert!(!fires("RT-12", &run(us(5))));
}

/// The processors that compute are those that launch: a step's first operation gets the last core when the host is through
/// with launching. What a graph brings is that, and not a scheduling that overlaps.
#[test]
fn the_wait_for_the_core_that_launches_is_rt01_and_not_rt12() {
    let run = |vendor: &str| {
        Run::written(Script::of(vendor), 24, |r, _| {
            let first = r.host;
            // Twenty launches of 5 µs, and the device begins 2 µs after the last of them.
            for k in 0..20 {
                let start = first + us(102 + 15 * k);
                r.script.launch((r.host, r.host + us(5)), GEMM, (start, start + us(15)));
                (r.host, r.device) = (r.host + us(5), start + us(15));
            }
            r.wait();
            "execute_context_0(0)_generation_4(4)".to_owned()
        })
    };
    let crowded = run("cpu");
    assert!(fires("RT-01", &crowded) && !fires("RT-12", &crowded));
    assert!(fires("RT-12", &run("amd")) && !fires("RT-01", &run("amd")), "of another device nothing is known");
    let found = diagnosis(&crowded).findings.into_iter().find(|f| f.rule == "RT-01").unwrap();
    // 102 µs become the launch of a graph, that of the head beside it, and 2 µs; and operators that find their caches warmer.
    let (least, most) = (found.estimate.from - found.estimate.to_high, found.estimate.from - found.estimate.to_low);
    assert!((us(75)..us(95)).contains(&least) && (us(95)..us(117)).contains(&most), "{least} {most}");
}

#[test]
fn rt03_counts_pieces_that_leave_the_device_idle() {
    let pieces = |count: usize, between: Ns| {
        Run::steps(12, move |r, _| {
            for _ in 0..count {
                r.think(between).graph(&[(GEMM, us(5)), (NORM, us(5)), (GEMM, us(5))], us(1));
            }
            r.token();
        })
    };
    assert!(fires("RT-03", &pieces(10, us(20))));
    assert!(!fires("RT-03", &pieces(7, us(20))), "too few pieces");
    assert!(!fires("RT-03", &pieces(10, us(1))), "hidden behind device work");
}

#[test]
fn rt03_counts_what_the_first_piece_costs_the_host_too() {
    // Ten pieces, before each of which the host needs 100 us; a small launch follows each but the last.
    let run = Run::steps(20, |r, _| {
        for piece in 0..10 {
            r.think(us(100)).graph(&[(GEMM, us(20)), (GEMM, us(20))], us(1));
            if piece < 9 {
                r.launch(GEMM, us(5));
            }
        }
        r.token();
    });
    let d = diagnosis(&run);
    let estimate = d.findings.iter().find(|f| f.rule == "RT-03").unwrap().estimate;
    // Some 1200 us, of which the device works 450: one graph waits for none of the ten pieces' host time.
    assert!(estimate.to_low < us(620), "{estimate:?}");
}

#[test]
fn rt05_needs_more_than_one_short_compilation() {
    let loads = |at: &'static [usize]| {
        graph(30, move |r, i| {
            if at.contains(&i) {
                r.call("cuModuleLoadData", us(400));
            }
        })
    };
    assert!(fires("RT-05", &loads(&[15, 22])));
    assert!(!fires("RT-05", &loads(&[15])));
    assert!(!fires("RT-05", &loads(&[])));
}

#[test]
fn rt08_counts_preparation_only_where_the_device_waits_for_it() {
    let before = Run::steps(12, |r, _| {
        r.work(Category::UserRange, "prepare_inputs", us(100)).graph(&[(GEMM, us(50)); 10], us(1)).token();
    });
    let beside = Run::steps(12, |r, _| {
        r.graph(&[(GEMM, us(50)); 10], us(1)).work(Category::UserRange, "prepare_inputs", us(100)).token();
    });
    assert!(fires("RT-08", &before));
    assert!(!fires("RT-08", &beside));
    assert!(!fires("RT-08", &eager(us(4))), "nothing says that the host prepares inputs");
}

#[test]
fn rt09_needs_more_than_the_readback_of_the_token() {
    let syncs = |every: usize| {
        Run::steps(12, move |r, _| {
            for i in 1..=20 {
                r.launch(GEMM, us(25));
                if i % every == 0 {
                    r.wait().think(us(20));
                }
            }
            r.token();
        })
    };
    assert!(fires("RT-09", &syncs(5)));
    assert!(!fires("RT-09", &syncs(99)));
    // Many waits that never find the device idle for long are no cost.
    let free = Run::steps(12, |r, _| {
        r.launch(GEMM, us(900));
        for _ in 0..5 {
            r.call("cudaStreamSynchronize", us(1));
        }
        r.launch(GEMM, us(900)).token();
    });
    assert!(!fires("RT-09", &free));
}

#[test]
fn a_wait_that_begins_before_the_first_operation_of_its_step_is_not_taken_for_the_token_of_the_one_before() {
    let (trace, analysis) = Run::steps(12, |r, _| {
        r.launch(NORM, us(30)).wait();
        r.launch(GEMM, us(100)).launch(GEMM, us(100)).token();
    });
    let capture = (trace, analysis);
    let found = check("RT-09", &capture);
    let (trace, rank) = (&capture.0, &capture.1.ranks[0]);
    let unblocked: Vec<u32> = found[0].changes.iter().flat_map(|(_, change)| &change.edits).flat_map(waits).collect();
    assert!(unblocked.len() >= 10);
    for call in unblocked {
        let awaited = rank.timeline.ops.iter().rfind(|op| op.end <= rank.timeline.calls[call as usize].end).unwrap();
        assert_eq!(trace.strings.get(awaited.name), NORM, "the wait for the token has to stay");
    }
}

fn waits(edit: &Edit) -> Vec<u32> {
    match edit {
        Edit::Unblock(calls) => calls.clone(),
        _ => Vec::new(),
    }
}

#[test]
fn rt10_needs_more_than_one_short_allocation() {
    let allocs = |at: &'static [usize]| {
        graph(30, move |r, i| {
            if at.contains(&i) {
                r.call("cudaMalloc", us(400));
            }
        })
    };
    assert!(fires("RT-10", &allocs(&[12, 20])));
    assert!(!fires("RT-10", &allocs(&[12])));
}

#[test]
fn rt11_sees_pageable_copies_but_not_pinned_ones_or_the_token() {
    let copies = |api: &'static str, call: Ns, memory: &'static str| {
        Run::steps(12, move |r, _| {
            r.copy(api, call, "HtoD", memory, us(5));
            for _ in 0..20 {
                r.launch(GEMM, us(25));
            }
            r.token();
        })
    };
    assert!(fires("RT-11", &copies("cudaMemcpy", us(100), "pageable")));
    assert!(!fires("RT-11", &copies("cudaMemcpyAsync", us(3), "pinned")));
    let token = Run::steps(12, |r, _| {
        r.launch(GEMM, us(200)).copy("cudaMemcpy", us(220), "DtoH", "pageable", us(10));
    });
    assert!(!fires("RT-11", &token));
}

#[test]
fn rt15_tells_recorded_collections_from_silence() {
    let gc = |at: &'static [usize], ns: Ns| {
        graph(40, move |r, i| {
            if at.contains(&i) {
                r.work(Category::Gc, "gc", ns);
            }
        })
    };
    let recorded = gc(&[16, 24, 32], us(1600));
    assert!(fires("RT-15", &recorded));
    assert!(check("RT-15", &recorded)[0].confidence >= Confidence::Medium);
    assert!(!fires("RT-15", &gc(&[16], us(300))));
    let silent = |at: &'static [usize]| {
        graph(40, move |r, i| {
            if at.contains(&i) {
                r.think(us(5000));
            }
        })
    };
    let twice = silent(&[16, 30]);
    assert!(fires("RT-15", &twice));
    assert_eq!(check("RT-15", &twice)[0].confidence, Confidence::Medium, "the same sequences decode before and after");
    assert!(!fires("RT-15", &silent(&[16])));
}

/// A C++ program of distances between points was told to freeze its garbage collector.
#[test]
fn a_program_without_an_interpreter_has_no_garbage_collection() {
    let run = |kernel: &'static str| {
        let mut script = Script::default();
        let mut at = 0;
        for i in 0..40 {
            script.launch((at, at + us(5)), kernel, (at + us(6), at + us(506)));
            script.launch((at + us(6), at + us(9)), "argmax_kernel", (at + us(507), at + us(520)));
            let copied = (at + us(521), at + us(523));
            script.copy("cudaMemcpy", (at + us(10), at + us(530)), "DtoH", "pageable", 8, copied);
            at += us(540) + if [16, 30].contains(&i) { us(8_000) } else { 0 };
        }
        script.analyze()
    };
    assert!(fires("RT-15", &run("at::native::vectorized_elementwise_kernel")));
    assert!(!fires("RT-15", &run("compute_distances(float *, int)")));
}

#[test]
fn rt08_names_preparation_without_graphs_by_its_ranges() {
    let run = |prepares: bool| {
        Run::steps(12, move |r, _| {
            let name = if prepares { "prepare_inputs" } else { "schedule" };
            r.work(Category::UserRange, name, us(100));
            (0..20).for_each(|_| _ = r.launch(GEMM, us(40)));
            r.token();
        })
    };
    assert!(fires("RT-08", &run(true)));
    assert!(!fires("RT-08", &run(false)), "scheduling belongs to RT-12");
}

#[test]
fn rt18_counts_the_gaps_between_nodes() {
    let gaps = |gap: Ns| {
        Run::steps(12, move |r, _| {
            r.graph(&[(GEMM, us(5)); 60], gap).token();
        })
    };
    assert!(fires("RT-18", &gaps(us(3))));
    assert!(!fires("RT-18", &gaps(300)));
    let severity = |gap: Ns| diagnosis(&gaps(gap)).findings.iter().find(|f| f.rule == "RT-18").map(|f| f.severity);
    assert!(severity(us(3)) >= Some(Severity::Medium));
    assert_eq!(severity(us(1)), Some(Severity::Info), "gaps as short as usual are no fault, however many");
    assert!(!fires("RT-18", &gaps(0)), "folded: nothing can be said");
}

#[test]
fn rt22_says_what_the_slow_steps_spend_their_time_on() {
    let slow = |ns: Ns| {
        graph(80, move |r, i| {
            if i % 20 == 15 {
                r.think(ns);
            }
        })
    };
    let jittery = slow(us(1500));
    assert!(fires("RT-22", &jittery));
    let found = check("RT-22", &jittery);
    assert!(found[0].trigger.value > 1.5 && found[0].layer == crate::analysis::Layer::Runtime);
    assert!(!fires("RT-22", &slow(us(100))));
}

/// Steps whose ten products take 50 us and what `excess` adds in a step, ns; the host waits after each for `pause`.
fn products(excess: impl Fn(usize) -> Ns, pause: impl Fn(usize) -> Ns) -> Capture {
    Run::steps(40, |r, i| {
        r.graph(&[(GEMM, us(50) + excess(i)); 10], us(1)).token().think(pause(i));
    })
}

/// What a warm-up over 13 steps adds, the most of it being `most` ns.
fn warming(most: Ns) -> impl Fn(usize) -> Ns {
    move |i| most * 13_usize.saturating_sub(i) as Ns / 13
}

#[test]
fn rt23_sees_a_start_that_is_still_slower() {
    let fires = |excess: &dyn Fn(usize) -> Ns| fires("RT-23", &products(excess, |_| 0));
    assert!(fires(&warming(us(20))));
    assert!(!fires(&warming(us(1))), "below 3 %");
    assert!(!fires(&|i| us(20) * i as Ns / 40), "slower later on: contexts grow");
    assert!(!fires(&|i| if i < 8 { [us(9), us(4), us(6), us(11)][i % 4] } else { 0 }), "slower, but no trend");
}

#[test]
fn rt23_leaves_out_what_happens_once_and_the_time_that_the_device_waits() {
    let gain = |pause: &dyn Fn(usize) -> Ns| {
        let estimate = check("RT-23", &products(warming(us(20)), pause))[0].estimate;
        estimate.from - estimate.to_low.midpoint(estimate.to_high)
    };
    let stalls = |i: usize| us(5_000) * 3_usize.saturating_sub(i) as Ns;
    assert!(gain(&stalls) <= gain(&|_| 0), "what happens once is no part of the trend");
    let idle = |pause: &dyn Fn(usize) -> Ns| fires("RT-23", &products(|_| 0, pause));
    assert!(!idle(&stalls), "the host prepared something");
    assert!(
        !idle(&|i| if i < 8 { us(400) - us(40) * i as Ns } else { 0 }),
        "the host was late, the device as fast as ever"
    );
}

#[test]
fn rt23_counts_the_steps_that_were_set_aside_as_warm_up() {
    // Products get faster until the settling step.
    let run = |settling: usize| {
        Run::steps(40, move |r, i| {
            let slower = us(20) * settling.saturating_sub(i) as Ns / settling.max(1) as Ns;
            r.graph(&[(GEMM, us(50) + slower); 10], us(1)).token();
        })
    };
    let slow = run(13);
    let aside = |s: &&crate::analysis::Step| s.selection == crate::analysis::Selection::WarmUp;
    assert!(slow.1.ranks[0].steps.iter().filter(aside).count() > 5);
    assert!(fires("RT-23", &slow));
    // 10 products with 20 us x (1 + 12/13 + ... + 1/13) = 1.4 ms in 40 steps.
    let estimate = check("RT-23", &slow)[0].estimate;
    let gain = estimate.from - estimate.to_low.midpoint(estimate.to_high);
    assert!((us(33)..us(37)).contains(&gain), "{gain}");
    assert!(estimate.to_low < estimate.to_high, "two runs of the same thing differ");
    assert!(!fires("RT-23", &run(2)), "a slow first step or two is no trend");
}
