#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Detail, Trace, TraceBuilder};
use sqlx::{ConnectOptions, Executor, sqlite::SqliteConnectOptions};

use super::*;

/// Tables of schema 2, in which texts lie among the names, or of schema 3, in which they have a table of their own.
fn schema(version: u8) -> String {
    let (texts, columns) = if version > 2 {
        ("rocpd_ustring", "apiName_id int, category_id int, domain_id int, args_id int")
    } else {
        ("rocpd_string", "apiName_id int, args_id int")
    };
    let api = |row: &str, name: u8, text: u8| {
        if version > 2 { format!("({row},{name},1,1,{text})") } else { format!("({row},{name},{text})") }
    };
    let calls = [
        api("5,70,77,1000,1010", 2, 1),
        api("6,70,77,1020,1030", 3, 1),
        api("7,70,77,1040,1050", 4, 20),
        api("8,70,77,900,2000", 5, 21),
        api("9,70,78,1060,1070", 6, 1),
        api("10,70,77,1080,1090", 7, 1),
    ]
    .join(",");
    format!(
        "create table rocpd_metadata(id integer primary key, tag text, value text);
        create table rocpd_string(id integer primary key, string text);
        create table rocpd_ustring(id integer primary key, string text);
        create table rocpd_api(id integer primary key, pid int, tid int, start int, end int, {columns});
        create table rocpd_kernelapi(api_ptr_id integer primary key, stream text, gridX int, gridY int, gridZ int, workgroupX int, workgroupY int, workgroupZ int);
        create table rocpd_copyapi(api_ptr_id integer primary key, stream text, size int, kind int);
        create table rocpd_op(id integer primary key, gpuId int, queueId int, sequenceId int, start int, end int, description_id int, opType_id int);
        create table rocpd_api_ops(id integer primary key, api_id int, op_id int);
        create table rocpd_monitor(id integer primary key, deviceType text, deviceId int, monitorType text, start int, end int, value text);
        create table rocpd_stackframe(id integer primary key, api_ptr_id int);
        insert into rocpd_metadata(tag,value) values ('schema_version','{version}');
        insert into rocpd_string values (1,''),(2,'hipLaunchKernel'),(3,'hipMemcpyAsync'),(4,'hipGraphLaunch'),(5,'UserMarker'),(6,'OpTable::writeRows'),(7,'hipExtModuleLaunchKernel'),
            (10,'KernelExecution'),(11,'CopyHostToDevice'),(12,'Task'),(13,'scale(float*) [clone .kd]'),(14,'FillBuffer');
        insert or replace into {texts} values (20,'graphExec = 0x2 | stream = 0xa0'),(21,'decode step');
        insert into rocpd_api values {calls};
        insert into rocpd_kernelapi values (5,'0xa0',10,2,1,256,1,1),(10,'0xa0',1024,1,1,256,1,1);
        insert into rocpd_copyapi values (6,'0xb0',4096,1);
        insert into rocpd_op values (1,2,0,0,1100,1150,13,10),(2,2,0,0,1160,1180,1,11),(3,2,0,0,1200,1210,13,12),(4,2,0,0,1210,1230,13,12),(5,2,0,0,1240,1250,13,10),(6,2,3,0,1260,1270,1,14);
        insert into rocpd_api_ops values (1,5,1),(2,6,2),(3,7,3),(4,7,4),(5,10,5);
        insert into rocpd_monitor values (1,'gpu',2,'sclk',1000,1100,'1700'),(2,'gpu',2,'sclk',1100,1200,'fast');
        insert into rocpd_stackframe values (1,5);"
    )
}

fn database(sql: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.rpd");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let mut db = options.connect().await.unwrap();
        db.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()))).await.unwrap();
        sqlx::Connection::close(db).await.unwrap();
    });
    (directory, path)
}

fn import(path: &Path) -> Trace {
    let mut builder = TraceBuilder::new("t", "rpd");
    let format = crate::detect::read(path, &mut builder, &ReadOptions::default()).unwrap();
    assert_eq!(format.id, "rpd");
    builder.finish()
}

/// Category, name, start, duration, correlation and shape (or direction and bytes) of every slice, by their start.
fn slices(trace: &Trace) -> Vec<String> {
    let mut all = Vec::new();
    for (track, lane) in trace.tracks.iter().zip(&trace.lanes) {
        for i in 0..lane.len() {
            let detail = match trace.detail(lane, i) {
                Some(Detail::Kernel(kernel)) => format!(" {:?}/{:?}", kernel.grid, kernel.block),
                Some(Detail::Copy(copy)) => {
                    format!(" {} {:?}", copy.direction.map_or("-", |id| trace.strings.get(id)), copy.bytes)
                }
                _ => String::new(),
            };
            let (start, name) = (lane.start[i], trace.strings.get(lane.name[i]));
            let text =
                format!("{start}+{} {} {name} on {}{detail}", lane.dur[i], lane.category[i].name(), track.key.id);
            all.push((start, text));
        }
    }
    all.sort();
    all.into_iter().map(|(_, text)| text).collect()
}

#[test]
fn calls_and_the_work_they_caused_are_read_with_shapes_and_bytes() {
    let (_directory, path) = database(&schema(2));
    let trace = import(&path);
    let streams = ["on 160", "on 176"];
    let expected = [
        "0+1100 user_range decode step on 77".to_owned(),
        "100+10 host_api hipLaunchKernel on 77".to_owned(),
        "120+10 host_api hipMemcpyAsync on 77".to_owned(),
        "140+10 host_api hipGraphLaunch on 77".to_owned(),
        "160+10 overhead OpTable::writeRows on 78".to_owned(),
        "180+10 host_api hipExtModuleLaunchKernel on 77".to_owned(),
        format!("200+50 kernel scale(float*) {} Some([10, 2, 1])/Some([256, 1, 1])", streams[0]),
        format!("260+20 memcpy CopyHostToDevice {} HtoD Some(4096)", streams[1]),
        format!("300+10 kernel scale(float*) {} None/None", streams[0]),
        format!("310+20 kernel scale(float*) {} None/None", streams[0]),
        // A launch in work items.
        format!("340+10 kernel scale(float*) {} Some([4, 1, 1])/Some([256, 1, 1])", streams[0]),
        "360+10 memset FillBuffer on 3 - None".to_owned(),
    ];
    assert_eq!(slices(&trace), expected);
    let linked: usize =
        trace.lanes.iter().map(|lane| (0..lane.len()).filter(|i| lane.link(*i).is_some()).count()).sum();
    assert_eq!((linked, trace.stat("rpd.operation_without_call")), (5, 1));
    let counters: Vec<_> =
        trace.counters.iter().map(|c| (trace.strings.get(c.name), c.unit.as_str(), c.value.clone())).collect();
    assert_eq!(counters, [("sclk", "MHz", vec![1700.0])]);
    assert_eq!(trace.stat("rpd.incomplete_row") + trace.stat("rpd.wrong_type"), 2, "the monitor that says 'fast'");
    let frames = trace.ledger.iter().find(|row| row.category == "rocpd_stackframe").unwrap();
    assert_eq!((frames.read, frames.kept), (1, 0));
    assert_eq!(trace.manifest.value("hardware.vendor"), Some("amd"));
}

#[test]
fn schema_3_keeps_texts_apart_and_its_grids_have_no_known_unit() {
    let (_directory, path) = database(&schema(3));
    let all = slices(&import(&path));
    assert_eq!(all[0], "0+1100 user_range decode step on 77");
    assert_eq!(all[6], "200+50 kernel scale(float*) on 160 None/Some([256, 1, 1])");
    assert_eq!(all[10], "340+10 kernel scale(float*) on 160 Some([4, 1, 1])/Some([256, 1, 1])");
}

#[test]
fn a_compressed_database_is_read_as_the_plain_one() {
    let (directory, path) = database(&schema(2));
    let plain = slices(&import(&path));
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&std::fs::read(&path).unwrap()).unwrap();
    let packed = directory.path().join("trace.rpd.gz");
    std::fs::write(&packed, gz.finish().unwrap()).unwrap();
    assert_eq!(slices(&import(&packed)), plain);
}

#[test]
fn a_database_of_rocprofv3_is_not_taken() {
    let (_directory, path) = database("create table rocpd_string_1(id integer primary key, string text);");
    assert_eq!(matches(&Head::new(&path, SIGNATURE)), Match::No);
}
