//! How much of the machine a run on its CPU had while it was recorded.

use model::{CounterTrack, Ns, ProcessId, Trace};

use crate::{
    analysis::{Class, Rank},
    diagnose::rule::Context,
};

/// Share of the time of all cores in other hands from which nothing can be said of a run's operators and waits, if no core was free; own value: a fifth is what a
/// finding of the gravest severity would be worth.
const TOO_MUCH: f64 = 0.20;
/// Share of the time of all cores from which none was free: below it the run's threads had a core each.
const FULL: f64 = 0.90;

/// Means over the steps of a class, as shares of the time of all cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Use {
    /// Of other processes and of the hypervisor.
    pub others: f64,
    /// In which cores were busy with anything.
    pub busy: f64,
}

impl Use {
    /// While the steps of a class ran; `None` where nobody looked.
    pub fn of(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Self> {
        let windows = || rank.steady_steps(class).map(|step| step.window);
        let (from, to) = (windows().map(|w| w.start).min()?, windows().map(|w| w.end).max()?);
        let mean = |process, name| mean(counter(cx.trace, process, name)?, from, to);
        let busy = mean(rank.process, "cpu_busy")?;
        // The ranks of a job on one machine are no strangers to each other.
        let processes = (0u32..).map(ProcessId).take(cx.trace.processes.len());
        let own: f64 = processes.filter_map(|process| mean(process, "cpu_own")).sum();
        Some(Self { others: (busy - own).max(0.0), busy })
    }

    /// Whether so much was in other hands that the run says little of itself.
    pub fn is_starved(&self) -> bool {
        self.others >= TOO_MUCH && self.busy >= FULL
    }
}

fn counter<'a>(trace: &'a Trace, process: ProcessId, name: &str) -> Option<&'a CounterTrack> {
    trace.counters.iter().find(|c| c.process == process && trace.strings.get(c.name) == name)
}

/// Mean of the samples of a time. A sample speaks of what lies before it, so the first one after the end counts too.
fn mean(counter: &CounterTrack, from: Ns, to: Ns) -> Option<f64> {
    let first = counter.t.partition_point(|t| *t <= from);
    let end = (counter.t.partition_point(|t| *t <= to) + 1).min(counter.t.len());
    let values = counter.value.get(first..end)?;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The use of the machine where it was so much in other hands that there is no verdict on a layer.
pub fn starved(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Use> {
    Use::of(cx, rank, class).filter(Use::is_starved)
}
