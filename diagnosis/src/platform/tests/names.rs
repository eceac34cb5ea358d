//! Real kernel names of every platform.

/// Kernel names and op types as profilers print them, with the row of the canonical operator table they belong to.
pub const NAMES: &[(&str, &str)] = &[
    // gemm: cuBLAS by architecture, cuBLASLt, CUTLASS, split-K reduction, quantised
    (
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
        "gemm",
    ),
    ("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", "gemm"),
    ("ampere_bf16_s16816gemm_bf16_64x64_ldg8_f2f_stages_64x5_tn", "gemm"),
    (
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8::Params)",
        "gemm",
    ),
    ("void cublasLt::splitKreduce_kernel<32, 16, int, __nv_bfloat16>(cublasLt::cublasSplitKParams)", "gemm"),
    ("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>()", "gemm"),
    ("void gptq_marlin::Marlin<__nv_bfloat16, 256, 4, 16>(int4 const*)", "gemm"),
    ("volta_sgemm_128x32_nt", "gemm"),
    // operators that the host computes
    ("aten::addmm", "gemm"),
    ("aten::silu", "act"),
    ("aten::native_layer_norm", "norm"),
    ("aten::scaled_dot_product_attention", "attn"),
    // gemm: ROCm
    ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256_MI16x16x1_SN_LDSB1", "gemm"),
    ("void wvSplitK_hf_sml_<__hip_bfloat16, 64, 4, 16, 8, 2, 1>(int, int)", "gemm"),
    ("_ZN2ck16tensor_operation6device29kernel_gemm_xdl_cshuffle_v3INS_34GridwiseGemm_xdl_cshuffle_v3E", "gemm"),
    ("void mul_mat_vec_q<(ggml_type)13, 1, false, false>(void const*, void const*, int const*) [clone .kd]", "gemm"),
    // gemm: Ascend, MLU
    ("MatMulV3", "gemm"),
    ("aclnnMatmul_MatMulCommon_MatMulV3", "gemm"),
    ("QuantBatchMatmulV3", "gemm"),
    ("Default/network-LLM/layers/MatMul-op123", "gemm"),
    ("MLUUnion1KernelGemmBf16", "gemm"),
    ("Default/network-LLM/FusionOp_BatchMatMul_Add-op7", "gemm"),
    ("Gradients/Default/network-WithLossCell/gradReLU-expand/FusionOp_Conv2DBackpropInputD_ReluGradV2-op528", "conv"),
    // gemm: MTIA, cuDNN
    ("fc-dtype_Float", "gemm"),
    ("batch_matmul-dtype_Float-extraKey_2", "gemm"),
    (
        "void fft2d_c2r_32x32<float, false, false, 0u, false, false>(float*, float2 const*, int, int, cudnn::reduced_divisor)",
        "conv",
    ),
    // grouped_gemm
    ("fused_moe_kernel", "grouped_gemm"),
    ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", "grouped_gemm"),
    ("_ZN2ck15kernel_moe_gemmINS_27GridwiseMoeGemmE", "grouped_gemm"),
    ("GroupedMatmulSwigluQuantV2", "grouped_gemm"),
    // attention
    (
        "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>(flash::Flash_fwd_params)",
        "attn_decode",
    ),
    ("void flashinfer::BatchDecodeWithPagedKVCacheKernel<(PosEncodingMode)0>(Params)", "attn_decode"),
    ("void vllm::paged_attention_v1_kernel<__half, __half, 128, 16>(__half*)", "attn_decode"),
    (
        "void paged_attention_ll4mi_QKV_mfma16_kernel<__hip_bfloat16, __hip_bfloat16>(__hip_bfloat16 const*)",
        "attn_decode",
    ),
    ("kernel_unified_attention_3d", "attn_decode"),
    ("IncreFlashAttention", "attn_decode"),
    (
        "_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS_40BlockFmhaBatchPrefillPipelineE",
        "attn_prefill",
    ),
    ("PromptFlashAttention", "attn_prefill"),
    ("kernel_unified_attention_2d", "attn"),
    (
        "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4>>(pytorch_flash::Flash_fwd_params)",
        "attn",
    ),
    ("attn_fwd", "attn"),
    ("FusedInferAttentionScore", "attn"),
    ("reduce_segments", "attn_combine"),
    (
        "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64>>(flash::Flash_fwd_params)",
        "attn_combine",
    ),
    ("void vllm::paged_attention_v2_reduce_kernel<__half, 128>(__half*)", "attn_combine"),
    // norm, add_norm
    ("void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*)", "norm"),
    ("void flashinfer::norm::RMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*)", "norm"),
    ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float)", "norm"),
    ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib", "norm"),
    (
        "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27PipelineE_18Rmsnorm2dFwdTraitsILb1ELNS_21Rmsnorm2dFusedAddEnumE0E",
        "norm",
    ),
    ("RmsNorm", "norm"),
    (
        "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27PipelineE_18Rmsnorm2dFwdTraitsILb1ELNS_21Rmsnorm2dFusedAddEnumE1E",
        "add_norm",
    ),
    (
        "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb1ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib",
        "add_norm",
    ),
    ("std::enable_if<true, void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)", "add_norm"),
    ("AddRmsNormBias", "add_norm"),
    ("triton_red_fused_add_mean_mul_pow_rsqrt", "add_norm"),
    ("triton_per_fused__to_copy_mean_mul_pow_rsqrt_3", "norm"),
    // rope, act, kv_write, quant
    ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*)", "rope"),
    ("RotaryMul", "rope"),
    ("void rope_neox<true, false, float, __half>(float const*) [clone .kd]", "rope"),
    (
        "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i",
        "act",
    ),
    ("void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel, true>(c10::BFloat16*)", "act"),
    ("triton_poi_fused_mul_silu_5", "act"),
    ("SwiGlu", "act"),
    (
        "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0>(__hip_bfloat16 const*)",
        "kv_write",
    ),
    (
        "void (anonymous namespace)::store_kvcache<2048l, 4, false, long>((anonymous namespace)::StoreKVCacheParams)",
        "kv_write",
    ),
    ("ScatterPaKvCache", "kv_write"),
    ("void per_token_group_quant_8bit_kernel<c10::BFloat16, c10::Float8_e4m3fn>(void const*)", "quant"),
    ("DynamicQuant", "quant"),
    // moe_route
    ("_topk_forward", "moe_route"),
    ("_combined_routing_memset", "moe_route"),
    ("_finalize_matmul_scatter_bf16", "moe_route"),
    ("void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, int>(float const*)", "moe_route"),
    ("MoeInitRoutingV2", "moe_route"),
    // communication
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "comm_allreduce"),
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", "comm_allreduce"),
    ("hcom_allReduce__954_0_1", "comm_allreduce"),
    ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "comm_other"),
    ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "comm_other"),
    ("MoeDistributeDispatchV2", "comm_other"),
    // format, fill, index, copy
    (
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}>(int)",
        "format",
    ),
    (
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>(float*)",
        "format",
    ),
    ("triton_poi_fused__to_copy_1", "format"),
    ("TransData", "format"),
    ("MLUBlockKernel4StagePipelineTranspose", "format"),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<long>, std::array<char*, 1ul> >(int)",
        "fill",
    ),
    ("__amd_rocclr_fillBufferAligned", "fill"),
    (
        "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, unsigned int, 2, 2, -2, true>(int)",
        "index",
    ),
    ("GatherV2", "index"),
    ("Memcpy HtoD (Pageable -> Device)", "copy"),
    ("[CUDA memcpy Device-to-Host]", "copy"),
    // sample, fused_attn_pre, elementwise, softmax, reduce, embedding
    (
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4> >(int)",
        "sample",
    ),
    ("void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u>(float*)", "sample"),
    ("ArgMaxV2", "sample"),
    ("MlaPrologV2", "fused_attn_pre"),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)",
        "elementwise",
    ),
    ("RealDiv", "elementwise"),
    ("void <unnamed>::softmax_warp_forward<float, float, float, (int)6, (bool)0, (bool)0>(T2 *)", "softmax"),
    (
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, 4> >(int)",
        "reduce",
    ),
    ("triton_poi_fused_embedding_0", "embedding"),
    // training steps of MindSpore and MTIA, what graph engines insert, and a roofline
    ("Default/optimizer-Momentum/FusedMulApplyMomentum-op292", "optimizer"),
    ("Gradients/Default/network-WithLossCell/gradBiasAdd-expand/BiasAddGrad-op191", "reduce"),
    ("Default/network-WithLossCell/_backbone-AlexNet/FusionOp_BiasAdd_ReluV2-op532", "act"),
    ("trans_TransData_12", "format"),
    ("trans_Cast_3", "format"),
    ("dma_request", "copy"),
    ("split_eb_bwd_rowwise_adagrad-dtype_Half", "embedding"),
    ("vector_norm_float_order-dtype_Float", "reduce"),
    ("aten::mul.out-dtype_Float", "elementwise"),
    ("aten::cat.out-dtype_Float-extraKey_15", "format"),
    (
        "void benchmark_func<HIP_vector_type<float, 2u>, 256, 8u, 512u>(HIP_vector_type<float, 2u>*) [clone .kd]",
        "elementwise",
    ),
    ("void cask_cudnn_infer::computeOffsetsKernel<false, false>(cask_cudnn_infer::ComputeOffsetsParams)", "index"),
    ("cask_cudnn_train::computeWgradSplitKOffsetsKernel(cask_cudnn_train::ComputeSplitKOffsetsParams)", "index"),
    ("void cudnn::cnn::im2col4d_kernel<float, long>(cudnn::cnn::im2col4d_params)", "format"),
    ("fused__autocast_to__12152488584593855096", "format"),
];
