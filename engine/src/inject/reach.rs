//! Whether what was injected reaches anything in a run: a fault that changes nothing would be written down as ground truth all
//! the same.

use crate::{Config, Error, Shard, faults::Delay, options::Mode, program::OpName, run::RunOptions};

/// Least factor that makes a rank a slower one: own value, beyond what equal ranks differ by.
const SLOWER: f64 = 1.05;

impl RunOptions {
    /// Refuses injections that would change nothing in a run of a model on so many ranks.
    ///
    /// # Errors
    /// [`Error::Request`] that names the injection, what it needs and what the run has.
    pub fn check_injections(&self, config: &Config, ranks: usize) -> Result<(), Error> {
        if self.faults.asked.is_empty() {
            return Ok(());
        }
        let nothing = |name: &str, why: String| {
            Err(Error::Request(format!(
                "injection '{name}' changes nothing in this run: {why}; change it, or leave it out"
            )))
        };
        let numeric = &self.faults.numeric;
        for (name, layer) in [("stale_kv", numeric.stale_kv), ("nan_at", numeric.nan_at)] {
            if let Some(layer) = layer.filter(|layer| usize::from(*layer) >= config.layers) {
                return nothing(name, format!("the model has {} layers, and {layer} is none of them", config.layers));
            }
        }
        if numeric.stale_kv.is_some() && self.steps == 0 {
            return nothing("stale_kv", "it has no decode steps".to_owned());
        }
        if numeric.rope_base == Some(1.0) {
            return nothing("rope_base_wrong", "a factor of 1 leaves the base as it is".to_owned());
        }
        if let Some((rank, factor)) = self.faults.rank.slow {
            if rank >= ranks {
                return nothing(
                    "slow_rank",
                    format!("its ranks are 0 to {}, and {rank} is none of them", ranks.saturating_sub(1)),
                );
            }
            if factor < SLOWER {
                return nothing("slow_rank", format!("{factor} times is no slower; ranks differ by more by chance"));
            }
        }
        if numeric.rope_base.is_some() && self.prompt + self.steps < 2 {
            return nothing("rope_base_wrong", "its only token stands at position 0, which is not rotated".to_owned());
        }
        let host = &self.faults.host;
        let asked = |name: &str| self.faults.asked.iter().any(|text| text.split(':').next() == Some(name));
        let is_idle = [
            ("host_delay", host.delay.is_some_and(|delay| (delay.time + delay.jitter).is_zero())),
            ("alloc_per_op", host.alloc == Some(0)),
            ("blocking_copy", host.copy == Some(0)),
            ("gil_like_stall", host.stall.is_some_and(|stall| stall.hold.is_zero())),
            ("bandwidth_thief", asked("bandwidth_thief") && self.faults.machine.thieves == 0),
        ];
        if let Some((name, _)) = is_idle.into_iter().find(|(_, idle)| *idle) {
            return nothing(name, "it asks for an amount of 0".to_owned());
        }
        if host.stall.is_some() && self.steps == 0 {
            return nothing("gil_like_stall", "it has no decode steps".to_owned());
        }
        let at_once = self.mode == Mode::Graph && host.fallback.is_none();
        if asked("extra_sync") && at_once {
            return nothing(
                "extra_sync",
                "its decode steps are replayed whole, and nothing can wait within one".to_owned(),
            );
        }
        self.check_operators(config, Shard { rank: 0, of: ranks })
    }

    /// What is about operators needs such operators in the step.
    fn check_operators(&self, config: &Config, shard: Shard) -> Result<(), Error> {
        let nothing = |name: &str, why: &str| {
            Err(Error::Request(format!(
                "injection '{name}' changes nothing in this run: {why}; change it, or leave it out"
            )))
        };
        let plain = Self { changes: Vec::new(), ..self.clone() };
        let [_, step] = self.programs(config, shard)?;
        let has = |op: OpName| step.ops.iter().any(|call| call.name == op);
        if let Some(op) = self.faults.host.fallback.filter(|op| !has(*op)) {
            return nothing("cpu_fallback", &format!("its steps have no operator {}", op.text()));
        }
        if let Some(Delay { op: Some(op), .. }) = self.faults.host.delay
            && !has(op)
        {
            return nothing("host_delay", &format!("its steps have no operator {}", op.text()));
        }
        // A replay is launched before the first operator, and there the host is held up.
        if let Some(Delay { op: Some(op), .. }) = self.faults.host.delay
            && (self.mode, self.faults.host.fallback) == (Mode::Graph, None)
            && step.ops.first().is_none_or(|first| first.name != op)
        {
            return nothing(
                "host_delay",
                &format!("its decode steps are replayed whole, and {} is not launched", op.text()),
            );
        }
        if !self.changes.is_empty() && plain.programs(config, shard)?[1] == step {
            return nothing("unfuse or layout_cast", "its steps have none of those operators");
        }
        Ok(())
    }
}
