//! What the gates of the verdict are asked about.

use model::Ns;

use super::{Explained, Level, VerdictLayer};
use crate::{
    analysis::{Bucket, Class, Confidence, Layer, Rank, Scheduler},
    diagnose::{
        catalogue::Catalogue,
        estimate::LEAST_GAIN,
        finding::{Finding, Severity},
        limits::Limits,
        relations::Role,
        rule::Context,
        signals::{demand, late, reading},
    },
    i18n::Message,
};

/// Share of another layer from which a step without findings is not called operator-bound: a cause of high severity would
/// fit into it, and that no rule that could decide names one proves nothing of the rules that could not; own value.
pub(super) const RIVAL: f64 = 0.10;
/// Share of the step that may be opaque before there is no verdict.
pub(super) const OPAQUE: f64 = 0.50;
/// Share of the step, attributed to nothing or to a layer whose rules could not speak, from which it is weighed against what
/// was found: a finding of low severity is not worth more; own value, the limit of medium severity.
pub(super) const UNEXPLAINED: f64 = 0.03;
/// Rules that a verdict names at most.
pub(super) const BECAUSE: usize = 4;
/// Part of the gain of faster scheduling that lies where the host did nothing known, from which a server without requests
/// explains it as well; own value.
const IDLE_HOST: f64 = 0.5;
/// Part of the gain of something that may be nothing from which a sure cause is named instead; own value.
const COMPARABLE: f64 = 0.5;

/// A capture and what was found in it.
pub(super) struct Case<'a> {
    /// The capture.
    pub cx: &'a Context<'a>,
    /// Ranked findings.
    pub findings: &'a [Finding],
    /// The rules that made them.
    pub rules: Catalogue,
    /// Rates of its operators.
    pub limits: &'a Limits,
    /// Level reached.
    pub level: Option<Level>,
    /// How much of each layer the findings explain together.
    pub explained: &'a [Explained],
    /// The main class with the most time of all ranks.
    pub longest: Option<(&'a Rank, &'a Class)>,
}

/// What a gate decides.
pub(super) struct Ruling {
    /// What is blamed.
    pub layer: VerdictLayer,
    /// One sentence.
    pub headline: Message,
    /// How sure that is.
    pub confidence: Confidence,
    /// Rules that it rests on.
    pub because: Vec<&'static str>,
}

impl Ruling {
    /// The capture does not allow a verdict.
    pub fn undecided(headline: Message, because: impl IntoIterator<Item = &'static str>) -> Self {
        let because = because.into_iter().collect();
        Self { layer: VerdictLayer::Undecided, headline, confidence: Confidence::Low, because }
    }
}

/// What may be blamed first.
pub(super) struct Leading<'a> {
    /// The first finding that counts.
    pub first: Option<&'a Finding>,
    /// The same if it may be nothing.
    pub unsure: Option<&'a Finding>,
    /// A sure cause that is worth about as much: what is sure comes before what is not, unless it is worth much less.
    pub sure: Option<&'a Finding>,
}

impl<'a> Case<'a> {
    /// The case of a capture.
    pub fn new(
        cx: &'a Context<'a>,
        found: (&'a [Finding], Catalogue),
        limits: &'a Limits,
        level: Option<Level>,
        explained: &'a [Explained],
    ) -> Self {
        let (findings, rules) = found;
        let longest = cx.main_classes().max_by_key(|(rank, class)| (class.total, std::cmp::Reverse(rank.rank)));
        Self { cx, findings, rules, limits, level, explained, longest }
    }

    /// Whether a finding is of a rule with a role.
    pub fn plays(&self, finding: &Finding, role: Role) -> bool {
        self.rules.plays(finding.rule, role)
    }

    /// Findings about a layer that gain something.
    pub fn weighty(&self) -> impl Iterator<Item = &'a Finding> {
        self.findings.iter().filter(|f| f.layer != Layer::Measurement && f.severity >= Severity::Low)
    }

    /// The most that any of them would gain, as a share of the step.
    pub fn best(&self) -> f64 {
        self.weighty().map(|f| f.estimate.max_gain_share()).fold(0.0, f64::max)
    }

    /// What may be blamed first.
    pub fn leading(&self) -> Leading<'a> {
        let first = self.weighty().next();
        let unsure =
            first.zip(self.longest).filter(|(first, (rank, class))| may_lack_requests(self, first, rank, class));
        let unsure = unsure.map(|(first, _)| first);
        let sure = unsure.and_then(|first| {
            let least = COMPARABLE * first.estimate.max_gain_share();
            self.weighty().find(|f| f.rule != first.rule && f.estimate.max_gain_share() >= least)
        });
        Leading { first, unsure, sure }
    }
}

/// Whether what comes first is a host that is late between steps, although nothing says what it did there, and nothing
/// whether it had anything to do.
fn may_lack_requests(case: &Case<'_>, first: &Finding, rank: &Rank, class: &Class) -> bool {
    let cx = case.cx;
    let unknown = |b: Bucket| reading::is_host(cx.analysis, b, "unknown");
    case.plays(first, Role::BetweenSteps)
        && doubtful_idle(cx, rank, class) - awaited(cx, rank, class, unknown)
            >= IDLE_HOST * first.estimate.mid_gain_share().max(LEAST_GAIN)
}

/// Share of a class in which the host does nothing known between steps, while nothing says whether it had anything to do.
pub(super) fn doubtful_idle(cx: &Context<'_>, rank: &Rank, class: &Class) -> f64 {
    let scheduler = Scheduler::of(cx.trace);
    let unknown = |b: Bucket| reading::is_host(cx.analysis, b, "unknown");
    let idle: Ns = rank
        .steady_steps(class)
        .map(|step| reading::idle(rank, step, |gap, b| unknown(b) && demand::in_doubt(rank, gap, &scheduler)))
        .sum();
    idle as f64 / class.total.max(1) as f64
}

/// Share of a class in which another rank waits for what the host does on the buckets that `pick` takes: that there was
/// something to do.
pub(super) fn awaited(cx: &Context<'_>, rank: &Rank, class: &Class, pick: impl Fn(Bucket) -> bool) -> f64 {
    let index = cx.analysis.ranks.iter().position(|r| r.rank == rank.rank);
    index.map_or(0.0, |index| late::awaited(cx, index, pick) as f64 / class.total.max(1) as f64)
}

/// Share of a class in which the capture does not show what the device waits for, or what it does.
pub(super) fn opaque(class: &Class) -> f64 {
    class.share(|b| matches!(b, Bucket::GraphOpaque | Bucket::Unattributed | Bucket::IdleUndecided))
}
