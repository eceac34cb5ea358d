#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Trace, TraceBuilder};

use super::*;

fn import(name: &str, text: &str) -> Trace {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    assert_eq!(matches(&Head::new(&path, text.as_bytes())), Match::Certain);
    let mut builder = TraceBuilder::new("t", "ncu");
    read(&path, &mut builder, &crate::ReadOptions::default()).unwrap();
    builder.finish()
}

const DETAILS: &str = r#"==PROF== Connected to process 42
hello, world
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"
"0","42","python","h","void gemm<int, 2>(T1)","1","7","(256, 1, 1)","(1056, 1, 1)","0","9.0","GPU Speed Of Light Throughput","Memory Throughput","%","12.68",
"0","42","python","h","void gemm<int, 2>(T1)","1","7","(256, 1, 1)","(1056, 1, 1)","0","9.0","Memory Workload Analysis","Memory Throughput","Mbyte/s","513.62",
"0","42","python","h","void gemm<int, 2>(T1)","1","7","(256, 1, 1)","(1056, 1, 1)","0","9.0","GPU Speed Of Light Throughput","Duration","us","16.45",
"0","42","python","h","void gemm<int, 2>(T1)","1","7","(256, 1, 1)","(1056, 1, 1)","0","9.0","SpeedOfLight","","","","SOLBottleneck","OPT","text","global","1.5"
"ID","Process ID","Process Name","Host Name","Kernel Name"
"0","43","python","h","graph","1","7","(0, 0, 0)","(0, 0, 0)","0","9.0","Occupancy","Achieved Occupancy","%","n/a",
"0","43","python","h","graph","1","7","(0, 0, 0)","(0, 0, 0)","0","9.0","Command line profiler metrics","dram__bytes.sum.per_second","Gbyte/s","2",
"1","43","pyth"#;

#[test]
fn the_details_of_a_kernel_are_one_measurement() {
    let trace = import("p.details.csv", DETAILS);
    let [gemm, graph] = trace.summaries.as_slice() else { panic!("{:?}", trace.summaries) };
    assert_eq!(trace.strings.get(gemm.kernel), "void gemm<int, 2>(T1)");
    assert_eq!((gemm.total, gemm.grid, gemm.block), (Some(16_450), Some([1056, 1, 1]), Some([256, 1, 1])));
    assert_eq!(gemm.metrics, [(Metric::Memory, 12.68), (Metric::DramBytesPerSecond, 513.62e6)]);
    assert_eq!(
        (graph.total, graph.grid, graph.metrics.as_slice()),
        (None, None, &[(Metric::DramBytesPerSecond, 2e9)][..])
    );
    assert_eq!((trace.slice_count(), trace.stat("ncu.incomplete_row")), (0, 1));
    assert!(trace.summaries.iter().all(|s| s.conditions == Conditions::Isolated));
}

const RAW: &str = r#""ID","Process ID","Kernel Name","Block Size","Grid Size","Device","CC","device__attribute_display_name","dram__bytes.sum.per_second","gpu__time_duration.sum","launch__waves_per_multiprocessor","smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio","smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"
"","","","","","","","","Gbyte/s","us","","inst","inst"
"0","42","gemm","(256, 1, 1)","(1056, 1, 1)","0","9.0","NVIDIA H800","0.513619","16.448000","1.33","0.5","7.25"
"1","42","gemm","(256, 1, 1)","(8, 1, 1)","0","9.0","NVIDIA H800","inf","3.232000","0.01","",""
"#;

#[test]
fn the_raw_page_has_its_units_in_a_row_of_their_own() {
    let trace = import("p.raw.csv", RAW);
    let [first, second] = trace.summaries.as_slice() else { panic!("{:?}", trace.summaries) };
    assert_eq!((first.total, second.total), (Some(16_448), Some(3_232)));
    assert_eq!(first.metrics, [(Metric::DramBytesPerSecond, 0.513_619e9), (Metric::Waves, 1.33)]);
    let stalls: Vec<(&str, f64)> = first.stalls.iter().map(|(r, v)| (trace.strings.get(*r), *v)).collect();
    assert_eq!(stalls, [("long_scoreboard", 7.25), ("barrier", 0.5)]);
    assert_eq!((second.metrics.as_slice(), second.stalls.len()), (&[(Metric::Waves, 0.01)][..], 0));
    assert_eq!(trace.manifest.value("hardware.device"), Some("NVIDIA H800"));
    assert_eq!(trace.ledger.iter().map(|r| (r.read, r.kept, r.time_ns)).collect::<Vec<_>>(), [(2, 2, 19_680)]);
}

#[test]
fn a_details_page_gives_way_to_the_raw_page_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let (details, raw) = (directory.path().join("p.details.csv"), directory.path().join("p.raw.csv"));
    assert_eq!(lead(&details), None);
    std::fs::write(&raw, RAW).unwrap();
    assert_eq!((lead(&details), lead(&raw)), (Some(raw.clone()), None));
}

/// A script that measures one kernel at a time leaves a file of each, and of some a second one with further metrics.
#[test]
fn a_directory_of_pages_is_one_profile_and_a_kernel_in_two_pages_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let header = DETAILS.lines().nth(2).unwrap();
    let row = |process: u32, kernel: &str, rest: &str| {
        format!(
            "\"0\",\"{process}\",\"python\",\"h\",\"{kernel}\",\"1\",\"7\",\"(256, 1, 1)\",\"(8, 1, 1)\",\"0\",\"12.0\",{rest},\n"
        )
    };
    let duration = |us: &str| format!("\"GPU Speed Of Light Throughput\",\"Duration\",\"us\",\"{us}\"");
    let read_bytes = "\"Command line profiler metrics\",\"dram__bytes_read.sum\",\"Mbyte\",\"2.33\"";
    let first = row(1, "gemm", &duration("5"));
    std::fs::write(at("kernel_1.details.csv"), format!("{header}\n{first}")).unwrap();
    let further = row(1, "gemm", &duration("5.1")) + &row(1, "gemm", read_bytes);
    std::fs::write(at("kernel_1.metrics.csv"), format!("{header}\n{further}")).unwrap();
    std::fs::write(at("kernel_2.details.csv"), format!("{header}\n{}", row(2, "add", &duration("7")))).unwrap();
    std::fs::write(at("command.yaml"), "a: b").unwrap();
    assert_eq!(matches(&Head::new(directory.path(), b"")), Match::Certain);
    let mut builder = TraceBuilder::new("t", "ncu");
    read(directory.path(), &mut builder, &crate::ReadOptions::default()).unwrap();
    let trace = builder.finish();
    let kernels: Vec<_> = trace.summaries.iter().map(|s| (trace.strings.get(s.kernel), s.total)).collect();
    assert_eq!(kernels, [("gemm", Some(5_000)), ("add", Some(7_000))]);
    let counters: Vec<_> = trace.summaries[0].counters.iter().map(|(n, v)| (trace.strings.get(*n), *v)).collect();
    assert_eq!(counters, [("dram__bytes_read.sum", 2.33e6)]);
    assert_eq!(trace.ledger.iter().map(|r| (r.read, r.kept, r.time_ns)).collect::<Vec<_>>(), [(4, 4, 12_000)]);
    // Beside a capture of another kind every file is for itself.
    std::fs::write(at("run.json"), "{}").unwrap();
    assert_eq!(matches(&Head::new(directory.path(), b"")), Match::No);
}
