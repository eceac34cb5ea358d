//! How ready a platform is for work on decode, area by area: the words that a capture and a pair of captures share.

use serde::Serialize;

/// What is said of an area. What nothing is known of is not green.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Light {
    /// It stands in the way.
    Red,
    /// It works in part.
    Amber,
    /// The capture shows that it works.
    Green,
    /// The capture does not show it.
    Unknown,
}

impl Light {
    /// The light of two things that both have to work: the worse one, and unknown is worse than partly.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let order = [Self::Red, Self::Unknown, Self::Amber, Self::Green];
        order.into_iter().find(|light| [self, other].contains(light)).unwrap_or(Self::Unknown)
    }
}

/// An area of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Area {
    /// Something runs on the device, and its numbers are right.
    Run,
    /// Steps are replayed from graphs.
    Graph,
    /// Steps that count hold no compilation.
    CompileStability,
    /// Ranks work together.
    Communication,
    /// The hot path can be seen.
    Observability,
    /// A gain could be shown to be one.
    Verify,
}

impl Area {
    /// All in the order of the board.
    pub const ALL: [Self; 6] =
        [Self::Run, Self::Graph, Self::CompileStability, Self::Communication, Self::Observability, Self::Verify];
}

/// A row of the maturity matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Maturity {
    /// How much of the model has operators of its own on the device.
    OperatorCoverage,
    /// How much of what the device can do is reached.
    Efficiency,
    /// Whether tools see what happens, and say what went wrong.
    Ecosystem,
    /// Documentation and community, as a person judges them.
    Community,
}

impl Maturity {
    /// All in the order of the matrix.
    pub const ALL: [Self; 4] = [Self::OperatorCoverage, Self::Efficiency, Self::Ecosystem, Self::Community];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_of_one_is_not_known_of_both() {
        assert_eq!(Light::Green.and(Light::Unknown), Light::Unknown);
        assert_eq!(Light::Amber.and(Light::Unknown), Light::Unknown);
        assert_eq!(Light::Unknown.and(Light::Red), Light::Red);
        assert_eq!(Light::Green.and(Light::Amber), Light::Amber);
        assert_eq!(Light::Green.and(Light::Green), Light::Green);
    }
}
