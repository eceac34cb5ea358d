//! Calls of CANN, operators of the framework, ranges of the program.

use model::{Category, Detail, OpDetail, TrackKey, TrackKind};

use super::{
    super::import::{self, NONE},
    state::{Kept, State},
};
use crate::sqlite::page::{
    Column::{self, Decimal, Int},
    Page,
};

/// Columns of [`calls`]. In 2023 times were text and the level had a column of that name.
pub(super) const CALL: &[Column] = &[
    Decimal("startNs", &["start"]),
    Decimal("endNs", &["end"]),
    Int("globalTid", &[]),
    Int("type", &["level"]),
    Int("connectionId", &[]),
    Int("name", &[]),
];

/// `CANN_API`, before schema 1.0 `API`.
pub(super) fn calls(state: &mut State<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let [Some(start), Some(end), Some(tid), level, connection, name] = page.ints(row) else {
            kept.incomplete += 1;
            continue;
        };
        state.note_host(tid);
        let (process, tid) = state.thread(tid);
        let track = state.import.thread(process, tid);
        let level = level.and_then(|level| state.levels.get(&level)).map_or("", String::as_str);
        let category = import::call_category(level);
        let name = state.name(name);
        let connection = connection.filter(|id| *id != NONE);
        state.import.slice(track, (start, end), name, category, connection, None);
        kept.add(start, end);
    }
    kept
}

/// Columns of [`operators`]. Times are text.
pub(super) const OPERATOR: &[Column] = &[
    Decimal("startNs", &[]),
    Decimal("endNs", &[]),
    Int("globalTid", &[]),
    Int("name", &[]),
    Int("type", &[]),
    Int("inputShapes", &[]),
    Int("inputDtypes", &[]),
];

/// Kinds of `PYTORCH_API` rows in `ENUM_API_TYPE`: operators, the task queue, Python functions, marks.
const OP: i64 = 50_001;
const QUEUE: i64 = 50_002;
const PYTHON: i64 = 50_003;

/// `PYTORCH_API`.
pub(super) fn operators(state: &mut State<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let [Some(start), Some(end), Some(tid), name, kind, shapes, dtypes] = page.ints(row) else {
            kept.incomplete += 1;
            continue;
        };
        state.note_host(tid);
        let (process, tid) = state.thread(tid);
        let track = state.import.thread(process, tid);
        let category = match kind {
            Some(OP) => {
                let text = name.and_then(|n| state.strings.get(&n)).map_or("", AsRef::as_ref);
                state.marked |= text.starts_with(STEP);
                import::framework_category(text)
            }
            Some(PYTHON) => Category::PythonFrame,
            Some(QUEUE) => Category::HostOther,
            _ => Category::UserRange,
        };
        let detail = (category == Category::FrameworkOp).then(|| op_detail(state, shapes, dtypes)).flatten();
        let name = state.name(name);
        state.import.slice(track, (start, end), name, category, None, detail.as_ref());
        kept.add(start, end);
    }
    kept
}

fn op_detail(state: &mut State<'_>, shapes: Option<i64>, dtypes: Option<i64>) -> Option<Detail> {
    let json = |id: Option<i64>, json: fn(&str) -> String| {
        id.and_then(|id| state.strings.get(&id)).filter(|text| !text.is_empty()).map(|text| json(text))
    };
    let (shapes, dtypes) = (json(shapes, import::shapes_json), json(dtypes, import::words_json));
    let sink = &mut *state.import.sink;
    let detail = OpDetail { shapes: shapes.map(|s| sink.intern(&s)), dtypes: dtypes.map(|d| sink.intern(&d)) };
    (detail != OpDetail::default()).then_some(Detail::Op(detail))
}

/// How the framework's profiler calls a step.
const STEP: &str = "ProfilerStep#";

/// Columns of [`steps`].
pub(super) const STEPS: &[Column] = &[Decimal("id", &[]), Decimal("startNs", &[]), Decimal("endNs", &[])];

/// `STEP_TIME`: the steps, as the host's ranges mark them in `PYTORCH_API`; the only marks where that table is not there. What the
/// device did in them by time is what torch_npu itself sums as the step (`StepTraceTime` of `analysis.db`, 2025).
pub(super) fn steps(state: &mut State<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    let rows = if state.marked { 0 } else { page.rows };
    for row in 0..rows {
        let [Some(id), Some(start), Some(end)] = page.ints(row) else {
            kept.incomplete += 1;
            continue;
        };
        let process = state.process(0);
        let device = Some(state.import.only_device());
        let key = TrackKey { kind: TrackKind::DeviceAnnotation, process, device, context: Some(2), id: 0 };
        let track = state.import.track(key, Some("steps"));
        let name = state.import.sink.intern(&format!("{STEP}{id}"));
        state.import.slice(track, (start, end), name, Category::DeviceRange, None, None);
        kept.add(start, end);
    }
    kept
}

/// Columns of [`collections`].
pub(super) const SPAN: &[Column] = &[Decimal("startNs", &[]), Decimal("endNs", &[]), Int("globalTid", &[])];

/// `GC_RECORD`: garbage collections of the interpreter.
pub(super) fn collections(state: &mut State<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    let name = state.import.sink.intern("GC");
    for row in 0..page.rows {
        let [Some(start), Some(end), Some(tid)] = page.ints(row) else {
            kept.incomplete += 1;
            continue;
        };
        let (process, tid) = state.thread(tid);
        let track = state.import.thread(process, tid);
        state.import.slice(track, (start, end), name, Category::Gc, None, None);
        kept.add(start, end);
    }
    kept
}

/// Columns of [`ranges`].
pub(super) const RANGE: &[Column] = &[
    Decimal("startNs", &[]),
    Decimal("endNs", &[]),
    Int("globalTid", &[]),
    Int("endGlobalTid", &[]),
    Int("message", &[]),
];

/// `MSTX_EVENTS`: what the program marked. A range that ends on another thread belongs to none.
pub(super) fn ranges(state: &mut State<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let [Some(start), Some(end), Some(tid), end_tid, message] = page.ints(row) else {
            kept.incomplete += 1;
            continue;
        };
        let (process, thread) = state.thread(tid);
        let track = if end_tid.is_none_or(|end| end == tid) {
            state.import.thread(process, thread)
        } else {
            let key = TrackKey { kind: TrackKind::Global, process, device: None, context: None, id: 0 };
            state.import.track(key, Some("ranges"))
        };
        let name = state.name(message);
        state.import.slice(track, (start, end), name, Category::UserRange, None, None);
        kept.add(start, end);
    }
    kept
}
