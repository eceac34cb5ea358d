//! Threads that launch and go on when another one has seen the device finish. Engines that schedule ahead wait for the token on
//! a thread of its own, often in one rank only, and send the next step to all: no record of the launching thread says that it
//! waits, and its pause would pass for work of the host that takes as long whatever the device does.

use model::Ns;

use super::model::{Model, NONE, Node};
use crate::{
    analysis::{Rank, job::Job, median},
    platform::HostCall,
};

/// Pause of the thread that launches most from which it may have waited for somebody, ns; own value, far more than the way from one
/// launch to the next.
const PAUSE: Ns = 200_000;
/// Times from the device's end to the next launch lie within so many ns, or half of their median, of each other (from the first
/// quartile to the third): who goes on by chance does not keep the distance; own values.
const SPREAD: Ns = 50_000;
/// Farthest that ranks which go on together are apart, ns; own value, some times a message between processes.
const TOGETHER: Ns = 500_000;
/// Part of the steps before which such a pause must lie, in quarters; own value.
const MOST: (usize, usize) = (3, 4);
/// Fewest pauses that show a habit; own value.
const FEWEST: usize = 4;

/// A call that begins so long after an operation ended, maybe one of another rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resumption {
    /// The call's rank, and its index.
    pub call: (usize, u32),
    /// The operation's rank, and its index.
    pub after: (usize, u32),
    /// From the end of the operation to the call, ns.
    pub lag: Ns,
}

/// A time in which the thread that launches most called nothing, and the call that ends it.
#[derive(Clone, Copy)]
struct Pause {
    from: Ns,
    to: Ns,
    call: u32,
}

impl Pause {
    /// Whether what is left after the wait is the smaller part: a thread that works for most of the pause does not wait.
    fn holds(&self, lag: Ns) -> bool {
        lag >= 0 && lag < (self.to - self.from) / 2
    }
}

/// All calls of a job that begin because the device finished.
pub(super) fn find(ranks: &[Rank], job: &Job, models: &[Model]) -> Vec<Resumption> {
    let mut found: Vec<Resumption> = Vec::new();
    let all: Vec<Vec<Pause>> = ranks.iter().zip(models).map(|(rank, model)| pauses(rank, model, model.main)).collect();
    let own: Vec<Vec<Resumption>> =
        (0..ranks.len()).map(|at| by_another_thread(ranks, models, &all, at).unwrap_or_default()).collect();
    let Some(source) = own.iter().max_by_key(|own| own.len()).filter(|own| !own.is_empty()) else { return found };
    let met = meetings(ranks, job, source.first().map_or(0, |resumed| resumed.call.0));
    for (at, own) in own.iter().enumerate() {
        match own.is_empty() {
            true => found.extend(with_another_rank(ranks, &met, &all, source, at).unwrap_or_default()),
            false => found.extend(own),
        }
    }
    for (at, (rank, model)) in ranks.iter().zip(models).enumerate() {
        let of_rank: Vec<Resumption> = found.iter().copied().filter(|found| found.call.0 == at).collect();
        for thread in feeders(rank, model) {
            found.extend(ahead_of_it(rank, &pauses(rank, model, thread), &of_rank));
        }
    }
    found
}

/// The threads that hand work to the one that launches, as indices.
fn feeders(rank: &Rank, model: &Model) -> Vec<usize> {
    let tracks = rank.timeline.tasks.feeders();
    let all = model.threads.iter().enumerate();
    all.filter(|(i, thread)| *i != model.main && tracks.contains(&thread.track)).map(|(i, _)| i).collect()
}

/// Pauses of a thread that hands over work which end while the one that launches still waits for it: both wait for the same.
fn ahead_of_it(rank: &Rank, pauses: &[Pause], found: &[Resumption]) -> Vec<Resumption> {
    let of = |resumed: &Resumption| {
        let began = rank.timeline.calls.get(resumed.call.1 as usize)?.start;
        let pause = pauses.get(pauses.partition_point(|pause| pause.to <= began).checked_sub(1)?)?;
        let lag = resumed.lag - (began - pause.to);
        (pause.to >= began - resumed.lag && pause.holds(lag)).then_some(Resumption {
            call: (resumed.call.0, pause.call),
            lag,
            ..*resumed
        })
    };
    let mut ahead: Vec<Resumption> = found.iter().filter_map(of).collect();
    ahead.dedup_by_key(|ahead| ahead.call);
    ahead
}

/// The pauses of a thread.
fn pauses(rank: &Rank, model: &Model, thread: usize) -> Vec<Pause> {
    let points = model.threads.get(thread).map_or(&[][..], |thread| &thread.points);
    let (mut depth, mut out) = (0usize, Vec::new());
    for pair in points.windows(2) {
        let [(from, before), (to, node)] = pair else { continue };
        match before {
            Node::Begin(_) => depth += 1,
            _ => depth = depth.saturating_sub(1),
        }
        if let Node::Begin(call) = node
            && depth == 0
            && to - from >= PAUSE
            && rank.timeline.calls.get(*call as usize).is_some_and(|call| call.kind != HostCall::Query)
        {
            out.push(Pause { from: *from, to: *to, call: *call });
        }
    }
    out
}

/// Pauses that end soon after another thread of the process has seen the device finish.
fn by_another_thread(ranks: &[Rank], models: &[Model], pauses: &[Vec<Pause>], at: usize) -> Option<Vec<Resumption>> {
    let (rank, model) = (ranks.get(at)?, models.get(at)?);
    let main = model.threads.get(model.main)?.track;
    let end = |op: u32| rank.timeline.ops.get(op as usize).map(|op| op.end);
    // Waits of other threads that had to wait, by their end.
    let calls = rank.timeline.calls.iter().zip(&model.calls);
    let waits = calls.filter(|(call, row)| {
        let waited = end(row.awaits).is_some_and(|end| end > call.start);
        call.track != main && call.blocking && call.ops == 0 && waited
    });
    let mut waits: Vec<(Ns, u32)> = waits.map(|(call, row)| (call.end, row.awaits)).collect();
    waits.sort_unstable();
    let seen = |pause: &Pause| {
        let last = waits.partition_point(|(end, _)| *end <= pause.to).checked_sub(1)?;
        let (returned, op) = waits.get(last).copied().filter(|(end, _)| *end > pause.from)?;
        let lag = pause.to - end(op)?;
        (returned <= pause.to && pause.holds(lag)).then_some(Resumption {
            call: (at, pause.call),
            after: (at, op),
            lag,
        })
    };
    let found: Vec<Resumption> = pauses.get(at)?.iter().filter_map(seen).collect();
    let keeps_distance = is_steady(found.iter().map(|found| found.lag).collect());
    (is_habit(found.len(), rank) && keeps_distance).then_some(found)
}

/// For each rank when one of them and it left each collective that both were in, each on its own clock, in order: ranks leave a
/// collective together, so far apart are their clocks there.
fn meetings(ranks: &[Rank], job: &Job, of: usize) -> Vec<Vec<(Ns, Ns)>> {
    let mut met: Vec<Vec<(Ns, Ns)>> = vec![Vec::new(); ranks.len()];
    let end = |rank: usize, op: u32| ranks.get(rank)?.timeline.ops.get(op as usize).map(|op| op.end);
    for instance in &job.instances {
        let source = instance.members.iter().find(|member| member.rank == of);
        let Some(theirs) = source.and_then(|member| end(of, member.op)) else { continue };
        for member in &instance.members {
            if let (Some(met), Some(ours)) = (met.get_mut(member.rank), end(member.rank, member.op)) {
                met.push((theirs, ours));
            }
        }
    }
    met.iter_mut().for_each(|met| met.sort_unstable());
    met
}

/// Pauses of a rank that end together with those of another one that waits for the device.
fn with_another_rank(
    ranks: &[Rank],
    met: &[Vec<(Ns, Ns)>],
    pauses: &[Vec<Pause>],
    source: &[Resumption],
    at: usize,
) -> Option<Vec<Resumption>> {
    let (of, rank) = (source.first()?.call.0, ranks.get(at)?);
    let timeline = &ranks.get(of)?.timeline;
    let met = met.get(at)?;
    let own = pauses.get(at)?;
    let together = |resumed: &Resumption| {
        let began = timeline.calls.get(resumed.call.1 as usize)?.start;
        let (theirs, ours) = met.get(met.partition_point(|(end, _)| *end <= began).checked_sub(1)?)?;
        let began = began.saturating_sub(*theirs).saturating_add(*ours);
        let next = own.partition_point(|pause| pause.to < began);
        let near = [next.checked_sub(1), Some(next)].into_iter().flatten().filter_map(|i| own.get(i));
        let apart = |pause: &Pause| pause.to.saturating_sub(began);
        let pause = near.min_by_key(|pause| apart(pause).saturating_abs())?;
        let (apart, lag) = (apart(pause), resumed.lag.saturating_add(apart(pause)));
        (apart.saturating_abs() <= TOGETHER && pause.holds(lag))
            .then_some((apart, Resumption { call: (at, pause.call), lag, ..*resumed }))
    };
    let found: Vec<(Ns, Resumption)> = source.iter().filter_map(together).collect();
    let apart = found.iter().map(|(apart, _)| *apart).collect();
    let mut found: Vec<Resumption> = found.into_iter().map(|(_, found)| found).collect();
    found.dedup_by_key(|found| found.call);
    (is_habit(found.len(), rank) && is_steady(apart)).then_some(found)
}

/// Whether so many pauses are what comes before most steps.
fn is_habit(found: usize, rank: &Rank) -> bool {
    found >= FEWEST && found * MOST.1 >= rank.steps.len() * MOST.0
}

/// Whether distances hardly differ.
fn is_steady(mut of: Vec<Ns>) -> bool {
    of.sort_unstable();
    let at = |quarter: usize| of.get(of.len().saturating_sub(1) * quarter / 4).copied().unwrap_or(0);
    at(3) - at(1) <= SPREAD.max(median(of.clone()).unwrap_or(0) / 2)
}

/// Writes into the models what each call and each operation has to do with the others.
pub(super) fn apply(models: &mut [Model], found: &[Resumption]) {
    let mut told: rustc_hash::FxHashMap<(usize, u32), u32> = rustc_hash::FxHashMap::default();
    for Resumption { call: (rank, call), after: (of, op), lag } in found {
        let Some(row) = models.get_mut(*rank).and_then(|model| model.calls.get_mut(*call as usize)) else { continue };
        // Who is handed its work waits for the thread that hands it over, and that one for the device.
        if row.follows != NONE {
            continue;
        }
        let next = told.len() as u32;
        let signal = *told.entry((*of, *op)).or_insert(next);
        (row.heeds, row.before) = (signal, *lag);
        if let Some(row) = models.get_mut(*of).and_then(|model| model.ops.get_mut(*op as usize)) {
            row.tells = signal;
        }
    }
}
