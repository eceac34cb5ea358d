#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, Ns, Trace};
use proptest::prelude::*;

use super::*;
use crate::analysis::{Analysis, script::Script};

/// Microseconds in ns.
const fn us(n: Ns) -> Ns {
    n * 1_000
}

fn owner_names((trace, analysis): &(Trace, Analysis)) -> Vec<(String, Ns, u64)> {
    let groups = analysis.ranks[0].owners.groups.iter();
    let named = groups.filter_map(|g| Some((trace.strings.get(g.owner?).to_owned(), g.ns, g.count)));
    named.collect()
}

/// Two kernels with a pause of 1 ms between them, of which the last 10 us are the launch call.
fn pause() -> Script {
    let mut s = Script::default();
    s.launch((0, us(10)), "gemm_nt", (us(12), us(100)));
    s.launch((us(1_090), us(1_100)), "gemm_nt", (us(1_100), us(1_200)));
    s
}

#[test]
fn the_innermost_record_that_covers_half_of_a_gap_owns_it_and_says_what_is_in_it() {
    let mut s = pause();
    s.host(Category::PythonFrame, "app.py(1): serve", (us(20), us(1_150)));
    s.host(Category::PythonFrame, "model.py(7): forward", (us(90), us(1_140)));
    for i in 0..20 {
        s.host(Category::PythonFrame, "dict.__getitem__", (us(120 + 20 * i), us(122 + 20 * i)));
    }
    let run = s.analyze();
    let group = run.1.ranks[0].owners.groups[0].clone();
    let text = |id: StringId| run.0.strings.get(id);
    assert_eq!(group.owner.map(text), Some("model.py(7): forward"));
    assert_eq!((group.ns, group.count, group.longest), (us(990), 1, us(990)));
    assert_eq!(group.around.iter().map(|id| text(*id)).collect::<Vec<_>>(), ["app.py(1): serve"]);
    assert_eq!(group.children.iter().map(|(id, n, _)| (text(*id), *n)).collect::<Vec<_>>(), [("dict.__getitem__", 20)]);
    assert_eq!(group.ended_by.map(Ending::name).as_deref(), Some("gemm"));
    assert!(!group.wraps && !group.slices.is_empty());
}

/// Each moment of a gap has one innermost record; their times and what no record covers are the gap.
#[test]
fn each_moment_of_a_gap_has_one_innermost_record() {
    let mut s = pause();
    s.host(Category::PythonFrame, "forward", (us(90), us(1_140)));
    s.host(Category::PythonFrame, "norm", (us(200), us(300)));
    s.host(Category::FrameworkOp, "aten::mul", (us(250), us(290)));
    s.host(Category::PythonFrame, "norm", (us(400), us(450)));
    let (trace, analysis) = s.analyze();
    let all = &analysis.ranks[0].owners.innermost;
    let ns = |wanted: &str| {
        let own = all.iter().filter(|(_, name, _)| trace.strings.get(*name) == wanted);
        own.map(|(.., ns)| ns).sum::<Ns>()
    };
    // The gap is from 100 to 1 100 us, of which the launch call has the last 10.
    assert_eq!((ns("norm"), ns("aten::mul"), ns("forward")), (us(60 + 50), us(40), us(990 - 150)));
}

#[test]
fn frames_that_pass_a_call_on_give_way_to_who_made_it() {
    let mut s = pause();
    s.host(Category::PythonFrame, "nn.Module: Norm_0", (us(100), us(1_080)));
    s.host(Category::PythonFrame, "torch/nn/modules/module.py(9): _call_impl", (us(101), us(1_079)));
    assert_eq!(owner_names(&s.analyze())[0], ("nn.Module: Norm_0".to_owned(), us(990), 1));
}

#[test]
fn allocator_calls_own_their_time_and_the_code_around_them_the_rest() {
    let mut s = pause();
    s.host(Category::FrameworkOp, "aten::convolution", (us(95), us(1_085)));
    s.call("cudaFree", (us(200), us(500))).call("cudaFree", (us(500), us(800)));
    let names = owner_names(&s.analyze());
    assert_eq!(names[0], ("cudaFree".to_owned(), us(600), 1));
    assert_eq!(names[1].0, "aten::convolution");
    assert_eq!(names[1].1, us(390));
}

#[test]
fn what_spans_the_whole_step_owns_nothing_narrower() {
    let mut s = pause();
    s.host(Category::PythonFrame, "train.py(1): main", (0, us(2_000)));
    let (trace, analysis) = s.analyze();
    let group = &analysis.ranks[0].owners.groups[0];
    assert!(group.wraps, "{:?}", trace.strings.get(group.owner.unwrap()));
    // Many short calls of one kind inside it are what the time goes to.
    let mut s = pause();
    s.host(Category::PythonFrame, "train.py(1): main", (0, us(2_000)));
    for i in 0..30 {
        s.host(Category::PythonFrame, "queue.py(3): get", (us(100 + 30 * i), us(125 + 30 * i)));
    }
    let (trace, analysis) = s.analyze();
    let group = &analysis.ranks[0].owners.groups[0];
    assert_eq!(trace.strings.get(group.owner.unwrap()), "queue.py(3): get");
    assert!(!group.wraps);
}

#[test]
fn a_thread_that_waits_for_another_ones_launches_idles_for_what_that_one_does() {
    let mut s = pause();
    s.host(Category::PythonFrame, "<built-in method run_backward of torch._C._EngineBase>", (us(20), us(1_085)));
    s.host_on(
        2,
        Category::FrameworkOp,
        "autograd::engine::evaluate_function: ConvolutionBackward0",
        (us(90), us(1_080)),
    );
    assert!(owner_names(&s.analyze())[0].0.starts_with("autograd::engine"));
}

#[test]
fn nothing_recorded_means_no_owner_and_the_time_still_counts() {
    let (_, analysis) = pause().analyze();
    let owners = &analysis.ranks[0].owners;
    assert!(owners.groups.iter().all(|g| g.owner.is_none() || g.bucket == Bucket::LaunchApi));
    assert_eq!(owners.groups.iter().map(|g| g.ns).sum::<Ns>() + owners.rest, owners.idle);
    assert_eq!(owners.idle, us(1_000));
}

#[test]
fn the_first_launch_inside_a_forward_pass_knows_when_that_began() {
    let mut s = pause();
    s.host(Category::PythonFrame, "nn.Module: Model_0", (us(200), us(1_150)));
    s.host(Category::PythonFrame, "model.py(7): forward", (us(210), us(1_140)));
    let (_, analysis) = s.analyze();
    let rank = &analysis.ranks[0];
    let owner = rank.gaps.iter().find_map(|gap| rank.owner_of(gap)).unwrap();
    assert_eq!(owner.forward, Some(us(200)));
    // A launch of its own before the pause: then it is no beginning.
    let mut s = pause();
    s.host(Category::PythonFrame, "nn.Module: Model_0", (us(-5), us(1_150)));
    let (_, analysis) = s.analyze();
    let rank = &analysis.ranks[0];
    assert!(rank.gaps.iter().filter_map(|gap| rank.owner_of(gap)).all(|owner| owner.forward.is_none()));
}

proptest! {
    #[test]
    fn groups_and_rest_are_all_idle_time(
        launches in proptest::collection::vec((1i64..60, 1i64..40, 0i64..30), 2..20),
        records in proptest::collection::vec((0i64..900, 1i64..400, 0usize..4), 0..30),
    ) {
        let mut s = Script::default();
        let (mut host, mut device) = (0, 0);
        for (think, dur, lag) in launches {
            host += us(think);
            let start = (host + us(5 + lag)).max(device);
            s.launch((host, host + us(5)), "gemm_nt", (start, start + us(dur)));
            (host, device) = (host + us(5), start + us(dur));
        }
        let names = ["model.py(7): forward", "aten::mm", "DataLoader.__next__", "cudaMalloc"];
        for (start, dur, name) in records {
            let category = if name == 3 { Category::HostApi } else { Category::PythonFrame };
            s.host(category, names[name], (us(start), us(start + dur)));
        }
        let (_, analysis) = s.analyze();
        let rank = &analysis.ranks[0];
        let gaps: Ns = rank.gaps.iter().map(|gap| gap.span.len()).sum();
        let owners = &rank.owners;
        prop_assert_eq!(owners.idle, gaps);
        prop_assert_eq!(owners.groups.iter().map(|g| g.ns).sum::<Ns>() + owners.rest, gaps);
    }
}
