#![allow(clippy::unwrap_used)]
use model::{Conditions, KernelSummary, Ns, Provenance, Severity, TraceSink};

use super::totals;
use crate::{
    analysis::script::Script,
    i18n::{Lang, Value},
    platform::Packs,
};

/// Name, kind and total of a row.
type Row<'r> = (&'r str, Conditions, Ns);

fn said(rows: &[Row<'_>], facts: &[(&str, &str)], lost: bool) -> String {
    let mut script = Script::default();
    for (name, conditions, total) in rows {
        let name = script.builder.intern(name);
        let known = KernelSummary::of(name, *conditions);
        script.builder.summary(KernelSummary { count: 1, total: Some(*total), ..known });
    }
    for (key, value) in facts {
        script.builder.manifest(key, value, Provenance::Observed);
    }
    if lost {
        script.builder.stat("x.incomplete_row", Severity::DataLoss, 5, None);
    }
    totals::headline(&script.trace(), &Packs::embedded().unwrap()).unwrap().render(Lang::En, shown)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Message(message) => message.render(Lang::En, shown),
        Value::Text(text) => text.get(Lang::En).to_owned(),
        Value::Kernel(name) | Value::Raw(name) => name.clone(),
        Value::Share(share) => format!("{:.1} %", share * 100.0),
        Value::Ns(ns) => format!("{ns} ns"),
        value => format!("{value:?}"),
    }
}

/// The longest single name was said to be where the time is, although another operator's many kernels have more.
#[test]
fn sums_name_the_operator_with_the_most_time() {
    let run = |name, ns| (name, Conditions::Run, ns);
    let silu = run("void silu_and_mul_kernel<bf16>", 400);
    let said = said(&[run("gemm_nt_a", 300), run("gemm_nt_b", 350), silu, run("gemm_nt_b", 50)], &[], false);
    assert!(
        said.starts_with("Kernels take 1100 ns, gemm 63.6 % of that. Largest kernels, of 1100 ns: gemm_nt_b 400 ns"),
        "{said}"
    );
}

/// Of 29 s of kernels 84 % were 32-bit GEMMs on a device with tensor cores, and the page said that nothing tells whether they are slow.
#[test]
fn sums_tell_gemms_that_leave_the_tensor_cores_alone() {
    let run = |name, ns| (name, Conditions::Run, ns);
    let rows = [
        run("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x64x8_ffma_aligna4", 500),
        run("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>", 340),
        run("void silu_and_mul_kernel<bf16>", 160),
    ];
    let text = said(&rows, &[], false);
    assert!(text.contains(" 84.0 % of that is 32-bit GEMMs without tensor cores, most of it sm80_xmma_gemm"), "{text}");
    let older = said(&[run("maxwell_sgemm_128x64_tn", 500)], &[], false);
    assert!(!older.contains("tensor cores"), "no device with tensor cores is told: {older}");
}

/// 303 ms of the host beside 0.24 ms of the device, and the first sentence was on the share of a kernel.
#[test]
fn a_device_that_is_idle_beside_the_host_comes_first() {
    let rows = [
        ("aten::mm", Conditions::Operators, 150),
        ("aten::mm", Conditions::Host, 40_000),
        ("gemm_nt", Conditions::Run, 90),
    ];
    let idle = said(&rows, &[("totals.host_ns", "100000"), ("totals.device_ns", "200")], false);
    let first = "The device works for 200 ns while the host's operators and calls take 100000 ns over all threads: it is idle for about 99.8 % of that.";
    assert!(idle.starts_with(first), "{idle}");
    // One base for operators and kernels.
    assert!(idle.contains("Largest operators, of 200 ns of device time: aten::mm 150 ns (75.0 %, once)"), "{idle}");
    assert!(idle.contains("Largest kernels, of 200 ns: gemm_nt 90 ns (45.0 %, once)"), "{idle}");
    assert!(!idle.contains("Kernels take"), "the table shows few of the kernels: {idle}");
    let busy = said(&rows, &[("totals.host_ns", "100000"), ("totals.device_ns", "90000")], false);
    assert!(busy.starts_with("The device works for 90000 ns; the host's operators and calls take 100000 ns"), "{busy}");
}

#[test]
fn the_time_of_a_step_by_a_clock_comes_before_all() {
    let facts = [("totals.device_ns", "200"), ("totals.step_ns", "400"), ("totals.steps", "2")];
    let text = said(&[("gemm_nt", Conditions::Run, 200)], &facts, false);
    assert!(text.starts_with("A step takes 400 ns, as the file says; the device works for 25.0 % of it."), "{text}");
    assert!(
        said(&[("gemm_nt", Conditions::Run, 200)], &facts[..2], false)
            .starts_with("A step takes 400 ns, as the file says. ")
    );
}

/// Copies were kernels, and a call of 930 ms beside kernels of 0.28 ms was not on the page.
#[test]
fn calls_that_take_far_more_than_the_device_come_first_and_copies_are_no_kernels() {
    let rows = [
        ("[CUDA memcpy Host-to-Device]", Conditions::Run, 300),
        ("gemm_nt", Conditions::Run, 200),
        ("cudaMalloc", Conditions::Host, 9_000),
        ("cudaMemcpyAsync", Conditions::Host, 1_000),
        ("poll", Conditions::Host, 70_000),
    ];
    let text = said(&rows, &[], false);
    let first = "Calls of the runtime take 10000 ns, work of the device 500 ns. Largest calls: cudaMalloc 9000 ns (90.0 %, once), cudaMemcpyAsync 1000 ns (10.0 %, once).";
    assert!(text.starts_with(first), "{text}");
    assert!(text.contains("Kernels take 200 ns, gemm 100.0 % of that."), "{text}");
    assert!(text.contains("Copies and fills of memory, 300 ns in all: [CUDA memcpy Host-to-Device] 300 ns"), "{text}");
    assert!(!text.contains("poll"), "{text}");
    let few = said(&[rows[0], rows[1], ("cudaMemcpyAsync", Conditions::Host, 400)], &[], false);
    assert!(few.starts_with("Kernels take 200 ns") && few.contains("Largest on the host, of 400 ns"), "{few}");
}

/// A kernel had 60 % of what was left when the rows of all larger ones could not be read.
#[test]
fn no_share_rests_on_the_rows_that_survived_a_loss() {
    let text = said(&[("gemm_nt", Conditions::Run, 200)], &[], true);
    assert!(text.starts_with("Rows of the file could not be read, so no share of its totals is known."), "{text}");
    assert!(text.contains("gemm_nt 200 ns (once)") && !text.contains('%'), "{text}");
    let stated = said(&[("gemm_nt", Conditions::Run, 200)], &[("totals.device_ns", "400")], true);
    assert!(stated.contains("gemm_nt 200 ns (50.0 %, once)"), "{stated}");
}
