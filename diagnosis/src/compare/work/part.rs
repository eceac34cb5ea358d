//! Sides of the work of a step on which two captures are held against each other.

use std::collections::BTreeMap;

use super::{kernels::Tally, profile::Profile};
use crate::platform::{CanonicalOp, OpClass, Stage};

/// One side of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// What steps are for: training, prompts, decode.
    Stage,
    /// Sequences of a step.
    Sequences,
    /// Rows that its kernels work on: tokens.
    Tokens,
    /// Layers, by what each has once.
    Layers,
    /// Attentions of a step.
    Attention,
    /// The widest matrix product: hidden size and vocabulary.
    Width,
    /// Elements of all weights that products read.
    Weights,
    /// Elements of a token in the cache: heads of keys and their size.
    CacheWidth,
    /// Products of experts.
    Experts,
    /// Number formats of the products.
    Formats,
    /// Number format of the cache.
    Cache,
    /// Keys that a sequence attends to.
    Context,
    /// Blocks that equal kernels of equal devices were launched with.
    Grids,
    /// Exchange with other ranks.
    Exchange,
    /// Adapters beside the weights.
    Adapters,
    /// Products and attentions of a step.
    Operations,
    /// What the time of the kernels goes to, by family.
    Mix,
    /// Waiting for requests.
    Requests,
    /// What else was recorded, and slows the host.
    Recording,
}

impl Part {
    /// All, in report order.
    pub const ALL: [Self; 19] = [
        Self::Stage,
        Self::Sequences,
        Self::Tokens,
        Self::Layers,
        Self::Attention,
        Self::Width,
        Self::Weights,
        Self::CacheWidth,
        Self::Experts,
        Self::Formats,
        Self::Cache,
        Self::Context,
        Self::Grids,
        Self::Exchange,
        Self::Adapters,
        Self::Operations,
        Self::Mix,
        Self::Requests,
        Self::Recording,
    ];

    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Stage => "stage",
            Self::Sequences => "sequences",
            Self::Tokens => "tokens",
            Self::Layers => "layers",
            Self::Attention => "attention",
            Self::Width => "width",
            Self::Weights => "weights",
            Self::CacheWidth => "cache_width",
            Self::Experts => "experts",
            Self::Formats => "formats",
            Self::Cache => "cache",
            Self::Context => "context",
            Self::Grids => "grids",
            Self::Exchange => "exchange",
            Self::Adapters => "adapters",
            Self::Operations => "operations",
            Self::Mix => "mix",
            Self::Requests => "requests",
            Self::Recording => "recording",
        }
    }

    /// Distance from which on it is other work; own values. Counts that each layer has once leave no choice, rows may be padded
    /// to the next size of a graph, a population of requests varies by some.
    fn limit(self, p: &Profile, q: &Profile) -> f64 {
        let layered = p.layers().is_some() && q.layers().is_some();
        match self {
            // A graph pads the rows of as many sequences to the next size that was captured.
            Self::Tokens if p.sequences.is_some() && p.sequences == q.sequences => 0.45,
            Self::Tokens => 0.15,
            Self::Attention => 0.5,
            Self::Layers => 0.02,
            Self::Weights | Self::Formats | Self::Requests | Self::Recording => 0.1,
            Self::Context | Self::Grids => 0.2,
            // Where layers are counted, products may be fused otherwise on the other side.
            Self::Operations if layered && !(p.whole && q.whole) => 0.5,
            Self::Operations if p.whole && q.whole => 0.05,
            Self::Operations => 0.1,
            Self::Mix if layered => 0.85,
            Self::Mix => 0.6,
            _ => 0.0,
        }
    }

    /// Whether it says how much work of which kind there is; what it was recorded with and what there is none of does not.
    pub fn is_structure(self) -> bool {
        matches!(
            self,
            Self::Sequences
                | Self::Tokens
                | Self::Layers
                | Self::Width
                | Self::Weights
                | Self::Grids
                | Self::Operations
                | Self::Mix
        )
    }

    /// Whether it is an amount of work, by which times can be divided, and no kind of work.
    pub fn is_amount(self) -> bool {
        matches!(
            self,
            Self::Sequences
                | Self::Tokens
                | Self::Layers
                | Self::Attention
                | Self::Weights
                | Self::Context
                | Self::Grids
                | Self::Operations
        )
    }

    /// Fields that are the same on both sides where this part is.
    pub fn proves(self) -> &'static [&'static str] {
        match self {
            Self::Sequences => &["caps.batch"],
            Self::Tokens => &["caps.batch", "workload.speculative"],
            Self::Layers => &["model.layers"],
            Self::Width => &["model.hidden"],
            Self::CacheWidth => &["model.heads"],
            Self::Formats => &["precision.weights", "precision.activations"],
            Self::Cache => &["precision.kv"],
            Self::Context => &["workload.prompt_len"],
            Self::Exchange => &["parallel.tp", "parallel.ep"],
            Self::Adapters => &["model.lora"],
            _ => &[],
        }
    }

    /// Fields that a pair may study, by which this part differs.
    pub fn studied_by(self) -> &'static [&'static str] {
        match self {
            Self::Sequences | Self::Tokens => &["caps.batch"],
            Self::Formats => &["precision.weights", "precision.activations", "precision.quantization"],
            Self::Cache => &["precision.kv"],
            Self::Weights | Self::Width | Self::CacheWidth | Self::Exchange => &["parallel.tp", "parallel.ep"],
            Self::Grids => &["parallel.tp", "parallel.ep", "caps.batch", "precision.weights", "precision.activations"],
            Self::Mix => &["parallel.tp", "caps.batch", "precision.weights"],
            _ => &[],
        }
    }
}

/// A part on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Parted {
    /// Which.
    pub part: Part,
    /// What A shows.
    pub a: Option<String>,
    /// What B shows.
    pub b: Option<String>,
    /// How far they are apart, 0 where they are equal, 1 where they have nothing in common; `None` where one side does not show
    /// it.
    pub distance: Option<f64>,
    /// The most that the same work may be apart.
    pub limit: f64,
}

impl Parted {
    /// A part of two profiles; `None` where neither shows it.
    pub fn of(part: Part, p: &Profile, q: &Profile) -> Option<Self> {
        let (a, b, distance) = measure(part, p, q);
        let limit = part.limit(p, q);
        (a.is_some() || b.is_some()).then_some(Self { part, a, b, distance, limit })
    }

    /// Whether this is other work.
    pub fn differs(&self) -> bool {
        self.distance.is_some_and(|distance| distance > self.limit)
    }

    /// Whether both sides show that there is none of it.
    pub fn is_nothing(&self) -> bool {
        [&self.a, &self.b].iter().all(|side| side.as_deref() == Some("0"))
    }
}

type Measured = (Option<String>, Option<String>, Option<f64>);

/// A part that is a number, apart by a share of the larger one.
fn count<N: Copy + PartialEq + std::fmt::Display + Into<f64>>(a: Option<N>, b: Option<N>) -> Measured {
    let distance = a.zip(b).map(|(a, b)| apart(a.into(), b.into()));
    (a.map(|n| n.to_string()), b.map(|n| n.to_string()), distance)
}

fn apart(a: f64, b: f64) -> f64 {
    let most = a.abs().max(b.abs());
    if most > 0.0 { (a - b).abs() / most } else { 0.0 }
}

/// A part that is the same or is not.
fn word(a: Option<String>, b: Option<String>) -> Measured {
    let distance = a.as_ref().zip(b.as_ref()).map(|(a, b)| if a == b { 0.0 } else { 1.0 });
    (a, b, distance)
}

fn measure(part: Part, p: &Profile, q: &Profile) -> Measured {
    let whole = |n: Option<u64>| n.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let both = |of: &dyn Fn(&Profile) -> Option<u64>| count(whole(of(p)), whole(of(q)));
    match part {
        Part::Stage => {
            let (a, b, _) = word(stage(p), stage(q));
            // Decode beside chunks of prompts is decode of a population that both may have.
            let distance = a.as_ref().zip(b.as_ref()).map(|_| if stages_meet(p.stage, q.stage) { 0.0 } else { 1.0 });
            (a, b, distance)
        }
        Part::Sequences => {
            let told =
                |own: &Profile| own.sequences.map(|(a, b)| if a == b { a.to_string() } else { format!("{a}…{b}") });
            let distance = p.sequences.zip(q.sequences).map(|(a, b)| if a.0 <= b.1 && b.0 <= a.1 { 0.0 } else { 1.0 });
            (told(p), told(q), distance)
        }
        Part::Tokens => both(&|own| own.rows.filter(|_| !own.whole)),
        Part::Layers => both(&|own| own.layers().filter(|_| !own.whole)),
        Part::Attention => both(&|own| own.attentions().filter(|n| !own.whole || *n == 0)),
        Part::Width => width(p, q),
        Part::Weights => both(&|own| own.kernels.weights()),
        Part::CacheWidth => both(&|own| own.kernels.cached.last().and_then(|n| u64::try_from(*n).ok())),
        Part::Experts => {
            let grouped = |own: &Profile| own.kernels.calls(|op| op == CanonicalOp::GroupedGemm) > 0;
            let said = |own: &Profile| {
                (grouped(own) || own.is_known()).then(|| if grouped(own) { "experts" } else { "none" }.to_owned())
            };
            let (a, b, distance) = word(said(p), said(q));
            if [&a, &b].iter().all(|side| side.as_deref() != Some("experts")) {
                (None, None, None)
            } else {
                (a, b, distance)
            }
        }
        Part::Formats => formats(p, q),
        Part::Cache => {
            let said = |own: &Profile| match own.kernels.cache.as_slice() {
                [] => None,
                all => Some(all.join(" ")),
            };
            word(said(p), said(q))
        }
        Part::Context => both(&|own| own.kernels.context.last().and_then(|n| u64::try_from(*n).ok())),
        Part::Grids => grids(p, q),
        Part::Exchange => exchange(p, q),
        Part::Adapters => {
            let said = |own: &Profile| {
                let seen = own.kernels.adapters > 0;
                (seen || own.is_known()).then(|| if seen { "adapters" } else { "none" }.to_owned())
            };
            word(said(p), said(q))
        }
        Part::Operations => both(&|own| {
            let calls = own.kernels.calls(|op| op.class() == OpClass::Matrix || super::profile::attends(op));
            let any = || own.kernels.calls(|_| true);
            if calls > 0 { Some(calls) } else { Some(any()).filter(|n| *n > 0 && own.whole) }
        }),
        Part::Mix => mix(p, q),
        Part::Requests => {
            let said = |own: &Profile| Some(percent(own.awaits));
            if p.awaits == 0.0 && q.awaits == 0.0 {
                (None, None, None)
            } else {
                (said(p), said(q), Some((p.awaits - q.awaits).abs()))
            }
        }
        Part::Recording => {
            let said = |own: &Profile| {
                own.switches.as_ref().map(|on| if on.is_empty() { "times".to_owned() } else { on.join(", ") })
            };
            let more = |one: &Profile, other: &Profile| one.switches > other.switches && one.host > other.host;
            let slowed = more(p, q) || more(q, p);
            let distance = p.switches.as_ref().zip(q.switches.as_ref());
            let distance = distance.map(|(a, b)| if a != b && slowed { (p.host - q.host).abs() } else { 0.0 });
            (said(p), said(q), distance)
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn stage(own: &Profile) -> Option<String> {
    (own.stage != Stage::Unknown).then(|| own.stage.name().to_owned())
}

fn stages_meet(a: Stage, b: Stage) -> bool {
    a == b || matches!((a, b), (Stage::Decode, Stage::Mixed) | (Stage::Mixed, Stage::Decode))
}

/// The widest product of each side: the same where each has a product of the other's. Widths are compared without regard to how
/// products are fused.
fn width(p: &Profile, q: &Profile) -> Measured {
    let [of_p, of_q] = [p, q].map(|own| own.kernels.widest());
    let told = |own: Option<(i64, i64)>| own.map(|(inputs, outputs)| format!("{inputs} × {outputs}"));
    let has = |own: &Profile, one: Option<(i64, i64)>| {
        one.is_some_and(|one| own.kernels.products.keys().any(|(_, inputs, outputs)| (*inputs, *outputs) == one))
    };
    let distance = of_p.and(of_q).map(|_| if has(p, of_q) || has(q, of_p) { 0.0 } else { 1.0 });
    (told(of_p), told(of_q), distance)
}

/// Shares of the products' time by number format, where they are known of nearly all of it.
fn formats(p: &Profile, q: &Profile) -> Measured {
    let shares = |own: &Profile| -> Option<BTreeMap<&'static str, f64>> {
        let all: f64 = own.kernels.formats.values().map(|ns| *ns as f64).sum();
        let unknown = own.kernels.formats.get("").copied().unwrap_or(0) as f64;
        let known = all > 0.0 && unknown <= 0.2 * all;
        known.then(|| {
            own.kernels
                .formats
                .iter()
                .filter(|(f, _)| !f.is_empty())
                .map(|(f, ns)| (*f, *ns as f64 / (all - unknown)))
                .collect()
        })
    };
    let (a, b) = (shares(p), shares(q));
    let told = |own: &Option<BTreeMap<&'static str, f64>>| {
        own.as_ref()
            .map(|own| own.iter().map(|(f, share)| format!("{f} {}", percent(*share))).collect::<Vec<_>>().join(", "))
    };
    let distance = a.as_ref().zip(b.as_ref()).map(|(a, b)| {
        let common: f64 = a.iter().map(|(f, share)| share.min(b.get(f).copied().unwrap_or(0.0))).sum();
        (1.0 - common).max(0.0)
    });
    // On two devices products of different formats take different shares: what counts is which there are.
    let distance = distance.map(|far| {
        let main = |own: &Option<BTreeMap<&'static str, f64>>| -> Vec<&'static str> {
            own.iter().flatten().filter(|(_, share)| **share >= 0.1).map(|(f, _)| *f).collect()
        };
        if p.device != q.device && main(&a) == main(&b) { 0.0 } else { far }
    });
    (told(&a), told(&b), distance)
}

/// By how much blocks of equal kernels differ, weighted with the time they have on both sides. Other devices are given other
/// numbers of blocks for the same work.
fn grids(p: &Profile, q: &Profile) -> Measured {
    if p.device.is_none() || p.device != q.device {
        return (None, None, None);
    }
    let per_call =
        |tally: &Tally| (tally.gridded == tally.calls && tally.blocks > 0.0).then(|| tally.blocks / tally.calls as f64);
    let share = |tally: &Tally, own: &Profile| tally.ns as f64 / own.kernels.busy.max(1) as f64;
    let (mut weight, mut far, mut sums) = (0.0, 0.0, [0.0, 0.0]);
    for (name, a) in &p.kernels.names {
        let Some(b) = q.kernels.names.get(name) else { continue };
        let Some((of_a, of_b)) = per_call(a).zip(per_call(b)) else { continue };
        let own = share(a, p).min(share(b, q));
        weight += own;
        far += own * (of_b / of_a).ln().abs();
        sums = [sums[0] + a.blocks, sums[1] + b.blocks];
    }
    if weight < 0.5 {
        return (None, None, None);
    }
    (Some(format!("{:.0}", sums[0])), Some(format!("{:.0}", sums[1])), Some(far / weight))
}

fn exchange(p: &Profile, q: &Profile) -> Measured {
    let said = |own: &Profile| {
        let groups = own.kernels.groups.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        match own.kernels.exchanges {
            0 => own.is_known().then(|| "none".to_owned()),
            _ if groups.is_empty() => Some("some".to_owned()),
            _ => Some(format!("groups of {groups}")),
        }
    };
    let (a, b, distance) = word(said(p), said(q));
    let sized = |own: &Profile| !own.kernels.groups.is_empty();
    // Kernels of an engine's own do not say how many take part.
    let open = p.kernels.exchanges > 0 && q.kernels.exchanges > 0 && !(sized(p) && sized(q));
    (a, b, if open { Some(0.0) } else { distance })
}

/// How much of the kernels' time goes to other families of operators.
fn mix(p: &Profile, q: &Profile) -> Measured {
    if !p.is_known() || !q.is_known() {
        return (None, None, None);
    }
    let families = |own: &Profile| {
        let mut of: BTreeMap<OpClass, f64> = BTreeMap::new();
        for (op, tally) in own
            .kernels
            .ops
            .iter()
            .filter(|(op, _)| !matches!(op.class(), OpClass::Comm | OpClass::Wait | OpClass::Format))
        {
            *of.entry(op.class()).or_default() += tally.ns as f64;
        }
        let all: f64 = of.values().sum::<f64>().max(1.0);
        of.into_iter().map(|(class, ns)| (class, ns / all)).collect::<BTreeMap<_, _>>()
    };
    let (a, b) = (families(p), families(q));
    let told = |own: &BTreeMap<OpClass, f64>| {
        let first = own.iter().max_by(|x, y| x.1.total_cmp(y.1));
        first.map(|(class, share)| format!("{} {}", class.name(), percent(*share)))
    };
    let common: f64 = a.iter().map(|(class, share)| share.min(b.get(class).copied().unwrap_or(0.0))).sum();
    (told(&a), told(&b), Some((1.0 - common).max(0.0)))
}
