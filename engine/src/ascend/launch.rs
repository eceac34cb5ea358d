//! The calls that an operator of a program becomes, and their two phases.

#![allow(unsafe_code)]

use std::{
    cell::OnceCell,
    ffi::CStr,
    rc::Rc,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{
    calls::{Api, Handle, Operator, Reuse, Run, Status},
    comm::Exchange,
    memory::{Argument, Memory},
    refused,
};
use crate::Error;

/// An executor that is ready for its second phase, and how much workspace that takes, bytes.
#[derive(Clone, Copy)]
pub(super) struct Ready {
    executor: Handle,
    pub workspace: usize,
}

/// Under what a call is found in the library's cache of executors.
struct Cached {
    calls: Reuse,
    /// No other call of the process has it: scalars and shapes, which calls differ by, need not be part of it.
    key: Box<[u8]>,
}

impl Cached {
    fn new(calls: Reuse, name: &str) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let key = format!("stratoscope {name} {}", LAST.fetch_add(1, Ordering::Relaxed));
        Self { calls, key: key.into_bytes().into() }
    }

    /// What the cache has for the call; `None` where it does not take the operator. What is prepared until [`Cached::end`] is kept.
    fn ask(&self, symbol: &'static CStr, arguments: &[Argument]) -> Option<(Handle, u64)> {
        let Self { calls, key, .. } = self;
        let (at, mut workspace) = (key.as_ptr().cast_mut(), 0u64);
        // SAFETY: the name stays; the key is only read, and lives as long as the call; addresses are not followed; there is a
        // place for the size.
        unsafe {
            // Asked each time: whether it does depends on what else is switched on.
            if !(calls.can)(symbol.as_ptr()) {
                return None;
            }
            (calls.begin)();
            for memory in arguments.iter().filter_map(|argument| argument.memory()) {
                (calls.address)(memory);
            }
            (calls.key)(at, key.len());
            Some(((calls.executor)(at, key.len(), &raw mut workspace), workspace))
        }
    }

    fn end(&self) {
        // SAFETY: ends what `ask` began.
        unsafe { (self.calls.end)() }
    }
}

/// A call of aclnn with its arguments.
pub(super) struct Call {
    api: &'static Api,
    name: &'static str,
    symbol: &'static CStr,
    size: Box<dyn Fn(*mut u64, *mut Handle) -> Status>,
    run: Run,
    /// Whether an argument of the host changes from step to step, so that an executor is worth nothing in the next one.
    pub varies: bool,
    /// Set where executors are looked up in the library's cache.
    cached: OnceCell<Cached>,
    /// Held as long as the call.
    arguments: Vec<Argument>,
}

impl Call {
    /// A call of `operator`, whose first phase `size` calls with the handles of `arguments`: all of the call's, in its order, one
    /// that it has twice twice.
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
            symbol: operator.symbol,
            size: Box::new(move |workspace, executor| size(first, handles, workspace, executor)),
            run: operator.run,
            varies: false,
            cached: OnceCell::new(),
            arguments: arguments.into_iter().map(Rc::clone).collect(),
        }
    }

    /// The same of a call that reads what `size` looks up each time.
    pub(super) fn varying(mut self) -> Self {
        self.varies = true;
        self
    }

    /// An executor and its workspace: of the library's cache where there is one, of the first phase otherwise.
    pub(super) fn ready(&self) -> Result<Ready, Error> {
        let Some(cached) = self.cached.get() else { return self.prepare() };
        let Some((executor, workspace)) = cached.ask(self.symbol, &self.arguments) else { return self.prepare() };
        let found = (!executor.is_null()).then(|| Ready { executor, workspace: room(workspace) });
        let ready = found.map_or_else(|| self.prepare(), Ok);
        cached.end();
        ready
    }

    /// The first phase.
    fn prepare(&self) -> Result<Ready, Error> {
        let (mut workspace, mut executor) = (0u64, std::ptr::null_mut());
        let status = (self.size)(&raw mut workspace, &raw mut executor);
        self.api.check(&format!("prepare {}", self.name), status)?;
        Ok(Ready { executor, workspace: room(workspace) })
    }

    /// The second phase.
    pub(super) fn launch(&self, ready: Ready, workspace: &Memory, stream: Handle) -> Result<(), Error> {
        if ready.workspace > workspace.size {
            let what =
                format!("it asks for {} bytes of workspace now and for {} before", ready.workspace, workspace.size);
            return Err(refused(&format!("launch {}", self.name), &what));
        }
        // SAFETY: the executor is that of this call's first phase or of the cache, and was not used; the workspace is as large as
        // that asked for, and arguments live as long as the call.
        let status = unsafe { (self.run)(workspace.at, ready.workspace as u64, ready.executor, stream) };
        self.api.check(&format!("launch {}", self.name), status)
    }

    /// Goes through the first phase once, to see that the arguments are taken and how much workspace they need, bytes. With
    /// `reuse` later ones ask the library's cache, where it has one that takes the operator; what varies is of no use there.
    pub(super) fn try_out(&self, reuse: bool) -> Result<usize, Error> {
        let ready = self.prepare()?;
        // SAFETY: the executor was just made, and nobody else has it.
        let status = unsafe { (self.api.runtime.destroy_executor)(ready.executor) };
        self.api.check(&format!("give back what {} was prepared with", self.name), status)?;
        if let (true, false, Ok(calls)) = (reuse, self.varies, &self.api.reuse) {
            let _ = self.cached.set(Cached::new(*calls, self.name));
        }
        Ok(ready.workspace)
    }
}

fn room(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
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
