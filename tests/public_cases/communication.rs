//! Cases whose cause lies between the ranks.

use super::{
    Case, Expect,
    kineto::{Capture, GEMM, NORM, us},
};

/// Durations of one all-reduce on four ranks: rank 3 came first and waited.
const DURATIONS: [i64; 4] = [10_500, 11_200, 12_000, 72_160];

fn one_rank_waits_for_the_others() -> Capture {
    let mut collective = 0;
    Capture::of(30, |r, _| {
        let (host, device) = (r.host, r.device);
        let (mut hosts, mut devices) = (host, device);
        for rank in 0..4 {
            (r.rank, r.host, r.device) = (rank, host, device);
            for layer in 0..8 {
                let last = device.max(host) + us(60) + layer * us(250) + us(150);
                let start = last + DURATIONS[0] - DURATIONS[rank as usize];
                let before = start - r.device.max(r.host) - us(25);
                r.launch(NORM, us(8)).launch(GEMM, before.max(us(5)));
                r.all_reduce(start, DURATIONS[rank as usize], 4, collective + layer);
            }
            r.token();
            (hosts, devices) = (hosts.max(r.host), devices.max(r.device));
        }
        collective += 8;
        (r.rank, r.host, r.device) = (0, hosts, devices);
        super::kineto::label(4, 500)
    })
}

fn one_rank_of_two() -> Capture {
    let mut seq = 0;
    Capture::decode(20, 1, 500, |r, _| {
        for _ in 0..16 {
            r.launch(NORM, us(10)).launch(GEMM, us(150));
            seq += 1;
            let start = r.device.max(r.host) + us(8);
            r.all_reduce(start, us(500), 2, seq);
        }
        r.token();
    })
}

pub const CASES: &[Case] = &[
    Case::unmet(
        26,
        "sglang on V100: NCCL 20 µs against 4 µs one-shot",
        "CM-02 and CM-04 need a probe of the link at this size",
    ),
    Case::unmet(27, "vllm #56128", "CM-04 needs probes of both algorithms on the machine"),
    Case {
        world: 4,
        ..Case::new(30, "vllm RFC #52911", Expect::Rules("communication", &["CM-12"]), one_rank_waits_for_the_others)
    },
    Case::unmet(
        32,
        "xLLM #1988",
        "CM-02 needs a probe of the link; the expansion mode of the collective is in no record",
    ),
    Case { world: 2, ..Case::new(43, "gpt-fast #111", Expect::Undecided, one_rank_of_two) },
    Case::unmet(
        48,
        "sglang #13206, #5309",
        "CM-09 needs the tokens of each expert, which only the scheduler's log holds",
    ),
];
