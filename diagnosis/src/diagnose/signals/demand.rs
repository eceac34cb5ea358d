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
    let of = |at: usize| rank.steps.get(at).map(|step| &step.facts);
    !of(at).zip(of(at + 1)).is_some_and(|(before, after)| goes_on(before, after))
}

/// Whether the sequences of a step were there in the step before.
fn goes_on(before: &Facts, after: &Facts) -> bool {
    let serves = matches!(before.stage, Stage::Decode | Stage::Mixed | Stage::Prefill);
    let all = before.batch.unwrap_or(0).saturating_add(before.prefill_requests.unwrap_or(0));
    serves && after.stage == Stage::Decode && after.batch.is_some_and(|now| now > 0 && all > 0 && 2 * now >= all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_only_decodes_needs_no_new_request() {
        let step = |stage, batch, prefill_requests| Facts { stage, batch, prefill_requests, ..Facts::UNKNOWN };
        let decode = |batch| step(Stage::Decode, Some(batch), None);
        assert!(goes_on(&decode(8), &decode(8)) && goes_on(&decode(8), &decode(7)));
        assert!(goes_on(&step(Stage::Prefill, None, Some(1)), &decode(1)), "the prompt that was read decodes");
        assert!(!goes_on(&decode(8), &decode(1)), "most of them ended");
        assert!(!goes_on(&decode(8), &step(Stage::Mixed, Some(8), Some(1))), "a prompt came");
        assert!(!goes_on(&Facts::UNKNOWN, &decode(1)));
    }
}
