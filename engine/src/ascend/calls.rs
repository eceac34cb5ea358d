//! The calls of CANN that the engine makes, with their arguments as its documentation gives them: AscendCL ("acl API"), the
//! operators of aclnn in two phases, and HCCL. Names are checked against the libraries of a public package: `symbols` in the
//! tests says how.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};

use super::library::Libraries;

/// What a call returns; 0 where it was done.
pub(super) type Status = i32;
/// Something of a library's own.
pub(super) type Handle = *mut c_void;
/// The second phase of every operator: workspace, its size, executor, stream.
pub(super) type Run = unsafe extern "C" fn(*mut c_void, u64, Handle, Handle) -> Status;

/// An operator.
#[derive(Clone, Copy)]
pub(super) struct Operator<F> {
    pub name: &'static str,
    /// The same for the library, which keeps where it is and tells operators apart by that.
    pub symbol: &'static CStr,
    /// The first phase.
    pub size: F,
    /// The second.
    pub run: Run,
}

/// Calls that are found together.
macro_rules! calls {
    ($(#[$doc:meta])* $name:ident { $($call:ident as $field:ident($($argument:ty),*) -> $gives:ty;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) struct $name { $(pub $field: unsafe extern "C" fn($($argument),*) -> $gives,)* }

        impl $name {
            pub(super) const SYMBOLS: &[&str] = &[$(stringify!($call)),*];

            fn find(libraries: &Libraries) -> Result<Self, String> {
                // SAFETY: the arguments are those of the documentation.
                Ok(Self { $($field: unsafe { libraries.call(stringify!($call)) }?,)* })
            }
        }
    };
}

/// A text that ends with a zero byte.
const fn terminated(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => c"",
    }
}

/// Operators that are found together.
macro_rules! operators {
    ($(#[$doc:meta])* $name:ident { $($call:ident and $size:ident as $field:ident($($argument:ty),*);)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) struct $name {
            $(pub $field: Operator<unsafe extern "C" fn($($argument,)* *mut u64, *mut Handle) -> Status>,)*
        }

        impl $name {
            pub(super) const SYMBOLS: &[&str] = &[$(stringify!($size), stringify!($call)),*];

            fn find(libraries: &Libraries) -> Result<Self, String> {
                Ok(Self { $($field: Operator {
                    name: stringify!($call),
                    symbol: const { terminated(concat!(stringify!($call), "\0")) },
                    // SAFETY (both): the arguments are those of the documentation.
                    size: unsafe { libraries.call(stringify!($size)) }?,
                    run: unsafe { libraries.call(stringify!($call)) }?,
                },)* })
            }
        }
    };
}

calls! {
    /// The runtime, and the arguments of operators.
    Runtime {
        aclInit as init(*const c_char) -> Status;
        aclGetRecentErrMsg as recent() -> *const c_char;
        aclrtGetSocName as soc() -> *const c_char;
        aclrtGetDeviceCount as devices(*mut u32) -> Status;
        aclrtSetDevice as set_device(i32) -> Status;
        aclrtGetCurrentContext as current_context(*mut Handle) -> Status;
        aclrtSetCurrentContext as set_context(Handle) -> Status;
        aclrtGetMemInfo as memory(i32, *mut usize, *mut usize) -> Status;
        aclrtMalloc as malloc(*mut Handle, usize, i32) -> Status;
        aclrtFree as free(Handle) -> Status;
        aclrtMallocHost as malloc_host(*mut Handle, usize) -> Status;
        aclrtFreeHost as free_host(Handle) -> Status;
        aclrtMemset as memset(Handle, usize, i32, usize) -> Status;
        aclrtMemcpy as memcpy(Handle, usize, *const c_void, usize, i32) -> Status;
        aclrtMemcpyAsync as memcpy_async(Handle, usize, *const c_void, usize, i32, Handle) -> Status;
        aclrtCreateStreamWithConfig as create_stream(*mut Handle, u32, u32) -> Status;
        aclrtDestroyStream as destroy_stream(Handle) -> Status;
        aclrtSynchronizeStream as synchronize(Handle) -> Status;
        aclrtStreamWaitEvent as wait_event(Handle, Handle) -> Status;
        aclrtCreateEventExWithFlag as create_event(*mut Handle, u32) -> Status;
        aclrtDestroyEvent as destroy_event(Handle) -> Status;
        aclrtRecordEvent as record_event(Handle, Handle) -> Status;
        aclrtResetEvent as reset_event(Handle, Handle) -> Status;
        aclrtEventElapsedTime as elapsed(*mut f32, Handle, Handle) -> Status;
        aclCreateTensor as create_tensor(*const i64, u64, i32, *const i64, i64, i32, *const i64, u64, Handle) -> Handle;
        aclDestroyTensor as destroy_tensor(Handle) -> Status;
        aclCreateScalar as create_scalar(*mut c_void, i32) -> Handle;
        aclDestroyScalar as destroy_scalar(Handle) -> Status;
        aclCreateIntArray as create_ints(*const i64, u64) -> Handle;
        aclDestroyIntArray as destroy_ints(Handle) -> Status;
        aclCreateTensorList as create_list(*const Handle, u64) -> Handle;
        aclDestroyTensorList as destroy_list(Handle) -> Status;
        aclDestroyAclOpExecutor as destroy_executor(Handle) -> Status;
    }
}

operators! {
    /// Operators; arguments in the order of the documentation.
    Operators {
        aclnnEmbedding and aclnnEmbeddingGetWorkspaceSize as embedding(Handle, Handle, Handle);
        aclnnIndexSelect and aclnnIndexSelectGetWorkspaceSize as index_select(Handle, i64, Handle, Handle);
        aclnnInplaceIndexCopy and aclnnInplaceIndexCopyGetWorkspaceSize as index_copy(Handle, i64, Handle, Handle);
        aclnnRmsNorm and aclnnRmsNormGetWorkspaceSize as rms_norm(Handle, Handle, f64, Handle, Handle);
        aclnnAddRmsNorm and aclnnAddRmsNormGetWorkspaceSize
            as add_rms_norm(Handle, Handle, Handle, f64, Handle, Handle, Handle);
        aclnnMatmul and aclnnMatmulGetWorkspaceSize as matmul(Handle, Handle, Handle, i8);
        aclnnRotaryPositionEmbedding and aclnnRotaryPositionEmbeddingGetWorkspaceSize
            as rotary(Handle, Handle, Handle, i64, Handle);
        aclnnFusedInferAttentionScoreV2 and aclnnFusedInferAttentionScoreV2GetWorkspaceSize as infer_attention(
            Handle, Handle, Handle, Handle, Handle, Handle, Handle, Handle, Handle, Handle, Handle, Handle, Handle, Handle,
            Handle, Handle, Handle, Handle, Handle, Handle, Handle, Handle, Handle, Handle, i64, f64, i64, i64,
            *const c_char, i64, i64, i64, i64, i64, bool, i64, i64, Handle, Handle
        );
        aclnnFlashAttentionScore and aclnnFlashAttentionScoreGetWorkspaceSize as masked_attention(
            Handle, Handle, Handle, Handle, Handle, Handle, Handle, Handle, f64, f64, i64, i64, i64, *const c_char, i64, i64,
            Handle, Handle, Handle, Handle
        );
        aclnnSwiGlu and aclnnSwiGluGetWorkspaceSize as swiglu(Handle, i64, Handle);
        aclnnSilu and aclnnSiluGetWorkspaceSize as silu(Handle, Handle);
        aclnnMul and aclnnMulGetWorkspaceSize as mul(Handle, Handle, Handle);
        aclnnInplaceMul and aclnnInplaceMulGetWorkspaceSize as inplace_mul(Handle, Handle);
        aclnnInplaceAdd and aclnnInplaceAddGetWorkspaceSize as inplace_add(Handle, Handle, Handle);
        aclnnInplaceAdds and aclnnInplaceAddsGetWorkspaceSize as inplace_adds(Handle, Handle, Handle);
        aclnnInplaceRsqrt and aclnnInplaceRsqrtGetWorkspaceSize as inplace_rsqrt(Handle);
        aclnnInplaceCopy and aclnnInplaceCopyGetWorkspaceSize as inplace_copy(Handle, Handle);
        aclnnMean and aclnnMeanGetWorkspaceSize as mean(Handle, Handle, bool, i32, Handle);
        aclnnArgMax and aclnnArgMaxGetWorkspaceSize as argmax(Handle, i64, bool, Handle);
    }
}

operators! {
    /// Weights in NZ.
    NzOperators {
        aclnnNpuFormatCast and aclnnNpuFormatCastGetWorkspaceSize as layout(Handle, Handle);
        aclnnMatmulWeightNz and aclnnMatmulWeightNzGetWorkspaceSize as matmul(Handle, Handle, Handle, i8);
    }
}

calls! {
    /// What a tensor is in another format: its dimensions, how many they are, and the format it really gets.
    NzShape {
        aclnnNpuFormatCastCalculateSizeAndFormat as of(Handle, i32, i32, *mut *mut i64, *mut u64, *mut i32) -> Status;
    }
}

calls! {
    /// The cache of executors, by which torch_npu prepares an operator once: what is asked for between `begin` and `end` is
    /// found there by its key, or what is prepared instead is kept there by it. Before, the cache is asked whether it takes the
    /// operator; its name must stay. Addresses are those of the memory of every tensor, in the order of the call and once for each
    /// argument. As `op_api_common.h` of Ascend's op-plugin calls them.
    Reuse {
        InitPTACacheThreadLocal as begin() -> ();
        UnInitPTACacheThreadLocal as end() -> ();
        CanUsePTACache as can(*const c_char) -> bool;
        AddTensorAddrToCachedList as address(Handle) -> ();
        SetPTACacheHashKey as key(*mut u8, usize) -> ();
        PTAFindExecCache as executor(*mut u8, usize, *mut u64) -> Handle;
    }
}

calls! {
    /// Steps that are captured and replayed.
    Graphs {
        aclmdlRICaptureBegin as begin(Handle, i32) -> Status;
        aclmdlRICaptureEnd as end(Handle, *mut Handle) -> Status;
        aclmdlRIExecuteAsync as execute(Handle, Handle) -> Status;
        aclmdlRIDestroy as destroy(Handle) -> Status;
        aclmdlRICaptureTaskGrpBegin as group_begin(Handle) -> Status;
        aclmdlRICaptureTaskGrpEnd as group_end(Handle, *mut Handle) -> Status;
        aclmdlRICaptureTaskUpdateBegin as update_begin(Handle, Handle) -> Status;
        aclmdlRICaptureTaskUpdateEnd as update_end(Handle) -> Status;
    }
}

calls! {
    /// Collectives.
    Hccl {
        HcclGetRootInfo as root(*mut u8) -> Status;
        HcclCommInitRootInfo as join(u32, *const u8, u32, *mut Handle) -> Status;
        HcclCommDestroy as leave(Handle) -> Status;
        HcclAllReduce as all_reduce(Handle, Handle, u64, i32, i32, Handle, Handle) -> Status;
        HcclAllGather as all_gather(Handle, Handle, u64, i32, Handle, Handle) -> Status;
    }
}

/// Everything that was found. What only some runs need may be missing: then it is said why.
pub(super) struct Api {
    pub runtime: Runtime,
    pub operators: Operators,
    pub nz: Result<(NzOperators, NzShape), String>,
    pub reuse: Result<Reuse, String>,
    pub graphs: Result<Graphs, String>,
    pub hccl: Result<Hccl, String>,
    /// Whether it is the simulator.
    pub simulated: bool,
    /// The library that was opened first.
    pub library: String,
}

impl Api {
    pub(super) fn find(libraries: &Libraries) -> Result<Self, String> {
        Ok(Self {
            runtime: Runtime::find(libraries)?,
            operators: Operators::find(libraries)?,
            nz: NzOperators::find(libraries).and_then(|nz| Ok((nz, NzShape::find(libraries)?))),
            reuse: Reuse::find(libraries),
            graphs: Graphs::find(libraries),
            hccl: Hccl::find(libraries),
            simulated: libraries.has("strato_sim_npu"),
            library: libraries.first().to_owned(),
        })
    }

    /// The names of all calls.
    pub(super) fn symbols() -> impl Iterator<Item = &'static str> {
        let groups = [
            Runtime::SYMBOLS,
            Operators::SYMBOLS,
            NzOperators::SYMBOLS,
            NzShape::SYMBOLS,
            Reuse::SYMBOLS,
            Graphs::SYMBOLS,
            Hccl::SYMBOLS,
        ];
        groups.into_iter().flatten().copied()
    }
}
