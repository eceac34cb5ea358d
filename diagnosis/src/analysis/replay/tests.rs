#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use ::model::{Category, Ns, Span};
use proptest::prelude::*;

use super::{Replay, Variant};
use crate::analysis::{
    Analysis, Edit, Job, Layer, OpKind,
    job::{Instance, Member},
    script::Script,
};

const GEMM: &str = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64";
const ALL_REDUCE: &str = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
const SAMPLE: &str = "void at::native::radixSortKVInPlace<2, -1, 128, 32, float, long, unsigned int>";
const STEP: &str = "execute_context_0(0)_generation_4(4)";
const STEPS: Ns = 6;
/// Period of the two ranks, and how much later than rank 0 the host of rank 1 is in each step, ns.
const PERIOD: Ns = 400_000;
const LATE: Ns = 200_000;

/// A rank whose host begins each step `late` ns after the other's and whose clock runs `ahead` of it. A product takes 50 µs;
/// the collective after it lasts until 20 µs after the later rank came.
fn rank(late: Ns, ahead: Ns) -> Analysis {
    let mut script = Script::default();
    for i in 0..STEPS {
        let host = ahead + i * PERIOD + late;
        let joined = ahead + i * PERIOD + LATE + 7_000 + 50_000 + 500;
        let (product, arrived) = (host + 7_000, host + 7_000 + 50_000 + 500);
        script.launch((host, host + 5_000), GEMM, (product, product + 50_000));
        script.launch((host + 5_000, host + 10_000), ALL_REDUCE, (arrived, joined + 20_000));
        script.call("cudaStreamSynchronize", (host + 11_000, joined + 22_000));
        script.host(Category::UserRange, STEP, (host - 1_000, joined + 23_000));
    }
    script.analyze().1
}

/// Both ranks in one capture, their collectives matched by `pair`: the other rank's step for each step.
fn job(pair: impl Fn(Ns) -> Ns) -> Analysis {
    let (mut analysis, mut other) = (rank(0, 10_000), rank(LATE, 5_000_000));
    let mut late = other.ranks.remove(0);
    late.rank = 1;
    let op = |analysis: &crate::analysis::Rank, i: Ns| analysis.steps[i as usize].ops.start as u32 + 1;
    let instances = (0..STEPS).map(|i| Instance {
        members: vec![Member { rank: 0, op: op(&analysis.ranks[0], i) }, Member { rank: 1, op: op(&late, pair(i)) }],
        transfer: 20_000,
        group: 0,
        kind: 0,
        slow: false,
    });
    analysis.job = Job { instances: instances.collect(), ..Job::default() };
    analysis.ranks.push(late);
    analysis
}

/// The host of a rank begins each step but the first so much earlier.
fn earlier(analysis: &Analysis, rank: usize, by: Ns) -> Edit {
    let calls = &analysis.ranks[rank].timeline.calls;
    let spans = calls.chunks(3).zip(calls.chunks(3).skip(1)).map(|(before, next)| {
        let span = Span::new(before[2].end, next[0].start);
        (span, span.len() - by)
    });
    Edit::Host(calls[0].track, spans.collect())
}

fn observed(analysis: &Analysis, rank: usize) -> Vec<Ns> {
    analysis.ranks[rank].steps.iter().map(|s| s.window.len()).collect()
}

#[test]
fn two_ranks_without_a_change_stay_as_they_are() {
    let analysis = job(|i| i);
    let windows = Replay::new(&analysis).unedited();
    assert_eq!(windows, vec![observed(&analysis, 0), observed(&analysis, 1)]);
}

/// Both ranks of a collective waited for a third that was not captured: without that wait, which nobody had taken away, the replay
/// missed their steps by half.
#[test]
fn ranks_that_all_wait_for_one_outside_stay_as_they_are() {
    let mut analysis = job(|i| i);
    analysis.job.instances.iter_mut().for_each(|instance| instance.transfer = 5_000);
    let windows = Replay::new(&analysis).unedited();
    assert_eq!(windows, vec![observed(&analysis, 0), observed(&analysis, 1)]);
}

/// A thread that launches later in the capture, such as that of the backward pass, was taken to have kept the first one waiting before
/// it had begun: the first thread was replayed after it, and no window of such a capture was reproduced.
#[test]
fn a_thread_that_has_not_begun_keeps_nobody_waiting() {
    let mut script = Script::default();
    for i in 0..20 {
        let (t, pause) = (i * 50_000, if i >= 10 { 300_000 } else { 0 });
        let call = (t + pause, t + pause + 5_000);
        let kernel = (call.0 + 7_000, call.0 + 27_000);
        if i < 10 {
            script.launch(call, GEMM, kernel)
        } else {
            script.launch_from(9, call, GEMM, kernel)
        };
    }
    let analysis = script.analyze().1;
    assert_eq!(Replay::new(&analysis).unedited(), vec![observed(&analysis, 0)]);
}

/// A copy from pageable memory returns when its last bytes are staged, before they have arrived: the replay let it return after them.
#[test]
fn a_copy_may_return_before_its_bytes_have_arrived() {
    let mut script = Script::default();
    for i in 0..4 {
        let t = i * 500_000;
        script.copy("cudaMemcpy", (t, t + 200_000), "HtoD", "pageable", 1 << 20, (t + 20_000, t + 290_000));
        script.launch((t + 201_000, t + 206_000), GEMM, (t + 291_000, t + 300_000));
    }
    let analysis = script.analyze().1;
    assert_eq!(Replay::new(&analysis).unedited(), vec![observed(&analysis, 0)]);
}

/// A stage of a pipeline receives on a queue of its own and has its main queue wait for that before it replays its graph: the graph
/// was taken to wait for nothing, so that evening out stages was said to gain what it does not.
#[test]
fn a_graph_waits_for_what_its_queue_was_told_to_wait_for() {
    const RECEIVED: Ns = 2_000_000;
    const RECEIVE: &str = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
    let mut script = Script::default();
    script.host(Category::UserRange, STEP, (0, 2 * RECEIVED));
    script.launch((1_000, 2_000), SAMPLE, (3_000, 4_000));
    script.launch_on(8, (2_000, 3_000), RECEIVE, (5_000, RECEIVED));
    script.call("cudaStreamWaitEvent", (4_000, 4_500));
    let nodes = [(GEMM, (RECEIVED + 1_000, RECEIVED + 50_000)), (GEMM, (RECEIVED + 51_000, RECEIVED + 90_000))];
    script.graph((5_000, 9_000), &nodes);
    script.call("cudaStreamSynchronize", (10_000, RECEIVED + 95_000));
    let analysis = script.analyze().1;
    let ops = &analysis.ranks[0].timeline.ops;
    let receive = ops.iter().position(|op| op.dur() > 1_000_000).unwrap() as u32;
    let sooner = Edit::Resize(vec![(receive, 500_000)]);
    let replay = Replay::new(&analysis);
    let [now, then] = [replay.unedited(), replay.windows(&[(0, &sooner)], Variant::Cautious)].map(|w| w[0][0]);
    assert!(now - then >= 1_400_000, "{now} {then}");
}

/// The device recorded that a queue stood for a collective; the calls of the thread that launches, which had made that queue wait for an
/// event, told of an earlier operation, so that what came after the collective stayed where it was when the collective took less.
#[test]
fn a_recorded_wait_of_the_device_outweighs_what_calls_leave_open() {
    const REDUCED: Ns = 10_000_000;
    let mut script = Script::default();
    script.host(Category::UserRange, STEP, (0, 2 * REDUCED));
    script.launch_on(8, (1_000, 2_000), SAMPLE, (3_000, 4_000));
    script.launch_on(8, (2_000, 3_000), ALL_REDUCE, (10_000, REDUCED));
    script.launch_on(8, (3_000, 4_000), ALL_REDUCE, (REDUCED + 1_000, REDUCED + 50_000));
    script.launch((4_000, 5_000), GEMM, (6_000, 9_000));
    script.call("cudaStreamWaitEvent", (5_000, 5_500));
    script.stands(7, (9_500, REDUCED + 500));
    script.launch((6_000, 7_000), GEMM, (REDUCED + 700, REDUCED + 60_000));
    script.call("cudaStreamSynchronize", (7_000, REDUCED + 70_000));
    let analysis = script.analyze().1;
    let ops = &analysis.ranks[0].timeline.ops;
    let reduce = ops.iter().position(|op| op.dur() > 5_000_000).unwrap() as u32;
    let shorter = Edit::Resize(vec![(reduce, 1_000_000)]);
    let replay = Replay::new(&analysis);
    let [now, then] = [replay.unedited(), replay.windows(&[(0, &shorter)], Variant::Cautious)].map(|w| w[0][0]);
    assert!(now - then >= 8_900_000, "{now} {then}");
}

/// A launch into a full queue returned right after the operation before the usual time of a launch; what it had waited for was
/// taken for its own time, and faster kernels gained next to nothing.
#[test]
fn launches_that_wait_for_room_in_a_full_queue_take_no_time_of_their_own() {
    const DEPTH: usize = 40;
    const KERNEL: Ns = 1_000_000;
    let mut script = Script::default();
    let (mut host, mut ends) = (0, Vec::new());
    for i in 0usize..300 {
        // The first launches are slow: code is loaded.
        let took = if i < 10 { 200_000 } else { 5_000 };
        let room = i.checked_sub(DEPTH).map_or(0, |first| ends[first] + 2_000);
        let returns = room.max(host + took);
        let start = ends.last().map_or(host + 8_000, |end: &Ns| (end + 1_000).max(host + 8_000));
        script.launch((host, returns), GEMM, (start, start + KERNEL));
        ends.push(start + KERNEL);
        host = returns + 1_000;
    }
    script.call("cudaDeviceSynchronize", (host, ends[299] + 3_000));
    let analysis = script.analyze().1;
    let replay = Replay::new(&analysis);
    let faster = Edit::Resize((0..300).map(|op| (op, KERNEL / 10)).collect());
    let [now, then] = [replay.unedited(), replay.windows(&[(0, &faster)], Variant::Hopeful)].map(|w| w[0][0]);
    assert!(now > 300 * KERNEL && 7 * then < now, "{now} {then}");
}

#[test]
fn only_the_late_rank_gains_for_both() {
    let analysis = job(|i| i);
    let replay = Replay::new(&analysis);
    let middle = |rank: usize, by: Ns| {
        let edit = earlier(&analysis, rank, by);
        let windows = replay.windows(&[(rank, &edit)], Variant::Cautious);
        [windows[0][2], windows[1][2]]
    };
    // The rank that waits may begin as early as it likes.
    assert_eq!(middle(0, 50_000), [PERIOD; 2]);
    // The other one is waited for until it is no longer late.
    assert_eq!(middle(1, 50_000), [PERIOD - 50_000; 2]);
}

#[test]
fn a_faster_transfer_ends_sooner_on_every_rank() {
    let analysis = job(|i| i);
    let ops = analysis.job.instances.iter().map(|i| (i.members[1].op, 5_000)).collect();
    let edit = Edit::Transfer(ops);
    let windows = Replay::new(&analysis).windows(&[(1, &edit)], Variant::Cautious);
    assert_eq!([windows[0][2], windows[1][2]], [PERIOD - 15_000; 2]);
}

#[test]
fn ranks_that_wait_for_nobody_go_at_their_own_pace() {
    let analysis = job(|i| i);
    let alone =
        |rank: usize| Edit::Alone(analysis.job.instances.iter().map(|i| (i.members[rank].op, 20_000)).collect());
    let (first, second) = (alone(0), alone(1));
    let replay = Replay::new(&analysis);
    let windows = replay.windows(&[(0, &first), (1, &second)], Variant::Cautious);
    // The host of the first rank goes on as soon as its own collective is done, so it gains all that it waited; the other
    // one never waited.
    assert_eq!(windows[0][2], PERIOD - LATE);
    assert_eq!(windows[1][2], PERIOD);
    // With only one of them changed, the other does not wait for ever.
    let one = replay.windows(&[(0, &first)], Variant::Cautious);
    assert_eq!(one.iter().map(Vec::len).collect::<Vec<_>>(), vec![STEPS as usize; 2]);
}

#[test]
fn collectives_matched_wrongly_do_not_stop_the_replay() {
    let analysis = job(|i| i ^ 1);
    let windows = Replay::new(&analysis).unedited();
    assert_eq!(windows.iter().map(Vec::len).collect::<Vec<_>>(), vec![STEPS as usize; 2]);
}

/// A drawn run on one queue: per step (host work before, duration) of each launch.
fn drawn(steps: &[Vec<(Ns, Ns)>]) -> Analysis {
    let mut script = Script::default();
    let (mut host, mut device) = (10_000, 0);
    for step in steps {
        let begun = host - 1;
        for (before, ns) in step {
            let call = (host + before, host + before + 4_000);
            let start = (call.0 + 6_000).max(device + 900);
            script.launch(call, GEMM, (start, start + ns));
            (host, device) = (call.1, start + ns);
        }
        let end = device.max(host) + 2_000;
        script.call("cudaStreamSynchronize", (host, end));
        host = end + 1;
        script.host(Category::UserRange, STEP, (begun, end));
    }
    script.analyze().1
}

proptest! {
    #[test]
    fn no_change_gains_more_than_the_time_it_takes_away(
        steps in prop::collection::vec(prop::collection::vec((0i64..30_000, 1i64..40_000), 3..12), 4..8),
        picks in prop::collection::vec((0usize..64, 0i64..40_000), 1..12),
        kind in 0usize..4,
    ) {
        let analysis = drawn(&steps);
        let rank = &analysis.ranks[0];
        // The first step stays: with its first operation the measure itself would move.
        let from = rank.steps[0].ops.end;
        let ops: Vec<(u32, Ns)> = picks.iter()
            .map(|(i, ns)| (from + i % (rank.timeline.ops.len() - from), *ns))
            .map(|(o, ns)| (o as u32, ns.min(rank.timeline.ops[o].dur())))
            .collect();
        let calls = &rank.timeline.calls;
        let stretches = ops.iter().filter_map(|(o, _)| rank.timeline.ops[*o as usize].call).map(|c| {
            (Span::new(calls[c as usize - 1].end, calls[c as usize].start), 0)
        });
        let edit = match kind {
            0 => Edit::Resize(ops.clone()),
            1 => Edit::Remove(ops.iter().map(|(o, _)| *o).collect()),
            2 => Edit::Host(calls[0].track, stretches.collect()),
            _ => Edit::Gap(ops.clone()),
        };
        let replay = Replay::new(&analysis);
        let total = |windows: &[Vec<Ns>]| windows[0].iter().sum::<Ns>();
        let unedited = replay.unedited();
        prop_assert_eq!(&unedited[0], &observed(&analysis, 0));
        let edited = total(&replay.windows(&[(0, &edit)], Variant::Hopeful));
        let gain = total(&unedited) - edited;
        let rest = replay.rest(&[(0, &edit)], 0, rank.steps.iter());
        prop_assert!(gain >= 0, "{kind}: {gain}");
        prop_assert!(gain <= rest.taken, "{kind}: {gain} of {}", rest.taken);
        let busiest = rest.device.max(rest.host) * rank.steps.len() as Ns;
        prop_assert!(busiest <= edited, "{kind}: {busiest} of {edited}");
    }
}

#[test]
fn the_path_of_the_waiting_rank_goes_over_to_the_late_one() {
    let analysis = job(|i| i);
    let replay = Replay::new(&analysis);
    let paths = [0, 1].map(|rank| replay.critical_path(rank).unwrap());
    for path in &paths {
        assert_eq!(path.layers.iter().map(|(_, ns)| ns).sum::<Ns>(), path.length);
    }
    assert_eq!(paths.each_ref().map(|path| path.hops), [1, 0]);
    let alone = rank(0, 10_000);
    let path = Replay::new(&alone).critical_path(0).unwrap();
    assert_eq!((path.hops, path.length), (0, PERIOD));
}

/// Without a record of the host's calls nobody knows what the device waited for between its operations.
#[test]
fn the_path_has_no_time_in_the_runtime_where_the_table_has_none() {
    let mut script = Script::default();
    let mut t = 10_000;
    for _ in 0..STEPS {
        for name in [GEMM; 20].into_iter().chain([SAMPLE]) {
            script.kernel(7, name, (t, t + 8_000), None, None);
            t += 11_000;
        }
    }
    let analysis = script.analyze().1;
    let class = analysis.ranks[0].main_class().unwrap();
    let path = Replay::new(&analysis).critical_path(0).unwrap();
    let of = |layer: Layer| path.layers.iter().find(|(l, _)| *l == layer).unwrap().1;
    assert_eq!(class.sum(|bucket| bucket.layer() == Layer::Runtime), 0);
    assert_eq!(of(Layer::Runtime), 0, "{:?}", path.layers);
    assert_eq!(of(Layer::Operator) + of(Layer::Measurement), path.length);
}

/// A host that waits after every launch never shows how soon one operation follows another on this device.
#[test]
fn without_waits_operations_may_follow_at_once_where_no_queue_was_seen() {
    const OPS: Ns = 20;
    let mut script = Script::default();
    let mut t = 10_000;
    for _ in 0..STEPS {
        let begun = t;
        for _ in 0..OPS {
            let start = t + 6_000;
            script.launch((t, t + 2_000), GEMM, (start, start + 8_000));
            script.call("cudaStreamSynchronize", (t + 2_000, start + 12_000));
            t = start + 12_000;
        }
        script.host(Category::UserRange, STEP, (begun, t));
    }
    let analysis = script.analyze().1;
    let rank = &analysis.ranks[0];
    let waits = rank.timeline.calls.iter().enumerate().filter(|(_, call)| call.blocking).map(|(i, _)| i as u32);
    // The last wait of a step brings its token.
    let extra: Vec<u32> = waits.enumerate().filter(|(i, _)| (i + 1) % OPS as usize != 0).map(|(_, c)| c).collect();
    let replay = Replay::new(&analysis);
    let edit = Edit::Unblock(extra);
    let step = |variant| replay.windows(&[(0, &edit)], variant)[0][2];
    let (cautious, hopeful) = (step(Variant::Cautious), step(Variant::Hopeful));
    assert_eq!(cautious - hopeful, (OPS - 1) * 1_000, "the gap that devices usually need");
    assert!(hopeful >= OPS * 8_000, "{hopeful}");
}

/// An engine that schedules ahead waits for the token on another thread. What no record of the launching thread said passed for
/// work of the host: attention that took 70 % of a step seemed to gain 4 %.
#[test]
fn who_goes_on_when_another_thread_has_seen_the_end_waits_for_the_device() {
    // The launching thread goes on so long after the device has finished; a second thread waits for the device, if `waits`.
    let shrunk = |waits: bool, lag: Ns| {
        let mut script = Script::default();
        let mut t = 0;
        for i in 0..12 {
            let long = 800_000 + i % 4 * 50_000;
            script.host(Category::UserRange, STEP, (t - 1_000, t + 20_000));
            script.launch((t, t + 5_000), GEMM, (t + 10_000, t + 10_000 + long));
            if waits {
                let end = t + 10_000 + long + 4_000;
                script.host_on(2, Category::HostApi, "cudaEventSynchronize", (t + 8_000, end));
            }
            t += 10_000 + long + lag;
        }
        let (_, analysis) = script.analyze();
        let ops = &analysis.ranks[0].timeline.ops;
        let half = (0u32..).zip(ops).map(|(o, op)| (o, op.dur() / 2)).collect();
        let after = Replay::new(&analysis).windows(&[(0, &Edit::Resize(half))], Variant::Cautious);
        let of = |windows: &[Ns]| windows[2..10].iter().sum::<Ns>();
        let before: Vec<Ns> = analysis.ranks[0].steps.iter().map(|step| step.window.len()).collect();
        of(&after[0]) as f64 / of(&before) as f64
    };
    let (waiting, working, alone) = (shrunk(true, 60_000), shrunk(true, 1_200_000), shrunk(false, 60_000));
    assert!((0.5..0.56).contains(&waiting), "{waiting}");
    assert!(working > 0.95, "work after the device's end is no wait: {working}");
    assert!(alone > 0.95, "nothing says that it waits: {alone}");
}

/// In vLLM one rank of several waits for the token, and the next step is sent to all: the others' pauses end with its.
#[test]
fn ranks_that_go_on_together_wait_for_the_device_of_the_one_that_looks() {
    let shrunk = |waits: bool| {
        let mut script = Script::default();
        for rank in 0..2 {
            script.rank(rank);
            let (clock, late) = (Ns::from(rank) * 5_000_000, Ns::from(rank) * 12_000);
            let mut t = clock;
            for i in 0..12 {
                let long = 800_000 + i % 4 * 50_000;
                let (host, joined) = (t + late, t + 10_000 + long + 32_000);
                script.host(Category::UserRange, STEP, (host - 1_000, host + 30_000));
                script.launch((host, host + 5_000), GEMM, (host + 10_000, host + 10_000 + long));
                let arrived = host + 10_000 + long + 500;
                script.exchange(
                    (host + 6_000, host + 9_000),
                    ("allReduce", ALL_REDUCE, 65_536),
                    ("tp", 2),
                    Some(i),
                    (arrived, joined),
                );
                if waits && rank == 0 {
                    script.host_on(2, Category::HostApi, "cudaEventSynchronize", (t + 8_000, joined + 4_000));
                }
                t = joined + 60_000;
            }
        }
        let (_, analysis) = script.analyze();
        let half = |rank: &crate::analysis::Rank| {
            let products = (0u32..).zip(&rank.timeline.ops).filter(|(_, op)| op.kind == OpKind::Compute);
            Edit::Resize(products.map(|(o, op)| (o, op.dur() / 2)).collect())
        };
        let halves: Vec<Edit> = analysis.ranks.iter().map(half).collect();
        let edits: Vec<(usize, &Edit)> = halves.iter().enumerate().collect();
        let after = Replay::new(&analysis).windows(&edits, Variant::Cautious);
        let of = |windows: &[Ns]| windows[2..10].iter().sum::<Ns>() as f64;
        let ratio = |rank: usize| {
            let before: Vec<Ns> = analysis.ranks[rank].steps.iter().map(|step| step.window.len()).collect();
            of(&after[rank]) / of(&before)
        };
        (ratio(0), ratio(1))
    };
    let (first, second) = shrunk(true);
    assert!((0.5..0.62).contains(&first) && (0.5..0.62).contains(&second), "{first} {second}");
    let (first, second) = shrunk(false);
    assert!(first > 0.95 && second > 0.95, "{first} {second}");
}
