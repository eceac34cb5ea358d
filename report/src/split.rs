//! How the time of a step divides into layers, as far as anything was recorded of it: the same for the report and the terminal.

use model::{Ns, StepPart};

use super::{
    model::{Capture, ClassPart, RankPart},
    units,
};
use diagnosis::analysis::Layer;

/// What stands for a number that nobody recorded.
pub const UNKNOWN: &str = "–";

/// The layers of a step and the whole of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Time of each layer in the order of [`Layer::ALL`], ns over `steps`; `None` where nobody recorded it.
    pub layers: [Option<Ns>; Layer::ALL.len()],
    /// Time of them all, ns over `steps`.
    pub total: Ns,
    /// Steps that the times are of.
    pub steps: usize,
}

impl Split {
    /// That of a class; where only the collectives of its rank were kept, from what the profiler summed of whole steps, and
    /// without such sums from what lies between the first collective and the last.
    pub fn of(capture: &Capture, rank: &RankPart, class: &ClassPart) -> Self {
        Self::of_sums(capture, rank).unwrap_or_else(|| {
            let known = |(layer, ns)| rank.knows(layer).then_some(ns);
            let mut all = Layer::ALL.into_iter().zip(class.layers()).map(known);
            let layers = std::array::from_fn(|_| all.next().flatten());
            Self { layers, total: class.total, steps: class.used }
        })
    }

    fn of_sums(capture: &Capture, rank: &RankPart) -> Option<Self> {
        let mut totals = capture.job_sums.ranks.iter().filter(|_| rank.only_collectives);
        let total = totals.find(|total| total.rank == rank.rank)?;
        let [computing, exposed, free] =
            [StepPart::Computing, StepPart::ExposedCommunication, StepPart::Free].map(|part| total.mean(part));
        let (computing, exposed, free) = (computing?, exposed?, free?);
        let layers = Layer::ALL.map(|layer| match layer {
            Layer::Operator => Some(computing),
            Layer::Runtime => None,
            Layer::Communication => Some(exposed),
            Layer::Measurement => Some(free),
        });
        Some(Self { layers, total: computing.checked_add(exposed)?.checked_add(free)?, steps: 1 })
    }

    /// Mean time of each layer per step, µs.
    pub fn means(&self) -> [String; Layer::ALL.len()] {
        self.layers.map(|ns| ns.map_or_else(|| UNKNOWN.to_owned(), |ns| self.mean(ns)))
    }

    /// Mean time of the whole step, µs.
    pub fn whole(&self) -> String {
        self.mean(self.total)
    }

    fn mean(&self, ns: Ns) -> String {
        units::tenths(units::mean_tenths(ns, self.steps))
    }

    /// Share of each layer.
    pub fn shares(&self) -> [String; Layer::ALL.len()] {
        self.layers.map(|ns| ns.map_or_else(|| UNKNOWN.to_owned(), |ns| units::share_of(ns, self.total)))
    }
}

impl RankPart {
    /// Whether a capture can say how much of the rank's time a layer takes: of one of which only collectives were kept nobody
    /// knows what it computed and what its host did.
    pub fn knows(&self, layer: Layer) -> bool {
        !self.only_collectives || matches!(layer, Layer::Communication | Layer::Measurement)
    }
}
