//! How the heap of the C library is set up for captures.

#![cfg_attr(all(target_os = "linux", target_env = "gnu"), allow(unsafe_code))]

/// Bytes from which an allocation has pages of its own, which go back to the system when it is freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const OWN_PAGES: libc::c_int = 256 << 10;

/// Gives back the memory of large columns as soon as they are freed. By default the C library raises this limit to 32 MiB once such
/// columns were freed, and keeps the rest: a quarter of the peak of a diagnosis was memory that nothing used.
pub fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `mallopt` takes two numbers and touches no memory of ours; glibc sets the parameter under its own lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_PAGES);
    }
}
