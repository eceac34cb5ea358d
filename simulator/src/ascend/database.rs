//! The database form, schema 1.2: times in nanoseconds of the wall clock, texts by number. Like the real exporter it leaves
//! out tables that would have no rows.

use std::path::Path;

use super::{
    NONE, Recorded,
    device::{Collective, Part, Task, What},
    host::{self, Layer},
};
use crate::{
    clock::EPOCH,
    database,
    inserts::{Cell, Inserts},
    record::{Direction, HostEvent},
    run::WriteError,
    texts::Texts,
};

/// Tables that the exporter leaves out when they are empty.
const LAZY: [&str; 8] = [
    "PYTORCH_API",
    "CONNECTION_IDS",
    "GC_RECORD",
    "COMPUTE_TASK_INFO",
    "COMMUNICATION_OP",
    "COMMUNICATION_TASK_INFO",
    "MEMCPY_INFO",
    "TASK",
];
/// Kinds of rows of the framework.
const OPERATOR: i64 = 50_001;
const FUNCTION: i64 = 50_003;
/// `BFP16` in the table of types.
const BFLOAT16: i64 = 11;

/// What stands for a type, and for a number of 16 bits, that level 0 does not know.
const UNKNOWN: &str = "N/A";
const NO: i64 = 65_534;

/// Rows under way.
#[derive(Default)]
struct Rows {
    inserts: Inserts,
    texts: Texts,
}

impl Recorded {
    /// Writes the database.
    pub(super) fn database(&self, path: &Path) -> Result<(), WriteError> {
        let mut rows = Rows::default();
        self.about(&mut rows);
        let thread = (self.run.pid() << 32) | self.run.pid();
        for (index, event) in self.run.host.iter().enumerate() {
            host_row(&mut rows, self, (index, event), thread);
        }
        for event in &self.run.other {
            framework_row(&mut rows, event, thread + 1, FUNCTION);
        }
        for (id, task) in (0..).zip(&self.device.tasks) {
            self.task_row(&mut rows, id, task);
        }
        for (id, collective) in (1..).zip(&self.device.collectives) {
            self.collective_row(&mut rows, id, collective);
        }
        let Rows { mut inserts, texts } = rows;
        for (text, id) in texts.rows() {
            inserts.row("INSERT INTO STRING_IDS VALUES (?, ?)", [id.into(), text.into()]);
        }
        database::create(path, async |db| {
            sqlx::raw_sql(include_str!("schema.sql")).execute(&mut *db).await?;
            inserts.write(db, "").await?;
            database::drop_empty(db, &LAZY).await
        })
    }

    fn about(&self, rows: &mut Rows) {
        let (start, end) = self.run.extent();
        let device = self.run.device();
        if self.is_detailed() {
            let parallel = self.parallel().to_string();
            rows.inserts.row("INSERT INTO META_DATA VALUES ('distributed_args', ?)", [parallel.into()]);
        }
        rows.inserts.row("INSERT INTO SESSION_TIME_INFO VALUES (?, ?)", [(EPOCH + start).into(), (EPOCH + end).into()]);
        rows.inserts.row("INSERT INTO NPU_INFO VALUES (?, 'SIMULATED NPU (Ascend)')", [device.into()]);
        rows.inserts.row("INSERT INTO HOST_INFO VALUES (?, 'simulated')", ["0".into()]);
        rows.inserts.row("INSERT INTO RANK_DEVICE_MAP VALUES (?, ?)", [device.into(), device.into()]);
    }

    fn task_row(&self, rows: &mut Rows, id: i64, task: &Task) {
        let (device, pid) = (self.run.device(), self.run.pid());
        let kind = rows.texts.id(&scheduled(task));
        rows.inserts.row(
            "INSERT INTO TASK VALUES (?, ?, ?, ?, ?, ?, ?, 4294967295, ?, ?, ?)",
            [
                EPOCH + task.start,
                EPOCH + task.end,
                device,
                task.connection,
                id,
                pid,
                kind,
                task.stream,
                id % 65_536,
                task.model,
            ]
            .map(Cell::from),
        );
        match task.what {
            What::Kernel { name, blocks, .. } => {
                let kind = name.rsplit('_').next().unwrap_or(name);
                let known = if self.is_detailed() { [name, task.kind(), kind] } else { [name, UNKNOWN, UNKNOWN] };
                let [name, core, kind] = known.map(|text| rows.texts.id(text));
                let blocks = if self.is_detailed() { blocks } else { 0 };
                rows.inserts.row(
                    "INSERT INTO COMPUTE_TASK_INFO VALUES (?, ?, ?, 0, ?, ?, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
                    [name, id, blocks, core, kind].map(Cell::from),
                );
            }
            What::Copy { .. } if !self.is_detailed() => {}
            What::Copy { direction, bytes } => {
                let operation = match direction {
                    Direction::HostToDevice => 1,
                    Direction::DeviceToHost => 2,
                    Direction::DeviceToDevice | Direction::PeerToPeer => 3,
                };
                rows.inserts.row("INSERT INTO MEMCPY_INFO VALUES (?, ?, ?)", [id, bytes, operation].map(Cell::from));
            }
            What::Fill | What::EventWait => {}
            What::Part { part, collective, plane, peer, bytes } => {
                let Some(whole) = self.device.collectives.get(collective) else { return };
                let kind = if self.is_detailed() { part.name() } else { UNKNOWN };
                let group = whole.group.name();
                let [name, kind, group] = [&whole.name, kind, &group].map(|text| rows.texts.id(text));
                let operation = i64::try_from(collective).unwrap_or(NONE) + 1;
                let main = i64::from(plane == 0);
                let row = if self.is_detailed() {
                    [name, id, kind, plane, group, id, 65_535, device, peer, 0, bytes, BFLOAT16, 1, operation, main]
                } else {
                    [name, id, kind, NONE, group, 0, NO, NONE, NONE, NO, -1, NO, NO, operation, 0]
                };
                rows.inserts.row(
                    "INSERT INTO COMMUNICATION_TASK_INFO VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    row.map(Cell::from),
                );
            }
        }
    }

    fn collective_row(&self, rows: &mut Rows, id: i64, collective: &Collective) {
        let op = if self.is_detailed() { collective.op } else { UNKNOWN };
        let size = i64::try_from(collective.group.ranks.len()).ok().filter(|_| self.is_detailed());
        let group = collective.group.name();
        let [name, group, algorithm, op] =
            [collective.name.as_str(), &group, "MESH", op].map(|text| rows.texts.id(text));
        rows.inserts.row(
            "INSERT INTO COMMUNICATION_OP VALUES (?, ?, ?, ?, ?, ?, 0, 0, ?, ?, ?, ?, ?, ?)",
            [
                name.into(),
                (EPOCH + collective.start).into(),
                (EPOCH + collective.end).into(),
                collective.connection.into(),
                group.into(),
                id.into(),
                BFLOAT16.into(),
                algorithm.into(),
                collective.count.into(),
                op.into(),
                self.run.device().into(),
                size.into(),
            ],
        );
    }
}

/// Type of a task in the words of the scheduler.
fn scheduled(task: &Task) -> String {
    match task.what {
        What::Kernel { .. } => format!("KERNEL_{}", task.kind().replace("AI_VECTOR_CORE", "AIVEC").replace('_', "")),
        What::Copy { .. } => "MEMCPY_ASYNC".to_owned(),
        What::Fill => "MEMSET_ASYNC".to_owned(),
        What::EventWait => "EVENT_WAIT".to_owned(),
        What::Part { part: Part::Record, .. } => "Write Value".to_owned(),
        What::Part { part, .. } => part.task().to_owned(),
    }
}

fn host_row(rows: &mut Rows, recorded: &Recorded, (index, event): (usize, &HostEvent), thread: i64) {
    match host::layer(event) {
        None => {}
        Some(Layer::Operator) => framework_row(rows, event, thread, OPERATOR),
        Some(Layer::Function) => framework_row(rows, event, thread, FUNCTION),
        Some(Layer::Collection) => rows.inserts.row(
            "INSERT INTO GC_RECORD VALUES (?, ?, ?)",
            [EPOCH + event.start, EPOCH + event.end, thread].map(Cell::from),
        ),
        Some(Layer::Call(level)) => {
            for call in recorded.calls_of(index, event, level) {
                let name = rows.texts.id(call.name);
                let time = [EPOCH + call.start, EPOCH + call.end];
                rows.inserts.row(
                    "INSERT INTO CANN_API VALUES (?, ?, ?, ?, ?, ?)",
                    [time[0], time[1], call.level.known().1, thread, call.connection, name].map(Cell::from),
                );
                // What an operator caused is tied to it by the number that both have.
                if let Some(operator) = event.external {
                    let row = [operator, call.connection].map(Cell::from);
                    rows.inserts.row("INSERT INTO CONNECTION_IDS VALUES (?, ?)", row);
                }
            }
        }
    }
}

/// A row of the framework's profiler, whose times are text.
fn framework_row(rows: &mut Rows, event: &HostEvent, thread: i64, kind: i64) {
    let name = rows.texts.id(&event.name);
    let (shapes, types) = host::inputs(event).unzip();
    let [types, shapes] = [types, shapes].map(|text| Cell::Int(text.map(|text| rows.texts.id(&text))));
    let [start, end] = [event.start, event.end].map(|time| Cell::Text((EPOCH + time).to_string()));
    rows.inserts.row(
        "INSERT INTO PYTORCH_API VALUES (?, ?, ?, ?, ?, -1, NULL, ?, ?, NULL, ?)",
        [start, end, thread.into(), event.external.into(), name.into(), types, shapes, kind.into()],
    );
}
