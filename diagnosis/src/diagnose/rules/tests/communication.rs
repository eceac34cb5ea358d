#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Ns, TraceSink};

use super::super::testing::{ALL_REDUCE, GEMM, NORM, Run, SORT, check, fires, us};
use crate::analysis::Edit;

#[test]
fn cm06_compares_with_the_plan_and_needs_the_layers() {
    let layers = |layers: usize, extra: bool| {
        let mut nodes: Vec<(&str, Ns)> = Vec::new();
        for _ in 0..layers {
            nodes.extend([(NORM, us(3)), (GEMM, us(20)), (ALL_REDUCE, us(12)), (GEMM, us(30)), (ALL_REDUCE, us(12))]);
            if extra {
                nodes.push((ALL_REDUCE, us(12)));
            }
        }
        Run::steps(12, move |r, _| {
            r.graph(&nodes, us(1)).token();
        })
    };
    assert!(fires("CM-06", &layers(12, true)));
    assert!(!fires("CM-06", &layers(12, false)));
    assert!(!fires("CM-06", &layers(1, true)), "no layer structure");
}

/// Megatron-LM's forward pass with a loss: 80 of 40 layers, one of the embedding, three of the loss; 84 were 2 too many.
#[test]
fn cm06_leaves_the_embedding_and_a_loss_over_a_divided_vocabulary() {
    let run = |after: usize| {
        let layer = [(NORM, us(3)), (GEMM, us(20)), (ALL_REDUCE, us(12)), (GEMM, us(30)), (ALL_REDUCE, us(12))];
        let mut nodes = vec![(ALL_REDUCE, us(60))];
        nodes.extend(std::iter::repeat_n(layer, 12).flatten());
        nodes.extend(std::iter::repeat_n((ALL_REDUCE, us(60)), after));
        Run::steps(12, move |r, _| {
            r.graph(&nodes, us(1)).token();
        })
    };
    assert!(!fires("CM-06", &run(3)) && fires("CM-06", &run(6)));
}

#[test]
fn cm06_counts_a_reduce_scatter_and_its_all_gather_as_one_all_reduce() {
    const SCATTER: &str = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    const GATHER: &str = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    let layers = |each: &[(&'static str, Ns)]| {
        let layer = [(NORM, us(3)), (GEMM, us(20)), (GATHER, us(6)), (GEMM, us(30)), (SCATTER, us(6))];
        let nodes: Vec<_> = std::iter::repeat_n([&layer, each].concat(), 12).flatten().collect();
        Run::steps(12, move |r, _| {
            r.graph(&nodes, us(1)).token();
        })
    };
    let rest = [(GATHER, us(6)), (SORT, us(8)), (SCATTER, us(6))];
    assert!(!fires("CM-06", &layers(&rest)), "two pairs of each layer");
    assert!(fires("CM-06", &layers(&[&rest[..], &rest].concat())), "three");
}

#[test]
fn cm06_counts_the_layers_of_a_repeat_that_holds_two() {
    const ATTENTION: &str = "void vllm::paged_attention_v1_kernel<__nv_bfloat16, 128, 16>";
    let pairs = |attention: &'static str| {
        let half = [(NORM, us(3)), (GEMM, us(20)), (attention, us(9)), (ALL_REDUCE, us(12)), (GEMM, us(30))];
        let other = [(NORM, us(3)), (GEMM, us(20)), (attention, us(9)), (ALL_REDUCE, us(12)), (SORT, us(8))];
        let end = [(ALL_REDUCE, us(12))];
        let layers = half.iter().chain(&end).chain(&other).chain(&end).copied();
        let nodes: Vec<(&str, Ns)> = std::iter::repeat_n(layers, 12).flatten().collect();
        Run::steps(12, move |r, _| {
            r.graph(&nodes, us(1)).token();
        })
    };
    assert!(!fires("CM-06", &pairs(ATTENTION)), "two of each layer");
    assert!(fires("CM-06", &pairs(NORM)), "nothing says that a repeat is two layers");
}

#[test]
fn cm11_blames_collectives_only_if_other_launches_are_faster() {
    let run = |before_comm: Ns, before_other: Ns| {
        Run::steps(12, move |r, _| {
            for _ in 0..8 {
                r.think(before_other).launch(GEMM, us(10)).think(before_comm).launch(ALL_REDUCE, us(12));
            }
            r.token();
        })
    };
    assert!(fires("CM-11", &run(us(60), us(1))));
    assert!(!fires("CM-11", &run(us(60), us(60))));
    assert!(!fires("CM-11", &run(us(1), us(1))));
}

#[test]
fn cm05_needs_work_that_nothing_ties_to_the_transfer() {
    // A product, a collective on queue 20, and a product on queue `side` whose turn comes too late.
    let run = |tied: bool, side: i64| {
        Run::steps(12, move |r, _| {
            for _ in 0..4 {
                let at = r.host.max(r.device);
                r.script.launch_on(20, (at, at + us(4)), GEMM, (at + us(8), at + us(60)));
                r.script.launch_on(20, (at + us(4), at + us(6)), ALL_REDUCE, (at + us(61), at + us(101)));
                if tied {
                    r.script.call("cudaEventRecord", (at + us(7), at + us(8)));
                    r.script.call("cudaStreamWaitEvent", (at + us(8), at + us(9)));
                }
                r.script.launch_on(side, (at + us(10), at + us(12)), GEMM, (at + us(103), at + us(143)));
                (r.host, r.device) = (at + us(20), at + us(143));
            }
            r.host = r.device;
            r.token();
        })
    };
    let free = run(false, 9);
    assert!(fires("CM-05", &free));
    assert!(matches!(&check("CM-05", &free)[0].changes[0].1.edits[..], [Edit::Aside(ops)] if !ops.is_empty()));
    assert!(!fires("CM-05", &run(true, 9)), "an event recorded after the transfer was waited for");
    assert!(!fires("CM-05", &run(false, 20)), "the transfer's own queue");
}

#[test]
fn cm05_knows_work_before_a_collective_by_the_same_kernel_beside_another() {
    const SIDE: &str = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x32x64";
    // A product, the side product and a collective; every other time the side product runs beside it on queue 9.
    let run = |[needed, before]: [&'static str; 2], overlaps: bool, side: &'static str| {
        Run::steps(12, move |r, _| {
            for layer in 0..8 {
                let at = r.host.max(r.device);
                let beside = overlaps && layer % 2 == 0;
                let first = if beside { needed } else { before };
                r.script.launch_on(20, (at, at + us(2)), first, (at + us(8), at + us(40)));
                let after = if beside {
                    r.script.launch_on(9, (at + us(2), at + us(4)), side, (at + us(41), at + us(61)));
                    at + us(41)
                } else {
                    r.script.launch_on(20, (at + us(2), at + us(4)), side, (at + us(41), at + us(61)));
                    at + us(62)
                };
                r.script.launch_on(20, (at + us(4), at + us(6)), ALL_REDUCE, (after, after + us(20)));
                (r.host, r.device) = (at + us(10), after + us(22));
            }
            r.host = r.device;
            r.token();
        })
    };
    let found = check("CM-05", &run([GEMM, GEMM], true, SIDE));
    let [one] = found.as_slice() else { panic!("{} findings", found.len()) };
    let resized =
        |edit: &Edit| matches!(edit, Edit::Resize(ops) if ops.len() >= 11 * 4 && ops.iter().all(|(_, ns)| *ns == 0));
    assert!(matches!(one.changes[0].1.edits.as_slice(), [edit] if resized(edit)), "all of it is hidden: {one:?}");
    assert!(fires("CM-05", &run([GEMM, GEMM], true, SIDE)));
    assert!(!fires("CM-05", &run([GEMM, GEMM], false, SIDE)), "nothing shows that the collective does not need it");
    assert!(!fires("CM-05", &run([SIDE, SIDE], true, SIDE)), "one kernel, and the collective needs one of the two");
    assert!(!fires("CM-05", &run([GEMM, NORM], true, SIDE)), "the product is what the collective sums");
}

#[test]
fn cm13_counts_point_to_point_transfers_that_nothing_hides() {
    const SEND: &str = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
    let run = |name: &'static str, ns: Ns, pipeline: bool| {
        Run::steps(12, move |r, i| {
            if pipeline && i == 0 {
                r.script.builder.manifest("parallel.pp", "4", model::Provenance::Declared);
            }
            r.graph(&[(GEMM, us(50)); 10], us(1)).launch(name, ns).token();
        })
    };
    assert!(!fires("CM-13", &run(SEND, us(60), false)), "nothing shows what they carry, nor for whom one waits");
    assert!(!fires("CM-13", &run(SEND, us(60), true)), "activations of a pipeline");
    let shown = |ns: Ns, sends: usize, connector: bool, separate: bool| {
        Run::steps(12, move |r, i| {
            if separate && i == 0 {
                r.script.builder.manifest("parallel.pd_separation", "yes", model::Provenance::Declared);
            }
            if connector {
                r.work(model::Category::PythonFrame, "kv_connector/v1/nixl.py(12): wait_for_layer_load", us(1));
            }
            for _ in 0..6 {
                r.graph(&[(NORM, us(3)), (GEMM, us(50)), (GEMM, us(40))], us(1));
                if sends == 6 {
                    r.launch(SEND, ns / 6);
                }
            }
            if sends == 1 {
                r.launch(SEND, ns);
            }
            r.token();
        })
    };
    assert!(fires("CM-13", &shown(us(60), 1, false, true)), "the run says so");
    assert!(fires("CM-13", &shown(us(60), 1, true, false)), "a connector");
    assert!(!fires("CM-13", &shown(us(60), 1, false, false)));
    assert!(!fires("CM-13", &shown(us(5), 1, true, true)), "below 3 %");
    let advice = check("CM-13", &shown(us(60), 1, true, false));
    assert!(!advice[0].remedy.is_empty() && advice[0].remedy.iter().all(|r| r.text_en.contains("KV cache")));
    let copies = Run::steps(12, |r, _| {
        r.graph(&[(GEMM, us(50)); 10], us(1)).copy("cudaMemcpyPeerAsync", us(5), "PtoP", "device", us(60)).token();
    });
    assert!(fires("CM-13", &copies));
}

/// Two stages of a pipeline: the second waits for the first in each step, then the data takes `transfer` ns.
fn stages(transfer: Ns, bytes: i64) -> (model::Trace, crate::analysis::Analysis) {
    const SEND: &str = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
    let mut s = crate::analysis::script::Script::default();
    for rank in 0..2 {
        s.rank(rank).chip("NVIDIA H100 80GB HBM3");
        for step in 0..16 {
            let t = step * us(2_000);
            s.host(model::Category::UserRange, "execute_context_0(0)_generation_4(4)", (t, t + us(1_900)));
            let sent = (t + us(900), t + us(900) + transfer);
            if rank == 0 {
                s.launch((t, t + us(2)), GEMM, (t + us(10), t + us(890)));
                s.exchange((t + us(2), t + us(4)), ("send", SEND, bytes), ("pp", 2), None, sent);
            } else {
                s.exchange((t, t + us(2)), ("recv", SEND, bytes), ("pp", 2), None, (t + us(10), sent.1));
                s.launch((t + us(2), t + us(4)), GEMM, (sent.1 + us(2), sent.1 + us(600)));
            }
        }
    }
    s.analyze()
}

#[test]
fn cm13_counts_what_stages_send_and_not_how_long_one_waits_for_the_other() {
    assert!(!fires("CM-13", &stages(us(20), 262_144)), "waiting 890 of 2 000 µs is the pipeline's own");
    assert!(!fires("CM-01", &stages(us(20), 262_144)), "and makes no stage late");
    let slow = stages(us(300), 262_144);
    assert!(fires("CM-13", &slow));
    let found = check("CM-13", &slow);
    assert!(found.iter().all(|f| f.trigger.value < 0.2), "{}", found[0].trigger.value);
    assert!(found[0].remedy.iter().all(|r| r.text_en.contains("stages")));
}

/// Four ranks on one node whose steps hold eight collectives each by `kernel`: what it does, its bytes and its transfer.
fn linked(kinds: &[(&'static str, &'static str, i64, Ns)], chip: &str) -> (model::Trace, crate::analysis::Analysis) {
    let mut s = crate::analysis::script::Script::default();
    for rank in 0..4 {
        s.rank(rank).chip(chip);
        let mut t = 0;
        for _ in 0..16 {
            let from = t;
            for i in 0..8 {
                let (op, kernel, bytes, transfer) = kinds[i % kinds.len()];
                // The last rank is late in each.
                let late = if rank == 3 { us(7) } else { 0 };
                s.launch((t, t + us(2)), GEMM, (t + us(4), t + us(60) + late));
                let all = t + us(70);
                let span = (t + us(62) + late, all + transfer);
                s.exchange((t + us(2), t + us(4)), (op, kernel, bytes), ("tp", 4), None, span);
                t = span.1 + us(2);
            }
            s.host(model::Category::UserRange, "execute_context_0(0)_generation_32(32)", (from, t));
        }
    }
    s.analyze()
}

const H100: &str = "NVIDIA H100 80GB HBM3";
const RING: &str = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

#[test]
fn cm02_holds_transfers_of_known_size_against_the_published_link() {
    // 524 288 bytes take some 17 µs by the model of NCCL.
    let run = |transfer, chip| linked(&[("allreduce", RING, 524_288, transfer)], chip);
    assert!(fires("CM-02", &run(us(100), H100)));
    assert!(!fires("CM-02", &run(us(25), H100)), "a healthy transfer");
    assert!(!fires("CM-02", &run(us(100), "NVIDIA L40S")), "a bus that others share");
    assert!(!fires("CM-02", &run(us(100), "some device")), "nothing is published");
    let some = [("allreduce", RING, 524_288, us(25)), ("allreduce", RING, 524_288, us(100))];
    assert!(!fires("CM-02", &linked(&some, H100)), "some are fast: rule CM-07's");
    let found = check("CM-02", &run(us(100), H100));
    let [Edit::Transfer(worst), Edit::Hoped(best)] = &found[0].changes[0].1.edits[..] else { panic!("{found:?}") };
    let Edit::Transfer(best) = &**best else { panic!("{best:?}") };
    assert!(best.iter().all(|(_, ns)| (us(15)..us(20)).contains(ns)), "{best:?}");
    assert!(worst.iter().zip(best).all(|((_, worst), (_, best))| (worst - 2 * best).abs() <= 1));
}

/// One all-gather of the logits was found at a fiftieth of the link, and the all-reduces of every layer on it passed for healthy.
#[test]
fn cm02_counts_all_that_crosses_a_link_that_one_kind_proves_slow() {
    const GATHER: &str = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    // At 8 GB/s: 8 MiB × 3/4 take 786 µs, 64 KiB × 3/2 some 12 µs beside a start of 10.
    let reduce = ("allreduce", RING, 65_536, us(22));
    let both = check("CM-02", &linked(&[("_allgather_base", GATHER, 8 << 20, us(790)), reduce], H100));
    let [Edit::Transfer(worst), Edit::Hoped(_)] = &both[0].changes[0].1.edits[..] else { panic!("{both:?}") };
    let shorter = worst.iter().filter(|(_, ns)| (us(14)..us(18)).contains(ns)).count();
    assert_eq!((worst.len(), shorter), (8 * 15, 4 * 15), "of the steps that count: {worst:?}");
    assert!(!fires("CM-02", &linked(&[reduce], H100)), "alone they tell nothing");
    let healthy = ("allreduce", RING, 65_536, us(11));
    let one = check("CM-02", &linked(&[("_allgather_base", GATHER, 8 << 20, us(790)), healthy], H100));
    let [Edit::Transfer(of), _] = &one[0].changes[0].1.edits[..] else { panic!("{one:?}") };
    assert_eq!(of.len(), 4 * 15, "those that are faster than that bandwidth allows do not cross it");
}

#[test]
fn cm03_is_about_many_messages_that_are_all_latency_and_promises_nothing() {
    let run = |bytes, kernel| linked(&[("allreduce", kernel, bytes, us(20))], H100);
    assert!(fires("CM-03", &run(65_536, RING)));
    assert!(!fires("CM-03", &run(8 << 20, RING)), "a large message");
    let own = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 4>(vllm::RankData*)";
    assert!(!fires("CM-03", &run(65_536, own)), "a kernel of one shot already");
    let found = check("CM-03", &run(65_536, RING));
    assert!(matches!(&found[0].changes[0].1.edits[..], [Edit::Hoped(_)]));
}

#[test]
fn cm04_needs_a_larger_message_that_is_faster_or_a_protocol_that_its_name_shows() {
    let tree = "ncclDevKernel_AllReduce_Sum_bf16_TREE_LL(ncclDevKernelArgsStorage<4096ul>)";
    let two = |small, large| linked(&[("allreduce", tree, 262_144, small), ("allreduce", RING, 524_288, large)], H100);
    assert!(fires("CM-04", &two(us(60), us(25))));
    assert!(!fires("CM-04", &two(us(25), us(60))), "the larger one takes longer");
    let one = |kernel, transfer| linked(&[("allreduce", kernel, 32_768, transfer)], H100);
    let simple = "ncclKernel_AllReduce_RING_SIMPLE_Sum_half(ncclDevComm*)";
    assert!(fires("CM-04", &one(simple, us(32))), "its latency by hop on a small message");
    assert!(!fires("CM-04", &one(simple, us(12))), "faster than its model");
    assert!(!fires("CM-04", &one(RING, us(32))), "LL stands in every name");
}

/// Two ranks whose steps hold collectives; rank 0 waits in each for `late` times what rank 1 has more than it. The load is
/// that of the experts, or the batch.
fn pair(
    late: i64,
    experts: bool,
    load: impl Fn(usize) -> [u32; 2] + Copy + 'static,
) -> (model::Trace, crate::analysis::Analysis) {
    let run = |me: usize| {
        Run::batches(30, move |r, i| {
            let more = i64::from(load(i)[1]) - i64::from(load(i)[0]);
            let waits = if me == 0 { us(late) * more.max(0) } else { 0 };
            // Engines count a step when they schedule it, before the range that marks it.
            r.script.counter("moe_tokens", r.host - 1, f64::from(load(i)[me]));
            r.graph(&[(GEMM, us(20)), (ALL_REDUCE, us(10)), (GEMM, us(20)), (ALL_REDUCE, us(10) + waits)], us(1))
                .token();
            if experts { 4 } else { load(i)[me] }
        })
    };
    let (mut first, second) = (run(0), run(1));
    let process = model::ProcessId(1);
    for mut counter in second.0.counters {
        counter.process = process;
        counter.name = first.0.counters[0].name;
        first.0.counters.push(counter);
    }
    let mut rank = second.1.ranks.into_iter().next().unwrap();
    (rank.rank, rank.process) = (1, process);
    first.1.ranks.push(rank);
    first
}

#[test]
fn cm09_and_cm10_need_waiting_that_follows_the_load() {
    let varying = |i: usize| [4, 4 + 2 * (i as u32 % 4)];
    assert!(fires("CM-09", &pair(20, true, varying)));
    assert!(!fires("CM-09", &pair(0, true, varying)), "nobody waits");
    assert!(!fires("CM-09", &pair(20, true, |_| [4, 4])), "the same load");
    assert!(fires("CM-09", &pair(20, true, |i| [0, 4 + 2 * (i as u32 % 4)])), "no tokens at all are a load too");
    assert!(fires("CM-10", &pair(20, false, |_| [4, 8])));
    assert!(!fires("CM-10", &pair(0, false, |_| [4, 8])), "nobody waits");
    assert!(!fires("CM-10", &pair(20, false, |_| [7, 8])), "nearly the same batch");
}

#[test]
fn more_tokens_from_a_larger_batch_are_no_busier_experts() {
    assert!(!fires("CM-09", &pair(20, false, |_| [4, 8])), "as many tokens per sequence");
    assert!(fires("CM-10", &pair(20, false, |_| [6, 8])), "a third more than the other of two ranks");
    let found = check("CM-10", &pair(20, false, |_| [4, 8]));
    assert_eq!(found[0].ranks, [1], "the loaded rank is the one to change");
}

/// Steps whose all-reduce holds a recorded wait for `peer` of `wait` ns and a transfer of 50 µs.
fn recorded(peer: u32, wait: Ns) -> (model::Trace, crate::analysis::Analysis) {
    use model::{Category, Detail};
    Run::steps(12, move |r, _| {
        r.launch(GEMM, us(100)).launch(ALL_REDUCE, wait + us(50));
        let end = r.device;
        let at = (end - us(50) - wait, end - us(50));
        r.script.inside(7, Category::DeviceSync, "Notify_Wait", at, Some(Detail::Peer(peer)));
        r.script.inside(7, Category::DeviceOther, "Memcpy", (end - us(50), end), None);
        r.token();
    })
}

#[test]
fn cm14_names_the_rank_outside_the_capture_that_is_waited_for() {
    let found = check("CM-14", &recorded(5, us(400)));
    let [finding] = found.as_slice() else { panic!("{} findings", found.len()) };
    assert!(finding.claim.render(crate::i18n::Lang::En, |v| format!("{v:?}")).contains("\"5\""));
    assert!(finding.trigger.value > 0.5 && finding.trigger.value < 0.8, "{}", finding.trigger.value);
    assert!(!fires("CM-14", &recorded(0, us(400))), "that rank is in the capture");
    assert!(!fires("CM-14", &recorded(5, us(5))), "too little");
}

/// Two stages of which the second computes `layers` times a layer of the first and, if so, a product of its own.
fn pipeline(layers: i64, head: bool) -> (model::Trace, crate::analysis::Analysis) {
    const SEND: &str = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
    const HEAD: &str = "nvjet_tst_64x8_64x16_4x1_v_bz_TNT";
    let mut s = crate::analysis::script::Script::default();
    let layer = us(200);
    let slow = layers * layer + if head { 3 * layer } else { 0 };
    let period = slow.max(2 * layer) + us(50);
    for rank in 0..2 {
        s.rank(rank).chip("NVIDIA H100 80GB HBM3");
        for step in 0..16 {
            let t = step * period;
            // The first stage is done early and waits until the second one takes what it sends.
            let (begun, sent) = (t + period, t + period + us(20));
            let own = if rank == 0 { t + us(30) } else { t + us(25) };
            s.host(model::Category::UserRange, "execute_context_0(0)_generation_4(4)", (own - 8, own + us(20)));
            let (count, first) = if rank == 0 { (2, own + us(1)) } else { (layers, own + us(1)) };
            for i in 0..count {
                s.launch((own + i, own + i + 1), GEMM, (first + i * layer, first + (i + 1) * layer));
            }
            let mut end = first + count * layer;
            if rank == 1 && head {
                s.launch((own + 50, own + 51), HEAD, (end, end + 3 * layer));
                end += 3 * layer;
            }
            let (name, from) = if rank == 0 { ("send", end + 10) } else { ("recv", begun.max(end + 10)) };
            s.exchange((own + 60, own + 61), (name, SEND, 4_096), ("pp", 2), Some(step), (from, sent));
        }
    }
    s.analyze()
}

#[test]
fn cm15_names_the_slow_stage_and_what_makes_it_slow() {
    let said = |of: &(model::Trace, crate::analysis::Analysis)| -> Vec<(Vec<u32>, String)> {
        let render = |f: &crate::diagnose::Finding| f.claim.render(crate::i18n::Lang::En, |v| format!("{v:?}"));
        check("CM-15", of).iter().map(|f| (f.ranks.clone(), render(f))).collect()
    };
    let layers = said(&pipeline(6, false));
    assert!(layers.len() == 1 && layers[0].0 == [1] && layers[0].1.contains("more layers"), "{layers:?}");
    let head = said(&pipeline(2, true));
    assert!(head.len() == 1 && head[0].0 == [1] && head[0].1.contains("LM head"), "{head:?}");
    assert!(!fires("CM-15", &pipeline(2, false)), "even stages");
}

/// All of the bubble was laid to the uneven stages; with two micro-batches a third of the time stands still with even ones too.
#[test]
fn cm15_sets_the_filling_of_the_pipeline_apart() {
    let mut s = crate::analysis::script::Script::default();
    let send = "hcom_batchSendRecv";
    for rank in 0..2 {
        s.rank(rank);
        for step in 0..4 {
            let t = us(2_000) * step;
            s.host(model::Category::UserRange, "ProfilerStep#3", (t, t + us(1_900)));
            // Micro-batches of 100 µs on the first stage and of 300 on the second, forward and backward.
            let parts: [(Ns, Ns); 4] = match rank {
                0 => [(0, 100), (110, 210), (800, 900), (1_400, 1_500)],
                _ => [(110, 410), (420, 720), (730, 1_030), (1_040, 1_340)],
            };
            for (i, (from, to)) in parts.into_iter().enumerate() {
                let call = t + us(1) + i as Ns;
                s.launch((call, call + 1), if i < 2 { GEMM } else { "flash_bwd_dq" }, (t + us(from), t + us(to)));
            }
            let at = match rank {
                0 => [(100, 110), (211, 420), (901, 1_350)],
                _ => [(0, 110), (411, 420), (1_341, 1_350)],
            };
            for (i, (from, to)) in at.into_iter().enumerate() {
                let call = t + us(20) + i as Ns;
                s.exchange(
                    (call, call + 1),
                    (send, send, 4_096),
                    ("pp", 2),
                    Some(3 * step + i as Ns),
                    (t + us(from), t + us(to)),
                );
            }
        }
    }
    let found = check("CM-15", &s.analyze());
    let [finding] = found.as_slice() else { panic!("{} findings", found.len()) };
    let said = finding.claim.render(crate::i18n::Lang::En, |v| format!("{v:?}"));
    // A micro-batch of even stages takes 200 + 200 µs: that long one of them stands still.
    for part in ["(\"count\", Count(2))", "(\"inherent\", Ns(400000))", "(\"part\", Share(0.333"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
