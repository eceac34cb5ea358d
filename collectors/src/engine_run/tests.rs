//! Captures of small runs, operator by operator.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use engine::{Synthetic, preset, run::RunOptions};
use model::TraceBuilder;

use super::*;

fn trace(mode: Mode) -> (model::Trace, usize) {
    let options = RunOptions { prompt: 4, steps: 3, threads: 2, mode, ..RunOptions::default() };
    let mut log = Log::with_capacity(4096, 2);
    let mut engine = Engine::new(preset("tiny").unwrap(), &mut Synthetic, options, &mut log).unwrap();
    engine.run(&mut log, |_| true).unwrap();
    let mut builder = TraceBuilder::new("run", "strato");
    let facts = Facts {
        model: Model { name: "tiny", weights_seed: Some(0) },
        ranks: "threads",
        host: &Host::read(),
        telemetry: None,
        cupti: Cupti::NotAsked,
    };
    collect(&engine, &log, facts, &mut builder);
    (builder.finish(), engine.programs()[1].ops.len())
}

#[test]
fn every_operator_is_a_kernel_with_the_call_that_started_it() {
    for mode in [Mode::Eager, Mode::Graph] {
        let (trace, ops) = trace(mode);
        let queue = trace.tracks.iter().position(|track| track.key.kind == TrackKind::DeviceQueue).unwrap();
        let lane = &trace.lanes[queue];
        assert_eq!(lane.len(), 4 * ops, "{mode:?}");
        assert!((0..lane.len()).all(|i| lane.link(i).is_some()), "{mode:?}");
        assert!(lane.depth.iter().all(|depth| *depth == 0), "kernels do not overlap");
        let is_worker =
            |key: &TrackKey| key.kind == TrackKind::DeviceAnnotation && key.context.is_some_and(|number| number >= 0);
        let workers: Vec<_> = (0..trace.tracks.len())
            .filter(|track| is_worker(&trace.tracks[*track].key))
            .map(|track| &trace.lanes[track])
            .collect();
        assert_eq!(workers.len(), 2);
        for i in 0..lane.len() {
            let start = workers.iter().map(|worker| worker.start[i]).max();
            let end = workers.iter().map(|worker| worker.end(i)).max();
            assert_eq!((start, end), (Some(lane.start[i]), Some(lane.end(i))), "{mode:?} operator {i}");
        }
        let counted = |name: &str| -> &[f64] {
            &trace.counters.iter().find(|c| trace.strings.get(c.name) == name).unwrap().value
        };
        assert!(counted("worker_wait").len() == 4 && counted("worker_wait").iter().all(|wait| *wait >= 0.0));
        assert_eq!(counted("num_scheduled_tokens"), [4.0, 1.0, 1.0, 1.0]);
        assert_eq!(counted("num_padded_tokens"), [4.0, 1.0, 1.0, 1.0]);
        assert_eq!(counted("num_requests_waiting"), [0.0; 4]);
        // What the record costs is the profiler's, and not the host's.
        let host = trace.tracks.iter().position(|track| track.key.kind == TrackKind::HostThread).unwrap();
        let host = &trace.lanes[host];
        let own = (0..host.len()).filter(|i| host.category[*i] == Category::Overhead);
        assert_eq!(own.map(|i| trace.strings.get(host.name[i])).collect::<Vec<_>>(), ["strato_record"; 4]);
        let name = trace.strings.get(lane.name[lane.len() - 1]);
        assert!(name.starts_with("strato_argmax_bf16_"), "{name}");
        assert_eq!(
            trace.manifest.value("software.graph_mode"),
            Some(if mode == Mode::Graph { "full graph" } else { "eager" })
        );
    }
}

#[test]
fn every_replayed_operator_is_told_with_its_shapes() {
    let (trace, ops) = trace(Mode::Graph);
    let queue = trace.tracks.iter().find(|track| track.key.kind == TrackKind::DeviceQueue).unwrap().key;
    let beside = trace.tracks.iter().position(|track| track.key == Beside::Operators.key(queue)).unwrap();
    let lane = &trace.lanes[beside];
    // The prompt is launched operator by operator.
    assert_eq!(lane.len(), 3 * ops);
    let down = (0..lane.len()).find(|i| trace.strings.get(lane.name[*i]) == "down_proj").unwrap();
    let Some(Detail::Op(op)) = trace.detail(lane, down) else { panic!("no shapes") };
    assert!(op.shapes.is_some_and(|shapes| trace.strings.get(shapes).starts_with("[[1, ")));
    assert!(trace.manifest.value(Beside::MATCH).is_some());
}

#[test]
fn a_run_that_ended_early_says_so() {
    let options = RunOptions { prompt: 4, steps: 9, threads: 1, ..RunOptions::default() };
    let mut log = Log::with_capacity(4096, 1);
    let mut engine = Engine::new(preset("tiny").unwrap(), &mut Synthetic, options, &mut log).unwrap();
    engine.run(&mut log, |step| step.number < 2).unwrap();
    let mut builder = TraceBuilder::new("run", "strato");
    let host = Host::read();
    let facts = Facts {
        model: Model { name: "tiny", weights_seed: Some(0) },
        ranks: "threads",
        host: &host,
        telemetry: None,
        cupti: Cupti::NotAsked,
    };
    collect(&engine, &log, facts, &mut builder);
    let manifest = builder.finish().manifest;
    assert_eq!(
        (manifest.value("workload.output_len"), manifest.value("workload.stop_rule")),
        (Some("2"), Some("time"))
    );
}
