#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, Ns};

use super::super::testing::{CONTIGUOUS, check, diagnosis, fires, us};
use crate::{
    analysis::{Edit, Layer, job_script::Run, script::Script},
    diagnose::VerdictLayer,
    i18n::Lang,
};

const LAYERS: usize = 3;
const STEPS: usize = 16;

/// Four ranks; `work` gives GEMM and host time of a rank in a collective.
fn run(work: impl Fn(usize, usize) -> (Ns, Ns)) -> Run {
    Run::new((0..4).map(|rank| (0..LAYERS * STEPS).map(|c| work(rank, c)).collect()).collect(), LAYERS)
}

/// A number that looks random, below `n`.
fn noise(rank: usize, c: usize, n: usize) -> usize {
    (rank * 7_919 + c * 104_729 + (rank * c) % 31 * 17) % 1_009 % n
}

#[test]
fn cm01_names_the_rank_and_what_it_spends_longer_on() {
    let straggler = |rank, c: usize| (us(60), us(5) + if rank == 2 && c.is_multiple_of(LAYERS) { us(80) } else { 0 });
    let found = check("CM-01", &run(straggler).analyze());
    let [host] = found.as_slice() else { panic!("{} findings", found.len()) };
    assert_eq!((host.ranks.as_slice(), host.layer), (&[2][..], Layer::Runtime));
    let gain = host.estimate.from - host.estimate.to_low;
    assert!((us(75)..=us(81)).contains(&gain), "{gain}");
    assert!(matches!(host.changes[0].1.edits.as_slice(), [Edit::Host(_, spans)] if spans.len() >= STEPS - 2));
    let slow = check("CM-01", &run(|rank, _| (if rank == 3 { us(75) } else { us(60) }, us(5))).analyze());
    let [slow] = slow.as_slice() else { panic!("{} findings", slow.len()) };
    assert_eq!((slow.ranks.as_slice(), slow.layer), (&[3][..], Layer::Operator));
    assert!(
        matches!(slow.changes[0].1.edits.as_slice(), [Edit::Resize(ops)] if ops.iter().all(|(_, ns)| *ns == us(60)))
    );
    assert!(fires("CM-01", &run(straggler).analyze()));
}

/// A late rank of which only sums were kept was named by nobody: its part of the waiting had no layer.
#[test]
fn cm01_names_a_rank_of_which_only_collectives_were_recorded() {
    let run = |late: Ns| {
        let mut s = Script::default();
        let of = ("allReduce", "hcom_allReduce", 65_536);
        for rank in 0..3 {
            s.rank(rank);
            for step in 0..16 {
                let t = us(300) * step;
                let (waits, ends) = (if rank == 2 { 0 } else { late }, t + us(150) + late);
                let span = (ends - us(10) - waits, ends);
                if rank == 2 {
                    s.exchange_alone(of, ("g", 3), Some(step), span);
                    continue;
                }
                s.host(Category::UserRange, "execute_context_0(0)_generation_8(8)", (t, t + us(40)));
                s.launch((t + us(1), t + us(6)), "gemm_nt", (t + us(10), t + us(140)));
                s.exchange((t + us(10), t + us(15)), of, ("g", 3), Some(step), span);
            }
        }
        check("CM-01", &s.analyze())
    };
    let found = run(us(100));
    let [late] = found.as_slice() else { panic!("{} findings", found.len()) };
    let gain = late.estimate.from - late.estimate.to_low;
    assert!((us(95)..=us(105)).contains(&gain), "{gain}");
    let said = late.claim.render(Lang::En, |value| format!("{value:?}"));
    assert!(said.contains("rank Count(2)") && said.contains("was not recorded"), "{said}");
    assert!(run(0).is_empty());
}

/// The headline said that no step counts, above tables that are the mean over the steps that count.
#[test]
fn one_rank_of_which_only_collectives_were_recorded_is_said_to_be_that() {
    let mut s = Script::default();
    s.rank(1);
    for step in 0..4 {
        let t = us(300) * step;
        s.exchange_alone(("allReduce", "hcom_allReduce", 65_536), ("g", 2), Some(step), (t, t + us(100)));
    }
    let said = diagnosis(&s.analyze()).verdict.headline.render(Lang::En, |value| format!("{value:?}"));
    assert!(said.starts_with("Of rank Count(1) only collectives were recorded"), "{said}");
}

/// Casts were taken out of one rank alone: its twin, of which only collectives were kept, came to each collective as late as
/// before, and nothing seemed to be gained.
#[test]
fn what_a_program_no_longer_does_its_twin_does_not_do_either() {
    let run = |summed: bool| {
        let mut s = Script::default();
        let of = ("allReduce", "hcom_allReduce", 65_536);
        for rank in 0..2 {
            s.rank(rank);
            for step in 0..16 {
                let t = us(300) * step;
                let span = (t + us(252), t + us(280));
                if rank == 1 && summed {
                    s.exchange_alone(of, ("g", 2), Some(step), span);
                    continue;
                }
                s.host(Category::UserRange, "execute_context_0(0)_generation_8(8)", (t, t + us(40)));
                s.launch((t + us(1), t + us(6)), "gemm_nt", (t + us(10), t + us(150)));
                s.launch((t + us(6), t + us(8)), CONTIGUOUS, (t + us(151), t + us(251)));
                s.exchange((t + us(10), t + us(15)), of, ("g", 2), Some(step), span);
                s.call("cudaStreamSynchronize", (t + us(20), t + us(282)));
            }
        }
        let all = diagnosis(&s.analyze());
        let gain = |f: &crate::diagnose::Finding| f.estimate.from - f.estimate.to_low;
        all.findings.iter().filter(|f| f.rule == "OP-05").map(gain).max().unwrap_or(0)
    };
    let (both, one) = (run(false), run(true));
    assert!(both >= us(90) && one >= us(90), "{both} {one}");
}

#[test]
fn cm01_is_silent_where_lateness_is_nobodys() {
    let even = |rank, c| (us(60), us(5) + 100 * noise(rank, c, 3) as Ns);
    assert!(!fires("CM-01", &run(even).analyze()), "waits of a few hundred ns");
    let random = |rank, c| (us(60), us(5) + us(noise(rank, c, 60) as Ns));
    assert!(!fires("CM-01", &run(random).analyze()), "now one, now another");
}

/// A job in which `pauses` says for how long a host stops before a step.
fn stopping(
    ranks: usize,
    steps: usize,
    pauses: impl Fn(usize, usize) -> Ns,
) -> (model::Trace, crate::analysis::Analysis) {
    let before = |rank, c: usize| if c.is_multiple_of(LAYERS) { pauses(rank, c / LAYERS) } else { 0 };
    let work = |rank| (0..LAYERS * steps).map(|c| (us(60), us(5) + before(rank, c))).collect();
    Run::new((0..ranks).map(work).collect(), LAYERS).analyze()
}

#[test]
fn cm01_counts_every_one_of_equal_pauses() {
    // Eleven of them: the nine that hold 80 % of the waiting would still be an accident of two ranks.
    let paused = stopping(2, 48, |rank, step| if rank == 1 && step > 2 && step % 4 == 2 { us(900) } else { 0 });
    let found = check("CM-01", &paused);
    assert_eq!(found.iter().map(|f| &f.ranks[..]).collect::<Vec<_>>(), [[1]]);
    let few = stopping(2, 24, |rank, step| if rank == 1 && step > 2 && step % 4 == 2 { us(900) } else { 0 });
    assert!(!fires("CM-01", &few), "five may be an accident");
}

#[test]
fn rt22_names_the_rank_that_stops_and_not_those_that_wait() {
    let paused = stopping(4, 48, |rank, step| if rank == 2 && step % 8 == 5 { us(800) } else { 0 });
    let found = check("RT-22", &paused);
    let [jitter] = found.as_slice() else { panic!("{} findings", found.len()) };
    assert_eq!((jitter.ranks.as_slice(), jitter.layer), (&[2][..], Layer::Runtime));
    assert_eq!(jitter.changes.len(), 4, "what the others do longer is changed all the same");
}

#[test]
fn cm01_leads_the_verdict_of_the_job_and_not_to_communication() {
    let d = diagnosis(&run(|rank, _| (if rank == 3 { us(100) } else { us(60) }, us(2))).analyze());
    assert_eq!(d.verdict.layer, VerdictLayer::Operator, "{:?}", d.verdict.because);
    assert!(d.verdict.because.contains(&"CM-01"), "{:?}", d.verdict.because);
}

/// Beside the finding that names what keeps a rank it was said that none does.
#[test]
fn waits_that_a_finding_explains_have_a_cause() {
    let asked = |capture: &(model::Trace, crate::analysis::Analysis)| {
        let sentences = diagnosis(capture).verdict.unjudged;
        sentences.iter().any(|u| u.sentence.text.en.contains("no finding says what keeps that rank"))
    };
    let random = |rank, c| (us(60), us(5) + us(noise(rank, c, 60) as Ns));
    assert!(!asked(&run(random).analyze()), "CM-12 speaks of them");
    let paused = stopping(4, 48, |rank, step| if rank == 2 && step % 8 == 5 { us(800) } else { 0 });
    assert!(!asked(&paused), "RT-22 speaks of rank 2");
}

/// Seven in ten nanoseconds of a real step were waits for ranks that were late one behind the other. CM-01 mended the last of
/// them, which gained 2 %, and of the rest nothing was said.
#[test]
fn waits_that_a_mended_rank_leaves_behind_are_said() {
    let said = |late: [Ns; 4]| {
        let even = run(|rank: usize, _| (us(60) + late[rank], us(5)));
        // By its own clock the rank that waits has the longest steps, which the verdict is about.
        let capture = Run { rates: vec![50, 0, 0, 0], ..even }.analyze();
        assert!(fires("CM-01", &capture));
        let sentences = diagnosis(&capture).verdict.unjudged;
        sentences.iter().any(|u| u.sentence.text.en.contains("the next one is late"))
    };
    assert!(said([0, us(150), us(150), us(200)]));
    assert!(!said([0, 0, 0, us(200)]), "one rank is all of it");
}

#[test]
fn cm12_needs_waiting_that_is_for_no_one_in_particular() {
    let random = |rank, c| (us(60), us(5) + us(noise(rank, c, 60) as Ns));
    assert!(fires("CM-12", &run(random).analyze()));
    let found = check("CM-12", &run(random).analyze());
    assert_eq!((found[0].layer, found[0].ranks.len()), (Layer::Runtime, 4));
    let one = |rank, _| (us(60), us(5) + if rank == 1 { us(60) } else { 0 });
    assert!(!fires("CM-12", &run(one).analyze()), "always the same one");
    let little = |rank, c| (us(60), us(5) + us(noise(rank, c, 4) as Ns));
    assert!(!fires("CM-12", &run(little).analyze()), "little waiting");
}

#[test]
fn cm12_promises_what_hosts_without_disturbances_bring_and_not_only_the_waiting() {
    // In three steps of five a disturbance of each rank, of up to 120 µs.
    let hosts = |noisy: bool| {
        let held_up = move |c: usize| noisy && c.is_multiple_of(LAYERS);
        move |rank, c| (us(60), us(5) + if held_up(c) { us(noise(rank, c, 200).saturating_sub(80) as Ns) } else { 0 })
    };
    let step = |capture: &(model::Trace, crate::analysis::Analysis)| {
        let class = capture.1.ranks[0].main_class().unwrap();
        class.total / class.steady as Ns
    };
    let (noisy, calm) = (run(hosts(true)).analyze(), run(hosts(false)).analyze());
    let d = diagnosis(&noisy);
    let estimate = d.findings.iter().find(|f| f.rule == "CM-12").unwrap().estimate;
    let truth = step(&calm);
    assert!((estimate.to_low..=estimate.to_high).contains(&truth), "{estimate:?} {truth} {}", step(&noisy));
    // The waits alone are no more than half of what the disturbances cost.
    assert!(estimate.from - estimate.to_high > (estimate.from - truth) / 2, "{estimate:?} {truth}");
}

#[test]
fn hosts_that_pause_all_at_once_while_they_decode_the_same_had_their_requests() {
    // Now and then all ranks pause at once, between steps that decode the same sequences.
    let pauses = |c: usize| (us(60), us(5) + if c.is_multiple_of(LAYERS) && c / LAYERS % 8 == 5 { us(800) } else { 0 });
    let work = |_| (0..LAYERS * 48).map(pauses).collect();
    let d = diagnosis(&Run::new((0..4).map(work).collect(), LAYERS).analyze());
    assert!(d.findings.iter().any(|f| ["RT-15", "RT-22"].contains(&f.rule)));
    assert_eq!(d.verdict.layer, VerdictLayer::Runtime);
}

#[test]
fn a_pause_that_others_wait_out_is_no_want_of_requests() {
    // One rank pauses, and what the others do meanwhile takes them a part of that.
    let paused = stopping(4, 48, |rank, step| match (rank, step % 8) {
        (2, 5) => us(800),
        (_, 5) => us(300),
        _ => 0,
    });
    assert!(fires("RT-22", &paused));
    assert_eq!(diagnosis(&paused).verdict.layer, VerdictLayer::Runtime);
}

#[test]
fn rt22_blames_the_pauses_of_all_ranks_and_not_the_waiting_for_them() {
    // Now and then one rank pauses, and the three others wait for it.
    let pauses = |rank: usize, c: usize| {
        let paused = c.is_multiple_of(LAYERS) && c / LAYERS % 8 == 5 && c / LAYERS / 8 % 4 == rank;
        (us(60), us(5) + if paused { us(800) } else { 0 })
    };
    let work = |rank| (0..LAYERS * 96).map(|c| pauses(rank, c)).collect();
    let run = Run::new((0..4).map(work).collect(), LAYERS).analyze();
    let d = diagnosis(&run);
    let found: Vec<_> = d.findings.iter().filter(|f| f.rule == "RT-22").collect();
    let [jitter] = found.as_slice() else { panic!("{} findings", found.len()) };
    assert_eq!((jitter.layer, jitter.ranks.len()), (Layer::Runtime, 4));
    // Every step becomes as long as the median one.
    let class = run.1.ranks[0].main_class().unwrap();
    let (gain, excess) =
        (jitter.estimate.mid_gain_share() * jitter.estimate.from as f64, jitter.estimate.from - class.p50);
    assert!((gain - excess as f64).abs() <= 0.1 * excess as f64, "{gain} {excess}");
}

#[test]
fn cm07_needs_a_transfer_that_is_slow_for_the_last_rank_too() {
    let even = |_, _| (us(60), us(5));
    let mut slow = run(even);
    slow.transfers = (0..LAYERS * STEPS).step_by(4).map(|c| (c, us(60))).collect();
    assert!(fires("CM-07", &slow.analyze()));
    let found = check("CM-07", &slow.analyze());
    assert!(
        matches!(found[0].changes[0].1.edits.as_slice(), [Edit::Transfer(ops)] if ops.iter().all(|(_, ns)| *ns == us(10)))
    );
    let late = run(|rank, c| (us(60), us(5) + if rank == 1 && c % 4 == 0 { us(50) } else { 0 }));
    assert!(!fires("CM-07", &late.analyze()), "a late sender");
    assert!(!fires("CM-07", &run(even).analyze()));
}

#[test]
fn cm07_takes_no_larger_step_for_a_slow_link() {
    // Every fourth step moves more, of which the capture says nothing.
    let large = |c: usize| (c / LAYERS).is_multiple_of(4);
    let slow = |computes: bool| {
        let mut job = run(move |_, c| (us(if computes && large(c) { 180 } else { 60 }), us(5)));
        job.transfers = (0..LAYERS * STEPS).filter(|c| large(*c)).map(|c| (c, us(60))).collect();
        job.analyze()
    };
    assert!(fires("CM-07", &slow(false)), "the same work, and slower");
    assert!(!fires("CM-07", &slow(true)), "three times the work, as in a prefill that nothing marks");
}

#[test]
fn cm09_tells_busy_experts_from_a_slow_device_without_counted_tokens() {
    const EXPERTS: &str = "fused_moe_kernel";
    let job = |product, ranks: [Ns; 4]| {
        let mut job = run(move |rank, _| (us(ranks[rank]), us(2)));
        job.product = product;
        job.analyze()
    };
    let uneven = job(EXPERTS, [60, 60, 60, 90]);
    let found = check("CM-09", &uneven);
    let [one] = found.as_slice() else { panic!("{} findings", found.len()) };
    assert_eq!((one.ranks.as_slice(), one.layer), (&[3][..], Layer::Communication));
    // The tokens that one rank loses the other three get: all end at the mean.
    let even = |ns: Ns| (ns - us(60) - us(30) / 4).abs() <= us(1);
    assert!(matches!(one.changes[0].1.edits.as_slice(), [Edit::Resize(ops)] if ops.iter().all(|(_, ns)| even(*ns))));
    assert!(!fires("CM-01", &uneven), "CM-09 says it");
    let slow = job(crate::diagnose::rules::testing::GEMM, [60, 60, 60, 90]);
    assert!(!fires("CM-09", &slow) && fires("CM-01", &slow), "products that are no experts'");
    assert!(!fires("CM-09", &job(EXPERTS, [60; 4])), "the same time");
}

/// Experts that are busy now on one rank, now on another were the host's jitter, in steps that are one replay of a graph.
#[test]
fn cm09_tells_experts_that_are_busy_in_turn_from_jitter() {
    let job = |product| {
        let mut job = run(|rank, c| (us(40) + us(noise(rank, c, 60) as Ns), us(2)));
        job.product = product;
        job.analyze()
    };
    let experts = job("fused_moe_kernel");
    assert!(fires("CM-09", &experts) && !fires("CM-12", &experts));
    let products = job(crate::diagnose::rules::testing::GEMM);
    assert!(!fires("CM-09", &products) && fires("CM-12", &products));
}

#[test]
fn cm12_does_not_count_waits_that_all_ranks_have_alike() {
    // In each step each rank is late once, by as much, in another collective.
    let turns = |rank: usize, c: usize| (us(60), us(5) + if (c + c / 4) % 4 == rank { us(40) } else { 0 });
    let work = (0..4).map(|rank| (0..4 * STEPS).map(|c| turns(rank, c)).collect()).collect();
    let capture = Run::new(work, 4).analyze();
    let class = capture.1.ranks[0].main_class().unwrap();
    assert!(class.share(|b| b == crate::analysis::Bucket::CommWait) > 0.05, "they wait");
    assert!(!fires("CM-12", &capture));
}

#[test]
fn rt14_turns_graphs_on_for_the_ranks_that_wait_too() {
    // Rank 0 waits for its launches; rank 1 is hardly faster, and most of its own waiting hides in collectives.
    let capture = run(|rank, _| (us(5), if rank == 0 { us(30) } else { us(28) })).analyze();
    let found = check("RT-14", &capture);
    assert!(!found.is_empty());
    let changed: Vec<u32> = found.iter().flat_map(|f| f.changes.iter().map(|(rank, _)| *rank)).collect();
    assert_eq!(changed.len(), 4, "every rank once: {changed:?}");
}

#[test]
fn op13_does_not_take_a_larger_batch_for_a_lower_clock() {
    let work = |rank| vec![(if rank == 3 { us(90) } else { us(60) }, us(2)); 12 * STEPS];
    let mut job = Run::new((0..4).map(work).collect(), 12);
    job.batches = vec![8, 8, 8, 8];
    assert!(fires("OP-13", &job.analyze()), "the same batch, and slower");
    job.batches = vec![8, 8, 8, 12];
    assert!(!fires("OP-13", &job.analyze()), "half as many sequences more");
    job.batches = vec![8, 8, 8, 4];
    assert!(fires("OP-13", &job.analyze()), "fewer sequences, and slower all the same");
}
