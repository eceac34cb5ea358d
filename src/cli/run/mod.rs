//! `strato run`: the reference decode engine on a device of this machine, and a capture of what it did.

use std::{
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    sync::OnceLock,
    time::{Duration, Instant},
};

use engine::{Target, inject, run::StepDone};
use model::{ProbeRun, Provenance};
use rustix::process::Signal;

use super::{
    Global, bound,
    decode::{DecodeArgs, Done, capture_until, checked, milliseconds, obey, probed, restart_with_mspti},
    deviation,
    ended::Ended,
    exit::{Exit, Usage},
    interface::Interface,
    say, target, terminal_text,
};

mod live;
mod planned;
mod repeats;
mod summary;

use planned::Planned;

/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(2);

/// Run the reference decode engine and leave a capture of it.
///
/// The model is a named shape with weights made from the names of its tensors, or the directory of a Hugging Face
/// checkpoint of Llama, Qwen2 or Qwen3. The same command gives the same tokens. Ends with code 1 when logits are NaN or
/// infinite, and names the first operator that gives such a value. A signal (ctrl-c, TERM, HUP) ends the run after its step:
/// what was run is kept as the capture, then the program ends by the signal (130, 143, 129 in a shell); a second one ends it
/// at once.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    decode: DecodeArgs,
    /// Capture file to write; an earlier capture file of that name is replaced.
    #[arg(short, long, value_name = "FILE", overrides_with = "output")]
    output: Option<PathBuf>,
    /// Run this machine's side of a plan, as 'strato plan --format toml' wrote it: with its controls, its probes and as often
    /// as it asks; 'strato plan check' then holds the captures against it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "dtype", "batch", "prompt_len", "prompt_ids", "gen",
        "seed", "tp", "logits", "json", "tokens"])]
    plan: Option<PathBuf>,
    /// Launch the run so often, each time as a process of its own; of -o NAME.strato that leaves NAME.1.strato and so on,
    /// which 'strato diff' takes with commas between them [default: 1].
    #[arg(long, value_name = "N", overrides_with = "repeats", conflicts_with = "logits",
        value_parser = clap::value_parser!(u16).range(1..))]
    repeats: Option<u16>,
    /// Be one of so many launches.
    #[arg(long, hide = true, value_name = "N")]
    of_launches: Option<u16>,
    /// The process that launched this one.
    #[arg(long, hide = true, value_name = "PROCESS", requires = "of_launches")]
    launched_by: Option<u32>,
    /// Measure what this machine can do at best before the run, and keep it in the capture: every probe that a diagnosis
    /// reads, under the run's own threads and shapes.
    #[arg(long)]
    probe: bool,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
    /// Print the ids of the tokens too, one line per sequence.
    #[arg(long, conflicts_with_all = ["json", "quiet"])]
    tokens: bool,
    /// Hold the numbers of the run against those of the same model in single precision, for a few steps beside the run, and
    /// write into the capture what came of it.
    #[arg(long)]
    numerics: bool,
    /// Print lines, also where a dashboard could be shown.
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    interface: Interface,
    /// Print nothing but errors.
    #[arg(short, long)]
    quiet: bool,
    /// Be one rank of a run that another process has started.
    #[arg(long, hide = true, value_name = "ORDER")]
    as_rank: Option<String>,
}

/// What becomes of a run when it is over.
struct Finish {
    probes: ProbeRun,
    deviation: Option<String>,
    output: Option<PathBuf>,
    /// Launches of which this is one.
    launches: Option<u16>,
}

impl Finish {
    /// Completes the capture and writes it.
    fn write(self, mut done: Done) -> anyhow::Result<Done> {
        done.trace.probes = self.probes;
        // That of the whole run stands already where it is not finite.
        if let Some(deviation) = self.deviation.as_ref().filter(|_| done.not_finite.is_none()) {
            done.trace.manifest.set("precision.deviation", deviation, Provenance::Observed);
        }
        let launches = self.launches.unwrap_or(1);
        done.trace.manifest.set("measurement.repeats", launches.to_string(), Provenance::Observed);
        if let Some(output) = &self.output {
            store::save(output, std::slice::from_ref(&done.trace))?;
        }
        Ok(done)
    }
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    let Arguments {
        decode: mut what,
        mut output,
        plan,
        repeats,
        of_launches,
        launched_by,
        mut probe,
        json,
        tokens,
        mut numerics,
        plain,
        interface,
        quiet,
        as_rank,
    } = arguments;
    if let Some(order) = &as_rank {
        obey(order)?;
        return Ok(Exit::Done);
    }
    if what.inject.iter().any(|name| name == "help") {
        let mut out = io::stdout().lock();
        for injection in inject::REGISTRY {
            writeln!(out, "{:<18} {:<24} {}", injection.name, injection.arguments, injection.what)?;
        }
        return Ok(Exit::Done);
    }
    if let Some(parent) = launched_by {
        // A launch keeps its capture, as for any signal.
        bound::to(parent, Signal::TERM);
    }
    let mut repeats = repeats.unwrap_or(1);
    let mut further = Vec::new();
    if let Some(file) = &plan {
        let planned = Planned::read(file, what)?;
        if of_launches.is_none() {
            if repeats > 1 {
                return Err(Usage("--plan says how often to launch; leave --repeats out".to_owned()).into());
            }
            repeats = planned.launches;
        }
        probe |= !planned.asked.probes.is_empty();
        numerics |= planned.asks_numerics();
        output = output.or_else(|| Some(planned.output(file)));
        further = planned.asked.probes;
        what = planned.what;
    }
    for file in output.iter().chain(&what.logits) {
        target::check(file, &[])?;
    }
    // Before anything is measured or made ready.
    let asked = checked(&what)?;
    if repeats > 1 {
        let output =
            output.ok_or_else(|| Usage("--repeats needs -o FILE, for the capture of each launch".to_owned()))?;
        let (captures, exit) = repeats::launch(&output, repeats.into())?;
        let noise = repeats::keep_noise(&captures)?;
        if !quiet && !json {
            if let Some(noise) = noise {
                writeln!(io::stdout(), "noise    {} (standard deviation of the median steps)", noise.text())?;
            }
            let files: Vec<String> = captures.iter().map(|file| file.display().to_string()).collect();
            writeln!(io::stdout(), "launches {}", terminal_text::plain(&files.join(",")))?;
            if let Some(plan) = &plan {
                writeln!(io::stdout(), "{}", planned::next_step(plan, &captures))?;
            }
        }
        return Ok(exit);
    }
    if numerics && asked.target != Target::Cpu {
        return Err(Usage("--numerics is for --backend cpu; leave it out, or choose that one".to_owned()).into());
    }
    let loud = !quiet && !json;
    // Ranks that are processes tell their steps through pipes, and not what is in them.
    let is_seen = loud
        && !plain
        && of_launches.is_none()
        && what.is_watched()
        && io::stdout().is_terminal()
        && io::stdin().is_terminal();
    if !is_seen {
        restart_with_mspti(&asked, what.tp == 1);
    }
    let deviation = if numerics { Some(deviation::from_single_precision(&what)?) } else { None };
    let found = probe.then(|| {
        probed(&what, &further, probes::BUDGET, |probe, _| {
            if loud {
                say(&format!("strato: probed {}", probe.name));
            }
        })
    });
    let found = found.transpose()?;
    if loud {
        say(&format!("strato: making the weights of {} ready", what.model));
    }
    let finish = Finish {
        probes: found.unwrap_or_default(),
        deviation: deviation.clone(),
        output: output.clone(),
        launches: of_launches,
    };
    let held = OnceLock::new();
    let done = if is_seen {
        live::run(global, interface.settings(global)?, &what, finish)?
    } else {
        let mut told = Instant::now();
        let tell = |step: &StepDone| {
            if loud && told.elapsed() > PROGRESS {
                told = Instant::now();
                say(&format!("step {}: {}", step.number, milliseconds(step.span.end - step.span.start)));
            }
        };
        let mut done = capture_until(&what, tell, &held)?;
        let steps = done.steps.len().saturating_sub(1);
        if let Some(signal) = held.get().and_then(Ended::name).filter(|_| steps < done.options.steps) {
            let said = format!("{signal} after {steps} of {} decode steps", done.options.steps);
            say(&format!("strato: {said}; the capture holds what was run until then"));
            done.trace.manifest.set("run.ended", &said, Provenance::Observed);
        }
        finish.write(done)?
    };
    if let Some(output) = &output {
        tracing::info!(target: "strato", "wrote {}", output.display());
    }
    let exit = if done.not_finite.is_some() { Exit::Findings } else { Exit::Done };
    let told = if quiet {
        done.not_finite.iter().for_each(|said| say(&format!("strato: the numbers are {said}")));
        Ok(())
    } else {
        tell(&what, &done, output.as_deref(), deviation.as_deref(), (json, tokens))
    };
    // The capture is kept; whoever hung up reads no more of it.
    if let Some(ended) = held.get() {
        ended.follow();
    }
    told.map(|()| exit)
}

/// What the run was, on stdout.
fn tell(
    what: &DecodeArgs,
    done: &Done,
    output: Option<&Path>,
    deviation: Option<&str>,
    (json, tokens): (bool, bool),
) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{}", summary::summary(what, done))?;
    } else {
        summary::lines(&mut out, what, done, output)?;
        // What the whole run came to outweighs what its first steps did.
        if let Some(said) = done.not_finite.as_deref().or(deviation) {
            writeln!(out, "numbers  {}", terminal_text::plain(said))?;
        }
    }
    if tokens {
        for ids in summary::tokens(what, done) {
            let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
            writeln!(out, "tokens   {}", ids.join(","))?;
        }
    }
    Ok(())
}
