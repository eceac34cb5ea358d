//! The difference of two captures that may be compared: which steps, how they correspond, where the time between them lies.

use model::Ns;

use super::{
    align::Alignment,
    chosen::{self, Captured},
    path::Signatures,
    terms::{self, Term},
    waterfall::Waterfall,
};
use crate::{
    analysis::{AnchorKind, Class, Confidence, Rank},
    platform::Stage,
};

/// The steps that were compared on one side.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Compared {
    /// Rank in its job.
    pub rank: u32,
    /// Key of the class.
    pub class: String,
    /// Steps of it that count.
    pub steps: usize,
    /// Their median, ns.
    pub median: Ns,
    /// Their mean, ns.
    pub mean: Ns,
    /// What marks them.
    pub anchor: AnchorKind,
    /// How sure that is.
    pub confidence: Confidence,
    /// Whether host calls were recorded, by which alone idle time is explained.
    pub has_host: bool,
    /// Whether probes of its device are at hand.
    pub has_probes: bool,
    /// Whether the steps are known to be decode.
    pub is_decode: bool,
    /// Layers that the run says its model has.
    pub layers: Option<usize>,
}

impl Compared {
    /// These steps in the capture that they were taken from; `None` in another one.
    pub fn find<'a>(&self, (trace, analysis): Captured<'a>) -> Option<chosen::Chosen<'a>> {
        let (index, rank) = analysis.ranks.iter().enumerate().find(|(_, rank)| rank.rank == self.rank)?;
        let class = rank.classes.iter().find(|class| class.key == self.class && class.steady > 0)?;
        Some(chosen::Chosen { trace, analysis, index, rank, class })
    }

    fn of(side: &chosen::Chosen<'_>) -> Self {
        let (rank, class): (&Rank, &Class) = (side.rank, side.class);
        Self {
            rank: rank.rank,
            class: class.key.clone(),
            steps: class.steady,
            median: class.p50,
            mean: class.total / i64::try_from(class.steady.max(1)).unwrap_or(i64::MAX),
            anchor: rank.anchor.kind,
            confidence: rank.anchor.confidence,
            has_host: !rank.timeline.calls.is_empty(),
            has_probes: !side.trace.probes.rows.is_empty(),
            is_decode: class.stage == Stage::Decode,
            layers: side.trace.manifest.value("model.layers").and_then(|n| n.parse().ok()),
        }
    }
}

/// Two captures beside each other.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Difference {
    /// The steps of each side.
    pub sides: [Compared; 2],
    /// How their operations correspond.
    pub alignment: Alignment,
    /// From the first to the second.
    pub waterfall: Waterfall,
    /// What the difference is made of, the largest term first.
    pub terms: Vec<Term>,
    /// Paths and settings.
    pub signatures: Signatures,
}

impl Difference {
    /// Of two captures; `None` where they have no steps of one stage and batch. `per_token` as in [`Waterfall::of`].
    pub fn of(a: Captured<'_>, b: Captured<'_>, per_token: bool) -> Option<Self> {
        Some(Self::of_sides(chosen::pair(a, b, per_token)?, per_token))
    }

    /// Of steps that are chosen.
    pub fn of_sides(sides: [chosen::Chosen<'_>; 2], per_token: bool) -> Self {
        let alignment = Alignment::of(&sides);
        let waterfall = Waterfall::of(&sides, &alignment, per_token);
        let terms = terms::terms(&sides, &alignment, &waterfall);
        let signatures = Signatures::of(&sides, &alignment);
        Self { sides: sides.map(|side| Compared::of(&side)), alignment, waterfall, terms, signatures }
    }
}
