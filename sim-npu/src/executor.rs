//! Operators in two phases: the first looks at the arguments and says how much workspace is needed, the second puts the work
//! into a stream. An executor is used once.

#![allow(unsafe_code)]

use std::{cell::Cell, ffi::c_void, time::Duration};

use crate::{
    cost::cost,
    error::{self, Outcome, answer, fault},
    mspti,
    state::{Handle, State, state},
    stream::{Kind, Task, Work},
    tensor::View,
};

mod cache;

pub use cache::Known;

/// What the first phase leaves for the second.
#[derive(Clone)]
pub struct Executor {
    plan: Plan,
    name: &'static str,
    /// The context it was made in.
    context: usize,
    /// Handles of arguments, which must be there when the work is launched.
    arguments: Vec<usize>,
}

/// An operator whose arguments are in order.
#[derive(Clone)]
pub struct Plan {
    pub work: Work,
    pub time: Duration,
    /// Bytes of workspace.
    pub workspace: u64,
    pub kind: Kind,
}

impl Plan {
    /// An operator that reads and writes these views once and computes so much; `work` runs when its turn comes.
    pub fn new(views: &[&View], flops: f64, work: impl Fn() -> Outcome + Send + Sync + 'static) -> Self {
        let bytes = views.iter().map(|view| view.tensor.bytes()).sum();
        let held: Vec<View> = views.iter().map(|view| (*view).clone()).collect();
        let work: Work = std::sync::Arc::new(move || {
            held.iter().try_for_each(View::alive)?;
            work()
        });
        Self { work, time: cost().work(bytes, flops), workspace: 0, kind: Kind::Kernel }
    }

    /// The same with so much workspace.
    pub fn with_workspace(self, workspace: u64) -> Self {
        Self { workspace, ..self }
    }
}

thread_local! {
    static PLANNED: Cell<u64> = const { Cell::new(0) };
    /// First phases until one fails; 0 where none does.
    static FAILS: Cell<u64> = const { Cell::new(0) };
}

/// How many first phases this thread went through. No call of CANN: tests ask.
// SAFETY: no other library has a symbol of this name.
#[unsafe(no_mangle)]
extern "C" fn strato_sim_npu_planned() -> u64 {
    PLANNED.get()
}

/// Lets the so manieth first phase of this thread from now on fail. No call of CANN: tests ask for it.
// SAFETY: no other library has a symbol of this name.
#[unsafe(no_mangle)]
extern "C" fn strato_sim_npu_fail(after: u64) {
    FAILS.set(after);
}

/// First phase of the operator `name`.
pub fn plan(
    name: &'static str,
    arguments: &[Handle],
    workspace: *mut u64,
    executor: *mut Handle,
    make: impl FnOnce(&State) -> Outcome<Plan>,
) -> i32 {
    cost().planned();
    PLANNED.set(PLANNED.get() + 1);
    let fails = FAILS.replace(FAILS.get().saturating_sub(1)) == 1;
    answer(|| {
        if fails {
            return fault(error::INVALID, format!("{name}: fails as it was told to"));
        }
        if workspace.is_null() || executor.is_null() {
            return fault(error::NULL, format!("{name}: the place for workspace size or executor is a null pointer"));
        }
        let mut state = state();
        let context = state.current()?.0;
        let plan = make(&state).map_err(|mut fault| {
            fault.text = format!("{name}: {}", fault.text);
            fault
        })?;
        // SAFETY: neither is null, and both are the caller's to be written.
        unsafe { *workspace = plan.workspace };
        let arguments = arguments.iter().filter(|handle| !handle.is_null()).map(|handle| handle.addr()).collect();
        let handle = state.handle();
        let own = Executor { plan, name, context, arguments };
        cache::keep(&mut state, &own)?;
        state.executors.insert(handle, own);
        // SAFETY: as above.
        unsafe { *executor = std::ptr::without_provenance_mut(handle) };
        Ok(())
    })
}

/// Second phase of the operator `name`.
pub fn run(name: &'static str, workspace: *mut c_void, size: u64, executor: Handle, stream: Handle) -> i32 {
    let call = mspti::call(name);
    let code = answer(|| {
        let (stream, task) = {
            let mut state = state();
            if stream.is_null() {
                state.default_allowed()?;
            }
            let stream = state.stream(stream)?;
            let Some(own) = state.executors.get(&executor.addr()).cloned() else {
                return fault(error::INVALID, format!("{name}: the executor was used or destroyed; prepare it anew"));
            };
            if own.name != name || own.context != stream.context {
                return fault(error::INVALID, format!("{name}: the executor is of {} or of another context", own.name));
            }
            if let Some(argument) = own.arguments.iter().find(|argument| !state.is_argument(**argument)) {
                return fault(
                    error::INVALID,
                    format!("{name}: argument {argument:#x} was destroyed before the launch"),
                );
            }
            let needed = own.plan.workspace;
            if size < needed {
                return fault(error::INVALID, format!("{name}: the workspace has {size} bytes of {needed}"));
            }
            let room = usize::try_from(needed).unwrap_or(usize::MAX);
            let held = state.block(workspace.addr(), room).filter(|block| block.device == Some(stream.device));
            if needed > 0 && held.is_none() {
                return fault(error::INVALID, format!("{name}: the workspace is no {needed} bytes of the device"));
            }
            state.executors.remove(&executor.addr());
            let Plan { work, time, kind, .. } = own.plan;
            let work: Work = std::sync::Arc::new(move || {
                held.iter().filter(|_| needed > 0).try_for_each(|block| block.alive())?;
                (work)()
            });
            (stream, Task { name, work, time, kind, correlation: call.correlation })
        };
        stream.put(task)
    });
    cost().launched();
    code
}

impl State {
    fn is_argument(&self, handle: usize) -> bool {
        self.tensors.contains_key(&handle)
            || self.scalars.contains_key(&handle)
            || self.int_arrays.contains_key(&handle)
            || self.lists.contains_key(&handle)
    }
}

// SAFETY: the name is aclnn's, which this library stands in for.
#[unsafe(no_mangle)]
extern "C" fn aclDestroyAclOpExecutor(executor: Handle) -> i32 {
    answer(|| match state().executors.remove(&executor.addr()) {
        Some(_) => Ok(()),
        None => fault(error::INVALID, "the executor was used or destroyed"),
    })
}
