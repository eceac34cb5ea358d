//! Operator rules that look at how a product fills the device, and at kernels of an older kind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::Ns;

use super::super::testing::{NORM, Run, check, diagnosis, fires, us};
use crate::analysis::Edit;

/// Steps of a layer whose last product is cut into so many blocks of 128 by 256 and takes so long, on an H100.
fn filled(name: &'static str, blocks: u32, ns: Ns, rows: u32) -> (model::Trace, crate::analysis::Analysis) {
    Run::batches(12, move |r, _| {
        r.script.chip("NVIDIA H100 80GB HBM3");
        for _ in 0..6 {
            r.launch_blocks("nvjet_tst_64x32_64x12_4x1_v_bz_TNT", us(20), 96);
            r.launch_blocks("nvjet_tst_64x32_64x12_4x1_v_bz_TNT", us(80), 448);
            r.launch_blocks(name, ns, blocks);
        }
        r.launch_blocks("nvjet_tst_64x32_64x12_4x1_v_bz_TNT", us(300), 2004).token();
        rows
    })
}

const WIDE: &str = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64_warpgroupsize2x1x1";

#[test]
fn op19_and_op10_see_a_product_on_a_fraction_of_the_cores_that_does_not_keep_up_with_memory() {
    assert!(fires("OP-19", &filled(WIDE, 16, us(240), 100)));
    assert!(!fires("OP-19", &filled(WIDE, 16, us(60), 100)), "it may read at the rate of memory");
    assert!(!fires("OP-19", &filled(WIDE, 132, us(240), 100)), "a block for each core");
    assert!(!fires("OP-19", &filled(WIDE, 16, us(8), 100)), "bound by its floor");
    // With few rows the tile is the cause.
    assert!(fires("OP-10", &filled(WIDE, 16, us(240), 32)));
    assert!(!fires("OP-10", &filled(WIDE, 16, us(240), 100)), "the rows fill the tile");
    assert!(!fires("OP-10", &filled(WIDE, 16, us(60), 32)), "it may keep up");
    let all = diagnosis(&filled(WIDE, 16, us(240), 32));
    assert!(all.findings.iter().any(|f| f.rule == "OP-10" && f.supersedes.contains(&"OP-19")));
}

#[test]
fn op19_counts_tiles_of_the_recorded_size_where_the_launch_is_not_recorded() {
    let types = r#"["c10::BFloat16","c10::BFloat16"]"#;
    let shaped = |shapes: &'static str| {
        Run::written(crate::analysis::script::Script::of("amd"), 12, move |r, _| {
            r.shaped("Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1_SN_GSU2", us(1000), shapes, types).token();
            "execute_context_0(0)_generation_4(4)".to_owned()
        })
    };
    let (mut few, mut many) = (shaped("[[256,131072],[131072,512]]"), shaped("[[8192,4096],[4096,8192]]"));
    // Of this device nobody knows the cores.
    [&mut few, &mut many].into_iter().for_each(|run| run.0.devices.iter_mut().for_each(|d| d.cores = None));
    assert!(fires("OP-19", &few));
    assert!(!fires("OP-19", &many));
}

#[test]
fn op20_needs_a_newer_architecture_or_operands_that_are_not_aligned() {
    const FLASH_2: &str = "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false>>";
    const FLASH_3: &str = "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<1>>>";
    const TURING: &str = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_nn_align1>";
    const AMPERE: &str = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn";
    let run = |name: &'static str, chip: &'static str| {
        Run::steps(12, move |r, _| {
            r.script.chip(chip);
            r.launch(NORM, us(50)).launch(name, us(100)).launch(NORM, us(50)).token();
        })
    };
    let (hopper, ampere) = ("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB");
    assert!(fires("OP-20", &run(FLASH_2, hopper)));
    assert!(!fires("OP-20", &run(FLASH_2, ampere)), "nothing newer runs there");
    assert!(!fires("OP-20", &run(FLASH_3, hopper)));
    assert!(fires("OP-20", &run(AMPERE, hopper)) && !fires("OP-20", &run(AMPERE, ampere)));
    assert!(fires("OP-20", &run(TURING, ampere)), "its operands are not aligned");
    const TENSILE: &str = "Cijk_Ailk_Bljk_BBS_BH_MT256x112x64_MI16x16x16x1_SN_AF0EM1_AF1EM1_AMAS3";
    let shaped = |name: &'static str, shapes: &'static str| {
        Run::steps(12, move |r, _| {
            r.shaped(name, us(100), shapes, r#"["c10::BFloat16","c10::BFloat16"]"#).token();
        })
    };
    assert!(fires("OP-20", &shaped(TENSILE, "[[4097,4097],[4097,4097]]")));
    assert!(!fires("OP-20", &shaped(TENSILE, "[[131072,32],[32,32]]")), "asserting nothing is no odd size");
    assert!(!fires("OP-20", &run(TENSILE, "AMD Instinct MI300X")), "of unknown size");
    assert!(!fires("OP-20", &shaped(TURING, "[[64,64],[64,64]]")), "a choice that aligned operands did not need");
    let said = |name| check("OP-20", &run(name, hopper))[0].claim.render(crate::i18n::Lang::En, |_| String::new());
    assert!(said(FLASH_2).contains("FlashAttention-2") && said(TURING).contains("align1"));
    // What memory bounds gains nothing for certain.
    let edits = |name| check("OP-20", &run(name, hopper))[0].changes[0].1.edits.clone();
    assert!(matches!(&edits(AMPERE)[0], Edit::Resize(ops) if ops.iter().all(|(_, ns)| *ns == us(100))));
    assert!(matches!(&edits(FLASH_2)[0], Edit::Resize(ops) if ops.iter().all(|(_, ns)| *ns == us(80))));
}

#[test]
fn op22_names_32_bit_products_of_ordinary_cores_where_the_device_has_matrix_units() {
    let run = |chip: &'static str, name: &'static str| {
        Run::steps(12, move |r, _| {
            r.script.chip(chip);
            for _ in 0..6 {
                r.launch(NORM, us(5)).launch(name, us(200));
            }
            r.token();
        })
    };
    let plain = run("NVIDIA A100-SXM4-80GB", "ampere_sgemm_128x64_tn");
    let [found] = &check("OP-22", &plain)[..] else { panic!("one finding") };
    let [Edit::Resize(_), Edit::Hoped(hoped)] = &found.changes[0].1.edits[..] else { panic!("{found:?}") };
    let Edit::Resize(ops) = &**hoped else { panic!("{hoped:?}") };
    // 19.5 of 312 Tflop/s: that operands of 16 bits are read in half the time does not add to it.
    assert!(ops.iter().all(|(_, ns)| (12_000..13_000).contains(ns)), "{ops:?}");
    assert!(!fires("OP-22", &run("NVIDIA A100-SXM4-80GB", "ampere_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn")));
    assert!(!fires("OP-22", &run("Tesla P4", "maxwell_sgemm_128x64_tn")), "no matrix units");
    // Gradients of convolutions, of a capture that names no device: other kernels of it do.
    let unnamed = |beside: &'static str| {
        Run::steps(12, move |r, _| {
            r.launch("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int)", us(200));
            r.launch(beside, us(5)).token();
        })
    };
    assert!(fires("OP-22", &unnamed("volta_scudnn_128x64_relu_interior_nn_v1")));
    assert!(!fires("OP-22", &unnamed("maxwell_scudnn_128x64_relu_interior_nn_v1")));
}
