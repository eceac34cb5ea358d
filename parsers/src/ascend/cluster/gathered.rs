//! Sums from any of the files, each counted once: the analysis writes sums over operations of a group beside the operations
//! themselves, and picks of them (`-top1`, `-middle`) beside sums of a type (`-total`).

use std::collections::{BTreeMap, BTreeSet};

use model::{Clock, JobSums, LinkSum, Ns, Severity, StepPart, StepSum, StringId, Strings, TraceSink};

use super::super::{import::Import, rank_sums, times::Times};

/// Most entries kept of a kind: steps times ranks times groups, of which large jobs have some ten thousands.
const MAX_ENTRIES: usize = 1 << 18;

/// What the ledger calls the times of collectives.
const TIMED: &str = "collectives of the cluster analysis";

/// How much an entry of a group stands for, by its name; only the entries that stand for most are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Extent {
    /// One operation.
    Operation,
    /// All operations of a type.
    Type,
    /// All operations.
    Group,
}

impl Extent {
    fn of(operation: &str) -> Self {
        let bare = operation.split('@').next().unwrap_or(operation);
        match bare {
            "Total Op Info" => Self::Group,
            _ if bare.ends_with("-total") => Self::Type,
            _ => Self::Operation,
        }
    }
}

/// Sums of the entries of the widest extent seen so far.
#[derive(Clone, Copy, Debug)]
struct Widest<const N: usize> {
    extent: Extent,
    sums: [i64; N],
}

impl<const N: usize> Widest<N> {
    fn add(known: &mut Option<Self>, extent: Extent, sums: [i64; N]) {
        match known {
            Some(known) if known.extent > extent => {}
            Some(known) if known.extent == extent => {
                known.sums.iter_mut().zip(sums).for_each(|(sum, more)| *sum = sum.saturating_add(more));
            }
            _ => *known = Some(Self { extent, sums }),
        }
    }
}

/// The step of an entry and what the file keeps apart in it: the sum over all operations is that of the latter.
type Group = (StringId, StringId);

/// Where an entry of a file of communication belongs.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Entry<'a> {
    pub step: &'a str,
    /// What the file keeps apart: the ranks of a group, or its name.
    pub set: &'a str,
    /// The operation, or what it sums over.
    pub operation: &'a str,
}

/// What was read so far.
#[derive(Debug, Default)]
pub(in super::super) struct Gathered {
    /// Steps, groups and transports, which many entries share.
    names: Strings,
    steps: BTreeMap<(StringId, u32), Vec<(StepPart, Ns)>>,
    /// The stage of the pipeline of each rank, and how many there are.
    stages: (BTreeMap<u32, u32>, u32),
    collectives: BTreeMap<(Group, u32), Option<Widest<3>>>,
    links: BTreeMap<(Group, u32, u32, StringId), Option<Widest<2>>>,
    /// When each rank was in each collective of a step, where the analysis kept it.
    timed: BTreeMap<(u32, StringId), Times>,
    /// Entries beyond [`MAX_ENTRIES`].
    beyond: u64,
}

impl Gathered {
    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.collectives.is_empty() && self.links.is_empty()
    }

    /// Takes the parts of a rank's step; what of it is computation, exposed communication or neither, ns. Steps of one name,
    /// such as those without any, are summed.
    pub fn step(&mut self, step: &str, rank: u32, parts: Vec<(StepPart, Ns)>) -> Ns {
        let exclusive = [StepPart::Computing, StepPart::ExposedCommunication, StepPart::Free];
        let of_step = parts.iter().filter(|(part, _)| exclusive.contains(part));
        let time = of_step.fold(0, |sum: Ns, (_, ns)| sum.saturating_add(*ns));
        if self.has_room(self.steps.len()) {
            let known = self.steps.entry((self.names.intern(step_name(step)), rank)).or_default();
            for (part, ns) in parts {
                match known.iter_mut().find(|(known, _)| *known == part) {
                    Some((_, sum)) => *sum = sum.saturating_add(ns),
                    None => known.push((part, ns)),
                }
            }
        }
        time
    }

    /// Takes the ranks of a stage, written as `(0, 1, 2)`.
    pub fn stage(&mut self, ranks: &str) {
        let before = self.stages.0.len();
        for rank in ranks.split(|c: char| !c.is_ascii_digit()).filter_map(|rank| rank.parse().ok()) {
            if self.has_room(self.stages.0.len()) {
                let stage = self.stages.1;
                self.stages.0.entry(rank).or_insert(stage);
            }
        }
        // Every step lists the stages anew.
        self.stages.1 += u32::from(self.stages.0.len() > before);
    }

    fn group(&mut self, entry: Entry<'_>) -> Group {
        (self.names.intern(step_name(entry.step)), self.names.intern(entry.set))
    }

    /// Takes how long a rank was in a collective, moved bytes and waited, ns; and when that began, by which group, where an entry
    /// of one operation says it.
    pub fn collective(&mut self, entry: Entry<'_>, rank: u32, sums: [Ns; 3], began: (Option<Ns>, Option<&str>)) {
        if self.has_room(self.collectives.len()) {
            let group = self.group(entry);
            if let (Some(start), name) = (began.0.filter(|start| *start > 0), began.1)
                && Extent::of(entry.operation) == Extent::Operation
            {
                let [elapse, transit, wait] = sums.map(Some);
                let times = self.timed.entry((rank, group.0)).or_insert_with(|| Times::told_by(TIMED));
                times.add(entry.operation, name, [Some(start), elapse, transit, wait]);
            }
            let known = self.collectives.entry((group, rank)).or_default();
            Widest::add(known, Extent::of(entry.operation), sums);
        }
    }

    /// Takes how many bytes moved from one rank to another, and for how long, ns.
    pub fn link(&mut self, entry: Entry<'_>, from: u32, to: u32, transport: &str, sums: [i64; 2]) {
        if self.has_room(self.links.len()) {
            let (group, transport) = (self.group(entry), self.names.intern(transport));
            let known = self.links.entry((group, from, to, transport)).or_default();
            Widest::add(known, Extent::of(entry.operation), sums);
        }
    }

    fn has_room(&mut self, entries: usize) -> bool {
        let room = entries < MAX_ENTRIES;
        self.beyond += u64::from(!room);
        room
    }

    /// Writes what was read; whether it says when anything was.
    pub fn tell(mut self, sink: &mut dyn TraceSink) -> bool {
        let name = |step: StringId| self.names.get(step).to_owned();
        let timed = self.timed.into_iter().map(|((rank, step), times)| ((rank, name(step)), times)).collect();
        let mut waits: BTreeMap<(StringId, u32), [Ns; 3]> = BTreeMap::new();
        for (((step, _), rank), widest) in self.collectives {
            let Some(Widest { sums, .. }) = widest else { continue };
            let known = waits.entry((step, rank)).or_default();
            known.iter_mut().zip(sums).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        }
        for (step, sums) in waits {
            let parts = [StepPart::InCollectives, StepPart::Transfer, StepPart::Wait].into_iter().zip(sums);
            self.steps.entry(step).or_default().extend(parts);
        }
        let mut links: BTreeMap<(u32, u32, StringId), [i64; 2]> = BTreeMap::new();
        for ((_, from, to, transport), widest) in self.links {
            let Some(Widest { sums, .. }) = widest else { continue };
            let known = links.entry((from, to, transport)).or_default();
            known.iter_mut().zip(sums).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        }
        let steps = self.steps.into_iter().map(|((step, rank), parts)| {
            let step = sink.intern(self.names.get(step));
            StepSum { step, rank, stage: self.stages.0.get(&rank).copied(), parts }
        });
        let steps = steps.collect();
        let links = links.into_iter().map(|((from, to, transport), [bytes, time])| {
            let transport = sink.intern(self.names.get(transport));
            LinkSum { from, to, transport, bytes, time }
        });
        let links = links.collect();
        sink.job_sums(JobSums { steps, links });
        if self.beyond > 0 {
            sink.stat("ascend-cluster.too_many_entries", Severity::DataLoss, self.beyond, None);
        }
        place(timed, sink)
    }
}

/// Places the collectives of every rank in time, by which ranks are held against each other; whether there are any.
fn place(timed: BTreeMap<(u32, String), Times>, sink: &mut dyn TraceSink) -> bool {
    let ranks: BTreeSet<u32> = timed.keys().map(|(rank, _)| *rank).collect();
    if timed.is_empty() {
        return false;
    }
    let mut import = Import::new(sink);
    for rank in &ranks {
        let process = import.sink.process(u64::from(*rank));
        import.sink.describe_process(process, None, None, Some(*rank));
    }
    for ((rank, step), mut times) in timed {
        times.sort();
        let process = import.sink.process(u64::from(rank));
        rank_sums::place(&mut import, times, process, 0, &[step]);
    }
    import.stat("rank_of_sums_only", Severity::Notice, ranks.len() as u64, None);
    import.sink.clock(Clock::FromFirstSlice { unix_offset: Some(0) });
    import.settle(&|_| None, i64::try_from(ranks.len()).ok());
    true
}

/// The step's own name: the files of communication write `step2` for the `2` of the table of steps.
fn step_name(step: &str) -> &str {
    step.strip_prefix("step").unwrap_or(step)
}
