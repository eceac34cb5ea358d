//! Who is late in the collectives of the steps that count, and what that costs the others.

use std::collections::BTreeMap;

use model::{Ns, SliceId};
use rustc_hash::FxHashMap;

use super::reading::MOST_ROWS;
use crate::{
    analysis::{Analysis, Bucket, Class, Job, Rank, job::Wait},
    diagnose::rule::Context,
};

/// Share of all waiting whose largest instances decide who is late: small waits are noise, and rare long ones count (own value).
const DECISIVE: (Ns, Ns) = (4, 5);
/// An instance is like the shortest of the decisive ones, and decides too, if it waits one part in so many of that: which
/// of equal pauses complete the share is an accident (own value).
const ALIKE: Ns = 2;
/// Fewest decisive instances (method §4.2).
pub const INSTANCES: usize = 4;
/// Chance below which a rank is not late by accident (method §4.2).
pub const CHANCE: f64 = 0.001;

/// The waiting of one group of ranks.
pub struct Waiting {
    /// Its ranks, as indices into the analysis' ranks.
    pub ranks: Vec<usize>,
    /// All waiting over the steps that count and all ranks, ns.
    pub total: Ns,
    /// Mean wait of a rank per step, as a share of the mean step.
    pub share: f64,
    /// Instances that hold most of the waiting.
    pub decisive: usize,
    /// Per rank: what it cost the others.
    pub late: Vec<Late>,
}

/// What a rank cost the others of its group by being the last.
#[derive(Default)]
pub struct Late {
    /// Index into the analysis' ranks.
    pub rank: usize,
    /// Decisive instances in which it was the last.
    pub instances: usize,
    /// What the others waited for it, ns.
    pub wait: Ns,
    /// What all of them waited for it: the time that it alone was late, ns.
    pub alone: Ns,
    /// What it spent longer on than those that waited, ns: bucket and sum over their waits, by the rank that is to blame.
    pub causes: BTreeMap<(usize, Bucket), Ns>,
    /// Collectives in which others waited for it, the longest waits first.
    pub rows: Vec<(Ns, SliceId)>,
}

/// One instance seen from those that waited.
#[derive(Default)]
struct Seen {
    late: usize,
    total: Ns,
    least: Ns,
    waiting: usize,
}

/// The waiting of every group with matched collectives, over the main classes of its ranks. That a stage of a pipeline waits
/// for the one before it makes none of them late.
pub fn waiting(cx: &Context<'_>) -> Vec<Waiting> {
    let analysis = cx.analysis;
    let mut groups: Vec<Waiting> = analysis
        .job
        .groups
        .iter()
        .map(|g| Waiting {
            ranks: g.ranks.clone(),
            total: 0,
            share: 0.0,
            decisive: 0,
            late: g.ranks.iter().map(|rank| Late { rank: *rank, ..Late::default() }).collect(),
        })
        .collect();
    let absent = Absent::of(&analysis.job);
    let mut seen: Vec<BTreeMap<usize, Seen>> = groups.iter().map(|_| BTreeMap::new()).collect();
    for (index, rank, class) in counted(cx) {
        let mut own = vec![0; groups.len()];
        for wait in rank.steady_steps(class).flat_map(|step| analysis.job.waits_in(index, &step.ops)) {
            let Some(g) = analysis.job.instances.get(wait.instance).map(|i| i.group) else { continue };
            if analysis.job.groups.get(g).is_some_and(|group| group.is_pair) {
                continue;
            }
            let (Some(group), Some(seen)) = (groups.get_mut(g), seen.get_mut(g)) else { continue };
            let ns = wait.ns - absent.of_wait(wait);
            if ns <= 0 {
                continue;
            }
            own[g] += ns;
            let instance = seen.entry(wait.instance).or_default();
            instance.least = if instance.waiting == 0 { ns } else { instance.least.min(ns) };
            (instance.late, instance.waiting) = (wait.late, instance.waiting + 1);
            instance.total += ns;
            let Some(late) = group.late.iter_mut().find(|l| l.rank == wait.late) else { continue };
            wait.causes.iter().for_each(|c| *late.causes.entry((c.late, c.bucket)).or_default() += c.ns);
            let slice = rank.timeline.ops.get(wait.op as usize).map(|op| (ns, op.slice));
            late.rows.extend(slice);
            if late.rows.len() > 4 * MOST_ROWS {
                keep_longest(&mut late.rows);
            }
        }
        let step = (class.steady.max(1) as f64) * class.mean().max(1) as f64;
        for (group, own) in groups.iter_mut().zip(own) {
            group.total += own;
            group.share += own as f64 / step / group.ranks.len().max(1) as f64;
        }
    }
    for (group, seen) in groups.iter_mut().zip(seen) {
        let mut seen: Vec<Seen> = seen.into_values().collect();
        seen.sort_by_key(|s| std::cmp::Reverse(s.total));
        let (mut counted, mut shortest) = (0, Ns::MAX);
        for instance in seen {
            let Some(late) = group.late.iter_mut().find(|l| l.rank == instance.late) else { continue };
            late.wait += instance.total;
            late.alone += if instance.waiting + 1 >= group.ranks.len() { instance.least } else { 0 };
            let short_of_it = counted * DECISIVE.1 < group.total * DECISIVE.0;
            if short_of_it || instance.total >= shortest / ALIKE {
                shortest = if short_of_it { instance.total } else { shortest };
                counted += instance.total;
                group.decisive += 1;
                late.instances += 1;
            }
        }
        group.late.iter_mut().for_each(|late| keep_longest(&mut late.rows));
    }
    groups
}

fn keep_longest(rows: &mut Vec<(Ns, SliceId)>) {
    rows.sort_by_key(|(ns, slice)| (std::cmp::Reverse(*ns), *slice));
    rows.truncate(MOST_ROWS);
}

/// What captured ranks wait for ranks that were not captured: in a group that lacks some, what the last of those that are there
/// waits itself is nobody's of them.
pub struct Absent(FxHashMap<usize, Ns>);

impl Absent {
    /// The waits of the last rank of each collective whose group is not whole.
    pub fn of(job: &Job) -> Self {
        let open = |wait: &&Wait| {
            let group = job.instances.get(wait.instance).and_then(|instance| job.groups.get(instance.group));
            wait.rank == wait.late && group.is_some_and(|group| !group.is_complete())
        };
        Self(job.waits.iter().filter(open).map(|wait| (wait.instance, wait.ns)).collect())
    }

    /// How much of a wait is for a rank that was not captured, ns.
    pub fn of_wait(&self, wait: &Wait) -> Ns {
        self.0.get(&wait.instance).copied().unwrap_or(0).min(wait.ns)
    }
}

/// How long rank `at` waits for each other one in the steps of a class that count, with nothing beside it: ns by the late rank's index.
pub fn waited_for(analysis: &Analysis, at: usize, class: &Class) -> BTreeMap<usize, Ns> {
    let mut waited = BTreeMap::new();
    let steps = analysis.ranks.get(at).into_iter().flat_map(|rank| rank.steady_steps(class));
    for wait in steps.flat_map(|step| analysis.job.waits_in(at, &step.ops)) {
        *waited.entry(wait.late).or_default() += wait.exposed;
    }
    waited
}

/// Every rank with its index and its main class, if that class has steps that count.
pub fn counted<'a>(cx: &'a Context<'_>) -> impl Iterator<Item = (usize, &'a Rank, &'a Class)> {
    let class = |(i, r): (usize, &'a Rank)| Some((i, r, r.main_class().filter(|c| c.steady > 0)?));
    cx.analysis.ranks.iter().enumerate().filter_map(class)
}

/// The longest that any other rank waits, in the steps that count, for what rank `index` spends on buckets that `pick` takes,
/// ns. A rank that others wait for has work to do: all of them got it in the same step.
pub fn awaited(cx: &Context<'_>, index: usize, pick: impl Fn(Bucket) -> bool) -> Ns {
    let waits_of = |(other, rank, class): (usize, &'_ Rank, &'_ Class)| -> Ns {
        let waits = rank.steady_steps(class).flat_map(|step| cx.analysis.job.waits_in(other, &step.ops));
        let causes = waits.flat_map(|wait| &wait.causes).filter(|c| c.late == index && pick(c.bucket));
        causes.map(|c| c.ns).sum()
    };
    counted(cx).filter(|(other, ..)| *other != index).map(waits_of).max().unwrap_or(0).max(0)
}

impl Waiting {
    /// Share of the group's waiting from which one rank is to blame: half of it, and well above an equal share.
    pub fn blame_share(&self) -> f64 {
        (1.5 / self.ranks.len().max(1) as f64).max(0.5)
    }

    /// Share of the waiting that is for one rank.
    pub fn share_of(&self, late: &Late) -> f64 {
        if self.total == 0 { 0.0 } else { late.wait as f64 / self.total as f64 }
    }

    /// The rank for which the others waited most.
    pub fn latest(&self) -> Option<&Late> {
        self.late.iter().max_by_key(|l| (l.wait, std::cmp::Reverse(l.rank)))
    }

    /// The rank that is late again and again, if there is one.
    pub fn persistent(&self) -> Option<&Late> {
        let latest = self.latest()?;
        let by_chance = binomial_tail(self.decisive, latest.instances, 1.0 / self.ranks.len().max(1) as f64);
        let often = self.decisive >= INSTANCES && 2 * latest.instances > self.decisive && by_chance < CHANCE;
        (often && self.share_of(latest) >= self.blame_share()).then_some(latest)
    }
}

/// Chance of at least `hits` successes in `n` trials of probability `p`.
fn binomial_tail(n: usize, hits: usize, p: f64) -> f64 {
    if hits == 0 || p >= 1.0 {
        return 1.0;
    }
    let (n, hits) = (n as f64, hits as f64);
    let mut ln = hits * p.ln() + (n - hits) * (1.0 - p).ln();
    let mut i = 1.0;
    while i <= hits {
        ln += ((n - hits + i) / i).ln();
        i += 1.0;
    }
    let (mut term, mut sum, mut k) = (ln.exp(), 0.0, hits);
    while k <= n && (term > sum * 1e-12 || k == hits) {
        sum += term;
        term *= (n - k) / (k + 1.0) * p / (1.0 - p);
        k += 1.0;
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_those_of_the_binomial_distribution() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(binomial_tail(10, 10, 0.5), 1.0 / 1024.0));
        assert!(close(binomial_tail(4, 2, 0.25), 1.0 - 0.75_f64.powi(4) - 0.75_f64.powi(3)));
        assert!(close(binomial_tail(5, 0, 0.5), 1.0));
        assert!(binomial_tail(100_000, 90_000, 0.25) < CHANCE);
        assert!(binomial_tail(100_000, 25_000, 0.25) > 0.4);
    }
}
