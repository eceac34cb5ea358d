//! What takes the most time in the report written by hand.

use model::SliceId;

use diagnosis::largest::{Kind, Largest, LongGap, Over, Row, Samples, Tables};

/// A row of so many that take so long together, the longest so long.
fn row(kind: Kind, [name, of]: [&str; 2], (count, total, max): (u64, i64, i64)) -> Row {
    Row { max: Some(max), longest: Some(SliceId(7)), ..Row::new(kind, name, of, count, total) }
}

pub(super) fn largest() -> Largest {
    let rows = vec![
        Row { named: true, ..row(Kind::Kernel, ["gemm_bf16<128, 128>", "gemm"], (1_200, 9_000_000, 90_000)) },
        Row { exposed: Some(0), ..row(Kind::Call, ["cudaLaunchKernel", "host_api"], (1_200, 6_000_000, 21_000)) },
        Row {
            exposed: Some(9_000_000),
            ..row(Kind::Host, ["model.py(7): forward", "python_frame"], (4, 18_000_000, 5_100_000))
        },
        row(Kind::Idle, ["model.py(7): forward", "python_frame"], (4, 19_000_000, 5_100_000)),
        row(Kind::Idle, ["", "rt.launch_latency"], (80, 500_000, 9_000)),
        Row {
            bytes: Some(4_096),
            rate: Some(0.82e9),
            exposed: Some(4_000),
            ..row(Kind::Copy, ["DtoH device → pageable", "copy.d2h"], (4, 5_000, 1_500))
        },
        Row {
            bytes: Some(65_536),
            rate: Some(12e9),
            exposed: Some(700_000),
            skew: Some((1_500, 30_000)),
            ..row(Kind::Collective, ["allreduce", "comm_allreduce"], (64, 800_000, 40_000))
        },
    ];
    let gap = LongGap {
        start: 1_234_567,
        ns: 5_100_000,
        step: 2,
        owner: Some("model.py(7): forward".into()),
        of: "python_frame".into(),
        ended_by: Some("gemm_bf16<128, 128>".into()),
        slice: Some(SliceId(7)),
    };
    let of_rank = Tables {
        rank: Some(0),
        over: Over::Steps,
        steps: 4,
        time: 40_000_000,
        rows,
        exposed_communication: Some(700_000),
        exposed_copies: Some(4_000),
        gaps: vec![gap],
        outside: Vec::new(),
    };
    let clock = Samples {
        name: "sm_clock".into(),
        unit: "MHz".into(),
        device: Some(0),
        rank: Some(0),
        count: 50,
        inside: 40,
        min: (1_155.0, 2_000_000),
        median: 1_980.0,
        max: (1_980.0, 0),
    };
    Largest { tables: vec![of_rank], samples: vec![clock] }
}
