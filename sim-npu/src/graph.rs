//! Tasks that are captured from a stream and then run at once, and what of them is replaced between two runs.

#![allow(unsafe_code)]

use std::{
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    cost::cost,
    error::{self, Outcome, answer, fault},
    mspti,
    state::{Capturing, Handle, state},
    stream::{Kind, Task},
};

/// A graph.
#[derive(Default)]
pub struct Graph {
    nodes: Mutex<Vec<Task>>,
}

impl Graph {
    fn nodes(&self) -> MutexGuard<'_, Vec<Task>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs every task as it is when its turn comes.
    pub fn each(&self, run: impl Fn(&Task) -> Outcome) -> Outcome {
        let count = self.nodes().len();
        for node in 0..count {
            let task = self.nodes().get(node).cloned();
            task.map_or(Ok(()), |task| run(&task))?;
        }
        Ok(())
    }
}

/// A capture under way.
pub struct Capture {
    graph: Arc<Graph>,
    /// Whether something was done meanwhile that may not be.
    pub spoilt: bool,
    /// First task of the group under way.
    group: Option<usize>,
    /// Events of the capture's own.
    pub marked: Vec<usize>,
}

impl Capture {
    /// Takes a task.
    pub fn take(&mut self, task: Task) -> Outcome {
        if self.spoilt {
            return fault(error::CAPTURE_INVALID, "the capture was spoilt by an earlier call");
        }
        self.graph.nodes().push(task);
        Ok(())
    }
}

/// Tasks of a graph that can be replaced together.
#[derive(Clone)]
pub struct Group {
    graph: Arc<Graph>,
    tasks: Range<usize>,
}

/// An update under way.
pub struct Update {
    group: Group,
    tasks: Vec<Task>,
}

impl Update {
    /// Takes a task in place of the next of the group.
    pub fn take(&mut self, task: Task) -> Outcome {
        let at = self.group.tasks.start + self.tasks.len();
        let old = self.group.graph.nodes().get(at).filter(|_| at < self.group.tasks.end).map(|old| old.name);
        if task.kind != Kind::Updatable {
            return fault(error::UPDATE_OP, format!("a task of {} cannot be updated", task.name));
        }
        if old != Some(task.name) {
            return fault(error::TASK_GROUP, format!("{} in place of {}", task.name, old.unwrap_or("no task")));
        }
        self.tasks.push(task);
        Ok(())
    }
}

// SAFETY (all below): the names are AscendCL's, which this library stands in for; places to be written are looked at for null.

#[unsafe(no_mangle)]
extern "C" fn aclmdlRICaptureBegin(stream: Handle, mode: i32) -> i32 {
    answer(|| {
        let mut state = state();
        if stream.is_null() {
            return fault(error::CAPTURE_IMPLICIT, "the default stream cannot be captured");
        }
        if !(0..=2).contains(&mode) {
            return fault(error::INVALID_PARAM, format!("there is no mode {mode} of a capture"));
        }
        let stream = state.stream(stream)?;
        stream.capture(|capture| match capture {
            Some(_) => fault(error::STREAM_CAPTURED, "the stream is captured already"),
            None => {
                *capture = Some(Capture { graph: Arc::default(), spoilt: false, group: None, marked: Vec::new() });
                Ok(())
            }
        })?;
        let thread = std::thread::current().id();
        state.captures.push(Capturing { stream: stream.handle, mode, thread });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlRICaptureEnd(stream: Handle, out: *mut Handle) -> i32 {
    answer(|| {
        let mut state = state();
        let stream = state.stream(stream)?;
        if out.is_null() {
            return fault(error::INVALID_PARAM, "aclmdlRICaptureEnd with a null pointer");
        }
        let ended = stream.capture(|capture| match capture.take() {
            Some(capture) => Ok(capture),
            None => fault(error::NOT_CAPTURED, "the stream is not captured"),
        })?;
        state.captures.retain(|capture| capture.stream != stream.handle);
        if ended.spoilt {
            return fault(error::CAPTURE_INVALID, "the capture was spoilt by an earlier call");
        }
        if ended.group.is_some() {
            return fault(error::TASK_GROUP, "a capture ends within a group of tasks");
        }
        let handle = state.handle();
        state.graphs.insert(handle, ended.graph);
        unsafe { *out = std::ptr::without_provenance_mut(handle) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlRIExecuteAsync(graph: Handle, stream: Handle) -> i32 {
    let _call = mspti::call("aclmdlRIExecuteAsync");
    answer(|| {
        let (stream, graph) = {
            let state = state();
            let found = state.graphs.get(&graph.addr()).cloned();
            let Some(graph) = found else { return fault(error::HANDLE, "the graph was destroyed or never captured") };
            (state.stream(stream)?, graph)
        };
        cost().launched();
        stream.replay(graph)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlRIDestroy(graph: Handle) -> i32 {
    answer(|| match state().graphs.remove(&graph.addr()) {
        Some(_) => Ok(()),
        None => fault(error::HANDLE, "the graph was destroyed or never captured"),
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlRICaptureTaskGrpBegin(stream: Handle) -> i32 {
    answer(|| {
        let stream = state().stream(stream)?;
        stream.capture(|capture| match capture {
            None => fault(error::NOT_CAPTURED, "a group of tasks begins where nothing is captured"),
            Some(Capture { group: Some(_), .. }) => fault(error::TASK_GROUP, "a group of tasks begins within another"),
            Some(capture) => {
                capture.group = Some(capture.graph.nodes().len());
                Ok(())
            }
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlRICaptureTaskGrpEnd(stream: Handle, out: *mut Handle) -> i32 {
    answer(|| {
        let mut state = state();
        let stream = state.stream(stream)?;
        if out.is_null() {
            return fault(error::INVALID_PARAM, "aclmdlRICaptureTaskGrpEnd with a null pointer");
        }
        let group = stream.capture(|capture| {
            let Some(capture) = capture else { return fault(error::NOT_CAPTURED, "nothing is captured") };
            let Some(first) = capture.group.take() else { return fault(error::TASK_GROUP, "no group of tasks began") };
            let tasks = first..capture.graph.nodes().len();
            Ok(Group { graph: Arc::clone(&capture.graph), tasks })
        })?;
        let handle = state.handle();
        state.groups.insert(handle, group);
        unsafe { *out = std::ptr::without_provenance_mut(handle) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlRICaptureTaskUpdateBegin(stream: Handle, group: Handle) -> i32 {
    answer(|| {
        let state = state();
        let stream = state.stream(stream)?;
        let found = state.groups.get(&group.addr()).cloned();
        let Some(group) = found else { return fault(error::HANDLE, "there is no such group of tasks") };
        if stream.is_captured() {
            return fault(error::STREAM_CAPTURED, "tasks are updated on a stream that is captured");
        }
        stream.update(|update| match update {
            Some(_) => fault(error::TASK_GROUP, "the update of another group has not ended"),
            None => {
                *update = Some(Update { group, tasks: Vec::new() });
                Ok(())
            }
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlRICaptureTaskUpdateEnd(stream: Handle) -> i32 {
    answer(|| {
        let stream = state().stream(stream)?;
        let ended = stream.update(|update| Ok(update.take()))?;
        let Some(Update { group, tasks }) = ended else {
            return fault(error::TASK_GROUP, "the update of a group ends that did not begin");
        };
        if tasks.len() != group.tasks.len() {
            let text = format!("{} tasks were given in place of {}", tasks.len(), group.tasks.len());
            return fault(error::TASK_GROUP, text);
        }
        let work = move || {
            let mut nodes = group.graph.nodes();
            for (node, task) in group.tasks.clone().zip(&tasks) {
                if let Some(node) = nodes.get_mut(node) {
                    // A task of a graph is known by the call that was captured, whatever is given to it later.
                    *node = Task { correlation: node.correlation, ..task.clone() };
                }
            }
            Ok(())
        };
        let (name, work, kind) = ("task update", Arc::new(work), Kind::Mark);
        stream.put(Task { name, work, time: Duration::ZERO, kind, correlation: 0 })
    })
}
