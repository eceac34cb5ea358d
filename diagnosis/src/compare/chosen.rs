//! What is compared: on each side one class of steps of one rank, and the two are of one kind.

use model::Trace;

use crate::{
    analysis::{Analysis, Class, GraphMode, Rank, Step, op_shapes::MEMORY_BOUND_ROWS},
    platform::Stage,
};

/// The steps of one class on one rank of one capture.
#[derive(Clone, Copy)]
pub struct Chosen<'a> {
    /// The capture.
    pub trace: &'a Trace,
    /// What is known of it.
    pub analysis: &'a Analysis,
    /// The rank, as an index into the analysis' ranks.
    pub index: usize,
    /// The rank.
    pub rank: &'a Rank,
    /// The class.
    pub class: &'a Class,
}

/// What the work of steps is bound by, as far as that is the same on every device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// They read weights and caches once, for few rows: memory.
    Streaming,
    /// They read prompts: arithmetic, in their products.
    Dense,
    /// They decode so many rows that memory bounds them on one device and arithmetic on another, or nobody knows how many.
    Between,
}

/// The device of a capture, by its manifest or its records.
pub fn device(trace: &Trace) -> Option<String> {
    let named = || trace.devices.iter().find_map(|device| device.name).map(|name| trace.strings.get(name).to_owned());
    trace.manifest.value("hardware.device").map(str::to_owned).or_else(named)
}

impl<'a> Chosen<'a> {
    /// What the work of the steps is bound by.
    pub fn work(&self) -> Work {
        match self.class.stage {
            Stage::Prefill => Work::Dense,
            Stage::Decode if self.class.batches.is_some_and(|(_, rows)| rows <= MEMORY_BOUND_ROWS) => Work::Streaming,
            _ => Work::Between,
        }
    }

    /// The steps that count.
    pub fn steps(&self) -> impl Iterator<Item = &'a Step> + use<'a> {
        self.rank.steady_steps(self.class)
    }
}

/// A capture before its steps are chosen.
pub type Captured<'a> = (&'a Trace, &'a Analysis);

/// The pair of classes to compare: of one stage, decode before all else, the same graph mode where there is one, and of those
/// the one with the largest share of the time of both. Two batches that are known and differ are other work, unless
/// `any_batch`, where the same is still preferred. Ranks of one number are taken, the first that both have.
/// `None` where no stage and batch is on both sides. The answer for the two exchanged is the same pair exchanged.
pub fn pair<'a>(a: Captured<'a>, b: Captured<'a>, any_batch: bool) -> Option<[Chosen<'a>; 2]> {
    pair_of(a, b, any_batch, None)
}

/// The same of steps of one stage, or of steps that do not say theirs.
pub fn pair_of<'a>(a: Captured<'a>, b: Captured<'a>, any_batch: bool, stage: Option<Stage>) -> Option<[Chosen<'a>; 2]> {
    let ranks = |(_, analysis): Captured<'a>| analysis.ranks.iter().enumerate();
    let pairs = ranks(a).flat_map(|x| ranks(b).map(move |y| (x, y)));
    let common = pairs.filter(|((_, x), (_, y))| x.rank == y.rank).min_by_key(|((_, x), _)| x.rank);
    // Numbers of ranks that do not meet are those of other jobs: the first of each then.
    let ((i, x), (j, y)) = common.or_else(|| ranks(a).next().zip(ranks(b).next()))?;
    let (p, q) = classes(x, y, any_batch, stage)?;
    let side = |(trace, analysis): Captured<'a>, index, rank, class| Chosen { trace, analysis, index, rank, class };
    Some([side(a, i, x, p), side(b, j, y, q)])
}

/// The best pair of classes of two ranks.
fn classes<'a>(a: &'a Rank, b: &'a Rank, any_batch: bool, stage: Option<Stage>) -> Option<(&'a Class, &'a Class)> {
    let asked = move |class: &&Class| stage.is_none_or(|stage| class.stage == stage || class.stage == Stage::Unknown);
    let counted = |rank: &'a Rank| rank.classes.iter().filter(|class| class.steady > 0).filter(asked);
    let share = |rank: &Rank, class: &Class| {
        let all: i64 = counted_total(rank);
        (i128::from(class.total) * 1_000_000 / i128::from(all.max(1))) as i64
    };
    let pairs = counted(a).flat_map(|x| counted(b).map(move |y| (x, y))).filter(|(x, y)| {
        // What one side does not tell the work of the two has to show.
        x.stage == y.stage || [x.stage, y.stage].contains(&Stage::Unknown)
    });
    let pairs = pairs.filter(|(x, y)| any_batch || x.may_equal(y));
    let rank_of = |(x, y): &(&Class, &Class)| {
        let graph = x.graph == y.graph && x.graph != GraphMode::Unknown;
        (x.stage == y.stage, x.stage == Stage::Decode, x.batches == y.batches, graph, share(a, x).min(share(b, y)))
    };
    // Of equals the first in the order of both sides together: exchanging them does not exchange that.
    pairs.max_by_key(|pair| (rank_of(pair), std::cmp::Reverse(pair.0.index + pair.1.index)))
}

fn counted_total(rank: &Rank) -> i64 {
    rank.classes.iter().map(|class| class.total).fold(0, i64::saturating_add)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use model::{Category, Ns};

    use super::*;
    use crate::analysis::script::Script;

    /// A run of six decode steps of each of these batches, one kernel a step.
    fn run(batches: &[u32]) -> (Trace, Analysis) {
        let mut script = Script::default();
        let mut at: Ns = 1_000;
        for batch in batches {
            for _ in 0..6 {
                let name = format!("execute_context_0(0)_generation_{batch}({batch})");
                script.host(Category::UserRange, &name, (at, at + 40));
                script.launch((at + 2, at + 8), "flash_fwd_splitkv_kernel", (at + 10, at + 30));
                at += 50;
            }
        }
        script.analyze()
    }

    fn chosen(a: &[u32], b: &[u32], any_batch: bool) -> Option<[Option<u32>; 2]> {
        let ((trace_a, analysis_a), (trace_b, analysis_b)) = (run(a), run(b));
        let sides = pair((&trace_a, &analysis_a), (&trace_b, &analysis_b), any_batch)?;
        Some(sides.map(|side| side.class.batch))
    }

    #[test]
    fn other_batches_are_other_work_unless_any_batch_is_asked_for() {
        assert_eq!(chosen(&[8], &[16], false), None);
        assert_eq!(chosen(&[8], &[16], true), Some([Some(8), Some(16)]));
        assert_eq!(chosen(&[8], &[8], false), Some([Some(8); 2]));
        // Where there is one batch on both sides it is taken either way, however much time others have.
        for any_batch in [false, true] {
            assert_eq!(chosen(&[8, 16], &[16, 32], any_batch), Some([Some(16); 2]));
            assert_eq!(chosen(&[16, 32], &[8, 16], any_batch), Some([Some(16); 2]));
        }
    }

    #[test]
    fn the_work_of_steps_is_bound_alike_everywhere_or_nobody_says_by_what() {
        let work = |batch: &[u32]| {
            let (trace, analysis) = run(batch);
            let [side, _] = pair((&trace, &analysis), (&trace, &analysis), false).unwrap();
            side.work()
        };
        assert_eq!((work(&[16]), work(&[17])), (Work::Streaming, Work::Between));
    }
}
