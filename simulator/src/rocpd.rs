//! rocpd, the database of rocprofv3, schema 3: every table carries the id of its process's capture, and a database may hold
//! several. A call and what it caused share a stack id; the correlation id is 0 as in real files. Of the host there are
//! calls of HIP and the markers of the program; operators and interpreter frames are not recorded, and fills are kernels.

use std::path::Path;

use sqlx::AssertSqlSafe;

use crate::{
    database,
    forward::shape,
    inserts::{Cell, Inserts},
    job::Job,
    kernel::Vendor,
    record::{DeviceOp, Direction, HostEvent, HostKind, Work},
    run::{Run, WriteError},
    texts::Texts,
};

/// When the machine of the simulated job had booted (ns): times are counted from there.
const BOOTED: i64 = 1_000_000_000_000_000;
/// Stack ids of markers begin beyond those of calls.
const MARKERS: i64 = 1 << 32;
/// The kernel that fills memory.
const FILL: &str = "__amd_rocclr_fillBufferAligned";
/// Streams are numbered apart from the queues that they use.
const STREAMS: i64 = 8;
/// Numbers in the tables: the node, the process, and the agents, of which the first is the CPU.
const NODE: i64 = 1;
const PROCESS: i64 = 1;
const CPU: i64 = 1;
const FIRST_GPU: i64 = 2;

impl Job {
    /// Writes one database with a capture per rank. The processes of a host share its clock, so the times are true ones.
    pub fn write_rocpd(&self, path: &Path) -> Result<(), WriteError> {
        for run in &self.ranks {
            run.expect_vendor("rocprofv3", &[Vendor::Rocm], path)?;
        }
        // One more than there are ranks: the one that peers' copies come from.
        let gpus = i64::try_from(self.ranks.len()).unwrap_or(1) + 1;
        database::create(path, async |db| {
            for run in &self.ranks {
                let suffix = format!("_{:08x}_92cb_7aa1_b2c3_000000000000", run.pid());
                // The views show one capture; merged databases keep those of the first.
                let schema = include_str!("rocpd_schema.sql").replace('@', &suffix);
                let schema = schema.replace("CREATE VIEW", "CREATE VIEW IF NOT EXISTS");
                sqlx::raw_sql(AssertSqlSafe(schema)).execute(&mut *db).await?;
                let mut rows = Rows::default();
                run.rocpd(&mut rows, gpus);
                let Rows { mut inserts, texts, kernels, .. } = rows;
                for (text, id) in texts.rows() {
                    inserts.row("INSERT INTO rocpd_string@ (id, string) VALUES (?, ?)", [id.into(), text.into()]);
                }
                for (name, id) in kernels.rows() {
                    let mangled = format!("{name}.kd");
                    inserts.row(
                        "INSERT INTO rocpd_info_kernel_symbol@ (id, nid, pid, kernel_name, display_name) VALUES (?, 1, 1, ?, ?)",
                        [id.into(), mangled.into(), name.into()],
                    );
                }
                inserts.write(db, &suffix).await?;
            }
            Ok(())
        })
    }
}

/// Rows under way.
#[derive(Default)]
struct Rows {
    inserts: Inserts,
    texts: Texts,
    kernels: Texts,
    events: i64,
}

impl Rows {
    /// An event of a category; its number.
    fn event(&mut self, category: &str, stack: Option<i64>, more: &str) -> i64 {
        self.events += 1;
        let category = self.texts.id(category);
        self.inserts.row(
            "INSERT INTO rocpd_event@ (id, category_id, stack_id, parent_stack_id, correlation_id, extdata) VALUES (?, ?, ?, 0, 0, ?)",
            [self.events.into(), category.into(), stack.unwrap_or(0).into(), more.into()],
        );
        self.events
    }

    fn region(&mut self, name: &str, time: (i64, i64), thread: i64, event: i64) {
        let name = self.texts.id(name);
        self.inserts.row(
            "INSERT INTO rocpd_region@ (nid, pid, tid, start, end, name_id, event_id) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [NODE, PROCESS, thread, BOOTED + time.0, BOOTED + time.1, name, event].map(Cell::from),
        );
    }
}

impl Run {
    fn rocpd(&self, rows: &mut Rows, gpus: i64) {
        self.rocpd_about(rows, gpus);
        for (number, event) in (MARKERS..).zip(&self.host) {
            self.rocpd_host(rows, number, event);
        }
        for (dispatch, op) in (1..).zip(self.kept()) {
            self.rocpd_device(rows, dispatch, op);
        }
    }

    fn rocpd_about(&self, rows: &mut Rows, gpus: i64) {
        let (start, end) = self.extent();
        for (tag, value) in [("schema_version", "3"), ("strato_simulated", "true")] {
            rows.inserts.row("INSERT INTO rocpd_metadata@ (tag, value) VALUES (?, ?)", [tag.into(), value.into()]);
        }
        rows.inserts.row("INSERT INTO rocpd_info_node@ (id, hostname) VALUES (?, 'simulated')", [NODE.into()]);
        rows.inserts.row(
            "INSERT INTO rocpd_info_process@ (id, nid, pid, start, end, command) VALUES (?, ?, ?, ?, ?, 'VLLM::EngineCore (simulated)')",
            [PROCESS, NODE, self.pid(), BOOTED + start, BOOTED + end].map(Cell::from),
        );
        rows.inserts.row(
            "INSERT INTO rocpd_info_thread@ (id, nid, pid, tid, name) VALUES (?, ?, ?, ?, 'python3')",
            [self.pid(), NODE, PROCESS, self.pid()].map(Cell::from),
        );
        rows.inserts.row(
            "INSERT INTO rocpd_info_agent@ (id, nid, pid, type, absolute_index, logical_index, type_index, name) VALUES (?, ?, ?, 'CPU', 0, 0, 0, 'simulated CPU')",
            [CPU, NODE, PROCESS].map(Cell::from),
        );
        for gpu in 0..gpus {
            rows.inserts.row(
                "INSERT INTO rocpd_info_agent@ (id, nid, pid, type, absolute_index, logical_index, type_index, name, product_name) VALUES (?, ?, ?, 'GPU', ?, ?, ?, 'gfx942', 'SIMULATED GPU (ROCm)')",
                [FIRST_GPU + gpu, NODE, PROCESS, 1 + gpu, 1 + gpu, gpu].map(Cell::from),
            );
        }
    }

    fn rocpd_host(&self, rows: &mut Rows, number: i64, event: &HostEvent) {
        let time = (event.start, event.end);
        match event.kind {
            HostKind::UserRange | HostKind::Compile => {
                let message = serde_json::json!({"message": event.name}).to_string();
                let id = rows.event("MARKER_CORE_RANGE_API", Some(number), &message);
                rows.region("roctxThreadRangeA", time, self.pid(), id);
            }
            kind if kind.is_api() => {
                let id = rows.event("HIP_RUNTIME_API_EXT", event.correlation, "{}");
                rows.region(&event.name, time, self.pid(), id);
            }
            _ => {}
        }
    }

    fn rocpd_device(&self, rows: &mut Rows, dispatch: i64, op: &DeviceOp) {
        let stack = self.host[op.call].correlation;
        let (start, end) = (BOOTED + op.start, BOOTED + op.end);
        let (thread, gpu, queue) = (self.pid(), FIRST_GPU + self.device(), i64::try_from(op.stream).unwrap_or(0) + 1);
        let stream = STREAMS + queue;
        let (name, threads) = match op.work {
            Work::Copy { direction, .. } => {
                let (name, from, to) = match direction {
                    Direction::HostToDevice => ("MEMORY_COPY_HOST_TO_DEVICE", CPU, gpu),
                    Direction::DeviceToHost => ("MEMORY_COPY_DEVICE_TO_HOST", gpu, CPU),
                    Direction::DeviceToDevice => ("MEMORY_COPY_DEVICE_TO_DEVICE", gpu, gpu),
                    Direction::PeerToPeer => ("MEMORY_COPY_DEVICE_TO_DEVICE", gpu + 1, gpu),
                };
                let event = rows.event("MEMORY_COPY", stack, "{}");
                let name = rows.texts.id(name);
                rows.inserts.row(
                    "INSERT INTO rocpd_memory_copy@ (nid, pid, tid, start, end, name_id, dst_agent_id, src_agent_id, size, queue_id, stream_id, event_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    [NODE, PROCESS, thread, start, end, name, to, from, op.bytes, 0, stream, event].map(Cell::from),
                );
                return;
            }
            Work::Memset => (FILL, 256),
            Work::Compute(_) | Work::Collective { .. } => {
                let class = op.slot.and_then(|slot| slot.card().class);
                (op.kernel(self.config.vendor), shape::threads(class))
            }
        };
        let event = rows.event("KERNEL_DISPATCH", stack, "{}");
        let kernel = rows.kernels.id(name);
        // The grid is in work items.
        let items = op.blocks.max(1) * threads;
        rows.inserts.row(
            "INSERT INTO rocpd_kernel_dispatch@ (nid, pid, tid, agent_id, kernel_id, dispatch_id, queue_id, stream_id, start, end, workgroup_size_x, workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, grid_size_z, event_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 1, ?, 1, 1, ?)",
            [
                NODE, PROCESS, thread, gpu, kernel, dispatch, queue, stream, start, end, threads, items, event,
            ]
            .map(Cell::from),
        );
    }
}
