//! The workload of a rank: the steps that belong together however their batch, their prompts and their graphs change. Events
//! such as pauses, compilation or collection of garbage happen to a workload, not to the steps of one batch; and the mean over
//! its steps is what every share and gain refers to.

use model::Ns;

use super::{
    bucket::Bucket,
    model::{Class, Rank, Selection, Step},
};
use crate::platform::Stage;

/// The steps of a rank that are one workload.
#[derive(Clone)]
pub struct Workload<'a> {
    /// The rank.
    pub rank: &'a Rank,
    /// The class with the most time, whose name stands for all.
    pub class: &'a Class,
    /// All classes that have steps that count, the leading one among them.
    pub classes: Vec<&'a Class>,
}

impl Rank {
    /// The workload that a class belongs to: the decode steps of a server with those that read prompts beside them,
    /// whichever of them replay graphs; of another stage, and of a sweep that holds each batch for long, the class alone.
    pub fn workload<'a>(&'a self, class: &'a Class) -> Workload<'a> {
        let serves = |c: &Class| c.steady > 0 && matches!(c.stage, Stage::Decode | Stage::Mixed);
        let alike =
            |c: &Class| self.classes.iter().filter(|o| serves(o) && (o.stage, o.graph) == (c.stage, c.graph)).count();
        let joins = |c: &Class| serves(c) && alike(c) == 1;
        if !joins(class) {
            return Workload { rank: self, class, classes: vec![class] };
        }
        let classes: Vec<&Class> = self.classes.iter().filter(|c| joins(c)).collect();
        let decodes = classes.iter().find(|c| c.stage == Stage::Decode).copied();
        Workload { rank: self, class: decodes.unwrap_or(class), classes }
    }

    /// Every workload of the rank, each class with steps that count in one of them.
    pub fn workloads(&self) -> impl Iterator<Item = Workload<'_>> {
        let counted = self.classes.iter().filter(|class| class.steady > 0);
        counted
            .map(|class| (class, self.workload(class)))
            .filter(|(class, of)| of.class.index == class.index)
            .map(|(_, of)| of)
    }
}

impl<'a> Workload<'a> {
    /// The steps that count, in order of time.
    pub fn steps(&self) -> impl Iterator<Item = &'a Step> + use<'a> {
        let classes: Vec<usize> = self.classes.iter().map(|class| class.index).collect();
        let counts = move |step: &&Step| step.selection == Selection::Steady && classes.contains(&step.class);
        self.rank.steps.iter().filter(counts)
    }

    /// How many count.
    pub fn steady(&self) -> usize {
        self.classes.iter().map(|class| class.steady).sum()
    }

    /// Their time, ns.
    pub fn total(&self) -> Ns {
        self.classes.iter().map(|class| class.total).sum()
    }

    /// Their mean, ns.
    pub fn mean(&self) -> Ns {
        match self.steady() {
            0 => self.class.p50,
            steady => self.total() / steady as Ns,
        }
    }

    /// Their median, ns (nearest rank).
    pub fn median(&self) -> Ns {
        let mut times: Vec<Ns> = self.steps().map(|step| step.window.len()).collect();
        times.sort_unstable();
        times.get(times.len().saturating_sub(1) / 2).copied().unwrap_or(self.class.p50)
    }

    /// Mean of the buckets that `pick` takes, ns per step.
    pub fn per_step(&self, pick: impl Fn(Bucket) -> bool) -> Ns {
        self.classes.iter().map(|class| class.sum(&pick)).sum::<Ns>() / self.steady().max(1) as Ns
    }
}
