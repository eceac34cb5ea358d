//! Where the idle time of a class lies, if it lies together: one long gap, or the start of its steps.

use model::{Ns, Span, Trace};

use diagnosis::analysis::{Class, Rank, idle::Gap};

/// Idle time that lies together.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Idle {
    /// One gap is much of the class.
    Gap {
        /// Its length, ns.
        ns: Ns,
        /// Name of the operation that ended it.
        before: String,
        /// Calls that prepared code or graphs and began in it.
        preparing: Vec<String>,
    },
    /// Nearly all of it lies at the start of the steps.
    Start {
        /// Idle time in the first fifth of the steps, ns.
        early: Ns,
        /// All idle time, ns.
        all: Ns,
    },
}

/// Share of a class from which a single gap is named.
const LONG: f64 = 0.10;
/// Share of the idle time, and the part of the step at its start, from which the start is named.
const EARLY: (f64, Ns) = (0.90, 5);
/// Share of a class below which idle time is not worth a line.
const WORTH: f64 = 0.01;
/// Calls that are named at most.
const CALLS: usize = 4;

/// Where the idle time of the steps that count lies.
pub(super) fn of(trace: &Trace, rank: &Rank, class: &Class) -> Option<Idle> {
    let mut gaps: Vec<(&Gap, Span)> = Vec::new();
    for step in rank.steady_steps(class) {
        let from = rank.gaps.partition_point(|g| g.step < step.index);
        let to = rank.gaps.partition_point(|g| g.step <= step.index);
        gaps.extend(rank.gaps.get(from..to).unwrap_or(&[]).iter().map(|g| (g, step.window)));
    }
    let (longest, _) = gaps.iter().max_by_key(|(g, _)| (g.span.len(), std::cmp::Reverse(g.span.start)))?;
    if longest.span.len() as f64 >= LONG * class.total as f64 {
        return Some(gap(trace, rank, longest));
    }
    let all: Ns = gaps.iter().map(|(g, _)| g.span.len()).sum();
    let early =
        |(g, window): &(&Gap, Span)| g.span.clip(Span::new(window.start, window.start + window.len() / EARLY.1)).len();
    let early: Ns = gaps.iter().map(early).sum();
    let together = early as f64 >= EARLY.0 * all as f64 && all as f64 >= WORTH * class.total as f64;
    together.then_some(Idle::Start { early, all })
}

fn gap(trace: &Trace, rank: &Rank, gap: &Gap) -> Idle {
    let owner = gap.owner.and_then(|i| rank.timeline.ops.get(i as usize));
    let mut preparing: Vec<String> = Vec::new();
    for call in rank.timeline.calls_between(gap.span.start, gap.span.end).iter().filter(|c| c.kind.is_compile()) {
        let name = trace.strings.get(call.name);
        if preparing.len() < CALLS && !preparing.iter().any(|known| known == name) {
            preparing.push(name.to_owned());
        }
    }
    let before = owner.map_or_else(String::new, |op| trace.strings.get(op.name).to_owned());
    Idle::Gap { ns: gap.span.len(), before, preparing }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use diagnosis::analysis::script::Script;

    fn idle(script: Script) -> Option<Idle> {
        let (trace, analysis) = script.analyze();
        let rank = &analysis.ranks[0];
        of(&trace, rank, rank.main_class().unwrap())
    }

    #[test]
    fn a_long_gap_is_named_with_what_prepared_code_in_it() {
        let mut s = Script::default();
        s.launch((0, 10), "a", (20, 100)).call("cuModuleLoadData", (700, 800));
        s.launch((900, 910), "b", (920, 1_000));
        let preparing = vec!["cuModuleLoadData".to_owned()];
        assert_eq!(idle(s), Some(Idle::Gap { ns: 820, before: "b".into(), preparing }));
    }

    #[test]
    fn idle_time_at_the_start_is_told_from_idle_time_all_over() {
        let run = |ops: [(i64, i64); 3]| {
            let mut s = Script::default();
            for (start, end) in ops {
                s.launch((start - 2, start - 1), "k", (start, end));
            }
            idle(s)
        };
        assert_eq!(run([(10, 20), (60, 70), (110, 1_010)]), Some(Idle::Start { early: 80, all: 80 }));
        assert_eq!(run([(10, 300), (340, 600), (640, 1_010)]), None);
    }
}
