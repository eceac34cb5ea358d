//! A stream, which runs commands in their order, and the events between them.
//!
//! An event is stamped when the stream comes to it. So a command lies between two of them: the first is stamped when the
//! device was free for it, which on an idle device is before the call that launches it, and so its time holds what the
//! launch took on its way. Elapsed times have a resolution of half a microsecond (CUDA Driver API, `cuEventElapsedTime`).

#![allow(unsafe_code)]

use std::rc::Rc;

use super::{
    device::Context,
    platform::{Answer, Handle},
};
use crate::{Error, record::Ns};

/// A stream of a device.
pub(super) struct Queue {
    pub context: Rc<Context>,
    pub stream: Handle,
}

impl Queue {
    pub(super) fn new(context: &Rc<Context>) -> Result<Self, Error> {
        let stream = context.driver.check("make a stream on the CUDA device", context.driver.calls.stream())?;
        Ok(Self { context: Rc::clone(context), stream })
    }

    /// Waits until everything enqueued so far has ended.
    pub(super) fn finish(&self) -> Answer {
        // SAFETY: a stream that is destroyed with this.
        unsafe { self.context.driver.calls.wait(self.stream) }
    }

    /// Enqueues an event.
    pub(super) fn record(&self, event: Handle) -> Answer {
        // SAFETY: an event of this context, which lives as long as the plan whose step is under way.
        unsafe { self.context.driver.calls.record(event, self.stream) }
    }

    /// As [`Queue::finish`], with the reason where that fails.
    pub(super) fn settle(&self, doing: &str) -> Result<(), Error> {
        self.context.driver.check(doing, self.finish())
    }
}

impl Drop for Queue {
    /// Commands under way read memory that goes after this.
    fn drop(&mut self) {
        let _ = self.context.enter();
        let _ = self.finish();
        // SAFETY: made by this, and destroyed once.
        let _ = unsafe { self.context.driver.calls.destroy_stream(self.stream) };
    }
}

/// Pairs of events, of which each command of a step has one; made when they are first needed, and used again by every step.
pub(super) struct Events {
    context: Rc<Context>,
    pairs: Vec<[Handle; 2]>,
}

impl Events {
    pub(super) fn new(context: &Rc<Context>) -> Self {
        Self { context: Rc::clone(context), pairs: Vec::new() }
    }

    /// The pair of a command, by its place among those of the step.
    pub(super) fn pair(&mut self, place: usize) -> Result<[Handle; 2], Error> {
        while self.pairs.len() <= place {
            let start = self.event()?;
            let pair = self.event().map(|end| [start, end]);
            self.pairs.push(pair.inspect_err(|_| self.destroy(start))?);
        }
        self.pairs.get(place).copied().ok_or_else(|| Error::Request(format!("a step has no command {place}")))
    }

    fn event(&self) -> Result<Handle, Error> {
        self.context.driver.check("make an event on the CUDA device", self.context.driver.calls.event())
    }

    /// From when to when a command was under way, ns after the first event of the step; `None` where the driver does not tell
    /// it or tells it the wrong way round.
    pub(super) fn stamps(&self, place: usize) -> Option<(Ns, Ns)> {
        let [anchor, _] = *self.pairs.first()?;
        let [start, end] = *self.pairs.get(place)?;
        let since = |event| {
            // SAFETY: events of this context that were recorded and have happened: the step was waited for.
            let milliseconds = unsafe { self.context.driver.calls.elapsed(anchor, event) }.ok()?;
            milliseconds.is_finite().then(|| (f64::from(milliseconds) * 1e6).round() as Ns)
        };
        let stamps = (since(start)?, since(end)?);
        (stamps.0 <= stamps.1).then_some(stamps)
    }

    fn destroy(&self, event: Handle) {
        // SAFETY: made by this, and destroyed once.
        let _ = unsafe { self.context.driver.calls.destroy_event(event) };
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let _ = self.context.enter();
        self.pairs.iter().flatten().for_each(|event| self.destroy(*event));
    }
}
