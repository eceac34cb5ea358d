//! Events: marks in streams, with the time at which a stream came to them.

#![allow(unsafe_code)]

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    error::{self, Outcome, answer, fault},
    state::{Handle, state},
    stream::{Kind, Task},
};

/// `ACL_EVENT_TIME_LINE`: the event has a time.
const TIMED: u32 = 8;
/// `ACL_EVENT_EXTERNAL`: it joins a graph with what is outside of it.
const EXTERNAL: u32 = 0x20;
/// Every flag that there is.
const FLAGS: u32 = 1 | 2 | TIMED | EXTERNAL;
/// How long a stream waits for an event before it gives up, so that a mistake ends in a message.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Marks {
    /// Records that were asked for, and those that were reached.
    asked: u64,
    reached: u64,
    /// Whether it was recorded since it was last reset.
    set: bool,
    at: Option<Instant>,
}

/// An event.
pub struct Event {
    handle: usize,
    flags: u32,
    marks: Mutex<Marks>,
    changed: Condvar,
}

impl Event {
    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is(&self, flag: u32) -> bool {
        self.flags & flag > 0
    }

    fn record(self: &Arc<Self>) -> Task {
        self.marks().asked += 1;
        let own = Arc::clone(self);
        mark("event record", move || {
            let mut marks = own.marks();
            (marks.at, marks.set) = (Some(Instant::now()), true);
            marks.reached += 1;
            own.changed.notify_all();
            Ok(())
        })
    }

    fn wait(self: &Arc<Self>) -> Task {
        let (own, asked) = (Arc::clone(self), self.marks().asked);
        mark("event wait", move || {
            let is_there = |marks: &Marks| if own.is(EXTERNAL) { marks.set } else { marks.reached >= asked };
            let (marks, _) = own
                .changed
                .wait_timeout_while(own.marks(), PATIENCE, |marks| !is_there(marks))
                .unwrap_or_else(PoisonError::into_inner);
            if is_there(&marks) {
                Ok(())
            } else {
                fault(error::EVENT_TIMEOUT, "an event that a stream waits for never came")
            }
        })
    }

    fn reset(self: &Arc<Self>) -> Task {
        let own = Arc::clone(self);
        mark("event reset", move || {
            own.marks().set = false;
            Ok(())
        })
    }
}

fn mark(name: &'static str, work: impl Fn() -> Outcome + Send + Sync + 'static) -> Task {
    Task { name, work: Arc::new(work), time: Duration::ZERO, kind: Kind::Mark, correlation: 0 }
}

/// What is done with an event in a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deed {
    Record,
    Wait,
    Reset,
}

fn put(event: Handle, stream: Handle, deed: Deed) -> i32 {
    answer(|| {
        let (stream, event) = {
            let mut state = state();
            if stream.is_null() {
                state.default_allowed()?;
            }
            (state.stream(stream)?, state.event(event)?)
        };
        if !event.is(EXTERNAL) {
            stream.capture(|capture| match capture {
                Some(capture) if deed == Deed::Record => {
                    capture.marked.push(event.handle);
                    Ok(())
                }
                Some(capture) if deed == Deed::Wait && !capture.marked.contains(&event.handle) => {
                    fault(error::CAPTURE_DEPENDENCY, "a captured wait for an event that nothing in the capture records")
                }
                _ => Ok(()),
            })?;
        }
        stream.put(match deed {
            Deed::Record => event.record(),
            Deed::Wait => event.wait(),
            Deed::Reset => event.reset(),
        })
    })
}

// SAFETY (all below): the names are AscendCL's, which this library stands in for; places to be written are looked at for null.

#[unsafe(no_mangle)]
extern "C" fn aclrtCreateEventExWithFlag(out: *mut Handle, flags: u32) -> i32 {
    answer(|| {
        if out.is_null() || flags == 0 || flags & !FLAGS > 0 {
            return fault(error::INVALID_PARAM, format!("there is no event with flags {flags:#x}"));
        }
        let mut state = state();
        state.current()?;
        let handle = state.handle();
        state
            .events
            .insert(handle, Arc::new(Event { handle, flags, marks: Mutex::default(), changed: Condvar::new() }));
        unsafe { *out = std::ptr::without_provenance_mut(handle) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtDestroyEvent(event: Handle) -> i32 {
    answer(|| match state().events.remove(&event.addr()) {
        Some(_) => Ok(()),
        None => fault(error::HANDLE, "the event was destroyed or never created"),
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtRecordEvent(event: Handle, stream: Handle) -> i32 {
    put(event, stream, Deed::Record)
}

#[unsafe(no_mangle)]
extern "C" fn aclrtStreamWaitEvent(stream: Handle, event: Handle) -> i32 {
    put(event, stream, Deed::Wait)
}

#[unsafe(no_mangle)]
extern "C" fn aclrtResetEvent(event: Handle, stream: Handle) -> i32 {
    put(event, stream, Deed::Reset)
}

#[unsafe(no_mangle)]
extern "C" fn aclrtEventElapsedTime(ms: *mut f32, start: Handle, end: Handle) -> i32 {
    answer(|| {
        let [start, end] = {
            let mut state = state();
            state.not_captured("aclrtEventElapsedTime", true)?;
            [state.event(start)?, state.event(end)?]
        };
        if ms.is_null() || !start.is(TIMED) || !end.is(TIMED) {
            return fault(error::EVENT_TIME, "an event without ACL_EVENT_TIME_LINE has no time");
        }
        // One after the other: both may be the same event.
        let start = start.marks().at;
        let (Some(start), Some(end)) = (start, end.marks().at) else {
            return fault(error::EVENT_PENDING, "an event was not reached yet");
        };
        let ns = if end >= start { (end - start).as_secs_f64() } else { -(start - end).as_secs_f64() };
        unsafe { *ms = (ns * 1e3) as f32 };
        Ok(())
    })
}
