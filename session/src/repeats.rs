//! Whether captures are repeats of one run: the same command, launched again.

use std::collections::BTreeMap;

use model::{
    Trace,
    manifest::{Control, FIELDS, Field},
};

use diagnosis::{
    analysis::{Analysis, DeviceOp},
    platform::CanonicalOp,
};

/// Fields of which one is enough to know the model by.
const MODEL: [&str; 4] = ["model.name", "model.config_hash", "model.weight_hash", "model.layers"];
/// What a run shows of itself: two launches of one command may show it differently.
const SHOWN: &str = "warmup.change_point";
/// Share of a step's operations that two launches of one run have in common at least: own value. Kernels that a library chooses
/// anew keep their kind; a model with a quarter more layers has a quarter more of every kind.
const ALIKE: f64 = 0.85;

/// Why two captures are no repeats of one run; `None` where nothing speaks against it.
pub(crate) fn differ((a, of_a): (&Trace, &Analysis), (b, of_b): (&Trace, &Analysis)) -> Option<String> {
    let said = |trace: &Trace, key: &str| trace.manifest.value(key).map(str::to_owned);
    let other = |field: &&Field| {
        let is_set = field.control == Control::Hard && field.key != SHOWN;
        is_set && said(a, field.key).zip(said(b, field.key)).is_some_and(|(a, b)| a != b)
    };
    if let Some(field) = FIELDS.iter().find(other) {
        return Some(format!("they differ in {}", field.key));
    }
    if a.simulated != b.simulated {
        return Some("they differ in what is simulated and what is measured".to_owned());
    }
    // What both say of the model is the same by now; where one says nothing, the steps themselves have to.
    if MODEL.iter().any(|key| said(a, key).is_some() && said(b, key).is_some()) {
        return None;
    }
    let alike = alike(&operations(of_a)?, &operations(of_b)?);
    (alike < ALIKE).then(|| {
        format!(
            "no model is named, and of the operations of their steps {:.0} % are alike (name it with --declare where it is one)",
            alike * 100.0
        )
    })
}

/// How many operations of each kind the step in the middle of the main class has; `None` without one.
fn operations(analysis: &Analysis) -> Option<BTreeMap<CanonicalOp, usize>> {
    let rank = analysis.ranks.first()?;
    let steps: Vec<_> = rank.steady_steps(rank.main_class()?).collect();
    let mut counts = BTreeMap::new();
    for DeviceOp { op, .. } in rank.ops_of(steps.get(steps.len() / 2)?) {
        *counts.entry(*op).or_default() += 1;
    }
    Some(counts)
}

/// Share of the operations of the larger step that both have.
fn alike(a: &BTreeMap<CanonicalOp, usize>, b: &BTreeMap<CanonicalOp, usize>) -> f64 {
    let common: usize = a.iter().map(|(op, count)| (*count).min(b.get(op).copied().unwrap_or(0))).sum();
    let all = a.values().sum::<usize>().max(b.values().sum());
    if all == 0 { 1.0 } else { common as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_alike_by_what_they_consist_of() {
        let step = |gemm, norm| BTreeMap::from([(CanonicalOp::Gemm, gemm), (CanonicalOp::Norm, norm)]);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(alike(&step(40, 10), &step(40, 10)), 1.0));
        assert!(close(alike(&step(40, 10), &step(20, 5)), 0.5));
        assert!(close(alike(&step(40, 10), &step(44, 6)), 46.0 / 50.0));
        assert!(close(alike(&BTreeMap::new(), &BTreeMap::new()), 1.0));
    }
}
