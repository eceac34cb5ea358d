//! The first statement: where the time of a step is. It rests on counting alone, so it stands wherever device work has times.

use std::collections::BTreeMap;

use model::Ns;

use super::{VerdictLayer, headline::largest};
use crate::{
    analysis::{AnchorKind, Bucket, Class, Layer, OpKind, Rank, Workload},
    diagnose::{rule::Context, signals::late},
    i18n::{Message, Text},
};

/// Where the time of the mean step of the workload is.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Place {
    /// The layer with the most time; undecided where that is idle time whose cause the capture does not show.
    pub layer: VerdictLayer,
    /// Its share of the step.
    pub share: f64,
    /// Share of every layer, in the order of [`Layer::ALL`].
    pub layers: [f64; 4],
    /// Names of the largest bucket of that layer, and of those that are as large.
    pub bucket: String,
    /// Its share of the step.
    pub part: f64,
    /// Share of the step in which the device was recorded to compute, copy or transfer.
    pub busy: f64,
    /// Rank that the statement is about: the one with the most time.
    pub rank: u32,
    /// Key of its class.
    pub class: String,
    /// Steps that count.
    pub steps: usize,
    /// Mean of their lengths, ns: what every share and gain of the report refers to.
    pub mean: Ns,
    /// Median of their lengths, ns.
    pub median: Ns,
    /// How long the mark of the only step lasts, ns, where the host alone works for most of it.
    #[serde(skip)]
    pub mark: Option<Ns>,
    /// The rank that this one waits for in half of its communication at least, and the share of the step.
    #[serde(skip)]
    pub waits_for: Option<(u32, f64)>,
    /// What the device did before a window that begins after a start-up, ns.
    #[serde(skip)]
    pub ahead: Option<Ns>,
    /// What takes longer than all that counts, and is no part of it.
    #[serde(skip)]
    pub outside: Option<Message>,
}

impl Place {
    /// Where the time of a class is; `None` without a step that counts.
    pub fn of(cx: &Context<'_>, rank: &Rank, class: &Class) -> Option<Self> {
        let workload = rank.workload(class);
        let total = workload.total();
        if total <= 0 || workload.steady() == 0 {
            return None;
        }
        let share = |pick: &dyn Fn(Bucket) -> bool| {
            workload.classes.iter().map(|class| class.sum(pick)).sum::<Ns>() as f64 / total as f64
        };
        // A blocking copy of which only the host's call was recorded: most of it may be the host's own.
        let unrecorded = !rank.timeline.ops.iter().any(|op| matches!(op.kind, OpKind::Copy(_)));
        let layers = Layer::ALL.map(|layer| share(&|bucket| bucket.layer() == layer));
        let (layer, most) = Layer::ALL.into_iter().zip(layers).rev().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let (bucket, part) = largest(cx, &workload, layer);
        Some(Self {
            layer: VerdictLayer::of(layer),
            share: most,
            layers,
            bucket,
            part,
            busy: share(&|bucket| !(bucket.is_idle() || unrecorded && matches!(bucket, Bucket::Copy(_)))),
            rank: rank.rank,
            class: class.key.clone(),
            steps: workload.steady(),
            mean: workload.mean(),
            median: workload.median(),
            mark: rank.lead.as_ref().filter(|lead| 2 * lead.alone() > lead.mark).map(|lead| lead.mark),
            waits_for: waits_for(cx, rank, &workload),
            ahead: ahead(rank),
            outside: None,
        })
    }
}

/// The rank that a rank waits for in half of its communication at least, and the share of all its steps.
fn waits_for(cx: &Context<'_>, rank: &Rank, workload: &Workload<'_>) -> Option<(u32, f64)> {
    let at = cx.analysis.ranks.iter().position(|own| std::ptr::eq(own, rank))?;
    let mut waited: BTreeMap<usize, Ns> = BTreeMap::new();
    for (late, ns) in workload.classes.iter().flat_map(|class| late::waited_for(cx.analysis, at, class)) {
        *waited.entry(late).or_default() += ns;
    }
    let communication = |class: &&Class| class.sum(|bucket| bucket.layer() == Layer::Communication);
    let communication: Ns = workload.classes.iter().map(communication).sum();
    let (late, ns) = waited.into_iter().max_by_key(|(late, ns)| (*ns, std::cmp::Reverse(*late)))?;
    let rank = cx.analysis.ranks.get(late).filter(|_| late != at && ns > 0 && 2 * ns >= communication)?.rank;
    Some((rank, ns as f64 / workload.total().max(1) as f64))
}

/// From the first operation of the device to the window, where operations lie before it.
fn ahead(rank: &Rank) -> Option<Ns> {
    let window = rank.steps.first().filter(|_| rank.anchor.kind == AnchorKind::WholeCapture)?.window;
    let first = rank.timeline.ops.first()?.start;
    (first < window.start).then(|| window.start - first)
}

impl VerdictLayer {
    /// What a verdict on a layer is called: of what the measurement could not tell it is none.
    pub fn of(layer: Layer) -> Self {
        match layer {
            Layer::Operator => Self::Operator,
            Layer::Runtime => Self::Runtime,
            Layer::Communication => Self::Communication,
            Layer::Measurement => Self::Undecided,
        }
    }

    /// Its name inside a sentence.
    pub fn words(self) -> Text {
        match self {
            Self::Operator => Text::new("operator", "算子"),
            Self::Runtime => Text::new("runtime", "运行时"),
            Self::Communication => Text::new("communication", "通信"),
            Self::Load => Text::new("load", "负载"),
            Self::Undecided => Text::new("undecided", "无法判定"),
            Self::None => Text::new("no layer", "无"),
        }
    }
}
