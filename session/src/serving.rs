//! Results of serving benchmarks among the captures of a session.

use diagnosis::serving::{self, beside::Beside};
use model::Trace;
use report::{diff::Head, serving::ServingReport};

use crate::{Error, Terms, pair};

/// Whether a capture is a result of a serving benchmark: it says what a client saw under a load.
pub(crate) fn is_result(trace: &Trace) -> bool {
    trace.format == "serving" && !serving::of(trace).is_empty()
}

/// Adds what is declared of a side, 0 or 1, to its results.
pub(crate) fn declare(results: &mut [Trace], side: usize, terms: &Terms) -> Result<(), Error> {
    results.iter_mut().try_for_each(|trace| terms.declared.apply(side, trace))
}

/// Two sides of serving results, load by load.
///
/// # Errors
/// A declaration that a result contradicts.
pub fn compare(sides: [&mut Vec<Trace>; 2], terms: &Terms) -> Result<ServingReport, Error> {
    let [a, b] = sides;
    declare(a, 0, terms)?;
    declare(b, 1, terms)?;
    terms.declared.agree(a.iter_mut().chain(b.iter_mut()))?;
    let (a, b): (Vec<&Trace>, Vec<&Trace>) = (a.iter().collect(), b.iter().collect());
    let heads = [heads(&a), heads(&b)];
    let engines = [engine(&a), engine(&b)];
    Ok(ServingReport { heads, engines, beside: Beside::of([&a, &b], terms.slo.clone()) })
}

/// What served the results of a side: its engine, else what the benchmark was told to speak with.
fn engine(results: &[&Trace]) -> Option<String> {
    let said = |key: &str| results.iter().find_map(|trace| trace.manifest.value(key)).map(str::to_owned);
    said("software.engine").or_else(|| said("serving.backend"))
}

/// The results of a side in a line.
pub(crate) fn heads(results: &[&Trace]) -> Head {
    let first = results.first().map(|trace| pair::head(trace)).unwrap_or_default();
    let more = results.len().saturating_sub(1);
    let name = if more > 0 { format!("{} + {more}", first.name) } else { first.name };
    let simulated = results.iter().any(|trace| trace.simulated);
    Head { name, simulated, ..first }
}
