//! The replay reproduces simulated runs, and what it promises of a change is what the run without the fault shows.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use model::Trace;
use simulator::{Config, Run, config::Annotation, simulate};
use stratoscope::analysis::replay::Replay;

fn read_back(run: &Run) -> Trace {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.json");
    run.write_kineto(&path).unwrap();
    common::read(&path)
}

#[test]
fn the_unedited_replay_reproduces_every_run() {
    for seed in 0..60 {
        let trace = read_back(&simulate(&Config::draw(seed)));
        let analysis = common::analyze(&trace);
        let replay = Replay::new(&analysis);
        for (rank, windows) in analysis.ranks.iter().zip(replay.unedited()) {
            let Some(class) = rank.main_class().filter(|c| c.steady > 0) else { continue };
            let check = Replay::check(rank, class, &windows);
            assert!(check.passed(), "seed {seed}: {check:?}");
            if seed < 10 {
                println!("{seed} {check:?}");
            }
        }
    }
    let _ = Annotation::None;
}
