//! MSPTI's calls. What is called in a wrong order or with what cannot be is refused with the code of its header.

#![allow(unsafe_code)]

use super::{Callback, Complete, Full, ON, Ordering, Out, Request, c_void, hand_back, record::SIZES, recorder};

/// `MSPTI_ERROR_INVALID_PARAMETER`.
const INVALID: u32 = 1;
/// `MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED`.
const SUBSCRIBED: u32 = 2;
/// `MSPTI_ERROR_MAX_LIMIT_REACHED`.
const NO_MORE: u32 = 3;
/// `MSPTI_ERROR_QUEUE_EMPTY`.
const EMPTY: u32 = 5;
/// `MSPTI_ERROR_WITHOUT_LD_PRELOAD`.
const NOT_PRELOADED: u32 = 6;
/// Kinds of ids that can be pushed, from `MSPTI_EXTERNAL_CORRELATION_KIND_UNKNOWN` to `…_CUSTOM2`.
const WHOSE: std::ops::RangeInclusive<u32> = 1..=4;

fn is_preloaded() -> bool {
    std::env::var_os("LD_PRELOAD").is_some_and(|files| files.to_string_lossy().contains("libmspti.so"))
}

// SAFETY (all below): the names are MSPTI's, which this library stands in for; places to be written are looked at for null.

#[unsafe(no_mangle)]
extern "C" fn msptiSubscribe(out: Out, _: Callback, _: *mut c_void) -> u32 {
    if !is_preloaded() {
        return NOT_PRELOADED;
    }
    let mut recorder = recorder();
    match (out.is_null(), recorder.subscriber) {
        (true, _) => INVALID,
        (_, Some(_)) => SUBSCRIBED,
        _ => {
            recorder.subscribed += 1;
            let handle = 0x5200_0000_0000 + 16 * recorder.subscribed;
            recorder.subscriber = Some(handle);
            unsafe { *out = std::ptr::without_provenance_mut(handle) };
            0
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn msptiUnsubscribe(subscriber: *mut c_void) -> u32 {
    let mut recorder = recorder();
    if recorder.subscriber != Some(subscriber.addr()) {
        return INVALID;
    }
    recorder.subscriber = None;
    0
}

#[unsafe(no_mangle)]
extern "C" fn msptiActivityRegisterCallbacks(request: Option<Request>, complete: Option<Complete>) -> u32 {
    let Some(both) = request.zip(complete) else { return INVALID };
    recorder().callbacks = Some(both);
    0
}

/// Switches a kind on or off.
fn switch(number: u32, on: bool) -> u32 {
    let mut recorder = recorder();
    // Nobody could get what is recorded before somebody has subscribed and said where it goes.
    if on && (recorder.subscriber.is_none() || recorder.callbacks.is_none()) {
        return INVALID;
    }
    match recorder.kinds.get_mut(number as usize).filter(|_| number > 0) {
        Some(kind) => *kind = on,
        None => return INVALID,
    }
    let any = recorder.kinds.contains(&true);
    ON.store(any, Ordering::Relaxed);
    0
}

#[unsafe(no_mangle)]
extern "C" fn msptiActivityEnable(kind: u32) -> u32 {
    switch(kind, true)
}

#[unsafe(no_mangle)]
extern "C" fn msptiActivityDisable(kind: u32) -> u32 {
    switch(kind, false)
}

#[unsafe(no_mangle)]
extern "C" fn msptiActivityFlushAll(_: u32) -> u32 {
    let full: Full = {
        let mut recorder = recorder();
        let Some((_, complete)) = recorder.callbacks else { return INVALID };
        recorder.buffer.take().map(|lent| (complete, lent))
    };
    hand_back(full);
    0
}

#[unsafe(no_mangle)]
extern "C" fn msptiActivityGetNextRecord(buffer: *mut u8, valid: usize, record: *mut *mut u8) -> u32 {
    if buffer.is_null() || record.is_null() {
        return INVALID;
    }
    let last = unsafe { *record };
    let size_at = |at: usize| {
        // SAFETY: a record begins here, as the caller says or the loop has found, and its kind lies within what is valid.
        let kind = unsafe { buffer.add(at).cast::<u32>().read_unaligned() };
        SIZES.get(kind as usize).copied().filter(|size| *size > 0 && at + size <= valid)
    };
    let next = if last.is_null() {
        0
    } else {
        let at = last.addr().wrapping_sub(buffer.addr());
        if at.saturating_add(4) > valid {
            return INVALID;
        }
        match size_at(at) {
            Some(size) => at + size,
            None => return INVALID,
        }
    };
    if next.saturating_add(4) > valid {
        return NO_MORE;
    }
    if size_at(next).is_none() {
        return INVALID;
    }
    unsafe { *record = buffer.add(next) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn msptiActivityPushExternalCorrelationId(whose: u32, id: u64) -> u32 {
    if !WHOSE.contains(&whose) {
        return INVALID;
    }
    recorder().pushed.entry(whose).or_default().push(id);
    0
}

#[unsafe(no_mangle)]
extern "C" fn msptiActivityPopExternalCorrelationId(whose: u32, last: *mut u64) -> u32 {
    if !WHOSE.contains(&whose) || last.is_null() {
        return INVALID;
    }
    match recorder().pushed.get_mut(&whose).and_then(Vec::pop) {
        Some(id) => {
            unsafe { *last = id };
            0
        }
        None => EMPTY,
    }
}
