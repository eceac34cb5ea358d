//! Several ranks: matching, transfer and wait, and what a wait was for.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use model::{Ns, TraceSink};
use proptest::prelude::*;

use super::{
    Analysis, Bucket, Layer, Rank, Step,
    job_script::{Run, TRANSFER},
    script::Script,
};

const GEMM: &str = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64";

fn steady(rank: &Rank) -> Vec<&Step> {
    let class = rank.main_class().unwrap();
    rank.steady_steps(class).collect()
}

/// Everything that is said of time, without the times themselves.
fn said(a: &Analysis) -> Vec<String> {
    let rank = |(i, r): (usize, &Rank)| {
        let steps: Vec<_> = r.steps.iter().map(|s| (&s.buckets, s.window.len(), a.job.waits_in(i, &s.ops))).collect();
        let moved: Vec<_> = r.classes.iter().map(|c| a.job.reassign(i, r, c)).collect();
        format!("{} {steps:?} {moved:?}", r.rank)
    };
    a.ranks.iter().enumerate().map(rank).collect()
}

/// RFC vllm #52911: one rank is early and shows 72.16 µs; the others show 10.5 to 12 µs.
#[test]
fn the_early_rank_waits_and_the_transfer_is_that_of_the_last_one() {
    let mut s = Script::default();
    for (rank, dur) in [10_500, 11_000, 12_000, 72_160].into_iter().enumerate() {
        s.rank(rank as u32);
        // On clocks of their own, milliseconds apart.
        let end = 200_000 + 3_000_000 * rank as Ns;
        s.collective((end - 100_000, end - 99_000), ("tp", 4), Some(1), (end - dur, end));
    }
    let (trace, a) = s.analyze();
    let [instance] = a.job.instances.as_slice() else { unreachable!("one instance") };
    assert_eq!((instance.members.len(), instance.transfer), (4, 10_500));
    let early = &a.ranks[3];
    assert_eq!(early.collectives.transfer_of(&trace, &early.timeline.ops[0]), 10_500);
    let of = |bucket: Bucket| early.steps[0].buckets.iter().find(|(b, _)| *b == bucket).map(|(_, ns)| *ns);
    assert_eq!((of(Bucket::CommWait), of(Bucket::CommTransfer)), (Some(61_660), Some(10_500)));
    let waits: Vec<(u32, usize, Ns)> = a.job.waits.iter().map(|w| (a.ranks[w.rank].rank, w.late, w.ns)).collect();
    assert_eq!(waits, [(1, 0, 500), (2, 0, 1_500), (3, 0, 61_660)]);
    assert_eq!((early.collectives.instances, early.collectives.estimated), (1, 0));
}

#[test]
fn a_wait_is_what_the_late_rank_spent_longer_on() {
    // Rank 1 thinks 300 µs longer before the first layer of every step; rank 2 multiplies slowly in the second.
    let work = |rank: usize| {
        let of = move |c: usize| match (rank, c % 2) {
            (1, 0) => (50_000, 305_000),
            (2, 1) => (90_000, 5_000),
            _ => (50_000, 5_000),
        };
        (0..24).map(of).collect::<Vec<_>>()
    };
    let (_, a) = Run::new((0..4).map(work).collect(), 2).analyze();
    assert_eq!(a.job.groups.len(), 1);
    assert_eq!((a.job.groups[0].instances, a.job.unmatched), (24, 0));
    let rank = &a.ranks[0];
    let class = rank.main_class().unwrap();
    let moved = a.job.reassign(0, rank, class).unwrap();
    let steps = steady(rank).len() as Ns;
    assert_eq!(steps, 11);
    assert_eq!(moved.layers.iter().sum::<Ns>() + moved.unassigned, class.total);
    // What lies before the first collective of the capture is not known.
    assert_eq!((moved.skewed, moved.unassigned), (0, 300_000), "{moved:?}");
    let causes: Vec<(u32, String, Ns)> =
        moved.causes.iter().map(|c| (a.ranks[c.late].rank, c.bucket.name(&a.host_labels), c.ns)).collect();
    assert_eq!(causes, [(1, "rt.host.unknown".into(), 10 * 300_000), (2, "compute.gemm".into(), 11 * 40_000)]);
    let comm = moved.layers[Layer::ALL.iter().position(|l| *l == Layer::Communication).unwrap()];
    assert_eq!(comm / steps, 2 * TRANSFER);
}

#[test]
fn a_lost_record_costs_its_neighbours_their_cause_and_nothing_else() {
    let work =
        |rank: usize| (0..40).map(|c| (50_000 + 2_000 * ((c * 7 + rank * 3) % 11) as Ns, 5_000)).collect::<Vec<_>>();
    for numbered in [true, false] {
        let mut run = Run::new((0..3).map(work).collect(), 4);
        run.numbered = numbered;
        run.dropped = vec![(1, 9), (2, 22)];
        let (_, a) = run.analyze();
        let full = a.job.instances.iter().filter(|i| i.members.len() == 3).count();
        assert_eq!((a.job.instances.len(), full, a.job.unmatched), (40, 38, 0), "numbered: {numbered}");
        assert!(a.job.waits.iter().all(|w| w.skew.abs() <= 2 || w.causes.is_empty()));
        let unexplained = a.job.waits.iter().filter(|w| w.causes.is_empty()).count();
        assert!(unexplained <= 2 + 2 * 3 * 2, "{unexplained}");
    }
}

#[test]
fn clocks_of_different_rates_leave_no_wait_unexplained() {
    // Rank 1 pauses for 20 ms now and then; its clock runs 20 parts per million slow, that of rank 2 as much fast.
    let work = |rank: usize| {
        let pause = move |c: usize| if rank == 1 && c % 6 == 3 { 20_000_000 } else { 5_000 };
        (0..36).map(|c| (50_000, pause(c))).collect::<Vec<_>>()
    };
    let mut run = Run::new((0..3).map(work).collect(), 3);
    run.clocks = vec![0, 2_300_000, -4_100_000];
    run.rates = vec![0, -20, 20];
    let (_, a) = run.analyze();
    let explained: Vec<_> = a.job.waits.iter().filter(|w| !w.causes.is_empty()).collect();
    assert!(explained.iter().any(|w| w.gained > 700), "two clocks 40 parts per million apart over 20 ms");
    // Times are whole nanoseconds: each of the four ends of two segments may be one off.
    assert!(explained.iter().all(|w| w.skew.abs() <= 4), "{:?}", explained.iter().map(|w| w.skew).max());
    for wait in explained {
        let causes: Ns = wait.causes.iter().map(|c| c.ns).sum();
        assert_eq!(causes + wait.gained + wait.skew, wait.ns, "{wait:?}");
    }
}

#[test]
fn sends_that_nothing_describes_are_the_exchange_of_a_model_of_experts() {
    let send = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
    let matched = |first: &str, stages: &str| {
        let mut s = Script::default();
        s.builder.manifest("parallel.pp", stages, model::Provenance::Declared);
        for rank in 0..2 {
            s.rank(rank);
            for step in 0..12 {
                let t = step * 100_000;
                let waits = if rank == 0 { 30_000 } else { 0 };
                s.launch((t, t + 1_000), first, (t + 2_000, t + 10_000));
                s.launch((t + 1_000, t + 2_000), send, (t + 50_000 - waits, t + 60_000));
            }
        }
        let (_, a) = s.analyze();
        (a.job.instances.len(), a.job.one_sided)
    };
    let route = "void vllm::moe::topkGatingSoftmax<8, 64, 4, 16>(float const*, bool const*)";
    assert_eq!(matched(route, "1"), (12, 0));
    assert_eq!(matched(GEMM, "1"), (12, 0), "sends between two ranks are matched as pairs");
    assert_eq!(matched(route, "2"), (12, 0), "so are those of a model of experts that has stages");
}

#[test]
fn a_receive_waits_for_its_send_and_the_send_for_nobody() {
    let kernel = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
    let mut s = Script::default();
    for (rank, name, waits) in [(0, "send", 0), (1, "recv", 40_000)] {
        s.rank(rank);
        for step in 0..12 {
            let t = step * 100_000;
            s.launch((t, t + 1_000), GEMM, (t + 2_000, t + 10_000));
            s.exchange(
                (t + 1_000, t + 2_000),
                (name, kernel, 131_072),
                ("pp", 4),
                None,
                (t + 50_000 - waits, t + 60_000),
            );
        }
    }
    let (trace, a) = s.analyze();
    assert_eq!((a.job.instances.len(), a.job.one_sided, a.job.groups.len()), (12, 0, 1));
    assert!(a.job.groups[0].is_pair && a.job.groups[0].is_complete(), "both ends are there, whatever the group's size");
    assert!(a.job.instances.iter().all(|i| i.transfer == 10_000));
    assert!(a.job.waits.iter().all(|w| (w.rank, w.late, w.ns) == (1, 0, 40_000)), "{:?}", a.job.waits);
    let of = |rank: usize, bucket: Bucket| -> Ns {
        let buckets = a.ranks[rank].steps.iter().flat_map(|s| &s.buckets);
        buckets.filter(|(b, _)| *b == bucket).map(|(_, ns)| ns).sum()
    };
    assert_eq!((of(0, Bucket::CommWait), of(1, Bucket::CommWait)), (0, 12 * 40_000));
    let received = a.ranks[1].timeline.ops.last().unwrap();
    assert_eq!(a.ranks[1].collectives.transfer_of(&trace, received), 10_000);
}

/// An all-to-all of eight ranks was matched as sends between neighbours, and the rank that all waited for stayed unnamed.
#[test]
fn sends_that_all_ranks_leave_together_are_one_exchange() {
    let kernel = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)";
    let mut s = Script::default();
    for rank in 0..4 {
        s.rank(rank);
        for step in 0..5 {
            let end = step * 300_000 + (step * 7) % 5 * 9_000 + 250_000 + Ns::from(rank) * 400;
            let late = if rank == 3 { 150_000 } else { 0 };
            s.launch((end - 210_000, end - 205_000), GEMM, (end - 205_000, end - 190_000 + late));
            s.launch((end - 205_000, end - 200_000), kernel, (end - 180_000 + late, end));
        }
    }
    let (_, a) = s.analyze();
    let groups: Vec<_> = a.job.groups.iter().map(|group| (group.ranks.clone(), group.instances)).collect();
    assert_eq!((groups, a.job.unmatched, a.job.one_sided), (vec![(vec![0, 1, 2, 3], 5)], 0, 0));
    assert!(!a.job.waits.is_empty() && a.job.waits.iter().all(|w| w.late == 3), "{:?}", a.job.waits);
}

#[test]
fn sends_among_more_than_two_ranks_are_not_guessed_at() {
    let kernel = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
    let mut s = Script::default();
    for rank in 0..4 {
        s.rank(rank);
        for step in 0..12 {
            let t = step * 100_000;
            s.exchange((t + 1_000, t + 2_000), ("send", kernel, 131_072), ("pp", 4), None, (t + 50_000, t + 60_000));
        }
    }
    let (_, a) = s.analyze();
    assert_eq!((a.job.instances.len(), a.job.one_sided), (0, 48));
}

/// Kernels of sends say neither which way they go nor to whom. What was left of two ranks was matched a second time, by chance, and
/// took right matches apart.
#[test]
fn stages_that_hand_on_in_a_ring_are_matched_by_leaving_together() {
    let kernel = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
    const HOP: Ns = 200_000;
    let ends = |step: Ns, hop: Ns| step * 4 * HOP + hop * HOP + (step * 7 + hop * 3) % 5 * 1_500 + HOP;
    let mut s = Script::default();
    for rank in 0..4 {
        s.rank(rank);
        let own = Ns::from(rank);
        for step in 0..12 {
            // What it receives, and what it sends on; the first sends before it receives the tokens.
            let hops = if rank == 0 { [0, 3] } else { [own - 1, own] };
            for end in hops.map(|hop| ends(step, hop)) {
                s.launch((end - HOP, end - HOP + 1_000), kernel, (end - 15_000, end));
            }
        }
    }
    let (_, a) = s.analyze();
    let pairs: Vec<_> = a.job.groups.iter().map(|group| (group.ranks.clone(), group.instances)).collect();
    let expected = [[0, 1], [1, 2], [2, 3], [0, 3]].map(|pair| (pair.to_vec(), 12));
    assert_eq!((pairs.as_slice(), a.job.unmatched, a.job.one_sided), (&expected[..], 0, 0));
}

#[test]
fn collectives_without_a_payload_are_compared_in_their_place_of_the_model() {
    let all_reduce = "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)";
    let slow = |after: [&str; 2]| {
        let mut s = Script::default();
        for rank in 0..2 {
            s.rank(rank);
            for step in 0..48 {
                let t = step * 200_000;
                s.launch((t, t + 1_000), after[0], (t + 2_000, t + 10_000));
                s.launch((t + 1_000, t + 2_000), all_reduce, (t + 11_000, t + 21_000));
                s.launch((t + 2_000, t + 3_000), after[1], (t + 22_000, t + 30_000));
                s.launch((t + 3_000, t + 4_000), all_reduce, (t + 31_000, t + 61_000));
            }
        }
        let (_, a) = s.analyze();
        assert_eq!(a.job.instances.len(), 96);
        a.job.instances.iter().filter(|i| i.slow).count()
    };
    let norm = "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*, c10::BFloat16 const*)";
    assert_eq!(slow([GEMM, norm]), 0, "each is as long as it always is in its place");
    assert_eq!(slow([GEMM, GEMM]), 48, "nothing tells the places apart");
}

#[test]
fn ranks_of_one_capture_that_share_no_collective_are_no_job() {
    let mut s = Script::default();
    for rank in 0..2 {
        s.rank(rank).launch((0, 10), GEMM, (20, 120));
    }
    let (_, a) = s.analyze();
    assert_eq!((a.ranks.len(), a.job.instances.len(), a.job.groups.len()), (2, 0, 0));
    assert_eq!(a.job.reassign(0, &a.ranks[0], &a.ranks[0].classes[0]), None);
}

#[test]
fn a_wait_inside_another_groups_segment_is_the_cause_of_that_wait() {
    // Ranks 0 and 1 are one group, 1 and 2 another, all of them a third. Rank 2's host is late; rank 1 waits for it in
    // their group, and rank 0 waits for rank 1 in theirs, which is rank 2's host in the end.
    let mut s = Script::default();
    let mut t = 0;
    type Row = (&'static str, u32, i64, (Ns, Ns), (Ns, Ns));
    let mut rows: [Vec<Row>; 3] = Default::default();
    for step in 0..12 {
        let late = 100_000;
        let start = [t + 20_000, t + 20_000, t + 20_000 + late];
        let pair = start[2] + 10_000;
        rows[1].push(("b", 2, step, (start[1] - 5_000, start[1] - 4_000), (start[1], pair)));
        rows[2].push(("b", 2, step, (start[2] - 5_000, start[2] - 4_000), (start[2], pair)));
        let second = [t + 30_000, pair + 5_000];
        let end = second[1] + 10_000;
        rows[0].push(("a", 2, step, (second[0] - 5_000, second[0] - 4_000), (second[0], end)));
        rows[1].push(("a", 2, step, (second[1] - 4_000, second[1] - 3_000), (second[1], end)));
        let last = end + 5_000;
        for row in &mut rows {
            row.push(("world", 3, step, (last - 4_000, last - 3_000), (last, last + 10_000)));
        }
        t = last + 10_000 + step;
    }
    for (rank, rows) in rows.iter().enumerate() {
        s.rank(rank as u32);
        for (group, size, step, call, span) in rows {
            s.collective(*call, (group, *size), Some(*step), *span);
        }
    }
    let (_, a) = s.analyze();
    let waits: Vec<_> = a.job.waits.iter().filter(|w| w.rank == 0 && w.ns > 50_000 && !w.causes.is_empty()).collect();
    assert!(waits.len() >= 9, "{:?}", a.job.waits);
    for wait in waits {
        let largest = wait.causes.iter().max_by_key(|c| c.ns).unwrap();
        assert_eq!((largest.late, wait.late), (2, 1), "{wait:?}");
        assert!(matches!(largest.bucket, Bucket::Host(_)), "{wait:?}");
        let sum: Ns = wait.causes.iter().map(|c| c.ns).sum();
        assert_eq!(sum + wait.gained + wait.skew, wait.ns);
    }
}

fn runs() -> impl Strategy<Value = Run> {
    let rank = proptest::collection::vec((20_000i64..120_000, 1_000i64..60_000), 18..19);
    (proptest::collection::vec(rank, 2..5), any::<bool>()).prop_map(|(work, numbered)| {
        let mut run = Run::new(work, 3);
        run.numbered = numbered;
        run
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The clock of a rank is nobody's business: shifting it changes no bucket and no wait, and every wait is explained to
    /// the nanosecond however far the clocks are apart.
    #[test]
    fn clocks_do_not_matter(run in runs(), rank in 0usize..2, shift in -5_000_000i64..5_000_000) {
        let (_, still) = run.analyze();
        let mut moved = run.clone();
        moved.clocks[rank] = shift;
        let (_, a) = moved.analyze();
        prop_assert_eq!(said(&still), said(&a));
        prop_assert_eq!(a.job.instances.len(), 18);
        let mut explained = 0;
        for wait in &a.job.waits {
            let causes: Ns = wait.causes.iter().map(|c| c.ns).sum();
            prop_assert!(wait.causes.is_empty() || wait.skew.abs() <= 2, "{:?}", wait);
            prop_assert!(wait.causes.is_empty() || causes + wait.gained + wait.skew == wait.ns, "{:?}", wait);
            explained += usize::from(!wait.causes.is_empty());
        }
        prop_assert!(a.job.waits.is_empty() || explained > 0);
        for (i, r) in a.ranks.iter().enumerate() {
            for class in &r.classes {
                let moved = a.job.reassign(i, r, class).unwrap();
                prop_assert_eq!(moved.layers.iter().sum::<Ns>() + moved.unassigned, class.total);
            }
        }
        let offset = a.job.clocks[rank].unwrap().ahead - a.job.clocks[1 - rank].unwrap().ahead;
        prop_assert!((offset - shift).abs() <= 2 || rank > 1, "{} for {}", offset, shift);
    }

    /// One more rank that does exactly what another one does changes nothing for those that were there.
    #[test]
    fn an_identical_rank_adds_nothing(run in runs()) {
        let (_, before) = run.analyze();
        let mut more = run.clone();
        more.work.push(run.work[0].clone());
        more.clocks.push(777);
        let (_, after) = more.analyze();
        let both = said(&after);
        prop_assert_eq!(&said(&before)[..], &both[..run.work.len()]);
    }
}

/// Broadcasts by a library without a buffer were left out, and the wait for a late rank in them was called transfer.
#[test]
fn a_broadcast_that_all_ranks_leave_together_is_matched() {
    let matched = |apart: Ns| {
        let mut s = Script::default();
        for rank in 0..2 {
            s.rank(rank);
            for step in 0..12 {
                let t = step * 1_000_000;
                let (waits, ends) = if rank == 0 { (300_000, 0) } else { (0, apart) };
                let of = ("broadcast", "hcom_broadcast", 4_096);
                let span = (t + 500_000 - waits, t + 600_000 + ends);
                s.exchange((t + 1_000, t + 2_000), of, ("g", 2), Some(step), span);
            }
        }
        let (_, a) = s.analyze();
        (a.job.instances.len(), a.job.one_sided)
    };
    assert_eq!(matched(0), (12, 0));
    assert_eq!(matched(4_000), (12, 0), "clocks are as far apart");
    assert_eq!(matched(60_000), (0, 24), "the sender went on");
}

/// A rank of which only sums were kept does not say what its collectives move: none of them was matched.
#[test]
fn a_rank_that_does_not_say_the_payload_takes_part_by_its_numbers() {
    let mut s = Script::default();
    for (rank, bytes) in [(0, 65_536), (1, 65_536), (2, 0)] {
        s.rank(rank);
        for step in 0..12 {
            let t = step * 100_000;
            let waits = if rank == 0 { 30_000 } else { 0 };
            let of = ("allReduce", "hcom_allReduce", bytes);
            s.exchange((t + 1_000, t + 2_000), of, ("g", 3), Some(step), (t + 50_000 - waits, t + 60_000));
        }
    }
    let (_, a) = s.analyze();
    assert_eq!((a.job.instances.len(), a.job.unmatched), (12, 0));
    assert!(a.job.instances.iter().all(|instance| instance.members.len() == 3));
}
