//! A step or a piece of it as a CUDA graph: its kernels are captured once, and then launched by one call of the host.
//!
//! Operators of a replay have no events of their own: events inside of a graph are nodes of it, and change what is measured.

#![allow(unsafe_code)]

use std::{ptr, rc::Rc};

use super::{
    device::Context,
    driver::{Handle, THREAD_LOCAL},
    queue::Queue,
    work::Work,
};
use crate::{
    Error,
    record::{Kind, Log},
};

/// Captured kernels, ready to be launched.
pub(super) struct Graph {
    context: Rc<Context>,
    executable: Handle,
}

impl Graph {
    /// Captures the commands of operators, each after the one before it; `log` tells of them as of launches.
    pub(super) fn capture<'l>(
        queue: &Queue,
        mut work: impl Iterator<Item = (Kind, &'l mut Work)>,
        log: &Log,
    ) -> Result<Self, Error> {
        let (driver, calls) = (queue.context.driver, &queue.context.driver.calls);
        // SAFETY: a stream of ours with nothing under way that this thread depends on.
        driver.check("begin the capture of a graph", unsafe { (calls.begin_capture)(queue.stream, THREAD_LOCAL) })?;
        let launched = work.try_for_each(|(kind, work)| log.launch(kind, || work.enqueue(queue)));
        let mut graph: Handle = ptr::null_mut();
        // SAFETY: begun above; a place for the handle. A capture is ended whatever it came to, or the stream could not be used.
        let code = unsafe { (calls.end_capture)(queue.stream, &raw mut graph) };
        let mut executable: Handle = ptr::null_mut();
        let made = launched.and_then(|()| driver.check("end the capture of a graph", code)).and_then(|()| {
            // SAFETY: the graph that was just captured, a place for the handle, and no flags.
            let code = unsafe { (calls.instantiate)(&raw mut executable, graph, 0) };
            driver.check("make a graph ready to be launched", code)
        });
        if !graph.is_null() {
            // SAFETY: ours, and destroyed once: what is ready to be launched does not need it.
            let _ = unsafe { (calls.destroy_graph)(graph) };
        }
        made.map(|()| Self { context: Rc::clone(&queue.context), executable })
    }

    /// Enqueues all its kernels.
    pub(super) fn enqueue(&self, queue: &Queue) -> Result<(), Error> {
        let driver = queue.context.driver;
        // SAFETY: ready to be launched, and the memory that its kernels name lives as long as the plan that has it.
        let code = unsafe { (driver.calls.launch_graph)(self.executable, queue.stream) };
        driver.check("launch a graph", code)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let _ = self.context.enter();
        // SAFETY: ours, and destroyed once.
        let _ = unsafe { (self.context.driver.calls.destroy_executable)(self.executable) };
    }
}
