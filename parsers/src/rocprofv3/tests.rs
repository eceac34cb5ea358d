#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use model::{Category, CopyDetail, Detail, ImportStat, KernelDetail, Trace, TraceBuilder, TrackKind};

use super::*;

fn import(path: &Path) -> Result<Trace, ReadError> {
    let mut builder = TraceBuilder::new("t", "rocprofv3");
    read(path, &mut builder, &crate::ReadOptions::default()).map(|()| builder.finish())
}

fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(directory.path().join(name), text).unwrap());
    directory
}

/// Kind, device, queue or thread of a track, and category, name, start, duration and correlation of its slices.
type Lane = (TrackKind, Option<i32>, i64, Vec<(Category, String, i64, i64, i64)>);

fn slices(trace: &Trace) -> Vec<Lane> {
    let rows = |lane: &model::Columns| {
        let row = |i: usize| {
            let name = trace.strings.get(lane.name[i]).to_owned();
            (lane.category[i], name, lane.start[i], lane.dur[i], lane.correlation[i])
        };
        (0..lane.len()).map(row).collect()
    };
    let mut tracks: Vec<_> = trace
        .tracks
        .iter()
        .zip(&trace.lanes)
        .map(|(track, lane)| (track.key.kind, track.key.device, track.key.id, rows(lane)))
        .collect();
    tracks.sort_by_key(|(kind, device, id, _)| (*kind, *device, *id));
    tracks
}

/// Kernel, executions, name and value of every counter.
fn counters(trace: &Trace) -> Vec<(&str, u64, &str, f64)> {
    let name = |id| trace.strings.get(id);
    let of = |s: &model::KernelSummary| (s.count, s.kernel, s.counters.clone());
    let all = trace.summaries.iter().map(of);
    all.flat_map(|(count, kernel, c)| c.into_iter().map(move |(of, v)| (name(kernel), count, name(of), v))).collect()
}

const AGENTS: &str = r#""Node_Id","Logical_Node_Id","Agent_Type","Cu_Count","Name","Vendor_Name","Product_Name","Model_Name","Logical_Node_Type_Id"
0,0,"CPU",0,"AMD EPYC","CPU","AMD EPYC","",0
2,1,"GPU",304,"gfx942","AMD","AMD Instinct MI300X","aqua",0
"#;
const KERNELS: &str = r#""Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"
"KERNEL_DISPATCH","Agent 1","2","2","77","164","33","scale<float, 4>(float*) [clone .kd]","5","1000000000000030","1000000000000050","256","1","1","1000","2","1"
"KERNEL_DISPATCH","Agent 1","2","2","77","165","33","second","6","1000000000000060","1000000000000061","256","1","1","256","1","1"
"KERNEL_DISPATCH","Agent 1","2","2","77","166","33","no times","7","","","256","1","1","256","1","1"
"KERNEL_DISPATCH","Agent 1","2","2","77","16"#;
const CALLS: &str = r#""Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"HIP_RUNTIME_API_EXT","hipLaunchKernel","70","77","5","1000000000000000","1000000000000010"
"RCCL_API","ncclAllReduce","70","77","8","1000000000000012","1000000000000013"
"#;
const MARKERS: &str = r#""Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"MARKER_CORE_RANGE_API","step, 1","70","77","1","1000000000000000","1000000000000100"
"#;
const COPIES: &str = r#""Kind","Direction","Stream_Id","Source_Agent_Id","Destination_Agent_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"MEMORY_COPY","MEMORY_COPY_HOST_TO_DEVICE","3","Agent 0","Agent 1","9","1000000000000070","1000000000000080"
"#;
const COUNTERS: &str = r#""Correlation_Id","Dispatch_Id","Agent_Id","Kernel_Name","Counter_Name","Counter_Value","Start_Timestamp","End_Timestamp"
"1","1","Agent 1","scale","FETCH_SIZE","10.5","1","3"
"1","1","Agent 1","scale","L2CacheHit","32.5","1","3"
"2","2","Agent 1","scale","OccupancyPercent","nan","7","8"
"#;

#[test]
fn the_files_of_a_process_become_one_capture() {
    let files = [
        ("70_agent_info.csv", AGENTS),
        ("70_kernel_trace.csv", KERNELS),
        ("70_hip_api_trace.csv", CALLS),
        ("70_marker_api_trace.csv", MARKERS),
        ("70_memory_copy_trace.csv", COPIES),
        ("70_counter_collection.csv", COUNTERS),
        ("unrelated.csv", "a,b\n"),
    ];
    let directory = directory(&files);
    let trace = import(&directory.path().join("70_hip_api_trace.csv")).unwrap();
    let (kernel, host) = (Category::Kernel, TrackKind::HostThread);
    let expected = [
        (
            host,
            None,
            77,
            vec![
                (Category::UserRange, "step, 1".to_owned(), 0, 100, 1),
                (Category::HostApi, "hipLaunchKernel".to_owned(), 0, 10, 5),
                (Category::CollectiveCall, "ncclAllReduce".to_owned(), 12, 1, 8),
            ],
        ),
        (
            TrackKind::DeviceQueue,
            Some(1),
            2,
            vec![(kernel, "scale<float, 4>(float*)".to_owned(), 30, 20, 5), (kernel, "second".to_owned(), 60, 1, 6)],
        ),
        (TrackKind::DeviceQueue, Some(1), 3, vec![(Category::Memcpy, "memcpy HtoD".to_owned(), 70, 10, 9)]),
    ];
    assert_eq!(slices(&trace), expected);
    let detail = KernelDetail { grid: Some([4, 2, 1]), block: Some([256, 1, 1]), ..KernelDetail::default() };
    assert!(trace.details.contains(&Detail::Kernel(detail)), "{:?}", trace.details);
    assert_eq!(trace.processes.iter().map(|p| p.pid).collect::<Vec<_>>(), [Some(70)]);
    let linked = trace.lanes.iter().flat_map(|lane| (0..lane.len()).filter_map(|i| lane.link(i))).count();
    assert_eq!((linked, trace.stat("trace.device_work_without_launch")), (1, 2));
    assert_eq!(trace.manifest.value("hardware.device"), Some("AMD Instinct MI300X"));
    assert_eq!(trace.devices.iter().map(|d| (d.ordinal, d.cores)).collect::<Vec<_>>(), [(1, Some(304))]);
    // The row without times, and the one that was cut off.
    assert_eq!(trace.stat("rocprofv3.incomplete_row"), 2);
    let counted: Vec<_> = trace.summaries.iter().map(|s| (s.count, s.total, s.metrics.clone())).collect();
    // 10.5 KiB in 2 ns.
    let of_first = vec![(model::Metric::L2Hit, 32.5), (model::Metric::DramReadBytesPerSecond, 5.376e12)];
    assert_eq!(counted, [(1, Some(2), of_first), (1, Some(1), Vec::new())]);
    assert_eq!(counters(&trace), [("scale", 1, "FETCH_SIZE", 10.5), ("scale", 1, "L2CacheHit", 32.5)]);
    let ledger = |table: &str| {
        trace.ledger.iter().find(|row| row.category == table).map(|row| (row.read, row.kept, row.time_ns))
    };
    assert_eq!(ledger("70_kernel_trace.csv"), Some((4, 2, 21)));
    assert_eq!(ledger("70_counter_collection.csv"), Some((3, 3, 0)));
}

#[test]
fn every_file_of_a_capture_but_the_first_has_that_as_its_lead() {
    let directory = directory(&[("a_kernel_trace.csv", KERNELS), ("a_hip_api_trace.csv", CALLS)]);
    let first = directory.path().join("a_hip_api_trace.csv");
    assert_eq!(lead(&directory.path().join("a_kernel_trace.csv")), Some(first.clone()));
    assert_eq!(lead(&first), None);
}

#[test]
fn processes_of_one_machine_keep_their_correlations_apart() {
    let calls = CALLS.replace("\"70\"", "\"71\"").replace("\"77\"", "\"78\"");
    let files = [("70_kernel_trace.csv", KERNELS), ("71_hip_api_trace.csv", calls.as_str())];
    let trace = import(&directory(&files).path().join("70_kernel_trace.csv")).unwrap();
    assert_eq!(trace.processes.iter().map(|p| p.pid).collect::<Vec<_>>(), [Some(70), Some(71)]);
    assert_eq!(trace.stat("trace.device_work_without_launch"), 2);
}

const JSON: &str = r#"{"rocprofiler-sdk-tool":[{"metadata":{"pid":70,"node":{"hostname":"h"},"init_time":1,"fini_time":2},
"buffer_records":{"kernel_dispatch":[
 {"size":1,"kind":3,"operation":1,"thread_id":77,"correlation_id":{"internal":5,"external":0},"start_timestamp":1000000000000030,"end_timestamp":1000000000000050,
  "dispatch_info":{"size":1,"agent_id":{"handle":18446744073709551615},"queue_id":{"handle":2},"kernel_id":33,"dispatch_id":164,"workgroup_size":{"x":256,"y":1,"z":1},"grid_size":{"x":1000,"y":2,"z":1}},"stream_id":{"handle":2}},
 {"kind":3,"start_timestamp":"wrong"},
 {"kind":3,"operation":1,"correlation_id":{"internal":6},"start_timestamp":1000000000000060,"end_timestamp":1000000000000061,"dispatch_info":{"agent_id":{"handle":18446744073709551615},"queue_id":{"handle":2},"kernel_id":99}}],
 "hip_api":[{"kind":1,"operation":1,"thread_id":77,"correlation_id":{"internal":5},"start_timestamp":1000000000000000,"end_timestamp":1000000000000010}],
 "marker_api":[{"kind":2,"operation":0,"thread_id":77,"correlation_id":{"internal":1},"start_timestamp":1000000000000000,"end_timestamp":1000000000000100}],
 "memory_copy":[{"kind":4,"operation":1,"thread_id":77,"correlation_id":{"internal":9},"start_timestamp":1000000000000070,"end_timestamp":1000000000000080,"src_agent_id":{"handle":4},"dst_agent_id":{"handle":18446744073709551615},"bytes":4096,"stream_id":{"handle":3}}],
 "scratch_memory":[{"a":[{"b":1}]}]},
"agents":[{"id":{"handle":4},"type":1,"node_id":0,"logical_node_id":0,"name":"cpu"},{"id":{"handle":18446744073709551615},"type":2,"node_id":2,"logical_node_id":1,"name":"gfx942","product_name":"AMD Instinct MI300X","cu_count":304}],
"strings":{"callback_records":[],"buffer_records":[{"kind":"NONE","operations":[]},{"kind":"HIP_RUNTIME_API_EXT","operations":["none","hipLaunchKernel"]},{"kind":"MARKER_CORE_RANGE_API","operations":["roctxRangePushA"]},{"kind":"KERNEL_DISPATCH","operations":[]},{"kind":"MEMORY_COPY","operations":["x","MEMORY_COPY_HOST_TO_DEVICE"]}],"marker_api":[{"key":1,"value":"step, 1"}]},
"kernel_symbols":[{"kernel_id":33,"kernel_name":"_Z5scale.kd","formatted_kernel_name":"scale<float, 4>(float*) [clone .kd]"}]}]}"#;

fn json(text: &str) -> Result<Trace, ReadError> {
    import(&directory(&[("70_results.json", text)]).path().join("70_results.json"))
}

#[test]
fn json_gives_what_the_tables_give_wherever_its_names_stand() {
    let trace = json(JSON).unwrap();
    let kernel = Category::Kernel;
    let expected = [
        (
            TrackKind::HostThread,
            None,
            77,
            vec![
                (Category::UserRange, "step, 1".to_owned(), 0, 100, 1),
                (Category::HostApi, "hipLaunchKernel".to_owned(), 0, 10, 5),
            ],
        ),
        (
            TrackKind::DeviceQueue,
            Some(1),
            2,
            vec![(kernel, "scale<float, 4>(float*)".to_owned(), 30, 20, 5), (kernel, "(unnamed)".to_owned(), 60, 1, 6)],
        ),
        (TrackKind::DeviceQueue, Some(1), 3, vec![(Category::Memcpy, "memcpy HtoD".to_owned(), 70, 10, 9)]),
    ];
    assert_eq!(slices(&trace), expected);
    let direction = trace.strings.find("HtoD");
    let copy = CopyDetail { direction, bytes: Some(4096), ..CopyDetail::default() };
    assert!(trace.details.contains(&Detail::Copy(copy)), "{:?}", trace.details);
    assert_eq!((trace.stat("rocprofv3.incomplete_row"), trace.stat("rocprofv3.missing_name")), (1, 1));
    assert_eq!(trace.manifest.value("hardware.device"), Some("AMD Instinct MI300X"));
}

#[test]
fn json_that_is_cut_off_gives_what_came_before() {
    let names = JSON.find("\"buffer_records\"").unwrap();
    let tail = JSON.find("\"agents\"").unwrap();
    // The records last, as the tool writes them, and the end missing.
    let text = format!("{}{},{}", &JSON[..names], &JSON[tail..JSON.len() - 3], &JSON[names..tail]);
    let whole = json(&format!("{}}}]}}", text.trim_end().trim_end_matches(','))).unwrap();
    assert_eq!(whole.slice_count(), json(JSON).unwrap().slice_count());
    let cut = text.find("\"hip_api\"").unwrap();
    let trace = json(&text[..cut]).unwrap();
    assert_eq!((trace.slice_count(), trace.stat("rocprofv3.damaged_file")), (2, 1));
    for end in 0..text.len() {
        let _ = json(&text[..end]);
    }
}

#[test]
fn what_it_recognises_is_its_own() {
    let sure = |text: &str| matches(&Head::new(Path::new("x"), text.as_bytes()));
    assert_eq!(sure(JSON), Match::Named);
    for known in [KERNELS, CALLS, COPIES, AGENTS, COUNTERS] {
        assert_eq!(sure(known), Match::Certain, "{known}");
    }
    for other in ["Name,Calls,TotalDurationNs\n", "{\"traceEvents\":[]}", "", "{\"rocprofiler-sdk-tools\":[]}"] {
        assert_eq!(sure(other), Match::No, "{other}");
    }
}

#[test]
fn kernels_of_repeated_runs_have_their_times_rounded_to_nanoseconds() {
    let rows = "Dispatch_ID,GPU_ID,Grid_Size,Workgroup_Size,Kernel_Name,Correlation_ID,Start_Timestamp,End_Timestamp\n\
                0,0,77824,256,__amd_rocclr_fillBufferAligned,1,41551790928449.54,41551790935219.08\n\
                1,0,256,256,mm,2,41551790935300.5,41551790935400.25\n";
    let files = directory(&[("pmc_perf.csv", rows)]);
    let trace = import(&files.path().join("pmc_perf.csv")).unwrap();
    let lanes = slices(&trace);
    let kernels: Vec<_> =
        lanes.iter().flat_map(|lane| &lane.3).map(|row| (row.3 - lanes[0].3[0].2, row.2, row.4)).collect();
    assert_eq!((kernels.len(), lanes[0].3[0].3, lanes[0].3[1].3), (2, 6_769, 99));
    assert_eq!(trace.stat(ImportStat::RUN_ALONE), 2);
}

#[test]
fn numbers_of_dispatches_without_a_row_are_missing_kernels() {
    let missing = |rows: &str| {
        let files = directory(&[("70_kernel_trace.csv", rows)]);
        import(&files.path().join("70_kernel_trace.csv")).unwrap().stat(ImportStat::MISSING_KERNELS)
    };
    assert_eq!(missing(KERNELS), 0);
    assert_eq!(missing(&KERNELS.replace("\"165\"", "\"1100\"")), 935);
}

/// Two exports of a run in one table made every kernel run twice.
#[test]
fn rows_of_a_dispatch_that_stand_twice_count_once() {
    let rows = KERNELS.lines().skip(1).take(2).collect::<Vec<_>>().join("\n");
    let header = KERNELS.lines().next().unwrap();
    let files = directory(&[("70_kernel_trace.csv", &format!("{header}\n{rows}\n{rows}\n"))]);
    let trace = import(&files.path().join("70_kernel_trace.csv")).unwrap();
    assert_eq!(
        (trace.slice_count(), trace.stat(ImportStat::DOUBLED_ROWS), trace.stat(ImportStat::MISSING_KERNELS)),
        (2, 2, 0)
    );
}

/// A column for each counter: means by kernel and shape, for a value of each of two thousand counters and each dispatch is too
/// much.
#[test]
fn counters_of_rocprof_compute_are_means_of_each_kernel() {
    let table = "Dispatch_ID,GPU_ID,Grid_Size,Workgroup_Size,Kernel_Name,Correlation_ID,Kernel_ID,SQ_WAVES,Kernel_ID_1,\
                 TCC_HIT_sum,TCC_MISS_sum,Start_Timestamp,End_Timestamp\n\
                 0,0,512,256,a.kd,1,1,4,1,30,10,100.5,300.25\n1,0,512,256,a.kd,2,1,6,1,50,10,400,500\n\
                 2,0,1024,256,a.kd,3,1,8,1,n/a,,600,700\n3,0,512,256,torn,4,1,8\n";
    let directory = directory(&[("pmc_perf.csv", table)]);
    let trace = import(&directory.path().join("pmc_perf.csv")).unwrap();
    let expected = [
        ("a", 2, "SQ_WAVES", 5.0),
        ("a", 2, "TCC_HIT_sum", 40.0),
        ("a", 2, "TCC_MISS_sum", 10.0),
        ("a", 1, "SQ_WAVES", 8.0),
    ];
    assert_eq!((trace.slice_count(), counters(&trace)), (3, expected.to_vec()));
    let [first, second] = trace.summaries.as_slice() else { panic!("{:?}", trace.summaries) };
    assert_eq!((first.total, first.range, first.grid), (Some(299), Some((100, 199)), Some([2, 1, 1])));
    assert_eq!(first.metrics, [(model::Metric::L2Hit, 80.0)]);
    assert_eq!((second.grid, second.metrics.len()), (Some([4, 1, 1]), 0));
    let row = trace.ledger.iter().find(|row| row.category == "pmc_perf.csv: counters").unwrap();
    assert_eq!((row.read, row.kept), (7, 4), "{}", row.note);
    assert_eq!(trace.stat("rocprofv3.incomplete_row"), 1);
}

#[test]
fn tables_beside_a_run_are_declined_where_it_is_not_there() {
    let directory = directory(&[("pmc_dispatch_info.csv", "Dispatch_ID,Kernel_Name,GPU_ID\n0,a,0\n")]);
    let told = import(&directory.path().join("pmc_dispatch_info.csv")).unwrap_err().to_string();
    assert!(told.contains("pmc_dispatch_info.csv") && told.contains("give the directory with"), "{told}");
}
