//! Pauses of the host: stretches in which it calls nothing and the device waits, far beyond what every step has.

use model::{Ns, Span};

use super::{demand, reading};
use crate::{
    analysis::{Bucket, Rank, Scheduler, Workload, idle::Gap, median},
    diagnose::rule::Context,
};

/// Shortest pause, ns: the advisor of msprof reports collections of garbage from 1 ms on.
const SHORTEST: Ns = 1_000_000;
/// And as one part in so many of the median step; own value.
const PART: Ns = 10;
/// A pause of so many median steps is one whether or not there was a request.
const LONG_STEPS: Ns = 5;
/// What comes in more than one step of so many is what steps are like and no pause; own value.
const RARE: usize = 3;

/// A gap in which the host paused.
pub struct Pause<'a> {
    /// The gap.
    pub gap: &'a Gap,
    /// Time in it in which the host called nothing, ns.
    pub silent: Ns,
    /// Whether it is longer than [`LONG_STEPS`] median steps.
    pub is_long: bool,
    /// Whether the engine may have lacked a request meanwhile.
    pub in_doubt: bool,
}

/// Whether a bucket is time in which the host calls nothing. Interpreter frames and annotated ranges enclose a pause; they
/// are no sign of work.
pub fn is_silent(cx: &Context<'_>, bucket: Bucket) -> bool {
    ["unknown", "python", "range"].iter().any(|label| reading::is_host(cx.analysis, bucket, label))
}

/// Stretches of a gap in which the host calls nothing and then, without anything between, loads a module or compiles: it made then
/// what it loads.
pub fn before_load(cx: &Context<'_>, gap: &Gap) -> Vec<Span> {
    let (mut out, mut run): (Vec<Span>, Option<Span>) = (Vec::new(), None);
    for (bucket, span) in &gap.parts {
        run = match (is_silent(cx, *bucket), run) {
            (true, Some(run)) if run.end == span.start => Some(Span::new(run.start, span.end)),
            (true, _) => Some(*span),
            (false, before) => {
                let loads = *bucket == Bucket::Compile;
                out.extend(before.filter(|run| loads && run.end == span.start && run.len() >= SHORTEST));
                None
            }
        };
    }
    out
}

/// The pauses of a workload, in order of time; none if they are what its steps are like.
pub fn of<'a>(cx: &Context<'_>, workload: &Workload<'a>) -> Vec<Pause<'a>> {
    let (rank, median_step): (&'a Rank, Ns) = (workload.rank, workload.median());
    let scheduler = Scheduler::of_rank(cx.trace, rank.process);
    let silent = |gap: &Gap| {
        let all: Ns = gap.parts.iter().filter(|(b, _)| is_silent(cx, *b)).map(|(_, s)| s.len()).sum();
        all - before_load(cx, gap).iter().map(|span| span.len()).sum::<Ns>()
    };
    let each: Vec<Ns> = workload.steps().map(|s| reading::gaps(rank, s).iter().map(silent).sum()).collect();
    let usual = median(each).unwrap_or(0);
    let least = usual + SHORTEST.max(median_step / PART);
    let long = median_step.saturating_mul(LONG_STEPS);
    let pauses: Vec<Pause<'a>> = workload
        .steps()
        .flat_map(|step| reading::gaps(rank, step))
        .map(|gap| {
            let silent = silent(gap);
            Pause { gap, silent, is_long: silent >= long, in_doubt: demand::in_doubt(rank, gap, &scheduler) }
        })
        .filter(|pause| pause.silent >= least && !scheduler.was_empty(pause.gap.span))
        .filter(|pause| !pause.in_doubt || pause.is_long)
        .collect();
    if median_step <= 0 || RARE * pauses.len() > workload.steady() { Vec::new() } else { pauses }
}
