//! Sources that write one thread on two lines: its calls of the runtime on one, what the framework did on the other, and nothing that
//! says that they are one thread (XLA's profiler). The line whose records hold the calls most closely is taken as the other half.

use model::{Category, Ns, Trace, TrackId};

use crate::analysis::{Rank, nest::Nests};

/// Calls of a line that are looked up.
const SAMPLED: usize = 64;
/// Part of them that the other line must hold, in percent.
const HOLDS: usize = 80;
/// Most lines that are looked through. Heuristic: each line of calls is looked up in all of them, and programs start threads by the
/// hundred thousand.
const MOST: usize = 256;

/// Whether records of a category say what the program does.
fn of_program(category: Category) -> bool {
    matches!(category, Category::FrameworkOp | Category::UserRange | Category::PythonFrame)
}

/// The lines of a rank that may tell what another one does. Where there are more than [`MOST`], nothing is looked up in them.
pub fn telling(trace: &Trace, rank: &Rank) -> Vec<TrackId> {
    let tells = |track: &TrackId| {
        trace.lanes.get(track.0 as usize).is_some_and(|lane| lane.category.iter().any(|c| of_program(*c)))
    };
    let found: Vec<TrackId> = rank.timeline.threads.iter().copied().filter(tells).take(MOST + 1).collect();
    if found.len() > MOST { Vec::new() } else { found }
}

/// Which of the lines of [`telling`] tells what a line of nothing but calls does; `None` where it tells that itself, or no line
/// holds its calls.
pub fn of(telling: &[TrackId], nests: &mut Nests<'_>, track: TrackId) -> Option<TrackId> {
    if telling.is_empty() {
        return None;
    }
    let lane = nests.lane(track)?;
    if lane.category.iter().any(|category| *category != Category::HostApi) {
        return None;
    }
    let every = lane.len().div_ceil(SAMPLED).max(1);
    let calls: Vec<Ns> = (0..lane.len()).step_by(every).map(|row| lane.start[row].midpoint(lane.end(row))).collect();
    let score = |other: TrackId| {
        let lane = nests.lane(other)?;
        let innermost = |t: &Ns| {
            let row = nests.around(other, *t).into_iter().find(|row| of_program(lane.category[*row]))?;
            Some(lane.dur[row])
        };
        let held: Vec<Ns> = calls.iter().filter_map(innermost).collect();
        let whole = held.iter().fold(0, |all: Ns, ns| all.saturating_add(*ns));
        let mean = whole.checked_div(held.len() as Ns)?;
        (held.len() * 100 >= calls.len() * HOLDS).then_some((mean, other))
    };
    telling.iter().copied().filter(|other| *other != track).filter_map(score).min().map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use model::Category;

    use super::*;
    use crate::analysis::script::Script;

    /// The calls of a thread lay on a line of their own, and what the framework did around them was "no record".
    #[test]
    fn the_line_that_holds_the_calls_most_closely_is_their_thread() {
        let mut script = Script::default();
        for i in 0..20 {
            let at = 100_000 * i;
            script.launch((at + 20_000, at + 25_000), "gemm_nt", (at + 27_000, at + 40_000));
            script.host_on(8, Category::FrameworkOp, "Execute", (at + 1_000, at + 60_000));
            script.host_on(9, Category::FrameworkOp, "main", (at, at + 99_000));
        }
        let (trace, analysis) = script.analyze();
        let rank = &analysis.ranks[0];
        let track = rank.timeline.calls[0].track;
        let found = of(&telling(&trace, rank), &mut Nests::new(&trace), track);
        let name = found.map(|track| trace.strings.get(trace.lanes[track.0 as usize].name[0]).to_owned());
        assert_eq!(name.as_deref(), Some("Execute"));
    }

    #[test]
    fn a_line_that_holds_no_call_is_nobodys_other_half() {
        let mut script = Script::default();
        for i in 0..20 {
            let at = 100_000 * i;
            script.launch((at + 20_000, at + 25_000), "gemm_nt", (at + 27_000, at + 40_000));
            script.host_on(8, Category::FrameworkOp, "elsewhere", (at + 60_000, at + 90_000));
        }
        let (trace, analysis) = script.analyze();
        let rank = &analysis.ranks[0];
        let found = of(&telling(&trace, rank), &mut Nests::new(&trace), rank.timeline.calls[0].track);
        assert_eq!(found, None);
    }

    /// Every line of calls looked through every other line: 160 000 threads took minutes.
    #[test]
    fn more_lines_than_programs_have_halves_are_not_looked_through() {
        let lines = |n: usize| {
            let mut script = Script::default();
            script.launch((20, 25), "gemm_nt", (27, 40));
            for line in 0..n {
                script.host_on(100 + line as i64, Category::FrameworkOp, "Execute", (10, 60));
            }
            let (trace, analysis) = script.analyze();
            telling(&trace, &analysis.ranks[0]).len()
        };
        assert_eq!([lines(3), lines(MOST), lines(MOST + 1)], [3, MOST, 0]);
    }
}
