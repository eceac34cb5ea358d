//! The cache of executors: what is prepared while a thread has a key set is found by that key from then on. The calls are
//! those by which torch_npu reaches CANN's (`op_api_common.h` of Ascend's op-plugin).

#![allow(unsafe_code)]

use std::{
    cell::RefCell,
    ffi::{CStr, c_char, c_void},
    sync::Arc,
};

use super::Executor;
use crate::{
    error::{self, Outcome, fault},
    memory::Block,
    state::{Handle, State, state},
};

/// What is kept.
pub struct Known {
    executor: Executor,
    /// The memory of its arguments, in the order in which it was told.
    memory: Vec<Arc<Block>>,
}

/// What a thread asks for.
#[derive(Default)]
struct Asked {
    key: Option<(*const u8, usize)>,
    addresses: Vec<usize>,
}

thread_local! {
    static ASKED: RefCell<Option<Asked>> = const { RefCell::new(None) };
}

/// A key, and memory in the order in which it was told.
type Key = (Vec<u8>, Vec<Arc<Block>>);

/// The key that this thread has set, which only now is read, and the memory that it told of.
fn asked(state: &State) -> Outcome<Option<Key>> {
    ASKED.with_borrow(|asked| {
        let Some(Asked { key: Some((key, length)), addresses }) = asked else { return Ok(None) };
        // SAFETY: not null, as `SetPTACacheHashKey` saw to, and as long as the caller said, who keeps it until the end.
        let key = unsafe { std::slice::from_raw_parts(*key, *length) }.to_vec();
        let block = |at: &usize| {
            let text =
                || error::Fault { code: error::INVALID, text: format!("{at:#x}, told to the cache, is no memory") };
            state.block(*at, 1).ok_or_else(text)
        };
        Ok(Some((key, addresses.iter().map(block).collect::<Outcome<_>>()?)))
    })
}

/// Keeps what was just prepared, where a key is set. Memory that was not told is refused: a cache would go on with that of the
/// first time.
pub(super) fn keep(state: &mut State, executor: &Executor) -> Outcome {
    let Some((key, memory)) = asked(state)? else { return Ok(()) };
    for argument in executor.arguments.iter().flat_map(|argument| state.addresses(*argument)) {
        if !state.block(argument, 1).is_some_and(|own| memory.iter().any(|told| Arc::ptr_eq(told, &own))) {
            let text = format!("{}: a tensor at {argument:#x} is of memory that the cache was not told", executor.name);
            return fault(error::INVALID, text);
        }
    }
    // The second phase looks at handles only of what was prepared for it alone.
    let executor = Executor { arguments: Vec::new(), ..executor.clone() };
    // Memory that was freed would be held by what was prepared with it.
    state.known.retain(|_, known| known.memory.iter().all(|block| block.alive().is_ok()));
    state.known.insert(key, Known { executor, memory });
    Ok(())
}

// SAFETY (all below): the names are CANN's, which this library stands in for.

#[unsafe(no_mangle)]
extern "C" fn InitPTACacheThreadLocal() {
    ASKED.set(Some(Asked::default()));
}

#[unsafe(no_mangle)]
extern "C" fn UnInitPTACacheThreadLocal() {
    ASKED.set(None);
}

#[unsafe(no_mangle)]
extern "C" fn CanUsePTACache(name: *const c_char) -> bool {
    // SAFETY: not null, and ends with a zero byte, as the caller says.
    !name.is_null() && unsafe { CStr::from_ptr(name) }.to_bytes().starts_with(b"aclnn")
}

#[unsafe(no_mangle)]
extern "C" fn AddTensorAddrToCachedList(at: *mut c_void) {
    ASKED.with_borrow_mut(|asked| asked.iter_mut().for_each(|asked| asked.addresses.push(at.addr())));
}

#[unsafe(no_mangle)]
extern "C" fn SetPTACacheHashKey(key: *mut u8, length: usize) {
    let key = (!key.is_null() && length > 0).then_some((key.cast_const(), length));
    ASKED.with_borrow_mut(|asked| asked.iter_mut().for_each(|asked| asked.key = key));
}

/// An executor of that key, or null. The real one puts the addresses that were told in place of those of the first time; this
/// one answers only where they are the same, of the same context.
#[unsafe(no_mangle)]
extern "C" fn PTAFindExecCache(key: *mut u8, length: usize, workspace: *mut u64) -> Handle {
    let mut state = state();
    if key.is_null() || workspace.is_null() {
        return std::ptr::null_mut();
    }
    let (Ok((context, _)), Ok(Some((_, told)))) = (state.current(), asked(&state)) else { return std::ptr::null_mut() };
    // SAFETY: not null, and as long as the caller says.
    let key = unsafe { std::slice::from_raw_parts(key, length) };
    let same = |known: &&Known| {
        let own = &known.memory;
        known.executor.context == context
            && own.len() == told.len()
            && own.iter().zip(&told).all(|(own, told)| Arc::ptr_eq(own, told))
    };
    let Some(executor) = state.known.get(key).filter(same).map(|known| known.executor.clone()) else {
        return std::ptr::null_mut();
    };
    // SAFETY: not null, and the caller's to be written.
    unsafe { *workspace = executor.plan.workspace };
    let handle = state.handle();
    state.executors.insert(handle, executor);
    std::ptr::without_provenance_mut(handle)
}
