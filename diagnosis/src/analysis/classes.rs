//! Kinds of steps: what makes two steps comparable, which of them count, and their statistics.

use std::collections::BTreeMap;

use model::Ns;

use super::{
    bucket::{Bucket, Shadow},
    class_keys::{self, Key},
    equal_work, jitter,
    model::{Class, Options, Rank, Selection, Step},
    step_facts::Draft,
};

/// Gives every step its class and decides which steps count; `compiling` says whether a step holds compilation.
pub fn select(steps: &mut [Step], drafts: &[Draft], compiling: &dyn Fn(&Step) -> bool, options: &Options) {
    let keys = class_keys::of(drafts);
    let mut order: Vec<&Key> = keys.iter().collect();
    order.sort();
    order.dedup();
    for (step, key) in steps.iter_mut().zip(&keys) {
        step.class = order.binary_search(&key).unwrap_or(0);
    }
    for class in 0..order.len() {
        let members: Vec<usize> = (0..steps.len()).filter(|i| steps[*i].class == class).collect();
        let churns = members.first().and_then(|i| keys.get(*i)).is_some_and(Key::churns);
        select_class(steps, &members, churns, compiling);
    }
    for step in steps.iter_mut() {
        if options.steps.is_some_and(|(from, to)| step.index < from || step.index > to) {
            step.selection = Selection::NotAsked;
        }
    }
}

/// Takes out what precedes the first mark, unless that `begins_whole`, and what follows the last one where the windows go from
/// mark to mark.
pub fn leave_unfinished(steps: &mut [Step], begins_whole: bool) {
    let last = steps.len().saturating_sub(1);
    for (i, step) in steps.iter_mut().enumerate() {
        // Before the first mark there is no complete step either.
        let partial = i == 0 && last > 0 && !begins_whole && step.label == "before the first mark";
        if partial && step.selection == Selection::Steady {
            step.selection = Selection::Unfinished;
        }
    }
    if let Some(tail) = steps.last().filter(|_| last > 0).cloned() {
        let others = steps.iter().take(last).any(|s| s.class == tail.class && s.selection == Selection::Steady);
        if let Some(step) = steps.last_mut().filter(|s| others && s.selection == Selection::Steady) {
            step.selection = Selection::Unfinished;
        }
    }
}

/// Relative change of the step time below which a run has settled (rule RT-23 uses the same 3 %).
pub(super) const SETTLED: f64 = 0.03;
/// A first step this much slower than every other one is warm-up even in a run too short for a change-point test.
const SLOW_START: f64 = 1.5;
/// The start of a run is one part in so many of its steps, or its first two.
const STARTS: usize = 4;
/// Fewest steps for a change-point test.
const MIN_FOR_CHANGE_POINT: usize = 8;

fn select_class(steps: &mut [Step], members: &[usize], churns: bool, compiling: &dyn Fn(&Step) -> bool) {
    // Only at the start of the run: later compilation is a finding, not warm-up. Where steps go on compiling, none of them is.
    let leading = members.iter().take_while(|i| compiling(&steps[**i])).count();
    let starts = leading.min(members.len().saturating_sub(2));
    let goes_on = members.iter().skip(leading).filter(|i| compiling(&steps[**i])).count();
    let is_start = starts * STARTS <= members.len().max(2 * STARTS) && goes_on * STARTS <= members.len() - leading;
    let (started, rest) = members.split_at(if is_start { starts } else { 0 });
    started.iter().for_each(|i| steps[*i].selection = Selection::Compiling);
    let times = equal_work::windows(&rest.iter().map(|i| &steps[*i]).collect::<Vec<_>>(), churns);
    for i in rest.iter().take(warm_up(&times)) {
        steps[*i].selection = Selection::WarmUp;
    }
}

/// Number of leading steps before the step time settles: the first position from which a block's median lies within 3 %
/// (or within the spread) above the median of the second half. At most half of the steps. Steps that are faster than the
/// later ones are none of a warm-up: they had less to do, or the run became slower, which is a finding.
fn warm_up(times: &[Ns]) -> usize {
    let n = times.len();
    if n < 3 {
        return 0;
    }
    if n < MIN_FOR_CHANGE_POINT {
        // What varies as much later, such as waiting for a loader of data, is no warm-up.
        let slowest = times[1..].iter().copied().max().unwrap_or(0);
        return usize::from(times[0] as f64 > SLOW_START * slowest as f64);
    }
    let half = &times[n / 2..];
    let settled = median(half) as f64;
    let spread = median(&half.iter().map(|t| (*t as f64 - settled).abs() as Ns).collect::<Vec<_>>()) as f64;
    // Three median absolute deviations hold nearly all of a settled run's steps.
    let tolerance = (SETTLED * settled).max(3.0 * spread);
    let block = (n / 10).max(3);
    (0..n / 2)
        .find(|k| {
            let ahead = median(&times[*k..(*k + block).min(n)]) as f64;
            ahead - settled <= tolerance && (times[*k] as f64 - settled) <= settled * (SLOW_START - 1.0)
        })
        .unwrap_or(n / 2)
}

/// Lower median.
pub fn median(values: &[Ns]) -> Ns {
    percentile(&mut values.to_vec(), 50)
}

/// Nearest-rank percentile.
fn percentile(values: &mut [Ns], p: usize) -> Ns {
    values.sort_unstable();
    let rank = (values.len() * p).div_ceil(100).clamp(1, values.len().max(1));
    values.get(rank - 1).copied().unwrap_or(0)
}

/// Statistics per class, ordered by total time, with the keys of the classes; step class indices are renumbered to that order.
pub fn summarize(steps: &mut [Step], drafts: &[Draft]) -> (Vec<Class>, Vec<Key>) {
    let keys = class_keys::of(drafts);
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (i, step) in steps.iter().enumerate() {
        groups.entry(step.class).or_default().push(i);
    }
    let class = |(index, members): (usize, Vec<usize>)| {
        let key = &keys[members[0]];
        (class_of(index, key, steps, &members), key.clone())
    };
    let mut classes: Vec<(Class, Key)> = groups.into_iter().map(class).collect();
    classes.sort_by_key(|(c, _)| (std::cmp::Reverse(c.total), c.index));
    let (mut classes, keys): (Vec<Class>, Vec<Key>) = classes.into_iter().unzip();
    let place: BTreeMap<usize, usize> = classes.iter().enumerate().map(|(new, c)| (c.index, new)).collect();
    for step in steps.iter_mut() {
        step.class = place.get(&step.class).copied().unwrap_or(0);
    }
    for (new, class) in classes.iter_mut().enumerate() {
        class.index = new;
    }
    (classes, keys)
}

fn class_of(index: usize, key: &Key, steps: &[Step], members: &[usize]) -> Class {
    let steady: Vec<&Step> = members.iter().map(|i| &steps[*i]).filter(|s| s.selection == Selection::Steady).collect();
    let timed: Vec<&Step> =
        if steady.is_empty() { members.iter().map(|i| &steps[*i]).collect() } else { steady.clone() };
    let mut times: Vec<Ns> = timed.iter().map(|s| s.window.len()).collect();
    let mut buckets: BTreeMap<Bucket, Ns> = BTreeMap::new();
    let mut shadow: BTreeMap<Shadow, Ns> = BTreeMap::new();
    for step in &steady {
        step.buckets.iter().for_each(|(b, ns)| *buckets.entry(*b).or_default() += ns);
        step.shadow.iter().for_each(|(s, ns)| *shadow.entry(*s).or_default() += ns);
    }
    let [p50, p95, p99] = [50, 95, 99].map(|p| percentile(&mut times, p));
    Class {
        index,
        key: key.text(),
        stage: key.stage,
        batch: key.batches.filter(|(least, most)| least == most).map(|(least, _)| least),
        batches: key.batches,
        churns: key.churns(),
        graph: key.graph,
        count: members.len(),
        steady: steady.len(),
        p50,
        p95,
        p99,
        total: steady.iter().map(|s| s.window.len()).sum(),
        buckets: buckets.into_iter().collect(),
        shadow: shadow.into_iter().collect(),
        jitter: jitter::jitter(&steady, key.churns()),
    }
}

/// Ranks of one job name a population alike, though requests join and leave on each at other times. `keys` are those of the
/// classes of all ranks.
pub fn agree(ranks: &mut [Rank], keys: &[Key]) {
    let classes = ranks.iter_mut().flat_map(|rank| &mut rank.classes).zip(keys).filter(|(class, _)| class.churns);
    let (mut classes, keys): (Vec<&mut Class>, Vec<&Key>) = classes.unzip();
    for (class, key) in classes.iter_mut().zip(class_keys::common(&keys)) {
        class.key = key.text();
    }
}
