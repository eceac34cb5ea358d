//! Counterfactual replay: what the steps would take if the run were changed (method §2.11).
//!
//! | module | owns |
//! | --- | --- |
//! | [`model`] | a rank as calls and operations with what holds each up |
//! | [`causes`] | what a call waited for, what an operation depended on |
//! | [`calibrate`] | from a timeline to the model that reproduces it |
//! | [`edited`] | a model with edits carried out |
//! | [`resume`] | threads that go on when another one has seen the device finish |
//! | [`critical_path`] | the chain of work and waiting that makes a step as long as it is |
//! | [`run`] | the pass that settles every time |
//!
//! A model is built once per capture; a replay takes time linear in the calls and operations.

mod calibrate;
mod causes;
mod critical_path;
mod edited;
mod model;
mod resume;
mod run;

use ::model::Ns;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

pub use critical_path::CriticalPath;
pub use edited::SLOW_LAUNCH;

use self::{
    edited::Edited,
    model::Model,
    run::{Meeting, Walk},
};
use super::{Analysis, Class, Edit, OpKind, Rank, Step};

/// How much of a change is taken for granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Only what is certain.
    Cautious,
    /// Also what may come along with it.
    Hopeful,
}

/// Median error of the unedited replay up to which what-ifs are asked (dPRO reports below 5 %, the method asks for 2 %).
pub const MEDIAN_ERROR: f64 = 0.02;
/// The same for the 95th percentile.
pub const TAIL_ERROR: f64 = 0.05;

/// How well the replay without any change reproduces the steps of a class.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Check {
    /// Steps compared.
    pub steps: usize,
    /// Median of the relative errors of the step times.
    pub median: f64,
    /// 95th percentile of the same.
    pub p95: f64,
}

impl Check {
    /// Whether what-ifs may be asked.
    pub fn passed(&self) -> bool {
        self.steps > 0 && self.median <= MEDIAN_ERROR && self.p95 <= TAIL_ERROR
    }
}

/// What is left to do after a change, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// Time that the change takes away itself, over the whole run: whatever it brings, it is no more unless it lets work run
    /// side by side.
    pub taken: Ns,
    /// What the busiest queue of the device still has to do, mean per step.
    pub device: Ns,
    /// What the busiest host thread still has to do in calls, mean per step.
    pub host: Ns,
}

/// All ranks of a capture, ready for what-ifs.
pub struct Replay<'a> {
    analysis: &'a Analysis,
    models: Vec<Model>,
    members: Vec<u32>,
    /// Time of each collective's transfer, ns.
    transfer: Vec<Ns>,
    /// How long each lasted once the last of its ranks in the capture was there, ns: longer than its transfer where all of them waited
    /// for one that is not.
    held: Vec<Ns>,
    /// Signals that operations give at their ends.
    signals: usize,
}

/// Step times of the ranks after a change, ns; one per step of the rank, in its order.
pub type Windows = Vec<Vec<Ns>>;

impl<'a> Replay<'a> {
    /// Builds the models of all ranks.
    pub fn new(analysis: &'a Analysis) -> Self {
        let mut instances: Vec<FxHashMap<u32, u32>> = vec![FxHashMap::default(); analysis.ranks.len()];
        let (mut members, mut transfer, mut held) = (Vec::new(), Vec::new(), Vec::new());
        for (i, instance) in analysis.job.instances.iter().enumerate() {
            let mut count = 0;
            for member in &instance.members {
                // An operation takes part in one collective of each kind only.
                if let Some(ops) = instances.get_mut(member.rank)
                    && !ops.contains_key(&member.op)
                {
                    ops.insert(member.op, i as u32);
                    count += 1;
                }
            }
            members.push(count);
            transfer.push(instance.transfer);
            let lasted = instance.members.iter().filter_map(|member| {
                Some(analysis.ranks.get(member.rank)?.timeline.ops.get(member.op as usize)?.dur())
            });
            held.push(lasted.min().unwrap_or(0).max(instance.transfer));
        }
        let ranks = analysis.ranks.par_iter().zip(&instances);
        let mut models: Vec<Model> = ranks.map(|(r, i)| calibrate::calibrate(r, i)).collect();
        let resumed = resume::find(&analysis.ranks, &analysis.job, &models);
        resume::apply(&mut models, &resumed);
        Self { analysis, models, members, transfer, held, signals: resumed.len() }
    }

    /// Step times with `edits` carried out, each on the rank at its position. Ranks that nothing can have changed keep the
    /// observed times.
    pub fn windows(&self, edits: &[(usize, &Edit)], variant: Variant) -> Windows {
        self.replayed(edits, variant, |walks| {
            let mut out: Windows = self.analysis.ranks.iter().map(observed).collect();
            for (i, edited, walk) in walks {
                if let (Some(rank), Some(out)) = (self.analysis.ranks.get(*i), out.get_mut(*i)) {
                    *out = windows(rank, edited, walk);
                }
            }
            out
        })
    }

    /// What `edits` of a rank's program do on another one that runs the same program and of which only the collectives were recorded:
    /// it comes to each of them, counted from the end of the one before, as much earlier or later as the changed rank does. `twins` are the
    /// changed rank and the other one, whose collectives go in the same order.
    pub fn mirrored(&self, edits: &[(usize, &Edit)], variant: Variant, twins: &[(usize, usize)]) -> Vec<(usize, Edit)> {
        if twins.is_empty() {
            return Vec::new();
        }
        let nothing = Edit::Remove(Vec::new());
        let sources: Vec<usize> = twins.iter().map(|(changed, _)| *changed).collect();
        let unedited: Vec<(usize, &Edit)> = sources.iter().map(|i| (*i, &nothing)).collect();
        let times = |edits: &[(usize, &Edit)]| -> FxHashMap<usize, Vec<(Ns, Ns)>> {
            self.replayed(edits, variant, |walks| {
                let own = walks.iter().filter(|(i, ..)| sources.contains(i));
                own.map(|(i, _, walk)| (*i, walk.start.iter().copied().zip(walk.end.iter().copied()).collect()))
                    .collect()
            })
        };
        let (was, is) = (times(&unedited), times(edits));
        let of = |(changed, twin): &(usize, usize)| {
            Some((*twin, self.paced(*changed, *twin, [was.get(changed)?, is.get(changed)?])?))
        };
        twins.iter().filter_map(of).collect()
    }

    /// When a rank comes to each of its collectives where its twin's operations have other times than they had.
    fn paced(&self, changed: usize, twin: usize, times: [&Vec<(Ns, Ns)>; 2]) -> Option<Edit> {
        let other = self.models.get(twin)?;
        let collectives = |rank: usize| {
            let ops = self.analysis.ranks.get(rank).map_or(&[][..], |rank| &rank.timeline.ops);
            (0u32..).zip(ops).filter(|(_, op)| op.kind == OpKind::Comm).map(|(o, _)| o)
        };
        let counterpart: FxHashMap<u32, u32> = collectives(twin).zip(collectives(changed)).collect();
        let gap = |(o, at): (&u32, &u32)| {
            let row = other.ops.get(*o as usize)?;
            let before = counterpart.get(&row.pred)?;
            let [was, is] = times.map(|times| Some(times.get(*at as usize)?.0 - times.get(*before as usize)?.1));
            let saved = was? - is?;
            (saved != 0).then_some((*o, row.gap - saved))
        };
        Some(Edit::Pace(counterpart.iter().filter_map(gap).collect()))
    }

    /// Replays all ranks with `edits` carried out and reads the walks of those that were replayed.
    fn replayed<T>(
        &self,
        edits: &[(usize, &Edit)],
        variant: Variant,
        read: impl FnOnce(&[(usize, &Edited<'_>, Walk<'_>)]) -> T,
    ) -> T {
        let alone = self.members.is_empty();
        let of = |rank: usize| edits.iter().filter(|(r, _)| *r == rank).map(|(_, e)| *e).collect::<Vec<_>>();
        let edited: Vec<(usize, Edited<'_>)> = (self.analysis.ranks.iter().zip(&self.models).enumerate())
            .filter_map(|(i, (rank, model))| {
                let edits = of(i);
                (!alone || !edits.is_empty()).then(|| (i, Edited::new(model, rank, &edits, variant)))
            })
            .collect();
        let transfer = changed(&self.held, edited.iter().flat_map(|(_, e)| &e.transfers));
        let mut meeting = Meeting::new(self.members.clone(), transfer, self.signals);
        let mut walks: Vec<Walk<'_>> =
            edited.iter().filter_map(|(i, e)| Some(Walk::new(self.models.get(*i)?, e))).collect();
        run::replay(&mut walks, &mut meeting);
        let walks: Vec<_> = edited.iter().zip(walks).map(|((i, edited), walk)| (*i, edited, walk)).collect();
        read(&walks)
    }

    /// What the edits leave to do in the steps of a rank, hopefully.
    pub fn rest<'s>(&self, edits: &[(usize, &Edit)], at: usize, steps: impl Iterator<Item = &'s Step>) -> Rest {
        let edits: Vec<&Edit> = edits.iter().filter(|(rank, _)| *rank == at).map(|(_, edit)| *edit).collect();
        let Some((model, rank)) = self.models.get(at).zip(self.analysis.ranks.get(at)) else { return Rest::default() };
        let edited = Edited::new(model, rank, &edits, Variant::Hopeful);
        let transfer = changed(&self.transfer, &edited.transfers);
        let (mut device, mut host, mut count) = (0, 0, 0);
        for step in steps {
            let (queue, thread) = edited.least(step, &transfer);
            (device, host, count) = (device + queue, host + thread, count + 1);
        }
        Rest { taken: edited.taken(), device: device / count.max(1), host: host / count.max(1) }
    }

    /// Step times without any change, by replay.
    pub fn unedited(&self) -> Windows {
        let nothing = Edit::Remove(Vec::new());
        let all: Vec<(usize, &Edit)> = (0..self.analysis.ranks.len()).map(|i| (i, &nothing)).collect();
        self.windows(&all, Variant::Cautious)
    }

    /// How well `windows` of the unedited replay agree with the steps of `class` that were recorded.
    pub fn check(rank: &Rank, class: &Class, windows: &[Ns]) -> Check {
        let error = |of: Ns, now: Ns| (now - of).abs() as f64 / of.max(1) as f64;
        let mut errors: Vec<f64> = rank
            .steady_steps(class)
            .filter_map(|s| Some(error(s.window.len(), *windows.get(s.index as usize)?)))
            .collect();
        errors.sort_by(f64::total_cmp);
        let at = |q: usize| errors.get(errors.len().saturating_sub(1) * q / 100).copied().unwrap_or(0.0);
        Check { steps: errors.len(), median: at(50), p95: at(95) }
    }
}

/// The times of the collectives after changes to some, ns.
fn changed<'s>(times: &[Ns], changes: impl IntoIterator<Item = &'s (u32, Ns)>) -> Vec<Ns> {
    let mut times = times.to_vec();
    for (instance, ns) in changes {
        if let Some(time) = times.get_mut(*instance as usize) {
            *time = *ns;
        }
    }
    times
}

/// Mean of the times of `steps` in the windows of their rank, ns.
pub fn mean<'a>(steps: impl Iterator<Item = &'a Step>, windows: &[Ns]) -> Ns {
    let steps = steps.filter_map(|s| windows.get(s.index as usize));
    let (sum, count) = steps.fold((0i128, 0i128), |(sum, n), w| (sum + i128::from(*w), n + 1));
    Ns::try_from(sum / count.max(1)).unwrap_or(0)
}

fn observed(rank: &Rank) -> Vec<Ns> {
    rank.steps.iter().map(|s| s.window.len()).collect()
}

/// Step times of a rank that was replayed: from the first operation that is left of each step to that of the next.
fn windows(rank: &Rank, edited: &Edited<'_>, walk: &Walk<'_>) -> Vec<Ns> {
    // Start of each operation, or of the first one after it that is left.
    let mut begins = walk.start.clone();
    let mut next = None;
    for (begin, row) in begins.iter_mut().zip(edited.ops()).rev() {
        if row.fate != model::Fate::Removed {
            next = Some(*begin);
        }
        *begin = next.unwrap_or(*begin);
    }
    let begin = |o: usize| begins.get(o).copied();
    let mut out: Vec<Ns> = Vec::with_capacity(rank.steps.len());
    let mut steps = rank.steps.iter().peekable();
    while let Some(step) = steps.next() {
        let end = match steps.peek() {
            Some(next) => begin(next.ops.start),
            None => walk.end.get(step.ops.clone()).and_then(|ends| ends.iter().max()).copied(),
        };
        let window = begin(step.ops.start).zip(end).map(|(from, to)| (to - from).max(0));
        out.push(window.unwrap_or(step.window.len()));
    }
    out
}

#[cfg(test)]
mod tests;
