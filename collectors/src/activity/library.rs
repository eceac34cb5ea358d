//! A vendor's library that hands out records: its functions, each opened on its own, because an older library lacks some, and
//! texts that belong to it.

use std::{
    ffi::{CStr, c_char},
    path::Path,
};

use libloading::Library;

/// What every function answers.
pub type Status = u32;
/// Asked for a buffer: where it begins, its bytes, most records of it (0: as many as fit).
pub type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// Asked for the record behind one of a buffer: where it begins, bytes that hold records, the record.
pub type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> Status;

/// The type `Api` with these functions, of which any may be missing.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident: $symbol:literal ($($argument:ty),*);)*) => {
        /// The functions of one library.
        #[derive(Debug)]
        pub struct Api {
            /// The file they are of.
            pub file: PathBuf,
            $($(#[$doc])* pub $name: Option<unsafe extern "C" fn($($argument),*) -> Status>,)*
        }

        /// Names of all functions.
        pub const SYMBOLS: &[&str] = &[$($symbol),*];

        impl Api {
            /// No function at all; a test puts its own there.
            pub fn empty(file: &Path) -> Self {
                Self { file: file.to_owned(), $($name: None,)* }
            }

            fn of(file: &Path, library: Library) -> Self {
                $(
                    // SAFETY: the type is that of the function of this name in the library's reference, and it is never
                    // closed.
                    let $name = unsafe { library.get(concat!($symbol, "\0")) }.ok().map(|symbol| *symbol);
                )*
                // Its own threads and what it does at the end of the process need its code.
                std::mem::forget(library);
                Self { file: file.to_owned(), $($name,)* }
            }

            /// Functions that the library lacks.
            pub fn missing(&self) -> Vec<&'static str> {
                let there = [$(($symbol, self.$name.is_some())),*];
                there.into_iter().filter(|(_, is_there)| !is_there).map(|(symbol, _)| symbol).collect()
            }
        }
    };
}

pub(crate) use functions;

/// Opens a library: a file, or a name that the system looks for.
///
/// # Errors
/// What the system said, with the name.
///
/// # Safety
/// What the library does when it is opened must be harmless.
pub unsafe fn open(file: &Path) -> Result<Library, String> {
    // SAFETY: the caller's.
    unsafe { Library::new(file) }.map_err(|error| {
        // What the system said is in the source; the error itself only says which call it was.
        let said = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        let file = file.display().to_string();
        if said.contains(&file) { said } else { format!("{file}: {said}") }
    })
}

/// Longest text of CUPTI that is read, bytes; names of templates have some thousand.
const LONGEST: usize = 64 << 10;

/// A text that belongs to a library, cut after [`LONGEST`] bytes; `None` for none.
///
/// # Safety
/// `text` is null or begins a text that ends with a zero and stays as it is during the call.
pub(crate) unsafe fn text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: it ends with a zero, as the caller says.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    Some(String::from_utf8_lossy(bytes.get(..LONGEST).unwrap_or(bytes)).into_owned())
}
