//! Streams: queues of tasks, each with a worker that runs one after the other.

#![allow(unsafe_code)]

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    cost::{cost, wait_until},
    error::{self, Fault, Outcome, answer, fault},
    graph::{Capture, Graph, Update},
    mspti::{self, Place, stamp},
    state::{Handle, state},
};

/// What a task does when its turn comes.
pub type Work = Arc<dyn Fn() -> Outcome + Send + Sync>;

/// What a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An event, or the update of a group.
    Mark,
    /// A copy.
    Copy,
    /// An operator.
    Kernel,
    /// An operator whose task can be replaced in a graph: one that takes lengths from the host.
    Updatable,
    /// A collective.
    Collective,
}

/// A task of a stream.
#[derive(Clone)]
pub struct Task {
    pub name: &'static str,
    pub work: Work,
    /// How long it takes at least, beyond what every kernel takes.
    pub time: Duration,
    pub kind: Kind,
    /// What ties it to the call that launched it, of a graph's the call that was captured; 0 for what is not recorded.
    pub correlation: u64,
}

impl Task {
    fn run(&self, replayed: bool, at: Place) -> Outcome {
        let fixed = match self.kind {
            Kind::Kernel | Kind::Updatable => cost().kernel(replayed),
            _ => Duration::ZERO,
        };
        let (start, end) = (stamp(), Instant::now() + self.time + fixed);
        (self.work)()?;
        wait_until(end);
        mspti::ran(self, at, start);
        Ok(())
    }
}

enum Item {
    Task(Task),
    Replay(Arc<Graph>),
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    busy: bool,
    closed: bool,
    /// What a task failed with: from then on the stream runs nothing.
    fault: Option<Fault>,
    capture: Option<Capture>,
    update: Option<Update>,
}

/// A stream.
pub struct Stream {
    pub handle: usize,
    pub context: usize,
    pub device: i32,
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Stream {
    /// A stream with its worker.
    pub fn start(handle: usize, context: usize, device: i32) -> Outcome<Arc<Self>> {
        let stream = Arc::new(Self { handle, context, device, queue: Mutex::default(), changed: Condvar::new() });
        let own = Arc::clone(&stream);
        let started = std::thread::Builder::new().name(format!("sim-npu {device}")).spawn(move || own.work());
        match started {
            Ok(_) => Ok(stream),
            Err(error) => fault(error::NO_MEMORY, format!("the host gives no thread for a stream: {error}")),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        loop {
            let mut queue = self.queue();
            while queue.items.is_empty() && !queue.closed {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            let Some(item) = queue.items.pop_front() else { return };
            queue.busy = true;
            let faulted = queue.fault.is_some();
            drop(queue);
            let at = Place { device: self.device, stream: self.handle };
            let ran = match item {
                _ if faulted => Ok(()),
                Item::Task(task) => task.run(false, at),
                Item::Replay(graph) => graph.each(|task| task.run(true, at)),
            };
            let mut queue = self.queue();
            queue.busy = false;
            if let Err(fault) = ran {
                queue.fault.get_or_insert(fault);
            }
            self.changed.notify_all();
        }
    }

    fn push(&self, mut queue: MutexGuard<'_, Queue>, item: Item) -> Outcome {
        if let Some(fault) = &queue.fault {
            return Err(fault.clone());
        }
        queue.items.push_back(item);
        self.changed.notify_all();
        Ok(())
    }

    /// Takes a task: to run it, into the capture under way, or in place of one that was captured.
    pub fn put(&self, task: Task) -> Outcome {
        let mut queue = self.queue();
        if let Some(update) = &mut queue.update {
            return update.take(task);
        }
        if let Some(capture) = &mut queue.capture {
            return capture.take(task);
        }
        self.push(queue, Item::Task(task))
    }

    /// Runs a graph.
    pub fn replay(&self, graph: Arc<Graph>) -> Outcome {
        let queue = self.queue();
        if queue.capture.is_some() {
            return fault(error::STREAM_CAPTURED, "a graph is run on a stream that is captured");
        }
        self.push(queue, Item::Replay(graph))
    }

    /// Whether tasks are captured and not run.
    pub fn is_captured(&self) -> bool {
        self.queue().capture.is_some()
    }

    /// Makes the capture under way worth nothing.
    pub fn spoil(&self) {
        if let Some(capture) = &mut self.queue().capture {
            capture.spoilt = true;
        }
    }

    /// The capture under way, to be changed by `change`.
    pub fn capture<T>(&self, change: impl FnOnce(&mut Option<Capture>) -> Outcome<T>) -> Outcome<T> {
        change(&mut self.queue().capture)
    }

    /// The update under way, to be changed by `change`.
    pub fn update<T>(&self, change: impl FnOnce(&mut Option<Update>) -> Outcome<T>) -> Outcome<T> {
        change(&mut self.queue().update)
    }

    /// Waits until everything so far has run; gives what a task failed with.
    pub fn synchronize(&self) -> Outcome {
        let mut queue = self.queue();
        while (queue.busy || !queue.items.is_empty()) && queue.fault.is_none() {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.fault.clone().map_or(Ok(()), Err)
    }

    /// Ends the worker when it has run everything.
    pub fn close(&self) {
        self.queue().closed = true;
        self.changed.notify_all();
    }
}

// SAFETY (all below): the names are AscendCL's, which this library stands in for; places to be written are looked at for null.

#[unsafe(no_mangle)]
extern "C" fn aclrtCreateStreamWithConfig(out: *mut Handle, priority: u32, flags: u32) -> i32 {
    answer(|| {
        if out.is_null() || priority > 7 || flags > 15 {
            return fault(error::INVALID_PARAM, format!("no stream of priority {priority} with flags {flags:#x}"));
        }
        let mut state = state();
        let (context, device) = state.current().map(|(own, context)| (own, context.device))?;
        let own = state.handle();
        let stream = Stream::start(own, context, device)?;
        state.streams.insert(own, stream);
        unsafe { *out = std::ptr::without_provenance_mut(own) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtDestroyStream(stream: Handle) -> i32 {
    answer(|| {
        let gone = {
            let mut state = state();
            if stream.is_null() {
                return fault(error::RT_PARAM, "the default stream goes with its context");
            }
            let found = state.stream(stream)?;
            if found.is_captured() {
                return fault(error::STREAM_CAPTURED, "a stream is destroyed while it is captured");
            }
            state.streams.remove(&found.handle);
            found
        };
        let ran = gone.synchronize();
        gone.close();
        ran
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtSynchronizeStream(stream: Handle) -> i32 {
    let _call = mspti::call("aclrtSynchronizeStream");
    answer(|| {
        let stream = {
            let mut state = state();
            let found = state.stream(stream)?;
            if found.is_captured() {
                found.spoil();
                return fault(
                    error::STREAM_CAPTURED,
                    "a stream is waited for while it is captured; end the capture first",
                );
            }
            state.not_captured("aclrtSynchronizeStream", true)?;
            found
        };
        stream.synchronize()
    })
}
