//! Libraries of the vendor, opened when they are asked for. Nothing of them is needed to build this program or to start it.
//!
//! Their calls are looked up here and not through a crate of bindings: a call that an old driver lacks is a value that says
//! so, and no panic; a code that is younger than this program is a number, and no variant that an enumeration has not.

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

/// What was loaded before, by the path that was asked for. It stays loaded: drivers have threads of their own, which do not
/// expect their code to go.
pub(super) struct Loaded<T: 'static>(Mutex<Vec<(Option<PathBuf>, &'static T)>>);

impl<T> Loaded<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// That of the path, or of the system; `find` looks its calls up where it is loaded for the first time.
    ///
    /// # Errors
    /// What is missing: the library, with the reason of the last name that was tried, or what `find` misses.
    pub(super) fn get(
        &self,
        path: Option<&Path>,
        names: &[&str],
        find: impl FnOnce(&Library) -> Result<T, String>,
    ) -> Result<&'static T, String> {
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = loaded.iter().find(|(of, _)| of.as_deref() == path) {
            return Ok(known);
        }
        let names: Vec<&OsStr> =
            path.map_or_else(|| names.iter().map(OsStr::new).collect(), |path| vec![path.as_os_str()]);
        let mut refused = String::new();
        let mut opened = None;
        for name in names {
            // SAFETY: what a library does when it is loaded is the vendor's business; it is named by the system or the user.
            match unsafe { Library::new(name) } {
                Ok(library) => {
                    opened = Some(library);
                    break;
                }
                Err(error) if refused.is_empty() => {
                    refused = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
                }
                Err(_) => (),
            }
        }
        let library = Box::leak(Box::new(opened.ok_or(refused)?));
        let found = Box::leak(Box::new(find(library)?));
        loaded.push((path.map(Path::to_owned), found));
        Ok(found)
    }
}

/// A call as this program has it: its symbol, the types of what it takes, and that of its answer.
#[cfg(test)]
pub(super) type Signature = (&'static str, &'static [&'static str], &'static str);

/// A table of calls that a library must have, each by the name that it exports and the types of what it takes; those that name
/// no other answer do so with a code, of which 0 is success.
macro_rules! calls {
    (@answer) => { std::ffi::c_int };
    (@answer $answer:ty) => { $answer };
    ($(#[$about:meta])* $table:ident {
        $($(#[$doc:meta])* $field:ident = $symbol:literal ($($argument:ty),* $(,)?) $(-> $answer:ty)?;)*
    }) => {
        $(#[$about])*
        pub(super) struct $table {
            $($(#[$doc])* pub $field: unsafe extern "C" fn($($argument),*) -> calls!(@answer $($answer)?),)*
        }

        impl $table {
            /// What it looks up.
            #[cfg(test)]
            #[allow(dead_code)] // tests do not read those of every table
            pub(super) const SYMBOLS: &'static [&'static str] = &[$($symbol),*];

            /// The same with their types.
            #[cfg(test)]
            #[allow(dead_code)] // as above
            pub(super) const SIGNATURES: &'static [super::library::Signature] =
                &[$(($symbol, &[$(stringify!($argument)),*], stringify!($($answer)?))),*];

            /// Looks every call up, or says which one is missing.
            #[allow(unsafe_code)]
            fn find(library: &libloading::Library) -> Result<Self, String> {
                let missing = |symbol: &str| format!("it has no '{symbol}'");
                Ok(Self {
                    $($field: {
                        // SAFETY: the vendor documents the function of this name with these arguments.
                        let found = unsafe { library.get($symbol.as_bytes()) };
                        *found.map_err(|_| missing($symbol))?
                    },)*
                })
            }
        }
    };
}
pub(super) use calls;
