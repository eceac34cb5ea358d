//! What other tables say of a task, by its global id.

use model::Severity;
use rustc_hash::FxHashMap;

use super::state::{Kept, State};
use crate::sqlite::page::{
    Column::{self, Int, Real},
    Page,
};

/// An operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compute {
    pub name: Option<i64>,
    pub blocks: Option<u32>,
    /// Strings that say the operator's type, and shapes, types and formats of its inputs.
    pub told: [Option<i64>; 4],
}

/// A collective: its name, and its number among those of one name.
pub(super) type Numbered = (Option<i64>, Option<i64>);

/// A task inside a collective.
#[derive(Clone, Copy, Debug)]
pub(super) struct Communication {
    /// The collective that it is part of.
    pub of: Numbered,
    pub task_type: Option<i64>,
    pub plane: i64,
    pub own: Option<i64>,
    pub peer: Option<i64>,
}

/// A copy: bytes and direction.
pub(super) type Copy = (Option<i64>, Option<i64>);

/// What is known of tasks before they are read.
#[derive(Default)]
pub(super) struct Infos {
    pub compute: FxHashMap<i64, Compute>,
    pub communication: FxHashMap<i64, Communication>,
    pub copies: FxHashMap<i64, Copy>,
    /// Counters by their numbers in [`State::counted`].
    pub counters: FxHashMap<i64, Vec<(usize, f64)>>,
    values: usize,
}

/// Most values of counters that are kept in mind until their tasks are read: 30 for each of a hundred thousand tasks.
const MOST_VALUES: usize = 1 << 22;

/// Columns of [`compute`]. `blockNum` is the number of cores where it exists; `blockDim` then refers to a string. In 2023
/// tasks were tied by `correlationId` and cores stood in `block_dim`.
pub(super) const COMPUTE: &[Column] = &[
    Int("name", &[]),
    Int("globalTaskId", &["correlationId"]),
    Int("blockNum", &["blockDim", "block_dim"]),
    Int("opType", &[]),
    Int("inputShapes", &[]),
    Int("inputDataTypes", &[]),
    Int("inputFormats", &[]),
];

/// `COMPUTE_TASK_INFO`: the operators.
pub(super) fn compute(state: &mut State<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let [name, Some(id), blocks, op, shapes, dtypes, formats] = page.ints(row) else {
            kept.incomplete += 1;
            continue;
        };
        let blocks = blocks.and_then(|blocks| u32::try_from(blocks).ok());
        state.infos.compute.insert(id, Compute { name, blocks, told: [op, shapes, dtypes, formats] });
        kept.rows += 1;
    }
    kept
}

/// Columns of [`communication`].
pub(super) const COMMUNICATION: &[Column] = &[
    Int("globalTaskId", &["correlationId"]),
    Int("taskType", &[]),
    Int("planeId", &[]),
    Int("srcRank", &[]),
    Int("dstRank", &[]),
    Int("name", &[]),
    Int("opId", &[]),
];

/// `COMMUNICATION_TASK_INFO`: what collectives are made of.
pub(super) fn communication(state: &mut State<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let [Some(id), task_type, plane, own, peer, name, number] = page.ints(row) else {
            kept.incomplete += 1;
            continue;
        };
        let info = Communication { of: (name, number), task_type, plane: plane.unwrap_or(0), own, peer };
        state.infos.communication.insert(id, info);
        kept.rows += 1;
    }
    kept
}

/// Columns of [`copies`].
pub(super) const COPY: &[Column] = &[Int("globalTaskId", &[]), Int("size", &[]), Int("memcpyOperation", &[])];

/// `MEMCPY_INFO`, since schema 1.1.
pub(super) fn copies(state: &mut State<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let [Some(id), size, operation] = page.ints(row) else {
            kept.incomplete += 1;
            continue;
        };
        state.infos.copies.insert(id, (size, operation));
        kept.rows += 1;
    }
    kept
}

/// Columns of [`counters`].
pub(super) const PMU: &[Column] = &[Int("globalTaskId", &[]), Int("name", &[]), Real("value")];

/// `TASK_PMU_INFO`: what the counters of the cores say of a task, a row for each. Times are in ns here, in tables in µs.
pub(super) fn counters(state: &mut State<'_>, page: &Page) -> Kept {
    let (mut kept, mut beyond) = (Kept::default(), 0);
    for row in 0..page.rows {
        let ([Some(id), Some(name)], Some(value)) = (page.ints(row), page.real(2, row)) else {
            kept.incomplete += 1;
            continue;
        };
        let number = match state.strings.get(&name) {
            Some(text) => state.counted.name(text),
            None => state.counted.name(&format!("#{name}")),
        };
        let Some(number) = number.filter(|_| value.is_finite() && state.infos.values < MOST_VALUES) else {
            beyond += 1;
            continue;
        };
        state.infos.values += 1;
        state.infos.counters.entry(id).or_default().push((number, value));
        kept.rows += 1;
    }
    state.import.stat("counters_beyond_limit", Severity::Notice, beyond, None);
    kept
}
