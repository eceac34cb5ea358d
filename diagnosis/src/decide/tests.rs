#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
use super::{
    choice,
    costs::Costs,
    fleet::{self, Arrival, Work},
    money::{Balance, Side, Worth},
    price::Prices,
    *,
};
use crate::serving::{Load, Metric, Slo, Times};

fn near(a: f64, b: f64, share: f64) -> bool {
    (a - b).abs() <= share * b.abs()
}

fn price(text: &str) -> Result<Prices, String> {
    Prices::read(text.parse().unwrap())
}

#[test]
fn costs_and_break_even_are_those_of_the_arithmetic() {
    let prices = price(
        "currency = 'EUR'\n[a]\ndevice_hour = 3.6\npower_w = 700\n[b]\npurchase = 17532\nyears = 4\nutilisation = 0.5\npower_w = 500\npue = 1.2\nenergy_price = 0.5\nmigration = 1000",
    )
    .unwrap();
    let side = |tokens, price| Side { tokens: Some(Number::measured(tokens)), power_w: None, price };
    let sides = [side(1000.0, prices.a), side(800.0, prices.b)];
    let worth = [Worth::of(&sides[0]), Worth::of(&sides[1])];
    // 17532 / (4 · 8766 · 0.5) = 1.0, and 0.5 kW · 1.2 · 0.5 = 0.3 an hour.
    assert!(near(worth[1].hour.unwrap().value, 1.3, 1e-12) && worth[1].hour.unwrap().origin == Origin::Modelled);
    assert!(near(worth[0].million.unwrap().value, 1.0, 1e-12) && worth[0].joules.unwrap().value == 0.7);
    assert_eq!(worth[0].joules.unwrap().origin, Origin::Declared);
    let balance = Balance::of(&sides, &worth, None).unwrap();
    assert!(near(balance.break_even_hours[1].unwrap(), 2.88, 1e-12), "0.8 of 3.6");
    assert!(near(balance.break_even_purchases[1].unwrap(), (2.88 - 0.3) * 17532.0, 1e-9));
    let cost = 1.3 / (800.0 * 3600.0) * 1e6;
    assert!(
        near(balance.cost.unwrap(), cost, 1e-12) && balance.loser == 0 && near(balance.faster, 1.0 / cost - 1.0, 1e-9)
    );
    assert!(near(balance.repaid_after.unwrap(), 1000.0 / ((1.0 - cost) / 1e6), 1e-9));
}

#[test]
fn what_is_not_declared_is_named_and_what_cannot_be_is_refused() {
    assert_eq!(price("[a]\npurchase = 1").unwrap().a.hour(None), Err("years"));
    assert_eq!(price("").unwrap().b.hour(None), Err("device_hour"));
    for (wrong, said) in
        [("[a]\npue = 0.5", "pue"), ("[b]\nutilisation = 2", "utilisation"), ("[a]\nprise = 1", "prise")]
    {
        assert!(price(wrong).unwrap_err().contains(said), "{wrong}");
    }
}

fn costs() -> Costs {
    Costs::of(&[(100.0, 12.0), (1000.0, 30.0)], &[(1.0, 5.0), (16.0, 8.0)]).unwrap()
}

#[test]
fn lines_go_through_what_was_measured() {
    let own = costs();
    assert!(near(own.prefill(550.0), 21.0, 1e-9) && near(own.fixed, 10.0, 1e-9));
    assert!(near(own.step(8.5), 6.5, 1e-9) && own.step(1.0) == 5.0 && near(own.step(31.0), 11.0, 1e-9));
    let one = Costs::of(&[(100.0, 20.0)], &[(4.0, 6.0)]).unwrap();
    assert!(one.fixed == 0.0 && one.prefill(50.0) == 10.0 && one.step(1.0) == 6.0);
}

#[test]
fn one_request_at_a_time_takes_what_its_parts_take() {
    let work = Work { input: 100.0, output: 11.0, slo: Slo::parse("ttft=50,tpot=10").unwrap() };
    let outcome = fleet::together(&costs(), &work, Arrival::Closed(1), 8192.0, 1).unwrap();
    assert!(near(outcome.mean(Metric::Ttft), 12.0, 1e-9) && near(outcome.mean(Metric::Tpot), 5.0, 1e-9));
    assert!(near(outcome.rate, 1e3 / 62.0, 0.01), "{}", outcome.rate);
    assert_eq!(outcome, fleet::together(&costs(), &work, Arrival::Closed(1), 8192.0, 1).unwrap());
}

/// A queue with one server and a fixed time of service has a mean wait that is known (Pollaczek–Khinchine).
#[test]
fn a_worker_for_prefill_alone_waits_as_theory_says() {
    let own = Costs::of(&[(100.0, 10.0)], &[(1.0, 1e-6), (4096.0, 1e-6)]).unwrap();
    let work = Work { input: 100.0, output: 2.0, slo: Slo::parse("ttft=1000").unwrap() };
    let outcome = fleet::apart([&own, &own], &work, 50.0, [1, 1], 4096).unwrap();
    // Half busy: 10 ms + 10 · 0.5 / (2 · 0.5).
    assert!(near(outcome.mean(Metric::Ttft), 15.0, 0.06), "{}", outcome.mean(Metric::Ttft));
}

#[test]
fn workers_are_shared_so_that_both_kinds_are_busy_and_the_targets_hold() {
    let work = Work { input: 1000.0, output: 100.0, slo: Slo::parse("ttft=200,tpot=10,p=95").unwrap() };
    let own = costs();
    let fleet = fleet::best_apart([&own, &own], &work).unwrap();
    assert!(fleet.outcome.holds(&work.slo) && fleet.batch == 16, "{fleet:?}");
    // 16 sequences of 100 tokens at 8 ms: 20 requests each second of a worker.
    assert!(near(fleet.of_one[1], 20.0, 1e-9) && fleet.of_one[0] > 20.0 && fleet.of_one[0] < 1e3 / 30.0);
    let best = fleet::best_together(&own, &work).unwrap();
    assert!(best.rate > 0.0 && best.rate < 20.0, "{best:?}");
    let strict = Work { slo: Slo::parse("ttft=20").unwrap(), ..work };
    assert_eq!(fleet::best_together(&own, &strict), None, "a prompt alone takes longer");
}

/// One load of `input` → 100 tokens, `n` at a time.
fn load(input: f64, n: f64, tokens: f64, ttft: f64) -> Load {
    let numbers = [
        ("concurrency", n),
        ("input_len", input),
        ("output_len", 100.0),
        ("completed", 100.0),
        ("output_throughput", tokens),
    ];
    let times = Times { mean: Some(ttft), std: Some(ttft / 10.0), percentiles: vec![(99.0, ttft)] };
    Load {
        numbers: numbers.map(|(name, value)| (name.to_owned(), value)).into(),
        times: [(Metric::Ttft, times.clone()), (Metric::E2e, times)].into(),
        ..Load::default()
    }
}

/// The best load of A once chose the work for both: B was said to hold no target that it held, and exchanging the sides changed
/// the winner.
#[test]
fn loads_are_chosen_for_both_sides_by_one_rule() {
    let a = [load(100.0, 1.0, 10.0, 50.0), load(500.0, 16.0, 100.0, 400.0)];
    let b = [load(501.0, 8.0, 80.0, 200.0), load(100.0, 1.0, 12.0, 20.0), load(900.0, 1.0, 5.0, 10.0)];
    let slo = Slo::parse("ttft=300ms").unwrap();
    let (there, back) = (choice::kinds([&a, &b], Some(&slo)), choice::kinds([&b, &a], Some(&slo)));
    let rates =
        |kinds: &[choice::Kind]| kinds.iter().map(|k| k.picks.each_ref().map(choice::Pick::rate)).collect::<Vec<_>>();
    assert_eq!(rates(&there), [[10.0, 12.0], [100.0, 80.0]], "900 tokens were measured of B alone");
    assert_eq!(rates(&back), [[12.0, 10.0], [80.0, 100.0]]);
    assert_eq!((there[0].only(), there[1].only(), back[1].only()), (None, Some(1), Some(0)));
    let strict = Slo::parse("ttft=40ms").unwrap();
    assert_eq!((choice::anywhere(&a, Some(&strict)), choice::anywhere(&b, Some(&strict))), (Some(false), Some(true)));
}

/// A result against itself, and what is as close as two runs, once had a winner.
#[test]
fn what_is_within_the_noise_has_no_winner() {
    let side = |tokens| Side { tokens: Some(Number::measured(tokens)), ..Side::default() };
    let of = |a, b, interval| {
        let sides = [side(a), side(b)];
        Balance::of(&sides, &[Worth::of(&sides[0]), Worth::of(&sides[1])], interval).unwrap().winner
    };
    assert_eq!((of(100.0, 100.0, None), of(100.0, 101.0, None)), (None, None));
    assert_eq!((of(100.0, 110.0, Some((0.9, 1.3))), of(100.0, 110.0, Some((1.05, 1.15)))), (None, Some(1)));
    assert_eq!(of(110.0, 100.0, Some((0.86, 0.95))), Some(0));
    // Runs that differ by a half say little of their mean.
    let runs = [load(100.0, 1.0, 10.0, 50.0), load(100.0, 1.0, 15.0, 50.0)];
    let pick = choice::best(&runs.iter().collect::<Vec<_>>(), None).unwrap();
    assert!(pick.rate() == 10.0 && pick.spread.unwrap() > 1.0, "{pick:?}");
}

/// Without a target of the first token prompts once cost nothing: the rate was the bound of decode, and the queue grew.
#[test]
fn prompts_take_time_where_no_target_is_of_them() {
    let own = Costs::of(&[(1000.0, 286.0)], &[(1.0, 50.0), (2.0, 60.49)]).unwrap();
    let work = Work { input: 1000.0, output: 24.0, slo: Slo::parse("tpot=500").unwrap() };
    let best = fleet::best_together(&own, &work).unwrap();
    // 286 ms of prefill and 23 / 2 · 60.49 ms of decode.
    let most = 1e3 / (286.0 + 23.0 / 2.0 * 60.49);
    assert!(best.rate <= most && best.rate > 0.8 * most, "{best:?} of {most}");
    let late = fleet::together(&own, &work, Arrival::Rate(1.5 * most), 8192.0, 2).unwrap();
    assert!(!late.keeps_up(), "{} of {}", late.rate, late.asked);
}
