#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, Ns};

use super::super::testing::{GEMM, Run, check, diagnosis, fires, us};
use crate::{
    analysis::{Confidence, Edit},
    diagnose::Method,
};

#[test]
fn rt13_needs_slow_launches_that_starve_the_device() {
    // Every 40th launch call takes `slow`; the device needs `kernel` for each product.
    let run = |slow: Ns, kernel: Ns| {
        let mut n = 0;
        Run::steps(20, move |r, _| {
            for _ in 0..20 {
                n += 1;
                let call = (r.host, r.host + if n % 40 == 7 { slow } else { us(5) });
                let start = (call.1 + us(2)).max(r.device + 500);
                r.script.launch(call, GEMM, (start, start + kernel));
                (r.host, r.device) = (call.1, start + kernel);
            }
            r.token();
        })
    };
    let starved = run(us(200), us(6));
    assert!(fires("RT-13", &starved));
    let found = check("RT-13", &starved);
    assert_eq!(found[0].confidence, Confidence::Low, "nothing shows who had the core");
    assert!(found[0].competing.iter().any(|c| !c.refuted));
    assert!(
        matches!(&found[0].changes[0].1.edits[..], [Edit::Host(_, spans)] if spans.iter().all(|(_, ns)| *ns == us(5)))
    );
    assert!(!fires("RT-13", &run(us(20), us(6))), "four times the usual");
    assert!(!fires("RT-13", &run(us(200), us(300))), "hidden behind device work");
}

#[test]
fn rt13_is_sure_where_the_operating_system_says_who_ran() {
    // The core comes back when others leave it: each time after another time, up to `spread` more than `off`.
    let run = |off: Ns, spread: Ns| {
        Run::steps(12, move |r, step| {
            for i in 0..10 {
                if i == 5 {
                    r.work(Category::OsApi, "off-cpu", off + spread * (step as Ns * 5 % 12) / 12);
                }
                r.work(Category::FrameworkOp, "aten::linear", us(10)).launch(GEMM, us(5));
            }
            r.token();
        })
    };
    let lost = run(us(60), us(120));
    assert!(fires("RT-13", &lost));
    assert_eq!(check("RT-13", &lost)[0].confidence, Confidence::High);
    assert!(!fires("RT-13", &run(us(1), 0)));
    // `time.sleep(0.001)` in every layer was "CPU contention", with the advice to bind the thread to a core.
    assert!(!fires("RT-13", &run(us(1_090), us(60))), "a timer's");
}

#[test]
fn rt16_sees_a_second_python_thread_at_work_but_not_one_that_waits() {
    let run = |frame: &'static str, thread: i64| {
        Run::steps(12, move |r, _| {
            r.work(Category::PythonFrame, "model.py(7): forward", us(1));
            for _ in 0..10 {
                let start = r.host;
                r.think(us(30));
                r.script.host_on(thread, Category::PythonFrame, frame, (start, start + us(25)));
                r.launch(GEMM, us(5));
            }
            r.token();
        })
    };
    let busy = run("tokenizer.py(40): decode", 2);
    assert!(fires("RT-16", &busy));
    assert_eq!(check("RT-16", &busy)[0].confidence, Confidence::Low);
    let found = diagnosis(&busy).findings;
    // 25 of the 35 us from launch to launch.
    let gain = found.iter().find(|f| f.rule == "RT-16").expect("RT-16 survives the replay").estimate.mid_gain_share();
    assert!((0.55..0.75).contains(&gain), "{gain}");
    assert!(!fires("RT-16", &run("<built-in method acquire of _thread.lock object at 0x7f>", 2)));
    assert!(!fires("RT-16", &run("tokenizer.py(40): decode", 1)), "the launching thread itself");
}

#[test]
fn rt16_holds_up_no_thread_that_runs_no_python() {
    // A runtime in C++ launches; the Python thread that gave it the work waits or goes on.
    let native = Run::steps(12, |r, _| {
        for _ in 0..10 {
            let start = r.host;
            r.think(us(30));
            r.script.host_on(2, Category::PythonFrame, "train.py(9): dispatch", (start, start + us(25)));
            r.launch(GEMM, us(5));
        }
        r.token();
    });
    assert!(!fires("RT-16", &native));
}

#[test]
fn rt16_frees_the_ranks_whose_device_waits_for_others_too() {
    // Rank 1 loses as much to its interpreter, but its device has work enough to hide it.
    let run = |kernel: Ns| {
        Run::steps(12, move |r, _| {
            r.work(Category::PythonFrame, "model.py(7): forward", us(1));
            for _ in 0..10 {
                let start = r.host;
                r.think(us(30));
                r.script.host_on(2, Category::PythonFrame, "tokenizer.py(40): decode", (start, start + us(25)));
                r.launch(GEMM, kernel);
            }
            r.token();
        })
    };
    let (mut capture, (other, analysis)) = (run(us(5)), run(us(300)));
    let offset = u32::try_from(capture.0.lanes.len()).unwrap();
    let mut rank = analysis.ranks.into_iter().next().unwrap();
    (rank.rank, rank.process) = (1, model::ProcessId(1));
    let moved = |track: &mut model::TrackId| track.0 += offset;
    rank.timeline.threads.iter_mut().for_each(moved);
    rank.timeline.calls.iter_mut().for_each(|call| moved(&mut call.track));
    let names = &capture.0.strings;
    assert!(other.strings.iter().zip(names.iter()).all(|(a, b)| a == b), "the same texts have the same ids");
    capture.0.lanes.extend(other.lanes);
    capture.0.tracks.extend(other.tracks);
    capture.1.ranks.push(rank);
    let found = check("RT-16", &capture);
    let [lock] = found.as_slice() else { panic!("{} findings", found.len()) };
    assert_eq!(lock.ranks, [0, 1]);
    assert!(
        lock.changes.iter().all(|(_, change)| matches!(&change.edits[..], [Edit::Host(_, spans)] if !spans.is_empty()))
    );
}

#[test]
fn rt16_abstains_without_frames() {
    let plain = Run::steps(12, |r, _| {
        r.launch(GEMM, us(5)).token();
    });
    let d = super::super::testing::diagnosis(&plain);
    assert!(d.abstained.iter().any(|a| a.rule == "RT-16" && a.why.is_some()));
}

#[test]
fn rt17_weighs_the_waits_between_streams_against_the_overlap() {
    // After a long product the queues take turns; each turn waits `gap` for the other's event. `side` runs beside them.
    let run = |gap: Ns, side: Ns| {
        Run::steps(12, move |r, _| {
            r.launch(GEMM, us(400));
            let alone = r.device;
            if side > 0 {
                let call = (r.host, r.host + us(3));
                r.script.launch_on(9, call, GEMM, (alone - side, alone));
                r.host = call.1;
            }
            for i in 0..10 {
                r.script.call("cudaStreamWaitEvent", (r.host, r.host + us(1)));
                let call = (r.host + us(1), r.host + us(4));
                let start = r.device + gap;
                r.script.launch_on(7 + i % 2, call, GEMM, (start, start + us(20)));
                (r.host, r.device) = (call.1, start + us(20));
            }
            r.token();
        })
    };
    let serial = run(us(8), 0);
    assert!(fires("RT-17", &serial));
    assert!(matches!(&check("RT-17", &serial)[0].changes[0].1.edits[..], [Edit::Lag(ops), ..] if ops.len() >= 10));
    let found = diagnosis(&serial).findings;
    let replayed = found.iter().find(|f| f.rule == "RT-17").expect("RT-17 survives the replay");
    assert!(replayed.estimate.method == Method::Replay && replayed.estimate.mid_gain_share() > 0.05);
    assert!(!fires("RT-17", &run(us(8), us(300))), "the overlap is worth it");
    assert!(!fires("RT-17", &run(us(1), 0)), "below 3 %");
}

/// Pauses that each ended in a module load passed for garbage collection: what the host made then is what it loads.
#[test]
fn rt05_owns_the_silence_before_a_module_is_loaded() {
    let run = |load: bool| {
        Run::steps(30, move |r, i| {
            if [12, 21].contains(&i) {
                r.think(us(9_000));
                if load {
                    r.call("cuModuleLoadData", us(2_000));
                }
            }
            r.graph(&[(GEMM, us(50)); 10], us(1)).token();
        })
    };
    let (compiled, paused) = (run(true), run(false));
    assert!(fires("RT-05", &compiled) && !fires("RT-15", &compiled));
    assert!(!fires("RT-05", &paused) && fires("RT-15", &paused));
    let gain = |f: &crate::diagnose::Finding| f.estimate.from - f.estimate.to_low;
    let found = diagnosis(&compiled).findings;
    let first = found.iter().find(|f| f.rule == "RT-05").unwrap();
    // Two pauses of 11 ms over 28 steps.
    assert!((us(650)..=us(850)).contains(&gain(first)), "{}", gain(first));
}
