#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Category, Trace, TraceBuilder, TrackKind};
use sqlx::{ConnectOptions, Executor, sqlite::SqliteConnectOptions};

use super::*;

/// Tables of one capture as schema 3 has them, cut to the columns that matter.
fn schema(id: &str, pid: i64) -> String {
    format!(
        "create table rocpd_string{id}(id integer primary key, guid text, string text);
        create table rocpd_info_process{id}(id integer primary key, nid int, pid int, environment text);
        create table rocpd_info_thread{id}(id integer primary key, pid int, tid int, name text);
        create table rocpd_info_agent{id}(id integer primary key, type text, absolute_index int, logical_index int, type_index int, name text, product_name text);
        create table rocpd_info_kernel_symbol{id}(id integer primary key, kernel_name text, display_name text);
        create table rocpd_event{id}(id integer primary key, category_id int, stack_id int, correlation_id int, extdata text);
        create table rocpd_region{id}(id integer primary key, nid int, pid int, tid int, start int, end int, name_id int, event_id int);
        create table rocpd_kernel_dispatch{id}(id integer primary key, pid int, tid int, agent_id int, kernel_id int, queue_id int, stream_id int, start int, end int, workgroup_size_x int, workgroup_size_y int, workgroup_size_z int, grid_size_x int, grid_size_y int, grid_size_z int, event_id int);
        create table rocpd_memory_copy{id}(id integer primary key, pid int, tid int, start int, end int, name_id int, dst_agent_id int, src_agent_id int, size int, stream_id int, event_id int);
        create table rocpd_sample{id}(id integer primary key, timestamp int);
        insert into rocpd_string{id} values (1,'','HIP_RUNTIME_API_EXT'),(2,'','hipLaunchKernel'),(3,'','MARKER_CORE_RANGE_API'),(4,'','roctxRangePushA'),(5,'','MEMORY_COPY_HOST_TO_DEVICE');
        insert into rocpd_info_process{id} values (1,1,{pid},'{{\"HF_TOKEN\":\"hidden\"}}');
        insert into rocpd_info_thread{id} values (9,1,77,'main');
        insert into rocpd_info_agent{id} values (1,'CPU',0,0,0,'epyc',''),(2,'GPU',4,1,0,'gfx942','AMD Instinct MI300X');
        insert into rocpd_info_kernel_symbol{id} values (33,'_Z5scale.kd','scale<float, 4>(float*)');
        insert into rocpd_event{id} values (1,1,5,0,'{{}}'),(2,1,5,0,'{{}}'),(3,3,8,0,'{{\"message\":\"step, 1\"}}'),(4,1,9,0,null);
        insert into rocpd_region{id} values (1,1,1,9,1000000000000000,1000000000000010,2,1),(2,1,1,9,1000000000000000,1000000000000100,4,3),(3,1,1,9,null,5,2,1);
        insert into rocpd_kernel_dispatch{id} values (1,1,9,2,33,2,0,1000000000000030,1000000000000050,256,1,1,1000,2,1,2),(2,1,9,2,34,2,0,1000000000000060,1000000000000061,256,1,1,256,1,1,4);
        insert into rocpd_memory_copy{id} values (1,1,9,1000000000000070,1000000000000080,5,2,1,4096,3,4);
        insert into rocpd_sample{id} values (1,1);"
    )
}

fn database(sql: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("70_results.db");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let mut db = options.connect().await.unwrap();
        db.execute(sqlx::AssertSqlSafe(sql.to_owned())).await.unwrap();
        sqlx::Connection::close(db).await.unwrap();
    });
    (directory, path)
}

fn import(path: &Path) -> Result<Trace, ReadError> {
    let mut builder = TraceBuilder::new("t", "rocpd");
    read(path, &mut builder, &crate::ReadOptions::default()).map(|()| builder.finish())
}

/// Kind, device, queue or thread of a track, and category, name, start and duration of its slices.
type Lane<'t> = (TrackKind, Option<i32>, i64, Vec<(Category, &'t str, i64, i64)>);

fn slices(trace: &Trace) -> Vec<Lane<'_>> {
    let rows = |lane: &model::Columns| {
        let row = |i: usize| (lane.category[i], trace.strings.get(lane.name[i]), lane.start[i], lane.dur[i]);
        (0..lane.len()).map(row).collect()
    };
    let tracks = trace.tracks.iter().zip(&trace.lanes);
    tracks.map(|(track, lane)| (track.key.kind, track.key.device, track.key.id, rows(lane))).collect()
}

const ID: &str = "_00003fdc_92cb_7aa1";

#[test]
fn a_capture_is_read_through_its_suffix_and_its_links() {
    let (_directory, path) = database(&schema(ID, 70));
    let head = Head::new(&path, SIGNATURE);
    assert_eq!(matches(&head), Match::Certain);
    let trace = import(&path).unwrap();
    let expected = [
        (
            TrackKind::HostThread,
            None,
            77,
            vec![(Category::UserRange, "step, 1", 0, 100), (Category::HostApi, "hipLaunchKernel", 0, 10)],
        ),
        (
            TrackKind::DeviceQueue,
            Some(1),
            2,
            vec![(Category::Kernel, "scale<float, 4>(float*)", 30, 20), (Category::Kernel, "(unnamed)", 60, 1)],
        ),
        (TrackKind::DeviceQueue, Some(1), 3, vec![(Category::Memcpy, "memcpy HtoD", 70, 10)]),
    ];
    assert_eq!(slices(&trace), expected);
    assert!(trace.lanes[1].link(0).is_some() && trace.lanes[1].link(1).is_none());
    assert_eq!(trace.processes.iter().map(|p| p.pid).collect::<Vec<_>>(), [Some(70)]);
    assert_eq!(trace.manifest.value("hardware.device"), Some("AMD Instinct MI300X"));
    let stat = |name: &str| trace.stat(&format!("rocprofv3.{name}"));
    assert_eq!((stat("incomplete_row"), stat("missing_name")), (1, 1));
    let sample = trace.ledger.iter().find(|row| row.category.starts_with("rocpd_sample")).unwrap();
    assert_eq!((sample.read, sample.kept), (1, 0));
    assert!(!format!("{trace:?}").contains("hidden"));
}

#[test]
fn a_capture_of_the_simulator_says_that_it_is_simulated() {
    let label = format!(
        "create table rocpd_metadata{ID}(id integer primary key, tag text, value text);
        insert into rocpd_metadata{ID} values (1,'schema_version','3'),(2,'strato_simulated','true');"
    );
    let (_directory, path) = database(&format!("{}{label}", schema(ID, 70)));
    assert!(import(&path).unwrap().simulated);
    let (_directory, path) = database(&schema(ID, 70));
    assert!(!import(&path).unwrap().simulated);
}

#[test]
fn a_copy_from_a_peer_lies_on_the_device_of_the_process_and_is_none_within_it() {
    let sql = schema(ID, 70).replace("'MEMORY_COPY_HOST_TO_DEVICE'", "'MEMORY_COPY_DEVICE_TO_DEVICE'").replace(
        "(2,'GPU',4,1,0,'gfx942','AMD Instinct MI300X')",
        "(2,'GPU',4,1,0,'gfx942','AMD Instinct MI300X'),(3,'GPU',5,2,1,'gfx942','')",
    );
    // Columns of the copy end with destination, source, bytes, stream and event.
    let (_directory, path) = database(&sql.replace("5,2,1,4096,3,4", "5,2,3,4096,3,4"));
    let trace = import(&path).unwrap();
    let copies: Vec<_> = slices(&trace).into_iter().filter(|lane| lane.2 == 3).map(|l| (l.1, l.3)).collect();
    assert_eq!(copies, [(Some(1), vec![(Category::Memcpy, "memcpy PtoP", 70, 10)])]);
}

#[test]
fn a_copy_lies_where_the_kernels_of_its_stream_are() {
    // Columns of a dispatch: queue 2, stream 3.
    let sql = schema(ID, 70).replace(",33,2,0,", ",33,2,3,").replace(",34,2,0,", ",34,2,3,");
    let (_directory, path) = database(&sql);
    let trace = import(&path).unwrap();
    let lanes: Vec<_> = slices(&trace).into_iter().filter(|l| l.0 == TrackKind::DeviceQueue).collect();
    let kinds: Vec<_> = lanes.iter().map(|l| (l.2, l.3.iter().map(|row| row.0).collect::<Vec<_>>())).collect();
    assert_eq!(kinds, [(2, vec![Category::Kernel, Category::Kernel, Category::Memcpy])]);
}

#[test]
fn merged_captures_keep_their_ids_apart() {
    let other = schema("_00004aaa", 71).replace("'scale<float, 4>(float*)'", "'other'");
    let (_directory, path) = database(&format!("{}{other}", schema(ID, 70)));
    let trace = import(&path).unwrap();
    assert_eq!(trace.processes.iter().map(|p| p.pid).collect::<Vec<_>>(), [Some(70), Some(71)]);
    let names: Vec<&str> = slices(&trace).iter().filter(|t| t.2 == 2).map(|t| t.3.first().unwrap().1).collect();
    assert_eq!(names, ["scale<float, 4>(float*)", "other"]);
}

#[test]
fn damage_ends_in_losses_and_never_in_a_panic() {
    let (_directory, path) = database(&schema(ID, 70));
    let whole = std::fs::read(&path).unwrap();
    for cut in (0..whole.len()).step_by(whole.len() / 40) {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let _ = import(&path);
        let mut damaged = whole.clone();
        damaged[cut..(cut + 64).min(whole.len())].fill(0xa5);
        std::fs::write(&path, &damaged).unwrap();
        let _ = import(&path);
    }
    let (_other, empty) = database("create table songs(id integer primary key)");
    assert!(import(&empty).unwrap_err().to_string().contains("rocpd_string"));
}

#[test]
fn arguments_of_a_copy_say_its_bytes_and_that_copies_were_not_traced_is_said() {
    let copies = "insert into rocpd_memory_copy";
    let sql = schema(ID, 70).replace("'hipLaunchKernel'", "'hipMemcpy'");
    let sql = sql.split(copies).next().unwrap().to_owned()
        + &format!(
            "create table rocpd_arg{ID}(id integer primary key, event_id int, position int, type text, name text, value text);
            insert into rocpd_arg{ID} values (1,1,0,'void*','dst','0x7f'),(2,1,2,'unsigned long','sizeBytes','4194304'),(3,1,3,'hipMemcpyKind','kind','HostToDevice');"
        );
    let (_directory, path) = database(&sql);
    let trace = import(&path).unwrap();
    let lane = trace.lanes.iter().find(|lane| lane.category.contains(&Category::HostApi)).unwrap();
    let call = (0..lane.len()).find(|i| lane.category[*i] == Category::HostApi).unwrap();
    let Some(model::Detail::Copy(copy)) = trace.detail(lane, call) else { panic!() };
    assert_eq!((copy.bytes, copy.direction.map(|id| trace.strings.get(id))), (Some(4_194_304), Some("HtoD")));
    assert_eq!(trace.stat("rocprofv3.copies_not_traced"), 1);
    let (_directory, path) = database(&schema(ID, 70).replace("'hipLaunchKernel'", "'hipMemcpy'"));
    assert_eq!(import(&path).unwrap().stat("rocprofv3.copies_not_traced"), 0);
}
