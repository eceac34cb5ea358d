//! cuBLASLt, the vendor's matrix products, as one choice of kernels for those of many tokens. Its calls are those of `cudarc`;
//! what is used of them is the same from CUDA 11 to 13.

#![allow(unsafe_code)]

use std::{
    ffi::{c_int, c_void},
    path::Path,
    ptr,
    rc::Rc,
};

use cudarc::cublaslt::{
    result::{self, CublasError},
    sys::{
        self, cublasComputeType_t, cublasLtEpilogue_t, cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulDesc_t,
        cublasLtMatmulDescAttributes_t as Attribute, cublasLtMatmulPreferenceAttributes_t as Wish,
        cublasLtMatrixLayout_t, cudaDataType,
    },
};

use super::{
    device::Context,
    library::{Loaded, Vendor},
    memory::Memory,
    platform::Address,
    queue::Queue,
};
use crate::{Dtype, Error};

/// What brings it.
const REMEDY: &str =
    "pip install nvidia-cublas, and name its libcublasLt.so.13 in STRATO_CUBLASLT; or leave --gemm out";

/// What is called below.
pub(super) const CALLS: &[&str] = &[
    "cublasLtGetVersion",
    "cublasLtCreate",
    "cublasLtDestroy",
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatmulDescDestroy",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatrixLayoutDestroy",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatmulPreferenceDestroy",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmul",
];

static LOADED: Loaded<String> = Loaded::new(Vendor {
    stem: "cublasLt",
    names: &["libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so", "libcublasLt.so"],
    calls: CALLS,
    of_cudarc: sys::culib,
});

/// `CUBLAS_OP_T`, which `cudarc` has with cuBLAS only.
pub(super) const TURNED: c_int = 1;
/// What each side's alignment is asked for by, in the order of the product's sides.
const ALIGNMENTS: [Wish; 4] = [
    Wish::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
    Wish::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
    Wish::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
    Wish::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
];
/// Memory for the library's own use, which NVIDIA recommends for Hopper (cuBLAS documentation, `cublasSetWorkspace`), bytes.
const WORKSPACE: usize = 32 << 20;

fn check<T>(doing: &str, result: Result<T, CublasError>) -> Result<T, Error> {
    result.map_err(|error| {
        let what = format!("cuBLASLt answers {error} ({})", error.0 as u32);
        Error::Device { doing: doing.to_owned(), what }
    })
}

/// The library's version in words, behind which its calls can be made.
fn load(path: Option<&Path>) -> Result<&'static String, String> {
    LOADED.get(path, || Ok(title())).map_err(|why| {
        let named = path.map_or_else(|| "libcublasLt.so.13".to_owned(), |path| format!("'{}'", path.display()));
        format!("{named}, the vendor's matrix products: {why}; {REMEDY}")
    })
}

fn title() -> String {
    // SAFETY: it takes nothing and gives a number.
    let version = unsafe { sys::cublasLtGetVersion() };
    // 12.9.3 is 120903; of CUDA 11 there was a digit less, and 11.8.3 is 11803.
    let (major, minor) =
        if version < 100_000 { (version / 1000, version / 100 % 10) } else { (version / 10_000, version / 100 % 100) };
    format!("{major}.{minor}.{}", version % 100)
}

/// Version of the library.
///
/// # Errors
/// Why there is none, and what brings it.
pub(super) fn version(path: Option<&Path>) -> Result<String, String> {
    load(path).cloned()
}

/// The library on a device, with its workspace.
pub(super) struct CublasLt {
    title: &'static str,
    handle: cublasLtHandle_t,
    workspace: Memory<u8>,
}

impl CublasLt {
    /// Loads it; `path` names it in place of the system's. The context is entered.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when there is none.
    pub(super) fn new(context: &Rc<Context>, path: Option<&Path>) -> Result<Self, Error> {
        let title = load(path).map_err(|what| Error::Unavailable { backend: "cuda", what })?;
        let workspace = Memory::new(context, WORKSPACE)?;
        Ok(Self { title, handle: check("open cuBLASLt", result::create_handle())?, workspace })
    }

    /// Its version in words.
    pub(super) fn title(&self) -> &'static str {
        self.title
    }
}

impl Drop for CublasLt {
    fn drop(&mut self) {
        // SAFETY: ours, destroyed once, after the queue that ran its products was waited for.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

/// Something that the library made and takes back.
struct Owned<H: Copy> {
    handle: H,
    destroy: unsafe fn(H) -> Result<(), CublasError>,
}

impl<H: Copy> Drop for Owned<H> {
    fn drop(&mut self) {
        // SAFETY: made by the call that belongs to this one, and destroyed once.
        let _ = unsafe { (self.destroy)(self.handle) };
    }
}

/// What is multiplied: out\[token, row\] = sum over i of weights\[row, i\] × x\[token, i\], and the bias of the row.
#[derive(Clone, Copy)]
pub(super) struct Factors {
    pub dtype: Dtype,
    pub weights: Address,
    pub bias: Option<Address>,
    /// In the type of the weights.
    pub x: Address,
    pub out: Address,
    pub rows: usize,
    pub width: usize,
    pub tokens: usize,
    /// Elements from a row of the result to the next.
    pub out_width: usize,
}

/// A product with the way that the library chose for it.
pub(super) struct Product {
    library: Rc<CublasLt>,
    factors: Factors,
    description: Owned<cublasLtMatmulDesc_t>,
    /// Of the weights, of the activations and of the result.
    layouts: [Owned<cublasLtMatrixLayout_t>; 3],
    algorithm: cublasLtMatmulAlgo_t,
}

impl Product {
    /// Asks the library how it would do it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it has no way.
    pub(super) fn new(library: &Rc<CublasLt>, factors: Factors) -> Result<Self, Error> {
        const REAL: cudaDataType = cudaDataType::CUDA_R_32F;
        let Factors { dtype, rows, width, tokens, out_width, .. } = factors;
        let kind = match dtype {
            Dtype::F16 => cudaDataType::CUDA_R_16F,
            Dtype::Bf16 => cudaDataType::CUDA_R_16BF,
            Dtype::F32 | Dtype::Q8 => REAL,
        };
        let doing = "describe a product to cuBLASLt";
        let handle = check(doing, result::create_matmul_desc(cublasComputeType_t::CUBLAS_COMPUTE_32F, REAL))?;
        let description = Owned { handle, destroy: result::destroy_matmul_desc };
        // SAFETY (both closures): a description or wish of ours, and a value of so many bytes, which is copied.
        let set = |which, value: *const c_void, bytes| {
            check(doing, unsafe { result::set_matmul_desc_attribute(description.handle, which, value, bytes) })
        };
        set(Attribute::CUBLASLT_MATMUL_DESC_TRANSA, ptr::from_ref(&TURNED).cast(), size_of::<c_int>())?;
        if let Some(bias) = factors.bias {
            let with_bias = cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS;
            set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, ptr::from_ref(&with_bias).cast(), size_of::<c_int>())?;
            set(Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, ptr::from_ref(&bias).cast(), size_of::<Address>())?;
        }
        // The library thinks in columns: rows of the weights are columns, turned; tokens are columns on both other sides.
        let layout = |kind: cudaDataType, rows: usize, columns: usize, step: usize| {
            let step = i64::try_from(step).unwrap_or(i64::MAX);
            let handle = check(doing, result::create_matrix_layout(kind, rows as u64, columns as u64, step))?;
            Ok::<_, Error>(Owned { handle, destroy: result::destroy_matrix_layout })
        };
        let layouts = [
            layout(kind, width, rows, width)?,
            layout(kind, width, tokens, width)?,
            layout(REAL, rows, tokens, out_width)?,
        ];
        let wish = Owned { handle: check(doing, result::create_matmul_pref())?, destroy: result::destroy_matmul_pref };
        let ask = |which, value: *const c_void, bytes| {
            check(doing, unsafe { result::set_matmul_pref_attribute(wish.handle, which, value, bytes) })
        };
        let most = Wish::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        ask(most, ptr::from_ref(&WORKSPACE).cast(), size_of::<usize>())?;
        // Rows that begin in the middle of a matrix are aligned to less than the library takes for granted.
        let sides = [factors.weights, factors.x, factors.out, factors.out];
        for (which, side) in ALIGNMENTS.into_iter().zip(sides) {
            let alignment = 1u32 << side.trailing_zeros().min(8);
            ask(which, ptr::from_ref(&alignment).cast(), size_of::<u32>())?;
        }
        let [a, b, out] = layouts.each_ref().map(|layout| layout.handle);
        // SAFETY: what was just described.
        let found = unsafe {
            result::get_matmul_algo_heuristic(library.handle, description.handle, a, b, out, out, wish.handle)
        };
        let found = found.map_err(|error| {
            let what = format!(
                "cuBLASLt {} has no way for {rows} rows of {width} elements of {} by {tokens} tokens (status {}); leave \
                 --gemm out",
                library.title(),
                dtype.name(),
                error.0 as u32
            );
            Error::Unavailable { backend: "cuda", what }
        })?;
        let algorithm = found.algo;
        Ok(Self { library: Rc::clone(library), factors, description, layouts, algorithm })
    }

    /// Enqueues it.
    pub(super) fn enqueue(&self, queue: &Queue) -> Result<(), Error> {
        let (one, zero) = (1f32, 0f32);
        let Self { library, factors, description, layouts: [a, b, out], algorithm } = self;
        let at = |address: Address| ptr::without_provenance_mut::<c_void>(address as usize);
        // SAFETY: memory of the device that has the elements which the layouts say and lives as long as the plan that has this;
        // both factors are read before the call returns; the workspace is as large as was said, and the commands of the one
        // queue use it one after the other.
        let multiplied = unsafe {
            result::matmul(
                library.handle,
                description.handle,
                ptr::from_ref(&one).cast(),
                ptr::from_ref(&zero).cast(),
                at(factors.weights),
                a.handle,
                at(factors.x),
                b.handle,
                at(factors.out),
                out.handle,
                at(factors.out),
                out.handle,
                algorithm,
                at(library.workspace.address()),
                WORKSPACE,
                queue.stream.cast(),
            )
        };
        check("enqueue a product of cuBLASLt", multiplied)
    }
}
