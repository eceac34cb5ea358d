//! rocprof v1's database (`results.db`), from which it makes its CSV and JSON: calls in `HIP` and `HSA`, kernels in `OPS`, copies
//! in `COPY`. The `Index` of a row of each is the call's, so that it links them. Source: roctracer's `tblextr.py` and the tables
//! of a file of ROCm 6.

use std::path::Path;

use model::{Category, Clock, CopyDetail, Detail, KernelDetail, Ns, Severity, Slice, TraceSink};

use crate::{
    Format, Head, Match, Place, ReadError, ReadOptions, hip,
    lanes::{Account, Lanes},
    sqlite::{
        SIGNATURE,
        database::{Database, tell_loss},
        page::{
            Column::{self, Decimal, Text},
            Page,
        },
        scan::Item,
    },
};

/// The database of rocprof v1.
pub const FORMAT: Format =
    Format { id: "rocprof-db", name: "rocprof v1 database (results.db)", matches, read, lead: crate::alone };

/// Context of copies: their queues share the numbers of the kernels' ones.
const COPIES: Option<i64> = Some(1);

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    Calls,
    Kernels,
    Copies,
}

struct Table {
    name: &'static str,
    rows: Rows,
    becomes: &'static str,
}

const TABLES: [Table; 4] = [
    Table { name: "HIP", rows: Rows::Calls, becomes: "host_api" },
    Table { name: "HSA", rows: Rows::Calls, becomes: "host_api" },
    Table { name: "OPS", rows: Rows::Kernels, becomes: "kernel; memcpy and memset by name" },
    Table { name: "COPY", rows: Rows::Copies, becomes: "memcpy" },
];

/// Numbers may be stored as text.
const COLUMNS: &[Column] = &[
    Decimal("BeginNs", &[]),
    Decimal("EndNs", &[]),
    Decimal("pid", &[]),
    Decimal("tid", &[]),
    Decimal("Index", &[]),
    Decimal("dev-id", &[]),
    Decimal("queue-id", &[]),
    Text("Name", None),
];

fn is_own(database: &Database) -> bool {
    let has = |name: &str, column: &str| {
        database.tables.get(name).is_some_and(|table| table.columns.iter().any(|known| known == column))
    };
    TABLES.iter().any(|table| has(table.name, "BeginNs") && has(table.name, "EndNs") && has(table.name, "__section"))
}

fn malformed(path: &Path, why: &dyn std::fmt::Display) -> ReadError {
    ReadError::Malformed {
        path: path.to_owned(),
        place: Place::File,
        expected: format!("a database of rocprof ({why})"),
        next: "give the results.json or results.csv of the same run, or record again with rocprofv3".to_owned(),
    }
}

fn matches(head: &Head<'_>) -> Match {
    let own = || Database::open(head.path, malformed).is_ok_and(|database| is_own(&database));
    if head.bytes.starts_with(SIGNATURE) && own() { Match::Certain } else { Match::No }
}

/// Reads the database. Runs its own runtime, so it must not be called from inside an asynchronous task.
fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let mut database = Database::open(path, malformed)?;
    if !is_own(&database) {
        return Err(malformed(path, &"it has none of the tables HIP, HSA, OPS and COPY"));
    }
    database.warn("rocprof", sink);
    let plan = database.plan(TABLES.iter().map(|table| (table, table.name.to_owned(), COLUMNS)), "rocprof", sink);
    let mut lanes = Lanes::default();
    plan.read(options.progress, |table, item| match item {
        Item::Page(page) => {
            let mut account = Account { read: page.rows as u64, ..Account::default() };
            for row in 0..page.rows {
                match take(sink, &mut lanes, table.rows, &page, row) {
                    Some((start, end)) => account.keep(start, end),
                    None => account.incomplete += 1,
                }
            }
            account.tell(sink, "rocprof", table.name, table.becomes);
            account.read
        }
        Item::Loss(loss) => tell_loss(&loss, "rocprof", table.name, sink),
    });
    for (name, rows) in database.count(|table| TABLES.iter().all(|known| known.name != table.name)) {
        match rows {
            Some(rows) => sink.ledger(&name, rows, 0, 0, "not read: no event that another table lacks"),
            None => sink.stat("rocprof.unreadable_table", Severity::DataLoss, 1, Some(&name)),
        }
    }
    if lanes.crowded > 0 {
        sink.stat("rocprof.too_many_tracks", Severity::DataLoss, lanes.crowded, None);
    }
    lanes.describe(sink, "amd");
    hip::manifest(sink, "amd", "rocprof");
    sink.clock(Clock::FromFirstSlice { unix_offset: None });
    Ok(())
}

/// Takes a row; `None` when it lacks what it cannot be placed without.
fn take(sink: &mut dyn TraceSink, lanes: &mut Lanes, rows: Rows, page: &Page, row: usize) -> Option<(Ns, Ns)> {
    let [start, end, pid, tid, index, device, queue] = page.ints(row);
    let (start, end) = (start?, end?);
    let text = page.inline(7, row).filter(|name| !name.is_empty()).unwrap_or("(unnamed)");
    let process = pid.map_or(0, i64::cast_unsigned);
    let id = lanes.process(sink, process);
    sink.describe_process(id, pid, None, None);
    let device = device.and_then(|n| i32::try_from(n).ok());
    let (track, category) = match rows {
        Rows::Calls => (lanes.thread(sink, process, tid.unwrap_or(-1)), Category::HostApi),
        Rows::Copies => (lanes.queue(sink, process, device, COPIES, queue.unwrap_or(-1)), Category::Memcpy),
        Rows::Kernels => {
            let name = text.to_ascii_lowercase();
            let category = match () {
                () if name.starts_with("copy") => Category::Memcpy,
                () if name.starts_with("fillbuffer") || name.starts_with("memset") => Category::Memset,
                () => Category::Kernel,
            };
            (lanes.queue(sink, process, device, None, queue.unwrap_or(-1)), category)
        }
    };
    let said = if category == Category::HostApi { hip::asked(text) } else { hip::direction(text) };
    let detail = match (category, said) {
        (Category::Kernel, _) => Some(Detail::Kernel(KernelDetail::default())),
        (Category::Memcpy | Category::HostApi, Some(direction)) => {
            let direction = Some(sink.intern(direction));
            Some(Detail::Copy(CopyDetail { direction, ..CopyDetail::default() }))
        }
        _ => None,
    };
    let name = sink.intern(hip::kernel_name(text));
    let dur = end.saturating_sub(start);
    sink.slice(Slice { track, start, dur, name, category, correlation: index, detail: detail.as_ref() });
    Some((start, end))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use model::TraceBuilder;
    use sqlx::{ConnectOptions, Executor, sqlite::SqliteConnectOptions};

    /// The tables as `tblextr.py` makes them.
    const SQL: &str = r#"create table HIP("BeginNs" integer, "EndNs" integer, "pid" integer, "tid" integer, "Name" text, "args" text, "Index" integer, "Data" text, "__section" integer, "__lane" integer, "DurationNs" integer);
        create table OPS("BeginNs" integer, "EndNs" integer, "dev-id" integer, "queue-id" integer, "Name" text, "pid" integer, "tid" integer, "roctx-range" text, "stream-id" integer, "Index" integer, "Data" text, "__section" integer, "__lane" integer, "DurationNs" integer);
        create table COPY("BeginNs" integer, "EndNs" integer, "dev-id" integer, "queue-id" integer, "Name" text, "pid" integer, "tid" integer, "roctx-range" text, "stream-id" integer, "Index" integer, "Data" text, "__section" integer, "__lane" integer, "DurationNs" integer);
        create table KERN("Index" integer, "KernelName" text);
        insert into HIP values (1000,1010,70,71,'hipMemcpy','',4,'',2,1,10),(1020,1030,70,71,'hipLaunchKernel','',8,'',2,1,10),(1040,null,70,71,'hipFree','',9,'',2,1,0);
        insert into OPS values (1050,1090,2,1,'gemm(float*) [clone .kd]',70,71,'',0,8,'',6,0,40);
        insert into COPY values (1002,1009,2,0,'CopyHostToDevice',70,71,'',0,4,'',1,0,7);
        insert into KERN values (8,'gemm');"#;

    #[test]
    fn calls_kernels_and_copies_are_linked_by_their_index() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.db");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
            let mut db = options.connect().await.unwrap();
            db.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(SQL.to_owned()))).await.unwrap();
            sqlx::Connection::close(db).await.unwrap();
        });
        let mut builder = TraceBuilder::new("t", "rocprof-db");
        let format = crate::detect::read(&path, &mut builder, &ReadOptions::default()).unwrap();
        assert_eq!(format.id, "rocprof-db");
        let trace = builder.finish();
        let mut all = Vec::new();
        for lane in &trace.lanes {
            for i in 0..lane.len() {
                let name = trace.strings.get(lane.name[i]).to_owned();
                all.push((lane.start[i], lane.dur[i], lane.category[i], name, lane.link(i).is_some()));
            }
        }
        all.sort();
        let row = |start, dur, category, name: &str, linked| (start, dur, category, name.to_owned(), linked);
        let expected = [
            row(0, 10, Category::HostApi, "hipMemcpy", false),
            row(2, 7, Category::Memcpy, "CopyHostToDevice", true),
            row(20, 10, Category::HostApi, "hipLaunchKernel", false),
            row(50, 40, Category::Kernel, "gemm(float*)", true),
        ];
        assert_eq!(all, expected);
        assert_eq!(trace.stat("rocprof.incomplete_row"), 1);
        let names = trace.ledger.iter().find(|row| row.category == "KERN").unwrap();
        assert_eq!((names.read, names.kept), (1, 0));
    }
}
