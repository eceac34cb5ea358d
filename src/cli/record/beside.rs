//! What is looked at while a command is recorded: the processors of this machine, and the devices by their vendors' tools.

use std::collections::BTreeSet;

use collectors::{
    record::Numbering,
    telemetry::{self, Collector, Counter, Sampler, frequency, power, ticks},
};
use engine::record::Clock;
use model::{Clock as SinkClock, ImportStat, Ns, Reading, Severity, Trace, TraceBuilder, TraceSink, trace};

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
    numbering: Numbering,
}

/// What they saw.
pub(super) struct Seen {
    counters: Trace,
    numbering: Numbering,
}

impl Beside {
    /// Begins to look. A recording that nobody could look at is one all the same.
    ///
    /// # Errors
    /// When the system gives no thread for a device tool.
    pub(super) fn start(tools: Vec<Devices>, numbering: Numbering) -> std::io::Result<Self> {
        let clock = Clock::start();
        let machine: [Box<dyn Collector>; 3] =
            [Box::new(ticks::Processors::default()), Box::new(frequency::Frequency), Box::new(power::Power::default())];
        let machine = machine.into_iter().map(|collector| -> Box<dyn Collector> { Box::new(OfMachine(collector)) });
        let machine = Sampler::start(clock, telemetry::PERIOD, machine.collect()).ok();
        let place = match numbering {
            Numbering::Ordinals => Place::Ordinal,
            Numbering::Agents => Place::Order,
        };
        let devices = Some(Sampling::start(tools, PERIOD, clock, place, |collector| collector)?);
        Ok(Self { clock, machine, devices, numbering })
    }

    /// Ends what looks.
    pub(super) fn finish(self) -> Seen {
        let mut telemetry = self.machine.and_then(Sampler::finish).unwrap_or_default();
        self.devices.into_iter().for_each(|devices| devices.finish(&mut telemetry));
        let mut builder = TraceBuilder::new("telemetry", "strato");
        let process = builder.process(0);
        builder.describe_process(process, None, Some("this machine"), None);
        builder.clock(SinkClock::AsIs { unix_zero: self.clock.unix_zero });
        telemetry.write(process, &mut builder);
        Seen { counters: builder.finish(), numbering: self.numbering }
    }
}

impl Seen {
    /// Adds it to a capture of the same time.
    pub(super) fn add_to(&self, capture: &mut Trace) {
        match self.numbering {
            Numbering::Ordinals => trace::attach_counters(capture, &self.counters),
            Numbering::Agents => trace::attach_counters(capture, &self.renumbered(capture)),
        }
    }

    /// The same with the numbers that a capture gives its devices: in their order, where there are as many of them as cards.
    /// Otherwise nobody knows which card is which device, and `telemetry.unassigned_device` says so.
    fn renumbered(&self, capture: &Trace) -> Trace {
        let mut counters = self.counters.clone();
        let cards: BTreeSet<i32> = counters.counters.iter().filter_map(|counter| counter.device).collect();
        let devices: BTreeSet<i32> = capture.devices.iter().map(|device| device.ordinal).collect();
        if cards.len() == devices.len() {
            for counter in &mut counters.counters {
                let place = counter.device.and_then(|card| cards.iter().position(|known| *known == card));
                counter.device = place.and_then(|place| devices.iter().nth(place).copied());
            }
            return counters;
        }
        let before = counters.counters.len();
        counters.counters.retain(|counter| counter.device.is_none());
        counters.stats.push(ImportStat {
            name: "telemetry.unassigned_device".to_owned(),
            severity: Severity::Notice,
            count: (before - counters.counters.len()) as u64,
            example: Some(format!(
                "{} cards and {} devices that worked: nothing says which is which",
                cards.len(),
                devices.len()
            )),
        });
        counters
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use model::{Device, ProcessId};

    use super::*;

    fn seen(cards: &[i32]) -> Seen {
        let mut builder = TraceBuilder::new("telemetry", "strato");
        let (process, power, busy) = (builder.process(0), builder.intern("power"), builder.intern("cpu_busy"));
        builder.counter(process, None, busy, "", 1, 0.5);
        cards.iter().for_each(|card| builder.counter(process, Some(*card), power, "W", 1, f64::from(*card)));
        builder.clock(SinkClock::AsIs { unix_zero: Some(0) });
        Seen { counters: builder.finish(), numbering: Numbering::Agents }
    }

    fn capture(devices: &[i32]) -> Trace {
        let (process, name) = (ProcessId(0), None);
        let device =
            |ordinal: &i32| Device { process, ordinal: *ordinal, name, vendor: None, cores: None, memory_bytes: None };
        Trace { start_unix_ns: Some(0), devices: devices.iter().map(device).collect(), ..Trace::default() }
    }

    #[test]
    fn cards_are_the_devices_of_their_order_where_there_are_as_many() {
        let mut both = capture(&[5, 4]);
        seen(&[0, 1]).add_to(&mut both);
        let found: Vec<_> = both.counters.iter().map(|counter| (counter.device, counter.value[0])).collect();
        assert_eq!(found, [(None, 0.5), (Some(4), 0.0), (Some(5), 1.0)]);
        let mut one = capture(&[4]);
        seen(&[0, 1]).add_to(&mut one);
        assert_eq!(one.counters.iter().map(|counter| counter.device).collect::<Vec<_>>(), [None]);
        assert_eq!(one.stat("telemetry.unassigned_device"), 2);
    }
}
