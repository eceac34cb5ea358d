//! Real exports, against the sums that `nsys stats` printed of the same files. Needs `STRATO_CORPUS`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use model::{Category, Trace, TraceBuilder};
use parsers::nsys::FORMAT;

/// Count and total ns by name.
type Sums = BTreeMap<String, (u64, i64)>;

fn corpus() -> PathBuf {
    let corpus = std::env::var_os("STRATO_CORPUS").map(PathBuf::from);
    corpus.expect("STRATO_CORPUS has to name the folder of real captures")
}

fn exports(corpus: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(corpus.join("nsys-sqlite")).unwrap().map(|e| e.unwrap().path());
    let mut files: Vec<PathBuf> =
        folders.flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path())).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn read(path: &Path) -> Trace {
    let mut builder = TraceBuilder::new(path.display().to_string(), "nsys");
    (FORMAT.read)(path, &mut builder, &parsers::ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    builder.finish()
}

fn sums(trace: &Trace, wanted: &[Category]) -> Sums {
    let mut sums = Sums::new();
    for lane in &trace.lanes {
        for i in (0..lane.len()).filter(|i| wanted.contains(&lane.category[*i])) {
            let sum = sums.entry(trace.strings.get(lane.name[i]).to_owned()).or_default();
            *sum = (sum.0 + 1, sum.1 + lane.dur[i]);
        }
    }
    sums
}

/// The sums of a report, its names brought to ours; `None` when the corpus has no such report of the file.
fn oracle(corpus: &Path, export: &Path, report: &str, name: impl Fn(&str) -> String) -> Option<Sums> {
    let folder = export.parent()?.file_name()?.to_str()?;
    let stem = export.file_stem()?.to_str()?;
    let csv = corpus.join("../oracles/nsys-stats").join(format!("{folder}__{stem}.{report}.csv"));
    let text = std::fs::read_to_string(csv).ok()?;
    let mut sums = Sums::new();
    for line in text.lines().skip(1).filter(|line| !line.is_empty()) {
        let cells = cells(line);
        let sum = sums.entry(name(cells.last()?)).or_default();
        *sum = (sum.0 + cells[2].parse::<u64>().unwrap(), sum.1 + cells[1].parse::<i64>().unwrap());
    }
    Some(sums)
}

fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

/// Strips `_v7000`, as the reader does; the oracle strips it from some names only.
fn call(name: &str) -> String {
    match name.rsplit_once("_v") {
        Some((stem, digits)) if digits.len() >= 4 => stem.to_owned(),
        _ => name.to_owned(),
    }
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn sums_equal_those_of_nsys_stats() {
    let corpus = corpus();
    let mut compared = BTreeMap::<&str, u32>::new();
    for export in exports(&corpus) {
        let trace = read(&export);
        // `nsys stats` writes the domain of a range before its name.
        let operator = |name: &str| {
            let name = name.strip_prefix("TensorRT:").unwrap_or(name);
            [", op_id = ", ", seq = "]
                .iter()
                .fold(name, |name, mark| name.split(mark).next().unwrap_or(name))
                .to_owned()
        };
        let mut compare = |report, wanted: &[Category], name: &dyn Fn(&str) -> String| {
            if let Some(expected) = oracle(&corpus, &export, report, name) {
                assert_eq!(sums(&trace, wanted), expected, "{report} of {}", export.display());
                *compared.entry(report).or_default() += 1;
            }
        };
        compare("cuda_gpu_kern_sum", &[Category::Kernel], &str::to_owned);
        compare("cuda_gpu_mem_time_sum", &[Category::Memcpy, Category::Memset], &str::to_owned);
        compare("cuda_api_sum", &[Category::HostApi], &call);
        compare("nvtx_sum", &[Category::UserRange, Category::FrameworkOp, Category::CollectiveCall], &operator);
    }
    let expected = [("cuda_api_sum", 7), ("cuda_gpu_kern_sum", 6), ("cuda_gpu_mem_time_sum", 6), ("nvtx_sum", 5)];
    assert_eq!(compared, BTreeMap::from(expected));
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn every_export_is_read_and_accounts_for_every_row() {
    let corpus = corpus();
    for export in exports(&corpus) {
        let name = export.display();
        let trace = read(&export);
        for stat in &trace.stats {
            assert!(stat.severity < model::Severity::DataLoss, "{name}: {stat:?}");
        }
        assert!(trace.ledger.iter().map(|row| row.read).sum::<u64>() > 0, "{name}");
        assert_eq!(trace.manifest.value("measurement.traced"), Some("nsys"), "{name}");
        let again = read(&export);
        assert_eq!(again.lanes, trace.lanes, "{name} reads differently the second time");
        assert!(again.strings.iter().eq(trace.strings.iter()), "{name}");
    }
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn an_export_with_no_events_gives_an_empty_trace_that_says_what_it_read() {
    let corpus = corpus();
    let trace = read(&corpus.join("nsys-sqlite/dynamicvit-dlprof/nsys_profile.sqlite"));
    assert_eq!(trace.slice_count(), 0);
    assert_eq!(trace.manifest.value("hardware.device"), Some("NVIDIA RTX A2000 12GB"));
    assert_eq!(trace.start_unix_ns, Some(1_677_605_638_978_958_656));
    assert!(trace.stat("nsys.redacted_environment") > 0);
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn launches_are_linked_and_contexts_tell_the_device_of_waits() {
    let corpus = corpus();
    let trace = read(&corpus.join("nsys-sqlite/nsysai-h100-2gpu/h100_2gpu_1s.sqlite"));
    assert_eq!(trace.processes.len(), 2);
    let linked = trace.lanes.iter().flat_map(|lane| (0..lane.len()).map(move |i| (lane, i)));
    let linked = linked.filter(|(lane, i)| lane.category[*i] == Category::Kernel && lane.link(*i).is_some()).count();
    // Of 3442; the others were launched before the second that the export was cut to.
    assert_eq!(linked, 1632);
    for track in trace.tracks.iter().filter(|track| track.key.kind == model::TrackKind::DeviceSync) {
        // Context 2 lives on device 1, whatever the rows say.
        assert_eq!(track.key.device.map(i64::from), track.key.context.map(|context| context - 1));
    }
}
