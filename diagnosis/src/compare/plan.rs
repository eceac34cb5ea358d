//! What to run on two platforms so that they can be compared: the controls on which both must agree, how many launches show
//! the effect that is sought, and which probes tell most of where a difference will come from (method §6.7).

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Trace,
    manifest::{Control, FIELDS, Field},
};

use super::{
    chosen::{self, Captured, Chosen, Work, device},
    contract::{
        MAIN, claim, digest,
        rule::{Status, status},
    },
    statistics::repeats_for,
};
use crate::{analysis::Bucket, platform::OpClass};

/// Effect that is sought and noise between launches, both as shares of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sought {
    /// Smallest difference that must be found nine times in ten.
    pub effect: f64,
    /// Standard deviation of launches of one side.
    pub noise: f64,
}

/// A control: a hard field and what both sides have to have.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The field.
    pub field: &'static Field,
    /// Its value, of A where the two differ so far; `None` where nobody said it yet though a comparison of steps needs it.
    pub value: Option<String>,
    /// Whether both sides had it in the captures that the plan was made from.
    pub met: bool,
}

/// A probe to run on both platforms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    /// Its name, as `strato probe` has it.
    pub probe: &'static str,
    /// Mean share of the step of both sides that it gives a ceiling for.
    pub share: f64,
    /// How much it tells of where the difference lies, bits.
    pub bits: f64,
}

/// The plan of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The devices.
    pub devices: [String; 2],
    /// What is sought.
    pub sought: Sought,
    /// Launches on each side; `None` where no number that anyone would run shows the effect.
    pub launches: Option<usize>,
    /// The controls in the order of the contract.
    pub terms: Vec<Term>,
    /// The probes that tell most, at most two; none that both sides have already.
    pub asks: Vec<Ask>,
}

impl Plan {
    /// A plan from a first capture of each platform; `None` where these have no steps of one stage.
    pub fn of(a: Captured<'_>, b: Captured<'_>, sought: Sought) -> Option<Self> {
        let sides = chosen::pair(a, b, true)?;
        let hard = FIELDS.iter().filter(|field| field.control == Control::Hard);
        let term = |field: &'static Field| {
            let [own, other] = [a, b].map(|(trace, _)| trace.manifest.value(field.key));
            let met = matches!(status(field, own, other), Status::Equal | Status::Equivalent(_));
            Term { field, value: own.or(other).map(str::to_owned), met }
        };
        Some(Self {
            devices: [a, b].map(|(trace, _)| device(trace).unwrap_or_else(|| trace.source.clone())),
            sought,
            launches: repeats_for(sought.effect, sought.noise),
            terms: hard.map(term).filter(|term| term.value.is_some() || is_needed(term.field)).collect(),
            asks: asks(&sides),
        })
    }
}

/// Whether steps cannot be compared while a field is unknown.
fn is_needed(field: &Field) -> bool {
    claim::refused_unknown(field).contains(&MAIN)
}

/// The probe whose ceiling bounds a bucket, as the waterfall takes it; `None` where none does.
fn probe(bucket: Bucket, work: Work) -> Option<&'static str> {
    match bucket {
        Bucket::Compute(op) if op.class() == OpClass::Matrix && work == Work::Dense => Some("gemm"),
        Bucket::Compute(op)
            if matches!(op.class(), OpClass::Matrix | OpClass::Attention) && work != Work::Streaming =>
        {
            None
        }
        Bucket::Compute(_) => Some("read"),
        Bucket::LaunchApi | Bucket::LaunchLatency | Bucket::Dispatch | Bucket::GraphLaunch => Some("launch"),
        Bucket::GraphInternal => Some("replay"),
        Bucket::SyncTail | Bucket::SyncIdle => Some("sync"),
        Bucket::CommTransfer => Some("collective"),
        Bucket::Alloc => Some("allocation"),
        _ => None,
    }
}

/// Each probe answers whether the difference lies in the part of the step that it bounds. As long as nothing is known of the
/// difference, that is as likely as the part is large, and the answer is worth the entropy of that: little for a part that is
/// nearly nothing, little for one that is nearly all. All probes take the same time.
fn asks(sides: &[Chosen<'_>; 2]) -> Vec<Ask> {
    let mut shares: BTreeMap<&'static str, f64> = BTreeMap::new();
    for side in sides {
        let total = side.class.total.max(1) as f64 * 2.0;
        for (bucket, ns) in &side.class.buckets {
            if let Some(probe) = probe(*bucket, side.work()) {
                *shares.entry(probe).or_default() += *ns as f64 / total;
            }
        }
    }
    let known = |probe: &str| sides.iter().all(|side| side.trace.probes.rows.iter().any(|row| row.probe == probe));
    let bits = |p: f64| if p > 0.0 && p < 1.0 { -p * p.log2() - (1.0 - p) * (1.0 - p).log2() } else { 0.0 };
    let mut asks: Vec<Ask> = shares
        .into_iter()
        .filter(|(probe, _)| !known(probe))
        .map(|(probe, share)| Ask { probe, share, bits: bits(share) })
        .filter(|ask| ask.bits > 0.0)
        .collect();
    asks.sort_by(|x, y| y.bits.total_cmp(&x.bits));
    asks.truncate(2);
    asks
}

/// What a plan asks for, as its file says it.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Name of the form of the file.
    pub schema: String,
    /// The devices.
    pub devices: Vec<String>,
    /// Launches on each.
    pub launches: usize,
    /// Names of probes.
    #[serde(default)]
    pub probes: Vec<String>,
    /// Fields that have to be the same on both sides and that nobody stated yet.
    #[serde(default)]
    pub open: Vec<String>,
    /// Values by field.
    #[serde(default)]
    pub controls: BTreeMap<String, String>,
}

/// Name of the form of a plan's file.
pub const SCHEMA: &str = "strato.plan/1";

impl Asked {
    /// What a plan asks for; `None` where no number of launches that anyone would run shows the effect.
    pub fn of(plan: &Plan) -> Option<Self> {
        let (stated, open): (Vec<&Term>, Vec<&Term>) = plan.terms.iter().partition(|term| term.value.is_some());
        Some(Self {
            schema: SCHEMA.to_owned(),
            devices: plan.devices.to_vec(),
            launches: plan.launches?,
            probes: plan.asks.iter().map(|ask| ask.probe.to_owned()).collect(),
            open: open.into_iter().map(|term| term.field.key.to_owned()).collect(),
            controls: stated
                .into_iter()
                .filter_map(|term| Some((term.field.key.to_owned(), term.value.clone()?)))
                .collect(),
        })
    }
}

/// Something that captures do not have as a plan asks for it.
#[derive(Clone, Debug, PartialEq)]
pub enum Unmet {
    /// A capture has another value of a control, or none.
    Control {
        /// The capture.
        source: String,
        /// The field.
        field: &'static Field,
        /// What it has to be.
        wanted: String,
        /// What it is.
        found: Option<String>,
    },
    /// A device was launched too rarely.
    Launches {
        /// The device.
        device: String,
        /// How often it has to be.
        wanted: usize,
        /// How often it was.
        found: usize,
    },
    /// A device has no rows of a probe.
    Probe {
        /// The device.
        device: String,
        /// The probe.
        probe: String,
    },
    /// A field was never agreed on.
    Open {
        /// Its key.
        field: String,
    },
    /// A capture is of a device that the plan does not have.
    Device {
        /// The capture.
        source: String,
        /// Its device.
        device: String,
    },
}

/// Holds captures against a plan.
pub fn check(asked: &Asked, traces: &[Trace]) -> Vec<Unmet> {
    let mut unmet: Vec<Unmet> = asked.open.iter().map(|field| Unmet::Open { field: field.clone() }).collect();
    for trace in traces {
        let source = || trace.source.clone();
        let own = device(trace).unwrap_or_else(source);
        if !asked.devices.contains(&own) {
            unmet.push(Unmet::Device { source: source(), device: own });
        }
        for field in FIELDS {
            let Some(wanted) = asked.controls.get(field.key) else { continue };
            let found = trace.manifest.value(field.key);
            if !matches!(status(field, Some(wanted), found), Status::Equal | Status::Equivalent(_)) {
                let found = found.map(str::to_owned);
                unmet.push(Unmet::Control { source: source(), field, wanted: wanted.clone(), found });
            }
        }
    }
    for device in asked.devices.iter().collect::<BTreeSet<_>>() {
        let is_own = |trace: &&Trace| chosen::device(trace).as_ref().unwrap_or(&trace.source) == device;
        let own: Vec<&Trace> = traces.iter().filter(is_own).collect();
        let found = own.iter().map(|trace| digest(trace)).collect::<BTreeSet<u64>>().len();
        // Two sides may be one device, with other software.
        let wanted = asked.launches.saturating_mul(asked.devices.iter().filter(|other| *other == device).count());
        if found < wanted {
            unmet.push(Unmet::Launches { device: device.clone(), wanted, found });
        }
        for probe in &asked.probes {
            if !own.iter().any(|trace| trace.probes.rows.iter().any(|row| &row.probe == probe)) {
                unmet.push(Unmet::Probe { device: device.clone(), probe: probe.clone() });
            }
        }
    }
    unmet
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use model::{Provenance, TraceBuilder, TraceSink};

    use super::*;

    fn capture(device: &str, batch: &str, start: i64) -> Trace {
        let mut builder = TraceBuilder::new("run", "kineto");
        builder.manifest("hardware.device", device, Provenance::Observed);
        builder.manifest("caps.batch", batch, Provenance::Observed);
        let mut trace = builder.finish();
        trace.start_unix_ns = Some(start);
        trace
    }

    #[test]
    fn captures_are_held_against_a_plan() {
        let asked = Asked {
            schema: SCHEMA.to_owned(),
            devices: vec!["x".to_owned(), "y".to_owned()],
            launches: 2,
            controls: BTreeMap::from([("caps.batch".to_owned(), "8".to_owned())]),
            ..Asked::default()
        };
        let whole = [capture("x", "8", 1), capture("x", "8", 2), capture("y", "8", 3), capture("y", "8", 4)];
        assert_eq!(check(&asked, &whole), []);
        // The same capture twice is one launch.
        let [one, ..] = &whole;
        let twice = [one.clone(), one.clone(), capture("y", "9", 3), capture("y", "8", 4), capture("z", "8", 5)];
        let unmet =
            check(&Asked { probes: vec!["read".to_owned()], open: vec!["model.name".to_owned()], ..asked }, &twice);
        let has = |wanted: &Unmet| assert!(unmet.contains(wanted), "{wanted:?} in {unmet:?}");
        has(&Unmet::Launches { device: "x".to_owned(), wanted: 2, found: 1 });
        has(&Unmet::Device { source: "run".to_owned(), device: "z".to_owned() });
        has(&Unmet::Probe { device: "y".to_owned(), probe: "read".to_owned() });
        has(&Unmet::Open { field: "model.name".to_owned() });
        let field = model::manifest::field("caps.batch").unwrap();
        let (wanted, found) = ("8".to_owned(), Some("9".to_owned()));
        has(&Unmet::Control { source: "run".to_owned(), field, wanted, found });
        assert_eq!(unmet.len(), 6);
    }

    #[test]
    fn what_nobody_knows_a_ceiling_for_is_asked_of_no_probe() {
        let gemm = Bucket::Compute(crate::platform::CanonicalOp::Gemm);
        let act = Bucket::Compute(crate::platform::CanonicalOp::Act);
        let of = |bucket| [Work::Streaming, Work::Dense, Work::Between].map(|work| probe(bucket, work));
        assert_eq!(of(gemm), [Some("read"), Some("gemm"), None]);
        assert_eq!(of(act), [Some("read"); 3]);
    }

    #[test]
    fn a_difference_that_no_number_of_launches_shows_is_no_plan_to_check() {
        let plan = |launches| Plan {
            devices: ["x".to_owned(), "y".to_owned()],
            sought: Sought { effect: 0.001, noise: 0.1 },
            launches,
            terms: vec![],
            asks: vec![],
        };
        assert_eq!(repeats_for(0.001, 0.1), None);
        assert_eq!((Asked::of(&plan(None)), Asked::of(&plan(Some(5))).map(|asked| asked.launches)), (None, Some(5)));
    }

    #[test]
    fn a_plan_asks_for_the_values_of_a_and_names_what_nobody_said() {
        let term = |key, value: Option<&str>| {
            let field = model::manifest::field(key).unwrap();
            Term { field, value: value.map(str::to_owned), met: false }
        };
        let plan = Plan {
            devices: ["x".to_owned(), "y".to_owned()],
            sought: Sought { effect: 0.1, noise: 0.02 },
            launches: Some(5),
            terms: vec![term("caps.batch", Some("8")), term("model.name", None)],
            asks: vec![Ask { probe: "read", share: 0.5, bits: 1.0 }],
        };
        let asked = Asked::of(&plan).unwrap();
        let text = toml::to_string_pretty(&asked).unwrap();
        assert_eq!(toml::from_str::<Asked>(&text).unwrap(), asked, "{text}");
        assert_eq!(
            (asked.open, asked.probes, asked.launches),
            (vec!["model.name".to_owned()], vec!["read".to_owned()], 5)
        );
    }
}
