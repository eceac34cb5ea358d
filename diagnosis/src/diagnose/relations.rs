//! How rules stand to each other, to the readiness board, to the verdict and to devices: each rule says it of itself, and
//! whoever ranks, judges and shows findings asks here and knows no rule by name.

use model::{Area, Maturity};

/// What a rule says of itself beside its text. A relation between two rules stands on one of them, the one that came
/// later, so that a new rule never changes another rule's file.
#[derive(Clone, Copy, Debug)]
pub struct Relations {
    /// Rules that claim the same time and name its cause more closely, in the order in which they are asked: where such a
    /// rule fires too, this one becomes its competing explanation.
    pub yields_to: &'static [&'static str],
    /// The same from the other side: rules that give way to this one.
    pub precedes: &'static [&'static str],
    /// Rules that may count some of the same time for another cause: both findings stay, and this one says so.
    pub shares_time_with: &'static [&'static str],
    /// Cells of the readiness board and matrix that a finding turns amber or red.
    pub board: &'static [Feeds],
    /// What a finding means to the ranking and to the verdict beyond its gain.
    pub role: Option<Role>,
    /// Vendors of the devices to which the rule applies.
    pub vendors: Vendors,
}

impl Relations {
    /// A rule that stands for itself.
    pub const NONE: Self =
        Self { yields_to: &[], precedes: &[], shares_time_with: &[], board: &[], role: None, vendors: Vendors::All };
}

/// A cell that a rule feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feeds {
    /// An area of the board.
    Area(Area),
    /// An area of the board, if some steps are launched outside graphs: a step that waits for its launches is what graphs
    /// are for.
    IfLaunched(Area),
    /// A cell of the matrix.
    Maturity(Maturity),
}

/// What a finding, or the rule that made it, means to the ranking and to the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Names the one rank that the others wait for, and so explains what the waiting does to all of them.
    LateRank,
    /// Says of waits among ranks that they are for no one in particular.
    RankNoise,
    /// The host sets the pace of the forward pass: faster kernels gain little.
    LaunchBound,
    /// The host is late between steps, or had nothing to do.
    BetweenSteps,
    /// Nothing is asked of the stack: its trigger is the share of the time without a request.
    LoadLimited,
    /// Speculative decoding, whose gain depends on the tokens that are accepted.
    Speculation,
    /// An operator that several kernels make up.
    Composite,
    /// What stages of a pipeline compute is divided anew, on all ranks of each stage.
    UnevenStages,
    /// One device is slower than it was or than others are: nothing in the program is to be changed.
    SlowDevice,
    /// An operator that falls back to a CPU.
    CpuFallback,
    /// The recording made the step longer: its trigger is the ratio.
    TracingInflation,
    /// Sums of kernel times without a wall time.
    SumAboveWall,
    /// Time that nothing recorded explains.
    Unexplained,
    /// Other processes had the machine.
    SharedMachine,
    /// What the run computes is wrong: nothing about its time.
    Numbers,
    /// What happens once: compiling, capturing graphs, warming up. Of a start-up it is the subject, and not what disturbs a step.
    StartUp,
}

/// Vendors of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendors {
    /// Whatever the device.
    All,
    /// Only these, as packs name them.
    Only(&'static [&'static str]),
}

impl Vendors {
    /// Whether a vendor is among them.
    pub fn include(self, vendor: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(named) => named.iter().any(|one| one.eq_ignore_ascii_case(vendor)),
        }
    }
}

/// What the remedy of a rule depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// The device, its runtime, its libraries or its tools: each platform's pack has advice of its own.
    Device,
    /// The host, the engine's settings, the job or the load: the same everywhere.
    Host,
}

#[cfg(test)]
mod tests {
    use super::Vendors;

    #[test]
    fn a_vendor_is_asked_by_any_spelling() {
        assert!(Vendors::All.include("x"));
        assert!(Vendors::Only(&["ascend"]).include("Ascend") && !Vendors::Only(&["ascend"]).include("amd"));
    }
}
