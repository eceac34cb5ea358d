#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Detail, KernelDetail, Provenance, TraceSink};

use super::{
    super::testing::{GEMM, NORM, Run, check, diagnosis, fires, us},
    operator_launch::WRITE,
    runtime::graph,
};
use crate::{
    analysis::Edit,
    diagnose::{Method, Over, VerdictLayer},
};

#[test]
fn rt02_blames_a_batch_off_the_grid_but_not_a_choice_of_the_moment() {
    // Batch 4 replays a graph; batch `other` runs eagerly in every third step.
    let mixed = |other: u32, every: usize| {
        Run::batches(36, move |r, i| {
            if i % every == 1 {
                for _ in 0..10 {
                    r.think(us(40)).launch(GEMM, us(20));
                }
                r.token();
                other
            } else {
                r.graph(&[(GEMM, us(20)); 10], us(1)).token();
                4
            }
        })
    };
    let below = mixed(3, 3);
    let found = check("RT-02", &below);
    assert!(fires("RT-02", &below));
    assert!(found[0].claim.text.en.contains("next captured batch"));
    assert!(
        matches!(&found[0].changes[0].1.edits[..], [Edit::Graph(groups)] if groups.len() == found[0].evidence[0].rows.len())
    );
    let above = mixed(8, 3);
    assert!(fires("RT-02", &above) && check("RT-02", &above)[0].claim.text.en.contains("above the largest"));
    assert!(!fires("RT-02", &mixed(4, 3)), "the same batch replays a graph too");
    assert!(!fires("RT-02", &mixed(3, 40)), "below 5 % of the steps");
    assert!(!fires("RT-02", &mixed(3, 1)), "nothing is replayed");
}

#[test]
fn rt02_promises_what_the_run_gains_and_not_what_its_eager_steps_do() {
    let off_grid = Run::batches(40, |r, i| {
        if i % 4 == 1 {
            for _ in 0..10 {
                r.think(us(40)).launch(GEMM, us(20));
            }
            r.token();
            3
        } else {
            r.graph(&[(GEMM, us(20)); 10], us(1)).token();
            4
        }
    });
    let steps: Vec<_> = off_grid.1.ranks[0].classes.iter().collect();
    let mean = steps.iter().map(|c| c.total).sum::<i64>() / steps.iter().map(|c| c.steady as i64).sum::<i64>();
    let found = diagnosis(&off_grid);
    for f in check("RT-02", &off_grid).iter().chain(found.findings.iter().filter(|f| f.rule == "RT-02")) {
        assert_eq!((f.over, f.estimate.from), (Over::Workload, mean));
        // An eager step takes some 240 us longer, and every fourth is one.
        let most = f.estimate.from - f.estimate.to_low;
        assert!((us(50)..=us(80)).contains(&most), "{most}");
    }
}

#[test]
fn rt06_takes_away_the_pass_that_is_captured_too() {
    let captures = graph(30, |r, i| {
        if [15, 22].contains(&i) {
            r.call("cudaStreamBeginCapture", us(2)).think(us(300)).call("cudaStreamEndCapture", us(2));
        }
    });
    let found = check("RT-06", &captures);
    let [Edit::Host(_, stretches)] = &found[0].changes[0].1.edits[..] else { panic!("{:?}", found[0].changes) };
    assert!(stretches.iter().all(|(span, ns)| span.len() == us(304) && *ns == 0), "{stretches:?}");
    assert_eq!(stretches.len(), 2);
}

#[test]
fn rt07_takes_a_launch_of_few_nodes_that_lasts_long_for_slow() {
    // Ten nodes, known to cost 15.6 us; the call takes `call` in which the device is idle or, if `ahead`, still at work.
    let run = |call: i64, ahead: bool| {
        Run::steps(20, move |r, _| {
            if ahead {
                r.launch(GEMM, us(300));
            }
            let start = r.host;
            let first = (start + call + us(2)).max(r.device + us(1));
            let nodes: Vec<(&str, (i64, i64))> =
                (0..10).map(|n| (GEMM, (first + n * us(51), first + n * us(51) + us(50)))).collect();
            r.script.graph((start, start + call), &nodes);
            (r.host, r.device) = (start + call, first + 10 * us(51) - us(1));
            r.token();
        })
    };
    let slow = run(us(200), false);
    assert!(fires("RT-07", &slow));
    let d = diagnosis(&slow);
    let estimate = d.findings.iter().find(|f| f.rule == "RT-07").unwrap().estimate;
    let (least, most) = (estimate.from - estimate.to_high, estimate.from - estimate.to_low);
    assert!(us(150) < least && least <= us(185) && us(190) <= most && most < us(210), "{least} {most}");
    assert!(!fires("RT-07", &run(us(30), false)), "as long as known");
    assert!(!fires("RT-07", &run(us(200), true)), "the device is not idle meanwhile");
}

#[test]
fn rt04_counts_padding_only_where_it_takes_time() {
    // Batch 4 and a batch of 5 whose graph was captured for 8, each product taking `padded` there.
    let run = |padded: i64| {
        Run::batches(40, move |r, i| {
            if i == 0 {
                r.script.builder.manifest("caps.graph_sizes", "1, 2, 4, 8", Provenance::Observed);
            }
            let (batch, ns) = if i % 2 == 0 { (4, us(20)) } else { (5, padded) };
            r.graph(&[(GEMM, ns); 20], us(1)).token();
            batch
        })
    };
    let wasteful = run(us(35));
    assert!(fires("RT-04", &wasteful));
    // (35 - 20) us x 20 kernels / 4 tokens x 3 tokens of padding, in every second step.
    let change = &check("RT-04", &wasteful)[0].changes[0].1;
    assert!((2 * change.removes - us(225)).abs() <= us(12), "{}", change.removes);
    assert!(matches!(&change.edits[..], [Edit::Resize(ops)] if ops.iter().all(|(_, ns)| *ns < us(35))));
    assert!(!fires("RT-04", &run(us(20))), "memory-bound: the padding is free");
}

/// Steps that replay one graph of `rows` for `tokens`, every fourth without padding, in 50 us a product and five more for
/// each row of padding. The engine counts each step before its range begins.
fn counted(tokens: f64, rows: f64) -> (model::Trace, crate::analysis::Analysis) {
    let count = move |r: &mut Run, i: usize| {
        let at = r.host - 1;
        let rows = if i.is_multiple_of(4) { tokens } else { rows };
        r.script.counter("num_scheduled_tokens", at, tokens).counter("num_padded_tokens", at, rows);
    };
    Run::steps(20, move |r, i| {
        if i == 0 {
            r.think(us(1));
            count(r, i);
        }
        let padding = if i.is_multiple_of(4) { 0.0 } else { rows - tokens };
        r.graph(&[(GEMM, us(50) + (padding * us(5) as f64) as i64); 10], us(1)).token();
        r.think(us(20));
        // The next step is scheduled within the stretch of time that belongs to this one's range; after the last there is none.
        if i < 19 {
            count(r, i + 1);
        }
    })
}

#[test]
fn rt04_reads_the_counters_that_were_in_force_when_the_step_was_launched() {
    let found = check("RT-04", &counted(4.0, 8.0));
    // Ten products take 20 us longer each, in three steps of four.
    let removes = found[0].changes[0].1.removes;
    assert!((us(145)..us(155)).contains(&removes), "{removes}");
    assert!(!fires("RT-04", &counted(4.0, 4.0)), "no padding");
}

#[test]
fn rt04_takes_the_engines_word_for_steps_without_a_graph_too() {
    let eager = |padded: f64| {
        Run::steps(24, move |r, i| {
            let now = r.host;
            let padded = if i % 3 == 0 { 4.0 } else { padded };
            r.script.counter("num_scheduled_tokens", now, 4.0).counter("num_padded_tokens", now, padded);
            let ns = us(200) + (padded - 4.0) as i64 * us(20);
            r.launch(GEMM, ns).launch(GEMM, ns).token();
        })
    };
    let found = check("RT-04", &eager(8.0));
    assert!(found[0].claim.text.en.contains("compute "), "{}", found[0].claim.text.en);
    assert!(!fires("RT-04", &eager(4.0)));
}

#[test]
fn rt04_reads_the_rows_of_the_graph_if_a_batch_without_padding_calibrates_them() {
    let run = |rows: [u32; 2], written: Option<u32>| {
        Run::batches(40, move |r, i| {
            let (batch, ns) = if i % 2 == 0 { (4, us(200)) } else { (5, us(350)) };
            let call = (r.host, r.host + us(5));
            let id = r.script.issue("cudaGraphLaunch", call);
            let at = call.1 + us(2);
            let node = |n, blocks| {
                let grid = Some([blocks, 1, 1]);
                Some(Detail::Kernel(KernelDetail { grid, graph_node: Some(n), ..KernelDetail::default() }))
            };
            r.script.kernel(7, NORM, (at, at + us(3)), Some(id), node(0, rows[i % 2]));
            if let Some(written) = written {
                r.script.kernel(7, WRITE, (at + us(3), at + us(4)), Some(id), node(2, written));
            }
            r.script.kernel(7, GEMM, (at + us(5), at + us(5) + ns), Some(id), node(1, rows[i % 2]));
            (r.host, r.device) = (call.1, at + us(5) + ns);
            r.token();
            batch
        })
    };
    assert!(fires("RT-04", &run([4, 8], None)));
    assert!(!fires("RT-04", &run([4, 5], None)), "no padding");
    let why = |written: Option<u32>| {
        let abstained = diagnosis(&run([8, 8], written)).abstained.into_iter().find(|a| a.rule == "RT-04").unwrap();
        abstained.why.unwrap().text.en
    };
    assert!(why(None).contains("nothing says"), "nothing shows what a row is");
    assert!(why(Some(8)).contains("same number of rows"), "a cache write has a block per token too");
    assert!(why(Some(40)).contains("nothing says"), "something else has more blocks");
}

#[test]
fn rt06_takes_graph_construction_and_rt05_the_rest() {
    let calls = |api: &'static str, at: &'static [usize]| {
        graph(30, move |r, i| {
            if at.contains(&i) {
                r.call(api, us(400));
            }
        })
    };
    let captures = graph(30, |r, i| {
        if [15, 22].contains(&i) {
            r.call("cudaStreamBeginCapture", us(2)).think(us(300)).call("cudaStreamEndCapture", us(2));
        }
    });
    for capture in [&calls("cudaGraphInstantiate", &[15, 22]), &calls("cudaGraphExecUpdate", &[15, 22]), &captures] {
        assert!(fires("RT-06", capture));
        assert!(!fires("RT-05", capture));
    }
    assert!(!fires("RT-06", &calls("cudaGraphInstantiate", &[15])), "a batch met for the first time");
    assert!(!fires("RT-06", &calls("cudaGraphExecKernelNodeSetParams", &[15, 22])), "parameters of one node");
    assert!(!fires("RT-06", &calls("cuModuleLoadData", &[15, 22])));
}

#[test]
fn rt06_takes_the_whole_of_a_capture_away_and_a_run_that_stops_for_some_is_no_start_up() {
    let capture = graph(30, |r, i| {
        if i > 8 && i % 7 == 3 {
            r.call("cudaStreamBeginCapture", us(2)).think(us(6000)).call("cudaStreamEndCapture", us(2));
        }
    });
    let d = diagnosis(&capture);
    let first = &d.findings[0];
    assert_eq!((first.rule, d.verdict.layer), ("RT-06", VerdictLayer::Runtime));
    // Four captures in some 28 steps of half a millisecond: most of the time.
    assert!(first.estimate.mid_gain_share() > 0.5, "{:?}", first.estimate);
    assert!(!d.findings.iter().any(|f| f.rule == "RT-12"), "to schedule ahead hides no capture");
}
