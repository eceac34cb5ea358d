//! A step that is captured once and then replayed. What attention was told of lengths is part of the capture, so before each
//! attention of a replay stands the wait for an event, which is recorded when the host has given that attention the lengths of
//! this step: the replay begins meanwhile.

#![allow(unsafe_code)]

use super::{
    calls::{Api, Graphs, Handle},
    launch::Work,
    memory::{Memory, Owned},
};
use crate::{
    Error,
    record::{Kind, Log, Span},
};

/// `ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL`: other threads, such as those of other ranks, may do as they like.
const THREAD_LOCAL: i32 = 1;
/// `ACL_EVENT_EXTERNAL`.
const EXTERNAL: u32 = 0x20;

/// Work of a captured step that is given anew.
struct Group {
    /// Operator, and which of its calls.
    op: usize,
    part: usize,
    handle: Handle,
    event: Owned,
}

/// A captured step.
pub(super) struct Graph {
    api: &'static Api,
    calls: Graphs,
    handle: Handle,
    groups: Vec<Group>,
    /// The stream on which lengths are given.
    second: Owned,
}

impl Graph {
    /// Captures all work.
    pub(super) fn capture(
        api: &'static Api,
        calls: Graphs,
        work: &[Vec<Work>],
        workspace: &Memory,
        stream: Handle,
        log: &Log,
    ) -> Result<Self, Error> {
        let second = api.stream()?;
        // SAFETY: a stream of ours on which nothing is captured.
        api.check("begin to capture a step", unsafe { (calls.begin)(stream, THREAD_LOCAL) })?;
        let mut groups = Vec::new();
        let captured = work.iter().enumerate().try_for_each(|(op, parts)| {
            log.launch(operator(op), || put(api, calls, (op, parts), workspace, stream, &mut groups))
        });
        let mut handle = std::ptr::null_mut();
        // SAFETY: the capture that began above ends in any case, and there is a place for the handle.
        let status = unsafe { (calls.end)(stream, &raw mut handle) };
        captured?;
        api.check("end the capture of a step", status)?;
        Ok(Self { api, calls, handle, groups, second })
    }

    /// Starts all of it on a stream.
    pub(super) fn replay(&self, stream: Handle) -> Result<(), Error> {
        // SAFETY: a graph and a stream of ours; the replay before it has ended, as every step ends with a wait.
        let status = unsafe { (self.calls.execute)(self.handle, stream) };
        self.api.check("replay a step", status)
    }

    /// Gives every attention the lengths of this step.
    pub(super) fn update(&self, work: &[Vec<Work>], workspace: &Memory, log: &mut Log) -> Result<(), Error> {
        let second = self.second.handle;
        for Group { op, part, handle, event } in &self.groups {
            let Some(own) = work.get(*op).and_then(|work| work.get(*part)) else { continue };
            let start = log.now();
            let ready = own.ready()?;
            // SAFETY (all): a group of the graph, a stream and an event of ours.
            self.api.check("begin the update of a task", unsafe { (self.calls.update_begin)(second, *handle) })?;
            // A library may know the task by the call that gave it last.
            log.launch(operator(*op), || own.launch(ready, workspace, second))?;
            self.api.check("end the update of a task", unsafe { (self.calls.update_end)(second) })?;
            self.api.check("record an event", unsafe { (self.api.runtime.record_event)(event.handle, second) })?;
            log.push(Kind::Update(u32::try_from(*op).unwrap_or(u32::MAX)), Span { start, end: log.now() });
        }
        Ok(())
    }
}

fn operator(op: usize) -> Kind {
    Kind::Op(u32::try_from(op).unwrap_or(u32::MAX))
}

/// Captures the calls of an operator.
fn put(
    api: &'static Api,
    calls: Graphs,
    (op, parts): (usize, &[Work]),
    workspace: &Memory,
    stream: Handle,
    groups: &mut Vec<Group>,
) -> Result<(), Error> {
    for (part, own) in parts.iter().enumerate() {
        let ready = own.ready()?;
        if !own.varies() {
            own.launch(ready, workspace, stream)?;
            continue;
        }
        let event = api.event(EXTERNAL)?;
        // SAFETY (all): an event and a stream of ours, and a place for the handle.
        api.check("wait for an event", unsafe { (api.runtime.wait_event)(stream, event.handle) })?;
        api.check("reset an event", unsafe { (api.runtime.reset_event)(event.handle, stream) })?;
        api.check("begin a group of tasks", unsafe { (calls.group_begin)(stream) })?;
        own.launch(ready, workspace, stream)?;
        let mut handle = std::ptr::null_mut();
        api.check("end a group of tasks", unsafe { (calls.group_end)(stream, &raw mut handle) })?;
        groups.push(Group { op, part, handle, event });
    }
    Ok(())
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: ours, destroyed once; nothing of it is under way, as every step ends with a wait.
        let _ = unsafe { (self.calls.destroy)(self.handle) };
    }
}
