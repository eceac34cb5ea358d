//! What a capture shows of its run that nobody said of it: fields of the manifest for which its steps, kernels and shapes
//! leave no choice. What they leave a choice for stays unknown, with the reason.
//!
//! The first rank is looked at, and of its main class the first, the middle and the last step that count; a field is found
//! where all of them agree.
//!
//! | module | owns |
//! | --- | --- |
//! | `settled` | whether the step time had settled, by a search for a change point |
//! | `steps` | metric, graphs, compilation |
//! | `shape` | layers, hidden size, heads, batch |
//! | `precision` | data types |
//! | `exchange` | how the model is divided among ranks |

mod exchange;
mod precision;
mod settled;
mod shape;
mod steps;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use model::{Manifest, Provenance, Trace};

use super::{Analysis, Class, DeviceOp, Rank, Step};

/// What shows a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Where the steps lie and how long they take.
    Steps,
    /// What marks the steps.
    Marks,
    /// Calls of the host.
    Calls,
    /// Layers found as repeats of a step's kernels.
    Repeats,
    /// Modules that the framework named.
    Modules,
    /// Shapes and types of operators' inputs.
    Shapes,
    /// Names of kernels.
    Names,
    /// Collectives, or that there are none.
    Collectives,
}

/// Why a field that was looked for stays unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// No steps were found that count.
    NoSteps,
    /// Fewer steps than a change point is sought in.
    FewSteps(usize),
    /// No shapes were recorded that show it.
    NoShapes,
    /// Neither shapes nor names of kernels say it.
    Silent,
    /// The steps show several values.
    Several(Vec<String>),
    /// Calls of the host were not recorded.
    NoCalls,
    /// Layers were not found, or their attention and activations do not agree on how many.
    NoLayers,
    /// Kernels lie inside graphs that were recorded as a whole, or have names that no pack knows.
    Hidden,
    /// The collectives do not say how many ranks take part, or are no sign of tensor parallelism.
    Unsized,
}

/// A field and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Key of the field.
    pub key: &'static str,
    /// Its value as the manifest has it.
    pub value: String,
    /// What shows it.
    pub by: By,
}

/// What a capture shows of its run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inferred {
    /// What was found.
    pub found: Vec<Found>,
    /// What was looked for and not found, with the reason.
    pub open: Vec<(&'static str, Why)>,
}

impl Inferred {
    /// Of a capture that was analysed.
    pub fn of(trace: &Trace, analysis: &Analysis) -> Self {
        let mut inferred = Self::default();
        let Some(view) = View::of(trace, analysis) else {
            inferred.open.extend(KEYS.iter().map(|key| (*key, Why::NoSteps)));
            return inferred;
        };
        settled::infer(&view, &mut inferred);
        steps::infer(&view, &mut inferred);
        exchange::infer(&view, &mut inferred);
        shape::infer(&view, &mut inferred);
        precision::infer(&view, &mut inferred);
        inferred
    }

    /// Adds what was found to a manifest that does not say it, and keeps only that.
    pub fn complete(&mut self, trace: &mut Trace) {
        let provenance = if trace.simulated { Provenance::Simulated } else { Provenance::Observed };
        self.found.retain(|found| !is_said(&trace.manifest, found.key));
        for found in &self.found {
            trace.manifest.set(found.key, found.value.clone(), provenance);
        }
    }

    /// What shows the value that a field has, where the capture shows it and does not say it.
    pub fn by(&self, key: &str) -> Option<By> {
        self.found.iter().find(|found| found.key == key).map(|found| found.by)
    }

    /// Why a field is unknown, if it was looked for.
    pub fn why(&self, key: &str) -> Option<&Why> {
        self.open.iter().find(|(open, _)| *open == key).map(|(_, why)| why)
    }

    fn put(&mut self, key: &'static str, by: By, value: Result<impl ToString, Why>) {
        match value {
            Ok(value) => self.found.push(Found { key, value: value.to_string(), by }),
            Err(why) => self.open.push((key, why)),
        }
    }
}

/// Whether a field is said already: a declaration gives way to what the capture shows.
fn is_said(manifest: &Manifest, key: &str) -> bool {
    manifest.get(key).is_some_and(|entry| entry.provenance != Provenance::Declared)
}

/// Fields that are looked for.
const KEYS: &[&str] = &[
    "warmup.change_point",
    "measurement.metric",
    "software.graph_mode",
    "warmup.compile_done",
    "model.layers",
    "model.hidden",
    "model.heads",
    "caps.batch",
    "workload.speculative",
    "precision.weights",
    "precision.activations",
    "precision.kv",
    "parallel.tp",
    "parallel.pp",
    "parallel.ep",
];

/// What is looked at.
struct View<'a> {
    trace: &'a Trace,
    analysis: &'a Analysis,
    rank: &'a Rank,
    class: &'a Class,
    /// The first, the middle and the last step that count.
    steps: Vec<&'a Step>,
}

impl<'a> View<'a> {
    fn of(trace: &'a Trace, analysis: &'a Analysis) -> Option<Self> {
        let rank = analysis.ranks.iter().min_by_key(|rank| rank.rank)?;
        let class = rank.main_class().filter(|class| class.steady > 0)?;
        let places: BTreeSet<usize> = [0, class.steady / 2, class.steady - 1].into();
        let steps = rank.steady_steps(class).enumerate().filter(|(n, _)| places.contains(n)).map(|(_, step)| step);
        Some(Self { trace, analysis, rank, class, steps: steps.collect() })
    }

    /// The device operations of the steps that are looked at.
    fn ops(&self) -> impl Iterator<Item = &'a DeviceOp> {
        self.steps.iter().flat_map(|step| self.rank.ops_of(step))
    }
}

/// The value that all agree on; `none` where there is none.
fn one<T: Ord + ToString>(values: impl IntoIterator<Item = T>, none: Why) -> Result<T, Why> {
    let mut found: BTreeSet<T> = values.into_iter().collect();
    match found.pop_first() {
        None => Err(none),
        Some(one) if found.is_empty() => Ok(one),
        Some(one) => {
            let all = std::iter::once(one).chain(found);
            Err(Why::Several(all.take(SEVERAL).map(|value| value.to_string()).collect()))
        }
    }
}

/// Values that are named where there are several.
const SEVERAL: usize = 4;
