//! How the numbers of one run of the engine stand beside those of another.

use std::sync::Arc;

use engine::{
    Weights,
    numdiff::{Comparison, Side, Verdict, compare},
    run::RunOptions,
};
use model::manifest::{DIVERGES, PRECISE};

use super::{
    decode::{DecodeArgs, checked},
    exit::Usage,
};

/// Compares two runs; `told` of every step that has been, and of how many there are.
pub(super) fn compared(
    sides: &[DecodeArgs; 2],
    told: impl Fn(u32, usize),
) -> anyhow::Result<([RunOptions; 2], Comparison)> {
    let options = [checked(&sides[0])?, checked(&sides[1])?];
    let (config, mut source) = sides[0].source()?;
    let first = Arc::new(Weights::load(&config, options[0].dtype, &mut *source)?);
    let second = if options[0].dtype == options[1].dtype && sides[0].model == sides[1].model {
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
    let rest = format!(
        "relative L2 of logits {:.1e} against f32, {} of {} tokens the same, by strato numdiff over {} steps",
        c.logits.relative_l2(),
        c.tokens[1],
        c.tokens[0],
        c.steps + 1
    );
    let [equal, within] = PRECISE;
    let verdict = match (c.verdict(), c.first.and_then(|at| c.rows.get(at))) {
        (Verdict::Equal, _) => equal.to_owned(),
        (Verdict::WithinPrecision, _) => format!("{within} of {}", c.precision.name()),
        (Verdict::Grown, _) => {
            format!("{DIVERGES} beyond the precision of {} by no single operator", c.precision.name())
        }
        (Verdict::Faulty, Some(row)) => match row.layer {
            Some(layer) => format!("{DIVERGES} at layer {layer}, operator {}", row.name()),
            None => format!("{DIVERGES} at operator {}", row.name()),
        },
        (Verdict::Faulty, None) => format!("{DIVERGES} where a step is started as a whole"),
    };
    Ok(format!("{verdict}: {rest}"))
}
