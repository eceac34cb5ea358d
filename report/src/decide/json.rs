//! The decision for scripts: `strato.decide/1`, whose schema is `docs/schema/strato.decide.json`. Money is in the declared currency,
//! times are ms unless a key says otherwise.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Decision, From, Standing};
use crate::{phrase, serving::json::LoadJson, text};
use diagnosis::{
    decide::{Number, Origin, costs::Costs},
    i18n::Lang,
    serving::Slo,
};

/// Name of the schema.
pub const SCHEMA: &str = "strato.decide/1";
/// Most characters of a text from a capture.
const TEXT: usize = 1000;

fn plain(value: &str) -> String {
    text::plain(value, TEXT)
}

/// What `strato decide --format json` says.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Decided {
    /// Name and version of this schema.
    #[schemars(schema_with = "name")]
    schema: &'static str,
    /// What goes before every number.
    banners: Vec<String>,
    /// Why the two may not be weighed; empty where they may.
    refused: Vec<String>,
    slo: Option<String>,
    currency: Option<String>,
    a: SideJson,
    b: SideJson,
    /// The two together; null where they may not be weighed or a rate is not known.
    balance: Option<BalanceJson>,
    /// `unweighed`, `neither`, `untold`, `only`, `split`, `equal` or `weighed`: what may be said of the two.
    #[schemars(with = "String")]
    standing: Standing,
    /// `a` or `b`; null where no winner is shown.
    winner: Option<&'static str>,
    /// Each work that both measured under load; everything else rests on the first one.
    works: Vec<WorkJson>,
    /// What the difference of a step comes from, ns; null without captures.
    gap: Option<GapJson>,
    fleets: Vec<FleetJson>,
    checks: Vec<CheckJson>,
}

fn name(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "const": SCHEMA })
}

/// A number and where it comes from: `measured`, `modelled` or `declared`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DecideNumber")]
struct NumberJson {
    value: f64,
    #[schemars(with = "String")]
    origin: Origin,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DecideSide")]
struct SideJson {
    source: String,
    device: Option<String>,
    simulated: bool,
    /// The load that its tokens per second are of.
    load: Option<LoadJson>,
    /// The decode step that they are of: sequences and ns.
    step: Option<[i64; 2]>,
    tokens_per_s_of_device: Option<NumberJson>,
    tokens_per_s_of_rack_unit: Option<NumberJson>,
    tokens_per_s_of_watt: Option<NumberJson>,
    joules_of_token: Option<NumberJson>,
    device_hour: Option<NumberJson>,
    million_tokens: Option<NumberJson>,
    tokens_per_money: Option<NumberJson>,
    /// What is to be declared for its cost.
    missing: Option<&'static str>,
    supply: Option<String>,
    risk: Option<String>,
    /// What a prefill takes, however short: ms.
    prefill_fixed_ms: Option<f64>,
    prefill_token_ms: Option<f64>,
    /// How far the simulation misses what was measured of the side at most, a share.
    simulation_misses: Option<f64>,
    /// Decode steps: sequences and ms.
    decode_steps_ms: Vec<[f64; 2]>,
}

/// One work that both measured, and the best load of each side.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DecideWork")]
struct WorkJson {
    a: LoadJson,
    b: LoadJson,
    /// B over A of a device.
    speed: Option<f64>,
    cost: Option<f64>,
    /// `a` or `b`; null where no winner is shown.
    winner: Option<&'static str>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DecideBalance")]
struct BalanceJson {
    /// B over A of a device.
    speed: f64,
    /// B over A of a token.
    cost: Option<f64>,
    /// Between which values the speed lies, 95 %.
    speed_interval: Option<[f64; 2]>,
    /// What an hour of a device of B may cost.
    break_even_device_hour: Option<f64>,
    break_even_purchase: Option<f64>,
    /// The same of A.
    break_even_device_hour_a: Option<f64>,
    break_even_purchase_a: Option<f64>,
    repaid_after_tokens: Option<f64>,
    /// `a` or `b`.
    loser: &'static str,
    /// How much faster it would have to be, a share.
    faster: f64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DecideGap")]
struct GapJson {
    step_a_ns: i64,
    step_b_ns: i64,
    causes_ns: std::collections::BTreeMap<String, i64>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DecideFleet")]
struct FleetJson {
    /// `a` or `b`.
    prefill: &'static str,
    decode: &'static str,
    /// Whether every worker does both.
    together: bool,
    /// Workers for prefill and for decode.
    workers: Option<[u32; 2]>,
    chunk: Option<f64>,
    batch: Option<usize>,
    /// Whether loads were measured so; else it is simulated.
    measured: bool,
    /// Requests per second of all workers; null where no rate holds the targets. Of a side whose simulation misses its own
    /// measurements by more than a quarter there is none simulated.
    requests_per_s: Option<f64>,
    million_tokens: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DecideCheck")]
struct CheckJson {
    side: &'static str,
    tokens: String,
    measured_ttft_ms: Option<f64>,
    simulated_ttft_ms: f64,
    measured_tpot_ms: Option<f64>,
    simulated_tpot_ms: f64,
    measured_requests_per_s: Option<f64>,
    simulated_requests_per_s: f64,
}

fn letter(side: usize) -> &'static str {
    if side == 0 { "a" } else { "b" }
}

fn number(number: Option<Number>) -> Option<NumberJson> {
    number.map(|Number { value, origin }| NumberJson { value, origin })
}

fn side(decision: &Decision, n: usize) -> SideJson {
    let (head, worth, costs) = (&decision.heads[n], &decision.worth[n], decision.costs[n].as_ref());
    let price = &decision.sides[n].price;
    let from = decision.from[n].as_ref();
    SideJson {
        source: plain(&head.name),
        device: head.device.as_deref().map(plain),
        simulated: head.simulated,
        load: from.and_then(|from| match from {
            From::Load(load) => Some(crate::serving::json::load(load, decision.slo.as_ref())),
            From::Step(..) => None,
        }),
        step: from.and_then(|from| match from {
            From::Step(batch, ns) => Some([i64::from(*batch), *ns]),
            From::Load(..) => None,
        }),
        tokens_per_s_of_device: number(worth.per_device),
        tokens_per_s_of_rack_unit: number(worth.per_rack_unit),
        tokens_per_s_of_watt: number(worth.per_watt),
        joules_of_token: number(worth.joules),
        device_hour: number(worth.hour),
        million_tokens: number(worth.million),
        tokens_per_money: number(worth.per_money),
        missing: worth.missing,
        supply: price.supply.as_deref().map(plain),
        risk: price.risk.as_deref().map(plain),
        prefill_fixed_ms: costs.map(|costs| costs.fixed),
        prefill_token_ms: costs.map(|costs| costs.per_token),
        simulation_misses: decision.misses[n],
        decode_steps_ms: costs.map(|costs| costs.steps.iter().map(|(n, ms)| [*n, *ms]).collect()).unwrap_or_default(),
    }
}

pub(crate) fn document(decision: &Decision, lang: Lang) -> Decided {
    let words = |messages: &[diagnosis::i18n::Message]| messages.iter().map(|m| phrase::plain(m, lang)).collect();
    let batched = |n: usize| decision.costs.get(n).and_then(Option::as_ref).is_some_and(Costs::knows_batches);
    let trusted = |n: usize| decision.misses.get(n).copied().flatten().is_none_or(|share| share <= super::MISSES);
    let together =
        decision.together.iter().enumerate().filter(|(n, _)| decision.work.is_some() && batched(*n) && trusted(*n));
    let measured = decision.measured.iter().enumerate().filter_map(|(n, own)| Some((n, (*own)?)));
    let mut fleets: Vec<FleetJson> = measured
        .map(|(n, (_, rate))| FleetJson {
            prefill: letter(n),
            decode: letter(n),
            together: true,
            workers: None,
            chunk: None,
            batch: None,
            measured: true,
            requests_per_s: Some(rate),
            million_tokens: None,
        })
        .collect();
    fleets.extend(together.map(|(n, best)| FleetJson {
        prefill: letter(n),
        decode: letter(n),
        together: true,
        workers: None,
        chunk: best.map(|best| best.chunk),
        batch: best.map(|best| best.batch),
        measured: false,
        requests_per_s: best.map(|best| best.rate),
        million_tokens: None,
    }));
    fleets.extend(decision.fleets.iter().map(|(pair, found, cost)| FleetJson {
        prefill: letter(pair[0]),
        decode: letter(pair[1]),
        together: false,
        workers: found.as_ref().map(|fleet| fleet.workers),
        chunk: None,
        batch: found.as_ref().map(|fleet| fleet.batch),
        measured: false,
        requests_per_s: found.as_ref().map(|fleet| fleet.rate),
        million_tokens: *cost,
    }));
    Decided {
        schema: SCHEMA,
        banners: words(&decision.banners),
        refused: words(&decision.refused),
        slo: decision.slo.as_ref().map(Slo::text),
        currency: decision.prices.as_ref().map(|prices| plain(&prices.currency)),
        a: side(decision, 0),
        b: side(decision, 1),
        balance: decision.balance.as_ref().map(|own| BalanceJson {
            speed: own.speed,
            cost: own.cost,
            speed_interval: own.interval.map(|(low, high)| [low, high]),
            break_even_device_hour: own.break_even_hours[1],
            break_even_purchase: own.break_even_purchases[1],
            break_even_device_hour_a: own.break_even_hours[0],
            break_even_purchase_a: own.break_even_purchases[0],
            repaid_after_tokens: own.repaid_after,
            loser: letter(own.loser),
            faster: own.faster,
        }),
        standing: decision.standing,
        winner: decision.winner.map(letter),
        works: decision
            .kinds
            .iter()
            .map(|at| {
                let [a, b] =
                    at.kind.picks.each_ref().map(|pick| crate::serving::json::load(&pick.load, decision.slo.as_ref()));
                let own = at.balance.as_ref().filter(|_| decision.refused.is_empty());
                WorkJson {
                    a,
                    b,
                    speed: own.map(|own| own.speed),
                    cost: own.and_then(|own| own.cost),
                    winner: own.and(at.winner).map(letter),
                }
            })
            .collect(),
        gap: decision.gap.as_ref().map(|gap| GapJson {
            step_a_ns: gap.steps[0],
            step_b_ns: gap.steps[1],
            causes_ns: gap.causes.iter().map(|(cause, ns)| (cause.key().to_owned(), *ns)).collect(),
        }),
        fleets,
        checks: decision
            .checks
            .iter()
            .map(|check| CheckJson {
                side: letter(check.side),
                tokens: plain(&check.tokens),
                measured_ttft_ms: check.values[0].0,
                simulated_ttft_ms: check.values[0].1,
                measured_tpot_ms: check.values[1].0,
                simulated_tpot_ms: check.values[1].1,
                measured_requests_per_s: check.values[2].0,
                simulated_requests_per_s: check.values[2].1,
            })
            .collect(),
    }
}

/// Writes the decision as one JSON object.
///
/// # Errors
/// Only if serialisation fails, which would be a defect.
pub fn render(decision: &Decision, lang: Lang) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(&serde_json::to_value(document(decision, lang))?)? + "\n")
}
