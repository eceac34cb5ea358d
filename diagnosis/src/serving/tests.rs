#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
use model::{Provenance, Trace, TraceBuilder, TraceSink};

use super::{
    beside::{Beside, Quantity, Reading, Reason},
    curve, load,
    slo::{By, Slo},
    *,
};

fn trace(facts: &[(&str, &str)]) -> Trace {
    let mut builder = TraceBuilder::new("dir/r.json", "serving");
    facts.iter().for_each(|(key, value)| builder.manifest(key, value, Provenance::Observed));
    builder.finish()
}

const A: [(&str, &str); 9] = [
    ("load.1.concurrency", "1"),
    ("load.1.completed", "400"),
    ("load.1.input_tokens", "4000"),
    ("load.1.request_throughput", "2"),
    ("load.1.ttft.mean", "16"),
    ("load.1.ttft.std", "4"),
    ("load.1.ttft.p99", "20"),
    ("load.1.tpot.mean", "5.25"),
    ("load.1.tpot.p99", "6"),
];

fn with(changes: &[(&'static str, &'static str)]) -> Trace {
    let mut facts: Vec<_> = A.iter().filter(|(key, _)| changes.iter().all(|(own, _)| own != key)).copied().collect();
    facts.extend(changes);
    trace(&facts)
}

#[test]
fn a_first_token_is_the_only_gap_where_the_others_are_within_what_runs_differ_by() {
    let b = with(&[("load.1.ttft.mean", "56"), ("load.1.tpot.mean", "5.2")]);
    let found = Beside::of([&[&trace(&A)], &[&b]], None);
    assert!(found.refused.is_empty() && found.pairs.len() == 1, "{found:?}");
    let ttft = found.pairs[0].row(Quantity::Mean(Metric::Ttft)).unwrap();
    assert_eq!((ttft.reading, ttft.ratio()), (Reading::More, 3.5));
    // exp(ln 3.5 ± 1.96·√((4/16/20)² + (4/56/20)²))
    let (low, high) = ttft.interval.unwrap();
    assert!((low - 3.412).abs() < 1e-3 && (high - 3.590).abs() < 1e-3, "{low} {high}");
    assert_eq!(found.pairs[0].row(Quantity::Mean(Metric::Tpot)).unwrap().reading, Reading::Equal);
    let unknown: Vec<_> = found.caveats.iter().map(|own| matches!(own, Reason::Unknown(..))).collect();
    assert_eq!(unknown, [true; 3]);
}

#[test]
fn other_work_is_refused() {
    for (change, pairs) in [
        (("load.1.completed", "399"), 0),
        (("load.1.concurrency", "2"), 0),
        (("load.1.input_tokens", "4100"), 0),
        (("load.1.input_tokens", "4040"), 1),
        (("model.name", "m"), 1),
    ] {
        let found = Beside::of([&[&trace(&A)], &[&with(&[change])]], None);
        assert_eq!(found.pairs.len(), pairs, "{change:?}");
        assert_eq!(found.refused.is_empty(), pairs == 1, "{change:?}");
    }
    let named = |name| with(&[("model.name", name)]);
    let found = Beside::of([&[&named("m")], &[&named("n")]], None);
    assert_eq!(found.refused, [Reason::Differs("model.name", "m".into(), "n".into())]);
    assert!(found.pairs.is_empty() && found.alone[0].len() == 1);
}

/// K12: a rate of four a second against all at once, and speculation of one side, were no difference.
#[test]
fn k12_rate_and_speculation_are_work() {
    let rate = |b: &'static str| {
        let all = with(&[("workload.arrival", "inf")]);
        Beside::of([&[&all], &[&with(&[("load.1.request_rate", b)])]], None)
    };
    // Two answers a second keep up with two requests: their rate is the load.
    assert_eq!(rate("2").refused, [Reason::NoLoad]);
    let late = rate("4");
    assert!(late.pairs.len() == 1);
    assert!(late.caveats.contains(&Reason::Differs("workload.arrival", "inf".into(), "4/s".into())), "{late:?}");
    let accepts = with(&[("load.1.accept_length", "3.2")]);
    let one = Beside::of([&[&trace(&A)], &[&accepts]], None);
    let told = "3.2 tokens accepted at a time".to_owned();
    assert!(one.caveats.contains(&Reason::Unknown("workload.speculative", [None, Some(told.clone())])), "{one:?}");
    let none = with(&[("workload.speculative", "none")]);
    let other = Beside::of([&[&none], &[&accepts]], None);
    assert_eq!(other.refused, [Reason::Differs("workload.speculative", "none".into(), told)]);
    let both = Beside::of([&[&accepts], &[&accepts]], None);
    assert!(both.refused.is_empty() && both.pairs.len() == 1);
}

#[test]
fn good_requests_are_bounded_by_recorded_percentiles() {
    let [load] = load::of(&trace(&A)).try_into().unwrap();
    let slo = |text| Slo::parse(text).unwrap();
    // Both 99th percentiles hold: at most one in a hundred misses each.
    let good = slo("ttft=20ms,tpot=6").goodput(&load).unwrap();
    assert!((good.low - 1.96).abs() < 1e-9 && good.high == 2.0 && good.by == By::Percentiles);
    assert_eq!(slo("ttft=20ms,tpot=6").holds(&load), Some(true));
    assert_eq!(slo("ttft=30ms,p=99.9").holds(&load), None, "no such percentile was recorded");
    assert_eq!(slo("ttft=0.019s,p=99.5").holds(&load), Some(false));
    for wrong in ["", "ttft", "ttft=0", "x=1", "ttft=5,p=100"] {
        assert!(Slo::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_knee_needs_a_curve_that_bends_and_curves_cross_where_signs_change() {
    let load = |n: f64, e2e: f64, done: f64| {
        let mut load = Load::default();
        load.numbers.extend([("concurrency".to_owned(), n), ("request_throughput".to_owned(), done)]);
        load.times.insert(Metric::E2e, Times { mean: Some(e2e), ..Times::default() });
        load
    };
    let loads = [load(1.0, 10.0, 100.0), load(8.0, 12.0, 660.0), load(32.0, 40.0, 800.0)];
    assert_eq!(curve::knee(&loads.iter().collect::<Vec<_>>()), Some(1));
    assert_eq!(curve::knee(&loads[..2].iter().collect::<Vec<_>>()), None);
    assert_eq!(curve::crossings(&[(1.0, 10.0, 8.0), (3.0, 10.0, 12.0)], 0.02), [(1.0, 3.0, 2.0)]);
    assert_eq!(curve::crossings(&[(1.0, 10.0, 8.0), (3.0, 10.0, 10.1)], 0.02), []);
}

/// A failed run was told as one whose tokens come after 0 ms, and a rate that was kept as the limit of concurrency.
#[test]
fn a_load_without_answers_has_no_times_and_a_rate_that_is_kept_is_the_load() {
    let void = with(&[("load.1.completed", "0"), ("load.1.failed", "1")]);
    let [load] = load::of(&void).try_into().unwrap();
    assert!(load.is_void() && load.failed() == Some(1.0) && load.times.is_empty() && load.requests.is_empty());
    let offered = |rate: &'static str| {
        let [load] = load::of(&with(&[("load.1.request_rate", rate)])).try_into().unwrap();
        (load.pressed(), load.level(), load.request_throughput())
    };
    let (pressed, level, answered) = offered("2");
    assert_eq!((pressed, answered), (Some(load::Level::Rate(2.0)), Some(2.0)));
    assert!(matches!(level, Some(load::Level::Concurrency(_))), "two results are paired by what was asked");
    assert_eq!(offered("9").0, level, "the answers did not keep up");
}
