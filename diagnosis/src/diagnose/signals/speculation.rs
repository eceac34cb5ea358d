//! What the steps of speculative decoding draft, what of it is accepted, and what a plain step would take.

use model::{Category, Ns, Span, Trace};

use super::reading::{self, LEAST_STEPS};
use crate::{
    analysis::{AnchorKind, Class, OpKind, Rank, Scheduler, Step},
    diagnose::rule::Context,
    platform::{OpClass, Stage},
};

/// Host activity under which engines propose draft tokens.
const DRAFT: &str = "draft";

/// Tokens drafted and accepted in a step. The host counts them, so its window of the step tells them apart.
pub fn counted(scheduler: &Scheduler, step: &Step) -> Option<(f64, f64)> {
    scheduler.speculation(step.host.unwrap_or(step.window))
}

/// What a plain step takes at most, and how that is known.
pub struct Plain {
    /// What it takes, ns.
    pub takes: Ns,
    /// Whether the run has such steps.
    pub measured: bool,
}

/// What the steps of a class draft and gain.
pub struct Drafts {
    /// Tokens drafted in the steps that count.
    pub drafted: f64,
    /// Tokens accepted in them.
    pub accepted: f64,
    /// Tokens accepted per sequence and step.
    pub per_sequence: f64,
    /// The step that they are compared with.
    pub plain: Plain,
}

impl Drafts {
    /// Those of a class; `None` where its batch or its plain step is not known.
    pub fn of(cx: &Context<'_>, scheduler: &Scheduler, rank: &Rank, class: &Class) -> Option<Self> {
        let batches = rank.steady_steps(class).map(|s| s.facts.batch).sum::<Option<u32>>().filter(|sum| *sum > 0)?;
        let counts = || rank.steady_steps(class).filter_map(|s| counted(scheduler, s));
        let (drafted, accepted) = counts().fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        let sequences = f64::from(batches);
        let each = (drafted / sequences).round().clamp(0.0, 1e3) as usize;
        let plain = plain(cx, scheduler, (rank, class), each)?;
        Some(Self { drafted, accepted, per_sequence: accepted / sequences, plain })
    }
}

fn plain(cx: &Context<'_>, scheduler: &Scheduler, (rank, class): (&Rank, &Class), each: usize) -> Option<Plain> {
    let without = |c: &&Class| {
        let drafted = |s: &Step| counted(scheduler, s).is_some_and(|(drafted, _)| drafted > 0.0);
        c.steady >= LEAST_STEPS && !rank.steady_steps(c).any(drafted)
    };
    let same = |c: &&Class| c.index != class.index && c.may_equal(class) && c.stage == class.stage;
    if let Some(plain) = rank.classes.iter().filter(same).filter(without).max_by_key(|c| c.steady) {
        return Some(Plain { takes: plain.p50, measured: true });
    }
    let drafts = draft_ranges(cx, rank);
    let draft = |s: &Step| -> Ns {
        let launched =
            |start: Ns| drafts.get(drafts.partition_point(|d| d.end <= start)).is_some_and(|d| d.start <= start);
        let mine =
            reading::accounted(rank, s).filter(|(_, op, _)| rank.timeline.call(op).is_some_and(|c| launched(c.start)));
        mine.map(|(_, _, x)| x.busy + x.idle).sum()
    };
    let mut drafting: Ns = rank.steady_steps(class).map(draft).sum();
    if drafts.is_empty() {
        drafting = rank.steady_steps(class).map(|s| beside_verification(rank, s, each)).sum::<Option<Ns>>()?;
    }
    (drafting > 0).then(|| Plain { takes: (class.total - drafting) / class.steady.max(1) as Ns, measured: false })
}

/// Whether the steps of a class draft tokens, and nothing says what that brings: their samplers run after passes much shorter
/// than the longest one.
pub fn is_unjudged(cx: &Context<'_>, rank: &Rank, class: &Class) -> bool {
    let drafts = |step: &&Step| {
        let mut passes = passes(rank, step);
        passes.sort_unstable();
        passes.pop().is_some_and(|longest| passes.last().is_some_and(|draft| 2 * draft <= longest))
    };
    let scheduler = Scheduler::of(cx.trace);
    let counted = || rank.steady_steps(class).any(|s| counted(&scheduler, s).is_some_and(|(drafted, _)| drafted > 0.0));
    let marked = rank.anchor.kind != AnchorKind::WholeCapture;
    // A training step runs several passes that are no drafts.
    marked
        && class.stage != Stage::Train
        && 2 * rank.steady_steps(class).filter(drafts).count() > class.steady
        && !(counted() && Drafts::of(cx, &scheduler, rank, class).is_some())
}

/// What the draft of `each` tokens takes in a step whose sampler runs once for each of them and once for the verification:
/// all but the longest of the passes that end with a sampler. `None` where the sampler runs another number of times.
fn beside_verification(rank: &Rank, step: &Step, each: usize) -> Option<Ns> {
    let passes = passes(rank, step);
    (each > 0 && passes.len() == each + 1).then(|| passes.iter().sum::<Ns>() - passes.iter().max().unwrap_or(&0))
}

/// What each pass of a step that ends with a sampler takes, ns. A pass multiplies: what lies between two kernels of one sampler,
/// such as the sums between a sort and the choice, is none.
fn passes(rank: &Rank, step: &Step) -> Vec<Ns> {
    let kernels = reading::accounted(rank, step).filter(|(_, op, _)| matches!(op.kind, OpKind::Compute | OpKind::Comm));
    let mut passes: Vec<(Ns, bool)> = Vec::new();
    let mut sampling = true;
    for (_, op, of) in kernels {
        let samples = op.op.class() == OpClass::Sample;
        if sampling && !samples {
            passes.push((0, false));
        }
        if let Some((pass, multiplies)) = passes.last_mut() {
            *pass += of.busy + of.idle;
            *multiplies |= op.op.class() == OpClass::Matrix;
        }
        sampling = samples;
    }
    // What follows the last sampler is no pass.
    if !sampling {
        passes.pop();
    }
    passes.into_iter().filter_map(|(pass, multiplies)| multiplies.then_some(pass)).collect()
}

/// When the host proposed draft tokens; disjoint, in order of time.
fn draft_ranges(cx: &Context<'_>, rank: &Rank) -> Vec<Span> {
    let trace: &Trace = cx.trace;
    let lanes = rank.timeline.threads.iter().filter_map(|t| trace.lanes.get(t.0 as usize));
    let mut known = rustc_hash::FxHashMap::default();
    let mut spans = Vec::new();
    for lane in lanes {
        for i in (0..lane.len()).filter(|i| matches!(lane.category[*i], Category::UserRange | Category::PythonFrame)) {
            let name = lane.name[i];
            let is_draft =
                *known.entry(name).or_insert_with(|| cx.packs.host_activity(trace.strings.get(name)) == Some(DRAFT));
            if is_draft {
                spans.push(Span::new(lane.start[i], lane.end(i)));
            }
        }
    }
    reading::merged(spans)
}
