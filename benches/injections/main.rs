//! Each bottleneck that the engine can suffer, on against off inside one process, and what a diagnosis of the "on" run makes
//! of it: the true difference beside layer, rule and interval.
//!
//! Both runs of a repeat are neighbours in time and take turns in being first, so that what the machine does meanwhile does
//! it to both. `cargo bench --bench injections`; `STRATO_REPEATS`, `STRATO_MODEL`, `STRATO_LAYERS` and `STRATO_ONLY` (a part
//! of an injection's text) change what is run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod case;
mod subject;

use case::{CASES, Case};
use collectors::telemetry::ticks::Ticks;
use model::{Ns, Statistic};
use probes::{BUDGET, Product, Setup};
use stratoscope::{
    analysis::{self, Layer, Options},
    diagnose::{Finding, Severity, diagnose, rules::ceilings::PROBES},
    platform::Packs,
};
use subject::{Subject, Took};

/// Gain below which nothing is reported, so that a diagnosis without a finding is right about it: the common gate.
const GATE: f64 = 0.01;

/// What a diagnosis said of one repeat.
struct Said {
    rule: &'static str,
    layer: Option<Layer>,
    right: bool,
    /// What it promises to gain, ns per step: the least and the most.
    gains: Option<(Ns, Ns)>,
    truth: Ns,
}

impl Said {
    fn is_inside(&self) -> bool {
        self.gains.is_some_and(|(least, most)| (least..=most).contains(&self.truth))
    }
}

/// What a diagnosis puts first.
fn first(packs: &Packs, took: &Took) -> Option<Finding> {
    let analysis = analysis::analyze(&took.trace, packs, &Options::default());
    let weighty = |f: &Finding| f.layer != Layer::Measurement && f.severity >= Severity::Low;
    diagnose(&took.trace, &analysis, packs).findings.into_iter().find(weighty)
}

fn say(case: &Case, packs: &Packs, off: &Took, on: &Took) -> Said {
    let (healthy, first) = (first(packs, off), first(packs, on));
    let truth = on.step - off.step;
    // What costs nothing that is worth telling must not be told: what comes first is then what came first without it.
    let small = (truth as f64) < GATE * on.step as f64;
    let right = match &first {
        Some(first) if small => healthy.is_some_and(|healthy| healthy.rule == first.rule),
        Some(first) => case.layers.contains(&first.layer) && case.rank.is_none_or(|rank| first.ranks.contains(&rank)),
        None => small,
    };
    let first = first.as_ref();
    Said {
        rule: first.map_or("–", |first| first.rule),
        layer: first.map(|first| first.layer),
        right,
        gains: first.map(|f| (f.estimate.from - f.estimate.to_high, f.estimate.from - f.estimate.to_low)),
        truth,
    }
}

fn median(values: impl Iterator<Item = Ns>) -> f64 {
    Statistic::of(values.map(|ns| ns as f64)).map_or(0.0, |statistic| statistic.median)
}

fn main() {
    let number = |name: &str, default: usize| {
        std::env::var(name).ok().map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
    };
    let repeats = number("STRATO_REPEATS", 10).max(1);
    let only = std::env::var("STRATO_ONLY").unwrap_or_default();
    let packs = Packs::embedded().unwrap();
    let subject = Subject::chosen(std::env::var("STRATO_MODEL").ok().as_deref(), number("STRATO_LAYERS", 8));
    let before = Ticks::now().ok();
    println!("| injection | true difference | share | layer | rule | gains it promises | layer right | truth inside |");
    println!("| --- | ---: | ---: | --- | --- | ---: | ---: | ---: |");
    let (mut layers, mut inside, mut cases) = (0, 0, 0);
    for case in CASES.iter().filter(|case| case.inject.contains(&only)) {
        let (off, on) = (case.options(false), case.options(true));
        let programs = on.programs(&subject.config, engine::Shard { rank: 0, of: case.ranks }).unwrap();
        let setup = Setup {
            target: engine::Target::Cpu,
            threads: on.threads,
            isa: on.isa,
            budget: BUDGET / 4,
            products: Product::of_programs(&programs, on.dtype),
        };
        let ceilings = probes::run(&setup, |probe| PROBES.contains(&probe.name), |_, _| ());
        let mut said = Vec::new();
        let (mut runs_off, mut runs_on) = (subject.ready(&off, case.ranks), subject.ready(&on, case.ranks));
        let mut spans = Vec::new();
        for repeat in 0..repeats {
            let (mut a, mut b) = if repeat % 2 == 0 {
                let a = runs_off.run();
                (a, runs_on.run())
            } else {
                let b = runs_on.run();
                (runs_off.run(), b)
            };
            a.trace.probes = ceilings.clone();
            b.trace.probes = ceilings.clone();
            spans.push(b.step);
            said.push(say(case, &packs, &a, &b));
        }
        let right = said.iter().filter(|s| s.right).count();
        let within = said.iter().filter(|s| s.is_inside()).count();
        let truth = median(said.iter().map(|s| s.truth));
        let step = median(spans.into_iter());
        // The answer of most repeats stands for the case.
        let most = said.iter().max_by_key(|s| said.iter().filter(|t| t.rule == s.rule).count()).unwrap();
        let layer = most.layer.map_or("none", Layer::key);
        let part = |pick: fn((Ns, Ns)) -> Ns| median(said.iter().filter_map(|s| s.gains.map(pick))) / 1e3;
        println!(
            "| `{}` | {:.0} µs | {:.1} % | {layer} | {} | {:.0}–{:.0} µs | {right}/{repeats} | {within}/{repeats} |",
            case.inject,
            truth / 1e3,
            100.0 * truth / step.max(1.0),
            most.rule,
            part(|gains| gains.0),
            part(|gains| gains.1),
        );
        cases += 1;
        layers += usize::from(2 * right > repeats);
        inside += usize::from(2 * within > repeats);
    }
    println!(
        "\nLayer right in {layers} of {cases}, truth inside the interval in {inside} of {cases}, by most repeats."
    );
    if let Some(shares) = before.zip(Ticks::now().ok()).and_then(|(before, after)| after.since(&before)) {
        println!("Others had {:.1} % of the processors meanwhile.", 100.0 * shares.others());
    }
}
