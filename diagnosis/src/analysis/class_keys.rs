//! What a class of steps is called, and which steps are one class. Steps of equal work are: the same stage, graph mode, batch,
//! prompt and context. But requests join and leave, and where the work of a stage changes every few steps a class for each
//! batch would cut one population into slivers: then all steps of the stage and graph mode are one class.

use std::collections::BTreeMap;

use super::{
    model::{Facts, GraphMode},
    step_facts::Draft,
};
use crate::platform::Stage;

/// Steps in a row from which equal work was held for long: of so many a 95th percentile is not simply the slowest.
const LONG: usize = 20;
/// Steps in a row that hold a work which is no neighbour of the one before: a sweep; own value.
const HELD: usize = 3;
/// Two works are neighbours, as requests join and leave one by one, if neither has more than so many times what the other
/// has; own value.
const NEAR: f64 = 1.25;
/// Rows of the next captured size of a graph over those of the one before, at most.
const NEXT_SIZE: u64 = 2;
/// Step sizes within this factor of each other are one kind of step where no annotation says more.
const SAME_SIZE: f64 = 1.15;

/// The name of a class, in parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    whole: bool,
    /// Stage.
    pub stage: Stage,
    /// Graph mode.
    pub graph: GraphMode,
    captures: bool,
    /// Fewest and most sequences decoded.
    pub batches: Option<(u32, u32)>,
    requests: Option<(u32, u32)>,
    tokens: Option<(u32, u32)>,
    context: Option<(u64, u64)>,
    rows: Option<(u64, u64)>,
    ops: Option<u64>,
}

impl Key {
    /// The steps of a stage and graph mode, whatever their size.
    pub fn kind(draft: &Draft) -> Self {
        Self {
            whole: draft.whole,
            stage: draft.facts.stage,
            graph: draft.facts.graph,
            captures: draft.captures && draft.facts.graph == GraphMode::Eager,
            batches: None,
            requests: None,
            tokens: None,
            context: None,
            rows: None,
            ops: None,
        }
    }

    /// Steps of the work of this one.
    pub fn exact(draft: &Draft) -> Self {
        let Facts { stage, batch, prefill_requests, prefill_tokens, context, .. } = draft.facts;
        let one = |n: u32| (n, n);
        // Context grows by a token per step: powers of two keep neighbouring steps together.
        let bin = |tokens: u64| (1u64 << tokens.ilog2(), 1u64 << tokens.ilog2());
        Self {
            batches: batch.map(one),
            requests: prefill_requests.filter(|_| stage == Stage::Prefill).map(one),
            tokens: prefill_tokens.map(one),
            context: context.filter(|c| *c > 0).map(bin),
            ..Self::kind(draft)
        }
    }

    /// Whether the work of its steps changes from one to the next.
    pub fn churns(&self) -> bool {
        fn varies<T: PartialEq>(range: Option<(T, T)>) -> bool {
            range.is_some_and(|(least, most)| least != most)
        }
        varies(self.batches) || varies(self.requests) || varies(self.tokens) || varies(self.rows)
    }

    /// The name of both classes' steps together.
    fn joined(&self, other: &Self) -> Self {
        fn range<T: Ord + Copy>(a: Option<(T, T)>, b: Option<(T, T)>) -> Option<(T, T)> {
            let (a, b) = a.zip(b)?;
            Some((a.0.min(b.0), a.1.max(b.1)))
        }
        Self {
            batches: range(self.batches, other.batches),
            requests: range(self.requests, other.requests),
            tokens: range(self.tokens, other.tokens),
            context: range(self.context, other.context),
            rows: range(self.rows, other.rows),
            ..self.clone()
        }
    }

    /// What people read, such as `decode b=12…16 graph=full`.
    pub fn text(&self) -> String {
        fn shown<T: std::fmt::Display + PartialEq>((least, most): (T, T)) -> String {
            if least == most { least.to_string() } else { format!("{least}…{most}") }
        }
        let mut key = match self.stage {
            _ if self.whole => "capture".to_owned(),
            Stage::Unknown => "step".to_owned(),
            stage => stage.name().to_owned(),
        };
        for batch in [self.batches, self.requests].into_iter().flatten() {
            key += &format!(" b={}", shown(batch));
        }
        if let Some(tokens) = self.tokens {
            let name = if self.stage == Stage::Prefill { "tokens" } else { "prefill" };
            key += &format!(" {name}={}", shown(tokens));
        }
        if let Some((least, _)) = self.context {
            key += &format!(" ctx≥{least}");
        }
        if let Some(rows) = self.rows {
            key += &format!(" rows≈{}", shown(rows));
        }
        if let Some(ops) = self.ops {
            key += &format!(" ops≈{ops}");
        }
        let graph = match self.graph {
            GraphMode::Eager if self.captures => "capturing",
            GraphMode::Eager => "eager",
            GraphMode::Piecewise => "piecewise",
            GraphMode::Full => "full",
            GraphMode::Unknown => return key,
        };
        format!("{key} graph={graph}")
    }
}

/// The class of every step of a run, in order of time.
pub fn of(drafts: &[Draft]) -> Vec<Key> {
    let exact: Vec<Key> = drafts.iter().map(Key::exact).collect();
    let mut keys = by_churn(drafts, exact);
    // What tells steps apart that no annotation tells apart is their size.
    let by_rows = told_apart(drafts, &keys, |draft| draft.rows);
    for (key, rows) in keys.iter_mut().zip(by_rows) {
        key.rows = rows.map(|rows| (rows, rows));
    }
    let mut keys = by_churn(drafts, keys);
    let by_ops = told_apart(drafts, &keys, |draft| Some(draft.ops as u64));
    for (key, ops) in keys.iter_mut().zip(by_ops) {
        key.ops = ops;
    }
    keys
}

/// Steps of one stage and graph mode that the capture does not tell apart by anything else are one class, if their work
/// churns.
fn by_churn(drafts: &[Draft], mut keys: Vec<Key>) -> Vec<Key> {
    let mut rows: Vec<u64> = keys.iter().filter_map(|key| Some(key.rows?.0)).collect();
    rows.sort_unstable();
    rows.dedup();
    // Rows alone do not tell prompts from decoding: only those that a graph's next size explains are one population.
    let size = |key: &Key| {
        key.rows.map(|(of, _)| {
            let steps = rows.windows(2).filter(|w| w.last() <= Some(&of) && w[1] > NEXT_SIZE * w[0]);
            steps.count()
        })
    };
    let mut populations: BTreeMap<(Key, bool, Option<usize>), Vec<usize>> = BTreeMap::new();
    for (i, (draft, key)) in drafts.iter().zip(&keys).enumerate() {
        populations.entry((Key::kind(draft), key.batches.is_some(), size(key))).or_default().push(i);
    }
    for steps in populations.values() {
        let runs = runs(&keys, steps);
        if runs.len() < 2 || !churns(drafts, &keys, &runs) {
            continue;
        }
        let all = steps.iter().filter_map(|i| keys.get(*i)).cloned().reduce(|a, b| a.joined(&b));
        for i in steps {
            if let Some((key, all)) = keys.get_mut(*i).zip(all.as_ref()) {
                *key = all.clone();
            }
        }
    }
    keys
}

/// Steps in a row of the same class, as the steps' positions.
fn runs(keys: &[Key], steps: &[usize]) -> Vec<Vec<usize>> {
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for i in steps {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|last| keys.get(*last) == keys.get(*i)) => run.push(*i),
            _ => runs.push(vec![*i]),
        }
    }
    runs
}

/// Whether work changes again and again: not where each is held for long, nor where each is held for some steps, never comes
/// back and is no neighbour of the one before, as in a sweep.
fn churns(drafts: &[Draft], keys: &[Key], runs: &[Vec<usize>]) -> bool {
    let mut seen: Vec<&Key> = runs.iter().filter_map(|run| keys.get(*run.first()?)).collect();
    seen.sort();
    seen.dedup();
    let returns = seen.len() < runs.len();
    let mut lengths: Vec<usize> = runs.iter().map(Vec::len).collect();
    lengths.sort_unstable();
    // The first and the last run may be cut off by the capture.
    let held = |least: usize| lengths.iter().filter(|n| **n >= least).count() * 2 > lengths.len();
    let last_to_first = |w: &[Vec<usize>]| Some((*w.first()?.last()?, *w.get(1)?.first()?));
    let near = runs
        .windows(2)
        .filter_map(last_to_first)
        .filter(|(a, b)| drafts.get(*a).zip(drafts.get(*b)).is_some_and(|(a, b)| are_near(a, b)));
    let near = 2 * near.count() >= runs.len() - 1;
    let sweeps = !returns && (held(LONG) || (held(HELD) && !near));
    // A server that returns to a batch after a long time has two populations at most: what it held for long stays apart.
    !(sweeps || (held(LONG) && !near))
}

/// Whether two steps do nearly the same work.
fn are_near(a: &Draft, b: &Draft) -> bool {
    let near = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => a.max(b) as f64 <= NEAR * a.min(b).max(1) as f64 || a.abs_diff(b) <= 1,
        _ => true,
    };
    let (x, y) = (&a.facts, &b.facts);
    near(x.batch.map(u64::from), y.batch.map(u64::from))
        && near(x.prefill_tokens.map(u64::from), y.prefill_tokens.map(u64::from))
        && near(x.context, y.context)
        && near(a.rows, b.rows)
}

/// Cuts the steps that have the same key so far by a measure of them: for each the least value of its group, if its key has
/// several groups.
fn told_apart(drafts: &[Draft], keys: &[Key], of: impl Fn(&Draft) -> Option<u64>) -> Vec<Option<u64>> {
    let value = |draft: &Draft| of(draft).filter(|_| needs_size(draft));
    let mut values: BTreeMap<&Key, Vec<u64>> = BTreeMap::new();
    for (draft, key) in drafts.iter().zip(keys) {
        values.entry(key).or_default().extend(value(draft));
    }
    for list in values.values_mut() {
        list.sort_unstable();
        let mut groups: Vec<u64> = Vec::new();
        for value in list.iter() {
            if groups.last().is_none_or(|least| *value as f64 > *least as f64 * SAME_SIZE) {
                groups.push(*value);
            }
        }
        *list = groups;
    }
    let group = |(draft, key): (&Draft, &Key)| {
        let (groups, value) = (values.get(key).filter(|groups| groups.len() > 1)?, value(draft)?);
        groups.iter().rev().find(|least| **least <= value).copied()
    };
    drafts.iter().zip(keys).map(group).collect()
}

fn needs_size(draft: &Draft) -> bool {
    draft.facts.batch.is_none() && draft.facts.prefill_tokens.is_none()
}

/// Populations of several ranks, each named for all that are of its kind.
pub fn common(keys: &[&Key]) -> Vec<Key> {
    let kind =
        |key: &Key| Key { batches: None, requests: None, tokens: None, context: None, rows: None, ..key.clone() };
    let mut all: BTreeMap<Key, Key> = BTreeMap::new();
    for key in keys {
        all.entry(kind(key)).and_modify(|all| *all = all.joined(key)).or_insert_with(|| (*key).clone());
    }
    keys.iter().map(|key| all.get(&kind(key)).unwrap_or(key).clone()).collect()
}
