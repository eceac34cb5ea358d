//! Whether the logits of a run are finite, and the first operator that gives a value that is not.

use engine::run::StepDone;
use model::{
    Provenance, Trace,
    manifest::{FINITE, NOT_FINITE},
};

use super::DecodeArgs;
use crate::cli::{deviation, say};

/// Says in the capture whether the logits of the steps are finite, and if not where that begins; the same as a sentence. What
/// nobody could look at stays unknown.
pub(super) fn keep(what: &DecodeArgs, steps: &[StepDone], trace: &mut Trace) -> Option<String> {
    let seen: Vec<&StepDone> = steps.iter().filter(|step| step.not_finite.is_some()).collect();
    let lost: Vec<&&StepDone> = seen.iter().filter(|step| step.not_finite.is_some_and(|count| count > 0)).collect();
    let Some((first, count)) = lost.first().and_then(|first| Some((first.number, first.not_finite?))) else {
        if !seen.is_empty() {
            let all = if seen.len() == steps.len() { "all" } else { "the last" };
            trace.manifest.set(FINITE, format!("yes: the logits of {all} {} steps", seen.len()), Provenance::Observed);
        }
        return None;
    };
    let said = format!("no: of {} steps {}, from step {first} on ({count} logits)", seen.len(), lost.len());
    trace.manifest.set(FINITE, &said, Provenance::Observed);
    say(
        "strato: logits are NaN or infinite: repeating the run operator by operator to find the first one that gives such",
    );
    // The run is what it is; that it could not be repeated is said in the place of the operator.
    let place = match deviation::first_not_finite(what, first) {
        Ok(Some(place)) => place,
        Ok(None) => "on this device only: repeated on the CPU it is finite".to_owned(),
        Err(error) => format!("operator unknown: {error}"),
    };
    let sentence = format!("{NOT_FINITE} from step {first}, {place}");
    trace.manifest.set("precision.deviation", &sentence, Provenance::Observed);
    Some(sentence)
}
