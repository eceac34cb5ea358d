//! Which of two platforms to take: what each does for what it costs, what would have to change for the other to win, and how
//! prefill and decode share a fleet of them.

pub mod json;
mod page;

use super::{diff::Head, document::Document, sections::Shown};
use diagnosis::{
    compare::waterfall::Cause,
    decide::{
        Number,
        costs::Costs,
        fleet::{self, Apart, Arrival, Best, Work},
        money::{Balance, Side, Worth},
        price::Prices,
    },
    i18n::{Lang, Message},
    serving::{Level, Load, Metric, Slo, beside::is_same_work},
};
use model::Ns;

/// Loads whose simulation is shown beside what was measured.
const CHECKED: usize = 12;

/// Where the tokens per second of a side come from.
#[derive(Clone, Debug, PartialEq)]
pub enum From {
    /// A load of a serving result, and whether it holds the targets.
    Load(Box<Load>, Option<bool>),
    /// A decode step of a capture: sequences and ns.
    Step(u32, Ns),
}

/// What is known of one side.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Who it is.
    pub head: Head,
    /// Loads of its serving results.
    pub loads: Vec<Load>,
    /// Devices of the run, where it says so.
    pub devices: Option<f64>,
    /// Prefills that captures show: tokens and ms.
    pub prefills: Vec<(f64, f64)>,
    /// Decode steps that captures show: sequences and ns.
    pub steps: Vec<(u32, Ns)>,
    /// Tokens of a prompt and of an answer that captures say.
    pub lengths: [Option<f64>; 2],
    /// Power of one device that was recorded, W.
    pub power_w: Option<f64>,
    /// What its own diagnosis says can be won at most: rule, ns of a step before and after.
    pub winnable: Option<(&'static str, Ns, Ns)>,
}

/// What a comparison of captures says of the gap: its causes, and the step of A, ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// Causes with their part.
    pub causes: [(Cause, Ns); 6],
    /// Step of A and of B.
    pub steps: [Ns; 2],
}

/// A simulated load beside the measured one.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// 0 for A and 1 for B.
    pub side: usize,
    /// How hard the server was pressed.
    pub level: Option<Level>,
    /// Tokens of a prompt and an answer.
    pub tokens: String,
    /// Mean TTFT, mean TPOT and requests per second: measured and simulated.
    pub values: [(Option<f64>, f64); 3],
}

/// The decision.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The two sides.
    pub heads: [Head; 2],
    /// Why the two may not be weighed; empty where they may.
    pub refused: Vec<Message>,
    /// Said before every number.
    pub banners: Vec<Message>,
    /// Targets.
    pub slo: Option<Slo>,
    /// What is declared of prices.
    pub prices: Option<Prices>,
    /// Where tokens per second come from.
    pub from: [Option<From>; 2],
    /// Whether the number of devices had to be taken for one.
    pub one_device: [bool; 2],
    /// What goes into the arithmetic.
    pub sides: [Side; 2],
    /// What comes out of it.
    pub worth: [Worth; 2],
    /// The two together.
    pub balance: Option<Balance>,
    /// What the difference of two steps comes from.
    pub gap: Option<Gap>,
    /// What each side's own diagnosis says can be won.
    pub winnable: [Option<(&'static str, Ns, Ns)>; 2],
    /// How long prefill and decode take.
    pub costs: [Option<Costs>; 2],
    /// What a fleet is asked for.
    pub work: Option<Work>,
    /// One worker that does both, of each side; only with targets.
    pub together: [Option<Best>; 2],
    /// Fleets whose prefill is of one side and decode of another, with the cost of a million tokens.
    pub fleets: Vec<([usize; 2], Option<Apart>, Option<f64>)>,
    /// Simulated loads beside measured ones.
    pub checks: Vec<Check>,
}

impl Decision {
    /// Puts a decision together.
    pub fn build(
        given: [Given; 2],
        prices: Option<Prices>,
        slo: Option<Slo>,
        refused: Vec<Message>,
        banners: Vec<Message>,
        gap: Option<Gap>,
    ) -> Self {
        let declared = prices.clone().unwrap_or_default();
        let declared = [declared.a, declared.b];
        let first = from(&given[0], slo.as_ref(), None);
        // Only loads of the same prompts and answers are set beside each other.
        let like = match &first {
            Some(From::Load(load, _)) => Some(&**load),
            _ => None,
        };
        let second = from(&given[1], slo.as_ref(), like);
        let from = [first, second];
        let mut one_device = [false; 2];
        let mut sides: [Side; 2] = Default::default();
        for (n, (own, price)) in given.iter().zip(declared).enumerate() {
            let (Some(side), Some(one)) = (sides.get_mut(n), one_device.get_mut(n)) else { continue };
            let of_load = match from.get(n) {
                Some(Some(From::Load(load, _))) => load.devices(),
                _ => None,
            };
            let known = of_load
                .map(Number::measured)
                .or(own.devices.map(Number::measured))
                .or(price.devices.map(Number::declared));
            *one = known.is_none();
            let devices = known.unwrap_or(Number::declared(1.0));
            let tokens = match from.get(n) {
                Some(Some(From::Load(load, _))) => load.output_throughput(),
                Some(Some(From::Step(batch, ns))) => Some(f64::from(*batch) / *ns as f64 * 1e9),
                _ => None,
            };
            side.tokens = tokens
                .map(Number::measured)
                .and_then(|t| t.with(devices, |t, n| t / n))
                .map(|n| Number::measured(n.value));
            let of_load = match from.get(n) {
                Some(Some(From::Load(load, _))) => load.number("power_w").map(|watts| watts / devices.value),
                _ => None,
            };
            side.power_w = of_load.or(own.power_w).map(Number::measured);
            side.price = price;
        }
        let worth = [Worth::of(&sides[0]), Worth::of(&sides[1])];
        let balance = Balance::of(&sides, &worth).filter(|_| refused.is_empty());
        let costs = given.each_ref().map(costs);
        let work = slo.clone().and_then(|slo| work(&given, slo));
        let batched = |n: usize| costs.get(n)?.as_ref().filter(|costs| costs.knows_batches());
        let fast = |n: usize| fleet::best_together(batched(n)?, work.as_ref()?);
        let together = [fast(0), fast(1)];
        let mut fleets = Vec::new();
        if let Some(work) = &work {
            for pair in [[0, 0], [1, 1], [0, 1], [1, 0]] {
                let both = pair.map(batched);
                let [Some(prefill), Some(decode)] = both else { continue };
                let found = fleet::best_apart([prefill, decode], work);
                let hour = |side: usize| worth.get(side)?.hour.map(|hour| hour.value);
                let cost = found.as_ref().and_then(|fleet| {
                    let money =
                        hour(pair[0])? * f64::from(fleet.workers[0]) + hour(pair[1])? * f64::from(fleet.workers[1]);
                    Some(money / (fleet.rate * work.output * 3600.0) * 1e6)
                });
                fleets.push((pair, found, cost));
            }
        }
        let checks = checks(&given, &costs);
        let [a, b] = given;
        Self {
            refused,
            banners,
            slo,
            prices,
            from,
            one_device,
            sides,
            worth,
            balance,
            gap,
            winnable: [a.winnable, b.winnable],
            costs,
            work,
            together,
            fleets,
            checks,
            heads: [a.head, b.head],
        }
    }

    /// As a document.
    pub fn document(&self, lang: Lang) -> Document {
        page::report(self, lang)
    }
}

impl Shown for Decision {
    fn is_simulated(&self) -> bool {
        self.heads.iter().any(|head| head.simulated)
    }
}

/// Where the tokens per second of a side come from: of the loads that hold the targets the one with most tokens, of the others one
/// that may hold them; without targets, and without loads, the decode step of a capture.
fn from(given: &Given, slo: Option<&Slo>, like: Option<&Load>) -> Option<From> {
    let rated = |wanted: Option<bool>| {
        let holds = |load: &&Load| slo.is_none_or(|slo| slo.holds(load) == wanted);
        let fitting = given
            .loads
            .iter()
            .filter(|load| like.is_none_or(|like| is_same_work(like, load)))
            .filter(holds)
            .filter(|load| load.output_throughput().is_some());
        let most = |a: &&Load, b: &&Load| {
            a.output_throughput().unwrap_or(0.0).total_cmp(&b.output_throughput().unwrap_or(0.0))
        };
        fitting.max_by(most).map(|load| From::Load(Box::new(load.clone()), slo.and(wanted)))
    };
    let step = given.steps.iter().max_by_key(|(batch, _)| *batch);
    rated(Some(true))
        .or_else(|| rated(None))
        .or_else(|| rated(Some(false)))
        .or(step.map(|(batch, ns)| From::Step(*batch, *ns)))
}

fn costs(given: &Given) -> Option<Costs> {
    let steps: Vec<(f64, f64)> = given.steps.iter().map(|(batch, ns)| (f64::from(*batch), *ns as f64 / 1e6)).collect();
    Costs::of_loads(&given.loads).or_else(|| Costs::of(&given.prefills, &steps))
}

/// The prompts and answers of the load with most tokens per second, else those of the captures.
fn work(given: &[Given; 2], slo: Slo) -> Option<Work> {
    let most =
        |a: &&Load, b: &&Load| a.output_throughput().unwrap_or(0.0).total_cmp(&b.output_throughput().unwrap_or(0.0));
    let load = given
        .iter()
        .flat_map(|own| &own.loads)
        .filter(|load| load.input_len().is_some() && load.output_len().is_some())
        .max_by(most);
    let said = |n: usize| given.iter().find_map(|own| *own.lengths.get(n)?);
    let input = load.and_then(Load::input_len).or_else(|| said(0))?;
    let output = load.and_then(Load::output_len).or_else(|| said(1))?;
    (input >= 1.0 && output >= 1.0).then_some(Work { input, output, slo })
}

/// Measured loads of so many requests at a time, simulated from costs that were fitted to the others where there are enough.
fn checks(given: &[Given; 2], costs: &[Option<Costs>; 2]) -> Vec<Check> {
    let mut found = Vec::new();
    for (side, (own, costs)) in given.iter().zip(costs).enumerate() {
        for (at, load) in own.loads.iter().enumerate().take(CHECKED) {
            let Some(Level::Concurrency(n)) = load.level() else { continue };
            let others: Vec<Load> =
                own.loads.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, load)| load.clone()).collect();
            let left_out = Costs::of_loads(&others)
                .filter(|left| left.largest() >= n && left.steps.len() > 1 && left.prompts.len() > 1);
            let Some(costs) = left_out.as_ref().or(costs.as_ref()) else { continue };
            let (Some(input), Some(output)) = (load.input_len(), load.output_len()) else { continue };
            let work = Work { input, output, slo: Slo { targets: Vec::new(), percentile: 50.0 } };
            let n = n.round().clamp(1.0, 4096.0) as usize;
            let Some(outcome) = fleet::together(costs, &work, Arrival::Closed(n), 8192.0, n) else { continue };
            found.push(Check {
                side,
                level: load.level(),
                tokens: super::serving::tokens(load),
                values: [
                    (load.mean(Metric::Ttft), outcome.mean(Metric::Ttft)),
                    (load.mean(Metric::Tpot), outcome.mean(Metric::Tpot)),
                    (load.request_throughput(), outcome.rate),
                ],
            });
        }
    }
    found
}
