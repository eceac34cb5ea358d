//! Libraries that vendors bring and this program opens only when they are needed.

#![allow(unsafe_code)]

use std::ffi::CString;

/// The first of these names by which the system's loader finds a library. It stays open: drivers do not like to be closed.
#[cfg(unix)]
pub fn found<'n>(names: &[&'n str]) -> Option<&'n str> {
    names.iter().copied().find(|name| {
        let Ok(name) = CString::new(*name) else { return false };
        // SAFETY: the name ends in 0. Opening runs what the library does at its start, which is what the backends would do.
        unsafe { !libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL).is_null() }
    })
}

/// The first of these names by which the system's loader finds a library.
#[cfg(not(unix))]
pub fn found<'n>(_: &[&'n str]) -> Option<&'n str> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found_under_the_first_name_that_fits() {
        assert_eq!(found(&["libstrato-none.so.9", "libc.so.6", "libm.so.6"]), Some("libc.so.6"));
        assert_eq!(found(&["libstrato-none.so.9", "with\0zero"]), None);
    }
}
