//! Libraries of the vendor, opened when they are asked for. Nothing of them is needed to build this program or to start it.
//!
//! Their calls are those of `cudarc`, which opens a library under names of its own and panics where there is none, or where it
//! lacks a call. So it gets to work only behind [`Loaded::get`]: that opens the library which the run or the system names, looks
//! for every call that the engine makes, and lets `cudarc` find the same library. What is missing is said.
//!
//! `cudarc` has its answers as enumerations of CUDA 12.9. A library that is younger may answer a code that they do not name, and a value
//! of an enumeration without a name is undefined in Rust. The codes that later versions added belong to calls and options that the
//! engine does not use; a library that answers one all the same is a defect that this room does not catch.

#![allow(unsafe_code)]

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use libloading::Library;

/// Which libraries a run takes in place of those that the system finds by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Libraries {
    /// The CUDA driver.
    pub driver: Option<PathBuf>,
    /// NVRTC, the compiler of kernels.
    pub compiler: Option<PathBuf>,
    /// cuBLASLt, the vendor's matrix products.
    pub cublaslt: Option<PathBuf>,
    /// NCCL, the vendor's collectives.
    pub nccl: Option<PathBuf>,
}

/// A library of the vendor.
pub(super) struct Vendor {
    /// What `cudarc` calls it, without `lib` and `.so`.
    pub stem: &'static str,
    /// Names under which it is installed, best first.
    pub names: &'static [&'static str],
    /// Its calls that the engine makes, through `cudarc::…::sys` and `…::result`.
    pub calls: &'static [&'static str],
    /// The library as `cudarc` has it, which it opens when it is first asked.
    pub of_cudarc: unsafe fn() -> &'static Library,
}

/// What was loaded before, by the path that was asked for. It stays loaded: drivers have threads of their own, which do not
/// expect their code to go.
pub(super) struct Loaded<T: 'static> {
    vendor: Vendor,
    state: Mutex<State<T>>,
}

struct State<T: 'static> {
    ready: Vec<(Option<PathBuf>, &'static T)>,
    /// Whether `cudarc` has opened it.
    is_open: bool,
}

impl<T> Loaded<T> {
    pub(super) const fn new(vendor: Vendor) -> Self {
        Self { vendor, state: Mutex::new(State { ready: Vec::new(), is_open: false }) }
    }

    /// That of the path, or of the system; `make` makes it ready where it is asked for the first time. Behind it every call of
    /// the vendor's list can be made.
    ///
    /// # Errors
    /// What is missing: the library, with the reason of the first name that was tried, a call, or what `make` misses.
    pub(super) fn get(
        &self,
        path: Option<&Path>,
        make: impl FnOnce() -> Result<T, String>,
    ) -> Result<&'static T, String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = state.ready.iter().find(|(of, _)| of.as_deref() == path) {
            return Ok(known);
        }
        let (name, library) = self.vendor.open(path)?;
        let missing = |call: &&&str| address(library, call).is_none();
        if let Some(call) = self.vendor.calls.iter().find(missing) {
            return Err(format!("it has no '{call}'"));
        }
        self.vendor.lead(&name, library, state.is_open)?;
        state.is_open = true;
        let made = Box::leak(Box::new(make()?));
        state.ready.push((path.map(Path::to_owned), made));
        Ok(made)
    }
}

/// What the system's loader says.
pub(super) fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Where a call lies.
fn address(library: &Library, call: &str) -> Option<usize> {
    // SAFETY: nothing is called here; a function without arguments stands for any.
    let found = unsafe { library.get::<unsafe extern "C" fn()>(call.as_bytes()) };
    found.ok().map(|found| *found as usize)
}

impl Vendor {
    /// The library of the path or of the first name that the system has, and that name.
    fn open(&self, path: Option<&Path>) -> Result<(String, &'static Library), String> {
        let names: Vec<&OsStr> =
            path.map_or_else(|| self.names.iter().map(OsStr::new).collect(), |path| vec![path.as_os_str()]);
        let mut refused = String::new();
        for name in names {
            // SAFETY: what a library does when it is loaded is the vendor's business; it is named by the system or the user.
            match unsafe { Library::new(name) } {
                Ok(library) => return Ok((name.to_string_lossy().into_owned(), Box::leak(Box::new(library)))),
                Err(error) if refused.is_empty() => refused = reason(&error),
                Err(_) => (),
            }
        }
        Err(refused)
    }

    /// Lets `cudarc` find this library, opened as `name`, and no other.
    fn lead(&self, name: &str, library: &Library, is_open: bool) -> Result<(), String> {
        let call = self.calls.first().copied().unwrap_or_default();
        if is_open {
            // SAFETY: it was opened before, so that it is only handed out.
            let known = address(unsafe { (self.of_cudarc)() }, call);
            return if known == address(library, call) {
                Ok(())
            } else {
                Err(format!(
                    "this process works with another lib{} already; run the two one after the other",
                    self.stem
                ))
            };
        }
        let candidates = cudarc::get_lib_name_candidates(self.stem);
        #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
        let given = candidates.first().map_or(Ok(()), |first| super::alias::give(first, name));
        #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
        let given: Result<(), String> = Ok(());
        // SAFETY: as where it was opened.
        let found = candidates.iter().find_map(|name| Some((name, unsafe { Library::new(name) }.ok()?)));
        match found {
            Some((_, found)) if address(&found, call) == address(library, call) => Ok(()),
            Some((other, _)) => Err(format!(
                "the system gives another one for '{other}'; let a link of that name to '{name}' lie in the first folder of \
                 LD_LIBRARY_PATH"
            )),
            None => Err(format!(
                "the system finds it under no name that cudarc asks for{}; let a link lib{}.so to '{name}' lie in a folder of \
                 LD_LIBRARY_PATH",
                given.err().map(|why| format!(" ({why})")).unwrap_or_default(),
                self.stem,
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::collections::BTreeSet;

    use super::super::{compiler, cublaslt, driver, nccl};

    /// What a text of C declares for others: the word before the first bracket of each line that begins with `mark`.
    fn declared<'t>(text: &'t str, mark: &str) -> BTreeSet<&'t str> {
        let name = |line: &'t str| {
            let before = line.strip_prefix(mark)?.split_once('(')?.0;
            before.rsplit([' ', '*']).next()
        };
        text.lines().filter_map(name).collect()
    }

    /// The words of a text behind each `before` that a bracket follows.
    fn called<'t>(text: &'t str, before: &str) -> BTreeSet<&'t str> {
        let word = |text: &'t str| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap();
        let of = |rest: &'t str| Some(word(rest)).filter(|word| rest[word.len()..].starts_with('('));
        text.split(before).skip(1).filter_map(of).collect()
    }

    /// A call that was not looked for is a panic of `cudarc` where a library lacks it. Those through `result` are seen by the
    /// simulated libraries, which have the calls of the lists and no others.
    #[test]
    fn every_call_that_is_made_was_looked_for() {
        let simulated = include_str!("../../tests/simulated_cuda/driver.cpp");
        let products = include_str!("../../tests/simulated_cuda/cublaslt.h");
        let collectives = include_str!("../../tests/simulated_cuda/nccl.h");
        for (calls, source, simulated) in [
            (driver::CALLS, include_str!("driver.rs"), Some(declared(simulated, "CALL "))),
            (compiler::CALLS, include_str!("compiler.rs"), None),
            (cublaslt::CALLS, include_str!("cublaslt.rs"), Some(declared(products, "extern \"C\" "))),
            (nccl::CALLS, include_str!("nccl.rs"), Some(declared(collectives, "extern \"C\" "))),
        ] {
            let looked_for: BTreeSet<&str> = calls.iter().copied().collect();
            assert_eq!(looked_for.len(), calls.len(), "each once");
            for call in called(source, "sys::") {
                assert!(looked_for.contains(call), "'{call}' is made and not looked for");
            }
            if let Some(simulated) = simulated {
                assert_eq!(looked_for, simulated);
            }
        }
        assert_eq!(called("a sys::one(2) sys::Two::three(4) sys::five", "sys::"), BTreeSet::from(["one"]));
    }
}
