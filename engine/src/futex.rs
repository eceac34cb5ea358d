//! Sleeping on a word of memory, which processes may share.

#![allow(unsafe_code)]

use std::{sync::atomic::AtomicU32, time::Duration};

/// How long a thread spins before it sleeps. Waking a sleeping virtual core takes tens of microseconds.
pub(crate) const SPIN: Duration = Duration::from_micros(100);

/// Sleeps while `word` is `value`, until it is woken, and at most for `longest`.
#[cfg(target_os = "linux")]
pub(crate) fn wait(word: &AtomicU32, value: u32, longest: Duration) {
    let timeout =
        libc::timespec { tv_sec: longest.as_secs() as libc::time_t, tv_nsec: longest.subsec_nanos() as libc::c_long };
    // SAFETY: the word and the timeout outlive the call, which reads them; every way it can end means "look again".
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const timeout) };
}

/// Wakes all who sleep on `word`.
#[cfg(target_os = "linux")]
pub(crate) fn wake(word: &AtomicU32) {
    // SAFETY: the address serves as a name only.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// Without a futex: sleeps a little.
#[cfg(not(target_os = "linux"))]
pub(crate) fn wait(_: &AtomicU32, _: u32, longest: Duration) {
    std::thread::sleep(longest.min(Duration::from_micros(50)));
}

/// Without a futex sleepers wake by themselves.
#[cfg(not(target_os = "linux"))]
pub(crate) fn wake(_: &AtomicU32) {}
