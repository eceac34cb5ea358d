//! Rates, floors and slots of a run of known shapes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use model::{Provenance, Trace};

use super::super::testing::{GEMM, NORM, Run, diagnosis, us};
use crate::{
    analysis::Analysis,
    diagnose::limits::{Basis, Bound, Limits, PeakSource, RateUnit},
    platform::Packs,
};

const ATTENTION: &str = "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>";

fn on(device: &str, (mut trace, analysis): (Trace, Analysis)) -> (Trace, Analysis) {
    trace.devices[0].name = Some(trace.strings.intern(device));
    (trace, analysis)
}

fn limits(capture: &(Trace, Analysis)) -> Limits {
    diagnosis(capture).limits
}

/// Decode steps of four layers, each with a product of 4 rows, 4096 outputs and 4096 inputs that takes 20 µs.
fn shaped() -> (Trace, Analysis) {
    Run::steps(6, |r, _| {
        for _ in 0..4 {
            r.shaped(GEMM, us(20), "[[4, 4096], [4096, 4096]]", r#"["c10::BFloat16", "c10::BFloat16"]"#);
            r.launch(NORM, us(5));
        }
        r.token();
    })
}

#[test]
fn recorded_shapes_give_rates_beside_published_peaks_and_the_floor_of_the_step() {
    let limits = limits(&on("NVIDIA H100 80GB HBM3", shaped()));
    let [rate] = limits.rates.as_slice() else { panic!("{:?}", limits.rates) };
    assert_eq!((rate.operator, rate.shape.as_str(), rate.count, rate.per_step), ("gemm", "4×4096×4096", 20, us(80)));
    let bytes = 2.0 * (4096.0 * 4096.0 + 2.0 * 4.0 * 4096.0);
    assert_eq!((rate.flops, rate.bytes), (2.0 * 4.0 * 4096.0 * 4096.0, bytes));
    assert_eq!((rate.bound_by, rate.unit, rate.peak), (Some(Bound::Memory), RateUnit::Bytes, Some(3.35e12)));
    assert_eq!(rate.peak_source, Some(PeakSource::Published));
    assert!((rate.achieved - bytes / 20e-6).abs() < 1.0, "{}", rate.achieved);
    assert!(rate.why[0].text.en.contains("memory side of the roofline"), "{:?}", rate.why);
    let floor = limits.floor.unwrap();
    // Four times 33.6 MB of weights at 3350 bytes per ns.
    assert_eq!((floor.ns, floor.basis.clone()), (Some(40_065), Basis::Shapes(1.0)));
    assert!(floor.ratio().unwrap() > 2.0 && floor.cache.is_none());
}

#[test]
fn without_a_known_device_rates_stand_without_a_peak() {
    let known = |device| limits(&on(device, shaped()));
    let rate = &known("SIMULATED GPU").rates[0];
    // The kernel itself was built for devices of compute capability 9.0: the largest of them serves.
    assert_eq!(rate.peak, Some(4.9e12));
    let (mut trace, analysis) = shaped();
    trace.manifest.set("precision.weights", "bf16", Provenance::Observed);
    let other = Run::steps(6, |r, _| {
        r.shaped("MatMulV2", us(20), "[[64, 4096], [4096, 4096]]", r#"["c10::BFloat16", "c10::BFloat16"]"#).token();
    });
    let limits = limits(&other);
    assert_eq!((limits.rates[0].bound_by, limits.rates[0].peak), (None, None));
    assert!(matches!(limits.floor.unwrap().basis, Basis::Nothing(_)));
    drop(analysis);
}

/// Tables of kernels do not name the device: its products stood without a peak, and nothing said what would give them one.
#[test]
fn a_device_that_only_its_declaration_names_has_its_published_peaks() {
    // A name without an architecture: that alone would tell the chip.
    let of = |declared: Option<&str>| {
        let (mut trace, analysis) = Run::steps(6, |r, _| {
            r.shaped("MatMulV2", us(20), "[[64, 4096], [4096, 4096]]", r#"["c10::BFloat16", "c10::BFloat16"]"#).token();
        });
        trace.devices.iter_mut().for_each(|device| device.name = None);
        if let Some(device) = declared {
            trace.manifest.set("hardware.device", device, Provenance::Declared);
        }
        limits(&(trace, analysis))
    };
    let unnamed = of(None);
    assert_eq!(unnamed.rates[0].peak, None);
    let Basis::Nothing(why) = unnamed.floor.unwrap().basis else { panic!("a floor of nothing") };
    assert!(why.en.contains("does not name its device") && why.en.contains("declare hardware.device"), "{why:?}");
    let named = of(Some("Ascend910B3"));
    assert_eq!((named.rates[0].peak, named.rates[0].peak_source), (Some(1.6e12), Some(PeakSource::Published)));
    assert!(named.floor.unwrap().ns.is_some());
}

/// Steps of the dense model's layers as graphs replay them: no shapes, launch grids as tiles of 64×64 of each product need.
fn replayed(blocks: [u32; 4]) -> (Trace, Analysis) {
    let packs = Packs::embedded().unwrap();
    let model = packs.model("Qwen3-8B").unwrap().clone();
    let (trace, mut analysis) = Run::steps(4, |r, _| {
        for _ in 0..36 {
            r.launch(NORM, us(2)).launch_blocks(GEMM, us(30), blocks[0]).launch(ATTENTION, us(10));
            r.launch_blocks(GEMM, us(20), blocks[1]).launch(NORM, us(2));
            r.launch_blocks(GEMM, us(80), blocks[2]).launch("void vllm::act_and_mul_kernel<c10::BFloat16>", us(3));
            r.launch_blocks(GEMM, us(40), blocks[3]);
        }
        r.token();
    });
    analysis.model = Some(Arc::new(model));
    on("NVIDIA H100 80GB HBM3", (trace, analysis))
}

#[test]
fn a_model_names_the_products_of_replayed_layers_where_launches_agree_and_only_there() {
    // 6144, 4096, 24576 and 4096 outputs, four rows.
    let known = limits(&replayed([96, 64, 384, 64]));
    let slots: Vec<_> = known.rates.iter().map(|rate| (rate.slot, rate.shape.as_str())).collect();
    assert_eq!(
        slots,
        [
            (Some("gate_up"), "4×24576×4096"),
            (Some("down"), "4×4096×12288"),
            (Some("qkv"), "4×6144×4096"),
            (Some("o"), "4×4096×4096"),
        ]
    );
    let floor = known.floor.unwrap();
    assert_eq!(floor.basis, Basis::Model("Qwen/Qwen3-8B".into()));
    // 7.57 billion weights without the embedding's rows: 15.1 GB at 3350 bytes per ns.
    assert!((4_400_000..4_600_000).contains(&floor.ns.unwrap()), "{:?}", floor.ns);
    assert!(limits(&replayed([96, 64, 385, 64])).rates.is_empty(), "another product");
}

#[test]
fn a_decode_step_of_unknown_shapes_says_what_would_give_its_floor() {
    let (trace, mut analysis) = replayed([96, 64, 384, 64]);
    analysis.model = None;
    let Basis::Nothing(needs) = limits(&(trace, analysis)).floor.unwrap().basis else { panic!("a basis") };
    assert!(needs.en.contains("--model"), "{}", needs.en);
}

const EXPERTS: &str = "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1";

/// Steps of so many layers of gpt-oss-20b as graphs replay them: two products of experts each, 200 µs in all.
fn of_experts(layers: usize, each: i64) -> (Trace, Analysis) {
    let packs = Packs::embedded().unwrap();
    let model = packs.model("gpt-oss-20b").unwrap().clone();
    let (trace, mut analysis) = Run::steps(4, |r, _| {
        for _ in 0..layers {
            r.launch(NORM, us(2)).launch(GEMM, us(10)).launch(ATTENTION, us(10));
            r.launch(EXPERTS, us(each)).launch(EXPERTS, us(each));
        }
        r.token();
    });
    analysis.model = Some(Arc::new(model));
    on("NVIDIA H100 80GB HBM3", (trace, analysis))
}

#[test]
fn a_model_says_what_its_experts_read_where_the_step_has_its_layers() {
    let known = diagnosis(&of_experts(24, 100));
    let rate = known.limits.rates.iter().find(|rate| rate.operator == "grouped_gemm").unwrap();
    // Of 32 experts, four tokens with four each meet 32 · (1 − (7/8)⁴) = 13.2: 13.2 · 3 · 2880² weights of 0.66 bytes.
    assert_eq!((rate.shape.as_str(), rate.count, rate.per_step), ("4 tokens, 13 of 32 experts", 72, us(4_800)));
    assert!((217e6..219e6).contains(&rate.bytes), "{}", rate.bytes);
    assert!((0.32..0.33).contains(&rate.share().unwrap()), "{:?}", rate.share());
    let found = known.findings.iter().find(|finding| finding.rule == "OP-01").unwrap();
    assert!(found.evidence.iter().any(|e| e.what.text.en.contains("spread evenly")), "{:?}", found.evidence);
    // At 92 % of the published bandwidth 71 µs a layer are left of 200: at most 24 · 129 µs go.
    let gain = found.estimate.from - found.estimate.to_low;
    assert!((2_900_000..3_400_000).contains(&gain), "{:?}", found.estimate);
    let none = |capture: &(Trace, Analysis)| {
        let said = diagnosis(capture);
        said.limits.rates.iter().all(|rate| rate.operator != "grouped_gemm")
    };
    assert!(none(&of_experts(23, 100)), "another model");
    let fast = diagnosis(&of_experts(24, 40));
    assert!(fast.findings.iter().all(|finding| finding.rule != "OP-01"), "near the ceiling");
}
