//! How often each rule is wrong, and how much it still finds, as its threshold rises: data for whoever sets thresholds.
//!
//! A rule says nothing below its threshold, so the curve begins there. It tells whether the threshold is too low; that one
//! is too high shows in the faults that are not named.

use std::fmt::Write;

use model::Ns;

use super::{answer::MATTERS, examine::Examined};
use diagnosis::{analysis::Layer, diagnose::rules};

/// Multiples of the threshold at which the curve is told.
const FACTORS: [f64; 7] = [1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0];

/// What one rule said in one run.
struct Heard {
    /// Its strongest finding over the threshold; 0 for none.
    strength: f64,
    /// Whether that finding is so.
    right: bool,
    /// Whether the run has a fault that matters and is the rule's to name.
    due: bool,
    /// The threshold, and whether what is below it meets it.
    threshold: Option<(f64, bool)>,
}

/// The curves of all rules as CSV, made on the day `date` from runs that began at `seed`. A rule that never spoke has one
/// row, without a threshold.
pub fn curves(runs: &[Examined], seed: u64, date: &str) -> String {
    let healthy = runs.iter().filter(|run| run.faults.is_empty()).count();
    let mut out = format!(
        "# {date}: {} simulated runs from seed {seed} on, {healthy} of them healthy\n\
         rule,factor,threshold,runs_without,false_alarms,runs_with,named,date\n",
        runs.len(),
    );
    for rule in rules::REGISTRY.iter().map(|rule| rule.doc()).filter(|doc| doc.layer != Layer::Measurement) {
        let heard: Vec<Heard> = runs.iter().map(|run| heard(rule.id, run)).collect();
        let threshold = heard.iter().find_map(|h| h.threshold);
        let factors = if threshold.is_some() { &FACTORS[..] } else { &FACTORS[..1] };
        for factor in factors.iter().copied() {
            let above = |h: &&Heard| h.strength >= factor;
            let without = || heard.iter().filter(|h| !h.due && !h.right);
            let with = || heard.iter().filter(|h| h.due);
            // Writing to a String cannot fail.
            let _ = writeln!(
                out,
                "{},{factor},{},{},{},{},{},{date}",
                rule.id,
                threshold.map_or_else(String::new, |(threshold, from_above)| {
                    format!("{:.4}", if from_above { threshold / factor } else { threshold * factor })
                }),
                without().count(),
                without().filter(above).count(),
                with().count(),
                with().filter(above).count(),
            );
        }
    }
    out
}

fn heard(rule: &'static str, run: &Examined) -> Heard {
    let matters = |gain: Ns| gain as f64 >= MATTERS * run.step as f64;
    let due = run.faults.iter().any(|fault| fault.kind.rules().first() == Some(&rule) && matters(fault.gain));
    let said = || run.answer.said.iter();
    let strongest =
        said().filter(|said| said.rule == rule).max_by(|a, b| strength(a.trigger).total_cmp(&strength(b.trigger)));
    // A finding that gave way to another one met its threshold, nobody knows by how much.
    let gave_way = said().find(|said| said.supersedes.contains(&rule));
    Heard {
        strength: strongest.map_or(if gave_way.is_some() { 1.0 } else { 0.0 }, |said| strength(said.trigger)),
        right: strongest.or(gave_way).is_some_and(|said| said.is_right(run.step)),
        due,
        threshold: strongest.map(|said| (said.trigger.1, is_from_above(said.trigger))),
    }
}

/// Whether a trigger that was met is met by what is below its threshold, such as a speed.
fn is_from_above((value, threshold): (f64, f64)) -> bool {
    value < threshold
}

/// How many times its threshold a trigger that was met exceeds, or falls short of.
fn strength(trigger: (f64, f64)) -> f64 {
    let (most, least) = if is_from_above(trigger) { (trigger.1, trigger.0) } else { trigger };
    if least > 0.0 { most / least } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_below_its_threshold_is_as_strong_as_a_cost_above_it() {
        assert_eq!((strength((0.30, 0.10)), strength((0.25, 0.75))), (0.30 / 0.10, 3.0));
        assert_eq!((strength((0.10, 0.10)), strength((5.0, 0.0)), strength((0.0, 0.95))), (1.0, 1.0, 1.0));
        assert!(is_from_above((0.8, 0.95)) && !is_from_above((0.2, 0.1)));
    }

    #[test]
    fn a_rule_that_never_spoke_has_a_row_too_and_the_header_says_how_much_it_is_worth() {
        let text = curves(&[], 7, "2000-01-01");
        assert!(text.starts_with("# 2000-01-01: 0 simulated runs from seed 7 on, 0 of them healthy\nrule,factor,"));
        let silent = |rule: &str| text.lines().filter(|line| line.starts_with(rule)).count();
        assert!(text.contains("\nRT-14,1,,0,0,0,0,2000-01-01\n") && silent("RT-14,") == 1);
        assert_eq!(silent("CP-"), 0, "what is said of the measurement has no gain to be judged by");
    }
}
