//! A step or a piece of it as a CUDA graph: its kernels are captured once, and then launched by one call of the host.
//!
//! Operators of a replay have no events of their own: events inside of a graph are nodes of it, and change what is measured.

#![allow(unsafe_code)]

use std::rc::Rc;

use super::{device::Context, platform::Handle, queue::Queue, work::Work};
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
        driver.check("begin the capture of a graph", unsafe { calls.begin_capture(queue.stream) })?;
        let launched = work.try_for_each(|(kind, work)| log.launch(kind, || work.enqueue(queue)));
        // SAFETY: begun above. A capture is ended whatever it came to, or the stream could not be used.
        let captured = driver.check("end the capture of a graph", unsafe { calls.end_capture(queue.stream) });
        let graph = captured.as_ref().ok().copied();
        let made = launched.and(captured).and_then(|graph| {
            // SAFETY: the graph that was just captured.
            driver.check("make a graph ready to be launched", unsafe { calls.instantiate(graph) })
        });
        if let Some(graph) = graph.filter(|graph| !graph.is_null()) {
            // SAFETY: ours, and destroyed once: what is ready to be launched does not need it.
            let _ = unsafe { calls.destroy_graph(graph) };
        }
        made.map(|executable| Self { context: Rc::clone(&queue.context), executable })
    }

    /// Enqueues all its kernels.
    pub(super) fn enqueue(&self, queue: &Queue) -> Result<(), Error> {
        let driver = queue.context.driver;
        // SAFETY: ready to be launched, and the memory that its kernels name lives as long as the plan that has it.
        driver.check("launch a graph", unsafe { driver.calls.launch_graph(self.executable, queue.stream) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let _ = self.context.enter();
        // SAFETY: ours, and destroyed once.
        let _ = unsafe { self.context.driver.calls.destroy_executable(self.executable) };
    }
}
