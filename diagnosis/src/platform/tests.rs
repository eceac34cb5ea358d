#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{io::Read, path::PathBuf, sync::LazyLock};

use proptest::prelude::*;

use super::*;

mod labelled;
mod names;

use names::NAMES;

static PACKS: LazyLock<Packs> = LazyLock::new(|| Packs::embedded().unwrap());

#[test]
fn names_of_every_platform_map_to_the_table() {
    let wrong: Vec<String> = NAMES
        .iter()
        .filter(|(name, op)| PACKS.op(name).op.name() != *op)
        .map(|(name, op)| format!("{name}: {} instead of {op}", PACKS.op(name).op.name()))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The names are those that Kineto's files give, and the ids those of the packs and of the other readers.
#[test]
fn names_of_devices_betray_their_vendors() {
    let vendor = |name: &str| {
        let known = PACKS.device_vendors().iter().find(|(part, _)| name.contains(part.as_str()));
        known.map(|(_, vendor)| vendor.as_str())
    };
    for (name, expected) in [
        ("NVIDIA H100 80GB HBM3", Some("nvidia")),
        ("Tesla V100-SXM2-32GB", Some("nvidia")),
        ("AMD Instinct MI300X", Some("amd")),
        ("Intel(R) Data Center GPU Max 1550", Some("intel")),
        ("MTT S4000", Some("mthreads")),
        ("MLU590-M9", Some("cambricon")),
        ("MXC500", Some("metax")),
        ("Iluvatar BI-V150", Some("iluvatar")),
        ("Example X1", None),
    ] {
        assert_eq!(vendor(name), expected, "{name}");
    }
}

#[test]
fn a_name_nobody_knows_is_other_and_unmapped() {
    let near =
        ["trans_mission_4", "fc-layer", "aten::mulberry_of_mine", "dma_requests", "my_benchmark_func", "fft3d_r2c_8"];
    for name in ["", "my_secret_kernel_v7", "void foo::bar<int>(float*)", "triton_unknown_kind"].into_iter().chain(near)
    {
        assert_eq!(PACKS.op(name), OpMatch::unknown(), "{name}");
    }
}

#[test]
fn fused_kernels_cover_several_slots() {
    use CanonicalOp::{Act, AddNorm, CommAllReduce, Gemm, GroupedGemm, KvWrite, Norm, Quant, Rope};
    for (name, slots) in [
        ("MlaPrologV3", vec![Norm, Gemm, Rope, KvWrite]),
        ("MatmulAllReduce", vec![Gemm, CommAllReduce]),
        ("GroupedMatmulSwigluQuant", vec![GroupedGemm, Act, Quant]),
        ("AddRmsNormDynamicQuant", vec![AddNorm, Quant]),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", vec![GroupedGemm, Act]),
        ("nvjet_tst_64x8", vec![Gemm]),
    ] {
        assert_eq!(PACKS.op(name).slots, slots, "{name}");
    }
}

#[test]
fn host_calls_of_every_runtime() {
    for (api, kind) in [
        ("cudaLaunchKernel", HostCall::Launch),
        ("cudaLaunchKernelExC_v11060", HostCall::Launch),
        ("cuLaunchKernelEx_ptsz", HostCall::Launch),
        ("hipExtModuleLaunchKernel", HostCall::Launch),
        ("rtKernelLaunchWithHandleV2", HostCall::Launch),
        ("cnInvokeKernel", HostCall::Launch),
        ("muLaunchKernel", HostCall::Launch),
        ("mcLaunchKernel", HostCall::Launch),
        ("cudaGraphLaunch_v10000", HostCall::GraphLaunch),
        ("hipGraphLaunch", HostCall::GraphLaunch),
        ("musaGraphLaunch", HostCall::GraphLaunch),
        ("aclmdlRIExecuteAsync", HostCall::GraphLaunch),
        ("cudaStreamSynchronize_v3020", HostCall::SyncStream),
        ("aclrtSynchronizeStreamWithTimeout", HostCall::SyncStream),
        ("cnrtQueueSync", HostCall::SyncStream),
        ("cuCtxSynchronize", HostCall::SyncDevice),
        ("hipEventSynchronize", HostCall::SyncEvent),
        ("cudaEventQuery_v3020", HostCall::Query),
        ("cudaMemcpy", HostCall::CopySync),
        ("hipMemcpyWithStream", HostCall::CopySync),
        ("hipGraphGetNodes", HostCall::GraphCapture),
        ("hipGraphDestroy", HostCall::GraphCapture),
        ("cuMemcpyDtoH_v2", HostCall::CopySync),
        ("cudaMemcpyAsync_v3020", HostCall::CopyAsync),
        ("cuMemcpyHtoDAsync_v2", HostCall::CopyAsync),
        ("aclrtMemcpyAsync", HostCall::CopyAsync),
        ("cudaMemsetAsync", HostCall::MemsetAsync),
        ("cudaMalloc", HostCall::Alloc),
        ("cuMemCreate", HostCall::Alloc),
        ("cudaFree", HostCall::Free),
        ("cudaHostAlloc_v3020", HostCall::HostAlloc),
        ("aclrtMallocHost", HostCall::HostAlloc),
        ("cuModuleLoadData", HostCall::ModuleLoad),
        ("cuLibraryLoadData", HostCall::ModuleLoad),
        ("nvrtcCompileProgram", HostCall::Compile),
        ("hipStreamBeginCapture", HostCall::GraphCapture),
        ("hipGraphInstantiateWithFlags", HostCall::GraphInstantiate),
        ("cudaGraphExecUpdate_v10020", HostCall::GraphUpdate),
        ("cudaEventRecordWithFlags_v11010", HostCall::EventRecord),
        ("aclrtStreamWaitEvent", HostCall::StreamWaitEvent),
        ("cudaGetDevice", HostCall::Other),
        ("hipGetDevicePropertiesR0600", HostCall::Other),
        ("aclnnMatmul", HostCall::Other),
        ("INVALID", HostCall::Other),
    ] {
        assert_eq!(PACKS.host_call(api), kind, "{api}");
    }
    assert!(HostCall::CopySync.is_blocking() && HostCall::CopySync.is_launch() && !HostCall::Query.is_blocking());
    assert_eq!(HostCall::parse("stream_wait_event"), Some(HostCall::StreamWaitEvent));
    assert_eq!(HostCall::parse("Launch"), None);
}

/// Engine, stage, prefill requests, prefill tokens, decode requests, context tokens, index.
type Expected = (&'static str, Stage, Option<u32>, Option<u32>, Option<u32>, Option<u64>, Option<u64>);

#[test]
fn step_annotations_of_every_engine() {
    use Stage::{Decode, Mixed, Prefill, Train, Unknown};
    let cases: [(&str, Expected); 19] = [
        (
            "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)",
            ("vllm", Decode, Some(0), Some(0), Some(32), Some(55086), None),
        ),
        (
            "execute_15360_context_15(sq15360sk15360sqsq15728640sqsk15728640)_generation_0(sq0sk0sqsq0sqsk0)",
            ("vllm", Prefill, Some(15), Some(15360), Some(0), Some(15360), None),
        ),
        ("execute_context_1(888_788544)_generation_0(0)", ("vllm", Prefill, Some(1), Some(888), Some(0), None, None)),
        ("execute_context_2(64)_generation_6(6)", ("vllm", Mixed, Some(2), Some(64), Some(6), None, None)),
        ("execute_new_0_cached_16", ("vllm", Decode, Some(0), None, Some(16), None, None)),
        ("step[DECODE bs=32]", ("sglang", Decode, None, None, Some(32), None, None)),
        ("step[EXTEND bs=15 toks=15360]", ("sglang", Prefill, Some(15), Some(15360), None, None, None)),
        (
            "[Executor] _forward_step 12: 0 ctx reqs, 8 gen reqs",
            ("tensorrt_llm", Decode, Some(0), None, Some(8), None, Some(12)),
        ),
        ("_forward_step: 1 ctx reqs, 8 gen reqs", ("tensorrt_llm", Mixed, Some(1), None, Some(8), None, None)),
        ("execute_model", ("generic", Unknown, None, None, None, None, None)),
        ("decode_step_17", ("generic", Decode, None, None, None, None, Some(17))),
        ("Decode", ("generic", Decode, None, None, None, None, None)),
        ("## prefill ##", ("generic", Prefill, None, None, None, None, None)),
        ("ProfilerStep#1009", ("torch", Unknown, None, None, None, None, Some(1009))),
        ("token_17_processing", ("generic", Decode, None, None, None, None, Some(17))),
        ("Optimizer.step#AdamW.step", ("torch_optimizer", Train, None, None, None, None, None)),
        ("[pl][profile]run_training_batch", ("lightning", Train, None, None, None, None, None)),
        ("train_step 7", ("generic", Train, None, None, None, None, Some(7))),
        // Digits beyond any count are absent, not wrong.
        ("step[DECODE bs=99999999999999]", ("sglang", Decode, None, None, None, None, None)),
    ];
    for (text, (engine, stage, pr, pt, dr, ctx, index)) in cases {
        let label = PACKS.step_label(text).expect(text);
        let found = (label.prefill_requests, label.prefill_tokens, label.decode_requests, label.context_tokens);
        assert_eq!((label.engine.as_str(), label.stage, label.index), (engine, stage, index), "{text}");
        assert_eq!(found, (pr, pt, dr, ctx), "{text}");
    }
    for text in
        ["", "capture_32_FULL", "aten::add, op_id = 317", "Optimizer.zero_grad#SGD", "decoder_layer", "stepping"]
    {
        assert_eq!(PACKS.step_label(text), None, "{text}");
    }
    let specificity = |text| PACKS.step_label(text).unwrap().specificity;
    assert!(specificity("step[DECODE bs=1]") > specificity("decode"));
    assert!(specificity("decode") > specificity("ProfilerStep#1"));
}

#[test]
fn host_activities() {
    for (name, label) in [
        ("vllm/v1/worker/gpu_model_runner.py(1234): _prepare_inputs", Some("prepare_inputs")),
        ("gpu_model_runner: preprocess", Some("prepare_inputs")),
        ("gpu_model_runner: sample", Some("sampler")),
        ("vllm/v1/core/sched/scheduler.py(88): schedule", Some("scheduler")),
        ("schedule: allocate_slots", Some("scheduler")),
        ("vllm/v1/engine/detokenizer.py(10): update", Some("detokenize")),
        ("transformers/tokenization_utils_fast.py(5): encode", Some("tokenizer")),
        ("gc", Some("gc")),
        ("gc.collect", Some("gc")),
        ("llm_engine step: get_output", Some("rpc")),
        ("aten::item", Some("read_back")),
        ("Torch-Compiled Region: 0/0", Some("compiled_glue")),
        ("triton/runtime/jit.py(653): run", Some("triton_launch")),
        ("triton/compiler/compiler.py(480): launch_metadata", Some("triton_launch")),
        ("triton/compiler/compiler.py(226): compile", Some("compile")),
        ("vllm/v1/executor/uniproc_executor.py(74): collective_rpc", None),
        ("Lazy function loading (CUDA)", Some("compile")),
        ("Command buffer full (CUDA)", Some("queue_full")),
        ("Enqueue", Some("enqueue")),
        ("Dequeue@aclnnInplaceCopy", Some("dequeue")),
        ("queue.py(7): Enqueue", None),
        ("aten::add", None),
        ("", None),
    ] {
        assert_eq!(PACKS.host_activity(name), label, "{name}");
    }
}

#[test]
fn cards_by_format_and_vendor() {
    for (format, vendor, id) in [
        ("kineto", None, "kineto"),
        ("kineto", Some("nvidia"), "kineto"),
        ("kineto", Some("cambricon"), "kineto-mlu"),
        ("kineto", Some("hygon"), "kineto-hygon"),
        ("nsys", Some("nvidia"), "nsys"),
        ("nsys-rep", None, "nsys"),
        ("msprof-db", Some("ascend"), "msprof"),
        ("msprof-op-summary", Some("ascend"), "op-summary"),
        ("hipprof", Some("hygon"), "hipprof"),
        ("hipprof", Some("nvidia"), "unknown"),
        ("what", None, "unknown"),
    ] {
        assert_eq!(PACKS.card(format, vendor).id, id, "{format} {vendor:?}");
    }
    assert!(PACKS.card("hipprof", Some("hygon")).duration_includes_dispatch);
    assert_eq!(PACKS.card("mctracer", Some("metax")).empty_kernel_ns_queued, Some(2000));
}

#[test]
fn every_rule_with_a_finding_has_advice_in_both_languages() {
    for rule in [
        "OP-03", "OP-05", "OP-07", "OP-08", "OP-14", "OP-23", "OP-24", "RT-01", "RT-03", "RT-05", "RT-08", "RT-09",
        "RT-10", "RT-11", "RT-12", "RT-14", "RT-15", "RT-18", "RT-22", "RT-23", "RT-24", "RT-25", "CO-01", "CM-06",
        "CM-11", "CP-04", "CP-05", "CP-07", "CP-08",
    ] {
        for vendor in [None, Some("nvidia"), Some("ascend"), Some("amd"), Some("unheard")] {
            let remedies = PACKS.remedies(rule, vendor);
            assert!(remedies.last().is_some_and(|r| r.platform == "generic"), "{rule} {vendor:?}");
            for r in remedies {
                assert!(!r.text_en.is_empty() && !r.source.is_empty() && r.date.len() == 7, "{rule}: {r:?}");
                assert!(r.text_zh.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)), "{rule}: {r:?}");
            }
        }
    }
    let platforms = |vendor| PACKS.remedies("RT-14", vendor).into_iter().map(|r| r.platform).collect::<Vec<_>>();
    assert_eq!(platforms(Some("ascend")), ["ascend", "generic"]);
    assert_eq!(platforms(Some("hygon")), ["rocm", "rocm", "generic"]);
    assert_eq!(platforms(None), ["generic"]);
    assert!(PACKS.remedies("XX-99", None).is_empty());
}

/// J15: the generic advice named CUDA's release to whoever runs on AMD.
#[test]
fn advice_names_no_tool_of_another_vendor() {
    const TOOLS: [(&str, &[&str]); 3] = [
        ("nvidia", &["CUDA 1", "nvidia-smi", "nsys", "Nsight", "cuBLAS", "CUTLASS", "cudaGraph"]),
        ("amd", &["ROCm", "rocprof", "rocm-smi", "amd-smi", "hipBLASLt", "hipGraph", "AITER"]),
        ("huawei", &["CANN", "msprof", "npu-smi", "torch_npu", "aclnn"]),
    ];
    let named = |text: &str| -> Vec<&str> {
        let named = TOOLS.iter().filter(|(_, tools)| tools.iter().any(|tool| text.contains(tool)));
        named.map(|(vendor, _)| *vendor).collect()
    };
    for entry in &PACKS.0.remedies {
        let text = format!("{} {}", entry.remedy.text_en, entry.remedy.text_zh);
        let vendors = named(&text);
        // One that names the tools of several lets the reader choose.
        let foreign = |vendor: &&str| !entry.vendors.iter().any(|own| own == vendor);
        assert!(vendors.len() > 1 || !vendors.iter().any(foreign), "{:?}: {vendors:?}: {text}", entry.rules);
    }
}

fn user_pack(text: &str) -> Result<Packs, PackError> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mine.toml"), text).unwrap();
    std::fs::write(dir.path().join("notes.txt"), "not a pack").unwrap();
    Packs::load(&[dir.path().to_path_buf()])
}

#[test]
fn a_folder_of_packs_that_is_not_there_is_said() {
    let error = Packs::load(&["/no/such/folder".into()]).unwrap_err().to_string();
    assert!(error.contains("/no/such/folder"), "{error}");
}

const HEAD: &str = "id = 'mine'\nsource = 'me'\ndate = '2026-01'\n";

#[test]
fn a_user_pack_goes_before_the_built_in_ones() {
    let packs = user_pack(&format!(
        "{HEAD}[[op]]\nname = 'rope'\nexact = ['my_secret_kernel']\n[[op]]\nname = 'act'\npriority = 99\nprefix = ['NVJET']\nignore_case = true\n\
         [[remedy]]\nrules = ['RT-14']\nen = 'a'\nzh = '甲'\n"
    ))
    .unwrap();
    assert_eq!(
        (packs.op("my_secret_kernel").op, packs.op("my_secret_kernel").pack),
        (CanonicalOp::Rope, "mine".into())
    );
    assert_eq!(packs.op("nvjet_tst_64x8").op, CanonicalOp::Act);
    assert_eq!(packs.remedies("RT-14", None)[0].platform, "mine");
}

#[test]
fn errors_of_a_pack_name_file_place_and_remedy() {
    for (text, parts) in [
        (
            "[[op]]\nname = 'rope'\npirority = 3\nexact = ['x']\n",
            vec!["mine.toml", "line 6", "`pirority`", "did you mean `priority`?"],
        ),
        ("[[op]]\nname = 'roope'\nexact = ['x']\n", vec!["mine.toml", "[[op]] 1", "`roope`", "kv_write"]),
        ("[[op]]\nname = 'rope'\n", vec!["mine.toml", "no pattern"]),
        ("[[op]]\nname = 'rope'\nregex = ['(']\n", vec!["mine.toml", "`(`"]),
        ("[[op]]\nname = 'rope'\nregex = ['(((a{99}){99}){99}){99}']\n", vec!["mine.toml", "smaller"]),
        ("[[host_call]]\nname = 'lunch'\nexact = ['x']\n", vec!["[[host_call]] 1", "lunch"]),
        ("[[op]]\nname = 'rope'\nexact = 'x\n", vec!["mine.toml", "line 6"]),
    ] {
        let error = user_pack(&format!("{HEAD}{text}")).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{part} not in: {error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_breaks_a_question(text in "\\PC{0,120}") {
        PACKS.op(&text);
        PACKS.host_call(&text);
        PACKS.host_activity(&text);
        PACKS.step_label(&text);
    }
}

#[test]
fn a_megabyte_name_is_answered_from_its_head() {
    let long = format!("void vllm::rms_norm_kernel<{}>(int)", "at::Tensor<(é".repeat(80_000));
    let begin = std::time::Instant::now();
    assert_eq!(PACKS.op(&long).op, CanonicalOp::Norm);
    PACKS.host_call(&long);
    PACKS.host_activity(&long);
    assert_eq!(PACKS.step_label(&"decode".repeat(200_000)), None);
    assert!(begin.elapsed().as_millis() < 2_000, "took {:?}", begin.elapsed());
}

/// Share of device time whose name a pack knows.
fn coverage(relative: &str) -> f64 {
    let corpus = std::env::var_os("STRATO_CORPUS").expect("STRATO_CORPUS has to name the folder of real captures");
    let file = std::fs::File::open(PathBuf::from(corpus).join(relative)).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let trace: serde_json::Value = serde_json::from_str(&text).unwrap();
    let (mut known, mut total) = (0.0, 0.0);
    for event in trace["traceEvents"].as_array().unwrap() {
        if ["kernel", "gpu_memcpy", "gpu_memset"].iter().any(|cat| event["cat"] == *cat) {
            let dur = event["dur"].as_f64().unwrap();
            total += dur;
            known += if PACKS.op(event["name"].as_str().unwrap()).mapped { dur } else { 0.0 };
        }
    }
    known / total
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn language_model_captures_are_mapped() {
    for relative in [
        "kineto/tl-vllm-decode-full/graph_execution.json.gz",
        "kineto/tl-h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
        "kineto/tl-mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
        "kineto/tl-sglang-prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz",
    ] {
        let share = coverage(relative);
        assert!(share >= 0.95, "{relative}: {share}");
    }
}

#[test]
fn advice_about_weights_is_given_only_where_a_weight_is_converted() {
    let about = |vendor, kernel: &str| -> String {
        let remedies = PACKS.remedies("OP-05", Some(vendor)).into_iter();
        remedies.filter(|r| r.is_about([kernel].into_iter())).map(|r| r.text_en).collect()
    };
    let cat = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int>";
    assert!(about("amd", cat).contains("Concatenations") && !about("amd", cat).contains("preshuffled"));
    let contiguous = "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>";
    assert!(!about("amd", contiguous).contains("preshuffled") && !about("amd", contiguous).contains("Concatenations"));
    assert!(about("amd", "batched_transpose_16x64_pack_4x2_ediv_1x2_half").contains("channels_last"));
    assert!(about("ascend", "aclnnMatmul_TransData_TransData").contains("FRACTAL_NZ"));
    assert!(!about("ascend", "aclnnTranspose_Transpose").contains("FRACTAL_NZ"));
}
