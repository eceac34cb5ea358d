#![allow(clippy::unwrap_used, clippy::expect_used)]

use model::{Category, Ns, Trace};

use super::{
    Analysis, AnchorKind, GraphMode, Selection,
    script::{Script, named},
};
use crate::platform::Stage;

const GEMM: &str = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64";
const NORM: &str = "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*, c10::BFloat16 const*)";
const ARGMAX: &str = "void at::native::reduce_kernel<512, 1, at::native::ArgMaxOps<float>>";

fn buckets(analysis: &Analysis, step: usize) -> Vec<(String, Ns)> {
    named(analysis, &analysis.ranks[0].steps[step].buckets)
}

fn expect(analysis: &Analysis, step: usize, mut wanted: Vec<(&str, Ns)>) {
    let mut got = buckets(analysis, step);
    got.sort();
    wanted.sort();
    let got: Vec<(&str, Ns)> = got.iter().map(|(n, ns)| (n.as_str(), *ns)).collect();
    assert_eq!(got, wanted);
    let window = analysis.ranks[0].steps[step].window.len();
    assert_eq!(got.iter().map(|(_, ns)| ns).sum::<Ns>(), window);
}

#[test]
fn a_gap_is_split_by_the_launch_of_the_operation_that_ends_it() {
    let mut s = Script::default();
    s.launch((0, 10), GEMM, (20, 120));
    // Host works on an operator from 100, launches from 150 to 160, the kernel starts at 165.
    s.host(Category::FrameworkOp, "aten::mm", (100, 170));
    s.launch((150, 160), NORM, (165, 200));
    let (_, a) = s.analyze();
    let wanted = vec![
        ("compute.gemm", 100),
        ("compute.norm", 35),
        ("rt.host.framework", 30),
        ("rt.launch_api", 10),
        ("rt.launch_latency", 5),
    ];
    expect(&a, 0, wanted);
    assert_eq!(a.ranks[0].anchor.kind, AnchorKind::WholeCapture);
}

#[test]
fn steps_of_other_rows_are_another_class_where_no_annotation_says_what_they_work_on() {
    const WRITE: &str = "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16>";
    let keys = |prompt: u32| {
        let mut s = Script::default();
        for i in 0..20 {
            let (at, blocks) = (i * 1_000_000, if i % 5 == 4 { prompt } else { 8 });
            for (k, name) in [NORM, WRITE, GEMM].into_iter().enumerate() {
                let start = at + k as Ns * 50_000;
                s.launch_blocks((start, start + 5_000), name, (start + 10_000, start + 40_000), blocks);
            }
            s.launch((at + 150_000, at + 155_000), ARGMAX, (at + 160_000, at + 170_000));
        }
        let (_, a) = s.analyze();
        let keys: Vec<(String, usize)> = a.ranks[0].classes.iter().map(|c| (c.key.clone(), c.count)).collect();
        keys
    };
    assert_eq!(keys(8), [("step graph=eager".to_owned(), 20)]);
    assert_eq!(keys(9), [("step graph=eager".to_owned(), 20)], "hardly more");
    assert_eq!(keys(2_048), [("step rows≈8 graph=eager".to_owned(), 16), ("step rows≈2048 graph=eager".to_owned(), 4)],);
}

#[test]
fn work_queued_long_before_the_device_drained_waits_for_dispatch_not_for_the_host() {
    let mut s = Script::default();
    s.launch((0, 10), GEMM, (20, 100_000));
    s.launch((20, 30), GEMM, (101_000, 200_000));
    let (_, a) = s.analyze();
    expect(&a, 0, vec![("compute.gemm", 99_980 + 99_000), ("rt.dispatch", 1_000)]);
}

#[test]
fn gaps_between_nodes_of_a_replay_are_the_graphs_and_the_one_before_it_is_not() {
    let mut s = Script::default();
    s.launch((0, 10), NORM, (20, 50_000));
    s.graph((100, 200), &[(GEMM, (51_000, 60_000)), (NORM, (60_700, 61_000)), (GEMM, (61_500, 70_000))]);
    let (_, a) = s.analyze();
    let wanted = vec![
        ("compute.gemm", 9_000 + 8_500),
        ("compute.norm", 49_980 + 300),
        ("rt.dispatch", 1_000),
        ("rt.graph_internal", 700 + 500),
    ];
    expect(&a, 0, wanted);
}

#[test]
fn the_first_operation_of_a_capture_does_not_calibrate_the_launch_latency() {
    let mut s = Script::default();
    s.launch((0, 10), NORM, (8_000_000, 8_000_100));
    s.launch((20, 30), GEMM, (8_010_000, 8_020_000));
    let (_, a) = s.analyze();
    expect(&a, 0, vec![("compute.gemm", 10_000), ("compute.norm", 100), ("rt.dispatch", 9_900)]);
}

#[test]
fn only_the_tail_of_a_synchronisation_is_charged_to_it() {
    let mut s = Script::default();
    s.launch((0, 10), GEMM, (20, 1_000));
    s.call("cudaStreamSynchronize", (30, 1_060));
    s.host(Category::PythonFrame, "model.py(10): schedule", (1_060, 1_200));
    s.launch((1_200, 1_210), GEMM, (1_230, 2_000));
    let (_, a) = s.analyze();
    let gap = &a.ranks[0].gaps[0];
    assert!(gap.after_sync);
    let names = named(&a, &a.ranks[0].steps[0].buckets);
    let of = |name: &str| names.iter().filter(|(n, _)| n == name).map(|(_, ns)| *ns).sum::<Ns>();
    assert_eq!((of("rt.sync_tail"), of("rt.launch_api"), of("rt.launch_latency")), (60, 10, 20));
    let host: Ns = names.iter().filter(|(n, _)| n.starts_with("rt.host.")).map(|(_, ns)| *ns).sum();
    assert_eq!(host, 140);
}

#[test]
fn a_synchronisation_of_an_idle_device_is_pure_cost() {
    let mut s = Script::default();
    s.launch((0, 10), GEMM, (20, 1_000));
    s.call("cudaDeviceSynchronize", (1_100, 1_150));
    s.launch((1_200, 1_210), GEMM, (1_210, 2_000));
    let (_, a) = s.analyze();
    let wanted =
        vec![("compute.gemm", 980 + 790), ("rt.host.unknown", 100 + 50), ("rt.launch_api", 10), ("rt.sync_idle", 50)];
    expect(&a, 0, wanted);
}

#[test]
fn stronger_host_states_win_over_the_call_around_them() {
    let mut s = Script::default();
    s.launch((0, 10), GEMM, (20, 1_000));
    s.host(Category::FrameworkOp, "aten::empty", (1_000, 1_400));
    s.call("cudaMalloc", (1_050, 1_250));
    s.host(Category::Overhead, "Buffer Flush", (1_100, 1_150));
    s.host(Category::Gc, "gc.collect", (1_300, 1_350));
    s.launch((1_400, 1_410), GEMM, (1_410, 2_000));
    let (_, a) = s.analyze();
    let wanted = vec![
        ("compute.gemm", 980 + 590),
        ("prof", 50),
        ("rt.alloc", 150),
        ("rt.host.framework", 150),
        ("rt.host.gc", 50),
        ("rt.launch_api", 10),
    ];
    expect(&a, 0, wanted);
}

#[test]
fn concurrent_kernels_share_the_time_and_copies_under_compute_are_hidden() {
    let mut s = Script::default();
    s.launch_on(7, (0, 1), GEMM, (100, 201));
    s.launch_on(9, (1, 2), NORM, (100, 201));
    s.copy("cudaMemcpyAsync", (2, 3), "HtoD", "pinned", 64, (150, 221));
    let (_, a) = s.analyze();
    expect(&a, 0, vec![("compute.gemm", 51), ("compute.norm", 50), ("copy.h2d", 20)]);
    let shadow = &a.ranks[0].steps[0].shadow;
    assert!(shadow.contains(&(super::Shadow::ComputeCopy, 51)), "{shadow:?}");
    assert!(shadow.contains(&(super::Shadow::ComputeCompute, 101)), "{shadow:?}");
}

/// A kernel that is launched early (programmatic dependent launch) waits inside itself for the one before it on its stream, and was
/// told to be as much longer.
#[test]
fn of_two_kernels_of_one_queue_the_time_is_the_earlier_ones() {
    let mut s = Script::default();
    s.launch((0, 1), GEMM, (100, 201));
    s.launch((1, 2), NORM, (151, 251));
    let (_, a) = s.analyze();
    expect(&a, 0, vec![("compute.gemm", 101), ("compute.norm", 50)]);
}

#[test]
fn work_without_a_launch_leaves_its_gap_unattributed_and_without_host_calls_undecided() {
    let mut s = Script::default();
    s.launch((0, 10), GEMM, (20, 100));
    s.kernel(7, GEMM, (150, 200), None, None);
    let (_, a) = s.analyze();
    expect(&a, 0, vec![("compute.gemm", 130), ("unattributed", 50)]);
    assert_eq!(a.integrity.unlinked, 1);

    let mut s = Script::default();
    s.kernel(7, GEMM, (20, 100), None, None);
    s.kernel(7, GEMM, (150, 200), None, None);
    let (_, a) = s.analyze();
    expect(&a, 0, vec![("compute.gemm", 130), ("idle.undecided", 50)]);
}

#[test]
fn a_kernel_that_starts_before_its_launch_is_an_alarm_not_a_negative_gap() {
    let mut s = Script::default();
    s.launch((0, 10), GEMM, (20, 100));
    s.launch((180, 190), GEMM, (150, 200));
    let (_, a) = s.analyze();
    expect(&a, 0, vec![("compute.gemm", 130), ("unattributed", 50)]);
    assert_eq!(a.integrity.before_launch, 1);
}

#[test]
fn an_opaque_replay_is_measured_but_not_decided() {
    let mut s = Script::default();
    s.replay((0, 10), (20, 120));
    let (_, a) = s.analyze();
    expect(&a, 0, vec![("graph.opaque", 100)]);
    assert_eq!(a.ranks[0].classes[0].graph, GraphMode::Full);
}

#[test]
fn what_the_first_operation_of_a_queue_waited_for_may_not_have_been_recorded() {
    let mut s = Script::default();
    s.launch_on(2, (0, 5), NORM, (10, 20));
    s.launch_on(3, (30, 35), GEMM, (493_000_000, 493_001_000));
    s.launch_on(3, (40, 45), GEMM, (493_001_500, 493_002_000));
    let (_, a) = s.analyze();
    let named = buckets(&a, 0);
    let of = |name: &str| named.iter().filter(|(n, _)| n == name).map(|(_, ns)| *ns).sum::<Ns>();
    assert_eq!((of("unattributed"), of("rt.launch_latency"), of("rt.dispatch")), (493_000_000 - 35, 0, 500));
}

#[test]
fn host_time_inside_a_graph_capture_is_compilation() {
    let mut s = Script::default();
    s.launch((0, 10), NORM, (20, 100));
    s.call("cudaStreamBeginCapture", (200, 210));
    s.host(Category::PythonFrame, "model.py(1): forward", (220, 800));
    s.call("cudaStreamEndCapture", (900, 910));
    s.launch((1_000, 1_010), NORM, (1_020, 1_100));
    let (_, a) = s.analyze();
    let named = buckets(&a, 0);
    assert!(named.contains(&("rt.compile".to_owned(), 710)), "{named:?}");
}

#[test]
fn making_nodes_inside_a_graph_capture_does_not_end_it() {
    let mut s = Script::default();
    s.launch((0, 10), NORM, (20, 100));
    s.call("cudaStreamBeginCapture", (200, 210)).call("cudaGraphAddKernelNode", (300, 310));
    s.call("cudaStreamEndCapture", (900, 910));
    s.launch((1_000, 1_010), NORM, (1_020, 1_100));
    let (_, a) = s.analyze();
    assert!(buckets(&a, 0).contains(&("rt.compile".to_owned(), 710)), "{:?}", buckets(&a, 0));
    assert_eq!(a.ranks[0].classes[0].key, "capture graph=capturing");
}

#[test]
fn a_frame_around_everything_names_nothing_inside() {
    let named = |frame: (Ns, Ns)| {
        let mut s = Script::default();
        s.host(Category::PythonFrame, "vllm/v1/core/sched/scheduler.py(9): schedule", frame);
        s.host(Category::FrameworkOp, "aten::linear", (150, 190));
        s.launch((10, 20), NORM, (30, 100)).launch((200, 210), NORM, (220, 300));
        buckets(&s.analyze().1, 0)
    };
    let has = |named: &[(String, Ns)], name: &str| named.iter().any(|(n, _)| n == name);
    let (around, inside) = (named((0, 400)), named((120, 195)));
    assert!(has(&around, "rt.host.framework") && !has(&around, "rt.host.scheduler"), "{around:?}");
    assert!(has(&inside, "rt.host.scheduler") && !has(&inside, "rt.host.framework"), "{inside:?}");
}

#[test]
fn the_direction_of_a_copy_is_what_its_call_asked_for() {
    let mut s = Script::default();
    s.launch((0, 10), NORM, (20, 100));
    let id = s.asked("hipMemcpyWithStream", (110, 200), "DtoH");
    s.copied("DtoD", (120, 180), id);
    expect(
        &s.analyze().1,
        0,
        vec![("compute.norm", 80), ("copy.d2h", 60), ("rt.host.unknown", 10), ("rt.launch_api", 10)],
    );
}

#[test]
fn of_nested_annotations_the_inner_one_is_the_step() {
    let mut s = Script::default();
    for i in 0..4 {
        let t = i * 10_000;
        s.host(Category::UserRange, "execute_context_0(0)_generation_4(4)", (t, t + 9_000));
        s.host(Category::UserRange, "step[DECODE bs=4]", (t + 5_000, t + 8_000));
        s.launch((t + 5_010, t + 5_020), NORM, (t + 5_040, t + 5_300));
    }
    let (_, a) = s.analyze();
    assert_eq!(a.ranks[0].anchor.name, "sglang");
    assert_eq!(a.ranks[0].steps.len(), 4);
}

/// `n` annotated decode steps of 1 000 ns: range, launches, two kernels, sampling.
pub(super) fn decode_steps(n: i64) -> Script {
    let mut s = Script::default();
    for i in 0..n {
        let t = i * 1_000;
        s.host(Category::UserRange, "execute_context_0(0)_generation_4(4)", (t, t + 900));
        s.launch((t + 10, t + 20), NORM, (t + 40, t + 300));
        s.launch((t + 20, t + 30), GEMM, (t + 310, t + 800));
        s.launch((t + 30, t + 40), ARGMAX, (t + 800, t + 840));
    }
    s
}

#[test]
fn annotated_steps_tile_the_run_and_the_last_one_does_not_count() {
    let (_, a) = decode_steps(6).analyze();
    let rank = &a.ranks[0];
    assert_eq!((rank.anchor.kind, rank.steps.len()), (AnchorKind::UserRange, 6));
    for pair in rank.steps.windows(2) {
        assert_eq!(pair[0].window.end, pair[1].window.start);
    }
    assert_eq!(rank.steps[5].selection, Selection::Unfinished);
    let class = rank.main_class().unwrap();
    assert_eq!((class.stage, class.batch, class.count, class.steady), (Stage::Decode, Some(4), 6, 5));
    assert_eq!((class.p50, class.p99, class.total), (1_000, 1_000, 5_000));
    assert!(class.key.starts_with("decode b=4"), "{}", class.key);
}

#[test]
fn without_annotations_graph_launches_mark_the_steps() {
    let mut s = Script::default();
    for i in 0..5 {
        let t = i * 1_000;
        s.graph((t, t + 50), &[(NORM, (t + 100, t + 200)), (GEMM, (t + 210, t + 800))]);
    }
    let (_, a) = s.analyze();
    assert_eq!((a.ranks[0].anchor.kind, a.ranks[0].steps.len()), (AnchorKind::GraphLaunch, 5));
    assert_eq!(a.ranks[0].classes[0].graph, GraphMode::Full);
}

#[test]
fn without_graphs_the_readback_of_the_sampled_token_marks_the_steps() {
    let mut s = Script::default();
    for i in 0..5 {
        let t = i * 1_000;
        s.launch((t, t + 10), GEMM, (t + 20, t + 500));
        s.launch((t + 10, t + 20), ARGMAX, (t + 500, t + 540));
        s.copy("cudaMemcpyAsync", (t + 20, t + 600), "DtoH", "pageable", 8, (t + 545, t + 560));
    }
    let (_, a) = s.analyze();
    assert_eq!((a.ranks[0].anchor.kind, a.ranks[0].steps.len()), (AnchorKind::TokenReadback, 5));
}

#[test]
fn a_run_that_only_samples_is_cut_after_each_sample() {
    let mut s = Script::default();
    for i in 0..5 {
        let t = i * 1_000;
        s.kernel(7, GEMM, (t + 20, t + 500), None, None);
        s.kernel(7, ARGMAX, (t + 500, t + 540), None, None);
    }
    let (_, a) = s.analyze();
    assert_eq!((a.ranks[0].anchor.kind, a.ranks[0].steps.len()), (AnchorKind::PeriodicOp, 5));
}

#[test]
fn warm_up_steps_are_left_out_by_their_change_point() {
    let mut s = Script::default();
    let mut t = 0;
    for i in 0..20 {
        let dur = if i < 4 { 3_000 - i * 400 } else { 1_000 };
        s.host(Category::UserRange, "execute_context_0(0)_generation_4(4)", (t, t + dur - 10));
        s.launch((t + 10, t + 20), GEMM, (t + 40, t + dur - 20));
        t += dur;
    }
    let (_, a) = s.analyze();
    let rank = &a.ranks[0];
    let warm: Vec<u32> = rank.steps.iter().filter(|s| s.selection == Selection::WarmUp).map(|s| s.index).collect();
    assert_eq!(warm, [0, 1, 2, 3]);
}

#[test]
fn a_run_that_slows_down_keeps_its_fast_steps() {
    let mut s = Script::default();
    let mut t = 0;
    for i in 0..20 {
        let dur = if i < 10 { 1_000 } else { 1_300 };
        s.host(Category::UserRange, "execute_context_0(0)_generation_4(4)", (t, t + dur - 10));
        s.launch((t + 10, t + 20), GEMM, (t + 40, t + dur - 20));
        t += dur;
    }
    let (_, a) = s.analyze();
    assert!(a.ranks[0].steps.iter().all(|s| s.selection != Selection::WarmUp));
}

fn random_trace(events: &[(u8, i64, i64, i64)]) -> Trace {
    let mut s = Script::default();
    for (kind, start, len, lag) in events {
        let (a, b) = (*start, start + len);
        match kind % 8 {
            0..3 => s.launch_on(i64::from(kind % 3), (a, a + len / 4), GEMM, (a + lag, b + lag)),
            3 => s.graph((a, b), &[(GEMM, (a + lag, b + lag)), (NORM, (b + lag + 3, b + lag + len))]),
            4 => s.copy("cudaMemcpy", (a, b), "DtoH", "pageable", 8, (a + lag, b + lag)),
            5 => s.call("cudaStreamSynchronize", (a, b)),
            6 => s.host(Category::FrameworkOp, "aten::mm", (a, b)),
            _ => s.host(Category::UserRange, "execute_context_0(0)_generation_4(4)", (a, b)),
        };
    }
    s.trace()
}

proptest::proptest! {
    #[test]
    fn buckets_add_up_to_the_window_whatever_the_trace(
        events in proptest::collection::vec((0u8..=255, 0i64..3_000, 0i64..300, -50i64..400), 1..120),
    ) {
        let trace = random_trace(&events);
        let packs = crate::platform::Packs::embedded().unwrap();
        let a = super::analyze(&trace, &packs, &super::Options::default());
        for rank in &a.ranks {
            for step in &rank.steps {
                proptest::prop_assert_eq!(step.buckets.iter().map(|(_, ns)| ns).sum::<Ns>(), step.window.len());
                proptest::prop_assert!(step.buckets.iter().all(|(_, ns)| *ns >= 0));
            }
            for pair in rank.steps.windows(2) {
                proptest::prop_assert_eq!(pair[0].window.end, pair[1].window.start);
            }
            for gap in &rank.gaps {
                let mut cursor = gap.span.start;
                for (_, part) in &gap.parts {
                    proptest::prop_assert_eq!(part.start, cursor);
                    cursor = part.end;
                }
                proptest::prop_assert_eq!(cursor, gap.span.end);
            }
            for class in &rank.classes {
                proptest::prop_assert_eq!(class.buckets.iter().map(|(_, ns)| ns).sum::<Ns>(), class.total);
            }
        }
    }
}

#[test]
fn a_blocking_copy_that_was_not_recorded_is_a_copy_where_none_was() {
    let copy_time = || {
        let mut s = Script::default();
        s.launch((0, 5_000), GEMM, (10_000, 50_000));
        s.call("hipMemcpy", (50_000, 150_000));
        s.launch((200_000, 205_000), GEMM, (210_000, 250_000));
        let (_, analysis) = s.analyze();
        let class = analysis.ranks[0].main_class().unwrap();
        class.sum(|bucket| bucket == crate::analysis::Bucket::Copy(crate::analysis::CopyDir::Unknown))
    };
    assert_eq!(copy_time(), 100_000);
}
