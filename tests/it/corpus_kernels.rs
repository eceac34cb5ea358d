//! Real captures through the command: what `strato sql` says of an imported file is what the file holds.

use crate::common;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use model::{Category, Trace, TrackKind};

/// Count and total ns by name.
type Sums = BTreeMap<String, (u64, i64)>;

fn strato(arguments: &[&str]) -> std::process::Output {
    common::strato(arguments, Path::new("."))
}

fn sql(capture: &Path, query: &str) -> serde_json::Value {
    let out = strato(&["sql", capture.to_str().unwrap(), query, "--json"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn view(capture: &Path, view: &str) -> Sums {
    let rows = sql(capture, &format!("select name, count(*) as n, sum(dur_ns) as ns from {view} group by name"));
    let row = |r: &serde_json::Value| {
        (r["name"].as_str().unwrap().to_owned(), (r["n"].as_u64().unwrap(), r["ns"].as_i64().unwrap()))
    };
    rows.as_array().unwrap().iter().map(row).collect()
}

fn sums(trace: &Trace, wanted: &[Category]) -> Sums {
    let mut sums = Sums::new();
    for (track, lane) in trace.tracks.iter().zip(&trace.lanes) {
        for i in (0..lane.len()).filter(|i| wanted.contains(&lane.category[*i])) {
            assert_eq!(track.key.kind, TrackKind::DeviceQueue);
            let sum = sums.entry(trace.strings.get(lane.name[i]).to_owned()).or_default();
            *sum = (sum.0 + 1, sum.1 + lane.dur[i]);
        }
    }
    sums
}

fn files(corpus: &Path) -> Vec<PathBuf> {
    let folders = ["kineto", "nsys-sqlite"].map(|kind| std::fs::read_dir(corpus.join(kind)).unwrap());
    let folders = folders.into_iter().flatten().map(|e| e.unwrap().path());
    let mut files: Vec<PathBuf> =
        folders.flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path())).collect();
    files.sort();
    files
}

/// Kernels that the list of the corpus counts in a file (`kernels=…`), which another program wrote.
fn listed(corpus: &Path, file: &Path) -> Option<u64> {
    let list = std::fs::read_to_string(corpus.join("MANIFEST.tsv")).unwrap();
    let name = file.strip_prefix(corpus).unwrap().to_str().unwrap();
    let row = list.lines().find(|line| line.split('\t').nth(1) == Some(name))?;
    let digits: String = row.split("kernels=").nth(1)?.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Count and total ns of an `nsys stats` report over all names.
fn oracle(corpus: &Path, file: &Path, report: &str) -> Option<(u64, i64)> {
    let folder = file.parent()?.file_name()?.to_str()?;
    let csv = format!("../oracles/nsys-stats/{folder}__{}.{report}.csv", file.file_stem()?.to_str()?);
    let text = std::fs::read_to_string(corpus.join(csv)).ok()?;
    let rows = text.lines().skip(1).filter_map(|line| {
        let mut cells = line.split(',').skip(1);
        Some((cells.next()?.parse::<i64>().ok()?, cells.next()?.parse::<u64>().ok()?))
    });
    Some(rows.fold((0, 0), |sum, (ns, n)| (sum.0 + n, sum.1 + ns)))
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn the_views_of_every_imported_capture_hold_every_kernel_and_copy() {
    let corpus = common::corpus();
    let dir = tempfile::tempdir().unwrap();
    let capture = dir.path().join("capture.strato");
    let (mut imported, mut checked) = (0, 0);
    for file in files(&corpus) {
        let out = strato(&["import", file.to_str().unwrap(), "-o", capture.to_str().unwrap(), "--quiet"]);
        // The tables of this one that would hold what ran are empty: facts and no run.
        let code = if file.to_string_lossy().contains("dynamicvit-dlprof") { 3 } else { 0 };
        assert_eq!(out.status.code(), Some(code), "{}: {}", file.display(), String::from_utf8_lossy(&out.stderr));
        imported += 1;
        let trace = common::read(&file);
        let kernels = view(&capture, "kernels");
        assert_eq!(kernels, sums(&trace, &[Category::Kernel, Category::GraphExec]), "{}", file.display());
        let copies = view(&capture, "copies");
        assert_eq!(copies, sums(&trace, &[Category::Memcpy, Category::Memset]), "{}", file.display());
        let total = |s: &Sums| s.values().fold((0, 0), |t, (n, ns)| (t.0 + n, t.1 + ns));
        // The list counts the category of that name, which the MTIA capture does not use for its device work.
        if let Some(n) = listed(&corpus, &file).filter(|n| *n > 0) {
            assert_eq!(total(&kernels).0, n, "{}", file.display());
            checked += 1;
        }
        if let Some(wanted) = oracle(&corpus, &file, "cuda_gpu_kern_sum") {
            assert_eq!(total(&kernels), wanted, "{}", file.display());
            checked += 1;
        }
        if let Some(wanted) = oracle(&corpus, &file, "cuda_gpu_mem_time_sum") {
            assert_eq!(total(&copies), wanted, "{}", file.display());
            checked += 1;
        }
    }
    println!("{imported} captures, {checked} independent totals");
    assert!(imported >= 27 && checked >= 20);
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn one_graph_launch_never_hides_its_kernels_and_a_busy_decode_is_not_launch_bound() {
    let corpus = common::corpus();
    let file = corpus.join("kineto/tl-vllm-decode-full/graph_execution.json.gz");
    let dir = tempfile::tempdir().unwrap();
    let capture = dir.path().join("capture.strato");
    let out = strato(&["import", file.to_str().unwrap(), "-o", capture.to_str().unwrap(), "--quiet"]);
    assert!(out.status.success());
    // One row of the launch, and every kernel of the file beside it, those of the replay with its correlation id.
    let launches = sql(&capture, "select count(*) as n from launches where name = 'hipGraphLaunch'");
    assert_eq!(launches[0]["n"], 1);
    let replayed = sql(&capture, "select count(*) as n from kernels where correlation = 505113");
    assert_eq!(replayed[0]["n"], 421);
    let analysis = common::analyze(&common::read(&file));
    let step = &analysis.ranks[0].steps[0];
    let idle: i64 = step.buckets.iter().filter(|(b, _)| b.is_idle()).map(|(_, ns)| ns).sum();
    // Counted from the decimal text of the file with another program; in 64-bit floats the sum comes out 11 ns higher.
    assert_eq!((idle, step.window.len()), (25_473, 10_743_181));
    let out = strato(&["diagnose", file.to_str().unwrap(), "--format", "json", "--lang", "en"]);
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["verdict"]["layer"], "operator");
    for finding in report["findings"].as_array().unwrap() {
        assert_ne!(finding["layer"], "runtime", "{finding}");
    }
}
