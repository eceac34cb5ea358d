//! Which of two platforms to take: what each does for what it costs, what would have to change for the other to win, and how
//! prefill and decode share a fleet of them.

pub mod json;
mod page;
#[cfg(test)]
mod tests;
mod weigh;

use super::{diff::Head, document::Document, sections::Shown};
use diagnosis::{
    compare::waterfall::Cause,
    decide::{
        choice,
        costs::Costs,
        fleet::{self, Apart, Arrival, Best, Work},
        money::{Balance, Side, Worth},
        price::Prices,
    },
    i18n::{Lang, Message, Text, Value},
    serving::{Level, Load, Metric, Slo},
};
use model::Ns;

pub use weigh::{At, Standing};

/// How far a simulation may miss what was measured of a side, a share, before fleets of it are withheld: own value.
const MISSES: f64 = 0.25;
/// Loads whose simulation is shown beside what was measured.
const CHECKED: usize = 12;

/// Why nothing is weighed of results that have no work in common.
const OTHER_WORK: Text = Text::new(
    "no load of A has prompts and answers as long as those of a load of B; measure both under the same",
    "A 与 B 没有提示与输出长度相同的负载；请以相同负载测量两侧",
);
/// Said before numbers of results that may not be weighed.
const FORCED: Text = Text::new(
    "FORCED: the two may not be weighed ({why}), and these numbers were asked for all the same: they are no result.",
    "强制给出：两者不可相互权衡（{why}），这些数字仍按要求给出：不构成结论。",
);

/// Where the tokens per second of a side come from.
#[derive(Clone, Debug, PartialEq)]
pub enum From {
    /// A load of a serving result.
    Load(Box<Load>),
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
    /// Groups of devices each of which serves a batch of its own (data parallelism); 0 where nothing says so.
    pub groups: f64,
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
    pub causes: [(Cause, Ns); 7],
    /// Step of A and of B.
    pub steps: [Ns; 2],
    /// 95 % interval of the step of B over that of A, as shares of that ratio; `None` where launches do not tell it.
    pub spread: Option<(f64, f64)>,
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
    /// What may be said of the two.
    pub standing: Standing,
    /// Which of the two wins: 0 for A and 1 for B.
    pub winner: Option<usize>,
    /// Each work that both measured under load; the first one is what everything else rests on.
    pub kinds: Vec<At>,
    /// Whether the targets hold under any load of a side.
    pub anywhere: [Option<bool>; 2],
    /// Whether they hold where the tokens per second of a side come from.
    pub holds: [Option<bool>; 2],
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
    /// What was measured of it within the targets at the work that is asked for: the load, and requests per second.
    pub measured: [Option<(Option<Level>, f64)>; 2],
    /// How far the simulation misses what was measured of each side at most, a share; `None` where nothing was.
    pub misses: [Option<f64>; 2],
    /// Devices of a worker of each side.
    pub worker: [f64; 2],
    /// Fleets whose prefill is of one side and decode of another, with the cost of a million tokens.
    pub fleets: Vec<([usize; 2], Option<Apart>, Option<f64>)>,
    /// Simulated loads beside measured ones.
    pub checks: Vec<Check>,
}

impl Decision {
    /// Puts a decision together. With `force` it is made although something refuses it, and a banner says so.
    pub fn build(
        given: [Given; 2],
        prices: Option<Prices>,
        slo: Option<Slo>,
        mut refused: Vec<Message>,
        mut banners: Vec<Message>,
        gap: Option<Gap>,
        force: bool,
    ) -> Self {
        let declared = prices.clone().unwrap_or_default();
        let declared = [declared.a, declared.b];
        let [a, b] = given.each_ref().map(|own| own.loads.as_slice());
        let served = !a.is_empty() && !b.is_empty();
        let kinds = choice::kinds([a, b], slo.as_ref());
        if served && kinds.is_empty() {
            refused.push(Message::plain(OTHER_WORK));
        }
        if force && !refused.is_empty() {
            let why = refused.drain(..).next().map(|why| Value::Message(Box::new(why)));
            // Captures have a banner of their own, which names every reason.
            banners.extend(why.filter(|_| banners.is_empty()).map(|why| Message::new(FORCED, [("why", why)])));
        }
        let alone = given.each_ref().map(|own| weigh::alone(own, slo.as_ref()));
        let kinds: Vec<At> = kinds.into_iter().map(|kind| At::of(kind, &given, &declared, slo.as_ref())).collect();
        let (from, holds) = match kinds.first() {
            Some(at) => {
                let [a, b] = &at.kind.picks;
                ([a, b].map(|pick| Some(From::Load(Box::new(pick.load.clone())))), [a.holds, b.holds])
            }
            None => {
                let [(a, held_a), (b, held_b)] = alone;
                ([a, b], [held_a, held_b])
            }
        };
        let (sides, one_device) = weigh::sides(&given, &declared, &from);
        let worth = [Worth::of(&sides[0]), Worth::of(&sides[1])];
        let spread = gap.as_ref().and_then(|gap| gap.spread).map(|(low, high)| (1.0 / high, 1.0 / low));
        let balance = match kinds.first() {
            Some(at) => at.balance.clone(),
            None => weigh::balance(&sides, &worth, spread),
        };
        let balance = balance.filter(|_| refused.is_empty());
        let (standing, winner) = weigh::standing(&kinds, balance.as_ref(), holds, slo.is_some());
        let anywhere = given.each_ref().map(|own| choice::anywhere(&own.loads, slo.as_ref()));
        let costs = given.each_ref().map(costs);
        let work = slo.clone().and_then(|slo| work(&given, kinds.first(), slo));
        let checks = checks(&given, &costs);
        let misses = [0, 1].map(|n| misses(&checks, n));
        // What misses its own measurements says nothing of what was not measured.
        let trusted = |n: usize| misses.get(n).copied().flatten().is_none_or(|share| share <= MISSES);
        let batched = |n: usize| costs.get(n)?.as_ref().filter(|costs| costs.knows_batches()).filter(|_| trusted(n));
        let worker = [0, 1].map(|n| weigh::worker(&given[n], &declared[n], from[n].as_ref()));
        let measured = match kinds.first() {
            Some(at) => at.kind.picks.each_ref().map(|pick| {
                let rate = pick.load.request_throughput().filter(|_| pick.holds == Some(true))?;
                Some((pick.load.level(), rate))
            }),
            None => [None, None],
        };
        let fast = |n: usize| fleet::best_together(batched(n)?, work.as_ref()?);
        let together = [fast(0), fast(1)];
        let mut fleets = Vec::new();
        if let Some(work) = &work {
            for pair in [[0, 0], [1, 1], [0, 1], [1, 0]] {
                // Of two that may not be weighed none is a part of one fleet.
                if pair[0] != pair[1] && !refused.is_empty() {
                    continue;
                }
                let both = pair.map(batched);
                let [Some(prefill), Some(decode)] = both else { continue };
                let found = fleet::best_apart([prefill, decode], work);
                let hour = |side: usize| Some(worth.get(side)?.hour?.value * worker.get(side)?);
                let cost = found.as_ref().and_then(|fleet| {
                    let money =
                        hour(pair[0])? * f64::from(fleet.workers[0]) + hour(pair[1])? * f64::from(fleet.workers[1]);
                    Some(money / (fleet.rate * work.output * 3600.0) * 1e6)
                });
                fleets.push((pair, found, cost));
            }
        }
        let [a, b] = given;
        Self {
            refused,
            banners,
            slo,
            prices,
            standing,
            winner,
            kinds,
            anywhere,
            holds,
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
            measured,
            misses,
            worker,
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

fn costs(given: &Given) -> Option<Costs> {
    let steps: Vec<(f64, f64)> = given.steps.iter().map(|(batch, ns)| (f64::from(*batch), *ns as f64 / 1e6)).collect();
    Costs::of_loads(&given.loads).or_else(|| Costs::of(&given.prefills, &steps))
}

/// The prompts and answers of the work that both are weighed at, else those of the captures.
fn work(given: &[Given; 2], at: Option<&At>, slo: Slo) -> Option<Work> {
    let mean = |of: fn(&Load) -> Option<f64>| {
        let [a, b] = at?.kind.picks.each_ref().map(|pick| of(&pick.load));
        a.zip(b).map(|(a, b)| (a + b) / 2.0)
    };
    let said = |n: usize| given.iter().find_map(|own| *own.lengths.get(n)?);
    let input = mean(Load::input_len).or_else(|| said(0))?;
    let output = mean(Load::output_len).or_else(|| said(1))?;
    (input >= 1.0 && output >= 1.0).then_some(Work { input, output, slo })
}

/// How far the simulation of a side misses at most what was measured of it.
fn misses(checks: &[Check], side: usize) -> Option<f64> {
    let own = checks.iter().filter(|check| check.side == side).flat_map(|check| check.values);
    own.filter_map(|(measured, simulated)| Some((simulated / measured.filter(|own| *own > 0.0)? - 1.0).abs()))
        .filter(|share| share.is_finite())
        .reduce(f64::max)
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
