//! Whether two runs went different ways or only had different settings (method §6.5).
//!
//! A path is what no setting of the run names: which kernels a layer has, how they are launched, who waits for whom. It is
//! counted per step or per layer, so that more steps or more layers are no other path. Beside it stand the settings.

use model::manifest::{FIELDS, Group};

use super::{
    align::{Alignment, Move, Part},
    chosen::Chosen,
    contract::rule::{self, Status},
};
use crate::{
    analysis::{CopyDir, GraphMode, OpKind},
    platform::HostCall,
};

/// The field that says how graphs are used.
const GRAPH_MODE: &str = "software.graph_mode";

/// A trait of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Slots of a layer that are not one kernel of one operator on both sides.
    Fusion,
    /// Kernels of a layer.
    KernelsPerLayer,
    /// How much of a step is replayed from graphs.
    Graph,
    /// Graph launches per step.
    GraphLaunches,
    /// Launch calls per step, those of graphs included.
    Launches,
    /// Calls per step in which the host blocks until the device is done.
    Waits,
    /// Copies per step between host and device.
    HostCopies,
    /// Collectives and peer transfers per step.
    Collectives,
    /// Compilation, tuning and graph captures per step that counts.
    Compilation,
    /// Allocator calls per step.
    Allocation,
}

impl Feature {
    /// All, in report order.
    pub const ALL: [Self; 10] = [
        Self::Fusion,
        Self::KernelsPerLayer,
        Self::Graph,
        Self::GraphLaunches,
        Self::Launches,
        Self::Waits,
        Self::HostCopies,
        Self::Collectives,
        Self::Compilation,
        Self::Allocation,
    ];

    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Fusion => "fusion",
            Self::KernelsPerLayer => "kernels_per_layer",
            Self::Graph => "graph_mode",
            Self::GraphLaunches => "graph_launches_per_step",
            Self::Launches => "launches_per_step",
            Self::Waits => "host_waits_per_step",
            Self::HostCopies => "host_copies_per_step",
            Self::Collectives => "collectives_per_step",
            Self::Compilation => "compilation_per_step",
            Self::Allocation => "allocator_calls_per_step",
        }
    }
}

/// A trait on both sides; a side that cannot show it has none.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Trait<K> {
    /// What it is.
    pub key: K,
    /// The first side's.
    pub a: Option<String>,
    /// The second side's.
    pub b: Option<String>,
    /// Whether they are the same, if both show it.
    pub same: Option<bool>,
}

/// Paths and settings of two sides.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Signatures {
    /// Traits of the path.
    pub path: Vec<Trait<Feature>>,
    /// Settings by the field of the manifest that states them, those that any side states.
    pub settings: Vec<Trait<&'static str>>,
}

/// What the two signatures say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// Same path, same settings: hardware, or how good the kernels are.
    Platform,
    /// Another path at the same settings: mechanism or maturity.
    Path,
    /// The same path at other settings: run one side with the other's before anything is said of platforms.
    Settings,
    /// Both differ.
    Both,
}

impl Reading {
    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Platform => "same_path_same_configuration",
            Self::Path => "other_path",
            Self::Settings => "other_configuration",
            Self::Both => "other_path_and_configuration",
        }
    }
}

impl Signatures {
    /// Of two sides that are aligned.
    pub fn of(sides: &[Chosen<'_>; 2], alignment: &Alignment) -> Self {
        let counts = sides.map(|side| Counts::of(&side));
        let told = |feature: Feature, n: usize| match feature {
            Feature::Fusion => fusion(alignment, n),
            Feature::KernelsPerLayer => (alignment.layers > 0).then(|| alignment.per_layer(n).to_string()),
            Feature::Graph => graph(sides[n].class.graph).map(str::to_owned),
            _ => counts[n].per_step(feature),
        };
        let path = Feature::ALL.map(|key| {
            let (a, b) = (told(key, 0), told(key, 1));
            // The same slots differ on the two sides wherever there are any.
            let equal = if key == Feature::Fusion { a.as_deref() == Some("") } else { a == b };
            Trait { key, same: (a.is_some() && b.is_some()).then_some(equal), a, b }
        });
        let stated = |key: &str, n: usize| {
            let value = sides[n].trace.manifest.value(key);
            // What a run does not say of its graphs its steps show.
            value.or_else(|| sides[n].class.graph.stated().filter(|_| key == GRAPH_MODE)).map(str::to_owned)
        };
        let chosen = FIELDS.iter().filter(|field| {
            matches!(field.group, Group::Precision | Group::Workload | Group::Parallel | Group::Caps | Group::Tuning)
                || field.key == GRAPH_MODE
        });
        let settings = chosen.map(|field| {
            let (a, b) = (stated(field.key, 0), stated(field.key, 1));
            let same = match rule::status(field, a.as_deref(), b.as_deref()) {
                Status::Unknown => None,
                status => Some(status != Status::Different),
            };
            Trait { key: field.key, a, b, same }
        });
        Self {
            path: path.into_iter().filter(|t| t.a.is_some() || t.b.is_some()).collect(),
            settings: settings.filter(|t| t.a.is_some() || t.b.is_some()).collect(),
        }
    }

    /// What both together say.
    pub fn reading(&self) -> Reading {
        let path = self.path.iter().any(|t| t.same == Some(false));
        let settings = self.settings.iter().any(|t| t.same == Some(false));
        match (path, settings) {
            (false, false) => Reading::Platform,
            (true, false) => Reading::Path,
            (false, true) => Reading::Settings,
            (true, true) => Reading::Both,
        }
    }
}

/// The operators of a layer's slots that are not the same kernel on both sides, as this side has them.
fn fusion(alignment: &Alignment, side: usize) -> Option<String> {
    let odd = alignment.slots.iter().filter(|s| s.part == Part::Layer && !s.rare && s.by != Some(Move::Match));
    let own = odd.map(|slot| {
        let ops = if side == 0 { &slot.a } else { &slot.b };
        if ops.is_empty() { "–".to_owned() } else { ops.iter().map(|op| op.name()).collect::<Vec<_>>().join(" ") }
    });
    (alignment.layers > 0).then(|| own.collect::<Vec<_>>().join(", "))
}

fn graph(mode: GraphMode) -> Option<&'static str> {
    match mode {
        GraphMode::Eager => Some("eager"),
        GraphMode::Piecewise => Some("piecewise"),
        GraphMode::Full => Some("full"),
        GraphMode::Unknown => None,
    }
}

/// What happened in the steps of one side that count.
#[derive(Default)]
struct Counts {
    steps: u64,
    has_host: bool,
    has_device: bool,
    graph_launches: u64,
    launches: u64,
    waits: u64,
    copies: u64,
    collectives: u64,
    compilation: u64,
    allocation: u64,
}

impl Counts {
    fn of(side: &Chosen<'_>) -> Self {
        let timeline = &side.rank.timeline;
        let mut counts =
            Self { has_host: !timeline.calls.is_empty(), has_device: !timeline.ops.is_empty(), ..Self::default() };
        for step in side.steps() {
            counts.steps += 1;
            for op in side.rank.ops_of(step) {
                counts.copies += u64::from(matches!(op.kind, OpKind::Copy(CopyDir::HtoD | CopyDir::DtoH)));
                counts.collectives += u64::from(matches!(op.kind, OpKind::Comm | OpKind::Copy(CopyDir::PtoP)));
                if let Some(call) = timeline.call(op).filter(|_| op.first_of_call) {
                    counts.launches += 1;
                    counts.graph_launches += u64::from(call.kind == HostCall::GraphLaunch);
                }
            }
            for call in timeline.calls_between(step.window.start, step.window.end) {
                counts.waits += u64::from(call.blocking);
                counts.compilation += u64::from(call.kind.is_compile());
                counts.allocation += u64::from(call.kind == HostCall::Alloc);
            }
        }
        counts
    }

    /// Mean per step with one decimal: a step more or less at the ends of a capture is no other path.
    fn per_step(&self, feature: Feature) -> Option<String> {
        let (seen, count) = match feature {
            Feature::GraphLaunches => (self.has_host, self.graph_launches),
            Feature::Launches => (self.has_host, self.launches),
            Feature::Waits => (self.has_host, self.waits),
            Feature::Compilation => (self.has_host, self.compilation),
            Feature::Allocation => (self.has_host, self.allocation),
            Feature::HostCopies => (self.has_device, self.copies),
            Feature::Collectives => (self.has_device, self.collectives),
            Feature::Fusion | Feature::KernelsPerLayer | Feature::Graph => (false, 0),
        };
        let tenths = (count * 10 + self.steps / 2).checked_div(self.steps).filter(|_| seen)?;
        Some(format!("{}.{}", tenths / 10, tenths % 10))
    }
}
