//! What the host does that keeps it from issuing: waiting for the device, allocating, compiling.

use super::Machine;
use crate::{
    meeting::{Arrival, Party},
    random::Of,
    record::{HostKind, SyncOn},
};

impl Machine<'_> {
    pub(super) fn await_end(&mut self, end: i64) {
        let tail = self.cost(Of::SyncTail, self.config.sync_tail_ns);
        if end > self.now {
            self.now = end + tail;
        }
    }

    /// Waits for what `stream` holds, or until `end` if an event marks it.
    pub(crate) fn sync(&mut self, on: SyncOn, stream: usize, end: Option<i64>) {
        let name = match on {
            SyncOn::Stream => {
                self.api("cudaStreamSynchronize", "hipStreamSynchronize", "aclrtSynchronizeStreamWithTimeout")
            }
            SyncOn::Event => self.api("cudaEventSynchronize", "hipEventSynchronize", "aclrtSynchronizeEvent"),
        };
        self.call(HostKind::Sync(on), name, Some(stream), |machine, _| {
            machine.work(machine.config.sync_call_ns);
            machine.await_end(end.unwrap_or(machine.tails[stream]));
        });
    }

    /// Waits until a message from `rank` is there, which takes `ns`.
    pub(crate) fn await_message(&mut self, rank: usize, ns: i64) {
        let party = Party::of(self.seat.rank, Some(rank));
        if let Some(meeting) = self.meeting {
            let sent = meeting.suspend(Arrival { party, at: self.now - ns });
            self.now = self.now.max(sent + ns);
        }
    }

    /// Sends a message to `rank` that was ready `at`, and goes on.
    pub(crate) fn send_message(&mut self, rank: usize, at: i64) {
        let party = Party::of(self.seat.rank, Some(rank));
        if let Some(meeting) = self.meeting {
            meeting.suspend(Arrival { party, at });
        }
    }

    /// Allocates device memory and frees it.
    pub(crate) fn allocate(&mut self, ns: i64) {
        let name = self.api("cudaMalloc", "hipMalloc", "aclrtMalloc");
        self.call(HostKind::Alloc, name, None, |machine, _| machine.pause(ns * 2 / 3));
        self.work(1_000);
        let name = self.api("cudaFree", "hipFree", "aclrtFree");
        self.call(HostKind::Alloc, name, None, |machine, _| machine.pause(ns / 3));
    }

    /// Captures the graphs again, for `ns`.
    pub(crate) fn recapture(&mut self, ns: i64) {
        let name = format!("capture_{}_FULL", self.config.batch);
        self.record(HostKind::Compile, name, |machine| {
            let name = machine.api("cudaStreamBeginCapture", "hipStreamBeginCapture", "aclmdlRICaptureBegin");
            machine.call(HostKind::Capture, name, None, |machine, _| machine.pause(ns / 8));
            machine.captured(ns * 3 / 8);
            let name = machine.api("cudaStreamEndCapture", "hipStreamEndCapture", "aclmdlRICaptureEnd");
            machine.call(HostKind::Capture, name, None, |machine, _| machine.pause(ns / 8));
            let name = machine.api("cudaGraphInstantiate", "hipGraphInstantiate", "aclmdlRIBuildEnd");
            machine.call(HostKind::Capture, name, None, |machine, _| machine.pause(ns * 3 / 8));
        });
        self.captures += 1;
    }

    /// The pass that is captured: launches that put nothing on the device, where they are recorded.
    fn captured(&mut self, ns: i64) {
        let launches = if self.config.serving.is_some() { self.config.layers * 10 } else { 0 };
        let name = self.api("cudaLaunchKernel", "hipLaunchKernel", "launch");
        for _ in 0..launches {
            self.call(HostKind::Launch, name.clone(), None, |machine, _| machine.pause(ns / (2 * launches)));
            self.pause(ns / (2 * launches));
        }
        self.pause(if launches == 0 { ns } else { 0 });
    }

    /// Compiles for `ns`, module load included.
    pub(crate) fn compile(&mut self, ns: i64) {
        self.record(HostKind::Compile, "_compile.compile_inner (dynamo_timed)", |machine| {
            machine.pause(ns * 4 / 5);
            let name = machine.api("cuModuleLoadData", "hipModuleLoadData", "aclrtBinaryLoadFromFile");
            machine.call(HostKind::ModuleLoad, name, None, |machine, _| machine.pause(ns / 5));
        });
    }
}
