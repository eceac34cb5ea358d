//! What is used of `cudarc`'s bindings, which are those of one version of CUDA, against the vendor's headers of all that are at
//! hand: a number or size that another version has otherwise would go wrong on its libraries. A C++ compiler holds them against
//! the headers that lie below a directory of `STRATO_CUPTI_INCLUDE` (the packages `nvidia-cuda-runtime`, `nvidia-cuda-nvrtc`,
//! `nvidia-cublas` and `nvidia-nccl` of PyPI, unpacked); `STRATO_CUBLASLT` and `STRATO_NCCL` name libraries.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::BTreeSet,
    fmt::Write,
    path::{Path, PathBuf},
    process::Command,
};

use cudarc::{
    cublaslt::sys::{
        self as cublaslt_sys, cublasComputeType_t, cublasLtEpilogue_t, cublasLtMatmulDescAttributes_t,
        cublasLtMatmulPreferenceAttributes_t, cublasStatus_t, cudaDataType_t,
    },
    driver::sys::{
        CUdevice_attribute, CUdeviceptr, CUevent_flags, CUjit_option, CUresult, CUstream_flags, CUstreamCaptureMode,
    },
    nccl::sys::{ncclDataType_t, ncclRedOp_t, ncclResult_t, ncclUniqueId},
    nvrtc::sys::nvrtcResult,
};

use super::{compiler, cublaslt, driver, nccl};

/// A header with the calls that it declares, and constants of it with their values in the bindings.
struct Header {
    name: &'static str,
    calls: &'static [&'static str],
    numbers: Vec<(&'static str, i64)>,
    /// Types with their bytes in the bindings.
    sizes: Vec<(&'static str, usize)>,
}

/// Constants of enumerations with their values.
macro_rules! numbers {
    ($($kind:ident :: { $($name:ident),* }),* $(,)?) => {
        vec![$($((stringify!($name), $kind::$name as i64)),*),*]
    };
}

fn headers() -> [Header; 4] {
    let driver = numbers![
        CUresult::{CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NO_DEVICE, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
        CUdevice_attribute::{
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
        },
        CUstream_flags::{CU_STREAM_NON_BLOCKING},
        CUevent_flags::{CU_EVENT_DEFAULT},
        CUstreamCaptureMode::{CU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
        CUjit_option::{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES},
    ];
    let compiler = numbers![nvrtcResult::{NVRTC_SUCCESS}];
    let mut products = numbers![
        cublasStatus_t::{CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_LICENSE_ERROR},
        cublasComputeType_t::{CUBLAS_COMPUTE_32F},
        cudaDataType_t::{CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF},
        cublasLtEpilogue_t::{CUBLASLT_EPILOGUE_BIAS},
        cublasLtMatmulDescAttributes_t::{
            CUBLASLT_MATMUL_DESC_TRANSA, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_BIAS_POINTER
        },
        cublasLtMatmulPreferenceAttributes_t::{
            CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES
        },
    ];
    products.push(("CUBLAS_OP_T", cublaslt::TURNED.into()));
    let collectives = numbers![
        ncclResult_t::{ncclSuccess, ncclInvalidUsage},
        ncclDataType_t::{ncclFloat32},
        ncclRedOp_t::{ncclSum},
    ];
    let of_products = vec![
        ("cublasLtMatmulAlgo_t", size_of::<cublaslt_sys::cublasLtMatmulAlgo_t>()),
        ("cublasLtMatmulHeuristicResult_t", size_of::<cublaslt_sys::cublasLtMatmulHeuristicResult_t>()),
        ("cublasLtEpilogue_t", size_of::<cublasLtEpilogue_t>()),
    ];
    let header = |name, calls, numbers, sizes| Header { name, calls, numbers, sizes };
    [
        header("cuda.h", driver::CALLS, driver, vec![("CUdeviceptr", size_of::<CUdeviceptr>())]),
        header("nvrtc.h", compiler::CALLS, compiler, Vec::new()),
        header("cublasLt.h", cublaslt::CALLS, products, of_products),
        header("nccl.h", nccl::CALLS, collectives, vec![("ncclUniqueId", size_of::<ncclUniqueId>())]),
    ]
}

/// What headers take from packages that nothing else is needed of.
const OTHERS: [(&str, &str); 6] = [
    (
        "crt/host_defines.h",
        "#define __align__(n) __attribute__((aligned(n)))\n#define __builtin_align__(n) __align__(n)\n#define CUDARTAPI\n\
         #define CUDARTAPI_CDECL\n#define __host__\n#define __device__\n#define __device_builtin__\n\
         #define __device_builtin_texture_type__\n#define __device_builtin_surface_type__\n#define __cudart_builtin__\n\
         #define __location__(x)\n",
    ),
    ("cuda_runtime.h", "#include <driver_types.h>\n#include <library_types.h>\n"),
    ("cuComplex.h", "typedef struct { float x, y; } cuComplex;\ntypedef struct { double x, y; } cuDoubleComplex;\n"),
    ("cuda_fp16.h", "typedef struct { short bits; } __half;\n"),
    ("cuda_bf16.h", "typedef struct { short bits; } __nv_bfloat16;\n"),
    ("cuda_fp8.h", ""),
];

/// A text that compiles where the header says what the bindings say, and something else where `spoilt` is added to its numbers.
fn text(header: &Header, spoilt: i64) -> String {
    let mut text = format!("#include <{}>\n", header.name);
    for call in header.calls {
        writeln!(text, "auto *const of_{call} = &{call};").unwrap();
    }
    for (name, value) in &header.numbers {
        let value = value + spoilt;
        writeln!(text, "static_assert(static_cast<long long>({name}) == {value}, \"{name}\");").unwrap();
    }
    for (name, bytes) in &header.sizes {
        writeln!(text, "static_assert(sizeof({name}) == {bytes}, \"{name}\");").unwrap();
    }
    text
}

/// Directories below `root` that have a header.
fn places(root: &Path, depth: usize, headers: &[Header], found: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = root.read_dir() else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() && depth > 0 {
            places(&path, depth - 1, headers, found);
        }
        if headers.iter().any(|header| path.ends_with(header.name)) || path.ends_with("driver_types.h") {
            found.insert(root.to_owned());
        }
    }
}

/// What a compiler says of a text.
fn compiled(text: &str, include: &[&Path]) -> Result<(), String> {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("calls.cpp");
    std::fs::write(&source, text).unwrap();
    let own = directory.path().join("own");
    std::fs::create_dir_all(own.join("crt")).unwrap();
    OTHERS.iter().for_each(|(name, text)| std::fs::write(own.join(name), text).unwrap());
    let mut compiler = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned()));
    compiler.args(["-std=c++17", "-w", "-fsyntax-only"]).arg(&source).arg("-I").arg(&own);
    for place in include {
        compiler.arg("-I").arg(place);
    }
    let done = compiler.output().expect("a C++ compiler");
    done.status.success().then_some(()).ok_or_else(|| String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
#[ignore = "needs STRATO_CUPTI_INCLUDE, folders with the headers of CUDA"]
fn calls_numbers_and_sizes_are_those_of_the_headers_of_every_version() {
    let roots = std::env::var_os("STRATO_CUPTI_INCLUDE");
    let roots = roots.expect("STRATO_CUPTI_INCLUDE has to name folders with the headers of CUDA");
    let headers = headers();
    let mut seen = Vec::new();
    for root in std::env::split_paths(&roots) {
        let mut found = BTreeSet::new();
        places(&root, 7, &headers, &mut found);
        let include: Vec<&Path> = found.iter().map(PathBuf::as_path).collect();
        for header in headers.iter().filter(|header| found.iter().any(|place| place.join(header.name).is_file())) {
            compiled(&text(header, 0), &include).unwrap_or_else(|told| panic!("{} {told}", root.display()));
            // A compiler that would take anything would show nothing.
            let told = compiled(&text(header, 1), &include).unwrap_err();
            assert!(told.contains(header.numbers[0].0), "{told}");
            seen.push(header.name);
        }
    }
    println!("agree with {}", seen.join(", "));
}

#[test]
#[ignore = "needs STRATO_CUBLASLT and STRATO_NCCL, the vendor's libraries"]
fn calls_of_products_and_collectives_are_in_the_libraries() {
    let named = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    for (name, version) in [
        ("STRATO_CUBLASLT", cublaslt::version as fn(Option<&Path>) -> Result<String, String>),
        ("STRATO_NCCL", nccl::version),
    ] {
        let path = named(name).unwrap_or_else(|| panic!("{name} has to name a library"));
        println!("{} is of version {}", path.display(), version(Some(&path)).unwrap());
    }
}
