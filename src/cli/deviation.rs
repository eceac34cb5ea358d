//! How the numbers of one run of the engine stand beside those of another.

use std::sync::Arc;

use engine::{
    Footprint, Weights,
    numdiff::{Comparison, Row, Side, Verdict, compare},
    run::RunOptions,
};
use model::manifest::{DIVERGES, NOT_FINITE, PRECISE};

use super::{
    backend::On,
    decode::{DecodeArgs, checked},
    exit::Usage,
    memory,
};

/// Compares two runs; `told` of every step that has been, and of how many there are.
pub(super) fn compared(
    sides: &[DecodeArgs; 2],
    told: impl Fn(u32, usize),
) -> anyhow::Result<([RunOptions; 2], Comparison)> {
    let options = [checked(&sides[0])?, checked(&sides[1])?];
    let (config, mut source) = sides[0].source()?;
    let [one, other] = [Footprint::of(&config, &options[0], 1)?, Footprint::of(&config, &options[1], 1)?];
    let shares = options[0].dtype == options[1].dtype && sides[0].model == sides[1].model;
    let own = |side: Footprint| side.cache.saturating_add(side.buffers);
    // Each side runs as it is, B once more on A's input, and A once more on B's weights where those are others.
    let (weights, again) = if shares { (0, 0) } else { (other.weights, own(one)) };
    let devices = [own(one), own(other), own(other), again].into_iter().fold(0, u64::saturating_add);
    memory::check_total(
        &format!("comparing two runs of '{}'", sides[0].model),
        one.weights.saturating_add(weights).saturating_add(devices),
        sides[0].max_memory,
        "choose a smaller --model, smaller types or a shorter --prompt-len",
    )?;
    let first = Arc::new(Weights::load(&config, options[0].dtype, &mut *source)?);
    let second = if shares {
        Arc::clone(&first)
    } else {
        let (other, mut source) = sides[1].source()?;
        if other.fingerprint() != config.fingerprint() {
            let (a, b) = (&sides[0].model, &sides[1].model);
            return Err(Usage(format!("'{a}' and '{b}' are models of two shapes; compare runs of one shape")).into());
        }
        Arc::new(Weights::load(&config, options[1].dtype, &mut *source)?)
    };
    let [a, b] = &options;
    let sides = [Side { options: a, weights: &first }, Side { options: b, weights: &second }];
    let comparison = compare(&config, sides, |step| told(step, a.steps))?;
    Ok((options, comparison))
}

/// Steps of a run that are held against single precision.
const HELD: usize = 9;

/// How the numbers of a run stand beside those of the same model in single precision, in a sentence: the first steps, by
/// separate operators and on one rank.
pub(super) fn from_single_precision(what: &DecodeArgs) -> anyhow::Result<String> {
    let mut own = what.clone();
    own.r#gen = own.r#gen.min(HELD);
    let mut reference = own.side("f32,composite,eager")?;
    reference.inject.clear();
    let (_, c) = compared(&[reference, own], |_, _| ())?;
    let steps = c.steps + 1;
    if let Some(place) = not_finite(&c) {
        return Ok(format!("{place}, by strato numdiff over {steps} steps"));
    }
    let rest = format!(
        "relative L2 of logits {:.1e} against f32, {} of {} tokens the same, by strato numdiff over {steps} steps",
        c.logits.relative_l2(),
        c.tokens[1],
        c.tokens[0],
    );
    let [equal, within] = PRECISE;
    let verdict = match (c.verdict(), c.first.and_then(|at| c.rows.get(at))) {
        (Verdict::Equal, _) => equal.to_owned(),
        (Verdict::WithinPrecision, _) => format!("{within} of {}", c.precision.name()),
        (Verdict::Grown, _) => {
            format!("{DIVERGES} beyond the precision of {} by no single operator", c.precision.name())
        }
        (Verdict::Faulty | Verdict::NotFinite, Some(row)) => format!("{DIVERGES} at {}", place(row)),
        (Verdict::Faulty | Verdict::NotFinite, None) => format!("{DIVERGES} where a step is started as a whole"),
    };
    Ok(format!("{verdict}: {rest}"))
}

fn place(row: &Row) -> String {
    match row.layer {
        Some(layer) => format!("layer {layer}, operator {}", row.name()),
        None => format!("operator {}", row.name()),
    }
}

/// Where a run and its reference first give NaN or infinity; `None` where both give numbers.
fn not_finite(c: &Comparison) -> Option<String> {
    let [reference, own] = c.not_finite.map(|at| at.and_then(|at| Some((at.step, c.rows.get(at.row)?))));
    let at = |(step, row): (u32, &Row)| format!("{NOT_FINITE} from step {step}, {} on", place(row));
    match (reference, own) {
        (None, None) => None,
        (Some(_), Some(own)) => Some(format!("{}, and so is f32", at(own))),
        (None, Some(own)) => Some(format!("{}; f32 is finite", at(own))),
        (Some(reference), None) => Some(format!("{NOT_FINITE} in f32 only: {}", at(reference))),
    }
}

/// Steps up to which a run is repeated to find the operator.
const REPEATED: usize = 256;

/// The first operator of a run that gives NaN or infinity, if it does so on this CPU: the run once more operator by operator,
/// up to the step in which its logits were such.
///
/// # Errors
/// When the run cannot be repeated.
pub(super) fn first_not_finite(what: &DecodeArgs, step: u32) -> anyhow::Result<Option<String>> {
    let mut again = what.side("eager")?;
    again.r#gen = usize::try_from(step).unwrap_or(usize::MAX).saturating_add(1);
    if again.r#gen > REPEATED + 1 {
        return Err(Usage(format!("it is too far to step {step} to repeat the run")).into());
    }
    again.on = On::default();
    again.logits = None;
    // The weights are loaded once, for both sides.
    let (_, c) = compared(&[again.clone(), again], |_, _| ())?;
    Ok(c.not_finite[1].and_then(|at| Some(place(c.rows.get(at.row)?))))
}
