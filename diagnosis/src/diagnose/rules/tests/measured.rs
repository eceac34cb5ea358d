//! Measurements of kernels as evidence for operator rules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Conditions, KernelSummary, Metric, Ns, Trace, TraceSink};

use super::super::testing::{GEMM, Run, check, diagnosis, fires, us};
use crate::{
    analysis::{Analysis, Confidence},
    diagnose::Abstention,
    i18n::Lang,
};

const SLOW: &str = "void my::scan_kernel<float, 4>(float*)";
const ATTENTION: &str = "void vllm::paged_attention_v1_kernel<__nv_bfloat16, 128, 16>";
const PROMPT: &str = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn";
const DECODE: &str = "execute_context_0(0)_generation_4(4)";
const PREFILL: &str = "execute_context_1(2048)_generation_0(0)";
const LONG_CONTEXT: &str = "execute_0_context_0(sq0sk0)_generation_4(sq4sk65536)";

/// Four kernels of so many blocks per step beside a product, and what was measured of such a kernel.
fn run(label: &str, kernel: &str, ns: Ns, blocks: u32, measured: &[(Metric, f64)]) -> (Trace, Analysis) {
    Run::labelled(label, 12, |r, i| {
        if i == 0 && !measured.is_empty() {
            let (name, reason) = (r.script.builder.intern(kernel), r.script.builder.intern("long_scoreboard"));
            r.script.builder.summary(KernelSummary {
                grid: Some([blocks, 1, 1]),
                metrics: measured.to_vec(),
                stalls: vec![(reason, 9.5)],
                ..KernelSummary::of(name, Conditions::Isolated)
            });
        }
        (0..4).for_each(|_| {
            r.launch("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", us(40)).launch_blocks(kernel, ns, blocks);
        });
        r.token();
    })
}

#[test]
fn op11_needs_long_kernels_of_which_no_unit_is_busy() {
    let (compute, memory) = (Metric::Compute, Metric::Memory);
    let slow = |ns: Ns, measured: &[(Metric, f64)]| run(DECODE, SLOW, ns, 264, measured);
    let bound = slow(us(50), &[(compute, 20.0), (memory, 30.0), (Metric::Occupancy, 12.0)]);
    assert!(fires("OP-11", &bound));
    let found = &check("OP-11", &bound)[0];
    let told: Vec<String> = found.evidence.iter().map(|e| e.what.render(Lang::En, |v| format!("{v:?}"))).collect();
    assert!(told.iter().any(|what| what.contains("long_scoreboard")), "{told:?}");
    assert!(told.iter().any(|what| what.contains("occupancy")), "{told:?}");
    // Half of the 0.6 that is within reach: half of four times 50 µs goes away.
    assert_eq!(found.changes[0].1.removes, us(100));
    assert!(!fires("OP-11", &slow(us(50), &[(compute, 20.0), (memory, 61.0)])), "memory is busy");
    assert!(!fires("OP-11", &slow(us(50), &[(compute, 20.0), (memory, 30.0), (Metric::Scalar, 90.0)])), "a busy unit");
    assert!(!fires("OP-11", &slow(us(50), &[(compute, 20.0)])), "nothing is known of memory");
    assert!(!fires("OP-11", &slow(us(15), &[(compute, 20.0), (memory, 30.0)])), "bound by its floor");
}

#[test]
fn op11_abstains_without_measurements_of_this_captures_kernels() {
    let abstains = |capture: &(Trace, Analysis)| {
        diagnosis(capture).abstained.iter().any(|Abstention { rule, .. }| *rule == "OP-11")
    };
    assert!(abstains(&run(DECODE, SLOW, us(50), 264, &[])));
    assert!(abstains(&run(DECODE, SLOW, us(50), 264, &[(Metric::Compute, 20.0)])), "nothing is known of memory");
    assert!(!abstains(&run(DECODE, SLOW, us(50), 264, &[(Metric::Compute, 20.0), (Metric::Memory, 90.0)])));
}

#[test]
fn op09_believes_the_cores_that_were_measured() {
    let tail = |measured: &[(Metric, f64)]| run(PREFILL, GEMM, us(50), 139, measured);
    assert!(fires("OP-09", &tail(&[])));
    assert!(!fires("OP-09", &run(DECODE, GEMM, us(50), 139, &[])), "four rows wait for memory, tail or not");
    assert!(!fires("OP-09", &tail(&[(Metric::CoresBusy, 90.0)])), "the cores share the last wave");
    assert!(!fires("OP-09", &tail(&[(Metric::Memory, 85.0)])), "memory is saturated all the same");
    let idle = tail(&[(Metric::CoresBusy, 55.0), (Metric::Memory, 40.0)]);
    let found = &check("OP-09", &idle)[0];
    assert_eq!((found.changes[0].1.removes, found.competing[0].refuted), (4 * us(50) * 45 / 100, true));
    assert!(!check("OP-09", &tail(&[]))[0].competing[0].refuted);
}

#[test]
fn op10_believes_the_rate_that_was_measured() {
    let product = |measured: &[(Metric, f64)]| run(DECODE, PROMPT, us(50), 64, measured);
    assert_eq!(check("OP-10", &product(&[]))[0].confidence, Confidence::Low);
    assert!(!fires("OP-10", &product(&[(Metric::Dram, 85.0)])), "it keeps up with memory");
    assert!(check("OP-10", &product(&[(Metric::Dram, 30.0)]))[0].confidence > Confidence::Low);
}

#[test]
fn op12_believes_the_units_that_were_measured() {
    let attention = |measured: &[(Metric, f64)]| run(LONG_CONTEXT, ATTENTION, us(30), 32, measured);
    assert!(fires("OP-12", &attention(&[])));
    assert!(!fires("OP-12", &attention(&[(Metric::Memory, 45.0), (Metric::Compute, 10.0)])), "few blocks are enough");
    assert!(!fires("OP-12", &attention(&[(Metric::Memory, 10.0), (Metric::Compute, 70.0)])), "bound by compute");
    let few = attention(&[(Metric::Memory, 14.0), (Metric::Compute, 10.0)]);
    assert!(fires("OP-12", &few) && check("OP-12", &few)[0].competing[1].refuted);
}

#[test]
fn op21_names_kernels_in_which_only_the_scalar_unit_works() {
    let (compute, memory) = (Metric::Compute, Metric::Memory);
    let of = |scalar, memory_use| {
        run(DECODE, SLOW, us(50), 64, &[(compute, 2.0), (memory, memory_use), (Metric::Scalar, scalar)])
    };
    let bound = of(99.0, 3.0);
    assert!(fires("OP-21", &bound));
    assert!(!diagnosis(&bound).findings.iter().any(|f| f.rule == "OP-11"), "the closer cause stands");
    assert!(!fires("OP-21", &of(60.0, 3.0)) && !fires("OP-21", &of(85.0, 95.0)));
}
