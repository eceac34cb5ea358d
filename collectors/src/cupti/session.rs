//! One observation of this process from begin to end.

use std::{
    collections::{BTreeMap, BTreeSet},
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicPtr, Ordering},
    },
};

use engine::record::Clock;

use super::{
    Api, Unavailable, abi,
    api::Status,
    gather::{self, Claim, Found, completed, pool, requested, told},
    nodes::Nodes,
    record::{Interface, Record},
};
use crate::activity::clock::{Conversion, Pair, stamp};

/// How replays are recorded. The two are never mixed: node by node a replay takes longer, and counted twice its time would lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One record of each replay: little cost, for times.
    Graph,
    /// One record of each node: what a replay consists of.
    Node,
}

impl Mode {
    /// Its word in commands and manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Graph => "graph",
            Self::Node => "node",
        }
    }
}

/// Kinds of records that are asked for, in words, and whether nothing goes without them.
const KINDS: [(u32, &str, bool); 9] = [
    (abi::KIND_KERNEL, "kernels", true),
    (abi::KIND_MEMCPY, "copies", false),
    (abi::KIND_PEER_COPY, "copies between devices", false),
    (abi::KIND_MEMSET, "fills", false),
    (abi::KIND_DRIVER, "calls of the driver", false),
    (abi::KIND_RUNTIME, "calls of the runtime", false),
    (abi::KIND_SYNCHRONIZATION, "waits", false),
    (abi::KIND_OVERHEAD, "overhead", false),
    (abi::KIND_EXTERNAL, "operators of launches", false),
];

/// An observation under way. It ends when it is dropped; what it saw comes from [`Session::finish`].
#[derive(Debug)]
pub struct Session {
    claim: Claim,
    subscriber: AtomicPtr<std::ffi::c_void>,
    /// Kinds that are switched on.
    kinds: Vec<u32>,
    /// Whether anything is recorded now.
    records: AtomicBool,
    clock: Clock,
    first: Pair,
    /// Whether CUPTI stamps with a clock of this program.
    is_own: bool,
    /// What this version does not record, and why.
    absent: Vec<(&'static str, String)>,
}

impl Session {
    /// Begins to record what this process does from now on; times are those of `clock`. Before the first call of CUDA is best:
    /// only nodes of graphs that are made from now on have operators.
    ///
    /// # Errors
    /// [`Unavailable`], when another profiler is attached, the driver refuses, or the library lacks what nothing goes without.
    pub fn start(api: Arc<Api>, mode: Mode, clock: Clock) -> Result<Self, Unavailable> {
        api.check()?;
        let claim = Claim::take(Arc::clone(&api), mode)?;
        let mut subscriber = ptr::null_mut();
        // SAFETY: the callback lives as long as the program, and the function writes one handle.
        let subscribed = api.subscribe.map(|call| unsafe { call(&mut subscriber, told, ptr::null_mut()) });
        done(&api, subscribed, || "cuptiSubscribe".to_owned())?;
        // SAFETY: the clock lives as long as the program; it has to be there before the first kind is switched on.
        let is_own = api.register_timestamp.map(|call| unsafe { call(stamp) }) == Some(abi::SUCCESS);
        let first = look(&api, clock, is_own);
        let mut session = Self {
            claim,
            subscriber: AtomicPtr::new(subscriber),
            kinds: Vec::new(),
            records: AtomicBool::new(true),
            clock,
            first: first.unwrap_or(Pair { stamp: 0, run: clock.now(), within: 0 }),
            is_own,
            absent: Vec::new(),
        };
        if first.is_none() {
            return Err(Unavailable::Lacks { what: "the time of its records".to_owned() });
        }
        session.switch_on(&api, mode)?;
        Ok(session)
    }

    fn switch_on(&mut self, api: &Api, mode: Mode) -> Result<(), Unavailable> {
        // SAFETY: numbers only. What is refused is told below.
        let by_system = api.thread_id_type.map(|call| unsafe { call(abi::THREADS_OF_SYSTEM) });
        self.lacks(api, by_system, "threads by the system's numbers");
        // SAFETY: numbers only.
        let latency = api.latency_timestamps.map(|call| unsafe { call(1) });
        self.lacks(api, latency, "stamps of the queue");
        // SAFETY: both live as long as the program.
        let registered = api.register_callbacks.map(|call| unsafe { call(requested, completed) });
        done(api, registered, || "cuptiActivityRegisterCallbacks".to_owned())?;
        if mode == Mode::Node {
            for (id, what) in [(abi::NODE_CREATED, "operators of nodes"), (abi::NODE_CLONED, "operators of replays")] {
                let subscriber = self.subscriber.load(Ordering::Relaxed);
                // SAFETY: the subscription is this session's.
                let told = api.enable_callback.map(|call| unsafe { call(1, subscriber, abi::DOMAIN_RESOURCE, id) });
                self.lacks(api, told, what);
            }
        }
        // First of all what keeps the nodes of a replay from being recorded one by one.
        let whole = (mode == Mode::Graph).then_some((abi::KIND_GRAPH, "replays as one record", true));
        for (kind, what, is_needed) in whole.into_iter().chain(KINDS) {
            // SAFETY: numbers only.
            let enabled = api.enable.map(|call| unsafe { call(kind) });
            if enabled == Some(abi::SUCCESS) {
                self.kinds.push(kind);
            } else if is_needed {
                done(api, enabled, || format!("cuptiActivityEnable({kind}: {what})"))?;
            } else {
                self.lacks(api, enabled, what);
            }
        }
        Ok(())
    }

    /// Notes what this version does not do.
    fn lacks(&mut self, api: &Api, status: Option<Status>, what: &'static str) {
        if let Err(error) = done(api, status, || what.to_owned()) {
            self.absent.push((what, error.to_string()));
        }
    }

    /// The calling thread launches an operator from now on, until [`Session::leave`]: what it calls meanwhile, and the nodes
    /// that a graph gets, are the operator's.
    pub fn enter(&self, operator: u64) {
        if !self.records.load(Ordering::Relaxed) {
            return;
        }
        gather::launches(Some(operator));
        if let Some(push) = self.api().push_external {
            // SAFETY: numbers only.
            if unsafe { push(abi::EXTERNAL_CUSTOM0, operator) } != abi::SUCCESS {
                self.claim.0.count("operator_not_pushed", 1, None);
            }
        }
    }

    /// The calling thread has launched the operator.
    pub fn leave(&self) {
        if !self.records.load(Ordering::Relaxed) {
            return;
        }
        gather::launches(None);
        if let Some(pop) = self.api().pop_external {
            let mut last = 0;
            // SAFETY: the function writes one number.
            unsafe { pop(abi::EXTERNAL_CUSTOM0, &mut last) };
        }
    }

    /// Takes the buffers that are full: between steps, so that it is no part of one.
    pub fn flush(&self) {
        // SAFETY: numbers only.
        let status = self.api().flush_all.map(|call| unsafe { call(0) });
        if status != Some(abi::SUCCESS) {
            self.claim.0.count("flush_refused", 1, status.map(|status| format!("status {status}")));
        }
    }

    /// Begins to record again, or stops it for a while; between steps.
    ///
    /// # Errors
    /// [`Unavailable::Refused`], when CUPTI does not do so.
    pub fn record(&self, on: bool) -> Result<(), Unavailable> {
        let api = self.api();
        self.records.store(on, Ordering::Relaxed);
        // SAFETY: numbers only. That it cannot was told when the session began.
        api.latency_timestamps.map(|call| unsafe { call(u8::from(on)) });
        let (call, name) = if on { (api.enable, "cuptiActivityEnable") } else { (api.disable, "cuptiActivityDisable") };
        for kind in &self.kinds {
            // SAFETY: numbers only.
            done(api, call.map(|call| unsafe { call(*kind) }), || format!("{name}({kind})"))?;
        }
        Ok(())
    }

    fn api(&self) -> &Api {
        &self.claim.0.api
    }

    /// Ends the observation and gives what was seen. The device should be idle: what still runs has no end.
    pub fn finish(mut self) -> Observed {
        let gathering = Arc::clone(&self.claim.0);
        let api = Arc::clone(&gathering.api);
        // SAFETY: numbers only.
        let flushed = api.flush_all.map(|call| unsafe { call(abi::FLUSH_FORCED) });
        if let Err(error) = done(&api, flushed, || "cuptiActivityFlushAll".to_owned()) {
            gathering.count("flush_refused", 1, Some(error.to_string()));
        }
        // SAFETY: no context stands for those that are gone.
        let dropped = unsafe { gathering.dropped(ptr::null_mut(), 0) };
        gathering.count("dropped_records", dropped, None);
        let last = look(&api, self.clock, self.is_own).unwrap_or(self.first);
        let sees_calls = self.kinds.contains(&abi::KIND_DRIVER);
        self.stop();
        let without_buffer = pool().clear();
        gathering.count("requests_without_buffer", without_buffer, None);
        gathering.count("buffers_not_returned", pool().lent() as u64, None);
        let (mut found, nodes) = gathering.take();
        found.count("nodes_full", nodes.lost, || None);
        let calls = calls(&api, &found);
        Observed {
            conversion: Conversion::new(self.first, last, self.is_own),
            mode: gathering.mode,
            sees_calls,
            version: api.version(),
            file: api.file.display().to_string(),
            absent: std::mem::take(&mut self.absent),
            found,
            nodes,
            calls,
        }
    }

    /// Switches everything off.
    fn stop(&mut self) {
        let api = Arc::clone(&self.claim.0.api);
        for kind in self.kinds.drain(..) {
            // SAFETY: numbers only.
            api.disable.map(|call| unsafe { call(kind) });
        }
        let subscriber = self.subscriber.swap(ptr::null_mut(), Ordering::Relaxed);
        if !subscriber.is_null() {
            // SAFETY: the subscription is this session's, and ends once.
            api.unsubscribe.map(|call| unsafe { call(subscriber) });
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Both clocks at once; `None` where CUPTI's own cannot be read.
fn look(api: &Api, clock: Clock, is_own: bool) -> Option<Pair> {
    if is_own {
        return Pair::look(clock, || Some(stamp()));
    }
    Pair::look(clock, || {
        let (call, mut now) = (api.timestamp?, 0);
        // SAFETY: the function writes one number.
        (unsafe { call(&mut now) } == abi::SUCCESS).then_some(now)
    })
}

/// Whether a call was there and did what it was asked for.
fn done(api: &Api, status: Option<Status>, call: impl FnOnce() -> String) -> Result<(), Unavailable> {
    match status {
        Some(abi::SUCCESS) => Ok(()),
        Some(status) => Err(api.refused(call(), status)),
        None => Err(Unavailable::Lacks { what: call() }),
    }
}

/// Names of the calls that were found.
fn calls(api: &Api, found: &Found) -> BTreeMap<(Interface, u32), String> {
    let of = |record: &Record| match record {
        Record::Call { interface, id, .. } => Some((*interface, *id)),
        _ => None,
    };
    let seen: BTreeSet<_> = found.records.iter().filter_map(|kept| of(&kept.record)).collect();
    let name = |(interface, id)| {
        let domain = match interface {
            Interface::Driver => abi::DOMAIN_DRIVER,
            Interface::Runtime => abi::DOMAIN_RUNTIME,
        };
        Some(((interface, id), api.call_name(domain, id)?))
    };
    seen.into_iter().filter_map(name).collect()
}

/// What an observation saw.
#[derive(Debug)]
pub struct Observed {
    pub(super) found: Found,
    pub(super) nodes: Nodes,
    pub(super) calls: BTreeMap<(Interface, u32), String>,
    pub(super) conversion: Conversion,
    pub(super) mode: Mode,
    /// Whether calls of the driver were recorded.
    pub sees_calls: bool,
    pub(super) version: Option<u32>,
    pub(super) file: String,
    pub(super) absent: Vec<(&'static str, String)>,
}

impl Observed {
    /// Records that were kept.
    pub fn records(&self) -> usize {
        self.found.records.len()
    }

    /// Where the times of the device come from: by what clock, and how replays are told.
    pub fn said(&self) -> String {
        let replays = match self.mode {
            Mode::Graph => "a replay as one record",
            Mode::Node => "a replay node by node",
        };
        format!("CUPTI's records of kernels, copies and fills, {replays}; {}", self.conversion.said())
    }

    /// The clock of the records, in words.
    pub fn clock(&self) -> String {
        self.conversion.said()
    }
}
