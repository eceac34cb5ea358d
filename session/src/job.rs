//! Which captures are ranks of one job, so that they are read as one.
//!
//! A rank says so itself: its number, the size of the job, the library that connects it. Where nothing says how large the job
//! is, ranks that name the same communicator belong together. Captures of the same job were started together; a second capture
//! of a rank belongs to another run. Processes that say no rank at all are joined by what they did ([`machine`]).

use std::collections::BTreeSet;

use model::{Ns, Trace, trace};

mod communicators;
mod machine;

/// Captures of one job start within this time of each other, ns: own value, ten minutes. It only has to tell runs apart that
/// lie in one directory; ranks are usually started within seconds, but host clocks may disagree.
const TOGETHER: Ns = 600 * 1_000_000_000;

/// What ranks of one job have in common.
struct Kind {
    format: String,
    simulated: bool,
    /// Ranks of the job, if the capture says it.
    world: Option<u32>,
    facts: Vec<Option<String>>,
    /// Communicators that its collectives name.
    communicators: BTreeSet<String>,
}

impl Kind {
    fn is_of(&self, other: &Self) -> bool {
        // Who does not say how large the job is belongs to it by a communicator; files of sums say little else.
        let named = self.world.is_none() || other.world.is_none();
        let same = |(a, b): (&Option<String>, &Option<String>)| a == b || named && (a.is_none() || b.is_none());
        (!named || !self.communicators.is_disjoint(&other.communicators))
            && self.format == other.format
            && self.simulated == other.simulated
            && self.facts.iter().zip(&other.facts).all(same)
    }
}

/// The communicators that collectives of a capture name.
fn communicators(trace: &Trace) -> BTreeSet<String> {
    let groups = trace.details.iter().filter_map(|detail| communicators::call(detail)?.group);
    groups.map(|group| trace.strings.get(group).to_owned()).collect()
}

/// Facts that are the same on every rank of a job.
const SHARED: [&str; 5] =
    ["parallel.world_size", "kineto.comm_backend", "software.comm_library", "hardware.vendor", "software.framework"];

/// A job while its captures are gathered.
struct Job {
    kind: Option<Kind>,
    ranks: Vec<u32>,
    start: Option<Ns>,
    parts: Vec<Trace>,
}

impl Job {
    /// Takes in another part of itself.
    fn take(&mut self, other: Self) {
        if let (Some(own), Some(others)) = (&mut self.kind, other.kind) {
            own.communicators.extend(others.communicators);
        }
        self.ranks.extend(other.ranks);
        self.parts.extend(other.parts);
    }

    /// Whether both were recorded at the same time, as far as clocks say: simulated runs all begin at one moment.
    fn runs_with(&self, other: &Self) -> bool {
        if self.parts.iter().any(|part| part.simulated) {
            return false;
        }
        let span = |job: &Self| {
            let ends = job.parts.iter().flat_map(|part| &part.lanes);
            let last = ends.filter_map(|lane| lane.len().checked_sub(1).map(|row| lane.end(row))).max()?;
            Some((job.start?, job.start?.saturating_add(last)))
        };
        span(self).zip(span(other)).is_some_and(|((a, to_a), (b, to_b))| a < to_b && b < to_a)
    }

    /// Whether both name a communicator, and neither has a rank of the other's.
    fn is_linked(&self, other: &Self) -> bool {
        let apart = self.start.zip(other.start).map_or(0, |(a, b)| a.saturating_sub(b).saturating_abs());
        let (Some(own), Some(others)) = (&self.kind, &other.kind) else { return false };
        own.is_of(others)
            && !own.communicators.is_disjoint(&others.communicators)
            && !other.ranks.iter().any(|rank| self.ranks.contains(rank))
            && apart <= TOGETHER
    }
}

/// Joins captures that are ranks of one job; everything else stays as it is. A joined capture takes the place of its first
/// rank, and its ranks are in order. A file that claims a rank which the job has already is told in a sentence.
pub(crate) fn join(mut traces: Vec<Trace>) -> (Vec<Trace>, Vec<String>) {
    communicators::name(&mut traces);
    let mut jobs: Vec<Job> = Vec::new();
    for part in machine::join(traces) {
        let ranks: Vec<u32> = part.processes.iter().filter_map(|p| p.rank).collect();
        let (kind, start) = (kind(&part, &ranks), part.start_unix_ns);
        match kind.as_ref().and_then(|kind| nearest(&mut jobs, kind, &ranks, start)) {
            Some(job) => job.take(Job { kind, ranks, start, parts: vec![part] }),
            None => jobs.push(Job { kind, ranks, start, parts: vec![part] }),
        }
    }
    let jobs = chain(jobs);
    let claimed = jobs.iter().enumerate().filter_map(|(at, job)| claimed(&jobs, at, job)).collect();
    (jobs.into_iter().flat_map(whole).collect(), claimed)
}

/// What is told of a part of a job that is left over because another file claims its rank.
fn claimed(jobs: &[Job], at: usize, job: &Job) -> Option<String> {
    let kind = job.kind.as_ref()?;
    let is_part = kind.world.is_none_or(|world| (job.ranks.len() as u64) < u64::from(world));
    let apart = |other: &Job| other.start.zip(job.start).map_or(0, |(a, b)| a.saturating_sub(b).saturating_abs());
    let larger = |other: &Job| {
        other.ranks.len() > job.ranks.len()
            && other.kind.as_ref().is_some_and(|others| others.is_of(kind))
            && apart(other) <= TOGETHER
    };
    // Two files of a rank and of the same time are not two runs, though neither has other ranks with it.
    let same_time = |index: usize, other: &Job| {
        let kinds = other.kind.as_ref().is_some_and(|others| others.is_of(kind));
        index < at && kinds && other.ranks.len() == job.ranks.len() && other.runs_with(job)
    };
    let mut others = jobs
        .iter()
        .enumerate()
        .filter(|(index, other)| is_part && *index != at && (larger(other) || same_time(*index, other)));
    others.find_map(|(_, other)| {
        let rank = job.ranks.iter().find(|rank| other.ranks.contains(rank))?;
        let source = |job: &Job| {
            let mut parts = job.parts.iter();
            let of = parts.find(|part| part.processes.iter().any(|process| process.rank == Some(*rank)));
            of.map(|part| part.source.clone()).unwrap_or_default()
        };
        Some(format!(
            "'{}' and '{}' both claim rank {rank} of one job, which counts the first; the other is read as a run of its own: leave \
             one out",
            source(other),
            source(job)
        ))
    })
}

/// Joins jobs that turned out to be one: of a pipeline each rank has communicators with its neighbours alone, so that two ranks
/// may have none in common but for that of a rank between them.
fn chain(jobs: Vec<Job>) -> Vec<Job> {
    let mut out: Vec<Job> = Vec::new();
    for mut job in jobs {
        let mut place = out.len();
        while let Some(at) = out.iter().position(|other| other.is_linked(&job)) {
            let mut first = out.remove(at);
            first.take(job);
            (job, place) = (first, place.min(at));
        }
        out.insert(place, job);
    }
    out
}

/// Whether two captures are ranks of one job.
pub fn are_one_job(a: &Trace, b: &Trace) -> bool {
    let [of_a, of_b] = [a, b].map(|part| part.processes.iter().filter_map(|p| p.rank).collect::<Vec<u32>>());
    let joins = |other: Kind| {
        let mut job = [Job { kind: kind(a, &of_a), ranks: of_a.clone(), start: a.start_unix_ns, parts: Vec::new() }];
        nearest(&mut job, &other, &of_b, b.start_unix_ns).is_some()
    };
    kind(b, &of_b).is_some_and(joins)
}

/// What the capture says of its job; `None` for one that is no rank of a larger job.
fn kind(trace: &Trace, ranks: &[u32]) -> Option<Kind> {
    let world: Option<u32> = trace.manifest.value("parallel.world_size").and_then(|world| world.parse().ok());
    let communicators = communicators(trace);
    let fits = |world: u32| (ranks.len() as u64) < u64::from(world) && ranks.iter().all(|r| *r < world);
    let part = world.map_or_else(|| !communicators.is_empty(), fits);
    (part && !ranks.is_empty()).then(|| Kind {
        format: trace.format.clone(),
        simulated: trace.simulated,
        world,
        facts: SHARED.iter().map(|key| trace.manifest.value(key).map(str::to_owned)).collect(),
        communicators,
    })
}

/// The job that lacks these ranks and started nearest to `start`, the latest one where that does not tell.
fn nearest<'a>(jobs: &'a mut [Job], kind: &Kind, ranks: &[u32], start: Option<Ns>) -> Option<&'a mut Job> {
    let apart = |job: &Job| job.start.zip(start).map_or(0, |(a, b)| a.saturating_sub(b).saturating_abs());
    let fits = |job: &&mut Job| {
        job.kind.as_ref().is_some_and(|known| known.is_of(kind))
            && !ranks.iter().any(|r| job.ranks.contains(r))
            && apart(job) <= TOGETHER
    };
    jobs.iter_mut().rev().filter(fits).min_by_key(|job| apart(job))
}

fn whole(mut job: Job) -> Vec<Trace> {
    if job.parts.len() < 2 {
        return job.parts;
    }
    job.parts.sort_by_key(|part| part.processes.iter().filter_map(|p| p.rank).min());
    trace::join(job.parts).map_or_else(|parts| parts, |one| vec![one])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use model::{Category, Clock, Detail, Provenance, Slice, TraceBuilder, TraceSink, TrackKey, TrackKind};

    use super::*;

    fn join(traces: Vec<Trace>) -> Vec<Trace> {
        super::join(traces).0
    }

    /// Which of two files is the rank nobody knows; both were read and neither named.
    #[test]
    fn two_files_that_claim_one_rank_are_named() {
        let told = |traces| super::join(traces).1;
        let other = Trace { source: "again.json".to_owned(), ..rank(0, 2, Some(5)) };
        let [sentence] = told(vec![rank(0, 2, Some(4)), rank(1, 2, Some(4)), other]).try_into().unwrap();
        assert!(sentence.starts_with("'rank0.json' and 'again.json' both claim rank 0"), "{sentence}");
        let again = |unix| Trace { source: "again.json".to_owned(), ..rank(0, 2, Some(unix)) };
        let [sentence] = told(vec![rank(0, 2, Some(4)), again(5)]).try_into().unwrap();
        assert!(sentence.starts_with("'rank0.json' and 'again.json' both claim rank 0"), "{sentence}");
        assert_eq!(told(vec![rank(0, 2, Some(4)), again(4_000)]), Vec::<String>::new(), "one after the other");
        let runs = || vec![rank(0, 2, Some(0)), rank(0, 2, Some(9)), rank(1, 2, Some(1)), rank(1, 2, Some(10))];
        assert_eq!(told(runs()), Vec::<String>::new(), "two whole runs");
        assert_eq!(told(vec![rank(0, 2, None), rank(0, 2, None)]), Vec::<String>::new(), "two runs of one rank");
    }

    fn rank(rank: u32, world: u32, unix: Option<Ns>) -> Trace {
        let mut b = TraceBuilder::new(format!("rank{rank}.json"), "kineto");
        let process = b.process(0);
        b.describe_process(process, Some(100 + i64::from(rank)), None, Some(rank));
        b.manifest("parallel.world_size", &world.to_string(), Provenance::Observed);
        b.manifest("hardware.count", "1", Provenance::Observed);
        let thread = TrackKey { kind: TrackKind::HostThread, process, device: None, context: None, id: 1 };
        let queue = TrackKey { kind: TrackKind::DeviceQueue, process, device: Some(0), context: None, id: 7 };
        let (thread, queue) = (b.track(thread), b.track(queue));
        let (call, kernel) = (b.intern("cudaLaunchKernel"), b.intern(&format!("kernel{rank}")));
        let slice = |track, start, name, category| Slice {
            track,
            start,
            dur: 10,
            name,
            category,
            correlation: Some(1),
            detail: None,
        };
        b.slice(slice(thread, 0, call, Category::HostApi));
        b.slice(slice(queue, 20, kernel, Category::Kernel));
        b.clock(Clock::AsIs { unix_zero: unix });
        b.finish()
    }

    #[test]
    fn ranks_of_a_job_are_one_capture_with_their_launches_and_a_common_zero() {
        let joined = join(vec![rank(1, 2, Some(5_000)), rank(0, 2, Some(4_000))]);
        let [one] = joined.as_slice() else { unreachable!("{} captures", joined.len()) };
        assert_eq!(one.processes.iter().map(|p| p.rank).collect::<Vec<_>>(), [Some(0), Some(1)]);
        assert_eq!((one.start_unix_ns, one.manifest.value("hardware.count")), (Some(4_000), Some("2")));
        assert_eq!(one.source, "rank0.json +1");
        for (track, lane) in one.tracks.iter().zip(&one.lanes).filter(|(t, _)| t.key.kind == TrackKind::DeviceQueue) {
            let (launch, row) = one.locate(lane.link(0).unwrap()).unwrap();
            assert_eq!(one.tracks[launch.0 as usize].key.process, track.key.process);
            assert_eq!(lane.start[0] - one.lanes[launch.0 as usize].start[row], 20);
            let rank = one.processes[track.key.process.0 as usize].rank.unwrap();
            assert_eq!(one.strings.get(lane.name[0]), format!("kernel{rank}"));
            assert_eq!(lane.start[0], 20 + 1_000 * Ns::from(rank));
        }
    }

    #[test]
    fn two_ranks_of_a_job_are_no_two_sides() {
        assert!(are_one_job(&rank(0, 2, Some(4_000)), &rank(1, 2, Some(5_000))));
        assert!(!are_one_job(&rank(0, 2, None), &rank(0, 2, None)), "two runs of a rank");
        assert!(!are_one_job(&rank(0, 1, None), &rank(0, 1, None)), "two jobs of one rank");
    }

    /// A rank of which only sums were kept numbers its communicators and says no size of the job: it was another job.
    #[test]
    fn a_rank_of_sums_belongs_to_the_job_whose_communicator_it_numbers() {
        let with = |mut trace: Trace, group: &str, number: Option<&str>| {
            let group = Some(trace.strings.intern(group));
            let call = model::CollectiveCall { group, ..model::CollectiveCall::default() };
            trace.details.push(model::Detail::Collective(Box::new(call)));
            if let Some(number) = number {
                let key = format!("{}{number}", model::Manifest::COMMUNICATOR);
                trace.manifest.set(&key, "10.0.0.1%eth0_60000_0_17", Provenance::Observed);
            }
            trace
        };
        let whole = || with(rank(0, 2, Some(4_000)), "10.0.0.1%eth0_60000_0_17", Some("403"));
        let sums = |group| {
            let mut trace = with(rank(1, 2, Some(5_000)), group, None);
            trace.manifest = model::Manifest::default();
            trace
        };
        assert_eq!(join(vec![whole(), sums("403")]).len(), 1);
        assert_eq!(join(vec![sums("403"), whole()]).len(), 1, "whichever comes first");
        assert_eq!(join(vec![whole(), sums("404")]).len(), 2, "of another communicator");
    }

    #[test]
    fn what_is_not_of_one_job_stays_apart() {
        let far = Some(4_000 + 2 * TOGETHER);
        assert_eq!(join(vec![rank(0, 2, None), rank(0, 2, None)]).len(), 2, "the same rank twice");
        assert_eq!(join(vec![rank(0, 2, None), rank(1, 4, None)]).len(), 2, "another world size");
        assert_eq!(join(vec![rank(0, 2, Some(4_000)), rank(1, 2, far)]).len(), 2, "another time");
        assert_eq!(join(vec![rank(0, 1, None), rank(0, 1, None)]).len(), 2, "jobs of one rank");
        let runs =
            join(vec![rank(0, 2, Some(0)), rank(0, 2, Some(9_000)), rank(1, 2, Some(1)), rank(1, 2, Some(9_001))]);
        assert_eq!(runs.iter().map(|t| t.start_unix_ns).collect::<Vec<_>>(), [Some(0), Some(9_000)]);
    }

    #[test]
    fn without_wall_clocks_each_rank_keeps_its_own_zero_and_the_capture_says_so() {
        let joined = join(vec![rank(0, 2, None), rank(1, 2, Some(77))]);
        assert_eq!(joined.len(), 1);
        assert_eq!(joined[0].stat("job.unaligned_clocks"), 1);
        assert!(joined[0].lanes.iter().all(|lane| lane.start[0] < 100));
    }

    /// The profiler of level 0 says the rank and the communicator, and not how many ranks there are.
    #[test]
    fn ranks_that_name_one_communicator_are_one_job() {
        assert_eq!(join(vec![named(0, &["a"]), named(1, &["a"])]).len(), 1);
        assert_eq!(join(vec![named(0, &["a"]), named(1, &["b"])]).len(), 2, "another communicator");
        assert_eq!(join(vec![named(0, &["a"]), named(0, &["a"])]).len(), 2, "the same rank twice");
    }

    /// Each rank has communicators with its neighbours alone: the ends of a pipeline were other jobs.
    #[test]
    fn stages_of_a_pipeline_are_one_job_in_whatever_order_they_come() {
        let stages = || [named(0, &["01"]), named(1, &["01", "12"]), named(2, &["12", "23"]), named(3, &["23"])];
        for order in [[0, 1, 2, 3], [0, 3, 1, 2], [3, 0, 2, 1]] {
            let stages = stages();
            assert_eq!(join(order.map(|at: usize| stages[at].clone()).into()).len(), 1, "{order:?}");
        }
        let [first, _, _, last] = stages();
        assert_eq!(join(vec![first, last]).len(), 2, "nothing links the ends alone");
        // The job stands where its first rank stood.
        let [a, b, c, d] = stages();
        let joined = join(vec![a, named(7, &["other"]), d, b, c]);
        assert_eq!(joined.iter().map(|trace| trace.processes.len()).collect::<Vec<_>>(), [4, 1]);
    }

    fn named(number: u32, groups: &[&str]) -> Trace {
        let mut b = TraceBuilder::new(format!("rank{number}"), "ascend");
        let process = b.process(0);
        b.describe_process(process, None, None, Some(number));
        let queue = TrackKey { kind: TrackKind::DeviceQueue, process, device: Some(0), context: None, id: 0 };
        let (track, name) = (b.track(queue), b.intern("hcom_allReduce"));
        for group in groups {
            let group = Some(b.intern(group));
            let collective = model::CollectiveCall { group, ..model::CollectiveCall::default() };
            let detail =
                Detail::Kernel(model::KernelDetail { collective: Some(Box::new(collective)), ..Default::default() });
            let (category, correlation) = (Category::Kernel, None);
            b.slice(Slice { track, start: 0, dur: 10, name, category, correlation, detail: Some(&detail) });
        }
        b.finish()
    }
}
