//! What every handle stands for.

use std::{
    cell::Cell,
    collections::{BTreeMap, HashMap},
    ffi::c_void,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    thread::ThreadId,
};

use crate::{
    error::{self, Outcome, fault},
    event::Event,
    executor::{Executor, Known},
    graph::{Graph, Group},
    hccl::Rank,
    memory::Block,
    stream::Stream,
    tensor::Tensor,
};

/// A handle as callers have it.
pub type Handle = *mut c_void;

/// A context: the device that its streams and memory are of.
#[derive(Clone)]
pub struct Context {
    pub device: i32,
    /// The stream that a null handle means.
    pub default: usize,
}

/// A capture under way.
pub struct Capturing {
    pub stream: usize,
    pub mode: i32,
    pub thread: ThreadId,
}

/// Everything there is.
#[derive(Default)]
pub struct State {
    pub initialised: bool,
    last: usize,
    pub contexts: HashMap<usize, Context>,
    pub streams: HashMap<usize, Arc<Stream>>,
    pub events: HashMap<usize, Arc<Event>>,
    pub tensors: HashMap<usize, Arc<Tensor>>,
    /// Value of each scalar.
    pub scalars: HashMap<usize, f64>,
    pub int_arrays: HashMap<usize, Arc<Vec<i64>>>,
    /// Tensors of each list.
    pub lists: HashMap<usize, Vec<usize>>,
    pub executors: HashMap<usize, Executor>,
    /// Executors that are kept, by their keys.
    pub known: HashMap<Vec<u8>, Known>,
    pub graphs: HashMap<usize, Arc<Graph>>,
    pub groups: HashMap<usize, Group>,
    pub ranks: HashMap<usize, Arc<Rank>>,
    pub captures: Vec<Capturing>,
    /// Memory by its first address.
    pub blocks: BTreeMap<usize, Arc<Block>>,
    /// Bytes in use of each device.
    pub used: HashMap<i32, u64>,
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);

thread_local! {
    /// The context of this thread.
    pub static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The state, for as long as what is returned lives. No task runs under it.
pub fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// A handle that nothing had before. It is no address: nobody may look behind it.
    pub fn handle(&mut self) -> usize {
        self.last += 16;
        0x5100_0000_0000 + self.last
    }

    /// The context of this thread.
    pub fn current(&self) -> Outcome<(usize, &Context)> {
        if !self.initialised {
            return fault(error::UNINITIALISED, "aclInit was not called");
        }
        let own = CURRENT.get();
        match self.contexts.get(&own) {
            Some(context) => Ok((own, context)),
            None if own == 0 => fault(error::NO_CONTEXT, "this thread has no context; create or set one"),
            None => fault(error::NO_CONTEXT, "the context of this thread was destroyed"),
        }
    }

    /// A stream of the context of this thread; a null handle means the default one.
    pub fn stream(&self, handle: Handle) -> Outcome<Arc<Stream>> {
        let (own, context) = self.current()?;
        let number = if handle.is_null() { context.default } else { handle.addr() };
        match self.streams.get(&number) {
            Some(stream) if stream.context == own => Ok(Arc::clone(stream)),
            Some(stream) => {
                let text = format!(
                    "the stream is of device {}, the context of this thread of device {}",
                    stream.device, context.device
                );
                fault(error::STREAM_CONTEXT, text)
            }
            None => fault(error::HANDLE, "the stream was destroyed or never created"),
        }
    }

    /// An event.
    pub fn event(&self, handle: Handle) -> Outcome<Arc<Event>> {
        let found = self.events.get(&handle.addr()).cloned();
        found.map_or_else(|| fault(error::HANDLE, "the event was destroyed or never created"), Ok)
    }

    /// A tensor of the operator `op`; null or destroyed ones are refused by the name of the argument.
    pub fn tensor(&self, handle: Handle, argument: &str) -> Outcome<Arc<Tensor>> {
        if handle.is_null() {
            return fault(error::NULL, format!("'{argument}' is a null pointer"));
        }
        let found = self.tensors.get(&handle.addr()).cloned();
        found.map_or_else(|| fault(error::INVALID, format!("'{argument}' is no tensor, or was destroyed")), Ok)
    }

    /// Refuses what may not be done while something is captured that this thread or, in the global mode, anybody began;
    /// doing it spoils the capture.
    pub fn not_captured(&mut self, what: &str, in_relaxed_too: bool) -> Outcome {
        let own = std::thread::current().id();
        let hit = |capture: &&Capturing| match capture.mode {
            0 => true,
            1 => capture.thread == own,
            _ => in_relaxed_too && capture.thread == own,
        };
        let Some(capture) = self.captures.iter().find(hit) else { return Ok(()) };
        let (stream, mode) = (capture.stream, capture.mode);
        if let Some(stream) = self.streams.get(&stream) {
            stream.spoil();
        }
        fault(error::CAPTURE_MODE, format!("{what} while a stream is captured in mode {mode}; end the capture first"))
    }

    /// Refuses the default stream while anything is captured that this thread or, in the global mode, anybody began.
    pub fn default_allowed(&mut self) -> Outcome {
        let implicit = |_| error::Fault {
            code: error::CAPTURE_IMPLICIT,
            text: "the default stream is used while another stream is captured; use a stream of your own".to_owned(),
        };
        self.not_captured("the default stream is used", true).map_err(implicit)
    }
}
