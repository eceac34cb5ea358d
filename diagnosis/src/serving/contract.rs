//! Whether two serving results are of the same work: what was asked of which model, how hard, and how it may answer.

use model::{
    Trace,
    manifest::{self, Manifest},
};

use super::{Level, Load, load};
use crate::compare::contract::rule::{Status, status};

/// How far prompts may be apart, a share: that of the contract's `workload.prompt_len`.
pub(super) const PROMPT: f64 = 0.02;
/// How far answers may be apart, a share: that of `workload.output_len`.
const OUTPUT: f64 = 0.10;

/// Fields that must not differ: what was asked of which model on how many ranks, and in which format.
const FIELDS: [&str; 8] = [
    "model.name",
    "model.revision",
    "precision.weights",
    "precision.kv",
    "precision.quantization",
    "parallel.tp",
    "workload.dataset",
    "workload.speculative",
];
/// Of these, the ones that have to be known before the two may be said to be equal.
const ASKED: [&str; 3] = ["model.name", "precision.weights", "parallel.tp"];

/// What stands between two results.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// A field of the contract differs.
    Differs(&'static str, String, String),
    /// A field is not known of every side: it and what each says.
    Unknown(&'static str, [Option<String>; 2]),
    /// No load of the two was the same.
    NoLoad,
}

/// Whether two loads asked the same of a server.
pub(super) fn is_same(a: &Load, b: &Load) -> bool {
    let level = match (a.level(), b.level()) {
        (Some(Level::Concurrency(a)), Some(Level::Concurrency(b))) | (Some(Level::Rate(a)), Some(Level::Rate(b))) => {
            (a - b).abs() <= 1e-6 * a.max(b)
        }
        (a, b) => a == b,
    };
    // Failed requests count: they were asked.
    let asked = |load: &Load| Some(load.completed()? + load.number("failed").unwrap_or(0.0));
    // Of the rate at which requests come and the limit of those at a time, the one that is reached is the load.
    let paced = |load: &Load| matches!(load.pressed(), Some(Level::Rate(_)));
    let pace = rates(a, b).is_none_or(|[a_rate, b_rate]| a_rate == b_rate || !(paced(a) || paced(b)));
    level && pace && is_same_work(a, b) && near(asked(a), asked(b), 0.0)
}

/// Requests each second that two loads ask for, where both say it; no end of them where they come as fast as they are taken.
fn rates(a: &Load, b: &Load) -> Option<[f64; 2]> {
    let of = |load: &Load| load.number("request_rate").or_else(|| load.unlimited.then_some(f64::INFINITY));
    of(a).zip(of(b)).map(|(a, b)| [a, b])
}

/// What is said of two loads whose requests come at other rates, which neither server kept up with.
pub(super) fn arrivals(a: &Load, b: &Load) -> Option<Reason> {
    let told = |rate: f64| if rate.is_finite() { format!("{rate}/s") } else { "inf".to_owned() };
    rates(a, b).filter(|[a, b]| a != b).map(|[a, b]| Reason::Differs("workload.arrival", told(a), told(b)))
}

/// Whether the prompts and answers of two loads are as long as each other.
pub fn is_same_work(a: &Load, b: &Load) -> bool {
    near(a.input_len(), b.input_len(), PROMPT) && near(a.output_len(), b.output_len(), OUTPUT)
}

/// Whether two numbers are at most a share apart; what one side does not say is no difference.
pub(super) fn near(a: Option<f64>, b: Option<f64>, share: f64) -> bool {
    a.zip(b).is_none_or(|(a, b)| (a - b).abs() <= share * a.max(b))
}

/// What the contract says of the two: what differs, and what is not known.
pub(super) fn contract(sides: [&[&Trace]; 2]) -> (Vec<Reason>, Vec<Reason>) {
    let said = |side: &[&Trace], key: &str| -> Vec<String> {
        let value = |manifest: &Manifest| manifest.value(key).map(str::to_owned);
        side.iter().filter_map(|trace| value(&trace.manifest)).collect()
    };
    let (mut refused, mut caveats) = (Vec::new(), Vec::new());
    for key in FIELDS {
        let Some(field) = manifest::field(key) else { continue };
        let [a, b] = sides.map(|side| said(side, key));
        // Every result of a side has to be of the same, too.
        let all: Vec<&String> = a.iter().chain(&b).collect();
        let other = all.first().and_then(|first| {
            let differs = |value: &&&String| status(field, Some(first), Some(value)) == Status::Different;
            all.iter().find(differs).map(|other| ((*first).clone(), (*other).clone()))
        });
        match other {
            Some((one, other)) => refused.push(Reason::Differs(field.key, one, other)),
            None if (a.is_empty() || b.is_empty()) && ASKED.contains(&key) => {
                caveats.push(Reason::Unknown(field.key, [a.first().cloned(), b.first().cloned()]));
            }
            None => {}
        }
    }
    if refused.iter().all(|own| !matches!(own, Reason::Differs(SPECULATIVE, ..))) {
        match [speculation(sides[0]), speculation(sides[1])] {
            [Some(a), Some(b)] if is_none(&a) != is_none(&b) => refused.push(Reason::Differs(SPECULATIVE, a, b)),
            // What accepts several tokens at a time is other work than what does not, and one side does.
            [Some(one), None] if !is_none(&one) => caveats.push(Reason::Unknown(SPECULATIVE, [Some(one), None])),
            [None, Some(one)] if !is_none(&one) => caveats.push(Reason::Unknown(SPECULATIVE, [None, Some(one)])),
            _ => {}
        }
    }
    (refused, caveats)
}

/// Field of speculative decoding.
pub const SPECULATIVE: &str = "workload.speculative";

/// Whether a side is said not to speculate.
fn is_none(said: &str) -> bool {
    ["none", "off", "false", "0"].iter().any(|word| said.eq_ignore_ascii_case(word))
}

/// What a side says of its speculation: how it is told to, else that it accepts more than a token at a time.
fn speculation(side: &[&Trace]) -> Option<String> {
    let told = side.iter().find_map(|trace| trace.manifest.value(SPECULATIVE)).map(str::to_owned);
    let accepted = || side.iter().flat_map(|trace| load::of(trace)).find_map(|load| load.number("accept_length"));
    told.or_else(|| accepted().filter(|n| *n > 1.0).map(|n| format!("{n} tokens accepted at a time")))
}
