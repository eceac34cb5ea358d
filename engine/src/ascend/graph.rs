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

    /// Gives every attention the lengths of this step. The replay is under way and waits for each of them: where one cannot be
    /// given, all go on with what they had, and the step is not to be trusted.
    pub(super) fn update(&self, work: &[Vec<Work>], workspace: &Memory, log: &mut Log) -> Result<(), Error> {
        let mut failed = None;
        for group in &self.groups {
            let start = log.now();
            if failed.is_none() {
                failed = self.give(group, work, workspace, log).err();
            }
            // SAFETY: a stream and an event of ours.
            let status = unsafe { (self.api.runtime.record_event)(group.event.handle, self.second.handle) };
            let recorded = self.api.check("record an event", status);
            failed = failed.or(recorded.err());
            log.push(Kind::Update(u32::try_from(group.op).unwrap_or(u32::MAX)), Span { start, end: log.now() });
        }
        failed.map_or(Ok(()), Err)
    }

    /// Gives one attention its lengths.
    fn give(&self, group: &Group, work: &[Vec<Work>], workspace: &Memory, log: &Log) -> Result<(), Error> {
        let Some(own) = work.get(group.op).and_then(|work| work.get(group.part)) else { return Ok(()) };
        let (ready, second) = (own.ready()?, self.second.handle);
        // SAFETY (both): a group of the graph, and a stream of ours.
        let began = unsafe { (self.calls.update_begin)(second, group.handle) };
        self.api.check("begin the update of a task", began)?;
        // A library may know the task by the call that gave it last.
        let launched = log.launch(operator(group.op), || own.launch(ready, workspace, second));
        let ended = unsafe { (self.calls.update_end)(second) };
        launched?;
        self.api.check("end the update of a task", ended)
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
