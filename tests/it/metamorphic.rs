//! What must not change when a capture is changed in a way that means nothing.
//!
//! | invariant | test |
//! | --- | --- |
//! | buckets add up to the window | `analysis::tests::buckets_add_up_to_the_window_whatever_the_trace`, `corpus_sums` |
//! | times shifted | [`shifting_all_times_of_a_rank_changes_nothing`] |
//! | work hidden under compute added | [`a_copy_hidden_under_compute_changes_only_the_shadow`] |
//! | a kernel cut in two | [`cutting_a_kernel_in_two_abutting_halves_changes_nothing_at_class_level`] |
//! | streams renamed | [`renaming_streams_changes_nothing`] |
//! | host events taken away | [`taking_host_events_away_never_moves_time_to_another_layer`] |
//! | the replay of no edit | `replay::the_unedited_replay_reproduces_every_run` |
//! | no gain above Amdahl's bound | `metamorphic_diagnosis::no_replayed_gain_beats_what_the_change_takes_away` |
//! | waits are explained | `metamorphic_capture::waits_are_explained_to_two_nanoseconds` |
//! | a kernel before its launch is an alarm | `analysis::tests::a_kernel_that_starts_before_its_launch_is_an_alarm_not_a_negative_gap` |
//! | less evidence | `metamorphic_diagnosis::less_evidence_never_blames_another_layer` |
//! | the capture repeated | `metamorphic_diagnosis::a_run_recorded_twice_in_a_row_has_the_same_step` |
//! | a process that has nothing to do with it | `metamorphic_diagnosis::a_process_that_has_nothing_to_do_with_the_run_changes_nothing` |
//! | another vendor's names | `metamorphic_capture::the_names_of_another_vendor_leave_the_verdict_as_it_is` |
//! | another format | `metamorphic_capture::two_formats_of_one_run_have_the_same_layers` |
//! | ranks in another order | `metamorphic_capture::the_order_in_which_ranks_are_read_changes_nothing` |
//! | identical ranks | `metamorphic_capture::identical_ranks_change_nothing` |

use crate::common;
use crate::common::{Event, analyze, edited, essence};
use diagnosis::analysis::Layer;
use model::{Category, CopyDetail, Detail, Ns, Trace, TrackKind};
use simulator::{Config, simulate};

/// Simulated captures of several kinds, read back through the parser.
fn captures() -> Vec<(u64, Trace)> {
    let dir = tempfile::tempdir().unwrap();
    (0..12)
        .map(|seed| {
            let path = dir.path().join(format!("{seed}.json"));
            simulate(&Config::draw(seed)).write_kineto(&path).unwrap();
            (seed, common::read(&path))
        })
        .collect()
}

fn same(event: Event) -> Vec<Event> {
    vec![event]
}

#[test]
fn an_edit_that_does_nothing_changes_nothing() {
    for (seed, trace) in captures() {
        assert_eq!(essence(&analyze(&edited(&trace, same))), essence(&analyze(&trace)), "seed {seed}");
    }
}

#[test]
fn shifting_all_times_of_a_rank_changes_nothing() {
    for (seed, trace) in captures() {
        let shift = 1_234_567_891;
        let mut shifted = edited(&trace, |e| vec![Event { start: e.start + shift, ..e }]);
        shifted.counters.iter_mut().flat_map(|counter| &mut counter.t).for_each(|t| *t += shift);
        assert_eq!(essence(&analyze(&shifted)), essence(&analyze(&trace)), "seed {seed}");
    }
}

#[test]
fn renaming_streams_changes_nothing() {
    for (seed, trace) in captures() {
        let renamed = edited(&trace, |mut e| {
            if e.track.kind != TrackKind::HostThread {
                e.track.id = 1_000 - 7 * e.track.id;
            }
            vec![e]
        });
        assert_eq!(essence(&analyze(&renamed)), essence(&analyze(&trace)), "seed {seed}");
    }
}

#[test]
fn a_copy_hidden_under_compute_changes_only_the_shadow() {
    for (seed, trace) in captures() {
        let mut added = 0;
        let with = edited(&trace, |e| {
            let mut out = vec![e.clone()];
            if e.category == Category::Kernel && e.dur > 1_000 && !e.name.contains("nccl") {
                let mut track = e.track;
                track.id += 5_000;
                let detail = Some(Detail::Copy(CopyDetail::default()));
                let (start, dur, category) = (e.start + e.dur / 4, e.dur / 2, Category::Memcpy);
                out.push(Event { track, start, dur, category, name: "Memcpy".into(), detail, ..e });
                added += dur;
            }
            out
        });
        assert!(added > 0);
        let (a, b) = (analyze(&trace), analyze(&with));
        assert_eq!(essence(&b), essence(&a), "seed {seed}");
        let shadow = |a: &diagnosis::analysis::Analysis| -> Ns {
            a.ranks.iter().flat_map(|r| &r.steps).flat_map(|s| &s.shadow).map(|(_, ns)| ns).sum()
        };
        assert!(shadow(&b) > shadow(&a), "seed {seed}");
    }
}

#[test]
fn cutting_a_kernel_in_two_abutting_halves_changes_nothing_at_class_level() {
    for (seed, trace) in captures() {
        let cut = edited(&trace, |e| {
            // A collective in two halves would be two collectives.
            if e.category != Category::Kernel || e.dur < 2 || e.name.contains("nccl") {
                return vec![e];
            }
            let first = Event { dur: e.dur / 2, ..e.clone() };
            vec![first, Event { start: e.start + e.dur / 2, dur: e.dur - e.dur / 2, ..e }]
        });
        // The number of operations is part of the class key of unannotated steps; buckets and windows must not change.
        let buckets = |t: &Trace| -> Vec<_> {
            essence(&analyze(t)).into_iter().flatten().map(|step| (step.window, step.buckets)).collect()
        };
        assert_eq!(buckets(&cut), buckets(&trace), "seed {seed}");
    }
}

#[test]
fn taking_host_events_away_never_moves_time_to_another_layer() {
    for (seed, trace) in captures() {
        let all = analyze(&trace);
        let silent = |c: Category| {
            matches!(
                c,
                Category::FrameworkOp | Category::PythonFrame | Category::Overhead | Category::Gc | Category::HostOther
            )
        };
        let poorer = analyze(&edited(&trace, |e| if silent(e.category) { vec![] } else { vec![e] }));
        for (rank, poor) in all.ranks.iter().zip(&poorer.ranks) {
            assert_eq!(rank.steps.len(), poor.steps.len(), "seed {seed}");
            for (full, left) in rank.steps.iter().zip(&poor.steps) {
                let sum = |s: &diagnosis::analysis::Step, l: Layer| -> Ns {
                    s.buckets.iter().filter(|(b, _)| b.layer() == l).map(|(_, ns)| ns).sum()
                };
                for layer in [Layer::Operator, Layer::Communication] {
                    assert_eq!(sum(full, layer), sum(left, layer), "seed {seed} step {}", full.index);
                }
            }
        }
        // Without any host event the device's own time is still the same, and what was idle is undecided.
        let deaf = analyze(&edited(&trace, |e| if e.track.kind == TrackKind::HostThread { vec![] } else { vec![e] }));
        for (rank, left) in all.ranks.iter().zip(&deaf.ranks) {
            let busy = |r: &diagnosis::analysis::Rank| -> Ns { r.exclusive.iter().map(|e| e.busy).sum() };
            assert!((busy(rank) - busy(left)).abs() <= rank.exclusive.len() as Ns, "seed {seed}");
            let idle = left.steps.iter().flat_map(|s| &s.buckets).filter(|(b, _)| b.is_idle());
            assert!(idle.into_iter().all(|(b, _)| b.layer() == Layer::Measurement), "seed {seed}");
        }
    }
}
