//! What costs are counted over: on every rank the steps that the headline speaks of.

use model::{Ns, Span, Trace};

use rayon::prelude::*;

use crate::{
    analysis::{Analysis, Class, Edit, Layer, Rank, Step},
    cause::{Cost, Kind, Occurs},
    ledger::device::{self, Work},
};

/// A rank with the steps that count.
pub struct Counted<'a> {
    /// Position in the analysis.
    pub at: usize,
    /// The rank.
    pub rank: &'a Rank,
    /// The class that stands for its workload.
    pub class: &'a Class,
    /// The steps of the workload that count, in order of time.
    pub steps: Vec<&'a Step>,
    /// Their length, ns.
    pub total: Ns,
    /// Their device work.
    pub work: Vec<Work>,
}

impl<'a> Counted<'a> {
    /// The rank's workload; `None` where no step counts.
    fn of(trace: &Trace, at: usize, rank: &'a Rank) -> Option<Self> {
        let class = rank.main_class().filter(|class| class.steady > 0 && !rank.timeline.collectives_only)?;
        let steps: Vec<&Step> = rank.workload(class).steps().collect();
        let total: Ns = steps.iter().map(|step| step.window.len()).sum();
        (total > 0).then(|| Self { at, rank, class, total, work: device::of(trace, rank, &steps), steps })
    }

    /// A cost of device operations that its change shortens; `bounds` are the least and the most that it brings.
    pub fn of_work<'w>(
        &self,
        kind: Kind,
        layer: Layer,
        work: impl IntoIterator<Item = &'w Work>,
        (total, bounds): (Ns, (Ns, Ns)),
        edits: Vec<Edit>,
    ) -> Cost {
        let (mut ops, mut longest) = (Vec::new(), 0);
        for one in work {
            ops.push(one.at);
            longest = one.dur.max(longest);
        }
        Cost {
            kind,
            layer,
            ranks: vec![self.at],
            rank: self.rank.rank,
            total,
            of: self.total,
            apart: 0,
            steps: self.steps.len(),
            count: ops.len(),
            longest,
            next: Vec::new(),
            idle: Vec::new(),
            ops,
            edits: edits.into_iter().map(|edit| (self.at, edit)).collect(),
            bounds,
            occurs: Occurs::Throughout,
            inherent: false,
        }
    }

    /// Share of the counted time.
    pub fn share(&self, ns: Ns) -> f64 {
        ns as f64 / self.total.max(1) as f64
    }

    /// From the first counted step to the last.
    pub fn window(&self) -> Span {
        let ends = self.steps.first().zip(self.steps.last());
        ends.map_or(Span::new(0, 0), |(first, last)| Span::new(first.window.start, last.window.end))
    }
}

/// A capture as generators see it.
pub struct Population<'a> {
    /// The capture.
    pub trace: &'a Trace,
    /// Its analysis.
    pub analysis: &'a Analysis,
    /// Ranks with steps that count.
    pub ranks: Vec<Counted<'a>>,
}

impl<'a> Population<'a> {
    /// The ranks of a capture with their counted steps.
    pub fn of(trace: &'a Trace, analysis: &'a Analysis) -> Self {
        let ranks = analysis.ranks.par_iter().enumerate();
        let ranks = ranks.filter_map(|(at, rank)| Counted::of(trace, at, rank)).collect();
        Self { trace, analysis, ranks }
    }

    /// A name.
    pub fn text(&self, name: model::StringId) -> &'a str {
        self.trace.strings.get(name)
    }

    /// Costs of single ranks, made one: the rank with the largest share stands for those that have at least half as much.
    pub fn across(&self, mut found: Vec<Cost>) -> Option<Cost> {
        found.sort_by(|a, b| b.share().total_cmp(&a.share()).then(a.ranks.cmp(&b.ranks)));
        let mut rest = found.into_iter();
        let mut cost = rest.next()?;
        let least = cost.share() / 2.0;
        for other in rest.take_while(|other| other.share() >= least) {
            cost.ranks.extend(other.ranks);
            cost.edits.extend(other.edits);
        }
        Some(cost)
    }

    /// Cores of the device of a rank, if the capture or the data sheet of its chip says so.
    pub fn cores(&self, rank: &Rank) -> Option<u64> {
        let own = self.trace.devices.iter().find(|d| d.process == rank.process && d.ordinal == rank.device);
        let device = own.or(self.trace.devices.first())?;
        let chip = || self.analysis.chips.get(&device.name?)?.cores;
        device.cores.or_else(chip).map(u64::from).filter(|cores| *cores > 0)
    }
}
