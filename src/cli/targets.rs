//! What times of requests have to hold.

use diagnosis::serving::Slo;

/// The option of the subcommands that judge results of serving benchmarks.
#[derive(Debug, clap::Args)]
pub struct Targets {
    /// What times of requests have to hold, such as ttft=200ms,tpot=50ms,p=99: for results of serving benchmarks.
    #[arg(long, value_name = "TARGETS", value_parser = Slo::parse)]
    pub slo: Option<Slo>,
}
