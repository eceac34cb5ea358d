//! Cases whose cause lies between the ranks.

use super::{
    Case, Expect,
    kineto::{ATTENTION, Capture, GEMM, NORM, label, us},
};

/// A layer's all-reduce on eight ranks: how much later than the first a rank comes, its kernel, and before it the main
/// stream's product and attention (CSA top-k and MLA), ns. No rank idles before the all-reduce. Which rank comes last changes
/// from layer to layer.
const ARRIVALS: [(i64, i64, i64, i64); 8] = [
    (63_639, 10_519, 106_553, 75_235),
    (62_142, 11_359, 108_191, 67_114),
    (45_076, 31_159, 92_352, 61_194),
    (0, 72_160, 86_312, 58_955),
    (62_888, 11_359, 112_311, 71_755),
    (51_072, 22_640, 104_432, 68_075),
    (52_979, 21_439, 104_633, 71_434),
    (64_167, 12_119, 105_032, 72_115),
];
/// From the end of a layer to the arrival of the first rank in the next: what the table says that this rank does meanwhile.
const FIRST_ARRIVAL: i64 = us(148);
const LAYERS: i64 = 8;

fn ranks_arrive_apart() -> Vec<Capture> {
    let period = FIRST_ARRIVAL + us(77);
    let rank = |rank: usize| {
        let mut seq = 0;
        Capture::of_rank((rank as i64, 8), 30, move |r, i| {
            let begin = (LAYERS * period + us(40)) * i as i64;
            r.host = begin;
            for layer in 0..LAYERS {
                let (gap, all_reduce, product, attention) = ARRIVALS[(rank + layer as usize) % 8];
                let start = begin + us(10) + layer * period + FIRST_ARRIVAL + gap;
                r.launch(GEMM, product).launch(ATTENTION, attention);
                // What the table leaves out, by which the rank is busy until it arrives.
                let rest = start - r.device - us(1);
                seq += 1;
                r.launch(GEMM, rest).all_reduce(start, all_reduce, seq);
            }
            r.token();
            label(8, 500)
        })
    };
    (0..8).map(rank).collect()
}

fn one_rank_of_two() -> Vec<Capture> {
    let mut seq = 0;
    vec![Capture::of_rank((0, 2), 20, |r, _| {
        for _ in 0..16 {
            r.launch(NORM, us(10)).launch(GEMM, us(150));
            seq += 1;
            let start = r.device.max(r.host) + us(8);
            r.all_reduce(start, us(500), seq);
        }
        r.token();
        label(1, 500)
    })]
}

/// Tokens of the experts of each rank in step `i`: one of them gets twice its share, now more, now less.
fn expert_tokens(rank: usize, i: usize) -> i64 {
    if rank == 1 { 200 + 20 * (i as i64 % 5) } else { 80 }
}

fn one_rank_gets_the_tokens() -> Vec<Capture> {
    let rank = |rank: usize| {
        let mut seq = 0;
        Capture::of_rank((rank as i64, 4), 30, move |r, i| {
            // A microsecond of expert work for a token; the most loaded rank comes last, and all leave together.
            let period = |i| us(expert_tokens(1, i)) + us(8) + us(17);
            let begin = (0..i).map(|earlier| LAYERS * period(earlier) + us(30)).sum();
            r.host = begin;
            r.counter("moe_tokens", expert_tokens(rank, i));
            for layer in 0..LAYERS {
                r.launch(NORM, us(8)).launch("fused_moe_kernel", us(expert_tokens(rank, i)));
                let (start, end) = (r.device + 500, begin + us(7) + period(i) * (layer + 1));
                seq += 1;
                r.all_reduce(start, end - start, seq);
            }
            r.token();
            label(32, 500)
        })
    };
    (0..4).map(rank).collect()
}

pub const CASES: &[Case] = &[
    Case::unmet(
        26,
        "sglang on V100: NCCL 20 µs against 4 µs one-shot",
        "CM-02 and CM-04 need a probe of the link at this size",
    ),
    Case::unmet(27, "vllm #56128", "CM-04 needs probes of both algorithms on the machine"),
    // Only a transfer is communication: the late ranks are busy with longer kernels.
    Case::new(30, "vllm RFC #52911", Expect::Rules("operator", &["CM-12", "CM-01"]), ranks_arrive_apart),
    Case::unmet(
        32,
        "xLLM #1988",
        "CM-02 needs a probe of the link; no record holds the expansion mode of a collective",
    ),
    Case::new(43, "gpt-fast #111", Expect::Undecided, one_rank_of_two),
    Case::new(48, "sglang #13206, #5309", Expect::Rules("communication", &["CM-09"]), one_rank_gets_the_tokens),
];
