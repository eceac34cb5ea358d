//! Operator rules that look at dtypes, fills, launch shapes, tiles and clocks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::Ns;

use super::super::testing::{CONTIGUOUS, GEMM, NORM, Run, check, fires, us};
use crate::analysis::Edit;

const CAST: &str =
    "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)>";
const SGEMM: &str = "ampere_sgemm_32x32_sliced1x4_tn";
const FILL: &str =
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, 1ul>>";
const ATTENTION: &str = "void vllm::paged_attention_v1_kernel<__nv_bfloat16, 128, 16>";
const COMBINE: &str = "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128>>";
const MUL: &str = "void at::native::elementwise_kernel<128, 2, at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>>";
const ROPE: &str = "void vllm::rotary_embedding_kernel<c10::BFloat16, true>";
pub const WRITE: &str = "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16>";
const LONG_CONTEXT: &str = "execute_0_context_0(sq0sk0)_generation_4(sq4sk65536)";
const SHORT_CONTEXT: &str = "execute_0_context_0(sq0sk0)_generation_4(sq4sk4000)";

#[test]
fn op04_counts_casts_and_wide_products_but_not_logits() {
    let step = |kernels: &[(&str, Ns)]| {
        Run::steps(12, |r, _| {
            r.graph(kernels, us(1)).token();
        })
    };
    assert!(fires("OP-04", &step(&[(GEMM, us(100)), (CAST, us(10)), (GEMM, us(100)), (GEMM, us(50))])));
    assert!(!fires("OP-04", &step(&[(GEMM, us(100)), (GEMM, us(100)), (GEMM, us(50)), (CAST, us(10))])), "logits");
    assert!(!fires("OP-04", &step(&[(GEMM, us(100)), (CONTIGUOUS, us(10)), (GEMM, us(50))])), "no cast");
    assert!(fires("OP-04", &step(&[(GEMM, us(100)), (SGEMM, us(30)), (GEMM, us(100)), (GEMM, us(50))])));
    assert!(!fires("OP-04", &step(&[(GEMM, us(100)), (GEMM, us(100)), (SGEMM, us(30))])), "lm_head");
    assert!(!fires("OP-04", &step(&[(SGEMM, us(100)), (SGEMM, us(100)), (GEMM, us(30))])), "a 32-bit model");
    let converted = |chain: &str| {
        let mut capture = step(&[(SGEMM, us(100)), (SGEMM, us(100)), (SGEMM, us(30))]);
        capture.0.manifest.set("model.conversion", chain, model::Provenance::Observed);
        fires("OP-04", &capture)
    };
    assert!(converted("bf16 to f32") && !converted("none") && !converted("f32 to bf16") && !converted("q8 of f32"));
}

#[test]
fn op05_leaves_casts_to_op04() {
    let capture = Run::steps(12, |r, _| {
        r.graph(&[(GEMM, us(100)), (CAST, us(20)), (GEMM, us(100))], us(1)).token();
    });
    assert!(fires("OP-04", &capture) && !fires("OP-05", &capture));
}

#[test]
fn op06_counts_fills_but_not_the_workspace_of_a_product() {
    let fills = |ns: Ns| {
        Run::steps(12, move |r, _| {
            r.graph(&[(GEMM, us(100)), (FILL, ns), (NORM, us(5)), (GEMM, us(100))], us(1)).token();
        })
    };
    assert!(fires("OP-06", &fills(us(10))));
    assert!(!fires("OP-06", &fills(us(2))));
    let copies = |before: &'static str| {
        Run::steps(12, move |r, _| {
            r.launch(GEMM, us(100))
                .copy("cudaMemcpyAsync", us(3), "DtoD", "device", us(15))
                .launch(before, us(100))
                .token();
        })
    };
    assert!(fires("OP-06", &copies(NORM)) && fires("OP-06", &copies(GEMM)), "only a memset is a workspace");
    let found = &check("OP-06", &copies(NORM))[0];
    assert!(matches!(&found.changes[0].1.edits[..], [Edit::Remove(ops)] if ops.len() == 11), "all steps but the last");
}

/// A third of a step with weights of 4 bits went to writing them out, and no rule spoke.
#[test]
fn op23_counts_what_expands_weights_for_a_product() {
    const EXPAND: &str =
        "void kDequantizeBlockwise<__nv_bfloat16, 512, 64, 8, 2>(float*, unsigned char*, float*, __nv_bfloat16*)";
    let run = |after: &'static str| {
        Run::steps(12, move |r, _| {
            let layer = [(EXPAND, us(30)), (EXPAND, us(30)), (after, us(60)), (NORM, us(5)), (GEMM, us(100))];
            r.graph(&layer, us(1)).token();
        })
    };
    assert!(fires("OP-23", &run(GEMM)) && !fires("OP-23", &run(NORM)));
    let other = |name: &'static str| {
        Run::steps(12, move |r, _| {
            r.graph(&[(name, us(60)), (GEMM, us(60)), (NORM, us(5)), (GEMM, us(100))], us(1)).token();
        })
    };
    for name in
        ["DequantSwigluQuant", "void kdequant_mm_int32_fp16<4, 128, 512>(int*, float*, float*, __half*, int, int)"]
    {
        assert!(!fires("OP-23", &other(name)), "{name} expands no weights");
    }
    let found = &check("OP-23", &run(GEMM))[0];
    assert!(
        matches!(&found.changes[0].1.edits[..], [Edit::Remove(ops)] if ops.len() == 22),
        "two of each step but the last"
    );
}

/// A fifth of a decode step went to gathers before a fused attention, and a collective was named first.
#[test]
fn op24_counts_gathers_before_attention_in_decode_steps() {
    const GATHER: &str =
        "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)";
    const ATTENTION: &str =
        "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>(flash::Flash_fwd_params)";
    let of = |gather: &'static str, after: &'static str| {
        Run::steps(12, move |r, _| {
            let layer = [(gather, us(30)), (after, us(60)), (NORM, us(5)), (GEMM, us(100))];
            r.graph(&[layer; 3].concat(), us(1)).token();
        })
    };
    let run = |after: &'static str| of(GATHER, after);
    assert!(fires("OP-24", &run(ATTENTION)) && !fires("OP-24", &run(NORM)));
    // Of torch's kernel for reading and writing by index the functor says which: half a step passed for slow cache writes.
    const INDEX: &str = "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<at::native::index_kernel_impl<at::native::OpaqueType<2> >(at::TensorIteratorBase&)>(int)";
    const PUT: &str = "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<at::native::index_put_kernel_impl<at::native::OpaqueType<2> >(at::TensorIterator&)>(int)";
    let (read, written) = (of(INDEX, ATTENTION), of(PUT, ATTENTION));
    assert!(fires("OP-24", &read) && !fires("OP-15", &read));
    assert!(!fires("OP-24", &written) && fires("OP-15", &written));
}

#[test]
fn op09_sees_one_wave_and_a_bit() {
    let read = |tokens: u32, blocks: u32, ns: Ns| {
        Run::labelled(&format!("execute_context_1({tokens})_generation_0(0)"), 12, move |r, _| {
            (0..4).for_each(|_| {
                r.launch_blocks(GEMM, ns, blocks);
            });
            r.token();
        })
    };
    let blocks = |blocks: u32, ns: Ns| read(2_048, blocks, ns);
    assert!(fires("OP-09", &blocks(139, us(50))));
    assert!(!fires("OP-09", &read(64, 139, us(50))), "so few rows are bound by memory");
    assert!(!fires("OP-09", &blocks(132, us(50))), "a whole wave");
    assert!(!fires("OP-09", &blocks(66, us(50))), "no tail without a wave");
    assert!(!fires("OP-09", &blocks(139, us(8))), "bound by its floor");
}

#[test]
fn op10_needs_few_rows_a_large_tile_and_a_slow_kernel() {
    let named = |name: &'static str| {
        Run::steps(12, move |r, _| {
            r.graph(&[(name, us(50)); 6], us(1)).token();
        })
    };
    assert!(fires("OP-10", &named("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn")));
    assert!(!fires("OP-10", &named("nvjet_tst_128x8_64x16_4x1_v_bz_TNT")));
    let types = r#"["c10::BFloat16","c10::BFloat16"]"#;
    let shaped = |ns: Ns, rows: &'static str| {
        Run::steps(12, move |r, _| {
            let shapes = |k: &str, n: &str| format!("[[{rows},{k}],[{k},{n}]]");
            r.shaped("nvjet_tst_64x8", us(50), &shapes("4096", "8192"), types);
            r.shaped(GEMM, ns, &shapes("4096", "4096"), types).token();
        })
    };
    assert!(fires("OP-10", &shaped(us(60), "4")), "half of the bytes in more time");
    assert!(!fires("OP-10", &shaped(us(28), "4")), "as fast as the best");
    assert!(!fires("OP-10", &shaped(us(60), "64")), "enough rows");
}

#[test]
fn op06_leaves_the_staging_of_a_collective_alone() {
    const ALL_REDUCE: &str = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    let copies = |beside: &'static str| {
        Run::steps(12, move |r, _| {
            r.launch(GEMM, us(100)).copy("cudaMemcpyAsync", us(3), "DtoD", "device", us(15)).launch(beside, us(30));
            r.copy("cudaMemcpyAsync", us(3), "DtoD", "device", us(15)).launch(GEMM, us(60)).token();
        })
    };
    assert!(fires("OP-06", &copies(NORM)));
    assert!(!fires("OP-06", &copies(ALL_REDUCE)));
}

#[test]
fn op10_the_tile_of_a_prompt_counts_where_it_reads_somewhat_slower() {
    let types = r#"["c10::BFloat16","c10::BFloat16"]"#;
    let beside_the_best = |name: &'static str| {
        Run::steps(12, move |r, _| {
            r.shaped("nvjet_tst_64x8", us(50), "[[4,4096],[4096,8192]]", types);
            r.shaped(name, us(34), "[[4,4096],[4096,4096]]", types).token();
        })
    };
    assert!(fires("OP-10", &beside_the_best("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn")));
    assert!(!fires("OP-10", &beside_the_best(GEMM)), "a smaller tile may be meant");
}

#[test]
fn op10_reads_rows_from_launches_where_nothing_else_tells_them() {
    let launched = |norm: u32, write: u32| {
        Run::labelled("step", 12, move |r, _| {
            (0..4).for_each(|_| {
                r.launch_blocks(NORM, us(4), norm).launch("ampere_bf16_s16816gemm_bf16_128x128_tn", us(50));
                r.launch_blocks(WRITE, us(3), write);
            });
            r.token();
        })
    };
    assert!(fires("OP-10", &launched(4, 4)));
    assert!(!fires("OP-10", &launched(64, 64)), "enough rows");
    assert!(!fires("OP-10", &launched(4, 64)), "they disagree");
}

#[test]
fn op12_the_scheduler_tells_that_steps_decode_where_the_kernel_serves_both_stages() {
    let whole =
        "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t>>";
    let counted = |tokens: f64| {
        Run::labelled("step", 12, move |r, _| {
            let at = r.host;
            r.script.counter("vllm:num_requests_running", at, 4.0).counter("vllm:num_scheduled_tokens", at, tokens);
            r.script.counter("context_tokens", at, 8192.0);
            (0..4).for_each(|_| {
                r.launch(GEMM, us(40)).launch_blocks(whole, us(30), 32);
            });
            r.launch(GEMM, us(40)).token();
        })
    };
    assert!(fires("OP-12", &counted(4.0)));
    assert!(!fires("OP-12", &counted(400.0)), "a prompt is among them");
}

#[test]
fn op12_needs_long_context_and_few_blocks() {
    let attention = |label: &str, blocks: u32| {
        Run::labelled(label, 12, move |r, _| {
            r.script.counter("context_tokens", r.host, 500.0);
            (0..4).for_each(|_| {
                r.launch(GEMM, us(40)).launch_blocks(ATTENTION, us(30), blocks);
            });
            r.launch(GEMM, us(40)).token();
        })
    };
    assert!(fires("OP-12", &attention(LONG_CONTEXT, 32)));
    assert!(!fires("OP-12", &attention(LONG_CONTEXT, 128)));
    assert!(!fires("OP-12", &attention(SHORT_CONTEXT, 32)));
    assert!(
        !fires("OP-12", &attention("execute_context_0(0)_generation_4(4)", 32)),
        "counted, where no annotation says"
    );
    let unknown = |combine: bool| {
        Run::labelled("step", 12, move |r, _| {
            (0..4).for_each(|_| {
                r.launch(GEMM, us(40)).launch_blocks(ATTENTION, us(30), 32);
                if combine {
                    r.launch(COMBINE, us(2));
                }
            });
            r.launch(GEMM, us(40)).token();
        })
    };
    assert!(fires("OP-12", &unknown(false)));
    assert!(!fires("OP-12", &unknown(true)), "split already, over a context that nobody knows");
}

#[test]
fn what_a_better_kernel_would_take_is_promised_as_widely_as_it_is_known() {
    let attention = Run::labelled(LONG_CONTEXT, 12, |r, _| {
        (0..4).for_each(|_| {
            r.launch(GEMM, us(40)).launch_blocks(ATTENTION, us(30), 32);
        });
        r.launch(GEMM, us(40)).token();
    });
    let found = check("OP-12", &attention);
    let [Edit::Resize(worst), Edit::Hoped(best)] = &found[0].changes[0].1.edits[..] else {
        panic!("{:?}", found[0].changes)
    };
    assert!(worst.iter().all(|(_, ns)| *ns == us(25)), "1.2 times faster");
    // 32 blocks on 132 cores, two on each that draws its share.
    let two = us(30) * 32 / 132 / 2;
    assert!(matches!(&**best, Edit::Resize(ops) if ops.iter().all(|(_, ns)| (ns - two).abs() <= 1)));
}

#[test]
fn op13_sees_one_common_factor_and_not_a_slow_kernel() {
    let run = |slow: usize, all: bool| {
        Run::steps(20, move |r, i| {
            let factor = if i >= 20 - slow { 12 } else { 10 };
            let nodes: Vec<(&str, Ns)> =
                (0..20).map(|k| (GEMM, us(20) * if all || k % 3 == 0 { factor } else { 10 } / 10)).collect();
            r.graph(&nodes, us(1)).token();
        })
    };
    assert!(fires("OP-13", &run(8, true)));
    assert!(!fires("OP-13", &run(8, false)), "a third of the kernels");
    assert!(!fires("OP-13", &run(0, true)));
    // Single durations vary by 5 % either way, each kernel by itself: more than the factors of the kernels may.
    let noisy = Run::steps(24, |r, i| {
        let ns = |k: usize| us(if i < 12 { 20 } else { 25 }) * (950 + (i * 37 + k * 61) as Ns % 101) / 1000;
        let nodes: Vec<(&str, Ns)> = (0..20).map(|k| (GEMM, ns(k))).collect();
        r.graph(&nodes, us(1)).token();
    });
    assert!(fires("OP-13", &noisy), "a factor of 1.25 in noise");
    let alternating = Run::steps(20, |r, i| {
        r.graph(&[(GEMM, us(20 + 4 * (i as Ns % 2))); 20], us(1)).token();
    });
    assert!(!fires("OP-13", &alternating), "no three slow steps in a row");
}

#[test]
fn op13_does_not_take_more_rows_for_a_lower_clock() {
    let run = |rows: u32| {
        Run::steps(20, move |r, i| {
            let (blocks, factor) = if i >= 11 { (rows, 13) } else { (8, 10) };
            for _ in 0..12 {
                r.launch_blocks(NORM, us(3), blocks).launch_blocks(WRITE, us(2), blocks);
                r.launch_blocks(GEMM, us(2) * factor, 132);
            }
            r.token();
        })
    };
    assert!(fires("OP-13", &run(8)));
    assert!(!fires("OP-13", &run(16)), "twice the rows");
}

#[test]
fn op13_compares_each_queue_by_itself() {
    // Beside the products a norm runs on another queue. With the clock the order of the two changes.
    let run = Run::steps(20, |r, i| {
        let factor = if i >= 11 { 13 } else { 10 };
        for _ in 0..12 {
            let at = r.host.max(r.device) + us(1);
            let norm = at + if i >= 11 { us(9) } else { us(5) };
            r.script.launch_on(7, (at, at + us(2)), GEMM, (at + us(7), at + us(7) + us(2) * factor));
            r.script.launch_on(20, (at + us(2), at + us(4)), NORM, (norm, norm + us(8) * factor / 10));
            (r.host, r.device) = (at + us(6), at + us(10) + us(2) * factor);
        }
        r.token();
    });
    assert!(fires("OP-13", &run));
}

#[test]
fn op15_measures_cache_writes_by_their_bytes_or_their_neighbours() {
    let named = |name: &'static str, ns: Ns| {
        let layer = [(NORM, us(4)), (GEMM, us(40)), (name, ns), (ATTENTION, us(10)), (GEMM, us(30))];
        let nodes = layer.repeat(6);
        Run::steps(12, move |r, _| {
            r.graph(&nodes, us(1)).token();
        })
    };
    assert!(fires("OP-15", &named(WRITE, us(13))));
    assert!(fires("OP-15", &named("aclnnScatterElements_ScatterElementsAiCore_ScatterElements", us(25))));
    assert!(!fires("OP-15", &named(WRITE, us(11))));
    let beside_a_rotary = |ns: Ns| {
        let nodes = [(NORM, us(6)), (GEMM, us(40)), (ROPE, us(2)), (WRITE, ns), (NORM, us(6))].repeat(6);
        Run::steps(12, move |r, _| {
            r.graph(&nodes, us(1)).token();
        })
    };
    assert!(fires("OP-15", &beside_a_rotary(us(7))), "a write moves no more than the rotary embedding beside it");
    assert!(!fires("OP-15", &beside_a_rotary(us(5))));
    let types = r#"["c10::BFloat16","c10::BFloat16","c10::BFloat16"]"#;
    let shaped = |tokens: &'static str| {
        Run::steps(12, move |r, _| {
            (0..4).for_each(|_| {
                r.launch(NORM, us(2)).shaped("nvjet_tst_64x8", us(50), "[[4,4096],[4096,8192]]", types);
                let shapes = format!("[[{tokens},8,128],[{tokens},8,128],[90000,16,8,128]]");
                r.shaped(WRITE, us(40), &shapes, types);
            });
            r.token();
        })
    };
    assert!(fires("OP-15", &shaped("4")));
    assert!(!fires("OP-15", &shaped("8192")), "so many bytes take that long");
}

#[test]
fn op16_needs_a_tile_beyond_what_the_tokens_can_fill() {
    let experts = |name: &'static str| {
        Run::steps(12, move |r, _| {
            let nodes = [(NORM, us(5)), (GEMM, us(20)), (name, us(60)), (name, us(60))];
            r.graph(&nodes, us(1)).token();
        })
    };
    assert!(fires("OP-16", &experts("_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x256x1")));
    assert!(!fires("OP-16", &experts("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1")));
    assert!(!fires("OP-16", &experts("fused_moe_kernel")), "nothing tells its tile");
    let counted = |rows: f64| {
        Run::steps(12, move |r, _| {
            r.script.counter("vllm:moe_tokens", r.host, 100.0).counter("vllm:moe_padded_tokens", r.host, rows);
            r.launch(GEMM, us(20)).launch("fused_moe_kernel", us(60)).token();
        })
    };
    assert!(fires("OP-16", &counted(190.0)));
    assert!(fires("OP-16", &counted(140.0)), "counted, and no mere bound");
    assert!(!fires("OP-16", &counted(120.0)));
    let aligned = |sorted: &'static str| {
        Run::steps(12, move |r, _| {
            r.shaped(NORM, us(5), &format!("[[4,2],[],[],[{sorted}],[16],[1]]"), "[]");
            let end = (r.host, r.host);
            r.script.operator("_moe_C::moe_align_block_size", end, &format!("[[4,2],[],[],[{sorted}],[16],[1]]"), "[]");
            r.launch("fused_moe_kernel", us(60)).launch("fused_moe_kernel", us(60)).token();
        })
    };
    assert!(fires("OP-16", &aligned("1024")));
    assert!(!fires("OP-16", &aligned("256")));
}

#[test]
fn op17_counts_the_kernels_between_attention_and_the_next_product() {
    let merge = |chain: &[(&str, Ns)]| {
        let mut layer = vec![(GEMM, us(20)), (ATTENTION, us(20))];
        layer.extend(chain);
        layer.extend([(GEMM, us(20)), (NORM, us(4))]);
        let nodes = layer.repeat(6);
        Run::steps(12, move |r, _| {
            r.graph(&nodes, us(1)).token();
        })
    };
    assert!(fires("OP-17", &merge(&[(MUL, us(3)); 6])));
    assert!(!fires("OP-17", &merge(&[(MUL, us(3)); 4])));
    assert!(fires("OP-17", &merge(&[(MUL, us(4)), (COMBINE, us(4))])));
    assert!(!fires("OP-17", &merge(&[(COMBINE, us(6))])), "one combine kernel is how split attention works");
    let found = &check("OP-17", &merge(&[(MUL, us(3)); 6]))[0];
    assert!(
        matches!(&found.changes[0].1.edits[..], [Edit::Fuse(groups)] if groups.iter().all(|(ops, ns)| ops.len() == 6 && *ns > 0))
    );
}
