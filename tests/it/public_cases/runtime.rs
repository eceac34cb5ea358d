//! Cases whose cause lies in the runtime.

use super::{
    Case, Expect,
    kineto::{ATTENTION, Capture, GEMM, NORM, label, ms, us},
};

/// Ten layers of a decode step of about `total` ns of device work.
fn layers(total: i64) -> Vec<(&'static str, i64)> {
    let unit = total / 200;
    [(NORM, unit), (GEMM, 6 * unit), (ATTENTION, 4 * unit), (GEMM, 9 * unit)].repeat(10)
}

/// Eager kernels of `kernel` ns each, the host needing `host` ns for each.
fn eager(run: &mut Capture, kernels: usize, kernel: i64, host: i64) {
    for _ in 0..kernels {
        run.work("cpu_op", "aten::linear", host - us(5)).launch(GEMM, kernel);
    }
}

fn block_832_us() -> Vec<Capture> {
    // 24 kernels, 241 µs of work, 591 µs free: a launch every 34 µs.
    vec![Capture::decode(40, 4, 500, |r, _| {
        eager(r, 24, us(10), us(34));
        r.token();
    })]
}

fn biggest_batches_eager() -> Vec<Capture> {
    vec![Capture::of(60, |r, i| {
        if i % 2 == 0 {
            r.graph(&layers(ms(3))).token();
            return label(16, 500);
        }
        eager(r, 300, us(10), us(75));
        r.token();
        label(27, 500)
    })]
}

fn half_of_the_batches_in_pieces() -> Vec<Capture> {
    vec![Capture::of(60, |r, i| {
        if i % 2 == 0 {
            r.graph(&layers(ms(4))).token();
            return label(8, 500);
        }
        for _ in 0..32 {
            r.work("cpu_op", "vllm::unified_attention", us(150)).graph(&[
                (GEMM, us(60)),
                (ATTENTION, us(30)),
                (GEMM, us(35)),
            ]);
        }
        r.token();
        label(9, 500)
    })]
}

fn long_context_eager() -> Vec<Capture> {
    vec![Capture::decode(20, 4, 60_000, |r, _| {
        for _ in 0..30 {
            r.work("cpu_op", "aten::linear", us(20)).launch(GEMM, us(60)).launch(ATTENTION, us(900));
        }
        r.token();
    })]
}

fn pageable_inputs() -> Vec<Capture> {
    vec![Capture::decode(40, 8, 500, |r, _| {
        r.copy("cudaMemcpyAsync", us(180), "HtoD (Pageable -> Device)", us(6));
        r.copy("cudaMemcpyAsync", us(180), "HtoD (Pageable -> Device)", us(6));
        r.graph(&layers(ms(3))).token();
    })]
}

fn three_syncs_and_a_quarter() -> Vec<Capture> {
    vec![Capture::decode(40, 1, 500, |r, i| {
        let syncs = if i % 4 == 0 { 4 } else { 3 };
        for k in 0..40 {
            r.launch(GEMM, us(60));
            if k % 13 == 12 || (syncs == 4 && k == 5) {
                r.wait().work("cpu_op", "aten::item", us(60));
            }
        }
        r.token();
    })]
}

fn changing_masks() -> Vec<Capture> {
    vec![Capture::decode(400, 1, 500, |r, i| {
        if i >= 20 && i % 40 == 0 {
            r.work("user_annotation", "_compile.compile_inner (dynamo_timed)", ms(120));
            r.call("cudaStreamBeginCapture_v10000", us(20)).think(ms(5)).call("cudaStreamEndCapture_v10000", us(20));
            r.call("cudaGraphInstantiate", ms(8));
        }
        r.graph(&layers(ms(10))).token();
    })]
}

fn http_and_scheduling() -> Vec<Capture> {
    // 38 % on the device, 29 % scheduling, 33 % HTTP, between two steps.
    vec![Capture::decode(40, 8, 500, |r, _| {
        r.work("user_annotation", "scheduler", us(2900)).work("user_annotation", "detokenize and respond", us(3300));
        r.graph(&layers(us(3800))).token();
    })]
}

fn half_on_the_cpu() -> Vec<Capture> {
    vec![Capture::decode(40, 8, 500, |r, _| {
        r.work("user_annotation", "scheduler", ms(5)).graph(&layers(ms(5))).token();
    })]
}

fn cpu_bound_39_ms() -> Vec<Capture> {
    // 25.5 tok/s are 39.2 ms per token; about four times that is what the device needs.
    vec![Capture::decode(20, 1, 500, |r, _| {
        eager(r, 200, us(49), us(196));
        r.token();
    })]
}

fn a_sixth_idle() -> Vec<Capture> {
    // 1.2 times faster with graphs: 16.7 % of the step is the host's.
    vec![Capture::decode(40, 1, 500, |r, _| {
        eager(r, 100, us(40), us(49));
        r.token();
    })]
}

fn second_generation_collections() -> Vec<Capture> {
    vec![Capture::decode(300, 8, 500, |r, i| {
        if i % 100 == 50 {
            r.work("python_function", "Python GC", ms(100 * (1 + i as i64 / 100)));
        }
        r.graph(&layers(ms(15))).token();
    })]
}

fn unseen_token_counts() -> Vec<Capture> {
    vec![Capture::decode(300, 8, 500, |r, i| {
        if i == 200 {
            r.work("python_function", "deep_gemm/jit/compiler.py(120): build", ms(3400));
        }
        r.graph(&layers(ms(20))).token();
    })]
}

fn compiled_while_serving() -> Vec<Capture> {
    vec![Capture::decode(200, 8, 500, |r, i| {
        if i == 0 || i == 130 || i == 145 {
            r.work(
                "python_function",
                "triton/compiler/compiler.py(226): compile",
                ms(if i == 0 { 14_000 } else { 700 }),
            );
            r.call("cuModuleLoadData", ms(2));
        }
        r.graph(&layers(ms(20))).token();
    })]
}

fn a_sync_per_operation() -> Vec<Capture> {
    // 254 waits cost 21 % of the step: 7 µs each on 40 µs of work.
    vec![Capture::decode(20, 1, 500, |r, _| {
        for _ in 0..254 {
            r.launch(GEMM, us(40)).wait();
        }
        r.token();
    })]
}

fn scheduler_sends_in_series() -> Vec<Capture> {
    vec![Capture::decode(40, 8, 500, |r, i| {
        r.work("user_annotation", "scheduler", ms(20 + (i as i64 % 11))).graph(&layers(ms(30))).token();
    })]
}

fn allocations_in_every_step() -> Vec<Capture> {
    vec![Capture::decode(40, 8, 500, |r, _| {
        for _ in 0..4 {
            r.call("cudaMalloc", us(250)).launch(GEMM, us(500)).wait().call("cudaFree", us(150));
        }
        r.token();
    })]
}

fn beyond_256_sequences() -> Vec<Capture> {
    // 250 tokens/s per sequence with graphs, 30 without.
    vec![Capture::of(60, |r, i| {
        if i % 2 == 0 {
            r.graph(&layers(us(3900))).token();
            return label(256, 500);
        }
        eager(r, 300, us(12), us(110));
        r.token();
        label(257, 500)
    })]
}

fn slow_python_submission() -> Vec<Capture> {
    // 11.8 % of the device's time are bubbles between kernels.
    vec![Capture::decode(40, 1, 500, |r, _| {
        eager(r, 120, us(60), us(68));
        r.token();
    })]
}

pub const CASES: &[Case] = &[
    Case::new(1, "vllm-ascend #9404", Expect::Rules("runtime", &["RT-01", "RT-03", "RT-14"]), block_832_us),
    Case::new(2, "vllm-ascend #16049, #16623, #16970", Expect::Rules("runtime", &["RT-02"]), biggest_batches_eager),
    Case::new(4, "vllm PR #53407", Expect::Rules("runtime", &["RT-02", "RT-03"]), half_of_the_batches_in_pieces),
    Case::new(7, "vllm-ascend #7723", Expect::Quiet("runtime"), long_context_eager),
    Case::new(9, "sglang #28491, #21360, #38703", Expect::Rules("runtime", &["RT-11"]), pageable_inputs),
    Case::new(12, "transformers #43089", Expect::Rules("runtime", &["RT-09"]), three_syncs_and_a_quarter),
    Case::new(13, "transformers #32227, #29114", Expect::Rules("runtime", &["RT-05", "RT-06"]), changing_masks),
    Case::new(14, "vLLM v0.6.0 release notes", Expect::Rules("runtime", &["RT-12"]), http_and_scheduling),
    Case::new(15, "SGLang v0.4 release notes", Expect::Rules("runtime", &["RT-12"]), half_on_the_cpu),
    Case::new(16, "gpt-fast", Expect::Rules("runtime", &["RT-14"]), cpu_bound_39_ms),
    Case::new(17, "llama.cpp with CUDA graphs", Expect::Rules("runtime", &["RT-14"]), a_sixth_idle),
    Case::new(18, "sglang #9241, #30693", Expect::Rules("runtime", &["RT-15"]), second_generation_collections),
    Case::new(21, "vllm #56684", Expect::Rules("runtime", &["RT-05"]), unseen_token_counts),
    Case::new(22, "vllm #49349, #43009", Expect::Rules("runtime", &["RT-05", "RT-23"]), compiled_while_serving),
    Case::new(33, "PocketLLM #184", Expect::Rules("runtime", &["RT-09"]), a_sync_per_operation),
    Case::new(45, "gLLM #148", Expect::Rules("runtime", &["RT-12"]), scheduler_sends_in_series),
    Case::new(49, "nano-vllm #175, #176", Expect::Rules("runtime", &["RT-10"]), allocations_in_every_step),
    Case::new(50, "vllm-ascend #14440; imp #926", Expect::Rules("runtime", &["RT-02"]), beyond_256_sequences),
    Case::new(56, "kernel agent on gfx936", Expect::Rules("runtime", &["RT-14", "RT-01"]), slow_python_submission)
        .missed("11.8 % of the step lies below the 15 % of RT-01 and RT-14; its authors count from 10 %"),
];
