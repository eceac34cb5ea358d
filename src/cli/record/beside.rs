//! What is looked at while a command is recorded: the processors of this machine, and the devices by their vendors' tools.

use collectors::telemetry::{self, Collector, Counter, Sampler, Telemetry, frequency, power, ticks};
use engine::record::Clock;
use model::{Clock as SinkClock, Ns, Reading, Trace, TraceBuilder, TraceSink, trace};

use crate::cli::{
    device_counters::{PERIOD, Place, Sampling},
    devices::Devices,
};

/// A counter of the machine, where the CPU is not the device.
struct OfMachine(Box<dyn Collector>);

impl Collector for OfMachine {
    fn look(&mut self, at: Ns, give: &mut dyn FnMut(Counter, Reading<f64>)) {
        self.0.look(at, &mut |counter, value| give(Counter { device: None, ..counter }, value));
    }
}

/// Threads that look.
pub(super) struct Beside {
    clock: Clock,
    machine: Option<Sampler>,
    devices: Option<Sampling>,
}

/// What they saw.
pub(super) struct Seen(Trace);

impl Beside {
    /// Begins to look. A recording that nobody could look at is one all the same.
    ///
    /// # Errors
    /// When the system gives no thread for a device tool.
    pub(super) fn start(tools: Vec<Devices>) -> std::io::Result<Self> {
        let clock = Clock::start();
        let machine: [Box<dyn Collector>; 3] =
            [Box::new(ticks::Processors::default()), Box::new(frequency::Frequency), Box::new(power::Power::default())];
        let machine = machine.into_iter().map(|collector| -> Box<dyn Collector> { Box::new(OfMachine(collector)) });
        let machine = Sampler::start(clock, telemetry::PERIOD, machine.collect()).ok();
        let devices = Some(Sampling::start(tools, PERIOD, clock, Place::Ordinal, |collector| collector)?);
        Ok(Self { clock, machine, devices })
    }

    /// Ends what looks.
    pub(super) fn finish(self) -> Seen {
        let mut telemetry = self.machine.and_then(Sampler::finish).unwrap_or_else(Telemetry::default);
        self.devices.into_iter().for_each(|devices| devices.finish(&mut telemetry));
        let mut builder = TraceBuilder::new("telemetry", "strato");
        let process = builder.process(0);
        builder.describe_process(process, None, Some("this machine"), None);
        builder.clock(SinkClock::AsIs { unix_zero: self.clock.unix_zero });
        telemetry.write(process, &mut builder);
        Seen(builder.finish())
    }
}

impl Seen {
    /// Adds it to a capture of the same time.
    pub(super) fn add_to(&self, capture: &mut Trace) {
        trace::attach_counters(capture, &self.0);
    }
}
