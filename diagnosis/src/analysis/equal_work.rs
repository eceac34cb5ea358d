//! What steps of unequal work would take by their work alone: a robust line through batch, prompt and context. A step that
//! takes longer than this is slow; one that merely has more sequences is not.

use std::collections::BTreeMap;

use model::Ns;

use super::model::{Facts, Step};

/// Steps of whose pairs the slope is taken; more only repeat what these say.
const LOOKED_AT: usize = 200;
/// Fewest pairs of unequal work that make a slope.
const PAIRS: usize = 3;
/// Times that the measures are fitted one after the other.
const ROUNDS: usize = 3;

/// Theil–Sen: the median of the slopes of all pairs. It holds where nearly a third of the values are wild.
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let stride = points.len().div_ceil(LOOKED_AT).max(1);
    let points: Vec<(f64, f64)> = points.iter().copied().step_by(stride).collect();
    let mut slopes = Vec::new();
    for (i, a) in points.iter().enumerate() {
        let later = points.iter().skip(i + 1).filter(|b| b.0 != a.0);
        slopes.extend(later.map(|b| (b.1 - a.1) / (b.0 - a.0)));
    }
    (slopes.len() >= PAIRS).then(|| middle(slopes))?
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// What makes the work of a step more: sequences, tokens of prompts, and tokens of context in all.
const MEASURES: [fn(&Facts) -> Option<f64>; 3] = [
    |facts| facts.batch.map(f64::from),
    |facts| facts.prefill_tokens.map(f64::from),
    |facts| Some(facts.context? as f64 * f64::from(facts.batch?)),
];

/// A value of a step, with what the step worked on: its facts and the rows of its kernels, padding included.
pub type Value = (Facts, Option<u64>, Ns);

/// Steps of equal rows that are enough for a line of their own: a graph pads its rows to the next captured size, and what
/// steps take jumps there.
const OWN_LINE: usize = 5;

/// How far steps of rows that few others have may be off the line of all and still be as usual; own value.
const ROUGH: f64 = 0.1;

/// What each of some values of steps would be by the step's work alone. Where the work is the same in all steps, or unknown,
/// that is the median of the values for all of them.
pub fn expected(steps: &[Value]) -> Vec<f64> {
    let mut out = line(steps);
    let mut by_rows: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (i, (_, rows, _)) in steps.iter().enumerate() {
        by_rows.entry(rows.unwrap_or(0)).or_default().push(i);
    }
    // Of rows that few steps have nobody knows exactly what they take.
    if by_rows.len() > 1 {
        for i in by_rows.values().filter(|group| group.len() < OWN_LINE).flatten() {
            if let Some((known, (.., ns))) = out.get_mut(*i).zip(steps.get(*i)) {
                let is_near = (*ns as f64 - *known).abs() <= ROUGH * *known;
                *known = if is_near { *ns as f64 } else { *known };
            }
        }
    }
    for group in by_rows.values().filter(|group| group.len() >= OWN_LINE) {
        let own: Vec<Value> = group.iter().filter_map(|i| steps.get(*i).copied()).collect();
        for (i, expected) in group.iter().zip(line(&own)) {
            if let Some(known) = out.get_mut(*i) {
                *known = expected;
            }
        }
    }
    out
}

fn line(steps: &[Value]) -> Vec<f64> {
    let mut rest: Vec<f64> = steps.iter().map(|(.., ns)| *ns as f64).collect();
    let mut slopes = [0.0; MEASURES.len()];
    for _ in 0..ROUNDS {
        for (measure, known) in MEASURES.iter().zip(&mut slopes) {
            let x: Option<Vec<f64>> = steps.iter().map(|(facts, ..)| measure(facts)).collect();
            let Some(x) = x else { continue };
            let points: Vec<(f64, f64)> = x.iter().copied().zip(rest.iter().copied()).collect();
            // More work never takes less time.
            let more = slope(&points).unwrap_or(0.0).max(-*known);
            *known += more;
            rest.iter_mut().zip(&x).for_each(|(rest, x)| *rest -= more * x);
        }
    }
    let base = middle(rest.clone()).unwrap_or(0.0);
    steps.iter().zip(rest).map(|((.., ns), rest)| *ns as f64 - rest + base).collect()
}

/// The values of steps as if all of them did the work of the middle one: what is left to compare once their work is taken
/// out.
pub fn evened(steps: &[Value]) -> Vec<Ns> {
    let expected = expected(steps);
    let usual = middle(expected.clone()).unwrap_or(0.0);
    let even = |((.., ns), expected): (&Value, &f64)| {
        if *expected > 0.0 { (*ns as f64 * usual / expected).round() as Ns } else { *ns }
    };
    steps.iter().zip(&expected).map(even).collect()
}

/// The windows of steps, evened where their work churns.
pub fn windows(steps: &[&Step], churns: bool) -> Vec<Ns> {
    of(steps, churns, |step| step.window.len())
}

/// A value of each step, evened where their work churns.
pub fn of(steps: &[&Step], churns: bool, value: impl Fn(&Step) -> Ns) -> Vec<Ns> {
    let values: Vec<Value> = steps.iter().map(|step| (step.facts, step.rows, value(step))).collect();
    if churns { evened(&values) } else { values.into_iter().map(|(.., ns)| ns).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Stage;

    fn step(batch: u32, ns: Ns) -> Value {
        (
            Facts { stage: Stage::Decode, batch: Some(batch), ..Facts::UNKNOWN },
            Some(u64::from(batch).div_ceil(8) * 8),
            ns,
        )
    }

    #[test]
    fn work_is_taken_out_and_pauses_stay() {
        let steps: Vec<Value> = (0..60u32)
            .map(|i| {
                let batch = 20 + (i * 7) % 13;
                let padded = Ns::from(batch.div_ceil(8) * 8);
                step(batch, 5_000 + 100 * padded + 10 * Ns::from(batch) + if i % 9 == 4 { 20_000 } else { 0 })
            })
            .collect();
        let even = evened(&steps);
        let usual = even[0];
        for (i, ns) in even.iter().enumerate() {
            assert!(if i % 9 == 4 { *ns > 2 * usual } else { (ns - usual).abs() < usual / 50 }, "{i}: {ns} of {usual}");
        }
    }

    #[test]
    fn equal_work_is_its_median() {
        let steps: Vec<Value> = [5, 7, 9].into_iter().map(|ns| step(4, ns)).collect();
        assert_eq!(expected(&steps), [7.0; 3]);
        assert!(expected(&[]).is_empty());
    }
}
