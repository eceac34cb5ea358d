//! Counters of this machine while something else runs on it: collectors that are looked at again and again, and the thread
//! that does so.
//!
//! The thread's own time on a processor is measured and told, because what watches a run takes part in it. What cannot be
//! read has its reason in the capture, once.
//!
//! | module | owns |
//! | --- | --- |
//! | [`ticks`] | time of the processors: the whole machine's, this process's |
//! | [`process`] | memory, page faults and context switches of this process |
//! | [`frequency`] | clock of the cores |
//! | [`power`] | power of the processor packages |
//! | [`nvml`] | NVIDIA devices, by their driver's library |
//! | [`dcmi`] | Ascend devices, by their driver's library |
//! | [`device_tool`] | what a vendor's tool prints of its devices |

use std::{
    collections::BTreeMap,
    io,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::JoinHandle,
    time::Duration,
};

use engine::record::Clock;
use model::{Ns, ProcessId, Provenance, Reading, Severity, TraceSink};

pub mod dcmi;
pub mod device_tool;
pub mod frequency;
pub mod nvml;
pub mod power;
pub mod process;
pub mod ticks;

/// Time between two looks: some thirty files of a few hundred bytes then take well below a hundredth of a core.
pub const PERIOD: Duration = Duration::from_millis(100);
/// Most samples of a counter, two hours at [`PERIOD`]; later ones are counted and not kept.
const MOST: usize = 72_000;

/// A counter of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counter {
    /// Name in the capture.
    pub name: &'static str,
    /// Unit of its values; empty for a share of one or a plain count.
    pub unit: &'static str,
    /// Ordinal of the device that it is of, 0 for the CPU where that is the device; absent where it is of the host process.
    pub device: Option<i32>,
}

/// A source of counters that is looked at again and again.
pub trait Collector: Send {
    /// Gives the value of each of its counters at the time `at`; nothing where there is no earlier look to compare with.
    fn look(&mut self, at: Ns, give: &mut dyn FnMut(Counter, Reading<f64>));
}

impl Collector for Box<dyn Collector> {
    fn look(&mut self, at: Ns, give: &mut dyn FnMut(Counter, Reading<f64>)) {
        (**self).look(at, give);
    }
}

/// Every collector of this machine.
pub fn collectors() -> Vec<Box<dyn Collector>> {
    vec![
        Box::new(ticks::Processors::default()),
        Box::new(process::Process::default()),
        Box::new(frequency::Frequency),
        Box::new(power::Power::default()),
    ]
}

/// Every collector of this machine, and the device of a run where a library tells of it.
pub fn with(gpu: Option<nvml::Gpu>) -> Vec<Box<dyn Collector>> {
    let mut all = collectors();
    all.extend(gpu.map(|gpu| -> Box<dyn Collector> { Box::new(gpu) }));
    all
}

/// A thread that looks at collectors until it is told to end.
#[derive(Debug)]
pub struct Sampler {
    /// Dropped to end the thread.
    stop: Sender<()>,
    thread: JoinHandle<Telemetry>,
}

impl Sampler {
    /// Begins to look; times are those of `clock`.
    ///
    /// # Errors
    /// When the system gives no more threads.
    pub fn start(clock: Clock, period: Duration, mut collectors: Vec<Box<dyn Collector>>) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("sampler".to_owned()).spawn(move || {
            let mut telemetry = Telemetry { period, ..Telemetry::default() };
            let began = clock.now();
            loop {
                let at = clock.now();
                collectors.iter_mut().for_each(|c| c.look(at, &mut |counter, value| telemetry.add(counter, at, value)));
                telemetry.looks += 1;
                if stopped.recv_timeout(period) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            // The last stretch of the run, however short, is part of it.
            let at = clock.now();
            collectors.iter_mut().for_each(|c| c.look(at, &mut |counter, value| telemetry.add(counter, at, value)));
            telemetry.lasted = clock.now() - began;
            telemetry.cost = Some(own_time());
            telemetry
        })?;
        Ok(Self { stop, thread })
    }

    /// Ends the thread and gives what it saw; `None` when it panicked.
    pub fn finish(self) -> Option<Telemetry> {
        drop(self.stop);
        self.thread.join().ok()
    }
}

/// Time that the calling thread has been on a processor, ns.
pub fn own_time() -> Reading<Ns> {
    let path = "/proc/thread-self/schedstat";
    match std::fs::read_to_string(path) {
        Ok(text) => text
            .split_whitespace()
            .next()
            .and_then(|ns| ns.parse().ok())
            .map_or_else(|| Reading::Unavailable(format!("{path} does not begin with a number")), Reading::Value),
        Err(error) => Reading::Unavailable(format!("{path}: {error}")),
    }
}

/// What a sampler saw.
#[derive(Debug, Default)]
pub struct Telemetry {
    series: BTreeMap<Counter, Vec<(Ns, f64)>>,
    unavailable: BTreeMap<Counter, String>,
    period: Duration,
    looks: u64,
    lost: u64,
    lasted: Ns,
    /// Time of the sampler on a processor.
    cost: Option<Reading<Ns>>,
    /// What else looked, and how often.
    beside: Vec<String>,
}

impl Telemetry {
    /// Takes in what another sampler saw by the same clock; `who` looked there, as a process of its own, whose cost nobody
    /// knows.
    pub fn take(&mut self, who: &str, other: Self) {
        self.beside.push(format!("{who} every {:.1} s", other.period.as_secs_f64()));
        self.series.extend(other.series);
        self.unavailable.extend(other.unavailable);
        self.lost += other.lost;
    }

    fn add(&mut self, counter: Counter, at: Ns, value: Reading<f64>) {
        match value {
            Reading::Unavailable(reason) => {
                self.unavailable.entry(counter).or_insert(reason);
            }
            Reading::Value(value) => {
                let series = self.series.entry(counter).or_default();
                if series.len() < MOST {
                    series.push((at, value));
                } else {
                    self.lost += 1;
                }
            }
        }
    }

    /// Share of one core that the sampler took.
    pub fn cost(&self) -> Reading<f64> {
        match &self.cost {
            Some(Reading::Value(ns)) if self.lasted > 0 => Reading::Value(*ns as f64 / self.lasted as f64),
            Some(Reading::Unavailable(reason)) => Reading::Unavailable(reason.clone()),
            _ => Reading::Unavailable("the sampler had no time to run".to_owned()),
        }
    }

    /// Writes what was seen as counters of a process, with what it cost and what could not be read.
    pub fn write(&self, process: ProcessId, sink: &mut dyn TraceSink) {
        let mut kept = 0;
        for (counter, samples) in &self.series {
            let name = sink.intern(counter.name);
            let device = counter.device;
            samples.iter().for_each(|(at, value)| sink.counter(process, device, name, counter.unit, *at, *value));
            kept += samples.len() as u64;
        }
        let cost = match self.cost() {
            Reading::Value(share) => format!("{:.2} % of one core", share * 100.0),
            Reading::Unavailable(reason) => format!("cost unknown: {reason}"),
        };
        let own = format!("{} counters every {} ms, {cost}", self.series.len(), self.period.as_millis());
        let said = std::iter::once(own).chain(self.beside.iter().cloned()).collect::<Vec<_>>().join("; ");
        sink.manifest("measurement.sampler", &said, Provenance::Observed);
        sink.ledger("telemetry sample", kept + self.lost, kept, 0, "counters of the machine and of the process");
        if self.lost > 0 {
            sink.stat("telemetry.full", Severity::DataLoss, self.lost, None);
        }
        for (counter, reason) in self.unavailable.iter().filter(|(counter, _)| !self.series.contains_key(counter)) {
            sink.stat(&format!("telemetry.{}_unavailable", counter.name), Severity::Info, 1, Some(reason));
        }
    }
}

/// The text of a file, or the reason why there is none.
fn read(path: impl AsRef<std::path::Path>) -> Result<String, String> {
    let path = path.as_ref();
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// A counter that only grows, as what it grew by per second since the last look.
#[derive(Clone, Copy, Debug, Default)]
struct Growth(Option<(Ns, u64)>);

impl Growth {
    /// The rate since the last look; `None` at the first, and where the counter went back.
    fn per_second(&mut self, at: Ns, count: u64) -> Option<f64> {
        let (since, before) = self.0.replace((at, count))?;
        let ns = at.checked_sub(since).filter(|ns| *ns > 0)?;
        Some(count.checked_sub(before)? as f64 * 1e9 / ns as f64)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use model::{Trace, TraceBuilder};

    use super::*;

    const STEADY: Counter = Counter { name: "steady", unit: "W", device: Some(0) };
    const ABSENT: Counter = Counter { name: "absent", unit: "MHz", device: Some(0) };

    struct Fixed;

    impl Collector for Fixed {
        fn look(&mut self, _: Ns, give: &mut dyn FnMut(Counter, Reading<f64>)) {
            give(STEADY, Reading::Value(7.0));
            give(ABSENT, Reading::Unavailable("no such file".to_owned()));
        }
    }

    fn written(telemetry: &Telemetry) -> Trace {
        let mut builder = TraceBuilder::new("run", "strato");
        let process = builder.process(0);
        telemetry.write(process, &mut builder);
        builder.finish()
    }

    #[test]
    fn what_is_seen_lies_on_the_runs_clock_and_what_is_not_has_a_reason() {
        let clock = Clock::start();
        let sampler = Sampler::start(clock, Duration::from_millis(1), vec![Box::new(Fixed)]).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let telemetry = sampler.finish().unwrap();
        let end = clock.now();
        let trace = written(&telemetry);
        assert_eq!(trace.counters.len(), 1);
        let counter = &trace.counters[0];
        assert_eq!((trace.strings.get(counter.name), counter.unit.as_str(), counter.device), ("steady", "W", Some(0)));
        assert!(counter.t.len() >= 2 && counter.t.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(counter.t.iter().all(|t| (0..=end).contains(t)) && counter.value.iter().all(|v| *v == 7.0));
        let stat = trace.stats.iter().find(|stat| stat.name == "telemetry.absent_unavailable").unwrap();
        assert_eq!(stat.example.as_deref(), Some("no such file"));
        assert!(trace.manifest.value("measurement.sampler").unwrap().contains("1 counters every 1 ms"));
    }

    #[test]
    fn what_a_second_sampler_saw_stands_beside_the_first() {
        let seen = |value: f64, counter| {
            let mut telemetry = Telemetry { period: Duration::from_secs(2), ..Telemetry::default() };
            telemetry.add(counter, 5, Reading::Value(value));
            telemetry
        };
        let mut own = seen(1.0, STEADY);
        own.take("fake-smi", seen(2.0, Counter { device: Some(1), ..STEADY }));
        let trace = written(&own);
        let found: Vec<_> = trace.counters.iter().map(|c| (c.device, c.value[0])).collect();
        assert_eq!(found, [(Some(0), 1.0), (Some(1), 2.0)]);
        let said = trace.manifest.value("measurement.sampler").unwrap();
        assert!(said.starts_with("2 counters every 2000 ms") && said.ends_with("; fake-smi every 2.0 s"), "{said}");
    }

    #[test]
    fn a_series_that_is_full_counts_what_it_loses() {
        let mut telemetry = Telemetry::default();
        (0..MOST + 5).for_each(|at| telemetry.add(STEADY, at as Ns, Reading::Value(1.0)));
        let trace = written(&telemetry);
        assert_eq!(trace.counters[0].t.len(), MOST);
        assert!(trace.stats.iter().any(|stat| stat.name == "telemetry.full" && stat.count == 5));
    }

    #[test]
    fn growth_is_per_second_and_a_first_look_says_nothing() {
        let mut growth = Growth::default();
        assert_eq!(growth.per_second(0, 10), None);
        assert_eq!(growth.per_second(500_000_000, 15), Some(10.0));
        assert_eq!(growth.per_second(600_000_000, 3), None, "went back");
        assert_eq!(growth.per_second(600_000_000, 4), None, "no time passed");
    }

    /// Every collector of this machine gives a value or a reason for each of its counters by its second look.
    #[test]
    fn this_machine_gives_values_or_reasons() {
        for mut collector in collectors() {
            let mut told = Vec::new();
            collector.look(0, &mut |counter, _| told.push(counter));
            std::thread::sleep(Duration::from_millis(30));
            collector.look(30_000_000, &mut |counter, value| {
                if let Reading::Value(value) = value {
                    assert!(value.is_finite() && value >= 0.0, "{counter:?}: {value}");
                }
                told.push(counter);
            });
            assert!(!told.is_empty());
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn looking_takes_less_than_a_hundredth_of_a_core() {
        let sampler = Sampler::start(Clock::start(), PERIOD, collectors()).unwrap();
        std::thread::sleep(PERIOD * 6);
        match sampler.finish().unwrap().cost() {
            Reading::Value(share) => assert!(share < 0.01, "{share}"),
            Reading::Unavailable(reason) => panic!("{reason}"),
        }
    }
}
