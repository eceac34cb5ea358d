//! Nsight Systems' SQLite export, schema 3.25: times in nanoseconds from the start of the capture. Like the real
//! exporter it leaves out tables that would have no rows.

use std::path::Path;

use sqlx::SqliteConnection;

use crate::{
    clock::EPOCH,
    database,
    forward::shape,
    inserts::{Cell, Inserts},
    kernel::Vendor,
    kineto::STREAM_IDS,
    record::{DeviceOp, Direction, HostEvent, HostKind, SyncOn, Work},
    run::{Run, WriteError},
    texts::Texts,
};

/// Id that says "no event".
const NO_EVENT: i64 = 0xffff_ffff;

/// Tables that the exporter leaves out when they are empty.
const LAZY: [&str; 9] = [
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "CUPTI_ACTIVITY_KIND_OVERHEAD",
    "NVTX_EVENTS",
    "StringIds",
];

/// Call name with the suffix by which CUPTI tells versions of a call apart.
fn versioned(name: &str) -> String {
    match name {
        "cudaLaunchKernel" => format!("{name}_v7000"),
        "cudaGraphLaunch" => format!("{name}_v10000"),
        _ if name.starts_with("cuda") => format!("{name}_v3020"),
        _ => name.to_owned(),
    }
}

/// Name of a kernel without namespaces, template and arguments.
fn short(name: &str) -> String {
    let name = name.strip_prefix("void ").unwrap_or(name).replace("(anonymous namespace)::", "");
    let head = name.split(['<', '(']).next().unwrap_or_default();
    head.rsplit("::").next().unwrap_or_default().to_owned()
}

/// Writes `runs`, a process each, as one nsys SQLite export in the place of any file there.
pub(crate) fn write(runs: &[&Run], path: &Path) -> Result<(), WriteError> {
    for run in runs {
        run.expect_vendor("Nsight Systems", &[Vendor::Cuda], path)?;
    }
    database::create(path, async |db| export(runs, db).await)
}

async fn export(runs: &[&Run], db: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::raw_sql(include_str!("nsys_schema.sql")).execute(&mut *db).await?;
    let mut texts = Texts::default();
    if let Some(first) = runs.first() {
        about(db, runs, first.config.graph_level_trace).await?;
    }
    let mut inserts = Inserts::default();
    for run in runs {
        run.rows(&mut inserts, &mut texts);
        run.whereabouts(db, &mut texts).await?;
    }
    for (text, id) in texts.rows() {
        inserts.row("INSERT INTO StringIds VALUES (?, ?)", [id.into(), text.into()]);
    }
    inserts.write(db, "").await?;
    database::drop_empty(db, &LAZY).await
}

/// What the export says of itself and the capture.
async fn about(db: &mut SqliteConnection, runs: &[&Run], graph_level: bool) -> sqlx::Result<()> {
    let end = runs.iter().map(|run| run.extent().1).max();
    let export = [
        ("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"),
        ("EXPORT_PRODUCT_VERSION", "2026.2.1.210"),
        ("EXPORT_SCHEMA_VERSION", "3.25.0"),
        ("strato_simulated", "true"),
    ];
    for (name, value) in export {
        sqlx::query("INSERT INTO META_DATA_EXPORT VALUES (?, ?)").bind(name).bind(value).execute(&mut *db).await?;
    }
    sqlx::query("INSERT INTO META_DATA_CAPTURE VALUES ('CUDA_GRAPH_TRACE_OPTIONS:MODE', ?)")
        .bind(if graph_level { "Graph" } else { "Node" })
        .execute(&mut *db)
        .await?;
    sqlx::query("INSERT INTO ANALYSIS_DETAILS VALUES (?, ?, 0, ?)")
        .bind(1_i64 << 48)
        .bind(end)
        .bind(end)
        .execute(&mut *db)
        .await?;
    sqlx::query(
        "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?, '2025-12-31T13:55:12', '2025-12-31T13:55:12', 0)",
    )
    .bind(EPOCH)
    .execute(&mut *db)
    .await?;
    Ok(())
}

impl Run {
    /// Writes the run as an nsys SQLite export, in the place of any file there.
    pub fn write_nsys(&self, path: &Path) -> Result<(), WriteError> {
        write(&[self], path)
    }

    /// `globalPid`: the virtual machine's byte, then the process in bits 24 to 47.
    fn global_pid(&self) -> i64 {
        (1 << 48) | (self.pid() << 24)
    }

    /// `globalTid` of the host thread.
    fn global_tid(&self) -> i64 {
        self.global_pid() | self.pid()
    }

    fn rows(&self, inserts: &mut Inserts, texts: &mut Texts) {
        for event in &self.host {
            self.host_row(inserts, texts, event);
        }
        for op in self.kept() {
            if !(self.config.graph_level_trace && op.node.is_some()) {
                self.device_row(inserts, texts, op);
            }
        }
        if self.config.graph_level_trace {
            self.graph_rows(inserts);
        }
    }

    fn device_row(&self, inserts: &mut Inserts, texts: &mut Texts, op: &DeviceOp) {
        let (graph, node) = op.node.unzip();
        let [start, end, device] = [op.start, op.end, self.device()].map(Cell::from);
        let stream = STREAM_IDS[op.stream].into();
        let correlation = self.host[op.call].correlation.into();
        let process = self.global_pid().into();
        match op.work {
            Work::Compute(_) | Work::Collective { .. } => {
                let class = op.slot.and_then(|slot| slot.card().class);
                let name = op.kernel(self.config.vendor);
                let (id, short) = (texts.id(name), texts.id(&short(name)));
                let (threads, memory) = (shape::threads(class), shape::shared_memory(class));
                inserts.row(
                    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES \
                     (?, ?, ?, 1, NULL, ?, ?, ?, ?, ?, ?, NULL, NULL, 64, ?, 1, 1, ?, 1, 1, 0, ?, 0, 0, 0, NULL, ?, NULL, ?, '[]')",
                    [
                        start, end, device, stream, correlation, process, id.into(), short.into(), id.into(),
                        op.blocks.into(), threads.into(), memory.into(), node.into(), graph.into(),
                    ],
                );
            }
            Work::Copy { direction, pageable } => {
                // copyKind, then memory kinds: 0 pageable, 1 pinned, 2 device.
                let host = i64::from(!pageable);
                let (kind, from, to) = match direction {
                    Direction::HostToDevice => (1, host, 2),
                    Direction::DeviceToHost => (2, 2, host),
                    Direction::DeviceToDevice => (8, 2, 2),
                    Direction::PeerToPeer => (10, 2, 2),
                };
                let [kind, from, to] = [kind, from, to].map(Cell::from);
                inserts.row(
                    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES \
                     (?, ?, ?, 1, NULL, ?, ?, ?, ?, ?, NULL, ?, ?, NULL, NULL, NULL, NULL, NULL, ?, NULL, 1)",
                    [start, end, device, stream, correlation, process, op.bytes.into(), kind, from, to, node.into()],
                );
            }
            Work::Memset => inserts.row(
                "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (?, ?, ?, 1, NULL, ?, ?, ?, 0, ?, NULL, 2)",
                [start, end, device, stream, correlation, process, op.bytes.into()],
            ),
        }
    }

    /// One row per replay.
    fn graph_rows(&self, inserts: &mut Inserts) {
        for replay in self.ops.chunk_by(|a, b| a.call == b.call) {
            let Some((first, (graph, _))) = replay.first().and_then(|op| Some((op, op.node?))) else { continue };
            let end = replay.iter().map(|op| op.end).max();
            inserts.row(
                "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (?, ?, ?, 1, NULL, ?, ?, ?, ?, ?)",
                [
                    first.start.into(),
                    end.into(),
                    self.device().into(),
                    STREAM_IDS[first.stream].into(),
                    self.host[first.call].correlation.into(),
                    self.global_pid().into(),
                    graph.into(),
                    (graph + 100).into(),
                ],
            );
        }
    }

    /// The process and its device.
    async fn whereabouts(&self, db: &mut SqliteConnection, texts: &mut Texts) -> sqlx::Result<()> {
        let device = "INSERT INTO TARGET_INFO_GPU VALUES \
             (1, ?1, ?2, '0000:0' || ?1 || ':00.0', 1, 85899345920, ?3, 'simulated-' || ?1, 'SIMULATED', ?1, ?4, 0)";
        let major = self.config.serving.map_or(9, |serving| serving.accelerator.ability().capability.0);
        sqlx::query(device)
            .bind(self.device())
            .bind(self.device_name())
            .bind(shape::cores(&self.config))
            .bind(major)
            .execute(&mut *db)
            .await?;
        sqlx::query("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (?1, ?1, ?2, 'simulated-' || ?1, ?3)")
            .bind(self.device())
            .bind(self.pid())
            .bind(shape::cores(&self.config))
            .execute(&mut *db)
            .await?;
        for stream in STREAM_IDS.iter().take(self.config.streams) {
            sqlx::query("INSERT INTO TARGET_INFO_CUDA_STREAM VALUES (?, 0, 1, ?, 1, 0, ?)")
                .bind(stream)
                .bind(self.pid())
                .bind(if *stream == STREAM_IDS[0] { 1 } else { 2 })
                .execute(&mut *db)
                .await?;
        }
        sqlx::query("INSERT INTO TARGET_INFO_CUDA_CONTEXT_INFO VALUES (?, 0, 1, ?, ?, 1, NULL, 0)")
            .bind(STREAM_IDS[0])
            .bind(self.pid())
            .bind(self.device())
            .execute(&mut *db)
            .await?;
        let name = "VLLM::EngineCore (simulated)";
        sqlx::query("INSERT INTO PROCESSES VALUES (?, ?, ?)")
            .bind(self.global_pid())
            .bind(self.pid())
            .bind(name)
            .execute(&mut *db)
            .await?;
        sqlx::query("INSERT INTO ThreadNames VALUES (?, 20, ?)")
            .bind(texts.id("python3"))
            .bind(self.global_tid())
            .execute(&mut *db)
            .await?;
        Ok(())
    }

    fn host_row(&self, inserts: &mut Inserts, texts: &mut Texts, event: &HostEvent) {
        match event.kind {
            // Interpreter frames are not in this format.
            HostKind::PythonFrame | HostKind::Gc => return,
            HostKind::Overhead => {
                inserts.row(
                    "INSERT INTO CUPTI_ACTIVITY_KIND_OVERHEAD VALUES (?, ?, 103, ?, NULL, ?, 3)",
                    [event.start.into(), event.end.into(), self.global_tid().into(), texts.id(&event.name).into()],
                );
                return;
            }
            HostKind::FrameworkOp | HostKind::UserRange | HostKind::Compile => {
                let text = match event.external {
                    Some(id) if event.kind == HostKind::FrameworkOp => format!("{}, op_id = {id}", event.name),
                    _ => event.name.clone().into_owned(),
                };
                inserts.row("INSERT INTO NVTX_EVENTS (start, end, eventType, color, text, globalTid, domainId) VALUES (?, ?, 59, NULL, ?, ?, 0)", [event.start.into(), event.end.into(), text.into(), self.global_tid().into()]);
                return;
            }
            _ => {}
        }
        inserts.row(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?, ?, 0, NULL)",
            [
                event.start.into(),
                event.end.into(),
                i64::from(event.kind == HostKind::ModuleLoad).into(),
                self.global_tid().into(),
                event.correlation.into(),
                texts.id(&versioned(&event.name)).into(),
            ],
        );
        let kind = match event.kind {
            HostKind::Sync(SyncOn::Event) => 1,
            HostKind::StreamWait => 2,
            HostKind::Sync(SyncOn::Stream) => 3,
            _ => return,
        };
        let stream = if kind == 1 { NO_EVENT } else { STREAM_IDS[event.stream.unwrap_or(0)] };
        let id = if kind == 3 { NO_EVENT } else { 1 };
        inserts.row(
            "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (?, ?, ?, 1, NULL, ?, ?, ?, NULL, ?, ?, NULL)",
            [
                event.start.into(),
                event.end.into(),
                self.device().into(),
                stream.into(),
                event.correlation.into(),
                self.global_pid().into(),
                kind.into(),
                id.into(),
            ],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::{short, versioned};

    #[test]
    fn names_are_those_of_the_exporter() {
        assert_eq!(
            short("void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float>(float*)"),
            "cunn_SoftMaxForward"
        );
        assert_eq!(short("nvjet_tst_64x8_64x16_1x4_h_bz_TNT"), "nvjet_tst_64x8_64x16_1x4_h_bz_TNT");
        assert_eq!(versioned("cudaLaunchKernel"), "cudaLaunchKernel_v7000");
        assert_eq!(versioned("cuModuleLoadData"), "cuModuleLoadData");
    }
}
