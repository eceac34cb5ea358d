//! Runs of the reference engine that subcommands ask for: options, ranks, collectors beside them, and the capture that they leave.

mod args;
mod cupti;
mod finite;
mod logits;
mod lost;
mod mspti;
mod prompt_ids;
mod rank_processes;
mod ranks;

use std::{sync::OnceLock, time::Duration};

use collectors::host::Host;
use diagnosis::diagnose::rules;
use engine::{
    Shard, Target,
    cpu::Isa,
    run::{RunOptions, StepDone},
};
use model::{ProbeRow, ProbeRun, Trace};
use probes::{Probe, Product, Setup};

use super::{
    ceilings,
    ended::Ended,
    exit::{Missing, Usage},
    memory,
};

use args::RanksAre;
pub(super) use args::{DecodeArgs, Weights};
pub(super) use mspti::restart as restart_with_mspti;
pub(super) use rank_processes::obey;
pub(super) use ranks::Live;
use ranks::Watched;

/// What a run gave.
pub(super) struct Done {
    /// The capture.
    pub trace: Trace,
    /// Every step; the prompt is the first.
    pub steps: Vec<StepDone>,
    /// What was run.
    pub options: RunOptions,
    /// Bytes of weights that a decode step reads, where that is known.
    pub bytes: Option<usize>,
    /// Where its numbers are NaN or infinite from, in a sentence; `None` where they are finite, or nobody looked.
    pub not_finite: Option<String>,
}

/// What the machine can do at best under the conditions of a run: its threads, instruction set and matrix products. Only the
/// probes that a diagnosis reads and `further` ones, with so much time each; `told` gets each with its rows as it ends.
///
/// # Errors
/// When the run is none that the engine could do.
pub(super) fn probed(
    what: &DecodeArgs,
    further: &[String],
    budget: Duration,
    told: impl FnMut(&Probe, &[ProbeRow]),
) -> anyhow::Result<ProbeRun> {
    let options = what.options()?;
    let programs = options.programs(&what.source()?.0, Shard { rank: 0, of: what.tp.max(1) })?;
    let products = Product::of_run(&programs, &options);
    let target = options.target.clone();
    let setup = Setup { target, threads: options.threads, isa: options.isa, budget, products };
    let is_read =
        |probe: &Probe| rules::ceilings::PROBES.contains(&probe.name) || further.iter().any(|name| name == probe.name);
    Ok(ceilings::measured(&setup, &Host::read(), is_read, told))
}

/// Runs the engine and records it; `tell` is told of every step. Signals do what they always do.
pub(super) fn capture(what: &DecodeArgs, mut tell: impl FnMut(&StepDone) + Send) -> anyhow::Result<Done> {
    captured(what, &mut tell, Watched::No)
}

/// Runs the engine and records it until its end or a signal that is to end the program, which `held` then has: whoever keeps
/// the capture follows it afterwards.
///
/// # Errors
/// Those of [`checked`], and of the run.
pub(super) fn capture_until(
    what: &DecodeArgs,
    mut tell: impl FnMut(&StepDone) + Send,
    held: &OnceLock<Ended>,
) -> anyhow::Result<Done> {
    captured(what, &mut tell, Watched::Signals(held))
}

/// Runs the engine and records it, watched by `live` from close by.
///
/// # Errors
/// Those of [`checked`], and of the run.
pub(super) fn capture_watched(
    what: &DecodeArgs,
    tell: &mut (dyn FnMut(&StepDone) + Send),
    live: &dyn ranks::Live,
) -> anyhow::Result<Done> {
    captured(what, tell, Watched::Live(live))
}

fn captured(what: &DecodeArgs, tell: &mut (dyn FnMut(&StepDone) + Send), watched: Watched<'_>) -> anyhow::Result<Done> {
    let options = checked(what)?;
    let (config, _) = what.source()?;
    // Which experts several tokens go to, only the run knows.
    let is_known = config.experts.is_none() || options.batch == 1;
    let bytes = is_known.then(|| options.dtype.row_bytes(config.hidden) * (config.step_parameters() / config.hidden));
    let (mut trace, steps) = ranks::run(what, tell, watched)?;
    let not_finite = finite::keep(what, &steps, &mut trace);
    Ok(Done { trace, steps, options, bytes, not_finite })
}

/// What the engine is asked for, if this machine can do it.
pub(super) fn checked(what: &DecodeArgs) -> anyhow::Result<RunOptions> {
    let options = what.options()?;
    if options.threads == 0 || what.r#gen == 0 || what.tp == 0 {
        return Err(Usage("a run needs at least one rank, one thread and one token to generate".to_owned()).into());
    }
    options.observer.check(&options.target)?;
    options.target.check()?;
    let (config, _) = what.source()?;
    options.check_injections(&config, what.tp)?;
    if options.target == Target::Cpu {
        memory::check(&what.model, &config, &options, what.tp, what.max_memory)?;
    }
    if !Isa::available().contains(&options.isa) {
        let isa = options.isa.name();
        return Err(Missing(format!("this processor has no {isa}; leave it out to use what it has")).into());
    }
    Ok(options)
}

/// A time for people.
pub(super) fn milliseconds(ns: i64) -> String {
    format!("{:.2} ms", ns as f64 / 1e6)
}
