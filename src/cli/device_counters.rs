//! What device tools print, as counters of a capture: each tool is asked on a thread of its own, because some take seconds to
//! answer.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use collectors::telemetry::{Collector, Counter, Sampler, Telemetry};
use diagnosis::platform::{Vendor, vendors};
use engine::record::Clock;
use model::{Ns, Reading};

use super::devices::Devices;

/// Between two questions to a tool: some take seconds, and all cost far more than a look at a file.
pub(super) const PERIOD: Duration = Duration::from_secs(2);

/// Which device of a capture a card is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The one of the ordinal by which processes see it.
    Ordinal,
    /// The one of its place among those that processes see, in the tool's order.
    Order,
    /// The capture's only one, if it is the card of this ordinal.
    Only(usize),
}

/// Tools that are asked until this is finished.
pub(super) struct Sampling {
    stop: Arc<AtomicBool>,
    samplers: Vec<(&'static str, Sampler)>,
}

impl Sampling {
    /// Begins to ask; times are those of `clock`, and `watched` may listen in.
    ///
    /// # Errors
    /// When the system gives no more threads, or a built-in pack is damaged.
    pub(super) fn start(
        tools: Vec<Devices>,
        every: Duration,
        clock: Clock,
        place: Place,
        watched: impl Fn(Box<dyn Collector>) -> Box<dyn Collector>,
    ) -> io::Result<Self> {
        let stop: Arc<AtomicBool> = Arc::default();
        let vendors = vendors().map_err(io::Error::other)?;
        let mut samplers = Vec::new();
        for devices in tools {
            let tool = devices.tool();
            let chosen = chosen(&vendors, tool.vendor, |name| std::env::var(name).ok());
            let cards = Cards { devices, chosen, place, stop: Arc::clone(&stop) };
            samplers.push((tool.id, Sampler::start(clock, every, vec![watched(Box::new(cards))])?));
        }
        Ok(Self { stop, samplers })
    }

    /// Ends what is being asked, and adds what was seen.
    pub(super) fn finish(mut self, telemetry: &mut Telemetry) {
        self.stop.store(true, Ordering::Relaxed);
        for (tool, sampler) in self.samplers.drain(..) {
            // One that panicked saw nothing.
            if let Some(seen) = sampler.finish() {
                telemetry.take(tool, seen);
            }
        }
    }
}

impl Drop for Sampling {
    /// A run that failed waits for no tool.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A tool's cards as counters.
struct Cards {
    devices: Devices,
    /// Positions of the cards in the order in which processes see them, or why nobody knows; `None` where all are seen.
    chosen: Result<Option<Vec<usize>>, String>,
    place: Place,
    stop: Arc<AtomicBool>,
}

impl Cards {
    /// Positions of the cards with the ordinals that they have in the capture.
    fn placed(&self, count: usize) -> Result<Vec<(usize, i32)>, String> {
        let seen = self.chosen.clone()?.unwrap_or_else(|| (0..count).collect());
        let mut seen: Vec<usize> = seen.into_iter().filter(|position| *position < count).collect();
        if self.place == Place::Order {
            seen.sort_unstable();
        }
        let placed: Vec<(usize, i32)> = match self.place {
            Place::Ordinal | Place::Order => seen.into_iter().zip(0..).collect(),
            Place::Only(ordinal) => seen.get(ordinal).map(|position| (*position, 0)).into_iter().collect(),
        };
        if placed.is_empty() {
            return Err(format!("{} shows {count} devices, none of them the run's", self.devices.tool().id));
        }
        Ok(placed)
    }
}

impl Collector for Cards {
    fn look(&mut self, _: Ns, give: &mut dyn FnMut(Counter, Reading<f64>)) {
        let is_over = || self.stop.load(Ordering::Relaxed);
        let tool = self.devices.tool().id;
        if is_over() {
            return;
        }
        let stop = Arc::clone(&self.stop);
        let read = self.devices.read(&stop).and_then(|devices| Ok((self.placed(devices.len())?, devices)));
        let (placed, devices) = match read {
            Ok(read) => read,
            Err(reason) => {
                let over = self.stop.load(Ordering::Relaxed);
                let reason = if over { format!("the run ended before {tool} answered") } else { reason };
                give(Counter { name: tool, unit: "", device: None }, Reading::Unavailable(reason));
                return;
            }
        };
        for (position, ordinal) in placed {
            for (metric, value) in devices.get(position).into_iter().flat_map(|device| &device.readings) {
                let counter = Counter { name: metric.name(), unit: metric.unit(), device: Some(ordinal) };
                give(counter, value.clone());
            }
        }
    }
}

/// Positions of the devices that processes see, in their order, by the vendor's variables; `None` where none is set.
fn chosen(vendors: &[Vendor], name: &str, get: impl Fn(&str) -> Option<String>) -> Result<Option<Vec<usize>>, String> {
    let known = vendors.iter().find(|vendor| vendor.is(name));
    let variables = known.map_or(&[][..], |vendor| &vendor.visible_devices);
    let mut chosen: Option<Vec<usize>> = None;
    for variable in variables {
        let Some(text) = get(variable) else { continue };
        let mut listed = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word.parse::<i64>() {
                Ok(number) => match usize::try_from(number) {
                    Ok(position) => listed.push(position),
                    // What follows a negative number is not seen.
                    Err(_) => break,
                },
                Err(_) => return Err(format!("{variable} names devices by '{word}', which the tool does not show")),
            }
        }
        chosen = Some(match chosen {
            Some(before) => listed.into_iter().filter_map(|position| before.get(position).copied()).collect(),
            None => listed,
        });
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn set(vendor: &str, variables: &[(&str, &str)]) -> Result<Option<Vec<usize>>, String> {
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
        chosen(&vendors().unwrap(), vendor, value)
    }

    #[test]
    fn processes_see_the_cards_that_their_variables_choose() {
        assert_eq!(set("nvidia", &[]), Ok(None));
        assert_eq!(set("nvidia", &[("CUDA_VISIBLE_DEVICES", "3, 1")]), Ok(Some(vec![3, 1])));
        assert_eq!(set("nvidia", &[("CUDA_VISIBLE_DEVICES", "2,-1,0")]), Ok(Some(vec![2])));
        assert_eq!(set("nvidia", &[("CUDA_VISIBLE_DEVICES", "")]), Ok(Some(vec![])));
        assert_eq!(set("nvidia", &[("HIP_VISIBLE_DEVICES", "1")]), Ok(None));
        let both = [("ROCR_VISIBLE_DEVICES", "4,6,7"), ("HIP_VISIBLE_DEVICES", "2,0")];
        assert_eq!(set("amd", &both), Ok(Some(vec![7, 4])));
        let named = set("nvidia", &[("CUDA_VISIBLE_DEVICES", "GPU-5d2f")]).unwrap_err();
        assert!(named.contains("CUDA_VISIBLE_DEVICES") && named.contains("GPU-5d2f"), "{named}");
        assert_eq!(set("metax", &[("CUDA_VISIBLE_DEVICES", "1")]), Ok(None));
    }
}
