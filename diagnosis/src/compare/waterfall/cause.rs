//! What a difference in one slot and bucket comes from (method §6.4): the same time as a product of measured factors on each
//! side, and the difference divided among the factors by their logarithms (LMDI), exactly and to the nanosecond.

use model::{Category, EvidenceClass, Ns, manifest::field};

use super::ceilings::Ceilings;
use crate::{
    analysis::{Bucket, GraphMode},
    compare::{
        chosen::Chosen,
        contract::rule::{Status, status},
    },
    platform::Stage,
};

/// Where a difference comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// More or less work, counted by calls and by the shapes of what they are given.
    Work,
    /// What the hardware can do: measured ceilings differ.
    Environment,
    /// How good the software is: the same path at another efficiency, or fusion that is missing though possible.
    Maturity,
    /// Another path: other operations, other events that the device waits for.
    Mechanism,
    /// A setting that differs.
    Configuration,
    /// The same, as often, takes longer: the same kernel on the same work, or the same code of the host.
    Slower,
    /// No measured factor covers it.
    Unexplained,
}

impl Cause {
    /// All causes in report order.
    pub const ALL: [Self; 7] = [
        Self::Work,
        Self::Environment,
        Self::Maturity,
        Self::Mechanism,
        Self::Configuration,
        Self::Slower,
        Self::Unexplained,
    ];

    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Environment => "environment",
            Self::Maturity => "maturity",
            Self::Mechanism => "mechanism",
            Self::Configuration => "configuration",
            Self::Slower => "slower",
            Self::Unexplained => "unexplained",
        }
    }
}

/// What is known of a slot or of a stretch of the host's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Twin {
    /// Nothing.
    #[default]
    Unknown,
    /// Both sides run the same kernels there, or the same host's code.
    Same,
    /// They run other kernels for the same slot.
    Other,
    /// Nobody saw what it was.
    Hidden,
}

/// What is known of the pair as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Setup {
    /// Ceilings that were measured on both sides.
    pub ceilings: Ceilings,
    /// Both ran on one model of device, with the same software as far as both say which.
    pub same_platform: bool,
    /// One replays graphs where the other launches, or in another way.
    pub graphs_differ: bool,
    /// A setting differs that both sides state.
    pub settings_differ: bool,
    /// The model is divided among another number of ranks.
    pub ranks_differ: bool,
    /// Only one side has replays that were recorded as one, whose operations nobody saw.
    pub replays_hide: bool,
    /// Only one of the sources counts the way from one operation to the next into the durations of operations.
    pub gaps_differ: bool,
    /// Only one of the sources holds calls of the host and what they launched: why the other's device waited nobody can tell.
    pub host_hidden: bool,
    /// Only one of the sources holds functions of the interpreter, or operators of the framework: what the other's host did meanwhile
    /// nobody can tell.
    pub records_differ: bool,
    /// They do unequal amounts of work.
    pub unequal: bool,
    /// The steps decode as many sequences on both sides, so that only attention can have more to do.
    pub same_rows: bool,
    /// They are said to have prompts of other lengths.
    pub prompts_differ: bool,
}

/// Settings that change how the same work is run. Variables of the environment are not among them: those of two vendors
/// always differ.
const SETTINGS: [&str; 8] = [
    "tuning.knobs",
    "precision.kv",
    "caps.max_num_seqs",
    "caps.max_tokens",
    "caps.kv_blocks",
    "caps.graph_sizes",
    "caps.chunked_prefill",
    "parallel.tp",
];
/// What names the software under a run.
const SOFTWARE: [&str; 5] =
    ["software.toolkit", "software.framework", "software.engine", "software.driver", "software.comm_library"];
/// Share of the measured gaps that are nothing in a source that counts them into the durations (CP-05 asks for the same).
const FOLDED: f64 = 0.9;

/// Largest part that a factor may have, ns: a hundred days, of which hundreds add up in an `i64`.
pub(super) const FARTHEST: f64 = 8.64e15;

impl Setup {
    /// That of two sides.
    pub fn of(sides: &[Chosen<'_>; 2]) -> Self {
        let values = |key: &str| {
            let [a, b] = sides;
            a.trace.manifest.value(key).zip(b.trace.manifest.value(key))
        };
        let differs = |key: &str| {
            let both = field(key).zip(values(key));
            both.is_some_and(|(field, (a, b))| status(field, Some(a), Some(b)) == Status::Different)
        };
        // One rank alone has no library to communicate with.
        let used = |key: &str| values(key).is_some_and(|(a, b)| a != "none" && b != "none");
        let device = values("hardware.device").is_some_and(|(a, b)| a == b);
        let known = SOFTWARE.iter().any(|key| values(key).is_some());
        let [a, b] = sides.map(|side| {
            let integrity = &side.analysis.integrity;
            integrity.gaps > 0 && integrity.zero_gaps as f64 >= FOLDED * integrity.gaps as f64
        });
        Self {
            ceilings: Ceilings::of(sides),
            same_platform: device && known && !SOFTWARE.iter().any(|key| differs(key) && used(key)),
            graphs_differ: sides[0].class.graph != sides[1].class.graph || differs("software.graph_mode"),
            settings_differ: SETTINGS.iter().any(|key| differs(key)),
            ranks_differ: differs("parallel.tp"),
            replays_hide: {
                let [a, b] =
                    sides.map(|side| side.class.buckets.iter().any(|(b, ns)| *b == Bucket::GraphOpaque && *ns > 0));
                a != b
            },
            gaps_differ: a != b,
            records_differ: [Category::PythonFrame, Category::FrameworkOp].into_iter().any(|kind| {
                let has = |side: &Chosen<'_>| side.trace.lanes.iter().any(|lane| lane.category.contains(&kind));
                // A host that replays graphs runs no operators of the framework that could have been recorded.
                let shows = |side| has(side) || side.class.graph == GraphMode::Full;
                let [a, b] = sides;
                has(a) != has(b) && !(shows(a) && shows(b))
            }),
            unequal: false,
            same_rows: {
                let [a, b] = sides.map(|side| side.class.batch.filter(|_| side.class.stage == Stage::Decode));
                a.is_some() && a == b
            },
            prompts_differ: differs("workload.prompt_len"),
            host_hidden: {
                let has = |class| sides.map(|side| side.analysis.evidence.has(class));
                [EvidenceClass::HostApi, EvidenceClass::Correlation]
                    .into_iter()
                    .any(|class| has(class) == [true, false] || has(class) == [false, true])
            },
        }
    }

    /// Whether only one side shows what the host did in the time of a bucket.
    pub(super) fn is_unseen(&self, bucket: Bucket) -> bool {
        self.records_differ && matches!(bucket, Bucket::Host(_))
    }

    /// What is left once hardware and number are taken out.
    pub(super) fn residual(&self, bounded: bool, twin: Twin) -> Cause {
        match () {
            () if twin == Twin::Hidden => Cause::Unexplained,
            () if self.same_platform && self.settings_differ => Cause::Configuration,
            () if twin == Twin::Same => Cause::Slower,
            () if twin == Twin::Other => Cause::Maturity,
            () if self.same_platform => Cause::Unexplained,
            () if bounded => Cause::Maturity,
            () => Cause::Unexplained,
        }
    }

    /// What another number of operations or events comes from.
    fn number(&self, bucket: Bucket) -> Cause {
        let device = matches!(bucket, Bucket::Compute(_) | Bucket::Copy(_));
        match () {
            () if self.settings_differ || (self.graphs_differ && !device) => Cause::Configuration,
            () if self.same_platform || !device => Cause::Mechanism,
            () => Cause::Maturity,
        }
    }
}

/// The time of one side in one slot and bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Mean {
    /// Mean, ns: whole nanoseconds of which all means of the side add up to its step.
    pub ns: Ns,
    /// The same before that.
    pub exact: f64,
    /// Operations, idle stretches or waits per step.
    pub count: f64,
}

/// Divides `b.ns - a.ns` among causes; the parts add up to it exactly, and for the two exchanged they are the same negated.
pub fn split(setup: &Setup, bucket: Bucket, waited: bool, twin: Twin, a: Mean, b: Mean) -> Vec<(Cause, Ns)> {
    let delta = b.ns - a.ns;
    if delta == 0 {
        return Vec::new();
    }
    if let Some(whole) = whole(setup, bucket, waited, twin, a, b) {
        return vec![(whole, delta)];
    }
    let number = setup.number(bucket);
    if let Some(parts) = between(setup, bucket, waited, twin, a, b) {
        return parts;
    }
    // A wait has the cause of the late rank's work; how often ranks met says nothing of it.
    if a.exact <= 0.0 || b.exact <= 0.0 {
        let alone = if waited { setup.residual(false, Twin::Unknown) } else { number };
        return vec![(alone, delta)];
    }
    let mean = logarithmic_mean(a.exact, b.exact);
    let mut parts = Vec::new();
    let counted = !waited && a.count > 0.0 && b.count > 0.0;
    if counted {
        parts.push((number, mean * (b.count.ln() - a.count.ln())));
    }
    let bound = setup.ceilings.bound(bucket);
    if let Some([of_a, of_b]) = bound.filter(|_| !setup.same_platform) {
        parts.push((Cause::Environment, mean * (of_b - of_a)));
    }
    // A factor that nobody can have measured explains nothing.
    if parts.iter().any(|(_, ns)| !ns.is_finite() || ns.abs() > FARTHEST) {
        return vec![(Cause::Unexplained, delta)];
    }
    let mut out: Vec<(Cause, Ns)> = parts.into_iter().map(|(cause, ns)| (cause, ns.round() as Ns)).collect();
    let rest = delta - out.iter().map(|(_, ns)| ns).sum::<Ns>();
    out.push((setup.residual(bound.is_some(), twin), rest));
    merge(out)
}

/// What all of a difference comes from that no factor divides.
pub(super) fn whole(setup: &Setup, bucket: Bucket, waited: bool, twin: Twin, a: Mean, b: Mean) -> Option<Cause> {
    // Where a rank works alone there is nothing to wait for: all of it comes from dividing the model.
    let divided = matches!(bucket, Bucket::CommWait | Bucket::CommTransfer) || waited;
    if setup.ranks_differ && divided && (a.ns == 0 || b.ns == 0) {
        return Some(Cause::Configuration);
    }
    // What the other side does not show cannot be set against anything, and evidence that one side lacks is no setting and no
    // other path.
    let replayed = setup.replays_hide && in_replay(bucket);
    if replayed || setup.is_unseen(bucket) || twin == Twin::Hidden || (setup.host_hidden && bucket.is_idle()) {
        return Some(Cause::Unexplained);
    }
    undivided(setup, bucket)
}

/// The way from one operation to the next: what it takes at least on each side, as far as that much was spent, and the rest.
/// `None` where that is no question, or nobody measured it.
fn between(setup: &Setup, bucket: Bucket, waited: bool, twin: Twin, a: Mean, b: Mean) -> Option<Vec<(Cause, Ns)>> {
    let gaps = setup.ceilings.gap.filter(|_| bucket == Bucket::Dispatch && !waited && !setup.same_platform)?;
    let least = |side: Mean, gap: f64| (side.count * gap).min(side.exact);
    // Where both had the same number of gaps, theirs; the others come from the number.
    let common = a.count.min(b.count);
    let shared = |side: Mean, gap: f64| least(Mean { count: common, ..side }, gap);
    let [of_a, of_b] = [(a, gaps[0]), (b, gaps[1])].map(|(side, gap)| (least(side, gap), shared(side, gap)));
    let environment = of_b.1 - of_a.1;
    let number = (of_b.0 - of_b.1) - (of_a.0 - of_a.1);
    if [environment, number].iter().any(|ns| !ns.is_finite() || ns.abs() > FARTHEST) {
        return None;
    }
    let mut parts = vec![(Cause::Environment, environment.round() as Ns), (setup.number(bucket), number.round() as Ns)];
    let rest = (b.ns - a.ns) - parts.iter().map(|(_, ns)| ns).sum::<Ns>();
    parts.push((setup.residual(true, twin), rest));
    Some(merge(parts))
}

/// Whether a replay that is recorded as one holds time of this bucket.
pub(super) fn in_replay(bucket: Bucket) -> bool {
    matches!(
        bucket,
        Bucket::Compute(_)
            | Bucket::Dispatch
            | Bucket::GraphInternal
            | Bucket::GraphOpaque
            | Bucket::CommTransfer
            | Bucket::CommWait
    )
}

/// Buckets that no factor divides.
fn undivided(setup: &Setup, bucket: Bucket) -> Option<Cause> {
    match bucket {
        // Of what the source does not tell nobody can say where it comes from.
        Bucket::Prof
        | Bucket::GraphOpaque
        | Bucket::IdleUndecided
        | Bucket::Unattributed
        | Bucket::Unseen
        | Bucket::CommWait => Some(Cause::Unexplained),
        Bucket::Dispatch if setup.gaps_differ => Some(Cause::Unexplained),
        Bucket::Compile | Bucket::Alloc => {
            Some(if setup.settings_differ { Cause::Configuration } else { Cause::Maturity })
        }
        _ => None,
    }
}

/// `(b − a) / ln(b / a)`, which goes to `a` where both are equal.
pub(super) fn logarithmic_mean(a: f64, b: f64) -> f64 {
    let (difference, logarithms) = (b - a, b.ln() - a.ln());
    if logarithms == 0.0 { a } else { difference / logarithms }
}

/// One entry per cause, none that is nothing.
pub(super) fn merge(parts: Vec<(Cause, Ns)>) -> Vec<(Cause, Ns)> {
    let of = |cause: Cause| (cause, parts.iter().filter(|(c, _)| *c == cause).map(|(_, ns)| ns).sum::<Ns>());
    Cause::ALL.into_iter().map(of).filter(|(_, ns)| *ns != 0).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::platform::CanonicalOp;

    fn mean(ns: Ns, count: f64) -> Mean {
        Mean { ns, exact: ns as f64, count }
    }

    const GEMM: Bucket = Bucket::Compute(CanonicalOp::Gemm);

    fn probed(memory: [f64; 2]) -> Setup {
        let gap = Some(memory);
        let ceilings =
            Ceilings { memory: Some(memory.map(f64::ln)), launch: Some([0.0, 0.0]), gap, ..Ceilings::default() };
        Setup { ceilings, ..Setup::default() }
    }

    #[test]
    fn twice_the_time_at_twice_the_ceiling_is_hardware_alone() {
        let act = Bucket::Compute(CanonicalOp::Act);
        let split = |setup: &Setup, a, b| split(setup, act, false, Twin::Unknown, mean(a, 1.0), mean(b, 1.0));
        assert_eq!(split(&probed([1.0, 2.0]), 1_000, 2_000), [(Cause::Environment, 1_000)]);
        assert_eq!(split(&probed([1.0, 1.0]), 1_000, 2_000), [(Cause::Maturity, 1_000)]);
        // Hardware that is twice as slow, used twice as well.
        assert_eq!(split(&probed([1.0, 2.0]), 1_000, 1_000), []);
        let both = split(&probed([1.0, 2.0]), 1_000, 3_000);
        assert_eq!(both, [(Cause::Environment, 1_262), (Cause::Maturity, 738)]);
        assert_eq!(split(&Setup::default(), 1_000, 2_000), [(Cause::Unexplained, 1_000)]);
    }

    #[test]
    fn another_number_of_events_is_another_path_unless_a_setting_says_so() {
        let split =
            |setup: Setup| split(&setup, Bucket::LaunchApi, false, Twin::Unknown, mean(1_000, 10.0), mean(100, 1.0));
        assert_eq!(split(Setup::default()), [(Cause::Mechanism, -900)]);
        assert_eq!(split(Setup { graphs_differ: true, ..Setup::default() }), [(Cause::Configuration, -900)]);
        let only = super::split(&Setup::default(), GEMM, false, Twin::Unknown, mean(0, 0.0), mean(70, 2.0));
        assert_eq!(only, [(Cause::Maturity, 70)]);
    }

    /// D9: the same kernel that takes longer was "unexplained", and what one side did not record came from "configuration".
    #[test]
    fn d9_the_same_but_slower_has_a_name_and_missing_evidence_is_no_setting() {
        let split = |setup: &Setup, bucket, twin| split(setup, bucket, false, twin, mean(1_000, 4.0), mean(1_500, 4.0));
        assert_eq!(split(&Setup::default(), GEMM, Twin::Same), [(Cause::Slower, 500)]);
        assert_eq!(split(&Setup::default(), GEMM, Twin::Other), [(Cause::Maturity, 500)]);
        let blind = Setup { host_hidden: true, settings_differ: true, graphs_differ: true, ..Setup::default() };
        assert_eq!(split(&blind, Bucket::LaunchApi, Twin::Same), [(Cause::Unexplained, 500)]);
        assert_eq!(
            split(&blind, Bucket::Host(crate::analysis::HostLabel(0)), Twin::Hidden),
            [(Cause::Unexplained, 500)]
        );
    }

    fn exchanged(setup: Setup) -> Setup {
        let turn = |cost: Option<[f64; 2]>| cost.map(|[a, b]| [b, a]);
        let c = setup.ceilings;
        let ceilings = Ceilings { memory: turn(c.memory), launch: turn(c.launch), gap: turn(c.gap), ..c };
        Setup { ceilings, ..setup }
    }

    #[test]
    fn a_gap_is_what_the_device_takes_at_least_and_the_rest_and_no_product() {
        let split = |gap, a, b| {
            let ceilings = Ceilings { gap: Some(gap), ..Ceilings::default() };
            split(&Setup { ceilings, ..Setup::default() }, Bucket::Dispatch, false, Twin::Unknown, a, b)
        };
        // Three times the least time, of a hundredth of the gap.
        let both = split([1.0, 3.0], mean(10_000, 100.0), mean(30_000, 100.0));
        assert_eq!(both, [(Cause::Environment, 200), (Cause::Maturity, 19_800)]);
        // No side can have spent more on it than it spent.
        assert_eq!(split([1.0, 900.0], mean(100, 100.0), mean(300, 100.0)), [(Cause::Environment, 200)]);
        let more = split([2.0, 2.0], mean(1_000, 100.0), mean(1_500, 150.0));
        assert_eq!(more, [(Cause::Maturity, 400), (Cause::Mechanism, 100)]);
    }

    #[test]
    fn ceilings_that_cannot_be_explain_nothing_and_overflow_nothing() {
        let act = Bucket::Compute(CanonicalOp::Act);
        for memory in [[f64::MIN_POSITIVE, f64::MAX], [1.0, f64::INFINITY], [0.0, 1.0]] {
            let (a, b) = (mean(1 << 55, 1.0), mean(1 << 56, 1e300));
            let parts = split(&probed(memory), act, false, Twin::Unknown, a, b);
            assert_eq!(parts, [(Cause::Unexplained, b.ns - a.ns)], "{memory:?}");
        }
    }

    proptest! {
        #[test]
        fn the_parts_add_up_and_change_their_sign_with_the_sides(
            a in 0i64..1 << 40, b in 0i64..1 << 40, counts in [0u32..99, 0u32..99], memory in [0.1f64..9.0, 0.1f64..9.0],
            flags in any::<[bool; 7]>(),
        ) {
            let setup = Setup {
                same_platform: flags[0], graphs_differ: flags[1], settings_differ: flags[2], gaps_differ: flags[3],
                ranks_differ: flags[5], replays_hide: flags[6],
                ..if flags[4] { probed(memory) } else { Setup::default() }
            };
            let (a, b) = (mean(a, counts[0].into()), mean(b, counts[1].into()));
            for bucket in [GEMM, Bucket::CommWait, Bucket::LaunchApi, Bucket::Dispatch, Bucket::CommTransfer, Bucket::Alloc] {
                for (waited, twin) in [(false, Twin::Same), (false, Twin::Other), (true, Twin::Unknown), (false, Twin::Hidden)] {
                    let there = split(&setup, bucket, waited, twin, a, b);
                    prop_assert_eq!(there.iter().map(|(_, ns)| ns).sum::<Ns>(), b.ns - a.ns);
                    let negated: Vec<_> = there.into_iter().map(|(cause, ns)| (cause, -ns)).collect();
                    let back = split(&exchanged(setup), bucket, waited, twin, b, a);
                    prop_assert_eq!(negated, back);
                }
            }
        }
    }
}
