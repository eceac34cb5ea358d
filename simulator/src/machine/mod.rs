//! One host thread and one device: the thread issues calls, the device runs streams in order. Because calls are issued
//! one after the other and a stream never overtakes itself, every time is settled when its call is made.

use std::{borrow::Cow, cmp::Reverse, collections::BinaryHeap};

use crate::{
    config::Config,
    counter::Counter,
    forward::Task,
    kernel::Vendor,
    meeting::Meeting,
    random::Of,
    record::{DeviceOp, HostEvent, HostKind},
    seat::Seat,
};

mod blocking;
mod device;

/// Streams of the device.
pub(crate) const STREAMS: usize = 3;
/// Steps that share one value of the host's noise.
const NOISE_STEPS: i64 = 3;
/// Time at which the first step begins; a capture starts a little before its first event.
const ORIGIN: i64 = 250_000_000;

pub(crate) struct Machine<'c> {
    pub(crate) config: &'c Config,
    pub(crate) seat: Seat<'c>,
    meeting: Option<&'c Meeting>,
    /// The host's clock.
    pub(crate) now: i64,
    pub(crate) step: i64,
    /// End of each stream's last operation.
    tails: [i64; STREAMS],
    /// Ends of the launches not yet known to be done.
    outstanding: BinaryHeap<Reverse<i64>>,
    correlation: i64,
    external: i64,
    /// External ids of the open operators and ranges.
    open: Vec<i64>,
    /// Where in the step the program is, and the draws made there: by these each cost is addressed, so that work which
    /// only one of two runs does leaves the costs of all other work as they are.
    place: i64,
    draws: i64,
    collectives: i64,
    /// Graphs captured again since the start.
    captures: i64,
    /// Totals of the engine's counters.
    pub(crate) preemptions: i64,
    pub(crate) drafted: i64,
    pub(crate) accepted: i64,
    pub(crate) host: Vec<HostEvent>,
    pub(crate) ops: Vec<DeviceOp>,
    pub(crate) counters: Vec<Counter>,
    /// What another thread of the interpreter did.
    pub(crate) other: Vec<HostEvent>,
}

impl<'c> Machine<'c> {
    pub(crate) fn new(seat: Seat<'c>, meeting: Option<&'c Meeting>) -> Self {
        Self {
            config: seat.config,
            seat,
            meeting,
            now: ORIGIN,
            step: 0,
            tails: [0; STREAMS],
            outstanding: BinaryHeap::new(),
            correlation: 1000,
            external: 1,
            open: Vec::new(),
            place: 0,
            draws: 0,
            collectives: 0,
            captures: 0,
            preemptions: 0,
            drafted: 0,
            accepted: 0,
            host: Vec::new(),
            ops: Vec::new(),
            counters: Vec::new(),
            other: Vec::new(),
        }
    }

    /// Comes to a place of the program; small numbers, as kernels have the large ones.
    pub(crate) fn at(&mut self, place: i64) {
        self.place = place;
        self.draws = 0;
    }

    fn at_task(&mut self, task: &Task) {
        self.at(((task.slot as i64 + 1) << 40) + ((task.layer + 2) << 20) + task.nth);
    }

    /// A call in the words of the vendor whose names are written.
    fn api(&self, cuda: &'static str, hip: &'static str, acl: &'static str) -> Cow<'static, str> {
        Cow::Borrowed(match self.config.vendor {
            Vendor::Cuda => cuda,
            Vendor::Rocm => hip,
            Vendor::Ascend => acl,
        })
    }

    /// Where the next draw is addressed.
    fn key(&mut self) -> [i64; 3] {
        self.draws += 1;
        [self.step, self.place, self.draws]
    }

    /// `mean` with the jitter of host work.
    fn cost(&mut self, of: Of, mean: i64) -> i64 {
        let key = self.key();
        if self.config.steady_host {
            return mean;
        }
        let most = self.config.host_noise_permille;
        let shared = self.seat.own.around(Of::HostNoise, [self.step / NOISE_STEPS, 0, 0], 1000, most);
        let mean = mean * shared / 1000;
        self.seat.own.around(of, key, mean, 200) + self.seat.own.tail(Of::Stall, key, mean / 20)
    }

    /// Host work without an event of its own.
    pub(crate) fn work(&mut self, mean: i64) {
        if mean > 0 {
            self.now += self.cost(Of::Host, mean);
        }
    }

    /// Notes the value of a counter, if counters are recorded.
    pub(crate) fn count(&mut self, name: &'static str, value: f64) {
        if self.config.counters {
            self.counters.push(Counter { name, at: self.now, value });
        }
    }

    /// Host work of exactly `ns`.
    pub(crate) fn pause(&mut self, ns: i64) {
        self.now += ns.max(0);
    }

    /// Records `inside` as an event of `kind`. Operators and ranges give the calls within them their external id.
    pub(crate) fn record(
        &mut self,
        kind: HostKind,
        name: impl Into<Cow<'static, str>>,
        inside: impl FnOnce(&mut Self),
    ) {
        let named = matches!(kind, HostKind::FrameworkOp | HostKind::UserRange);
        if named {
            self.external += 1;
            self.open.push(self.external);
        }
        let (at, start, external) = (self.host.len(), self.now, self.open.last().copied());
        let external = external.filter(|_| named || kind.is_api());
        let correlation = kind.is_api().then(|| {
            self.correlation += 1;
            self.correlation
        });
        let name = name.into();
        self.host.push(HostEvent {
            kind,
            name,
            start,
            end: start,
            correlation,
            external,
            inputs: None,
            stream: None,
            step: self.step,
        });
        inside(self);
        if named {
            self.open.pop();
        }
        if let Some(event) = self.host.get_mut(at) {
            event.end = self.now.max(start + 1);
            self.now = event.end;
        }
    }

    /// Records a range if `on`; what is inside happens either way.
    pub(crate) fn record_if(
        &mut self,
        on: bool,
        kind: HostKind,
        name: impl Into<Cow<'static, str>>,
        inside: impl FnOnce(&mut Self),
    ) {
        if on { self.record(kind, name, inside) } else { inside(self) }
    }

    fn call(
        &mut self,
        kind: HostKind,
        name: Cow<'static, str>,
        stream: Option<usize>,
        inside: impl FnOnce(&mut Self, usize),
    ) {
        let at = self.host.len();
        self.record(kind, name, |machine| inside(machine, at));
        if let Some(event) = self.host.get_mut(at) {
            event.stream = stream;
        }
    }

    /// End of a stream's last operation.
    pub(crate) fn tail(&self, stream: usize) -> i64 {
        self.tails[stream]
    }
}
