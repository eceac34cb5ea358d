//! What must not change in the verdict when a capture is changed in a way that means nothing, or says less. The invariants
//! of single steps are in `metamorphic.rs`, which lists them all.

use crate::common;
use crate::common::{Event, analyze, edited, essence, found_in};
use diagnosis::{analysis::Analysis, diagnose::VerdictLayer};
use model::{Category, ProcessId, Trace, TrackKind};
use simulator::{Config, Fault, FaultKind, simulate};

/// Faults of each layer that the traces of one rank show.
const FAULTS: [FaultKind; 5] =
    [FaultKind::GraphOff, FaultKind::LayerSync, FaultKind::Unfused, FaultKind::FullSort, FaultKind::PageableCopy];
const SEEDS: u64 = 2;

/// Runs with one fault each, read back through the parser.
fn faulty() -> Vec<(String, Trace)> {
    let dir = tempfile::tempdir().unwrap();
    let runs = FAULTS.into_iter().flat_map(|kind| (0..SEEDS).map(move |seed| (kind, seed)));
    let read = |(kind, seed): (FaultKind, u64)| {
        let path = dir.path().join(format!("{kind:?}-{seed}.json"));
        let config = Config::draw_with(seed, &[Fault { kind, magnitude_permille: 1000 }]);
        simulate(&Config { graph_level_trace: false, ..config }).write_kineto(&path).unwrap();
        (format!("{kind:?} seed {seed}"), common::read(&path))
    };
    runs.map(read).collect()
}

/// Whether a verdict blames no layer.
fn abstains(layer: VerdictLayer) -> bool {
    matches!(layer, VerdictLayer::Undecided | VerdictLayer::None)
}

#[test]
fn less_evidence_never_blames_another_layer() {
    for (name, trace) in faulty() {
        let full = found_in(&trace).verdict.layer;
        if abstains(full) {
            continue;
        }
        let host = |e: Event| if e.track.kind == TrackKind::HostThread { vec![] } else { vec![e] };
        let correlation = |e: Event| vec![Event { correlation: None, ..e }];
        for (what, poorer) in [("host", edited(&trace, host)), ("correlation", edited(&trace, correlation))] {
            let verdict = found_in(&poorer).verdict;
            assert!(verdict.layer == full || abstains(verdict.layer), "{name} without {what}: {verdict:?}");
        }
    }
}

#[test]
fn a_process_that_has_nothing_to_do_with_the_run_changes_nothing() {
    for (name, trace) in faulty() {
        let stranger = ProcessId(u32::try_from(trace.processes.len()).unwrap());
        let with = edited(&trace, |e| {
            let mut out = vec![e.clone()];
            if e.category == Category::FrameworkOp {
                let mut track = e.track;
                track.process = stranger;
                out.push(Event { track, correlation: None, ..e });
            }
            out
        });
        assert_eq!(essence(&analyze(&with)), essence(&analyze(&trace)), "{name}");
        let (before, after) = (found_in(&trace).verdict, found_in(&with).verdict);
        assert_eq!((after.layer, after.because), (before.layer, before.because), "{name}");
    }
}

#[test]
fn a_run_recorded_twice_in_a_row_has_the_same_step() {
    for (name, trace) in faulty() {
        let ends = trace.lanes.iter().flat_map(|lane| (0..lane.len()).map(|i| lane.end(i)));
        let span = ends.max().unwrap();
        let mut twice = edited(&trace, |e| {
            let again = e.correlation.map(|id| id + (1 << 40));
            vec![e.clone(), Event { start: e.start + span, correlation: again, ..e }]
        });
        for counter in &mut twice.counters {
            counter.t.extend_from_within(..);
            counter.value.extend_from_within(..);
            let once = counter.t.len() / 2;
            counter.t.iter_mut().skip(once).for_each(|t| *t += span);
        }
        let (once, twice) = (analyze(&trace), analyze(&twice));
        let main = |a: &Analysis| {
            let rank = a.ranks.first().unwrap();
            let class = rank.main_class().unwrap();
            (rank.steps.len(), class.key.clone(), class.p50)
        };
        let ((n, key, p50), (twice_n, twice_key, twice_p50)) = (main(&once), main(&twice));
        assert_eq!((twice_n, twice_key), (2 * n, key), "{name}");
        assert!((twice_p50 - p50).abs() * 100 <= p50, "{name}: {p50} and {twice_p50} ns");
    }
}

#[test]
fn no_replayed_gain_beats_what_the_change_takes_away() {
    let mut replayed = 0;
    for (name, trace) in faulty() {
        for finding in found_in(&trace).findings {
            let Some(limits) = finding.limits else { continue };
            replayed += 1;
            let least = limits.amdahl.min(limits.overlap);
            assert!(finding.estimate.to_low >= least, "{name}: {} {:?} {limits:?}", finding.rule, finding.estimate);
        }
    }
    assert!(replayed > 0);
}
