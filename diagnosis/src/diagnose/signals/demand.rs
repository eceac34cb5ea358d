//! Whether there was anything to do: idle time of a server without requests is no fault of the stack.

use crate::{
    analysis::{Facts, Rank, Scheduler, idle::Gap},
    platform::Stage,
};

/// Whether nothing recorded says that the engine had a request in a gap. Inside a step it had; and a step that only decodes
/// needs no new request: its sequences were there before. Where far fewer decode than in the step before, or where a prompt is
/// read, the step may be the first that anyone asked for in a while.
pub fn in_doubt(rank: &Rank, gap: &Gap, scheduler: &Scheduler) -> bool {
    if !gap.between_steps || scheduler.knows_demand() {
        return false;
    }
    let at = rank.steps.partition_point(|step| step.index < gap.step);
    let of = |at: usize| rank.steps.get(at).map(|step| (&step.facts, step.rows));
    !of(at).zip(of(at + 1)).is_some_and(|(before, after)| goes_on(before, after))
}

/// Whether the sequences of a step were there in the step before.
fn goes_on((before, rows): (&Facts, Option<u64>), (after, rows_after): (&Facts, Option<u64>)) -> bool {
    let serves = matches!(before.stage, Stage::Decode | Stage::Mixed | Stage::Prefill);
    let told = u64::from(before.batch.unwrap_or(0)) + u64::from(before.prefill_requests.unwrap_or(0));
    // Where nothing says how many sequences there are, the rows of two steps that decode do, padding included.
    let (all, now) = match after.batch {
        Some(now) => (told, u64::from(now)),
        None if before.stage == Stage::Decode => (rows.unwrap_or(0), rows_after.unwrap_or(0)),
        None => (0, 0),
    };
    serves && after.stage == Stage::Decode && now > 0 && all > 0 && 2 * now >= all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_only_decodes_needs_no_new_request() {
        let step = |stage, batch, prefill_requests| Facts { stage, batch, prefill_requests, ..Facts::UNKNOWN };
        let decode = |batch| step(Stage::Decode, Some(batch), None);
        let goes_on = |before: &Facts, after: &Facts| goes_on((before, None), (after, None));
        assert!(goes_on(&decode(8), &decode(8)) && goes_on(&decode(8), &decode(7)));
        assert!(goes_on(&step(Stage::Prefill, None, Some(1)), &decode(1)), "the prompt that was read decodes");
        assert!(!goes_on(&decode(8), &decode(1)), "most of them ended");
        assert!(!goes_on(&decode(8), &step(Stage::Mixed, Some(8), Some(1))), "a prompt came");
        assert!(!goes_on(&Facts::UNKNOWN, &decode(1)));
        let unsaid = step(Stage::Decode, None, None);
        assert!(!goes_on(&unsaid, &unsaid) && super::goes_on((&unsaid, Some(32)), (&unsaid, Some(32))));
    }
}
