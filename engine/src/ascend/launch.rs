//! The calls that an operator of a program becomes, and their two phases.

#![allow(unsafe_code)]

use std::{cell::Cell, rc::Rc};

use super::{
    calls::{Api, Handle, Operator, Run, Status},
    comm::Exchange,
    memory::{Argument, Memory},
};
use crate::Error;

/// An executor that is ready for its second phase, and how much workspace that takes, bytes.
#[derive(Clone, Copy)]
pub(super) struct Ready {
    executor: Handle,
    pub workspace: usize,
}

/// A call of aclnn with its arguments.
pub(super) struct Call {
    api: &'static Api,
    name: &'static str,
    size: Box<dyn Fn(*mut u64, *mut Handle) -> Status>,
    run: Run,
    /// Whether an argument of the host changes from step to step, so that an executor is worth nothing in the next one.
    pub varies: bool,
    /// The executor that is used again.
    kept: Cell<Option<Ready>>,
    /// Held as long as the call.
    _arguments: Vec<Argument>,
}

impl Call {
    /// A call of `operator`, whose first phase `size` calls with the handles of `arguments`.
    pub(super) fn new<F: Copy + 'static, const N: usize>(
        api: &'static Api,
        operator: &Operator<F>,
        arguments: [&Argument; N],
        size: impl Fn(F, [Handle; N], *mut u64, *mut Handle) -> Status + 'static,
    ) -> Self {
        let handles = arguments.map(|argument| argument.handle);
        let first = operator.size;
        Self {
            api,
            name: operator.name,
            size: Box::new(move |workspace, executor| size(first, handles, workspace, executor)),
            run: operator.run,
            varies: false,
            kept: Cell::new(None),
            _arguments: arguments.into_iter().map(Rc::clone).collect(),
        }
    }

    /// The same of a call that reads what `size` looks up each time.
    pub(super) fn varying(mut self) -> Self {
        self.varies = true;
        self
    }

    /// The first phase; none where the executor of an earlier one is used again.
    pub(super) fn ready(&self) -> Result<Ready, Error> {
        if let Some(kept) = self.kept.get() {
            return Ok(kept);
        }
        let (mut workspace, mut executor) = (0u64, std::ptr::null_mut());
        let status = (self.size)(&raw mut workspace, &raw mut executor);
        self.api.check(&format!("prepare {}", self.name), status)?;
        Ok(Ready { executor, workspace: usize::try_from(workspace).unwrap_or(usize::MAX) })
    }

    /// The second phase.
    pub(super) fn launch(&self, ready: Ready, workspace: &Memory, stream: Handle) -> Result<(), Error> {
        // SAFETY: the executor is that of this call's first phase and was not used, or can be again; the workspace is as large
        // as that phase asked for, as `room` saw to, and arguments live as long as the call.
        let status = unsafe { (self.run)(workspace.at, ready.workspace as u64, ready.executor, stream) };
        self.api.check(&format!("launch {}", self.name), status)
    }

    /// Goes through the first phase once, to see that the arguments are taken and how much workspace they need, bytes. With
    /// `reuse` the executor is kept for every launch, where its arguments stay the same and the library can.
    pub(super) fn try_out(&self, reuse: bool) -> Result<usize, Error> {
        let ready = self.ready()?;
        if let (true, false, Ok(calls)) = (reuse, self.varies, &self.api.reuse) {
            // SAFETY: the executor was just made. Operators that cannot do it say so, and are prepared every time.
            if unsafe { (calls.repeatable)(ready.executor) } == 0 {
                self.kept.set(Some(ready));
                return Ok(ready.workspace);
            }
        }
        // SAFETY: the executor was just made, and nobody else has it.
        let status = unsafe { (self.api.runtime.destroy_executor)(ready.executor) };
        self.api.check(&format!("give back what {} was prepared with", self.name), status)?;
        Ok(ready.workspace)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(kept) = self.kept.get() {
            // SAFETY: ours, destroyed once.
            let _ = unsafe { (self.api.runtime.destroy_executor)(kept.executor) };
        }
    }
}

/// What is put into the stream for an operator.
pub(super) enum Work {
    Call(Call),
    Exchange(Exchange),
}

impl Work {
    /// Whether it is given anew what varies, in a step that is replayed.
    pub(super) fn varies(&self) -> bool {
        matches!(self, Self::Call(call) if call.varies)
    }

    /// Everything that the host does before the work can be put into a stream.
    pub(super) fn ready(&self) -> Result<Option<Ready>, Error> {
        match self {
            Self::Call(call) => call.ready().map(Some),
            Self::Exchange(_) => Ok(None),
        }
    }

    /// Puts it into a stream.
    pub(super) fn launch(&self, ready: Option<Ready>, workspace: &Memory, stream: Handle) -> Result<(), Error> {
        match (self, ready) {
            (Self::Call(call), Some(ready)) => call.launch(ready, workspace, stream),
            (Self::Call(call), None) => call.launch(call.ready()?, workspace, stream),
            (Self::Exchange(exchange), _) => exchange.launch(stream),
        }
    }
}
