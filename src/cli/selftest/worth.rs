//! What it would really bring to do as a finding says: the same run simulated once more with that one thing improved.
//!
//! A run without a fault is not a run without headroom. One that issues each operation by itself would really be faster
//! with graphs, and a finding that says so is right. Such a finding is judged by this counterfactual, not by the list of
//! faults.

use std::collections::BTreeMap;

use model::Ns;
use simulator::{
    Config,
    config::{Mode, TokenReturn},
};

use super::subject::Subject;

/// True gains of changes to one run, each simulated when it is first asked for.
pub struct Worth {
    config: Config,
    step: Ns,
    known: BTreeMap<&'static str, Option<Ns>>,
}

impl Worth {
    /// For a run whose true mean step is `step`.
    pub fn new(config: &Config, step: Ns) -> Self {
        Self { config: config.clone(), step, known: BTreeMap::new() }
    }

    /// What the step would become shorter by, ns, if what `rule` complains of were improved; `None` where the simulator
    /// has nothing to improve, because nothing of the kind is there.
    pub fn of(&mut self, rule: &'static str) -> Option<Ns> {
        let (config, step) = (&self.config, self.step);
        *self.known.entry(rule).or_insert_with(|| {
            let gains = improved(rule, config).iter().map(|better| step - Subject::new(better).step()).max();
            gains.filter(|gain| *gain > 0)
        })
    }
}

/// Runs in which what `rule` complains of is improved, one for each way to do it; the best one counts.
fn improved(rule: &str, config: &Config) -> Vec<Config> {
    let now = || config.clone();
    let undisturbed =
        || Config { steady_host: true, jitter_permille: 0, drift_permille: 0, flush_every: 0, ..config.clone() };
    match rule {
        "RT-18" => vec![Config { node_gap_ns: 0, ..now() }],
        "RT-01" | "RT-03" | "RT-14" | "CM-11" => vec![Config { mode: Mode::Full, ..now() }],
        "RT-08" | "RT-12" => vec![
            Config { schedule_ns: 0, prepare_ns: 0, detokenize_ns: 0, ..now() },
            Config { async_scheduling: true, ..now() },
        ],
        "RT-09" | "RT-11" => vec![
            Config { token_return: TokenReturn::EventSync, ..now() },
            Config { async_scheduling: true, token_return: TokenReturn::EventSync, ..now() },
        ],
        "RT-10" => vec![Config { allocate_every: 0, ..now() }],
        "RT-22" => vec![Config { allocate_every: 0, ..undisturbed() }],
        "RT-13" | "RT-16" | "CM-01" | "CM-12" => vec![undisturbed()],
        "RT-07" => vec![Config { graph_launch_ns: 0, graph_launch_node_ns: 0, ..now() }],
        "RT-17" => vec![Config { streams: 1, ..now() }],
        "OP-13" | "CP-06" => vec![Config { drift_permille: 0, heat_permille: 0, ..now() }],
        "OP-08" | "OP-14" => vec![Config { sampling: false, ..now() }],
        _ => Vec::new(),
    }
}
