//! Which operators and kernels take the time of a class.

use std::collections::HashMap;

use model::{Detail, Ns, Trace};

use super::model::Copies;
use crate::analysis::{Class, CopyDir, DeviceOp, OpKind, Rank};

/// Operators and kernels listed by name; the rest is one row.
const TOP: usize = 12;

/// Device work of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Name; empty for all names that are not listed.
    pub name: String,
    /// Canonical operator.
    pub op: &'static str,
    /// Operations over the steps that count.
    pub count: u64,
    /// Time attributed to them and to nothing else, ns over the steps that count.
    pub busy: Ns,
    /// Idle time that they end, ns over the steps that count.
    pub idle: Ns,
}

/// Operators and kernels of a class by exclusive time, longest first, over the steps that count.
pub fn of(trace: &Trace, rank: &Rank, class: &Class) -> (Vec<Work>, Vec<Work>) {
    let works = works(rank, class);
    let by_op = |(_, op): &(_, &'static str)| (String::from(*op), *op);
    let by_name = |(name, op): &(model::StringId, &'static str)| (trace.strings.get(*name).to_owned(), *op);
    (top(&works, by_op), top(&works, by_name))
}

/// Copies of a class that say their bytes, by direction, over the steps that count.
pub fn copies(trace: &Trace, rank: &Rank, class: &Class) -> Vec<Copies> {
    let mut found: Vec<(CopyDir, Copies)> = Vec::new();
    for op in rank.steady_steps(class).flat_map(|step| rank.ops_of(step)) {
        let OpKind::Copy(dir) = op.kind else { continue };
        let said =
            trace.locate(op.slice).and_then(|(track, row)| trace.detail(trace.lanes.get(track.0 as usize)?, row));
        let Some(Detail::Copy(detail)) = said else { continue };
        let Some(bytes) = detail.bytes else { continue };
        let at = found.iter().position(|(known, _)| *known == dir).unwrap_or_else(|| {
            found.push((dir, Copies { name: dir.name(), count: 0, bytes: 0, time: 0 }));
            found.len() - 1
        });
        if let Some((_, sum)) = found.get_mut(at) {
            sum.count += 1;
            sum.bytes = sum.bytes.saturating_add(bytes);
            sum.time = sum.time.saturating_add(op.dur());
        }
    }
    found.sort_by_key(|(dir, _)| *dir);
    found.into_iter().map(|(_, copies)| copies).collect()
}

/// Count, busy and idle ns by device name and operator over the steps of the class that count.
type Works = HashMap<(model::StringId, &'static str), (u64, Ns, Ns)>;

/// Counts the device work of the steps of a class that count.
fn works(rank: &Rank, class: &Class) -> Works {
    let mut works = Works::new();
    let name = |op: &DeviceOp| match op.kind {
        OpKind::Copy(dir) => dir.name(),
        OpKind::Opaque => "graph",
        OpKind::Compute | OpKind::Comm => op.op.name(),
    };
    for step in rank.steady_steps(class) {
        let exclusive = rank.exclusive.get(step.ops.clone()).unwrap_or(&[]);
        for (op, exclusive) in rank.ops_of(step).iter().zip(exclusive) {
            let work = works.entry((op.name, name(op))).or_default();
            work.0 += 1;
            work.1 = work.1.saturating_add(exclusive.busy);
            work.2 = work.2.saturating_add(exclusive.idle);
        }
    }
    works
}

/// The longest works under the name that `key` gives them, and one row for the rest.
fn top<K>(works: &HashMap<K, (u64, Ns, Ns)>, key: impl Fn(&K) -> (String, &'static str)) -> Vec<Work> {
    let mut merged: HashMap<(String, &'static str), (u64, Ns, Ns)> = HashMap::new();
    for (work, (count, busy, idle)) in works {
        let sum = merged.entry(key(work)).or_default();
        *sum = (sum.0 + count, sum.1.saturating_add(*busy), sum.2.saturating_add(*idle));
    }
    let row = |((name, op), (count, busy, idle))| Work { name, op, count, busy, idle };
    let mut rows: Vec<Work> = merged.into_iter().map(row).collect();
    rows.sort_by(|a, b| b.busy.cmp(&a.busy).then_with(|| a.name.cmp(&b.name)).then_with(|| a.op.cmp(b.op)));
    if rows.len() > TOP + 1 {
        let rest = rows.split_off(TOP);
        let sum = |pick: fn(&Work) -> Ns| rest.iter().fold(0, |sum: Ns, w| sum.saturating_add(pick(w)));
        rows.push(Work {
            name: String::new(),
            op: "",
            count: rest.iter().map(|w| w.count).sum(),
            busy: sum(|w| w.busy),
            idle: sum(|w| w.idle),
        });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_the_works_is_one_row_and_nothing_is_lost() {
        let works: HashMap<u32, (u64, Ns, Ns)> = (0..20).map(|i| (i, (1, Ns::from(i), 1))).collect();
        let rows = top(&works, |i| (format!("k{i:02}"), "gemm"));
        assert_eq!(rows.len(), TOP + 1);
        assert_eq!(rows.first().map(|w| w.name.as_str()), Some("k19"));
        assert_eq!(rows.iter().map(|w| w.busy).sum::<Ns>(), 190);
        assert_eq!(rows.last().map(|w| (w.name.as_str(), w.count, w.idle)), Some(("", 8, 8)));
    }
}
