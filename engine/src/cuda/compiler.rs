//! NVRTC, the compiler of CUDA C that is a library: it needs no device and no toolkit. Names and arguments are those of the
//! NVRTC documentation.

#![allow(unsafe_code)]

use std::{
    ffi::{CString, c_char, c_int, c_void},
    path::Path,
    ptr,
};

use super::library::{Loaded, calls};

/// What brings the compiler.
pub const REMEDY: &str = "pip install nvidia-cuda-nvrtc, and name its libnvrtc.so.13 in STRATO_NVRTC";

/// `nvrtcProgram`.
type Program = *mut c_void;

/// Names under which it is installed, newest first: that of the toolkit of the driver is in none of the system's folders.
const NAMES: [&str; 5] =
    ["libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so", "libnvrtc.so.11.2", "libnvrtc.so"];

static LOADED: Loaded<Compiler> = Loaded::new();

#[cfg(test)]
calls! {
    /// Those that only making the embedded PTX needs.
    PtxCalls {
        size = "nvrtcGetPTXSize"(Program, *mut usize);
        text = "nvrtcGetPTX"(Program, *mut c_char);
    }
}

calls! {
    /// The calls of NVRTC.
    Calls {
        version = "nvrtcVersion"(*mut c_int, *mut c_int);
        architectures = "nvrtcGetNumSupportedArchs"(*mut c_int);
        architecture = "nvrtcGetSupportedArchs"(*mut c_int);
        create = "nvrtcCreateProgram"(
            *mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char,
        );
        destroy = "nvrtcDestroyProgram"(*mut Program);
        compile = "nvrtcCompileProgram"(Program, c_int, *const *const c_char);
        log_size = "nvrtcGetProgramLogSize"(Program, *mut usize);
        log = "nvrtcGetProgramLog"(Program, *mut c_char);
        cubin_size = "nvrtcGetCUBINSize"(Program, *mut usize);
        cubin = "nvrtcGetCUBIN"(Program, *mut c_char);
    }
}

/// What a test holds against the vendor's header.
#[cfg(test)]
pub(super) const SIGNATURES: [&[super::library::Signature]; 2] = [Calls::SIGNATURES, PtxCalls::SIGNATURES];

/// What is wanted of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Machine code of one architecture, which any driver takes that knows it.
    Cubin,
    /// Text that a driver compiles, if it is not older than the compiler: what comes with the program was made so.
    #[cfg(test)]
    Ptx,
}

/// The compiler, ready for calls.
pub(super) struct Compiler {
    calls: Calls,
    #[cfg(test)]
    ptx: PtxCalls,
    /// Major and minor.
    pub version: (c_int, c_int),
}

impl Compiler {
    /// Loads it; `path` names it in place of the system's.
    ///
    /// # Errors
    /// What is missing.
    pub(super) fn load(path: Option<&Path>) -> Result<&'static Self, String> {
        LOADED.get(path, &NAMES, |library| {
            let mut compiler = Self {
                calls: Calls::find(library)?,
                #[cfg(test)]
                ptx: PtxCalls::find(library)?,
                version: (0, 0),
            };
            let (major, minor) = &mut compiler.version;
            // SAFETY: two numbers of ours.
            match unsafe { (compiler.calls.version)(major, minor) } {
                0 => Ok(compiler),
                code => Err(format!("it does not tell its version (code {code})")),
            }
        })
    }

    /// Compiles a text; texts of PTX end with a zero.
    ///
    /// # Errors
    /// What the compiler did not understand.
    pub(super) fn compile(&self, name: &str, text: &str, options: &[String], form: Form) -> Result<Vec<u8>, String> {
        let c_text = |text: &str| CString::new(text).map_err(|_| format!("'{name}' has a zero in it"));
        let (text, c_name) = (c_text(text)?, c_text(&format!("{name}.cu"))?);
        let options = options.iter().map(|option| c_text(option)).collect::<Result<Vec<_>, _>>()?;
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(options.len()).unwrap_or(c_int::MAX);
        let mut program: Program = ptr::null_mut();
        // SAFETY: texts that end with a zero and outlive the call; no headers.
        let code = unsafe {
            (self.calls.create)(&raw mut program, text.as_ptr(), c_name.as_ptr(), 0, ptr::null(), ptr::null())
        };
        if code != 0 {
            return Err(format!("NVRTC makes no program of '{name}' (code {code})"));
        }
        let mut program = Made { compiler: self, program };
        // SAFETY: as many options as are said, texts that outlive the call.
        let code = unsafe { (self.calls.compile)(program.program, count, options.as_ptr()) };
        if code != 0 {
            let told = program.bytes(self.calls.log_size, self.calls.log).unwrap_or_default();
            let told = String::from_utf8_lossy(&told);
            // Compilers write pages; the first lines name what they did not understand.
            let told: Vec<&str> = told.trim_end_matches('\0').lines().take(12).collect();
            return Err(format!("NVRTC {} answers code {code}: {}", self.title(), told.join(" | ")));
        }
        match form {
            Form::Cubin => program.bytes(self.calls.cubin_size, self.calls.cubin),
            #[cfg(test)]
            Form::Ptx => program.bytes(self.ptx.size, self.ptx.text),
        }
    }

    /// Whether it has machine code for a compute capability.
    pub(super) fn knows(&self, (major, minor): (u32, u32)) -> bool {
        let mut count = 0;
        // SAFETY: a number of ours.
        let code = unsafe { (self.calls.architectures)(&raw mut count) };
        let mut known = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: as many numbers as the compiler has just said.
        let code = if code == 0 { unsafe { (self.calls.architecture)(known.as_mut_ptr()) } } else { code };
        code == 0 && known.iter().any(|known| u32::try_from(*known) == Ok(10 * major + minor))
    }

    /// Its version in words.
    pub(super) fn title(&self) -> String {
        format!("{}.{}", self.version.0, self.version.1)
    }
}

/// A program of the compiler, which goes with this.
struct Made<'c> {
    compiler: &'c Compiler,
    program: Program,
}

impl Made<'_> {
    /// What one call gives, of the size that another says.
    fn bytes(
        &mut self,
        size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        give: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ) -> Result<Vec<u8>, String> {
        let mut count = 0;
        // SAFETY: a program that was made and not yet destroyed, and a number of ours.
        let code = unsafe { size(self.program, &raw mut count) };
        let mut bytes = vec![0u8; count];
        // SAFETY: as many bytes as the compiler has just said.
        let code = if code == 0 { unsafe { give(self.program, bytes.as_mut_ptr().cast()) } } else { code };
        if code == 0 { Ok(bytes) } else { Err(format!("NVRTC does not give what it made (code {code})")) }
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        // SAFETY: made, and destroyed once. What it says changes nothing.
        let _ = unsafe { (self.compiler.calls.destroy)(&raw mut self.program) };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn what_is_no_compiler_is_refused_by_what_it_lacks() {
        let refused = Compiler::load(Some(Path::new("libc.so.6"))).err().unwrap();
        assert!(refused.contains(Calls::SYMBOLS[0]), "{refused}");
        assert!(Compiler::load(Some(Path::new("/nonexistent/libnvrtc.so"))).err().unwrap().contains("nonexistent"));
    }
}
