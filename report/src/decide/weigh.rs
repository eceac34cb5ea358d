//! What is set against each other, and which side wins.

use diagnosis::{
    decide::{
        Number,
        choice::{self, Kind},
        money::{Balance, Side, Worth},
        price::Price,
    },
    serving::{Load, Metric, Slo},
};

use super::{From, Given};

/// What may be said of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// They may not be weighed, or a rate is not known.
    Unweighed,
    /// Neither holds the targets at a work that both measured.
    Neither,
    /// Whether a side holds the targets cannot be told.
    Untold,
    /// One side alone holds the targets.
    Only,
    /// At one work A wins and at another B.
    Split,
    /// Both do what was asked, and no difference is shown.
    Equal,
    /// Both do what was asked, and one does it for less.
    Weighed,
}

/// One work that both sides measured.
#[derive(Clone, Debug, PartialEq)]
pub struct At {
    /// The loads.
    pub kind: Kind,
    /// What each does for what it costs.
    pub worth: [Worth; 2],
    /// The two together.
    pub balance: Option<Balance>,
    /// Which of the two wins there.
    pub winner: Option<usize>,
}

impl At {
    pub(super) fn of(kind: Kind, given: &[Given; 2], prices: &[Price; 2], slo: Option<&Slo>) -> Self {
        let from = kind.picks.each_ref().map(|pick| Some(From::Load(Box::new(pick.load.clone()))));
        let (sides, _) = sides(given, prices, &from);
        let worth = [Worth::of(&sides[0]), Worth::of(&sides[1])];
        let [a, b] = kind.picks.each_ref().map(|pick| pick.spread);
        // Logarithms of both rates are taken as independent and normal.
        let spread = a.zip(b).map(|(a, b)| {
            let half = a.hypot(b).exp();
            (1.0 / half, half)
        });
        let balance = balance(&sides, &worth, spread);
        let both = slo.is_none() || kind.picks.iter().all(|pick| pick.holds == Some(true));
        let winner = kind.only().or_else(|| balance.as_ref().filter(|_| both)?.winner);
        Self { kind, worth, balance, winner }
    }
}

/// The two together; `spread` is the interval of the speed as shares of it.
pub(super) fn balance(sides: &[Side; 2], worth: &[Worth; 2], spread: Option<(f64, f64)>) -> Option<Balance> {
    let speed = worth[1].per_device?.value / worth[0].per_device?.value;
    Balance::of(sides, worth, spread.map(|(low, high)| (speed * low, speed * high)))
}

/// What may be said, and who wins.
pub(super) fn standing(
    kinds: &[At],
    balance: Option<&Balance>,
    holds: [Option<bool>; 2],
    asked: bool,
) -> (Standing, Option<usize>) {
    let Some(balance) = balance else { return (Standing::Unweighed, None) };
    let wins = |n: usize| kinds.iter().any(|at| at.winner == Some(n));
    if wins(0) && wins(1) {
        return (Standing::Split, None);
    }
    match holds {
        _ if !asked => {}
        [Some(false), Some(false)] => return (Standing::Neither, None),
        [Some(true), Some(false)] => return (Standing::Only, Some(0)),
        [Some(false), Some(true)] => return (Standing::Only, Some(1)),
        [Some(true), Some(true)] => {}
        _ => return (Standing::Untold, None),
    }
    (if balance.winner.is_some() { Standing::Weighed } else { Standing::Equal }, balance.winner)
}

/// Where the tokens per second of a side come from where it stands by itself: its best load, else the decode step of a capture.
/// With it whether the targets hold: the median step tells only that they do not.
pub(super) fn alone(given: &Given, slo: Option<&Slo>) -> (Option<From>, Option<bool>) {
    let loads: Vec<&Load> = given.loads.iter().collect();
    if let Some(pick) = choice::best(&loads, slo) {
        return (Some(From::Load(Box::new(pick.load))), pick.holds);
    }
    let Some((batch, ns)) = given.steps.iter().max_by_key(|(batch, _)| *batch) else { return (None, None) };
    let most = slo.map_or(f64::INFINITY, |slo| slo.most(Metric::Tpot).min(slo.most(Metric::Itl)));
    let late = *ns as f64 / 1e6 > most && slo.is_some_and(|slo| slo.percentile >= 50.0);
    (Some(From::Step(*batch, *ns)), late.then_some(false))
}

/// What goes into the arithmetic of both sides, and whether the number of devices had to be taken for one.
pub(super) fn sides(given: &[Given; 2], prices: &[Price; 2], from: &[Option<From>; 2]) -> ([Side; 2], [bool; 2]) {
    let [(a, one_a), (b, one_b)] = [0, 1].map(|n| side(&given[n], &prices[n], from[n].as_ref()));
    ([a, b], [one_a, one_b])
}

/// Devices that run one batch: those of a server, or of a group of it.
pub(super) fn worker(own: &Given, price: &Price, from: Option<&From>) -> f64 {
    let devices = devices(own, price, from).map_or(1.0, |known| known.value);
    match from {
        Some(From::Step(..)) => devices / own.groups.clamp(1.0, devices.max(1.0)),
        _ => devices,
    }
}

fn devices(own: &Given, price: &Price, from: Option<&From>) -> Option<Number> {
    let of_load = match from {
        Some(From::Load(load)) => load.devices(),
        _ => None,
    };
    of_load.or(own.devices).map(Number::measured).or(price.devices.map(Number::declared))
}

fn side(own: &Given, price: &Price, from: Option<&From>) -> (Side, bool) {
    let load = match from {
        Some(From::Load(load)) => Some(load),
        _ => None,
    };
    let known = devices(own, price, from);
    let devices = known.map_or(1.0, |known| known.value);
    let tokens = match from {
        Some(From::Load(load)) => load.output_throughput(),
        // Each group of devices does such a step.
        Some(From::Step(batch, ns)) => {
            Some(f64::from(*batch) / *ns as f64 * 1e9 * own.groups.clamp(1.0, devices.max(1.0)))
        }
        None => None,
    };
    let power = load.and_then(|load| load.number("power_w")).map(|watts| watts / devices).or(own.power_w);
    let side = Side {
        tokens: tokens.map(|tokens| Number::measured(tokens / devices)).filter(|own| own.value.is_finite()),
        power_w: power.map(Number::measured),
        price: price.clone(),
    };
    (side, known.is_none())
}
