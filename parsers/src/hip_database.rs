//! The database that rocprof v1 (`results.db`) and hipprof write: calls in `HIP` and `HSA`, kernels in `OPS`, copies in `COPY`,
//! ranges of the program in `rocTX`. The `Index` of a row of each is the call's, so that it links them. Where no calls were traced,
//! `KERN` has the kernels with their times. Versions differ in the columns beside name and times. hipprof spells columns with
//! `_` (`dev_id`) and keeps names as ids into a table of strings. Source: roctracer's `tblextr.py` and the tables of files of
//! ROCm 5 and 6; of hipprof no public description is known.

use std::path::Path;

use model::{Category, Clock, CopyDetail, Detail, KernelDetail, Ns, Severity, Slice, TraceSink};
use rustc_hash::FxHashMap;

use crate::{
    Head, Match, Place, Progress, ReadError, ReadOptions, hip,
    lanes::{Account, Lanes},
    sqlite::{
        SIGNATURE,
        database::{Database, tell_loss},
        page::{
            Column::{self, Decimal, Text},
            Page, Text as Cell,
        },
        scan::Item,
        source::TableInfo,
    },
};

/// Which of the profilers wrote a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profiler {
    Rocprof,
    Hipprof,
}

impl Profiler {
    /// Its name, which its statistics begin with, and the vendor of its devices.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Rocprof => ("rocprof", "amd"),
            Self::Hipprof => ("hipprof", "hygon"),
        }
    }

    /// The writer of a database, by how it spells the columns of the device's work.
    fn of(database: &Database) -> Option<Self> {
        let work = ["OPS", "COPY"].into_iter().filter_map(|name| database.tables.get(name));
        let mut places = work.flat_map(|table| ["dev-id", "queue-id"].map(|place| (table.column(place), place)));
        let other = places.any(|(column, place)| column.is_some_and(|column| column != place));
        is_own(database).then_some(if other { Self::Hipprof } else { Self::Rocprof })
    }
}

/// Context of copies: their queues share the numbers of the kernels' ones.
const COPIES: Option<i64> = Some(1);

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    Calls,
    Markers,
    /// Work of queues: kernels, and what engines do.
    Kernels,
    /// Kernels alone, whatever they are called.
    Dispatches,
    Copies,
    /// Kernels whose counters were read, for which they ran one after the other.
    Counted,
}

struct Table {
    name: &'static str,
    rows: Rows,
    columns: &'static [Column],
    becomes: &'static str,
}

const TABLES: [Table; 6] = [
    Table { name: "HIP", rows: Rows::Calls, columns: COLUMNS, becomes: "host_api" },
    Table { name: "HSA", rows: Rows::Calls, columns: COLUMNS, becomes: "host_api" },
    Table { name: "rocTX", rows: Rows::Markers, columns: COLUMNS, becomes: "user_range" },
    Table { name: "OPS", rows: Rows::Kernels, columns: COLUMNS, becomes: "kernel; memcpy and memset by name" },
    Table { name: "COPY", rows: Rows::Copies, columns: COLUMNS, becomes: "memcpy; memset by name" },
    Table { name: "KERN", rows: Rows::Dispatches, columns: DISPATCHES, becomes: "kernel" },
];
/// `KERN` where counters stand in it.
const COUNTED: Table =
    Table { name: "KERN", rows: Rows::Counted, columns: DISPATCHES, becomes: "measurements of kernels; no counters" };

/// Numbers may be stored as text.
const COLUMNS: &[Column] = &[
    Decimal("BeginNs", &[]),
    Decimal("EndNs", &[]),
    Decimal("pid", &[]),
    Decimal("tid", &[]),
    Decimal("Index", &[]),
    Decimal("dev-id", &["device-id"]),
    Decimal("queue-id", &[]),
    Decimal("proc-id", &[]),
    Decimal("grd", &[]),
    Decimal("wgr", &[]),
    Text("Name", Some("name-id")),
    Decimal("Bytes", &["size"]),
];
/// Those of `KERN`, whose `Index` counts dispatches and is no call's.
const DISPATCHES: &[Column] = &[
    Decimal("BeginNs", &[]),
    Decimal("EndNs", &[]),
    Decimal("pid", &[]),
    Decimal("tid", &[]),
    // In the place of a call's number, which it has none of.
    Decimal("", &[]),
    Decimal("gpu-id", &[]),
    Decimal("queue-id", &[]),
    Decimal("proc-id", &[]),
    Decimal("grd", &[]),
    Decimal("wgr", &[]),
    Text("KernelName", Some("name-id")),
];
/// Place of the name among them, and of the bytes of a copy.
const NAME: usize = 10;
const BYTES: usize = 11;

/// Names of the column of a string's id, and of its text.
const IDS: (&str, &[&str]) = ("id", &["string-id", "str-id", "name-id", "key"]);
const TEXTS: [&str; 5] = ["string", "value", "name", "str", "text"];
const STRINGS: &[Column] = &[
    Decimal(IDS.0, IDS.1),
    Text(TEXTS[0], None),
    Text(TEXTS[1], None),
    Text(TEXTS[2], None),
    Text(TEXTS[3], None),
    Text(TEXTS[4], None),
];

/// Whether a table has a column.
fn has(database: &Database, table: &str, column: &str) -> bool {
    database.tables.get(table).is_some_and(|table| table.column(column).is_some())
}

/// The table of strings: of the tables that hold ids with texts the one that is called so, else the first by its name.
fn table_of_strings(database: &Database) -> Option<&str> {
    let is_strings = |table: &&TableInfo| {
        let id = [IDS.0].iter().chain(IDS.1).any(|name| table.column(name).is_some());
        let known = TABLES.iter().any(|known| known.name.eq_ignore_ascii_case(&table.name));
        id && !known && TEXTS.iter().any(|name| table.column(name).is_some())
    };
    let called = |table: &TableInfo| table.name.to_ascii_lowercase().contains("str");
    let found = database.tables.iter().filter(is_strings);
    found.min_by_key(|table| (!called(table), table.name.clone())).map(|table| table.name.as_str())
}

/// The texts of the table of strings by their ids, no more of them than the file can hold.
fn strings(
    database: &Database,
    format: &str,
    sink: &mut dyn TraceSink,
    progress: Progress<'_>,
) -> FxHashMap<i64, Box<str>> {
    let mut texts = FxHashMap::default();
    let Some(name) = table_of_strings(database) else { return texts };
    let mut left = database.bytes.saturating_mul(2);
    let plan = database.plan([(&(), name.to_owned(), STRINGS)], format, sink);
    plan.read(progress, |(), item| match item {
        Item::Page(page) => {
            for row in 0..page.rows {
                let text = (1..=TEXTS.len()).find_map(|lane| page.inline(lane, row));
                let Some((id, text)) = page.int(0, row).zip(text) else { continue };
                let Some(rest) = left.checked_sub(text.len() as u64) else { continue };
                left = rest;
                texts.insert(id, text.into());
            }
            page.rows as u64
        }
        Item::Loss(loss) => tell_loss(&loss, format, name, sink),
    });
    sink.ledger(name, texts.len() as u64, texts.len() as u64, 0, "names");
    texts
}

fn is_own(database: &Database) -> bool {
    let name = |table: &Table| if table.name == "KERN" { "KernelName" } else { "Name" };
    TABLES.iter().any(|table| ["BeginNs", "EndNs", name(table)].iter().all(|column| has(database, table.name, column)))
}

/// The tables to be read, and whether their `pid` is the number of a lane: a version that keeps the process of an operation
/// apart, as `proc-id`, does that, and names none for calls.
fn chosen(database: &Database) -> (Vec<&'static Table>, bool) {
    let counted = database
        .tables
        .get("KERN")
        .is_some_and(|table| table.columns.iter().any(|name| hip::is_counter(&name.to_ascii_lowercase())));
    let traced = database.tables.get("OPS").is_some_and(|table| table.rows.is_some());
    let wanted = |table: &&'static Table| table.name != "KERN" || (!traced && has(database, "KERN", "BeginNs"));
    let table = |table: &'static Table| if table.name == "KERN" && counted { &COUNTED } else { table };
    let by_lane = TABLES.iter().any(|table| has(database, table.name, "proc-id"));
    (TABLES.iter().filter(wanted).map(table).collect(), by_lane)
}

fn malformed(path: &Path, why: &dyn std::fmt::Display) -> ReadError {
    ReadError::Malformed {
        path: path.to_owned(),
        place: Place::File,
        expected: format!("a database of rocprof ({why})"),
        next: "give the results.json or results.csv of the same run, or record again with rocprofv3".to_owned(),
    }
}

/// Whether the file is a database that `profiler` wrote.
pub(crate) fn matches(head: &Head<'_>, profiler: Profiler) -> Match {
    let wrote = || Database::open(head.path, malformed).is_ok_and(|database| Profiler::of(&database) == Some(profiler));
    if head.bytes.starts_with(SIGNATURE) && wrote() { Match::Certain } else { Match::No }
}

/// Reads the database. Runs its own runtime, so it must not be called from inside an asynchronous task.
pub(crate) fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let mut database = Database::open(path, malformed)?;
    let Some(profiler) = Profiler::of(&database) else {
        return Err(malformed(path, &"none of the tables HIP, HSA, OPS, COPY, rocTX and KERN has names and times"));
    };
    let (format, vendor) = profiler.names();
    let texts = match profiler {
        Profiler::Rocprof => FxHashMap::default(),
        Profiler::Hipprof => strings(&database, format, sink, options.progress),
    };
    let named = table_of_strings(&database).filter(|_| profiler == Profiler::Hipprof).map(str::to_owned);
    database.warn(format, sink);
    let (tables, by_lane) = chosen(&database);
    let wanted = tables.iter().map(|table| (*table, table.name.to_owned(), table.columns));
    let plan = database.plan(wanted, format, sink);
    let (mut lanes, mut owners) = (Lanes::default(), hip::Owners::default());
    plan.read(options.progress, |table, item| match item {
        Item::Page(page) => {
            let mut account = Account { read: page.rows as u64, ..Account::default() };
            for row in 0..page.rows {
                match take(sink, (&mut lanes, &mut owners, &texts, by_lane), table.rows, &page, row) {
                    Some((start, end)) => account.keep(start, end),
                    None => account.incomplete += 1,
                }
            }
            account.tell(sink, format, table.name, table.becomes);
            account.read
        }
        Item::Loss(loss) => tell_loss(&loss, format, table.name, sink),
    });
    for (name, rows) in database.count(|table| {
        let mut own = tables.iter().map(|known| known.name).chain(named.as_deref());
        !own.any(|known| known.eq_ignore_ascii_case(&table.name))
    }) {
        match rows {
            Some(rows) if name.eq_ignore_ascii_case("KERN") => {
                sink.ledger(&name, rows, 0, 0, "not read: OPS has the same kernels")
            }
            Some(rows) => sink.ledger(&name, rows, 0, 0, "not read: no event that another table lacks"),
            None => sink.stat(&format!("{format}.unreadable_table"), Severity::DataLoss, 1, Some(&name)),
        }
    }
    owners.tell(sink, format);
    if lanes.crowded > 0 {
        sink.stat(&format!("{format}.too_many_tracks"), Severity::DataLoss, lanes.crowded, None);
    }
    lanes.describe(sink, vendor);
    hip::manifest(sink, vendor, format);
    sink.clock(Clock::FromFirstSlice { unix_offset: None });
    Ok(())
}

/// Takes a row; `None` when it lacks what it cannot be placed without.
fn take(
    sink: &mut dyn TraceSink,
    (lanes, owners, texts, by_lane): (&mut Lanes, &mut hip::Owners, &FxHashMap<i64, Box<str>>, bool),
    rows: Rows,
    page: &Page,
    row: usize,
) -> Option<(Ns, Ns)> {
    let [start, end, pid, tid, index, device, queue, owner, items, block] = page.ints(row);
    let (start, end) = (start?, end?);
    let text = match page.text(NAME, row) {
        Some(Cell::Id(id)) => texts.get(&id).map_or("", AsRef::as_ref),
        // No kernel is called by a number alone.
        Some(Cell::Inline(text)) => text.parse().ok().and_then(|id| texts.get(&id)).map_or(text, AsRef::as_ref),
        None => "",
    };
    // Kernels of `KERN` and ranges stand in quotes.
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let text = if text.is_empty() { "(unnamed)" } else { text };
    let one_side = |n: Option<i64>| hip::sides([n, Some(1), Some(1)]);
    let (block, items) = (one_side(block), one_side(items));
    let grid = hip::blocks(items, block);
    if rows == Rows::Counted {
        let kernel = sink.intern(hip::kernel_name(text));
        sink.summary(hip::counted(kernel, (start, end), (grid, block)));
        return Some((start, end));
    }
    let (process, pid) = owners.of(by_lane, pid, owner);
    let id = lanes.process(sink, process);
    sink.describe_process(id, pid, None, None);
    let device = device.and_then(|n| i32::try_from(n).ok());
    let (track, category) = match rows {
        Rows::Calls => (lanes.thread(sink, process, tid.unwrap_or(-1)), Category::HostApi),
        Rows::Markers => (lanes.thread(sink, process, tid.unwrap_or(-1)), Category::UserRange),
        Rows::Copies => {
            (lanes.queue(sink, process, device, COPIES, queue.unwrap_or(-1)), hip::operation(text, Category::Memcpy))
        }
        Rows::Dispatches => (lanes.queue(sink, process, device, None, queue.unwrap_or(-1)), Category::Kernel),
        Rows::Kernels | Rows::Counted => {
            (lanes.queue(sink, process, device, None, queue.unwrap_or(-1)), hip::operation(text, Category::Kernel))
        }
    };
    let said = if category == Category::HostApi { hip::asked(text) } else { hip::direction(text) };
    let detail = match (category, said) {
        (Category::Kernel, _) => Some(Detail::Kernel(KernelDetail { grid, block, ..KernelDetail::default() })),
        (Category::Memcpy | Category::HostApi, Some(direction)) => {
            let direction = Some(sink.intern(direction));
            let bytes = page.int(BYTES, row).filter(|_| category == Category::Memcpy);
            Some(Detail::Copy(CopyDetail { direction, bytes, ..CopyDetail::default() }))
        }
        _ => None,
    };
    let name = sink.intern(hip::kernel_name(text));
    let dur = end.saturating_sub(start);
    // A range counts for itself.
    let correlation = index.filter(|_| rows != Rows::Markers);
    sink.slice(Slice { track, start, dur, name, category, correlation, detail: detail.as_ref() });
    Some((start, end))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use model::{Trace, TraceBuilder};
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

    fn import(sql: &str) -> Trace {
        import_as("rocprof-db", sql)
    }

    fn import_as(id: &str, sql: &str) -> Trace {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.db");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
            let mut db = options.connect().await.unwrap();
            db.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()))).await.unwrap();
            sqlx::Connection::close(db).await.unwrap();
        });
        let mut builder = TraceBuilder::new("t", id);
        let format = crate::detect::read(&path, &mut builder, &ReadOptions::default()).unwrap();
        assert_eq!(format.id, id);
        builder.finish()
    }

    type Row = (i64, i64, Category, String, bool);

    fn rows(trace: &Trace) -> Vec<Row> {
        let mut all = Vec::new();
        for lane in &trace.lanes {
            for i in 0..lane.len() {
                let name = trace.strings.get(lane.name[i]).to_owned();
                all.push((lane.start[i], lane.dur[i], lane.category[i], name, lane.link(i).is_some()));
            }
        }
        all.sort();
        all
    }

    fn row(start: i64, dur: i64, category: Category, name: &str, linked: bool) -> Row {
        (start, dur, category, name.to_owned(), linked)
    }

    #[test]
    fn calls_kernels_and_copies_are_linked_by_their_index() {
        let trace = import(SQL);
        let expected = [
            row(0, 10, Category::HostApi, "hipMemcpy", false),
            row(2, 7, Category::Memcpy, "CopyHostToDevice", true),
            row(20, 10, Category::HostApi, "hipLaunchKernel", false),
            row(50, 40, Category::Kernel, "gemm(float*)", true),
        ];
        assert_eq!(rows(&trace), expected);
        assert_eq!(trace.stat("rocprof.incomplete_row"), 1);
        let names = trace.ledger.iter().find(|row| row.category == "KERN").unwrap();
        assert_eq!((names.read, names.kept), (1, 0));
    }

    /// The tables of ROCm 5, whose `pid` is the number of a lane: they were refused for lack of a column that is not read.
    #[test]
    fn tables_without_sections_are_read_and_their_lanes_are_no_processes() {
        let trace = import(
            r#"create table rocTX("BeginNs" integer, "EndNs" integer, "pid" integer, "tid" integer, "Name" text, "Index" integer);
            create table HIP("BeginNs" integer, "EndNs" integer, "pid" integer, "tid" integer, "Name" text, "args" text, "Index" integer, "Data" text, "DurationNs" integer);
            create table OPS("BeginNs" integer, "EndNs" integer, "dev-id" integer, "queue-id" integer, "Name" text, "pid" integer, "tid" integer, "Index" integer, "proc-id" integer, "Data" text, "DurationNs" integer);
            create table COPY("BeginNs" integer, "EndNs" integer, "dev-id" integer, "queue-id" integer, "Name" text, "pid" integer, "tid" integer, "Index" integer, "proc-id" integer, "Data" text, "DurationNs" integer);
            create table A("Index" integer, "KernelName" text);
            insert into rocTX values (990,1100,0,71,'"view"',8);
            insert into HIP values (1000,1010,2,71,'hipMemcpy','',4,'',10),(1020,1030,2,71,'hipLaunchKernel','',8,'',10),(1031,1032,2,71,'hipMemset','',9,'',1);
            insert into OPS values (1050,1090,0,0,'gemm(float*) [clone .kd]',6,1,8,70,'',40);
            insert into COPY values (1002,1009,0,0,'CopyHostToDevice',1,0,4,70,'',7),(1040,1044,0,0,'FillBuffer',1,0,9,70,'',4);"#,
        );
        let expected = [
            row(0, 110, Category::UserRange, "view", false),
            row(10, 10, Category::HostApi, "hipMemcpy", false),
            row(12, 7, Category::Memcpy, "CopyHostToDevice", true),
            row(30, 10, Category::HostApi, "hipLaunchKernel", false),
            row(41, 1, Category::HostApi, "hipMemset", false),
            row(50, 4, Category::Memset, "FillBuffer", true),
            row(60, 40, Category::Kernel, "gemm(float*)", true),
        ];
        assert_eq!(rows(&trace), expected);
        assert_eq!(trace.processes.iter().map(|process| process.pid).collect::<Vec<_>>(), [Some(70)]);
    }

    /// A database of kernels alone, which was refused.
    const DISPATCHED: &str = r#"create table KERN("Index" integer, "KernelName" text, "gpu-id" integer, "queue-id" integer, "pid" integer, "tid" integer, "grd" integer, "wgr" integer, "BeginNs" integer, "EndNs" integer);
            insert into KERN values (0,'"gemm(float*) [clone .kd]"',8,0,70,70,512,256,1050,1090),(1,'"fill.kd"',8,0,70,70,256,256,1090,1095);"#;

    #[test]
    fn a_table_of_kernels_alone_is_read() {
        let trace = import(DISPATCHED);
        let expected =
            [row(0, 40, Category::Kernel, "gemm(float*)", false), row(40, 5, Category::Kernel, "fill", false)];
        assert_eq!(rows(&trace), expected);
        assert!(trace.details.iter().any(|d| matches!(d, Detail::Kernel(k) if k.grid == Some([2, 1, 1]))));
    }

    #[test]
    fn kernels_that_stand_in_ops_too_are_read_once() {
        let trace = import(&format!("{SQL}drop table KERN;{DISPATCHED}"));
        assert_eq!(rows(&trace).len(), 4);
        let twice = trace.ledger.iter().find(|row| row.category == "KERN").unwrap();
        assert_eq!((twice.read, twice.kept), (2, 0));
    }

    #[test]
    fn a_table_of_kernels_with_counters_is_no_timeline() {
        let counted = DISPATCHED.replace("\"EndNs\" integer", "\"EndNs\" integer, \"SQ_WAVES\" integer");
        let trace = import(&counted.replace("1090)", "1090,7)").replace("1095)", "1095,7)"));
        assert_eq!((trace.slice_count(), trace.summaries.len()), (0, 2));
    }

    /// hipprof's columns and names were taken for rocprof's: its kernels lost their names and their device.
    #[test]
    fn hipprof_spells_columns_with_underscores_and_names_as_ids() {
        let sql = r#"create table hip(BeginNs integer, EndNs integer, pid integer, tid integer, Name integer, "Index" integer);
            create table ops(BeginNs integer, EndNs integer, dev_id integer, queue_id integer, Name integer, pid integer, "Index" integer);
            create table COPY(BeginNs integer, EndNs integer, dev_id integer, queue_id integer, Name integer, pid integer, size integer, "Index" integer);
            create table string_table(id integer primary key, string text);
            insert into string_table values (1,'hipLaunchKernel'),(2,'gemm(float*) [clone .kd]'),(3,'CopyHostToDevice');
            insert into hip values (1000,1010,70,71,1,8);
            insert into ops values (1050,1090,2,1,2,70,8),(1090,1099,2,1,9,70,9);
            insert into COPY values (1002,1009,2,0,3,70,4096,4);"#;
        let trace = import_as("hipprof-db", sql);
        let expected = [
            row(0, 10, Category::HostApi, "hipLaunchKernel", false),
            row(2, 7, Category::Memcpy, "CopyHostToDevice", false),
            row(50, 40, Category::Kernel, "gemm(float*)", true),
            row(90, 9, Category::Kernel, "9", false),
        ];
        assert_eq!(rows(&trace), expected);
        let mut queues = trace.tracks.iter().filter(|track| track.key.kind == model::TrackKind::DeviceQueue);
        assert!(queues.all(|queue| queue.key.device == Some(2)));
        let bytes = trace.details.iter().find_map(|d| if let Detail::Copy(copy) = d { copy.bytes } else { None });
        assert_eq!((bytes, trace.manifest.value("hardware.vendor")), (Some(4096), Some("hygon")));
        assert!(trace.ledger.iter().all(|row| !row.note.starts_with("not read")), "{:?}", trace.ledger);
    }
}
