//! The device work of a decoder: each slot's class, its framework operator, the kernel names that CUDA, ROCm and
//! CANN stacks give it, and the range its duration is drawn from.

use serde::{Deserialize, Serialize};

/// Whose names the capture carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vendor {
    /// `cuda*` calls, NVIDIA kernel names.
    Cuda,
    /// `hip*` calls, AMD kernel names.
    Rocm,
    /// Calls of AscendCL, names of CANN's kernels and collectives.
    Ascend,
}

/// Class of a compute kernel; the truth's bucket is `compute.<class>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the names are the classes
pub enum Class {
    Gemm,
    Attention,
    Norm,
    Rope,
    Act,
    KvWrite,
    Moe,
    Quant,
    Sample,
    Elementwise,
    Format,
    Fill,
    Index,
}

impl Class {
    /// Name in bucket keys.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gemm => "gemm",
            Self::Attention => "attention",
            Self::Norm => "norm",
            Self::Rope => "rope",
            Self::Act => "act",
            Self::KvWrite => "kv_write",
            Self::Moe => "moe",
            Self::Quant => "quant",
            Self::Sample => "sample",
            Self::Elementwise => "elementwise",
            Self::Format => "format",
            Self::Fill => "fill",
            Self::Index => "index",
        }
    }
}

/// What is known of a slot's kernels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Card {
    pub(crate) slot: Slot,
    /// `None` for collectives.
    pub(crate) class: Option<Class>,
    /// Operator of the framework that launches it.
    pub(crate) operator: &'static str,
    pub(crate) cuda: &'static str,
    pub(crate) rocm: &'static str,
    /// What CANN calls it: function, implementation and type of an operator; operation of a collective.
    pub(crate) ascend: &'static str,
    /// Shortest and longest decode duration that a configuration may draw (ns).
    pub(crate) range: (i64, i64),
}

macro_rules! slots {
    ($($slot:ident $class:expr, $operator:literal, $lo:literal..$hi:literal, $cuda:literal, $rocm:literal, $ascend:literal;)*) => {
        /// A place in the model that device work fills.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs)] // the names are the places
        pub enum Slot { $($slot,)* }

        pub(crate) const CARDS: &[Card] = &[$(Card {
            slot: Slot::$slot, class: $class, operator: $operator, cuda: $cuda, rocm: $rocm, ascend: $ascend,
            range: ($lo, $hi),
        },)*];
    };
}

const fn c(class: Class) -> Option<Class> {
    Some(class)
}

slots! {
    Embedding c(Class::Index), "aten::embedding", 1_800..3_500,
        "void at::native::(anonymous namespace)::indexSelectSmallIndex<c10::BFloat16, long, unsigned int, 2, 2, -2>(at::cuda::detail::TensorInfo<c10::BFloat16, unsigned int>)",
        "void at::native::(anonymous namespace)::indexSelectSmallIndex<c10::BFloat16, long, unsigned int, 2, 2, -2>(at::cuda::detail::TensorInfo<c10::BFloat16, unsigned int>)",
        "aclnnEmbedding_GatherV2AiCore_GatherV2";
    Positions c(Class::Elementwise), "aten::add_", 1_500..2_400,
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<long>, std::array<char*, 2ul> >(int, at::native::CUDAFunctorOnSelf_add<long>, std::array<char*, 2ul>)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<long>, std::array<char*, 2ul> >(int, at::native::CUDAFunctorOnSelf_add<long>, std::array<char*, 2ul>)",
        "aclnnInplaceAdd_AddAiCore_Add";
    InputNorm c(Class::Norm), "_C::fused_add_rms_norm", 2_200..5_500,
        "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, c10::BFloat16*, c10::BFloat16 const*, float, int, int)",
        "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, c10::BFloat16*, c10::BFloat16 const*, float, int, int)",
        "aclnnAddRmsNorm_AddRmsNorm_AddRmsNorm";
    InputQuant c(Class::Quant), "_C::dynamic_scaled_fp8_quant", 1_800..3_000,
        "void vllm::scaled_fp8_quant_kernel<c10::BFloat16, c10::Float8_e4m3fn>(c10::Float8_e4m3fn*, c10::BFloat16 const*, float const*, long)",
        "void vllm::dynamic_per_token_scaled_fp8_quant_kernel<c10::BFloat16, c10::Float8_e4m3fnuz>(c10::Float8_e4m3fnuz*, float*, c10::BFloat16 const*, int)",
        "aclnnDynamicQuantV2_DynamicQuantV2_DynamicQuantV2";
    Qkv c(Class::Gemm), "aten::mm", 5_000..22_000,
        "nvjet_tst_64x8_64x16_1x4_h_bz_TNT",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT16x16x256_MI16x16x1_SN_LDSB1_GRVWA8_GRVWB8_GSU4_WG16_16_1",
        "aclnnMatmul_MatMulCommon_MatMulV3";
    Rope c(Class::Rope), "_C::rotary_embedding", 1_800..3_800,
        "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, c10::BFloat16*, c10::BFloat16 const*, int, long, long, int, int, int)",
        "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, c10::BFloat16*, c10::BFloat16 const*, int, long, long, int, int, int)",
        "aclnnApplyRotaryPosEmb_ApplyRotaryPosEmb_ApplyRotaryPosEmb";
    KvWrite c(Class::KvWrite), "_C_cache_ops::reshape_and_cache_flash", 1_700..3_200,
        "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>(__nv_bfloat16 const*, __nv_bfloat16 const*, __nv_bfloat16*, __nv_bfloat16*, long const*)",
        "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0>(__hip_bfloat16 const*, __hip_bfloat16 const*, __hip_bfloat16*, __hip_bfloat16*, long const*)",
        "aclnnScatterPaKvCache_ScatterPaKvCache_ScatterPaKvCache";
    Attention c(Class::Attention), "vllm::unified_attention_with_output", 6_000..40_000,
        "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t>, false, false, false, false, true, true, true, false>(flash::Flash_fwd_params)",
        "kernel_unified_attention_3d",
        "aclnnFusedInferAttentionScoreV3_FusedInferAttentionScore_FusedInferAttentionScore";
    AttentionCombine c(Class::Attention), "vllm::unified_attention_with_output", 1_800..4_500,
        "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t>, 4, 3, true>(flash::Flash_fwd_params)",
        "reduce_segments",
        "aclnnAttentionUpdate_AttentionUpdate_AttentionUpdate";
    OutProj c(Class::Gemm), "aten::mm", 4_000..16_000,
        "nvjet_tst_64x8_64x16_2x1_v_bz_splitK_TNT",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x16x256_MI16x16x1_SN_LDSB1_GRVWA8_GRVWB8_GSU8_WG32_8_1",
        "aclnnMatmul_MatMulCommon_MatMulV2";
    AttentionReduce None, "c10d::allreduce_", 6_000..18_000,
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
        "hcom_allReduce_";
    PostNorm c(Class::Norm), "_C::fused_add_rms_norm", 2_200..5_500,
        "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, c10::BFloat16*, c10::BFloat16 const*, float, int, int)",
        "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, c10::BFloat16*, c10::BFloat16 const*, float, int, int)",
        "aclnnAddRmsNorm_AddRmsNorm_AddRmsNorm";
    PostQuant c(Class::Quant), "_C::dynamic_scaled_fp8_quant", 1_800..3_000,
        "void vllm::scaled_fp8_quant_kernel<c10::BFloat16, c10::Float8_e4m3fn>(c10::Float8_e4m3fn*, c10::BFloat16 const*, float const*, long)",
        "void vllm::dynamic_per_token_scaled_fp8_quant_kernel<c10::BFloat16, c10::Float8_e4m3fnuz>(c10::Float8_e4m3fnuz*, float*, c10::BFloat16 const*, int)",
        "aclnnDynamicQuantV2_DynamicQuantV2_DynamicQuantV2";
    SideProjection c(Class::Gemm), "aten::mm", 5_000..18_000,
        "nvjet_tst_64x16_64x16_1x2_h_bz_TNT",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT16x32x256_MI16x16x1_SN_LDSB1_GRVWA8_GRVWB8_GSU4_WG16_16_1",
        "aclnnMm_MatMulCommon_MatMulV2";
    GateUp c(Class::Gemm), "aten::mm", 9_000..45_000,
        "nvjet_tst_128x8_64x12_2x1_v_bz_TNT",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x16x256_MI16x16x1_SN_LDSB1_GRVWA8_GRVWB8_GSU2_WG64_4_1",
        "aclnnMm_MatMulCommon_MatMulV3";
    Act c(Class::Act), "_C::silu_and_mul", 2_000..5_000,
        "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*, c10::BFloat16 const*, int)",
        "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*, c10::BFloat16 const*, int)",
        "aclnnSwiGlu_SwiGlu_SwiGlu";
    Down c(Class::Gemm), "aten::mm", 7_000..32_000,
        "nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256_MI16x16x1_SN_LDSB1_GRVWA8_GRVWB8_GSU8_WG32_8_1",
        "aclnnAddmm_MatMulCommon_MatMulV3";
    SideAdd c(Class::Elementwise), "aten::add_", 1_500..2_600,
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)",
        "aclnnAdd_AddAiCore_Add";
    MlpReduce None, "c10d::allreduce_", 6_000..18_000,
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
        "hcom_allReduce_";
    ExtraGather None, "c10d::_allgather_base_", 6_000..18_000,
        "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_Generic_2(ncclDevKernelArgsStorage<4096ul>)",
        "hcom_allGather_";
    FinalNorm c(Class::Norm), "_C::fused_add_rms_norm", 2_200..5_500,
        "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, c10::BFloat16*, c10::BFloat16 const*, float, int, int)",
        "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, c10::BFloat16*, c10::BFloat16 const*, float, int, int)",
        "aclnnAddRmsNorm_AddRmsNorm_AddRmsNorm";
    LmHead c(Class::Gemm), "aten::mm", 30_000..160_000,
        "nvjet_tst_256x8_64x4_2x1_v_bz_TNT",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x16x64_MI16x16x1_SN_LDSB1_GRVWA8_GRVWB8_GSU1_WG64_4_1",
        "aclnnMatmulWeightNz_MatMulCommon_MatMulV3";
    LogitsCast c(Class::Format), "aten::to", 2_500..6_000,
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul>, 4>(int)",
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul>, 4>(int)",
        "aclnnCast_CastAiCore_Cast";
    Softmax c(Class::Sample), "aten::softmax", 5_000..14_000,
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(float*, float const*, int)",
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(float*, float const*, int)",
        "aclnnSoftmax_SoftmaxV2_SoftmaxV2";
    Argmax c(Class::Sample), "aten::argmax", 5_000..16_000,
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4> >(at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4>)",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4> >(at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4>)",
        "aclnnArgMax_ArgMaxV2_ArgMaxV2";
    Sort c(Class::Sample), "aten::sort", 12_000..20_000,
        "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<at_cuda_detail::cub::DeviceRadixSortPolicy<float, long, unsigned long long>::Policy900, false, float, long, unsigned int, int, int>(int*, unsigned int*)",
        "void rocprim::detail::DeviceRadixSortOnesweepKernel<rocprim::radix_sort_config, false, float, long>(float const*, long*)",
        "aclnnSort_Sort_Sort";
    Transpose c(Class::Format), "aten::contiguous", 3_000..6_000,
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}>(at::TensorIteratorBase&)::{lambda(int)#1}>(int)",
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}>(at::TensorIteratorBase&)::{lambda(int)#1}>(int)",
        "aclnnPermute_Transpose_Transpose";
    Small c(Class::Elementwise), "aten::mul", 1_400..2_200,
        "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int)",
        "aclnnMul_MulAiCore_Mul";
    UnfusedNorm c(Class::Elementwise), "aten::pow", 2_000..4_000,
        "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::pow_tensor_scalar_kernel_impl<float, float>(at::TensorIteratorBase&, float)::{lambda(float)#1}, std::array<char*, 2ul> >(int)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::pow_tensor_scalar_kernel_impl<float, float>(at::TensorIteratorBase&, float)::{lambda(float)#1}, std::array<char*, 2ul> >(int)",
        "aclnnPowTensorScalar_SquareAiCore_Square";
    UnfusedAct c(Class::Act), "aten::silu", 2_200..4_500,
        "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)",
        "aclnnSilu_SwishAiCore_Swish";
    UnfusedRope c(Class::Elementwise), "aten::neg", 1_800..3_200,
        "void at::native::vectorized_elementwise_kernel<4, at::native::neg_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::neg_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)",
        "aclnnNeg_NegAiCore_Neg";
    CastUp c(Class::Format), "aten::to", 1_600..3_000,
        "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16tofloat32_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16tofloat32_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)",
        "aclnnCast_CastAiCore_Cast";
    CastDown c(Class::Format), "aten::to", 1_600..3_000,
        "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, 2ul> >(int)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, 2ul> >(int)",
        "aclnnCast_CastAiCore_Cast";
    Fill c(Class::Fill), "aten::fill_", 1_500..2_600,
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<c10::BFloat16>, std::array<char*, 1ul> >(int, at::native::FillFunctor<c10::BFloat16>, std::array<char*, 1ul>)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<c10::BFloat16>, std::array<char*, 1ul> >(int, at::native::FillFunctor<c10::BFloat16>, std::array<char*, 1ul>)",
        "aclnnInplaceFillScalar_FillAiCore_Fill";
    PrefillTile c(Class::Gemm), "aten::mm", 10_000..40_000,
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x128x64_MI16x16x1_SN_LDSB1_GRVWA8_GRVWB8_GSU1_WG64_4_1",
        "aclnnMatmul_MatMulCommon_MatMulV2";
    AttentionWhole c(Class::Attention), "vllm::unified_attention_with_output", 20_000..60_000,
        "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t>, false, true, false, false, true, true, false, false>(flash::Flash_fwd_params)",
        "kernel_unified_attention_2d",
        "aclnnFlashAttentionScore_FlashAttentionScore_FlashAttentionScore";
    Route c(Class::Moe), "vllm::topk_softmax", 3_000..6_000,
        "void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, int>(float const*, bool const*, float*, int, int*, int*, int, int, int)",
        "void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, int>(float const*, bool const*, float*, int, int*, int*, int, int, int)",
        "aclnnMoeGatingTopKSoftmax_MoeGatingTopKSoftmax_MoeGatingTopKSoftmax";
    Align c(Class::Moe), "_moe_C::moe_align_block_size", 3_000..7_000,
        "void vllm::moe::moe_align_block_size_kernel<int>(int const*, int*, int*, int*, int, int, unsigned long, int*)",
        "void vllm::moe::moe_align_block_size_kernel<int>(int const*, int*, int*, int*, int, int, unsigned long, int*)",
        "aclnnMoeInitRoutingV2_MoeInitRoutingV2_MoeInitRoutingV2";
    ExpertUp c(Class::Gemm), "vllm::moe_forward", 20_000..60_000,
        "fused_moe_kernel",
        "fused_moe_kernel",
        "aclnnGroupedMatmulV4_GroupedMatmul_GroupedMatmul";
    ExpertDown c(Class::Gemm), "vllm::moe_forward", 12_000..35_000,
        "fused_moe_kernel",
        "fused_moe_kernel",
        "aclnnGroupedMatmulV4_GroupedMatmul_GroupedMatmul";
    Gather c(Class::Moe), "_moe_C::moe_sum", 2_000..4_500,
        "void vllm::moe::moe_sum_kernel<c10::BFloat16, 8>(c10::BFloat16*, c10::BFloat16 const*, int)",
        "void vllm::moe::moe_sum_kernel<c10::BFloat16, 8>(c10::BFloat16*, c10::BFloat16 const*, int)",
        "aclnnMoeFinalizeRoutingV2_MoeFinalizeRoutingV2_MoeFinalizeRoutingV2";
    Dispatch None, "c10d::alltoall_base_", 9_000..24_000,
        "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_Generic_3(ncclDevKernelArgsStorage<4096ul>)",
        "hcom_alltoallv_";
    Combine None, "c10d::alltoall_base_", 9_000..24_000,
        "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_Generic_3(ncclDevKernelArgsStorage<4096ul>)",
        "hcom_alltoallv_";
    TreeReduce None, "c10d::allreduce_", 9_000..24_000,
        "ncclDevKernel_AllReduce_Sum_bf16_TREE_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
        "hcom_allReduce_";
    UnfusedMean c(Class::Elementwise), "aten::mean", 2_000..4_000,
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, 4, 4> >(at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, 4, 4>)",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, 4, 4> >(at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, 4, 4>)",
        "aclnnMean_ReduceMean_ReduceMean";
    UnfusedRsqrt c(Class::Elementwise), "aten::rsqrt", 2_000..4_000,
        "void at::native::vectorized_elementwise_kernel<4, at::native::rsqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, 2ul> >(int)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::rsqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, 2ul> >(int)",
        "aclnnRsqrt_RsqrtAiCore_Rsqrt";
    UnfusedCat c(Class::Format), "aten::cat", 1_800..3_200,
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>(at::native::(anonymous namespace)::OpaqueType<2u>*)",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>(at::native::(anonymous namespace)::OpaqueType<2u>*)",
        "aclnnCat_ConcatD_ConcatD";
    Send None, "c10d::send", 10_000..30_000,
        "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_Generic_3(ncclDevKernelArgsStorage<4096ul>)",
        "hcom_send_";
    Recv None, "c10d::recv_", 10_000..30_000,
        "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_Generic_3(ncclDevKernelArgsStorage<4096ul>)",
        "hcom_receive_";
}

impl Slot {
    pub(crate) fn card(self) -> &'static Card {
        // The table is written in the order of the variants.
        &CARDS[self as usize]
    }

    /// Kernel name under `vendor`'s stack.
    pub fn kernel(self, vendor: Vendor) -> &'static str {
        match vendor {
            Vendor::Cuda => self.card().cuda,
            Vendor::Rocm => self.card().rocm,
            Vendor::Ascend => self.card().ascend,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_in_the_order_of_the_slots() {
        for card in CARDS {
            assert_eq!(card.slot.card().slot, card.slot);
            assert!(card.range.0 > 0 && card.range.0 < card.range.1);
        }
    }
}
