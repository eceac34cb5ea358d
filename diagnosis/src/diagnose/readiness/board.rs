//! The board: six areas of what a platform must do before work on decode bears fruit.

use model::{
    Area, EvidenceClass, Light,
    manifest::{self, Control, FIELDS, PRECISE, REPEATS},
};

use super::{
    super::{
        level::{self, NAMED, NOISE_STEPS},
        relations::Feeds,
    },
    Cell, Fact, Next, SCORED, Seen, cell, unknown,
};
use crate::analysis::{Bucket, Class, GraphMode, OpKind, Rank};

/// Share of the steps that count which may hold compilation before steps count as unstable; own value.
const UNSTABLE: f64 = 0.10;
/// Classes of evidence without which the hot path is not seen as a whole.
const NEEDED: [EvidenceClass; 4] =
    [EvidenceClass::Device, EvidenceClass::HostApi, EvidenceClass::Correlation, EvidenceClass::Graph];

/// Share of the greedy tokens of a reference that a run must give (MLPerf Inference asks for 99 % of its accuracy).
const AGREEMENT: f64 = 0.99;

/// Whether a field says that the numbers of a run are those of its reference. That something is stated is not enough.
fn is_right(field: &str, value: &str) -> bool {
    let (text, scale) = match value.trim().strip_suffix('%') {
        Some(percent) => (percent.trim(), 100.0),
        None => (value.trim(), 1.0),
    };
    match field {
        "precision.deviation" => PRECISE.iter().any(|begins| value.starts_with(begins)),
        "quality.token_agreement" => text.parse::<f64>().is_ok_and(|share| share / scale >= AGREEMENT),
        _ => false,
    }
}

impl Seen<'_> {
    pub(super) fn run(&self) -> Cell<Area> {
        let operations = self.cx.analysis.integrity.device_ops;
        if !self.has(EvidenceClass::Device) {
            return unknown(Area::Run, Fact::NothingRan, Next::Collect(EvidenceClass::Device));
        }
        let steps = self.steps();
        let mut facts = vec![Fact::Ran { operations, steps }];
        let mut wrong = Vec::new();
        match level::held_to_reference(self.cx) {
            Some((field, value)) => {
                facts.push(Fact::Reference { field, value: value.to_owned() });
                if manifest::is_wrong(value) {
                    wrong.push((Light::Red, Next::Diverges));
                } else if !is_right(field, value) {
                    wrong.push((Light::Amber, Next::Reference));
                }
            }
            None => {
                facts.push(Fact::NoReference);
                wrong.push((Light::Amber, Next::Reference));
            }
        }
        if steps == 0 {
            wrong.push((Light::Amber, Next::Steps));
        }
        self.blame(&[Feeds::Area(Area::Run)], &mut facts, &mut wrong);
        cell(Area::Run, facts, wrong)
    }

    pub(super) fn graph(&self) -> Cell<Area> {
        let of = |mode: GraphMode| -> u64 {
            self.classes().filter(|(_, class)| class.graph == mode).map(|(_, class)| class.steady as u64).sum()
        };
        let [full, piecewise, eager] = [GraphMode::Full, GraphMode::Piecewise, GraphMode::Eager].map(of);
        if full + piecewise + eager == 0 || !(self.has(EvidenceClass::Graph) || self.has(EvidenceClass::Logs)) {
            return unknown(Area::Graph, Fact::Lacks(EvidenceClass::Graph), Next::Collect(EvidenceClass::Graph));
        }
        let mut facts = vec![Fact::Graphs { full, piecewise, eager }];
        let mut wrong = Vec::new();
        let launched = piecewise + eager > 0;
        let cells = [Feeds::Area(Area::Graph), Feeds::IfLaunched(Area::Graph)];
        self.blame(if launched { &cells } else { &cells[..1] }, &mut facts, &mut wrong);
        if launched {
            wrong.push((Light::Amber, Next::Graphs));
        }
        cell(Area::Graph, facts, wrong)
    }

    pub(super) fn compile_stability(&self) -> Cell<Area> {
        let steps = self.steps();
        if !self.has(EvidenceClass::HostApi) {
            return unknown(
                Area::CompileStability,
                Fact::Lacks(EvidenceClass::HostApi),
                Next::Collect(EvidenceClass::HostApi),
            );
        }
        let compiles = |(rank, class): (&Rank, &Class)| {
            let holds = |buckets: &[(Bucket, i64)]| buckets.iter().any(|(b, ns)| *b == Bucket::Compile && *ns > 0);
            rank.steady_steps(class).filter(|step| holds(&step.buckets)).count() as u64
        };
        let compiling: u64 = self.classes().map(compiles).sum();
        let mut facts = vec![Fact::Compiled { steps, compiling }];
        let mut wrong = Vec::new();
        if compiling as f64 > UNSTABLE * steps as f64 {
            wrong.push((Light::Red, Next::WarmUp));
        } else if compiling > 0 {
            wrong.push((Light::Amber, Next::WarmUp));
        }
        self.blame(&[Feeds::Area(Area::CompileStability)], &mut facts, &mut wrong);
        if steps == 0 {
            return unknown(Area::CompileStability, Fact::Compiled { steps, compiling }, Next::Steps);
        }
        if steps < NOISE_STEPS as u64 {
            wrong.push((Light::Amber, Next::Steps));
        }
        cell(Area::CompileStability, facts, wrong)
    }

    pub(super) fn communication(&self) -> Cell<Area> {
        let ranks = &self.cx.analysis.ranks;
        let world = self.cx.trace.manifest.count("parallel.world_size");
        let captured = Fact::Ranks { captured: ranks.len() as u64, world };
        let ops = ranks.iter().flat_map(|rank| &rank.timeline.ops).filter(|op| op.kind == OpKind::Comm).count() as u64;
        if ops == 0 {
            let next = match world.or_else(|| self.cx.trace.manifest.count(model::Manifest::RANKS_AT_LEAST)) {
                Some(2..) => Next::Collect(EvidenceClass::MultiRank),
                _ => Next::Distribute,
            };
            return unknown(Area::Communication, captured, next);
        }
        let estimated = ranks.iter().map(|rank| rank.collectives.estimated).sum();
        let mut facts = vec![captured, Fact::Collectives { seen: ops, estimated }];
        let mut wrong = Vec::new();
        self.blame(&[Feeds::Area(Area::Communication)], &mut facts, &mut wrong);
        // Of one rank nobody can tell a transfer from a wait for another one.
        if !self.has(EvidenceClass::MultiRank) {
            wrong.push((Light::Unknown, Next::Collect(EvidenceClass::MultiRank)));
        } else if estimated > 0 {
            wrong.push((Light::Amber, Next::Collect(EvidenceClass::PairDetail)));
        }
        cell(Area::Communication, facts, wrong)
    }

    pub(super) fn observability(&self) -> Cell<Area> {
        let analysis = self.cx.analysis;
        if !SCORED.into_iter().any(|class| self.has(class)) {
            return unknown(Area::Observability, self.score(), Next::Collect(EvidenceClass::Device));
        }
        let mut facts = vec![self.score()];
        let mut wrong = Vec::new();
        for class in NEEDED.into_iter().filter(|class| !self.has(*class)) {
            facts.push(Fact::Lacks(class));
            let blind = matches!(class, EvidenceClass::Device | EvidenceClass::HostApi);
            wrong.push((if blind { Light::Red } else { Light::Amber }, Next::Collect(class)));
        }
        if analysis.integrity.is_broken() || analysis.loss.forbids_causes() {
            facts.push(Fact::Broken);
            wrong.push((Light::Red, Next::Losses));
        }
        let lost = self.lost();
        if lost > 0 {
            facts.push(Fact::Lost(lost));
            wrong.push((Light::Amber, Next::Losses));
        }
        if let Some(named) = analysis.op_coverage {
            facts.push(Fact::Named(named));
            if named < NAMED {
                wrong.push((Light::Amber, Next::Patterns));
            }
        }
        cell(Area::Observability, facts, wrong)
    }

    pub(super) fn verify(&self) -> Cell<Area> {
        let manifest = &self.cx.trace.manifest;
        let hard = || FIELDS.iter().filter(|field| field.control == Control::Hard);
        let (known, all) = (hard().filter(|f| manifest.get(f.key).is_some()).count() as u64, hard().count() as u64);
        let fields = Fact::Fields { known, of: all };
        if known == 0 {
            return unknown(Area::Verify, fields, Next::Declare);
        }
        let repeats = manifest.count("measurement.repeats");
        let steps = self.classes().map(|(_, class)| class.steady as u64).max().unwrap_or(0);
        let least = NOISE_STEPS as u64;
        let facts = vec![fields, Fact::Repeats(repeats), Fact::Noise { steps, least }];
        let mut wrong = Vec::new();
        if known < all {
            wrong.push((if known * 2 < all { Light::Red } else { Light::Amber }, Next::Declare));
        }
        if repeats.is_none_or(|n| n < REPEATS) {
            wrong.push((Light::Amber, Next::Repeat));
        }
        if steps < least {
            wrong.push((Light::Amber, Next::Steps));
        }
        cell(Area::Verify, facts, wrong)
    }
}
