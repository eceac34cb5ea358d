//! The workload of a rank: the steps whose mean every share, gain and headline refers to, and what makes some of them slow.

use std::collections::BTreeMap;

use diagnosis::{
    analysis::{Analysis, Bucket, Class, Rank, Step, equal_work},
    platform::Stage,
};
use model::Ns;

/// Times the median from which a step is slow.
const SLOW: f64 = 1.25;
/// Mean over median of the steps from which the slow ones have a line of their own.
pub const APART: f64 = 1.05;

/// The steps that count of the workload of a rank.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct WorkloadPart {
    /// How many they are.
    pub steps: usize,
    /// Their mean, ns.
    pub mean: Ns,
    /// Their median, ns.
    pub median: Ns,
    /// Stage of the leading class.
    pub stage: Stage,
    /// Fewest and most sequences decoded in a step, if known of all.
    pub sequences: Option<(u32, u32)>,
    /// Fewest and most tokens of a step, prompts included, if known of all.
    pub tokens: Option<(u32, u32)>,
    /// Steps that take more than [`SLOW`] times the median at equal work, and what they have more, mean by bucket, ns, largest
    /// first.
    pub slow: (usize, Vec<(String, Ns)>),
}

/// The workload that a class of a rank belongs to.
pub fn of(analysis: &Analysis, rank: &Rank, class: &Class) -> Option<WorkloadPart> {
    let workload = rank.workload(class);
    let steps: Vec<&Step> = workload.steps().collect();
    if steps.is_empty() {
        return None;
    }
    let range = |of: &dyn Fn(&Step) -> Option<u32>| {
        let known: Option<Vec<u32>> = steps.iter().map(|step| of(step)).collect();
        known.and_then(|known| Some((*known.iter().min()?, *known.iter().max()?)))
    };
    let tokens = |step: &Step| match (step.facts.batch, step.facts.prefill_tokens) {
        (None, None) => None,
        (batch, prompt) => Some(batch.unwrap_or(0).saturating_add(prompt.unwrap_or(0))),
    };
    Some(WorkloadPart {
        steps: steps.len(),
        mean: workload.mean(),
        median: workload.median(),
        stage: workload.class.stage,
        sequences: range(&|step| step.facts.batch),
        tokens: range(&tokens),
        slow: slow(analysis, rank, workload.class),
    })
}

/// The slow steps of a class, and what they have more than its median step.
fn slow(analysis: &Analysis, rank: &Rank, class: &Class) -> (usize, Vec<(String, Ns)>) {
    let steps: Vec<&Step> = rank.steady_steps(class).collect();
    let evened = equal_work::windows(&steps, class.churns);
    let mut order: Vec<(Ns, usize)> = evened.iter().copied().zip(0..).collect();
    order.sort_unstable();
    let middle = order.get(order.len().saturating_sub(1) / 2).and_then(|(ns, i)| Some((*ns, *steps.get(*i)?)));
    let Some((usual, median)) = middle else { return (0, Vec::new()) };
    let mut excess: BTreeMap<Bucket, Ns> = BTreeMap::new();
    let mut count = 0;
    for (step, _) in steps.iter().zip(&evened).filter(|(_, ns)| **ns as f64 > SLOW * usual as f64) {
        count += 1;
        step.buckets.iter().for_each(|(bucket, ns)| *excess.entry(*bucket).or_default() += ns);
        median.buckets.iter().for_each(|(bucket, ns)| *excess.entry(*bucket).or_default() -= ns);
    }
    let each = |(bucket, ns): (Bucket, Ns)| (bucket.name(&analysis.host_labels), ns / (count.max(1) as Ns));
    let mut excess: Vec<(String, Ns)> = excess.into_iter().map(each).filter(|(_, ns)| *ns > 0).collect();
    excess.sort_by_key(|(name, ns)| (std::cmp::Reverse(*ns), name.clone()));
    (count, excess)
}
