//! Cases whose cause lies between the ranks.

use super::{
    Case, Expect,
    kineto::{Capture, GEMM, NORM, label, us},
};

/// Durations of one all-reduce on four ranks: rank 3 came first and waited.
const DURATIONS: [i64; 4] = [10_500, 11_200, 12_000, 72_160];

/// Eight layers per step, 250 µs apart, each ending in an all-reduce that ends everywhere at once.
fn one_rank_waits_for_the_others() -> Vec<Capture> {
    let rank = |rank: usize| {
        let mut seq = 0;
        Capture::of_rank((rank as i64, 4), 30, move |r, i| {
            let begin = us(2_500) * i as i64;
            for layer in 1..=8 {
                let start = begin + us(250) * layer + us(150) - DURATIONS[rank];
                r.host = start - us(145);
                seq += 1;
                r.launch(NORM, us(8)).launch(GEMM, us(120)).all_reduce(start, DURATIONS[rank], seq);
            }
            r.token();
            label(4, 500)
        })
    };
    (0..4).map(rank).collect()
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
            let begin = us(6_000) * i as i64;
            r.host = begin;
            r.counter("moe_tokens", expert_tokens(rank, i));
            for layer in 0..8 {
                // A microsecond of expert work for a token; the most loaded rank comes last.
                let ready = |of: usize| begin + us(600) * layer + us(200) + us(expert_tokens(of, i));
                let (start, end) = (ready(rank), ready(1) + us(15));
                r.host = begin + us(600) * layer + us(50);
                seq += 1;
                r.launch(NORM, us(8)).launch("fused_moe_kernel", us(expert_tokens(rank, i)));
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
    Case::new(
        30,
        "vllm RFC #52911",
        Expect::Rules("communication", &["CM-12", "CM-01"]),
        one_rank_waits_for_the_others,
    )
    .missed("the hand-made ranks are host-bound as well; RT-01 and RT-12, worth more by replay, come first"),
    Case::unmet(
        32,
        "xLLM #1988",
        "CM-02 needs a probe of the link; no record holds the expansion mode of a collective",
    ),
    Case::new(43, "gpt-fast #111", Expect::Undecided, one_rank_of_two),
    Case::new(48, "sglang #13206, #5309", Expect::Rules("communication", &["CM-09"]), one_rank_gets_the_tokens)
        .missed("the hand-made steps are host-bound as well; RT-01 and RT-12 come before CM-01, which names the rank"),
];
