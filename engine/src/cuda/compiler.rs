//! NVRTC, the compiler of CUDA C that is a library: it needs no device and no toolkit. Its calls are those of `cudarc`.

#![allow(unsafe_code)]

use std::{
    ffi::{CString, c_char, c_int},
    path::Path,
};

use cudarc::nvrtc::{
    result::{self, NvrtcError},
    sys::{self, nvrtcProgram, nvrtcResult},
};

use super::library::{Loaded, Vendor};

/// What brings the compiler.
pub const REMEDY: &str = "pip install nvidia-cuda-nvrtc, and name its libnvrtc.so.13 in STRATO_NVRTC";

/// What is called below.
pub(super) const CALLS: &[&str] = &[
    "nvrtcVersion",
    "nvrtcGetNumSupportedArchs",
    "nvrtcGetSupportedArchs",
    "nvrtcCreateProgram",
    "nvrtcDestroyProgram",
    "nvrtcCompileProgram",
    "nvrtcGetProgramLogSize",
    "nvrtcGetProgramLog",
    "nvrtcGetCUBINSize",
    "nvrtcGetCUBIN",
    // Those that only making the embedded PTX needs.
    #[cfg(test)]
    "nvrtcGetPTXSize",
    #[cfg(test)]
    "nvrtcGetPTX",
];

static LOADED: Loaded<Compiler> = Loaded::new(Vendor {
    stem: "nvrtc",
    // That of the toolkit of the driver is in none of the system's folders.
    names: &[
        "libnvrtc.so.13",
        "libnvrtc.so.12",
        "/usr/local/cuda/lib64/libnvrtc.so",
        "libnvrtc.so.11.2",
        "libnvrtc.so",
    ],
    calls: CALLS,
    of_cudarc: sys::culib,
});

fn code(error: NvrtcError) -> u32 {
    error.0 as u32
}

/// What is wanted of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Machine code of one architecture, which any driver takes that knows it.
    Cubin,
    /// Text that a driver compiles, if it is not older than the compiler: what comes with the program was made so.
    #[cfg(test)]
    Ptx,
}

/// The compiler, behind [`Loaded::get`], which looked for its calls.
pub(super) struct Compiler {
    /// Major and minor.
    pub version: (c_int, c_int),
}

impl Compiler {
    /// Loads it; `path` names it in place of the system's.
    ///
    /// # Errors
    /// What is missing.
    pub(super) fn load(path: Option<&Path>) -> Result<&'static Self, String> {
        LOADED.get(path, || {
            let (mut major, mut minor) = (0, 0);
            // SAFETY: two numbers of ours.
            let told = unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) }.result();
            told.map_err(|error| format!("it does not tell its version (code {})", code(error)))?;
            Ok(Self { version: (major, minor) })
        })
    }

    /// Compiles a text; texts of PTX end with a zero.
    ///
    /// # Errors
    /// What the compiler did not understand.
    pub(super) fn compile(&self, name: &str, text: &str, options: &[String], form: Form) -> Result<Vec<u8>, String> {
        let c_text = |text: &str| CString::new(text).map_err(|_| format!("'{name}' has a zero in it"));
        let (text, c_name) = (c_text(text)?, c_text(&format!("{name}.cu"))?);
        let options = options.iter().map(|option| c_text(option)).collect::<Result<Vec<CString>, _>>()?;
        let program = result::create_program(&text, Some(&c_name))
            .map_err(|error| format!("NVRTC makes no program of '{name}' (code {})", code(error)))?;
        let program = Made { program };
        // SAFETY: just made; what `cudarc` takes for granted of options, that no zero is in them, holds for such texts.
        if let Err(error) = unsafe { result::compile_program(program.program, &options) } {
            // SAFETY: made and not yet destroyed.
            let told = unsafe { result::get_program_log(program.program) }.map(bytes).unwrap_or_default();
            let told = String::from_utf8_lossy(&told);
            // Compilers write pages; the first lines name what they did not understand.
            let told: Vec<&str> = told.trim_end_matches('\0').lines().take(12).collect();
            return Err(format!("NVRTC {} answers code {}: {}", self.title(), code(error), told.join(" | ")));
        }
        let made = match form {
            Form::Cubin => program.cubin(),
            // SAFETY: made and not yet destroyed.
            #[cfg(test)]
            Form::Ptx => unsafe { result::get_ptx(program.program) }.map(bytes),
        };
        made.map_err(|error| format!("NVRTC does not give what it made (code {})", code(error)))
    }

    /// Whether it has machine code for a compute capability.
    pub(super) fn knows(&self, (major, minor): (u32, u32)) -> bool {
        let mut count = 0;
        // SAFETY: a number of ours.
        let answer = unsafe { sys::nvrtcGetNumSupportedArchs(&raw mut count) };
        let mut known = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: as many numbers as the compiler has just said.
        let told = answer.result().and_then(|()| unsafe { sys::nvrtcGetSupportedArchs(known.as_mut_ptr()) }.result());
        told.is_ok() && known.iter().any(|known| u32::try_from(*known) == Ok(10 * major + minor))
    }

    /// Its version in words.
    pub(super) fn title(&self) -> String {
        format!("{}.{}", self.version.0, self.version.1)
    }
}

/// A program of the compiler, which goes with this.
struct Made {
    program: nvrtcProgram,
}

impl Made {
    /// Machine code, which `result` does not give.
    fn cubin(&self) -> Result<Vec<u8>, NvrtcError> {
        let mut count = 0;
        // SAFETY: made and not yet destroyed, and a number of ours.
        unsafe { sys::nvrtcGetCUBINSize(self.program, &raw mut count) }.result()?;
        let mut cubin = vec![0u8; count];
        // SAFETY: as many bytes as the compiler has just said.
        unsafe { sys::nvrtcGetCUBIN(self.program, cubin.as_mut_ptr().cast()) }.result()?;
        Ok(cubin)
    }
}

fn bytes(text: Vec<c_char>) -> Vec<u8> {
    text.into_iter().map(|byte| byte as u8).collect()
}

impl Drop for Made {
    fn drop(&mut self) {
        // SAFETY: made, and destroyed once. What it says changes nothing.
        let _: nvrtcResult = unsafe { sys::nvrtcDestroyProgram(&raw mut self.program) };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn what_is_no_compiler_is_refused_by_what_it_lacks() {
        let refused = Compiler::load(Some(Path::new("libc.so.6"))).err().unwrap();
        assert!(refused.contains(CALLS[0]), "{refused}");
        assert!(Compiler::load(Some(Path::new("/nonexistent/libnvrtc.so"))).err().unwrap().contains("nonexistent"));
    }
}
