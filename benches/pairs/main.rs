//! Pairs of runs of the engine whose difference was made on purpose: how much of what a comparison finds lies in the slots and
//! layers and under the causes of which it was made.
//!
//! The runs of a repeat are neighbours in time and take turns in being first; each slot and bucket is averaged over the
//! repeats before its mass is counted, so that noise without a direction leaves. `cargo bench --bench pairs`;
//! `STRATO_REPEATS` and `STRATO_ONLY` (a part of a pair's name) change what is run, and `STRATO_TERMS` prints so many of the
//! largest terms of each pair.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../injections/case.rs"]
mod case;
mod pair;
#[path = "../injections/subject.rs"]
mod subject;

use std::collections::BTreeMap;

use collectors::telemetry::ticks::Ticks;
use diagnosis::{
    analysis::Layer,
    compare::{Difference, waterfall::Cause},
    platform::Packs,
};
use model::Trace;
use pair::Pair;
use session::{Options, Session};
use subject::Subject;

/// Share of the mass that has to lie right.
const GOAL: f64 = 0.9;

/// Where a part of a difference lies and what it is said to come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Term {
    slot: String,
    bucket: String,
    layer: Layer,
    cause: Cause,
    /// Whether it is a wait for another rank, whatever that one did meanwhile.
    waited: bool,
    is_own: bool,
}

/// Time of each term of a pair, ns summed over the repeats.
type Terms = BTreeMap<Term, f64>;

fn add(terms: &mut Terms, pair: &Pair, packs: &Packs, [a, b]: [Trace; 2]) -> Option<()> {
    let examined = Session::of(vec![a, b], packs.clone()).examine(&Options::default()).unwrap();
    let [a, b] = examined.captures() else { return None };
    let difference = Difference::of((&a.trace, &a.analysis), (&b.trace, &b.analysis), false)?;
    for row in &difference.waterfall.rows {
        let slot = &difference.alignment.slots[row.slot as usize];
        for (cause, ns) in &row.causes {
            let (bucket, is_own) = (row.bucket.clone(), (pair.is_own)(row, slot));
            let term = Term { slot: slot.key(), bucket, layer: row.layer, cause: *cause, waited: row.waited, is_own };
            *terms.entry(term).or_default() += *ns as f64;
        }
    }
    Some(())
}

/// Share of the mass of the terms that `right` takes.
fn share(terms: &Terms, right: impl Fn(&Term) -> bool) -> f64 {
    let mass =
        |own: &dyn Fn(&Term) -> bool| terms.iter().filter(|(term, _)| own(term)).map(|(_, ns)| ns.abs()).sum::<f64>();
    mass(&right) / mass(&|_| true).max(1.0)
}

fn main() {
    let number = |name: &str, default: usize| {
        std::env::var(name).ok().map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
    };
    let (repeats, printed) = (number("STRATO_REPEATS", 10).max(1), number("STRATO_TERMS", 0));
    let only = std::env::var("STRATO_ONLY").unwrap_or_default();
    let packs = Packs::embedded().unwrap();
    let before = Ticks::now().ok();
    println!("| pair | A | B | of B − A in operators | slot right | layer right | cause right | all three |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let (mut right, mut pairs) = (0, 0);
    for pair in pair::all().into_iter().filter(|pair| pair.name.contains(&only)) {
        let subject = Subject::chosen(pair.size);
        let mut ready = [0, 1].map(|n| subject.ready(&pair.sides[n], pair.ranks[n]));
        let (mut terms, mut steps, mut work) = (Terms::new(), [0i64; 2], 0);
        for repeat in 0..repeats {
            let mut took = [None, None];
            for n in if repeat % 2 == 0 { [0, 1] } else { [1, 0] } {
                took[n] = Some(ready[n].run());
            }
            let [a, b] = took.map(Option::unwrap);
            steps = [steps[0] + a.step, steps[1] + b.step];
            work += b.work - a.work;
            add(&mut terms, &pair, &packs, [a.trace, b.trace]).expect("steps of one stage");
        }
        let of = |own: &dyn Fn(&Term) -> bool| share(&terms, own);
        // Waits for other ranks are communication, whatever these did meanwhile.
        let of_layer = |term: &Term| if term.waited { Layer::Communication } else { term.layer };
        let layer = |term: &Term| pair.layers.contains(&of_layer(term)) || pair.layers.contains(&term.layer);
        let cause = |term: &Term| pair.causes.contains(&term.cause);
        let all = of(&|term| term.is_own && layer(term) && cause(term));
        let [a, b] = steps.map(|ns| ns as f64 / repeats as f64 / 1e3);
        println!(
            "| `{}` | {a:.0} µs | {b:.0} µs | {:.0} µs | {:.0} % | {:.0} % | {:.0} % | {:.0} % |",
            pair.name,
            work as f64 / repeats as f64 / 1e3,
            100.0 * of(&|term| term.is_own),
            100.0 * of(&layer),
            100.0 * of(&cause),
            100.0 * all
        );
        let mut largest: Vec<(&Term, &f64)> = terms.iter().collect();
        largest.sort_by(|x, y| y.1.abs().total_cmp(&x.1.abs()));
        for (term, ns) in largest.into_iter().take(printed) {
            let Term { slot, bucket, layer, cause, .. } = term;
            println!("    {:>10.1} µs {slot} {bucket} {} {}", ns / repeats as f64 / 1e3, layer.key(), cause.key());
        }
        pairs += 1;
        right += usize::from(all >= GOAL);
    }
    println!("\nAt least {:.0} % of the mass right in {right} of {pairs} pairs.", 100.0 * GOAL);
    if let Some(shares) = before.zip(Ticks::now().ok()).and_then(|(before, after)| after.since(&before)) {
        println!("Others had {:.1} % of the processors meanwhile.", 100.0 * shares.others());
    }
}
