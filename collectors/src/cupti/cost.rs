//! What it costs a run to be recorded: further steps of the same engine, of which every other one is, so that both kinds see the
//! same machine.

use std::sync::Arc;

use engine::{
    Error,
    record::{Log, Ns, Observer},
    run::Engine,
};

use super::{Api, Mode, Session};

/// Decode steps of each kind at most, and at least.
const STEPS: [usize; 2] = [24, 4];

/// Steps that were recorded and steps that were not, in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Median of a step that was recorded, ns.
    pub with: Ns,
    /// Median of one that was not, ns.
    pub without: Ns,
    /// Steps of each kind.
    pub steps: usize,
}

impl Cost {
    /// The medians of steps in the order in which they ran: the first recorded, the second not, and so on.
    ///
    /// # Errors
    /// Why so few steps tell nothing.
    fn of(steps: &[Ns]) -> Result<Self, String> {
        let median = |first: usize| {
            let mut own: Vec<Ns> = steps.iter().skip(first).step_by(2).copied().collect();
            own.sort_unstable();
            own.get(own.len() / 2).copied().filter(|ns| *ns > 0)
        };
        let pairs = steps.len() / 2;
        match (median(0), median(1)) {
            (Some(with), Some(without)) if pairs >= STEPS[1] => Ok(Self { with, without, steps: pairs }),
            _ => Err(format!("{} decode steps are too few; run at least {}", steps.len(), 2 * STEPS[1])),
        }
    }

    /// A step that was recorded over one that was not.
    pub fn ratio(&self) -> f64 {
        self.with as f64 / self.without as f64
    }

    /// In words.
    pub fn said(&self) -> String {
        let Self { with, without, steps } = self;
        format!(
            "median step {with} ns with CUPTI and {without} ns without, {steps} steps of each in turn, after the run"
        )
    }
}

/// Runs further steps of `engine`, which is not observed any more, and holds those that are recorded against the others. What is
/// recorded of them is let go.
///
/// # Errors
/// Why it is not known.
pub fn cost(api: Arc<Api>, mode: Mode, engine: &mut Engine) -> Result<Cost, String> {
    let asked = engine.options().steps;
    if asked < 2 * STEPS[1] {
        return Err(format!("{asked} decode steps are too few; run at least {}", 2 * STEPS[1]));
    }
    let mut log = Log::with_capacity(engine.records(), 0).observed(Observer::Host);
    let session = Session::start(api, mode, log.clock).map_err(|error| error.to_string())?;
    let session = Arc::new(session);
    log = log.telling(Some(session.clone()));
    let (mut steps, mut failed) = (Vec::new(), None);
    let ran: Result<(), Error> = engine.run(&mut log, |step| {
        // The prompt is a step of another kind.
        if step.number > 0 {
            steps.push(step.span.end - step.span.start);
        }
        session.flush();
        failed = session.record(step.number.is_multiple_of(2)).err();
        failed.is_none() && steps.len() < 2 * STEPS[0]
    });
    ran.map_err(|error| error.to_string())?;
    match failed {
        Some(error) => Err(error.to_string()),
        None => Cost::of(&steps),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn every_other_step_is_recorded_and_few_tell_nothing() {
        let cost = Cost::of(&[120, 100, 130, 110, 110, 90, 120, 100, 120]).unwrap();
        assert_eq!(cost, Cost { with: 120, without: 100, steps: 4 });
        assert!((cost.ratio() - 1.2).abs() < 1e-9);
        assert!(cost.said().contains("120 ns with CUPTI and 100 ns without, 4 steps of each"), "{}", cost.said());
        assert!(Cost::of(&[1; 7]).unwrap_err().contains("7 decode steps are too few"));
        assert!(Cost::of(&[0; 20]).is_err(), "steps without a time");
    }
}
