//! What a platform does for what it costs, and what would have to change for the other one to win.

use super::{Number, Origin, price::Price};
use crate::serving::beside::LEAST;

/// What is known of one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Output tokens per second of one device.
    pub tokens: Option<Number>,
    /// Power of one device, W.
    pub power_w: Option<Number>,
    /// What is declared of it.
    pub price: Price,
}

/// What a side does for what it costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Worth {
    /// Output tokens per second of one device.
    pub per_device: Option<Number>,
    /// The same of one rack unit.
    pub per_rack_unit: Option<Number>,
    /// Tokens per joule: tokens per second of one watt.
    pub per_watt: Option<Number>,
    /// Joules of an output token.
    pub joules: Option<Number>,
    /// Cost of an hour of a device that works.
    pub hour: Option<Number>,
    /// Cost of a million output tokens.
    pub million: Option<Number>,
    /// Tokens for one unit of the currency.
    pub per_money: Option<Number>,
    /// What is not declared and would tell the cost.
    pub missing: Option<&'static str>,
}

impl Worth {
    /// Of one side.
    pub fn of(side: &Side) -> Self {
        let power = side.power_w.or_else(|| side.price.power_w.map(Number::declared));
        let hour = side.price.hour(side.power_w.map(|power| power.value));
        let missing = hour.err();
        // An hour made of a purchase, years and power is a model of it.
        let origin = if side.price.device_hour.is_some() { Origin::Declared } else { Origin::Modelled };
        let hour = hour.ok().map(|value| Number { value, origin });
        let by =
            |other: Option<Number>, of: fn(f64, f64) -> f64| side.tokens.zip(other).and_then(|(t, o)| t.with(o, of));
        let million = by(hour, |tokens, hour| hour / (tokens * 3600.0) * 1e6).map(modelled);
        Self {
            per_device: side.tokens,
            per_rack_unit: by(side.price.rack_units.map(Number::declared), |tokens, units| tokens / units),
            per_watt: by(power, |tokens, watts| tokens / watts),
            joules: by(power, |tokens, watts| watts / tokens),
            hour,
            million,
            per_money: million.map(|cost| Number { value: 1e6 / cost.value, ..cost }).filter(|n| n.value.is_finite()),
            missing,
        }
    }
}

/// A cost per token is what a measured rate and a declared price make together.
fn modelled(number: Number) -> Number {
    Number { origin: Origin::Modelled, ..number }
}

/// What is to be said of the two together.
#[derive(Clone, Debug, PartialEq)]
pub struct Balance {
    /// Tokens per second of a device: B over A.
    pub speed: f64,
    /// Cost of a token: B over A; `None` where a price is missing.
    pub cost: Option<f64>,
    /// 95 % interval of the speed, where runs or requests tell it.
    pub interval: Option<(f64, f64)>,
    /// Cost of an hour of a device of A, and of B, at which a token costs what it does on the other.
    pub break_even_hours: [Option<f64>; 2],
    /// The same as a price of buying it.
    pub break_even_purchases: [Option<f64>; 2],
    /// Output tokens after which the move to B has paid for itself; `None` where it does not or nothing is declared.
    pub repaid_after: Option<f64>,
    /// How much faster the side that loses has to be for a token to cost the same, a share.
    pub faster: f64,
    /// Which of the two loses: 0 for A and 1 for B. Where no winner is shown, the one that is behind.
    pub loser: usize,
    /// Which of the two wins; `None` where no difference is shown.
    pub winner: Option<usize>,
}

impl Balance {
    /// Of both sides, with the interval of the speed; `None` where either rate is not known.
    pub fn of(sides: &[Side; 2], worth: &[Worth; 2], interval: Option<(f64, f64)>) -> Option<Self> {
        let [a, b] = worth.each_ref().map(|own| own.per_device.map(|number| number.value));
        let speed = b? / a?;
        if !speed.is_finite() || speed <= 0.0 {
            return None;
        }
        let [cost_a, cost_b] = worth.each_ref().map(|own| own.million.map(|number| number.value));
        let cost = cost_a.zip(cost_b).map(|(a, b)| b / a);
        let [hour_a, hour_b] = worth.each_ref().map(|own| own.hour.map(|hour| hour.value));
        let break_even_hours = [hour_b.map(|hour| hour / speed), hour_a.map(|hour| hour * speed)];
        let purchase =
            |side: &Side, hour: Option<f64>| side.price.purchase_at(hour?, side.power_w.map(|power| power.value));
        let [own_a, own_b] = sides;
        let saved = cost_a.zip(cost_b).map(|(a, b)| (a - b) / 1e6).filter(|saved| *saved > 0.0);
        // Without prices the slower device loses.
        let ratio = cost.unwrap_or(1.0 / speed);
        let (loser, faster) = if ratio > 1.0 { (1, ratio - 1.0) } else { (0, 1.0 / ratio - 1.0) };
        // Prices are what they are; only the speed is measured.
        let open = interval.is_some_and(|(low, high)| ratio * speed / high <= 1.0 && ratio * speed / low >= 1.0);
        let shown = (ratio - 1.0).abs() >= LEAST && !open;
        Some(Self {
            speed,
            cost,
            interval,
            break_even_hours,
            break_even_purchases: [purchase(own_a, break_even_hours[0]), purchase(own_b, break_even_hours[1])],
            repaid_after: saved.zip(own_b.price.migration).map(|(saved, once)| once / saved),
            faster,
            loser,
            winner: shown.then_some(1 - loser),
        })
    }
}
