//! From which severity on a command ends with exit code 1.

use clap::ValueEnum;
use diagnosis::diagnose::Severity;

/// Severity from which a command ends with exit code 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    Low,
    Medium,
    High,
    Critical,
}

impl From<FailOn> for Severity {
    fn from(level: FailOn) -> Self {
        match level {
            FailOn::Low => Self::Low,
            FailOn::Medium => Self::Medium,
            FailOn::High => Self::High,
            FailOn::Critical => Self::Critical,
        }
    }
}
