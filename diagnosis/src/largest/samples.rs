//! Counters that were sampled beside the work: clocks, power, temperatures, use of a device.

use model::{CounterTrack, Ns, Trace};

use crate::analysis::{Analysis, Rank, Selection};

/// Counters that are told.
const MOST: usize = 32;

/// What was sampled of one device, in the order in which it is asked for: a device that was throttled shows it in its clock.
const UNITS: [&str; 8] = ["MHz", "Hz", "W", "mW", "°C", "C", "%", "MB/s"];

/// Samples of one counter of one device.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Samples {
    /// Name of the counter as the capture spells it.
    pub name: String,
    /// Unit of its values.
    pub unit: String,
    /// Device ordinal; absent for the machine.
    pub device: Option<i32>,
    /// Rank of that device, where it worked.
    pub rank: Option<u32>,
    /// Samples.
    pub count: usize,
    /// Of those, samples taken during the steps, or during the window where nothing marks steps. Least, median and most are of
    /// these; where there are none, of all.
    pub inside: usize,
    /// The least value, and when it was sampled first, ns from the zero of the capture.
    pub min: (f64, Ns),
    /// The median (the lower of two).
    pub median: f64,
    /// The largest value, and when it was sampled first.
    pub max: (f64, Ns),
}

/// The counters of devices, clocks first. What a serving engine counts of itself is no sample of a device.
pub(super) fn of(trace: &Trace, analysis: &Analysis) -> Vec<Samples> {
    let of_device = |counter: &&CounterTrack| counter.device.is_some() || UNITS.contains(&counter.unit.as_str());
    let mut all: Vec<(usize, Samples)> = trace
        .counters
        .iter()
        .filter(of_device)
        .filter_map(|counter| {
            let at = UNITS.iter().position(|unit| *unit == counter.unit).unwrap_or(UNITS.len());
            Some((at, one(trace, analysis, counter)?))
        })
        .collect();
    all.sort_by(|(at, a), (bt, b)| (at, &a.name, a.rank, a.device).cmp(&(bt, &b.name, b.rank, b.device)));
    all.into_iter().take(MOST).map(|(_, samples)| samples).collect()
}

fn one(trace: &Trace, analysis: &Analysis, counter: &CounterTrack) -> Option<Samples> {
    let drives = |rank: &&Rank| rank.process == counter.process && Some(rank.device) == counter.device;
    let own = analysis.ranks.iter().find(drives);
    let ranks = || own.into_iter().chain(analysis.ranks.iter().filter(|_| own.is_none()));
    let steps = |rank: &Rank| {
        let asked = rank.steps.iter().filter(|step| step.selection != Selection::NotAsked);
        asked.fold(None, |all: Option<(Ns, Ns)>, step| {
            let (start, end) = all.unwrap_or((step.window.start, step.window.end));
            Some((start.min(step.window.start), end.max(step.window.end)))
        })
    };
    let times: Vec<(Ns, Ns)> = ranks().filter_map(steps).collect();
    let is_inside = |t: Ns| times.iter().any(|(start, end)| *start <= t && t < *end);
    let told = counter.t.iter().zip(&counter.value).filter(|(_, value)| value.is_finite());
    let told: Vec<(Ns, f64)> = told.map(|(t, value)| (*t, *value)).collect();
    let inside: Vec<(Ns, f64)> = told.iter().filter(|(t, _)| is_inside(*t)).copied().collect();
    let mut values = if inside.is_empty() { told.clone() } else { inside.clone() };
    values.sort_by(|(a_t, a), (b_t, b)| a.total_cmp(b).then(a_t.cmp(b_t)));
    let (min, median) = (values.first()?, values.get((values.len() - 1) / 2)?);
    let most = values.last()?.1;
    let max = values.iter().find(|(_, value)| *value == most)?;
    Some(Samples {
        name: trace.strings.get(counter.name).to_owned(),
        unit: counter.unit.clone(),
        device: counter.device,
        rank: own.map(|rank| rank.rank),
        count: told.len(),
        inside: inside.len(),
        min: (min.1, min.0),
        median: median.1,
        max: (max.1, max.0),
    })
}
