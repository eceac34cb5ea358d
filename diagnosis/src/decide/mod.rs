//! Which of two platforms does more for what it costs, and how prefill and decode share a fleet of them. Every number says whether
//! it was measured, modelled or declared; what nobody gave stays open.
//!
//! | module | owns |
//! | --- | --- |
//! | [`price`] | what a person declares of prices, and the cost of an hour |
//! | [`money`] | tokens per device, rack unit, watt and money; what would have to change for the other side to win |
//! | [`choice`] | which loads of two sides are set against each other |
//! | [`costs`] | how long prefill and decode take, from results or captures |
//! | [`fleet`] | a simulated fleet: chunk, batch, and workers for prefill and decode |

pub mod choice;
pub mod costs;
pub mod fleet;
pub mod money;
pub mod price;
#[cfg(test)]
mod tests;

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A run showed it.
    Measured,
    /// Made from other numbers by a model.
    Modelled,
    /// A person said it.
    Declared,
}

/// A number with its origin.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Number {
    /// The value; its unit stands where it is used.
    pub value: f64,
    /// Where it comes from.
    pub origin: Origin,
}

impl Number {
    /// A measured one.
    pub fn measured(value: f64) -> Self {
        Self { value, origin: Origin::Measured }
    }

    /// A declared one.
    pub fn declared(value: f64) -> Self {
        Self { value, origin: Origin::Declared }
    }

    /// What a formula makes of two: measured only of what was measured, else as little sure as the less sure one.
    pub fn with(self, other: Self, of: impl Fn(f64, f64) -> f64) -> Option<Self> {
        let value = of(self.value, other.value);
        value.is_finite().then(|| Self { value, origin: self.origin.max(other.origin) })
    }
}
