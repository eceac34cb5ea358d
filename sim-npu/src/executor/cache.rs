//! The cache of executors: what is prepared while a thread has a key set is found by that key from then on. The calls are
//! those by which torch_npu reaches CANN's (`op_api_common.h` of Ascend's op-plugin).

#![allow(unsafe_code)]

use std::{
    cell::{Cell, RefCell},
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
    /// Where the name lies by which the operator was asked for: it is told apart from others by that.
    name: usize,
    /// The memory of its arguments, in the order in which it was told.
    memory: Vec<Arc<Block>>,
}

/// What a thread asks for.
#[derive(Default)]
struct Asked {
    name: usize,
    key: Option<(*const u8, usize)>,
    addresses: Vec<usize>,
}

thread_local! {
    /// Where the name lies that this thread has asked for, until it begins.
    static NAME: Cell<usize> = const { Cell::new(0) };
    static ASKED: RefCell<Option<Asked>> = const { RefCell::new(None) };
}

/// A key, memory in the order in which it was told, and where the name lies.
type Key = (Vec<u8>, Vec<Arc<Block>>, usize);

/// The key that this thread has set, which only now is read, and the memory that it told of; nothing without a name.
fn asked(state: &State) -> Outcome<Option<Key>> {
    ASKED.with_borrow(|asked| {
        let Some(Asked { name: name @ 1.., key: Some((key, length)), addresses }) = asked else { return Ok(None) };
        // SAFETY: not null, as `SetPTACacheHashKey` saw to, and as long as the caller said, who keeps it until the end.
        let key = unsafe { std::slice::from_raw_parts(*key, *length) }.to_vec();
        let block = |at: &usize| {
            let text =
                || error::Fault { code: error::INVALID, text: format!("{at:#x}, told to the cache, is no memory") };
            state.block(*at, 1).ok_or_else(text)
        };
        Ok(Some((key, addresses.iter().map(block).collect::<Outcome<_>>()?, *name)))
    })
}

/// Keeps what was just prepared, where a key is set. Memory must have been told of every tensor in the order of the call, one that
/// it has twice twice: the real cache finds the addresses of later calls by that order.
pub(super) fn keep(state: &mut State, executor: &Executor) -> Outcome {
    let Some((key, memory, name)) = asked(state)? else { return Ok(()) };
    let tensors: Vec<usize> = executor.arguments.iter().flat_map(|argument| state.addresses(*argument)).collect();
    let of = |at: &usize| state.block(*at, 1);
    let same = |(told, own): (&Arc<Block>, &usize)| of(own).is_some_and(|own| Arc::ptr_eq(told, &own));
    if tensors.len() != memory.len() || !memory.iter().zip(&tensors).all(same) {
        let (name, told, own) = (executor.name, memory.len(), tensors.len());
        let text =
            format!("{name}: the cache was told of {told} memories, which are not those of its {own} tensors in order");
        return fault(error::INVALID, text);
    }
    // The second phase looks at handles only of what was prepared for it alone.
    let executor = Executor { arguments: Vec::new(), ..executor.clone() };
    // Memory that was freed would be held by what was prepared with it.
    state.known.retain(|_, known| known.memory.iter().all(|block| block.alive().is_ok()));
    state.known.insert(key, Known { executor, name, memory });
    Ok(())
}

// SAFETY (all below): the names are CANN's, which this library stands in for.

#[unsafe(no_mangle)]
extern "C" fn InitPTACacheThreadLocal() {
    ASKED.set(Some(Asked { name: NAME.take(), ..Asked::default() }));
}

#[unsafe(no_mangle)]
extern "C" fn UnInitPTACacheThreadLocal() {
    ASKED.set(None);
}

#[unsafe(no_mangle)]
extern "C" fn CanUsePTACache(name: *const c_char) -> bool {
    // SAFETY: not null, and ends with a zero byte, as the caller says.
    let can = !name.is_null() && unsafe { CStr::from_ptr(name) }.to_bytes().starts_with(b"aclnn");
    NAME.set(if can { name.addr() } else { 0 });
    can
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
    let (Ok((context, _)), Ok(Some((_, told, name)))) = (state.current(), asked(&state)) else {
        return std::ptr::null_mut();
    };
    // SAFETY: not null, and as long as the caller says.
    let key = unsafe { std::slice::from_raw_parts(key, length) };
    let same = |known: &&Known| {
        let own = &known.memory;
        known.name == name
            && known.executor.context == context
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
