//! cuBLASLt, the vendor's matrix products, as one choice of kernels for those of many tokens. Names, arguments and numbers are
//! those of `cublasLt.h` and of the cuBLAS documentation; they are the same from CUDA 11 to 13.

#![allow(unsafe_code)]

use std::{
    ffi::{c_int, c_void},
    path::Path,
    ptr,
    rc::Rc,
};

use super::{
    device::Context,
    driver::{Address, Handle},
    library::{Loaded, calls},
    memory::Memory,
    queue::Queue,
};
use crate::{Dtype, Error};

/// What brings it.
const REMEDY: &str =
    "pip install nvidia-cublas, and name its libcublasLt.so.13 in STRATO_CUBLASLT; or leave --gemm out";
/// Names under which it is installed, newest first.
const NAMES: [&str; 4] =
    ["libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so", "libcublasLt.so"];

/// `CUBLAS_COMPUTE_32F`; `CUDA_R_32F`, `CUDA_R_16F` and `CUDA_R_16BF`; `CUBLAS_OP_T`.
const COMPUTE_32F: c_int = 68;
const REAL_32F: c_int = 0;
const REAL_16F: c_int = 2;
const REAL_16BF: c_int = 14;
const TURNED: c_int = 1;
/// `CUBLASLT_MATMUL_DESC_TRANSA`, `…_EPILOGUE`, `…_BIAS_POINTER`; `CUBLASLT_EPILOGUE_BIAS`.
const TURN_A: c_int = 3;
const EPILOGUE: c_int = 7;
const BIAS_POINTER: c_int = 8;
const WITH_BIAS: c_int = 4;
/// `CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES`; `…_MIN_ALIGNMENT_A_BYTES` and those of B, C and D behind it.
const MOST_WORKSPACE: c_int = 1;
const ALIGNMENT_OF_A: c_int = 5;
/// Memory for the library's own use, which NVIDIA recommends for Hopper (cuBLAS documentation, `cublasSetWorkspace`), bytes.
const WORKSPACE: usize = 32 << 20;

/// `cublasLtMatmulAlgo_t`.
type Algorithm = [u64; 8];

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Found {
    algorithm: Algorithm,
    workspace: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

calls! {
    /// The calls of cuBLASLt.
    Calls {
        version = "cublasLtGetVersion"() -> usize;
        create = "cublasLtCreate"(*mut Handle);
        destroy = "cublasLtDestroy"(Handle);
        product = "cublasLtMatmulDescCreate"(*mut Handle, c_int, c_int);
        set_product = "cublasLtMatmulDescSetAttribute"(Handle, c_int, *const c_void, usize);
        destroy_product = "cublasLtMatmulDescDestroy"(Handle);
        layout = "cublasLtMatrixLayoutCreate"(*mut Handle, c_int, u64, u64, i64);
        destroy_layout = "cublasLtMatrixLayoutDestroy"(Handle);
        wish = "cublasLtMatmulPreferenceCreate"(*mut Handle);
        set_wish = "cublasLtMatmulPreferenceSetAttribute"(Handle, c_int, *const c_void, usize);
        destroy_wish = "cublasLtMatmulPreferenceDestroy"(Handle);
        find = "cublasLtMatmulAlgoGetHeuristic"(
            Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut Found, *mut c_int,
        );
        multiply = "cublasLtMatmul"(
            Handle, Handle, *const c_void, *const c_void, Handle, *const c_void, Handle, *const c_void, *const c_void,
            Handle, *mut c_void, Handle, *const Algorithm, *mut c_void, usize, Handle,
        );
    }
}

static LOADED: Loaded<Calls> = Loaded::new();

/// What a test holds against the vendor's header.
#[cfg(test)]
pub(super) const SIGNATURES: &[super::library::Signature] = Calls::SIGNATURES;
#[cfg(test)]
pub(super) const NUMBERS: &[(&str, i64)] = &[
    ("CUBLAS_COMPUTE_32F", COMPUTE_32F as i64),
    ("CUDA_R_32F", REAL_32F as i64),
    ("CUDA_R_16F", REAL_16F as i64),
    ("CUDA_R_16BF", REAL_16BF as i64),
    ("CUBLAS_OP_T", TURNED as i64),
    ("CUBLASLT_MATMUL_DESC_TRANSA", TURN_A as i64),
    ("CUBLASLT_MATMUL_DESC_EPILOGUE", EPILOGUE as i64),
    ("CUBLASLT_MATMUL_DESC_BIAS_POINTER", BIAS_POINTER as i64),
    ("CUBLASLT_EPILOGUE_BIAS", WITH_BIAS as i64),
    ("CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES", MOST_WORKSPACE as i64),
    ("CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES", ALIGNMENT_OF_A as i64),
    ("CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES", ALIGNMENT_OF_A as i64 + 3),
    ("CUBLAS_STATUS_NOT_INITIALIZED", 1),
    ("CUBLAS_STATUS_ALLOC_FAILED", 3),
    ("CUBLAS_STATUS_INVALID_VALUE", 7),
    ("CUBLAS_STATUS_ARCH_MISMATCH", 8),
    ("CUBLAS_STATUS_EXECUTION_FAILED", 13),
    ("CUBLAS_STATUS_INTERNAL_ERROR", 14),
    ("CUBLAS_STATUS_NOT_SUPPORTED", 15),
];

fn check(doing: &str, code: c_int) -> Result<(), Error> {
    // `cublasStatus_t`, of `cublas_api.h`.
    let name = match code {
        0 => return Ok(()),
        1 => "NOT_INITIALIZED",
        3 => "ALLOC_FAILED",
        7 => "INVALID_VALUE",
        8 => "ARCH_MISMATCH",
        13 => "EXECUTION_FAILED",
        14 => "INTERNAL_ERROR",
        15 => "NOT_SUPPORTED",
        _ => "a status that is not known",
    };
    Err(Error::Device { doing: doing.to_owned(), what: format!("cuBLASLt answers {name} ({code})") })
}

fn load(path: Option<&Path>) -> Result<&'static Calls, String> {
    LOADED.get(path, &NAMES, Calls::find).map_err(|why| {
        let named = path.map_or_else(|| "libcublasLt.so.13".to_owned(), |path| format!("'{}'", path.display()));
        format!("{named}, the vendor's matrix products: {why}; {REMEDY}")
    })
}

fn title(calls: &Calls) -> String {
    // SAFETY: it takes nothing and gives a number.
    let version = unsafe { (calls.version)() };
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
    load(path).map(title)
}

/// The library on a device, with its workspace.
pub(super) struct CublasLt {
    calls: &'static Calls,
    handle: Handle,
    workspace: Memory<u8>,
}

impl CublasLt {
    /// Loads it; `path` names it in place of the system's. The context is entered.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when there is none.
    pub(super) fn new(context: &Rc<Context>, path: Option<&Path>) -> Result<Self, Error> {
        let calls = load(path).map_err(|what| Error::Unavailable { backend: "cuda", what })?;
        let workspace = Memory::new(context, WORKSPACE)?;
        let mut handle = ptr::null_mut();
        // SAFETY: a place for the handle.
        check("open cuBLASLt", unsafe { (calls.create)(&raw mut handle) })?;
        Ok(Self { calls, handle, workspace })
    }

    /// Its version in words.
    pub(super) fn title(&self) -> String {
        title(self.calls)
    }
}

impl Drop for CublasLt {
    fn drop(&mut self) {
        // SAFETY: ours, destroyed once, after the queue that ran its products was waited for.
        let _ = unsafe { (self.calls.destroy)(self.handle) };
    }
}

/// Something that the library made and takes back.
struct Owned {
    handle: Handle,
    destroy: unsafe extern "C" fn(Handle) -> c_int,
}

impl Owned {
    fn new(
        doing: &str,
        destroy: unsafe extern "C" fn(Handle) -> c_int,
        create: impl FnOnce(*mut Handle) -> c_int,
    ) -> Result<Self, Error> {
        let mut handle = ptr::null_mut();
        check(doing, create(&raw mut handle))?;
        Ok(Self { handle, destroy })
    }
}

impl Drop for Owned {
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
    description: Owned,
    /// Of the weights, of the activations and of the result.
    layouts: [Owned; 3],
    algorithm: Algorithm,
}

impl Product {
    /// Asks the library how it would do it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it has no way.
    pub(super) fn new(library: &Rc<CublasLt>, factors: Factors) -> Result<Self, Error> {
        let calls = library.calls;
        let Factors { dtype, rows, width, tokens, out_width, .. } = factors;
        let kind = match dtype {
            Dtype::F16 => REAL_16F,
            Dtype::Bf16 => REAL_16BF,
            Dtype::F32 | Dtype::Q8 => REAL_32F,
        };
        let doing = "describe a product to cuBLASLt";
        // SAFETY: a place for the handle.
        let create = |to: *mut Handle| unsafe { (calls.product)(to, COMPUTE_32F, REAL_32F) };
        let description = Owned::new(doing, calls.destroy_product, create)?;
        // SAFETY (both closures): a description or wish of ours, and a value of so many bytes, which is copied.
        let set = |which, value: *const c_void, bytes| {
            check(doing, unsafe { (calls.set_product)(description.handle, which, value, bytes) })
        };
        set(TURN_A, ptr::from_ref(&TURNED).cast(), size_of::<c_int>())?;
        if let Some(bias) = factors.bias {
            set(EPILOGUE, ptr::from_ref(&WITH_BIAS).cast(), size_of::<c_int>())?;
            set(BIAS_POINTER, ptr::from_ref(&bias).cast(), size_of::<Address>())?;
        }
        // The library thinks in columns: rows of the weights are columns, turned; tokens are columns on both other sides.
        let layout = |kind: c_int, rows: usize, columns: usize, step: usize| {
            // SAFETY: a place for the handle.
            let create = |to: *mut Handle| unsafe {
                (calls.layout)(to, kind, rows as u64, columns as u64, i64::try_from(step).unwrap_or(i64::MAX))
            };
            Owned::new(doing, calls.destroy_layout, create)
        };
        let layouts = [
            layout(kind, width, rows, width)?,
            layout(kind, width, tokens, width)?,
            layout(REAL_32F, rows, tokens, out_width)?,
        ];
        // SAFETY: a place for the handle.
        let wish = Owned::new(doing, calls.destroy_wish, |to| unsafe { (calls.wish)(to) })?;
        let ask = |which, value: *const c_void, bytes| {
            check(doing, unsafe { (calls.set_wish)(wish.handle, which, value, bytes) })
        };
        ask(MOST_WORKSPACE, ptr::from_ref(&WORKSPACE).cast(), size_of::<usize>())?;
        // Rows that begin in the middle of a matrix are aligned to less than the library takes for granted.
        let sides = [factors.weights, factors.x, factors.out, factors.out];
        for (which, side) in (ALIGNMENT_OF_A..).zip(sides) {
            let alignment = 1u32 << side.trailing_zeros().min(8);
            ask(which, ptr::from_ref(&alignment).cast(), size_of::<u32>())?;
        }
        let (mut found, mut count) = (Found::default(), 0);
        let [a, b, out] = &layouts;
        // SAFETY: what was just described; room for one answer and for how many there are.
        let code = unsafe {
            (calls.find)(
                library.handle,
                description.handle,
                a.handle,
                b.handle,
                out.handle,
                out.handle,
                wish.handle,
                1,
                &raw mut found,
                &raw mut count,
            )
        };
        if code != 0 || count < 1 || found.state != 0 {
            let what = format!(
                "cuBLASLt {} has no way for {rows} rows of {width} elements of {} by {tokens} tokens (status {code}); leave \
                 --gemm out",
                library.title(),
                dtype.name()
            );
            return Err(Error::Unavailable { backend: "cuda", what });
        }
        Ok(Self { library: Rc::clone(library), factors, description, layouts, algorithm: found.algorithm })
    }

    /// Enqueues it.
    pub(super) fn enqueue(&self, queue: &Queue) -> Result<(), Error> {
        let (one, zero) = (1f32, 0f32);
        let Self { library, factors, description, layouts: [a, b, out], algorithm } = self;
        let at = |address: Address| ptr::without_provenance_mut::<c_void>(address as usize);
        // SAFETY: memory of the device that has the elements which the layouts say and lives as long as the plan that has this;
        // both factors are read before the call returns; the workspace is as large as was said, and the commands of the one
        // queue use it one after the other.
        let code = unsafe {
            (library.calls.multiply)(
                library.handle,
                description.handle,
                ptr::from_ref(&one).cast(),
                at(factors.weights),
                a.handle,
                at(factors.x),
                b.handle,
                ptr::from_ref(&zero).cast(),
                at(factors.out),
                out.handle,
                at(factors.out),
                out.handle,
                algorithm,
                at(library.workspace.address()),
                WORKSPACE,
                queue.stream,
            )
        };
        check("enqueue a product of cuBLASLt", code)
    }
}
