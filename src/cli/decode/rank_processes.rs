//! Ranks of a run that are processes: each is told what to run, writes a capture of its own, and the first tells its steps.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::fd::RawFd,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context;
use collectors::record;
use engine::{
    cpu::{Communicator, PATIENCE, Region, World},
    record::Span,
    run::StepDone,
};
use serde::{Deserialize, Serialize};

use super::{
    DecodeArgs,
    lost::{self, GRACE},
    ranks::{Ran, Watched, rank},
};
use crate::cli::{
    bound,
    ended::Ended,
    exit::{Missing, Usage},
    scratch::Scratch,
};

/// What a process is told that runs a rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Order {
    what: DecodeArgs,
    rank: usize,
    /// Of the shared memory.
    slot: usize,
    fd: RawFd,
    /// Capture file to write.
    output: PathBuf,
    /// The process that waits for the ranks.
    parent: u32,
}

/// A step as the first rank tells it.
#[derive(Serialize, Deserialize)]
struct Told {
    number: u32,
    start: i64,
    end: i64,
    tokens: Vec<u32>,
    not_finite: Option<u64>,
}

#[cfg(not(target_os = "linux"))]
pub(super) fn run(
    _: &DecodeArgs,
    _: World,
    _: &mut (dyn FnMut(&StepDone) + Send),
    _: Watched<'_>,
) -> anyhow::Result<Ran> {
    Err(Missing("ranks as processes need Linux; use --ranks threads".to_owned()).into())
}

#[cfg(target_os = "linux")]
pub(super) fn run(
    what: &DecodeArgs,
    world: World,
    tell: &mut (dyn FnMut(&StepDone) + Send),
    watched: Watched<'_>,
) -> anyhow::Result<Ran> {
    use std::os::fd::AsRawFd;
    let signals = watched.signals();
    let (region, fd) = Region::of_processes(world)?;
    let directory = Scratch::make()
        .context("cannot make a temporary directory for the ranks' captures; set TMPDIR to a writable one")?;
    let program =
        std::env::current_exe().map_err(|e| Missing(format!("cannot find this program to start ranks: {e}")))?;
    let mut ranks = Vec::new();
    let output = |rank: usize| directory.path().join(format!("{rank}.strato"));
    for rank in 0..world.ranks {
        let order = Order {
            what: what.clone(),
            rank,
            slot: world.slot,
            fd: fd.as_raw_fd(),
            output: output(rank),
            parent: std::process::id(),
        };
        let child = Command::new(&program)
            .args(["run", "--as-rank", &serde_json::to_string(&order)?])
            .stdin(Stdio::null())
            .stdout(if rank == 0 { Stdio::piped() } else { Stdio::null() })
            .spawn();
        match child {
            Ok(child) => ranks.push(child),
            Err(error) => {
                // Those that run already wait for this one.
                region.lose(rank);
                let _ = lost::wait(&mut ranks, &region, GRACE, &mut |_| Ok(()));
                return Err(Missing(format!("cannot start rank {rank}: {error}")).into());
            }
        }
    }
    let told = ranks.first_mut().and_then(|first| first.stdout.take());
    let has_begun = AtomicBool::new(false);
    let mut passed_on = false;
    // The first rank decides when all end; ranks that have run nothing have nothing to keep.
    let mut pass_on = |ranks: &mut [Child]| -> io::Result<()> {
        if !passed_on && signals.is_some_and(Ended::is) {
            passed_on = true;
            if !has_begun.load(Ordering::Acquire) {
                return ranks.iter_mut().try_for_each(Child::kill);
            }
            if let Some(first) = ranks.first().and_then(|first| i32::try_from(first.id()).ok()) {
                record::signals::send(first, signal_hook::consts::SIGTERM);
            }
        }
        Ok(())
    };
    let (steps, ended) = std::thread::scope(|scope| {
        let has_begun = &has_begun;
        let reader = scope.spawn(move || {
            let mut steps = Vec::new();
            for line in told.into_iter().flat_map(|told| BufReader::new(told).lines()).map_while(Result::ok) {
                let Ok(Told { number, start, end, tokens, not_finite }) = serde_json::from_str(&line) else { continue };
                has_begun.store(true, Ordering::Release);
                let step = StepDone { number, span: Span { start, end }, tokens, not_finite };
                tell(&step);
                steps.push(step);
            }
            steps
        });
        let ended = lost::wait(&mut ranks, &region, GRACE, &mut pass_on);
        (reader.join().unwrap_or_default(), ended)
    });
    if let Some((rank, status)) = ended? {
        if let Some(ended) = signals.filter(|ended| ended.is()) {
            drop(directory);
            ended.follow();
        }
        return Err(Usage(format!("rank {rank} ended with {status}; its own message is above")).into());
    }
    let mut traces = Vec::new();
    for rank in 0..world.ranks {
        traces.extend(store::load(&output(rank))?);
    }
    Ok((traces, steps))
}

/// Runs one rank of a run whose other ranks are processes, too.
#[cfg(target_os = "linux")]
pub(in crate::cli) fn obey(order: &str) -> anyhow::Result<()> {
    let order: Order =
        serde_json::from_str(order).map_err(|e| Usage(format!("--as-rank is for strato itself: {e}")))?;
    bound::to(order.parent, rustix::process::Signal::KILL);
    // A terminal sends ctrl-c to every process of the run; when it ends is the first one's to say, and the parent's.
    let ended = OnceLock::from(Ended::patient().unwrap_or_else(|_| Ended::never()));
    let world = World { ranks: order.what.tp, workers: order.what.options()?.workers().max(1), slot: order.slot };
    let region = Arc::new(Region::inherited(world, order.fd)?);
    let ranks = Communicator::new(region, order.rank, PATIENCE)?;
    let mut out = io::stdout();
    let (trace, _) = rank(
        &order.what,
        Some(ranks),
        &mut |step| {
            let told = Told {
                number: step.number,
                start: step.span.start,
                end: step.span.end,
                tokens: step.tokens.clone(),
                not_finite: step.not_finite,
            };
            if order.rank == 0
                && let Ok(line) = serde_json::to_string(&told)
            {
                // Whoever started this rank sees its end, whether it reads the steps or not.
                let _ = writeln!(out, "{line}");
            }
        },
        Watched::Signals(&ended),
    )?;
    store::save(Path::new(&order.output), std::slice::from_ref(&trace))?;
    Ok(())
}

/// Ranks are processes on Linux only.
#[cfg(not(target_os = "linux"))]
pub(in crate::cli) fn obey(_: &str) -> anyhow::Result<()> {
    Err(Missing("ranks as processes need Linux; use --ranks threads".to_owned()).into())
}
