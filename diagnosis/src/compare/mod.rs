//! Two captures of the same work, side by side (method §6 and §7): whether they may be compared, which operation of one is
//! which of the other, and where the difference lies, to the nanosecond. No SQL, no UI, no text for people.
//!
//! | module | owns |
//! | --- | --- |
//! | [`contract`] | whether they may be compared, for which claims, and what would have to change |
//! | [`work`] | whether both do the same work, by what their traces show |
//! | [`chosen`] | which steps of each capture are compared |
//! | [`align`] | which operation of one side is which of the other |
//! | [`waterfall`] | where the time between the two lies, and what it comes from |
//! | [`terms`] | what the difference is made of, as a person would name it |
//! | [`path`] | whether they went different ways or only had different settings |
//! | [`difference`] | all of these of two captures |
//! | [`plan`] | what to run so that two platforms can be compared |
//! | [`readiness`] | how ready two platforms are together |
//! | [`statistics`] | whether the difference is more than the noise of repeating either side |

pub mod align;
pub mod chosen;
pub mod contract;
pub mod difference;
pub mod path;
pub mod plan;
pub mod readiness;
pub mod second_run;
pub mod statistics;
pub mod terms;
pub mod waterfall;
pub mod work;

pub use difference::Difference;
pub use statistics::Statistics;

/// One of the two captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The one that is compared from.
    A,
    /// The one that is compared to.
    B,
}

impl Side {
    /// Both, in order.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// Its letter.
    pub fn letter(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }
}
