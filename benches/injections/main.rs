//! Each bottleneck that the engine can suffer, on against off inside one process, and what a diagnosis of the "on" run makes
//! of it: the true difference beside layer, rule and interval.
//!
//! Both runs of a repeat are neighbours in time and take turns in being first, so that what the machine does meanwhile does
//! it to both. The true difference of a case is the median of its repeats' differences of mean steps: what a single pair of runs differs by
//! is as much the machine's noise. A promise is of one run, and is held against what that run's mean step has more than the
//! median healthy run. `cargo bench --bench injections`; `STRATO_REPEATS` and `STRATO_ONLY` (a part of an
//! injection's text) change what is run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod case;
mod subject;

use case::{CASES, Case};
use collectors::telemetry::ticks::Ticks;
use diagnosis::{
    analysis::Layer,
    diagnose::{Finding, Severity, rules::ceilings::PROBES},
    platform::Packs,
};
use model::{Ns, Statistic};
use probes::{BUDGET, Product, Setup};
use session::{Options, Session};
use subject::{Subject, Took};

/// Gain below which nothing is reported, so that a diagnosis without a finding is right about it: the common gate.
const GATE: f64 = 0.01;

/// What the diagnosis of the "on" run says that the one of the "off" run does not: the finding whose promise grew most.
/// A subject has weaknesses of its own, and where a fault costs less than those the first finding is rightly one of them.
struct Said {
    grown: Option<Grown>,
}

struct Grown {
    finding: Finding,
    /// What the same rule promises of the median run without the fault, ns per step.
    before: Ns,
}

impl Grown {
    /// What is promised beyond what was promised before, ns per step: the least and the most.
    fn gains(&self) -> (Ns, Ns) {
        let (least, most) = promised(&self.finding);
        (least - self.before, most - self.before)
    }

    fn middle(&self) -> Ns {
        middle(&self.finding) - self.before
    }
}

impl Said {
    /// `healthy` are the findings of all runs without the fault. What these differ by from run to run is the machine's doing:
    /// a finding says something new where it promises more than any of them did.
    fn of(healthy: &[Vec<Finding>], findings: Vec<Finding>, step: Ns) -> Self {
        let grown = findings.into_iter().filter_map(|finding| {
            let same = |other: &&Finding| other.rule == finding.rule && other.ranks == finding.ranks;
            let before = healthy.iter().map(|run| run.iter().find(same).map_or(0, middle));
            let usual = median(before.clone()) as Ns;
            let is_new = before.max().is_none_or(|most| middle(&finding) > most);
            is_new.then_some(Grown { finding, before: usual })
        });
        // One that the gate would hold back says nothing new.
        let told = grown.filter(|grown| grown.middle() as f64 >= GATE * step as f64);
        Self { grown: told.max_by_key(Grown::middle) }
    }

    fn rule(&self) -> &'static str {
        self.grown.as_ref().map_or("–", |grown| grown.finding.rule)
    }

    /// What costs nothing that is worth telling must not be told.
    fn is_right(&self, case: &Case, small: bool) -> bool {
        match &self.grown {
            None => small,
            Some(Grown { finding, .. }) => {
                !small
                    && case.layers.contains(&finding.layer)
                    && case.rank.is_none_or(|rank| finding.ranks.contains(&rank))
            }
        }
    }
}

/// What a finding promises, ns per step: the least and the most.
fn promised(finding: &Finding) -> (Ns, Ns) {
    let estimate = &finding.estimate;
    (estimate.from - estimate.to_high, estimate.from - estimate.to_low)
}

fn middle(finding: &Finding) -> Ns {
    let (least, most) = promised(finding);
    least.midpoint(most)
}

/// What a diagnosis finds, of some weight, and not of the measurement itself.
fn findings(packs: &Packs, took: &Took) -> Vec<Finding> {
    let session = Session::of(vec![took.trace.clone()], packs.clone());
    let diagnosed = session.examine(&Options::default()).and_then(session::Examined::diagnose).unwrap();
    let weighty = |f: &Finding| f.layer != Layer::Measurement && f.severity >= Severity::Low;
    diagnosed.captures.into_iter().flat_map(|(_, _, diagnosis)| diagnosis.findings).filter(weighty).collect()
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
    let before = Ticks::now().ok();
    println!(
        "| injection | model | true difference | of it in operators | share | layer | rule | gains it promises | layer right | truth inside |"
    );
    println!("| --- | --- | ---: | ---: | ---: | --- | --- | ---: | ---: | ---: |");
    let (mut layers, mut inside, mut cases, mut costly) = (0, 0, 0, 0);
    for case in CASES.iter().filter(|case| case.inject.contains(&only)) {
        let subject = Subject::chosen(case.size);
        let (off, on) = (case.options(false), case.options(true));
        let programs = on.programs(&subject.config, engine::Shard { rank: 0, of: case.ranks }).unwrap();
        let setup = Setup {
            target: engine::Target::Cpu,
            threads: on.threads,
            isa: on.isa,
            budget: BUDGET / 4,
            products: Product::of_run(&programs, &on),
        };
        let ceilings = probes::run(&setup, |probe| PROBES.contains(&probe.name), |_, _| ());
        let (mut runs_off, mut runs_on) = (subject.ready(&off, case.ranks), subject.ready(&on, case.ranks));
        let (mut spans, mut differences, mut work) = (Vec::new(), Vec::new(), Vec::new());
        let (mut healthy, mut found) = (Vec::new(), [Vec::new(), Vec::new()]);
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
            healthy.push(a.step);
            differences.push(b.step - a.step);
            work.push(b.work - a.work);
            found[0].push(findings(&packs, &a));
            found[1].push(findings(&packs, &b));
        }
        let [without, with] = found;
        let said: Vec<Said> =
            with.into_iter().zip(&spans).map(|(found, step)| Said::of(&without, found, *step)).collect();
        let truth = median(differences.into_iter());
        let step = median(spans.iter().copied());
        let small = truth < GATE * step;
        let right = said.iter().filter(|said| said.is_right(case, small)).count();
        // What is promised of a run holds if that run would become as fast as healthy ones are.
        let healthy = median(healthy.into_iter());
        let holds = |said: &Said, step: Ns| {
            let gains = said.grown.as_ref().map(Grown::gains);
            gains.is_some_and(|(least, most)| (least as f64..=most as f64).contains(&(step as f64 - healthy)))
        };
        let within = said.iter().zip(&spans).filter(|(said, step)| holds(said, **step)).count();
        // The answer of most repeats stands for the case.
        let most = said.iter().max_by_key(|s| said.iter().filter(|t| t.rule() == s.rule()).count()).unwrap();
        let layer = most.grown.as_ref().map_or("none", |grown| grown.finding.layer.key());
        let part = |pick: fn((Ns, Ns)) -> Ns| {
            median(said.iter().filter_map(|s| s.grown.as_ref().map(Grown::gains).map(pick))) / 1e3
        };
        println!(
            "| `{}` | {:?} | {:.0} µs | {:.0} µs | {:.1} % | {layer} | {} | {:.0}–{:.0} µs | {right}/{repeats} | {} |",
            case.inject,
            case.size,
            truth / 1e3,
            median(work.into_iter()) / 1e3,
            100.0 * truth / step.max(1.0),
            most.rule(),
            part(|gains| gains.0),
            part(|gains| gains.1),
            if small { "–".to_owned() } else { format!("{within}/{repeats}") },
        );
        cases += 1;
        costly += usize::from(!small);
        layers += usize::from(2 * right > repeats);
        inside += usize::from(!small && 2 * within > repeats);
    }
    println!(
        "\nLayer right in {layers} of {cases}, truth inside the interval in {inside} of the {costly} that cost at least \
         {:.0} % of the step, by most repeats.",
        100.0 * GATE
    );
    if let Some(shares) = before.zip(Ticks::now().ok()).and_then(|(before, after)| after.since(&before)) {
        println!("Others had {:.1} % of the processors meanwhile.", 100.0 * shares.others());
    }
}
