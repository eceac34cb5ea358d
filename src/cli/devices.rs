//! What the devices of this machine do, by a driver's library or by what their vendors' tools print: each is asked on a thread
//! of its own, because some tools take seconds to answer.

use std::{
    collections::BTreeSet,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use collectors::telemetry::device_tool::DeviceTool;
use engine::{
    Target,
    opencl::{self, Facts, Kind},
};
use model::Reading;
use parsers::device_text::{self, DeviceReadings, Tool};

use super::{device_counters::Place, exit::Usage, feed::Feed};
use crate::tui::live::{Gauge, Group, What};

mod nvml;

use nvml::Nvml;

/// Asks none.
const NONE: &str = "none";
/// How long a tool took to answer.
const ANSWER: &str = "tool_answer";

/// A tool of this machine, and what it showed before.
pub(super) struct Devices {
    tool: &'static Tool,
    /// Or why it cannot be asked.
    asked: Result<DeviceTool, String>,
    known: BTreeSet<(Group, &'static str, &'static str)>,
}

/// Who tells of devices.
pub(super) enum Source {
    /// A tool, and when it was asked last.
    Tool(Devices, Option<Instant>),
    /// The library of NVIDIA's driver.
    Nvml(Nvml),
}

impl Source {
    /// Whether it is a child process while it is asked.
    pub(super) fn is_tool(&self) -> bool {
        matches!(self, Self::Tool(..))
    }

    /// Gives every reading of every device; nothing where a tool was asked less than `every` ago.
    pub(super) fn look(&mut self, every: Duration, stop: &AtomicBool) -> Vec<Gauge> {
        match self {
            Self::Nvml(nvml) => nvml.look(),
            Self::Tool(_, Some(asked)) if asked.elapsed() < every => Vec::new(),
            Self::Tool(devices, asked) => {
                *asked = Some(Instant::now());
                devices.look(stop)
            }
        }
    }

    /// Whether it will never tell anything.
    fn is_hopeless(&self) -> bool {
        match self {
            Self::Tool(devices, _) => devices.asked.is_err(),
            Self::Nvml(nvml) => !nvml.is_there(),
        }
    }
}

/// A tool of this machine.
fn devices(tool: &'static Tool) -> Devices {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let asked = DeviceTool::find(tool.id, tool.arguments, &path).map_err(|error| error.to_string());
    Devices { tool, asked, known: BTreeSet::new() }
}

/// The tools that are there.
fn present() -> impl Iterator<Item = Devices> {
    device_text::REGISTRY.iter().map(devices).filter(|devices| devices.asked.is_ok())
}

/// A tool by its name; `others` are names that may be given in its place.
fn by_name(name: &str, others: &[&str]) -> Result<Devices, Usage> {
    let tool = device_text::REGISTRY.iter().find(|tool| tool.id == name).ok_or_else(|| {
        let known: Vec<&str> = device_text::REGISTRY.iter().map(|tool| tool.id).chain(others.iter().copied()).collect();
        Usage(format!("'{name}' is no device tool that is read; name some of {} or {NONE}", known.join(", ")))
    })?;
    Ok(devices(tool))
}

/// Whom to ask: those that were named, or else those that are there, where NVIDIA's library stands for its tool. One that was
/// named and is absent says so.
///
/// # Errors
/// When a name is none of a tool.
pub(super) fn sources(named: &[String]) -> Result<Vec<Source>, Usage> {
    if named.is_empty() {
        let nvml = Some(Nvml::find()).filter(Nvml::is_there);
        let tools = present().filter(|devices| nvml.is_none() || devices.tool.vendor != "nvidia");
        let tools: Vec<Source> = tools.map(|devices| Source::Tool(devices, None)).collect();
        return Ok(nvml.map(Source::Nvml).into_iter().chain(tools).collect());
    }
    let source = |name: &String| match name.as_str() {
        nvml::NAME => Ok(Source::Nvml(Nvml::find())),
        name => Ok(Source::Tool(by_name(name, &[nvml::NAME])?, None)),
    };
    named.iter().filter(|name| *name != NONE).map(source).collect()
}

/// The tools to ask: those that were named, or else those that are there. A tool that was named and is absent says so.
///
/// # Errors
/// When a name is none of a tool.
pub(super) fn tools(named: &[String]) -> Result<Vec<Devices>, Usage> {
    if named.is_empty() {
        return Ok(present().collect());
    }
    named.iter().filter(|name| *name != NONE).map(|name| by_name(name, &[])).collect()
}

/// The tools to ask while the engine runs on a device: those that were named, or else its vendor's where that is there. The
/// processors of this machine have no tool.
///
/// # Errors
/// When a name is none of a tool.
pub(super) fn of_run(named: &[String], target: &Target) -> Result<Vec<Devices>, Usage> {
    if !named.is_empty() {
        return tools(named);
    }
    let vendor = vendor(target);
    Ok(tools(&[])?.into_iter().filter(|devices| Some(devices.tool.vendor) == vendor).collect())
}

/// Vendor key of a device that is not this machine's processor, by what its driver says.
fn vendor(target: &Target) -> Option<&'static str> {
    if let Some((_, vendor)) =
        [("cuda", "nvidia"), ("ascend", "ascend")].into_iter().find(|(name, _)| *name == target.name())
    {
        return Some(vendor);
    }
    let facts = opencl_device(target).filter(|facts| facts.kind != Kind::Cpu)?;
    let maker = facts.vendor.to_ascii_lowercase();
    let known = [("nvidia", "nvidia"), ("advanced micro devices", "amd"), ("amd", "amd")];
    known.into_iter().find(|(word, _)| maker.contains(word)).map(|(_, vendor)| vendor)
}

/// Which card the device of a run is: drivers number their devices as processes see them.
pub(super) fn place(target: &Target) -> Place {
    let options = match target {
        Target::OpenCl(options) => options,
        Target::Cuda(options) => return Place::Only(options.device),
        Target::Ascend(options) => return Place::Only(usize::try_from(options.device).unwrap_or(0)),
        _ => return Place::Only(0),
    };
    let all = opencl::devices().unwrap_or_default();
    let of_platform = |facts: &&Facts| all.get(options.device).is_some_and(|own| own.platform == facts.platform);
    Place::Only(all.iter().take(options.device).filter(of_platform).count())
}

fn opencl_device(target: &Target) -> Option<Facts> {
    let Target::OpenCl(options) = target else { return None };
    opencl::devices().ok()?.into_iter().nth(options.device)
}

impl Devices {
    /// The tool.
    pub(super) fn tool(&self) -> &'static Tool {
        self.tool
    }

    /// Asks the tool, and gives every device that it shows.
    ///
    /// # Errors
    /// Why it shows none.
    pub(super) fn read(&mut self, stop: &AtomicBool) -> Result<Vec<DeviceReadings>, String> {
        let tool = self.asked.as_mut().map_err(|reason| reason.clone())?;
        let text = tool.ask(stop).map_err(|error| error.to_string())?;
        let devices = (self.tool.read)(&text).devices;
        if devices.is_empty() {
            return Err(format!("{} printed no device that is understood", self.tool.id));
        }
        Ok(devices)
    }

    /// Asks the tool, and gives every reading of every device; one that it showed before and does not now has the reason.
    pub(super) fn look(&mut self, stop: &AtomicBool) -> Vec<Gauge> {
        let own = Group::Device(self.tool.id.to_owned());
        let began = Instant::now();
        let read = self.read(stop);
        let took = began.elapsed().as_nanos() as f64;
        let (devices, answer, absent) = match read {
            Ok(devices) => (devices, Reading::Value(took), format!("{} does not show it any more", self.tool.id)),
            Err(reason) => (Vec::new(), Reading::Unavailable(reason.clone()), reason),
        };
        let gauge = |group: &Group, name: &str, unit: &str, value| Gauge {
            group: group.clone(),
            name: name.to_owned(),
            unit: unit.to_owned(),
            value,
        };
        let mut out = vec![gauge(&own, ANSWER, "ns", answer)];
        let mut seen = BTreeSet::new();
        for device in devices {
            let group = Group::Device(title(self.tool, &device));
            for (metric, value) in device.readings {
                out.push(gauge(&group, metric.name(), metric.unit(), value));
                seen.insert((group.clone(), metric.name(), metric.unit()));
            }
        }
        for (group, name, unit) in self.known.difference(&seen) {
            out.push(gauge(group, name, unit, Reading::Unavailable(absent.clone())));
        }
        self.known.append(&mut seen);
        out
    }
}

/// What a device is called: its tool, its number, so that ten comes after nine, and its name.
fn title(tool: &Tool, device: &DeviceReadings) -> String {
    let chip = device.chip.map_or(String::new(), |chip| format!(".{chip}"));
    let name = device.name.as_deref().map_or(String::new(), |name| format!("  {name}"));
    format!("{} {:>2}{chip}{name}", tool.id, device.card)
}

/// Threads that ask until this is dropped, which ends a tool that is at it.
pub(super) struct Asking {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Asking {
    /// Begins to ask: tools every `tools_every`, libraries every `every`.
    ///
    /// # Errors
    /// When the system gives no more threads.
    pub(super) fn start(sources: Vec<Source>, every: Duration, tools_every: Duration, feed: &Feed) -> io::Result<Self> {
        let mut asking = Self { stop: Arc::default(), threads: Vec::new() };
        for mut source in sources {
            let (stop, feed) = (Arc::clone(&asking.stop), feed.clone());
            let every = if source.is_tool() { tools_every } else { every };
            let work = move || {
                while !stop.load(Ordering::Relaxed) {
                    feed.tell(What::Gauges(source.look(Duration::ZERO, &stop)));
                    if source.is_hopeless() {
                        // One that is not there now will not come.
                        break;
                    }
                    let asked = Instant::now();
                    while !stop.load(Ordering::Relaxed) && asked.elapsed() < every {
                        std::thread::park_timeout(every.saturating_sub(asked.elapsed()));
                    }
                }
            };
            asking.threads.push(std::thread::Builder::new().name("device tool".to_owned()).spawn(work)?);
        }
        Ok(asking)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // Whether it panicked is of no interest any more.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::{ascend::AscendOptions, cuda::CudaOptions};

    use super::*;

    #[test]
    fn a_tool_is_asked_of_the_card_of_the_run() {
        let cuda = CudaOptions { device: 1, ..CudaOptions::default() };
        let ascend = AscendOptions { device: 3, ..AscendOptions::default() };
        assert_eq!(place(&Target::Cuda(cuda)), Place::Only(1));
        assert_eq!(place(&Target::Ascend(ascend)), Place::Only(3));
        assert_eq!(place(&Target::Cpu), Place::Only(0));
    }
}
