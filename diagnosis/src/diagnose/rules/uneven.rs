//! The frame of rules that say: the ranks of a job have unequal loads, and those with less wait for those with more.

use std::collections::BTreeMap;

use model::Ns;

use super::{
    change,
    excess::Excess,
    exposed::{Exposed, Saying},
    gate::Cost,
    late,
};
use crate::{
    analysis::{Bucket, Class, Confidence, Layer, Rank, RankCounter, Step},
    diagnose::{
        Evidence, Finding, Intervention,
        rule::{Context, Doc},
    },
    i18n::{Text, Value},
};

/// Largest load of a rank over the mean of the others (NVIDIA triage guide; rule catalogue). Against a mean that holds the
/// largest load itself, two ranks would have to differ by half.
pub const RATIO: f64 = 1.2;
/// Correlation of a rank's waiting with what it has less than the most loaded one (rule catalogue).
pub const CORRELATION: f64 = 0.6;
/// Share of the step spent waiting; own value.
pub const SHARE: f64 = 0.03;
/// Largest ratio that is told: beyond it the others have next to nothing, and with nothing at all there is no ratio.
const MOST: f64 = 100.0;
/// Steps that all ranks must share before a correlation means anything; own value.
const STEPS: usize = 10;

/// Loads of all ranks in the steps that they share, and what they wait.
pub struct Uneven<'a> {
    /// The rank that waits most.
    pub waiting: u32,
    /// The rank that has most, by its position, and its class.
    pub loaded: (usize, &'a Rank, &'a Class),
    /// Mean over the steps of the largest load over the mean load of the other ranks.
    pub ratio: f64,
    /// Correlation of waiting with missing load.
    pub correlation: f64,
    /// What the waiting rank waits, ns per step.
    pub wait: Ns,
}

/// Sequences that a rank decodes in a step, by the step's annotation, by the tokens that the engine counts, or else by the
/// rows that its launches show, padding included.
pub fn batch<'a>(cx: &Context<'_>, rank: &'a Rank) -> impl Fn(&Step) -> Option<f64> + use<'a> {
    let tokens = RankCounter::Tokens.of(cx.trace, rank.process);
    move |step| {
        let said = step.facts.batch.map(f64::from);
        let counted = || tokens.as_ref()?.of_step(&rank.timeline, rank.ops_of(step));
        let shown = || step.rows.map(|rows| rows as f64);
        let batch = said.or_else(counted).or_else(shown);
        batch.filter(|b| *b > 0.0)
    }
}

/// Compares the ranks by `load`; `None` where their loads are not known in enough steps, or not uneven.
pub fn compare<'a>(cx: &'a Context<'_>, load: impl Fn(&Rank, &Step) -> Option<f64>) -> Option<Uneven<'a>> {
    let ranks: Vec<(usize, &Rank, &Class)> = late::counted(cx).collect();
    // Steps by their position in the run: load and wait of each rank.
    let mut steps: BTreeMap<u32, Vec<(usize, f64, Ns)>> = BTreeMap::new();
    for (i, (_, rank, class)) in ranks.iter().enumerate() {
        for step in rank.steady_steps(class) {
            if let Some(load) = load(rank, step).filter(|l| *l >= 0.0) {
                steps.entry(step.index).or_default().push((i, load, wait(step)));
            }
        }
    }
    steps.retain(|_, of| of.len() == ranks.len() && of.iter().any(|(_, load, _)| *load > 0.0));
    if ranks.len() < 2 || steps.len() < STEPS {
        return None;
    }
    let (mut ratio, mut missing, mut waits) = (0.0, Vec::new(), Vec::new());
    let mut sums = vec![(0.0, 0); ranks.len()];
    for of in steps.values() {
        let most = of.iter().map(|(_, load, _)| *load).fold(0.0, f64::max);
        let others = of.iter().map(|(_, load, _)| load).sum::<f64>() - most;
        ratio += (most * (of.len() as f64 - 1.0) / others).min(MOST);
        for (i, load, wait) in of {
            missing.push(most - load);
            waits.push(*wait as f64);
            if let Some((loads, waited)) = sums.get_mut(*i) {
                *loads += load;
                *waited += wait;
            }
        }
    }
    let ratio = ratio / steps.len() as f64;
    let correlation = correlation(&missing, &waits)?;
    let loaded = (0..ranks.len()).max_by(|a, b| sums[*a].0.total_cmp(&sums[*b].0))?;
    let (i, (_, waited)) = sums.iter().enumerate().max_by_key(|(_, (_, waited))| *waited)?;
    let (_, rank, class) = *ranks.get(i)?;
    let wait = *waited / steps.len() as Ns;
    let share = wait as f64 / class.mean().max(1) as f64;
    (ratio >= RATIO && correlation >= CORRELATION && share >= SHARE).then_some(Uneven {
        waiting: rank.rank,
        loaded: *ranks.get(loaded)?,
        ratio,
        correlation,
        wait,
    })
}

impl Uneven<'_> {
    /// The finding; `{loaded}` and `{ratio}` of the claim are filled in besides those of the frame.
    pub fn finding(&self, cx: &Context<'_>, doc: &'static Doc, formula: Text, claim: Text) -> Finding {
        let (at, rank, class) = self.loaded;
        let cost = Cost { per_step: self.wait, share: self.ratio, most: Confidence::High };
        let ranks: Vec<usize> = late::counted(cx).map(|(i, ..)| i).collect();
        let excess = Excess::of(cx.analysis, &ranks, at, class, |b| matches!(b, Bucket::Compute(_)));
        // Spread anew the load ends between the two; at best it goes where there is room.
        let most = excess.edits(rank, class);
        let edits = excess.shared(ranks.len()).edits(rank, class).into_iter().chain(change::hoped(most)).collect();
        let saying = Saying {
            formula,
            claim,
            more: vec![
                ("loaded", Value::Count(u64::from(rank.rank))),
                ("ratio", Value::Ratio(self.ratio)),
                ("rank", Value::Count(u64::from(self.waiting))),
            ],
            change: Intervention { removes: self.wait, layer: Layer::Communication, edits },
        };
        let mut finding = Exposed { cx, doc, rank, class }.finding(RATIO, &cost, saying);
        finding.confidence = finding.confidence.min(cost.most);
        finding
            .with(Evidence::new(
                Text::new("wait per step of the rank that waits most", "等待最多的 rank 每步的等待"),
                Value::Ns(self.wait),
                Vec::new(),
            ))
            .with(Evidence::new(
                Text::new(
                    "correlation of waiting with what a rank has less than the most loaded one",
                    "等待时间与该 rank 少于最重 rank 的负载之间的相关系数",
                ),
                Value::Number((self.correlation * 100.0).round() / 100.0),
                Vec::new(),
            ))
    }
}

fn wait(step: &Step) -> Ns {
    step.buckets.iter().filter(|(b, _)| *b == Bucket::CommWait).map(|(_, ns)| ns).sum()
}

/// Pearson's correlation; `None` where one side does not vary.
fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let n = a.len().min(b.len()).max(1) as f64;
    let mean = |v: &[f64]| v.iter().sum::<f64>() / n;
    let (ma, mb) = (mean(a), mean(b));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        ab += (x - ma) * (y - mb);
        aa += (x - ma) * (x - ma);
        bb += (y - mb) * (y - mb);
    }
    let scale = (aa * bb).sqrt();
    (scale > 0.0).then(|| ab / scale)
}

#[cfg(test)]
mod tests {
    use super::correlation;

    #[test]
    fn correlation_is_one_for_proportional_series() {
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]), Some(1.0));
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[6.0, 4.0, 2.0]), Some(-1.0));
        assert_eq!(correlation(&[1.0, 1.0], &[2.0, 3.0]), None);
    }
}
