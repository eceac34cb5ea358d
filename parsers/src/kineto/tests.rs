#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod damage;
mod forms;

use std::io::Write;

use model::{Category, Detail, SyncKind, Trace, TraceBuilder, trace::NO_CORRELATION};

use super::FORMAT;
use crate::ReadError;

fn try_read(content: &[u8]) -> Result<Trace, ReadError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(content).unwrap();
    let mut sink = TraceBuilder::new("test", "kineto");
    (FORMAT.read)(file.path(), &mut sink, &crate::ReadOptions::default())?;
    Ok(sink.finish())
}

fn read(content: &str) -> Trace {
    try_read(content.as_bytes()).unwrap()
}

/// A trace of these events and this further metadata.
fn trace(events: &str, metadata: &str) -> Trace {
    read(&format!(r#"{{"schemaVersion": 1, "traceEvents": [{events}]{metadata}}}"#))
}

/// Every slice as `kind/device/id name category start+dur correlation`, track by track.
fn rows(trace: &Trace) -> Vec<String> {
    let mut rows = Vec::new();
    for (track, lane) in trace.tracks.iter().zip(&trace.lanes) {
        for i in 0..lane.len() {
            let device = track.key.device.map_or("-".to_owned(), |d| d.to_string());
            let correlation = match lane.correlation[i] {
                NO_CORRELATION => "-".to_owned(),
                id => id.to_string(),
            };
            rows.push(format!(
                "{}/{device}/{} {} {} {}+{} {correlation}",
                track.key.kind.name(),
                track.key.id,
                trace.strings.get(lane.name[i]),
                lane.category[i].name(),
                lane.start[i],
                lane.dur[i],
            ));
        }
    }
    rows
}

fn detail(trace: &Trace, name: &str) -> Option<Detail> {
    let id = trace.strings.find(name).expect(name);
    trace.lanes.iter().find_map(|lane| {
        let i = lane.name.iter().position(|n| *n == id)?;
        trace.detail(lane, i).cloned()
    })
}

fn text(trace: &Trace, id: Option<model::StringId>) -> &str {
    id.map_or("-", |id| trace.strings.get(id))
}

const LAUNCH: &str = r#"{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 90, "tid": 91, "ts": 1000.5,
    "dur": 4.25, "args": {"External id": 3, "cbid": 211, "correlation": 17}}"#;
const KERNEL: &str = r#"{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1010.125, "dur": 20,
    "args": {"External id": 3, "device": 0, "context": 1, "stream": 7, "correlation": 17, "grid": [8, 4, 1],
    "block": [128, 1, 1], "graph id": 5, "graph node id": 9, "blocks per SM": "inf"}}"#;

#[test]
fn a_launch_and_its_kernel() {
    let t = trace(&format!("{LAUNCH},\n{KERNEL}"), r#", "baseTimeNanoseconds": 1751410836000000000"#);
    assert_eq!(
        rows(&t),
        ["host_thread/-/91 cudaLaunchKernel host_api 0+4250 17", "device_queue/0/7 gemm kernel 9625+20000 17"]
    );
    assert_eq!(t.lanes[1].link(0), Some(t.lanes[0].id(0)));
    let Some(Detail::Kernel(kernel)) = detail(&t, "gemm") else { panic!("no kernel detail") };
    assert_eq!((kernel.grid, kernel.block), (Some([8, 4, 1]), Some([128, 1, 1])));
    assert_eq!((kernel.graph, kernel.graph_node), (Some(5), Some(9)));
    assert_eq!(t.start_unix_ns, Some(1_751_410_836_001_000_500), "the base may follow the events");
    assert_eq!(t.processes[0].pid, Some(90));
    let ledger: Vec<_> = t.ledger.iter().map(|r| (r.category.as_str(), r.read, r.kept, r.time_ns)).collect();
    assert_eq!(ledger, [("cuda_runtime", 1, 1, 4250), ("kernel", 1, 1, 20000)]);
}

#[test]
fn marks_of_iterations_are_ranges_in_the_files_of_2021_too() {
    let t = trace(
        r#"{"ph": "X", "cat": "Operator", "name": "ProfilerStep#2", "pid": 9, "tid": "9", "ts": 1, "dur": 25, "args": {}},
        {"ph": "X", "cat": "Operator", "name": "Optimizer.step#SGD.step", "pid": 9, "tid": "9", "ts": 2, "dur": 5, "args": {}},
        {"ph": "X", "cat": "Operator", "name": "enumerate(DataLoader)#x", "pid": 9, "tid": "9", "ts": 8, "dur": 5, "args": {}}"#,
        "",
    );
    let kinds: Vec<Category> = t.lanes.iter().flat_map(|lane| lane.category.iter().copied()).collect();
    assert_eq!(kinds, [Category::UserRange, Category::UserRange, Category::FrameworkOp]);
}

#[test]
fn the_files_of_2021() {
    let t = trace(
        r#"{"ph": "X", "cat": "Operator", "name": "aten::empty", "pid": 9, "tid": "9", "ts": 1623142623460111, "dur": 25,
            "args": {"Device": 9, "External id": 2, "Input Dims": [[], [2, 3]], "Call stack": "a.py(1): f;b"}},
        {"ph": "X", "cat": "Runtime", "name": "cudaMemcpyAsync", "pid": 9, "tid": "9", "ts": 1623142623460120, "dur": 2,
            "args": {"correlation": 4, "external id": 2}},
        {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": "stream 7",
            "ts": 1623142623460130, "dur": 9, "args": {"device": 0, "stream": 7, "correlation": 4, "external id": 2, "bytes": 64}},
        {"ph": "i", "s": "t", "name": "[memory]", "pid": 9, "tid": 9, "ts": 1623142623460121, "args": {"Device Type": 0, "Bytes": 4}}"#,
        "",
    );
    assert_eq!(
        rows(&t),
        [
            "host_thread/-/9 aten::empty framework_op 0+25000 -",
            "host_thread/-/9 cudaMemcpyAsync host_api 9000+2000 4",
            "device_queue/0/7 Memcpy HtoD (Pageable -> Device) memcpy 19000+9000 4",
        ]
    );
    let Some(Detail::Copy(copy)) = detail(&t, "Memcpy HtoD (Pageable -> Device)") else { panic!("no copy detail") };
    let words = [copy.direction, copy.src, copy.dst].map(|id| text(&t, id));
    assert_eq!((words, copy.bytes), (["HtoD", "pageable", "device"], Some(64)));
    let Some(Detail::Op(op)) = detail(&t, "aten::empty") else { panic!("no op detail") };
    assert_eq!(text(&t, op.shapes), "[[],[2,3]]");
    assert_eq!(t.start_unix_ns, Some(1_623_142_623_460_111_000), "absolute times are Unix times");
    assert_eq!(t.stat("kineto.memory_events_without_total"), 1);
}

#[test]
fn absolute_decimal_times_keep_every_nanosecond() {
    let t = read(
        r#"[{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1712195495519689.001, "dur": 63.813},
            {"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 1, "ts": "1712195495519690.0025", "dur": "0.5"}]"#,
    );
    assert_eq!(rows(&t), ["host_thread/-/1 a framework_op 0+63813 -", "host_thread/-/1 b framework_op 1002+500 -"]);
    assert_eq!(t.start_unix_ns, Some(1_712_195_495_519_689_001));
    assert_eq!(t.stat("kineto.times_rounded_to_ns"), 1);
}

#[test]
fn device_rows_that_are_no_work() {
    let t = trace(
        &[
            r#"{"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 1000007, "ts": 1, "dur": 2,
                "args": {"cuda_sync_kind": "Stream Wait Event", "stream": 7, "correlation": 5, "device": 0, "context": 1}}"#,
            r#"{"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#1", "pid": 0, "tid": 7, "ts": 1, "dur": 9}"#,
            r#"{"ph": "X", "cat": "cuda_profiler_range", "name": "gemm", "pid": 0, "tid": 0, "ts": 1, "dur": 9}"#,
            r#"{"ph": "X", "cat": "overhead", "name": "Buffer Flush", "pid": -1, "tid": 0, "ts": 3, "dur": 1}"#,
            r#"{"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 0, "dur": 50}"#,
            r#"{"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 60}"#,
        ]
        .join(","),
        "",
    );
    assert_eq!(
        rows(&t),
        [
            "device_sync/0/7 Stream Wait Event device_sync 1000+2000 5",
            "device_annotation/0/7 ProfilerStep#1 device_range 1000+9000 -",
            "device_annotation/0/0 gemm device_other 1000+9000 -",
            "global/-/0 Buffer Flush overhead 3000+1000 -",
            "global/-/-1099511627777 PyTorch Profiler (0) capture_span 0+50000 -",
        ]
    );
    assert_eq!(detail(&t, "Stream Wait Event"), Some(Detail::Sync(SyncKind::StreamWaitEvent)));
    assert_eq!(t.window, Some(model::Span::new(0, 50_000)));
    assert!(t.devices.is_empty(), "no device did work");
    let instants = t.ledger.iter().find(|r| r.category == "instants").unwrap();
    assert_eq!((instants.read, instants.kept), (1, 0));
}

#[test]
fn calls_of_roctracer_without_correlation_find_their_kernels_by_the_external_id() {
    let t = trace(
        &[
            r#"{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 5, "tid": 5, "ts": 1, "dur": 9, "args": {"External id": 25}}"#,
            r#"{"ph": "X", "cat": "cuda_runtime", "name": "hipExtModuleLaunchKernel", "pid": 5, "tid": 5, "ts": 2, "dur": 1,
                "args": {"External id": 25, "stream": "0x0", "grid dim": [512, 4, 1]}}"#,
            r#"{"ph": "X", "cat": "kernel", "name": "Cijk", "pid": 2, "tid": 0, "ts": 4, "dur": 8, "args": {"External id": 25}}"#,
            r#"{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 5, "ts": 6, "dur": 1,
                "args": {"External id": 7}}"#,
            r#"{"ph": "X", "cat": "kernel", "name": "other", "pid": 0, "tid": 7, "ts": 13, "dur": 1,
                "args": {"External id": 7, "device": 0, "stream": 7}}"#,
        ]
        .join(","),
        "",
    );
    let of = |name: &str| rows(&t).into_iter().find(|row| row.contains(name)).unwrap();
    assert!(of("hipExt").ends_with(" 25") && of("Cijk").ends_with(" 25"), "{:?}", rows(&t));
    // What another writer calls so is the id of an operator.
    assert!(of("aten::mm").ends_with(" -") && of("cudaLaunch").ends_with(" -") && of("other").ends_with(" -"));
}

#[test]
fn rocm_mtia_and_forks() {
    let t = trace(
        &[
            r#"{"ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel", "pid": 5, "tid": 5, "ts": 1, "dur": 1,
                "args": {"cid": 9, "stream": "0x0", "size": "2560", "correlation": 1}}"#,
            r#"{"ph": "X", "cat": "kernel", "name": "Cijk", "pid": 2, "tid": 0, "ts": 3, "dur": 1,
                "args": {"device": 2, "stream": 0, "correlation": 1, "kind": "Dispatch Kernel"}}"#,
            r#"{"ph": "X", "cat": "mtia_ccp_events", "name": "dma_request", "pid": 9, "tid": 801, "ts": 4, "dur": 1,
                "args": {"stream": 1, "direction": "DEVICE_TO_HOST", "size": 16}}"#,
            r#"{"ph": "X", "cat": "mlu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "pid": 0, "tid": 3, "ts": 5, "dur": 1}"#,
            r#"{"ph": "X", "cat": "kernel", "name": "mlu", "pid": 0, "tid": 3, "ts": 6, "dur": 1,
                "args": {"kernel type": "UNION4", "dimx": 4, "dimy": 2, "dimz": 1, "tasktopo": 0, "tasktopo_node": 0}}"#,
            r#"{"ph": "X", "cat": "privateuse1_runtime", "name": "musaLaunchKernel", "pid": 5, "tid": 5, "ts": 7, "dur": 1}"#,
            r#"{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy M2D", "pid": 1, "tid": 3, "ts": 8, "dur": 1,
                "args": {"device": 1, "context": "0x55aa", "bytes": "12"}}"#,
            r#"{"ph": "X", "cat": "zzz_kernel_v2", "name": "z", "pid": 1, "tid": 3, "ts": 9, "dur": 1}"#,
        ]
        .join(","),
        r#", "hip_runtime_version": 60443483, "deviceProperties": [{"id": 0, "name": "", "totalGlobalMem": 7}]"#,
    );
    assert_eq!(
        rows(&t),
        [
            "host_thread/-/5 hipLaunchKernel host_api 0+1000 1",
            "host_thread/-/5 musaLaunchKernel host_api 6000+1000 -",
            "device_queue/2/0 Cijk kernel 2000+1000 1",
            "device_queue/9/801 dma_request memcpy 3000+1000 -",
            "device_queue/0/3 Memcpy DtoD (Device -> Device) memcpy 4000+1000 -",
            "device_queue/0/3 mlu kernel 5000+1000 -",
            "device_queue/1/3 Memcpy M2D memcpy 7000+1000 -",
            "device_queue/1/3 z kernel 8000+1000 -",
        ]
    );
    let Some(Detail::Kernel(kernel)) = detail(&t, "mlu") else { panic!("no kernel detail") };
    assert_eq!((kernel.grid, kernel.graph, kernel.graph_node), (Some([4, 2, 1]), None, None));
    let Some(Detail::Copy(copy)) = detail(&t, "dma_request") else { panic!("no copy detail") };
    assert_eq!((text(&t, copy.direction), copy.bytes), ("DtoH", Some(16)));
    assert_eq!((t.stat("kineto.unknown_category"), t.stat("kineto.values_of_wrong_type")), (1, 0));
    assert_eq!(t.manifest.value("software.toolkit"), Some("HIP 6.4.43483"));
    assert_eq!(t.manifest.value("hardware.device"), None, "an empty name is no name");
    assert_eq!(t.manifest.value("hardware.count"), Some("4"));
    assert_eq!(t.devices.iter().find(|d| d.ordinal == 2).map(|d| text(&t, d.vendor)), Some("amd"));
}

#[test]
fn a_copy_call_says_its_direction_where_it_has_one() {
    let call = |name: &str, kind: &str, ts: u32| {
        format!(
            r#"{{"ph": "X", "cat": "cuda_runtime", "name": "{name}", "pid": 5, "tid": 5, "ts": {ts}, "dur": 1,
                "args": {{"cid": 153, "correlation": {ts}, "bytes": "8", "kind": "{kind}"}}}}"#
        )
    };
    let events = [
        call("hipMemcpyWithStream", "2", 1),
        call("hipMemcpyAsync", "4", 2),
        call("hipLaunchKernel", "1", 3),
        r#"{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "pid": 2, "tid": 3, "ts": 9, "dur": 1,
            "args": {"kind": "DtoD", "correlation": 1, "bytes": 8}}"#
            .to_owned(),
    ];
    let t = trace(&events.join(","), "");
    let Some(Detail::Copy(copy)) = detail(&t, "hipMemcpyWithStream") else { panic!("no copy detail") };
    assert_eq!((text(&t, copy.direction), copy.bytes), ("DtoH", Some(8)));
    assert_eq!((detail(&t, "hipMemcpyAsync"), detail(&t, "hipLaunchKernel")), (None, None));
    assert!(detail(&t, "Memcpy DtoD (Device -> Device)").is_some());
}

#[test]
fn collectives_on_host_and_device() {
    let args = r#""Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 100, "Out msg nelems": 400,
        "Group size": 8, "Process Group Name": "0", "Seq": 12"#;
    let t = trace(
        &format!(
            r#"{{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 5, "tid": 5, "ts": 1, "dur": 1, "args": {{{args}}}}},
            {{"ph": "X", "cat": "kernel", "name": "ncclDevKernel", "pid": 0, "tid": 9, "ts": 2, "dur": 1, "args": {{"stream": 9, {args}}}}}"#
        ),
        "",
    );
    let Some(Detail::Collective(host)) = detail(&t, "record_param_comms") else { panic!("no collective") };
    let Some(Detail::Kernel(kernel)) = detail(&t, "ncclDevKernel") else { panic!("no kernel detail") };
    assert_eq!(kernel.collective.as_deref(), Some(&*host));
    assert_eq!((host.bytes, host.group_size, host.seq), (Some(800), Some(8), Some(12)));
    assert_eq!([host.op, host.group, host.dtype].map(|id| text(&t, id)), ["allreduce", "0", "BFloat16"]);
}

#[test]
fn counters_of_any_category_are_kept_with_their_numbers() {
    let t = trace(
        &[
            r#"{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 5, "tid": 6, "ts": 1, "dur": 9}"#,
            r#"{"ph": "C", "cat": "scheduler", "name": "num_requests_waiting", "pid": 5, "tid": 5, "ts": 2.5, "args": {"num_requests_waiting": 3}}"#,
            r#"{"ph": "C", "cat": "scheduler", "name": "num_requests_waiting", "pid": 5, "tid": 5, "ts": 4, "args": {"num_requests_waiting": 0}}"#,
            r#"{"ph": "C", "name": "kv_cache_usage", "pid": 5, "tid": 5, "ts": 3, "args": {"kv_cache_usage": 0.625}}"#,
        ]
        .join(","),
        "",
    );
    let mut counters: Vec<_> =
        t.counters.iter().map(|c| (t.strings.get(c.name), c.device, c.t.clone(), c.value.clone())).collect();
    counters.sort_by_key(|counter| counter.0.to_owned());
    assert_eq!(
        counters,
        [
            ("kv_cache_usage", None, vec![2000], vec![0.625]),
            ("num_requests_waiting", None, vec![1500, 3000], vec![3.0, 0.0]),
        ]
    );
}

#[test]
fn memory_counters_flows_names_and_python() {
    let t = trace(
        &[
            r#"{"ph": "M", "name": "process_name", "pid": 5, "tid": 0, "args": {"name": "VLLM::Worker"}}"#,
            r#"{"ph": "M", "name": "thread_name", "pid": 5, "tid": 6, "args": {"name": "thread 6 (python)"}}"#,
            r#"{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 5, "tid": 6, "ts": 1, "dur": 1}"#,
            r#"{"ph": "X", "cat": "cpu_op", "name": "b", "pid": 8, "tid": 6, "ts": 1, "dur": 1}"#,
            r#"{"ph": "X", "cat": "python_function", "name": "x.py(1): gc_step", "pid": 5, "tid": 6, "ts": 0.5, "dur": 9, "args": {"Python parent id": null}}"#,
            r#"{"ph": "X", "cat": "python_function", "name": "Python GC", "pid": 5, "tid": 6, "ts": 4, "dur": 1}"#,
            r#"{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 5, "tid": 6, "ts": 2,
                "args": {"Total Allocated": 1003059712, "Bytes": 4, "Addr": 18446744073709551615, "Device Id": 0, "Device Type": 1}}"#,
            r#"{"ph": "C", "cat": "hardware_counters", "name": "SM active", "pid": "GPU 3 Counters", "tid": 0, "ts": 3, "args": {"v": 41.5}}"#,
            r#"{"ph": "f", "id": 1, "pid": 5, "tid": 6, "ts": 1.5, "cat": "fwdbwd", "name": "fwdbwd", "bp": "e"}"#,
            r#"{"ph": "s", "id": 1, "pid": 5, "tid": 6, "ts": 1.25, "cat": "fwdbwd", "name": "fwdbwd"}"#,
            r#"{"ph": "s", "id": 2, "pid": 5, "tid": 6, "ts": 1.25, "cat": "fwdbwd", "name": "fwdbwd"}"#,
            r#"{"ph": "s", "id": 17, "pid": 5, "tid": 6, "ts": 1.25, "cat": "ac2g", "name": "ac2g"}"#,
        ]
        .join(","),
        "",
    );
    assert_eq!(
        rows(&t),
        [
            "host_thread/-/6 x.py(1): gc_step python_frame 0+9000 -",
            "host_thread/-/6 a framework_op 500+1000 -",
            "host_thread/-/6 Python GC gc 3500+1000 -",
            "host_thread/-/-1099511627777 b framework_op 500+1000 -",
        ]
    );
    let names: Vec<_> = t.tracks.iter().map(|track| text(&t, track.name)).collect();
    assert_eq!(names, ["5/thread 6 (python)", "8/6"]);
    assert_eq!(text(&t, t.processes[0].name), "VLLM::Worker");
    let counters: Vec<_> =
        t.counters.iter().map(|c| (t.strings.get(c.name), c.device, &*c.unit, c.t[0], c.value[0])).collect();
    assert_eq!(
        counters,
        [("memory.allocated", Some(0), "B", 1500, 1_003_059_712.0), ("SM active", Some(3), "", 2500, 41.5)]
    );
    assert_eq!((t.flows.len(), t.flows[0].from.1, t.flows[0].to.1), (1, 750, 1000));
    assert_eq!(t.stat("kineto.flows_without_partner"), 1);
    let row = |name: &str| t.ledger.iter().find(|r| r.category == name).map(|r| (r.read, r.kept)).unwrap();
    assert_eq!((row("flow fwdbwd"), row("flow ac2g"), row("metadata events")), ((3, 2), (1, 0), (2, 2)));
}

#[test]
fn l3_names_of_processes_and_threads_leave_no_secret_in_the_strings() {
    let t = trace(
        r#"{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "serve --api-key LEAK1 https://u:LEAK2@h sk-LEAK3abcdefghijklmnop"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 7, "args": {"name": "worker --token LEAK4 /home/LEAK5/x"}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 7, "ts": 0, "dur": 5}"#,
        "",
    );
    assert_eq!(text(&t, t.processes[0].name), "serve --api-key *** https://***@h ***");
    assert_eq!(text(&t, t.tracks[0].name), "worker --token *** ~/x");
    let leaks: Vec<_> = t.strings.iter().filter(|(_, text)| text.contains("LEAK")).collect();
    assert!(leaks.is_empty(), "{leaks:?}");
}

#[test]
fn facts_become_the_manifest() {
    let t = trace(
        KERNEL,
        r#", "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84929347584, "numSms": 132},
            {"id": 1, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84929347584, "numSms": 132}],
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8, "nccl_version": "2.21.5"},
        "cuda_runtime_version": 12040, "cupti_version": 22, "with_stack": 1, "stratoSimulated": true, "env": {"TOKEN": "secret"}"#,
    );
    let manifest: Vec<_> = t.manifest.iter().map(|(key, entry)| (key, entry.value.as_str())).collect();
    assert_eq!(
        manifest,
        [
            ("hardware.count", "1"),
            ("hardware.device", "NVIDIA H100 80GB HBM3"),
            ("hardware.memory_bytes", "84929347584"),
            ("hardware.vendor", "nvidia"),
            ("hardware.visible", "2"),
            ("kineto.comm_backend", "nccl"),
            ("kineto.cupti_version", "22"),
            ("kineto.schema_version", "1"),
            ("kineto.with_stack", "1"),
            ("measurement.traced", "kineto"),
            ("parallel.world_size", "8"),
            ("simulated", "true"),
            ("software.comm_library", "NCCL 2.21.5"),
            ("software.profiler", "PyTorch profiler (CUPTI 22)"),
            ("software.toolkit", "CUDA 12.4"),
        ]
    );
    assert!(t.simulated);
    assert_eq!(t.processes[0].rank, Some(3));
    assert_eq!((t.devices[0].cores, text(&t, t.devices[0].vendor)), (Some(132), "nvidia"));
    assert!(t.strings.find("secret").is_none());
}

#[test]
fn a_vendor_is_known_by_what_the_caller_says_of_names() {
    let content = r#"{"deviceProperties": [{"id": 0, "name": "Example X1"}], "traceEvents": [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1, "args": {"device": 0, "stream": 7}}]}"#;
    let vendor = |device_vendors: &[(String, String)]| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content.as_bytes()).unwrap();
        let mut sink = TraceBuilder::new("test", "kineto");
        let options = crate::ReadOptions { device_vendors, ..crate::ReadOptions::default() };
        (FORMAT.read)(file.path(), &mut sink, &options).unwrap();
        sink.finish().manifest.value("hardware.vendor").map(str::to_owned)
    };
    let pair = |part: &str, vendor: &str| (part.to_owned(), vendor.to_owned());
    assert_eq!(vendor(&[]), None, "a reader knows no products");
    assert_eq!(vendor(&[pair("", "none"), pair("X1", "ours"), pair("Example", "theirs")]).as_deref(), Some("ours"));
}
