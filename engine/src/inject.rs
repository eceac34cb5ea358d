//! Bottlenecks and faults put into a run on purpose, to see whether a diagnosis finds them. Each is real: the run does the
//! extra work, waits the extra time or computes the wrong number. What was put in is written beside the run as ground truth.

use crate::{Error, program::OpName, run::RunOptions};

mod host;
mod machine;
mod numeric;
mod rank;
mod reach;
mod shape;

pub use crate::faults::{Faults, HostFaults, MachineFaults, NumericFaults, RankFaults};

/// One kind of injection.
#[derive(Clone, Copy, Debug)]
pub struct Injection {
    /// Its name.
    pub name: &'static str,
    /// Its arguments, as `key=value,…`, each with its default.
    pub arguments: &'static str,
    /// What it does.
    pub what: &'static str,
    /// Whether it changes times alone: numbers and operators stay what they are.
    pub is_timing: bool,
    apply: fn(&mut RunOptions, &mut Arguments) -> Result<(), Error>,
}

/// All kinds, family by family.
pub const REGISTRY: &[Injection] = &[
    host::HOST_DELAY,
    host::EXTRA_SYNC,
    host::ALLOC_PER_OP,
    host::BLOCKING_COPY,
    host::CPU_FALLBACK,
    host::GIL_LIKE_STALL,
    shape::NO_GRAPH,
    shape::UNFUSE,
    shape::LAYOUT_CAST,
    shape::LOW_PRECISION_OFF,
    shape::PADDING,
    rank::SLOW_RANK,
    machine::BANDWIDTH_THIEF,
    numeric::ROPE_BASE_WRONG,
    numeric::BF16_ACCUM,
    numeric::STALE_KV,
    numeric::NAN_AT,
];

/// Puts an injection, `NAME` or `NAME:key=value,…`, into what is run.
///
/// # Errors
/// [`Error::Request`] when there is none of that name, or it does not understand its arguments.
pub fn inject(text: &str, options: &mut RunOptions) -> Result<(), Error> {
    let (name, arguments) = text.split_once(':').unwrap_or((text, ""));
    let Some(injection) = REGISTRY.iter().find(|injection| injection.name == name) else {
        let names: Vec<&str> = REGISTRY.iter().map(|injection| injection.name).collect();
        return Err(Error::Request(format!("there is no injection '{name}'; there are {}", names.join(", "))));
    };
    let mut arguments = Arguments::of(injection, arguments)?;
    (injection.apply)(options, &mut arguments)?;
    arguments.finish()?;
    options.faults.asked.push(text.to_owned());
    Ok(())
}

/// Arguments of an injection that nobody has asked for yet.
struct Arguments<'t> {
    of: &'t Injection,
    rest: Vec<(&'t str, &'t str)>,
}

impl<'t> Arguments<'t> {
    fn of(of: &'t Injection, text: &'t str) -> Result<Self, Error> {
        let mut rest = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            rest.push(part.split_once('=').ok_or_else(|| Self { of, rest: Vec::new() }.refuse(part))?);
        }
        Ok(Self { of, rest })
    }

    fn refuse(&self, part: &str) -> Error {
        let Injection { name, arguments, .. } = self.of;
        let takes = if arguments.is_empty() { "none".to_owned() } else { format!("'{arguments}'") };
        Error::Request(format!("injection '{name}' does not understand '{part}'; its arguments are {takes}"))
    }

    fn take<T: std::str::FromStr>(&mut self, key: &str) -> Result<Option<T>, Error> {
        let Some(at) = self.rest.iter().position(|(name, _)| *name == key) else { return Ok(None) };
        let (name, value) = self.rest.swap_remove(at);
        value.parse().map(Some).map_err(|_| self.refuse(&format!("{name}={value}")))
    }

    /// An operator by its name; `None` where all are meant.
    fn op(&mut self) -> Result<Option<OpName>, Error> {
        let Some(text) = self.take::<String>("op")? else { return Ok(None) };
        let op = OpName::ALL.iter().copied().find(|op| op.text() == text);
        op.map(Some).ok_or_else(|| self.refuse(&format!("op={text}")))
    }

    fn finish(&self) -> Result<(), Error> {
        self.rest.first().map_or(Ok(()), |(name, value)| Err(self.refuse(&format!("{name}={value}"))))
    }
}

#[cfg(test)]
mod tests;
