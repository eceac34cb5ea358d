//! Runs of which something was said that is not so, for whoever wants to know why: each with what repeats it.

use serde::{Serialize, Serializer};

use super::{answer::Answer, deprive::Loss, examine::Examined};
use diagnosis::diagnose::VerdictLayer;

/// A fault that was not named first or whose layer was not blamed, or a healthy run of which something was said that is not so.
#[derive(Clone, Debug, Serialize)]
pub struct Miss {
    /// What was wrong.
    pub fault: String,
    /// How much, in parts per thousand of the usual size.
    pub magnitude_permille: i64,
    /// Seed of the run.
    pub seed: u64,
    /// How decode was issued.
    pub mode: &'static str,
    /// Ranks.
    pub ranks: usize,
    /// What was blamed in the end.
    pub verdict: VerdictLayer,
    /// True gain over the step.
    pub gain: f64,
    /// Rules that would have been right.
    pub expected: Vec<&'static str>,
    /// What was said instead, in its order: rule, gain over the step, true gain over the step.
    pub said: Vec<(&'static str, Option<f64>, Option<f64>)>,
}

/// An answer that blames a layer which is not the one of the fault.
#[derive(Clone, Debug, Serialize)]
pub struct Blame {
    /// What had been taken away; `None` for nothing.
    #[serde(serialize_with = "key_of")]
    pub without: Option<Loss>,
    /// Whether a rule that names the fault could speak.
    pub heard: bool,
    /// The run, what should have been said, and what was.
    #[serde(flatten)]
    pub miss: Miss,
}

fn key_of<S: Serializer>(loss: &Option<Loss>, serializer: S) -> Result<S::Ok, S::Error> {
    loss.map(Loss::key).serialize(serializer)
}

impl Miss {
    /// What `answer` said of `run`, whose faults have this size.
    pub fn new(run: &Examined, answer: &Answer, magnitude_permille: i64) -> Self {
        let share = |ns: i64| ns as f64 / run.step.max(1) as f64;
        let gain: i64 = run.faults.iter().map(|fault| fault.gain).sum();
        Self {
            fault: run.case.key(),
            magnitude_permille,
            seed: run.case.seed,
            mode: run.mode,
            ranks: run.ranks,
            verdict: answer.verdict,
            gain: share(gain),
            expected: run.faults.iter().flat_map(|fault| fault.kind.rules()).copied().collect(),
            said: answer.said.iter().map(|s| (s.rule, s.middle().map(share), s.truth.map(share))).collect(),
        }
    }
}
