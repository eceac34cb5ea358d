//! Cases whose cause lies in the operators.

use super::{
    Case, Expect,
    kineto::{ATTENTION, Capture, GEMM, MUL, NORM, ms, us},
};

fn index_put_on_the_ai_cpu() -> Vec<Capture> {
    vec![Capture::decode(20, 4, 500, |r, _| {
        for _ in 0..10 {
            r.launch(GEMM, ms(1)).launch(NORM, us(20));
        }
        r.launch("aicpu_IndexPut", us(9640)).launch(GEMM, ms(1)).token();
    })]
}

fn scatter_elements() -> Vec<Capture> {
    // 60 layers, 26 ms too many.
    vec![Capture::decode(10, 16, 500, |r, _| {
        for _ in 0..60 {
            r.launch(NORM, us(8)).launch(GEMM, us(150)).launch("ScatterElements", us(440)).launch(ATTENTION, us(80));
            r.launch(GEMM, us(250));
        }
        r.token();
    })]
}

fn weights_in_nd() -> Vec<Capture> {
    vec![Capture::decode(20, 8, 500, |r, _| {
        for _ in 0..30 {
            r.launch(NORM, us(8)).launch("TransData", us(25)).launch(GEMM, us(120)).launch(ATTENTION, us(40));
        }
        r.token();
    })]
}

fn one_block_per_head() -> Vec<Capture> {
    vec![Capture::decode(20, 1, 32_768, |r, _| {
        for _ in 0..30 {
            r.launch(NORM, us(8)).launch(GEMM, us(30)).launch_blocks(ATTENTION, us(120), 32).launch(GEMM, us(60));
        }
        r.token();
    })]
}

fn twenty_kernels_to_merge() -> Vec<Capture> {
    // 212 µs per layer for attention and its merge.
    vec![Capture::decode(10, 8, 8192, |r, _| {
        for _ in 0..30 {
            r.launch(NORM, us(8)).launch(GEMM, us(60)).launch(ATTENTION, us(50));
            (0..20).for_each(|_| {
                r.launch(MUL, us(8));
            });
            r.launch(GEMM, us(90));
        }
        r.token();
    })]
}

pub const CASES: &[Case] = &[
    Case::unmet(
        25,
        "rocm-libraries #9985",
        "OP-02 compares with the library's best kernel for the shape: no capture holds that",
    ),
    Case::new(35, "mstt samples: IndexPut 9.64 ms", Expect::Rules("operator", &["OP-07"]), index_put_on_the_ai_cpu),
    Case::new(36, "vllm-ascend #4154; sglang #12692", Expect::Rules("operator", &["OP-15"]), scatter_elements),
    Case::new(38, "sglang #9025; vllm-ascend #2474, #4878", Expect::Rules("operator", &["OP-05"]), weights_in_nd),
    Case::new(39, "sglang #27786 and others", Expect::Rules("operator", &["OP-12"]), one_block_per_head),
    Case::new(41, "vllm-ascend #16753", Expect::Rules("operator", &["OP-17"]), twenty_kernels_to_merge),
    Case::unmet(
        52,
        "NaN by an RMSNorm in bf16",
        "a numeric fault leaves no trace in time; the comparison of layers' numbers is another command",
    ),
];
