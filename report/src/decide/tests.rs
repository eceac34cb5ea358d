#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
use std::collections::BTreeMap;

use diagnosis::serving::Times;

use super::*;
use crate::markdown;

/// One load: prompt, requests at a time, tokens per second, and the 99th percentile of TTFT.
fn load(input: f64, n: f64, tokens: f64, ttft: f64) -> Load {
    let numbers = [
        ("concurrency", n),
        ("input_len", input),
        ("output_len", 100.0),
        ("completed", 100.0),
        ("output_throughput", tokens),
        ("request_throughput", tokens / 100.0),
        ("devices", 1.0),
    ];
    let times = |ms| Times { mean: Some(ms), std: Some(ms / 100.0), percentiles: vec![(99.0, ms)] };
    let all = [(Metric::Ttft, ttft), (Metric::Tpot, 10.0), (Metric::E2e, ttft + 990.0)];
    Load {
        numbers: numbers.map(|(name, value)| (name.to_owned(), value)).into(),
        times: all.map(|(metric, ms)| (metric, times(ms))).into_iter().collect::<BTreeMap<_, _>>(),
        ..Load::default()
    }
}

fn decide(a: &[Load], b: &[Load], slo: &str, force: bool) -> Decision {
    let given = [a, b].map(|loads| Given { loads: loads.to_vec(), ..Given::default() });
    let slo = (!slo.is_empty()).then(|| Slo::parse(slo).unwrap());
    let prices = "a.device_hour = 1.0\nb.device_hour = 1.0".parse().unwrap();
    Decision::build(given, Prices::read(prices).ok(), slo, Vec::new(), Vec::new(), None, force)
}

fn page(decision: &Decision) -> String {
    markdown::render(&decision.document(Lang::En))
}

/// The loads of A once chose for both: exchanging the sides changed who wins, and a side was said to hold no target that it held.
#[test]
fn exchanging_the_sides_exchanges_the_winner() {
    let a = [load(100.0, 1.0, 100.0, 60.0), load(500.0, 16.0, 900.0, 400.0)];
    let b = [load(100.0, 1.0, 110.0, 20.0), load(500.0, 16.0, 990.0, 200.0)];
    for slo in ["ttft=40ms", "ttft=300ms", ""] {
        let (there, back) = (decide(&a, &b, slo, false), decide(&b, &a, slo, false));
        assert_eq!((there.winner, back.winner), (Some(1), Some(0)), "{slo}");
        assert_eq!(there.standing, back.standing, "{slo}");
    }
    let strict = page(&decide(&a, &b, "ttft=40ms", false));
    assert!(strict.contains("A holds the targets under no load that was measured"), "{strict}");
    assert!(!strict.contains("B holds the targets under no load"), "{strict}");
    let wide = page(&decide(&a, &b, "ttft=300ms", false));
    assert!(!wide.contains("under no load that was measured:"), "A holds them at its short prompts\n{wide}");
}

/// Where neither held the targets the cheaper one was called the winner all the same.
#[test]
fn who_holds_no_target_does_not_win() {
    let (a, b) = ([load(100.0, 1.0, 100.0, 60.0)], [load(100.0, 1.0, 200.0, 50.0)]);
    let decision = decide(&a, &b, "ttft=40ms", false);
    assert_eq!((decision.standing, decision.winner), (Standing::Neither, None));
    assert!(page(&decision).contains("There is no winner: neither holds the targets"), "{}", page(&decision));
}

/// Numbers that were asked for in spite of a refusal once had no banner, and one side no rate.
#[test]
fn forced_numbers_have_a_banner_and_both_rates() {
    let (a, b) = ([load(100.0, 1.0, 100.0, 20.0)], [load(900.0, 1.0, 200.0, 20.0)]);
    let refused = decide(&a, &b, "", false);
    assert!(refused.balance.is_none() && refused.winner.is_none() && !refused.refused.is_empty());
    let forced = decide(&a, &b, "", true);
    assert!(forced.balance.is_some() && page(&forced).contains("FORCED"), "{}", page(&forced));
}

/// At one work one side won and at another the other one, and the page named a winner.
#[test]
fn two_works_with_two_winners_have_none() {
    let a = [load(100.0, 1.0, 100.0, 20.0), load(500.0, 1.0, 50.0, 20.0)];
    let b = [load(100.0, 1.0, 50.0, 20.0), load(500.0, 1.0, 100.0, 20.0)];
    let decision = decide(&a, &b, "", false);
    assert_eq!((decision.standing, decision.winner), (Standing::Split, None));
}

/// The rate and the cost of four devices were those of one.
#[test]
fn a_step_of_four_devices_is_shared_by_four() {
    let given = [1.0, 4.0].map(|n| Given { devices: Some(n), steps: vec![(8, 10_000_000)], ..Given::default() });
    let prices = "a.device_hour = 1.0\nb.device_hour = 1.0".parse().unwrap();
    let decision = Decision::build(given, Prices::read(prices).ok(), None, Vec::new(), Vec::new(), None, false);
    let rates = decision.worth.each_ref().map(|own| own.per_device.unwrap().value);
    assert_eq!((rates, decision.balance.unwrap().cost), ([800.0, 200.0], Some(4.0)));
}

/// A fleet was printed with its price although its simulation missed its own measurements.
#[test]
fn what_was_measured_stands_in_the_fleet_and_a_refuted_simulation_does_not() {
    let sweep = [load(100.0, 1.0, 90.0, 20.0), load(100.0, 16.0, 200.0, 30.0)];
    let decision = decide(&sweep, &[load(100.0, 1.0, 50.0, 20.0)], "ttft=300ms,tpot=50ms", false);
    assert_eq!(decision.measured[0], Some((Some(Level::Concurrency(16.0)), 2.0)));
    assert!(decision.misses[0].unwrap() > MISSES && decision.together[0].is_none(), "{:?}", decision.misses);
    assert!(page(&decision).contains("withheld: the simulation misses"), "{}", page(&decision));
}

/// A result as close as a second run had a winner by 1.00×.
#[test]
fn a_tie_is_no_difference_shown() {
    let (a, b) = ([load(100.0, 1.0, 100.0, 20.0)], [load(100.0, 1.0, 101.0, 20.0)]);
    let decision = decide(&a, &b, "ttft=40ms", false);
    assert_eq!((decision.standing, decision.winner), (Standing::Equal, None));
    let page = page(&decision);
    assert!(
        page.contains("No difference is shown, so there is no winner (speed of a device B/A 1.01×; a token on B"),
        "{page}"
    );
    assert!(page.contains("Break-even: a device of A") && page.contains("Break-even: a device of B"), "{page}");
}

/// What would have to change stood on the page twice and was never joined: whether the first finding of the slower side would do.
#[test]
fn the_first_finding_of_the_slower_side_is_weighed_against_the_gap() {
    for (after, said) in [(4_000_000, "That would do, and B would win"), (18_000_000, "That alone would not do")] {
        let step = |ns, winnable| Given { devices: Some(1.0), steps: vec![(1, ns)], winnable, ..Given::default() };
        let given = [step(10_000_000, None), step(20_000_000, Some(("RT-25", 20_000_000, after)))];
        let decision = Decision::build(given, None, None, Vec::new(), Vec::new(), None, false);
        assert!(page(&decision).contains(said), "{}", page(&decision));
    }
}
