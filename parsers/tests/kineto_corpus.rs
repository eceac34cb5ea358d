//! Real Kineto captures, where `STRATO_CORPUS` names the directory that holds them: what we read of each agrees with what
//! the list of the corpus and an independent tool say of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use model::{Category, Trace, TraceBuilder};

fn corpus() -> PathBuf {
    let corpus = std::env::var_os("STRATO_CORPUS").map(PathBuf::from);
    corpus.expect("STRATO_CORPUS has to name the folder of real captures")
}

fn read(path: &Path) -> Trace {
    let mut sink = TraceBuilder::new(path.display().to_string(), "kineto");
    let format = parsers::detect::read(path, &mut sink, &parsers::ReadOptions::default()).unwrap();
    assert_eq!(format.id, "kineto");
    sink.finish()
}

/// Rows of the corpus list that are Kineto files: path and what they hold.
fn listed(corpus: &Path) -> Vec<(PathBuf, String)> {
    let list = std::fs::read_to_string(corpus.join("MANIFEST.tsv")).unwrap();
    let rows = list.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    rows.filter(|row| row[0] == "kineto").map(|row| (corpus.join(row[1]), row[8].to_owned())).collect()
}

fn number(holds: &str, key: &str) -> Option<u64> {
    let rest = &holds[holds.find(key)? + key.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn every_capture_is_read_whole() {
    let corpus = corpus();
    let listed = listed(&corpus);
    assert!(listed.len() >= 20, "the corpus holds {} Kineto files", listed.len());
    for (path, holds) in listed {
        let t = read(&path);
        // Both numbers of the list were counted by another program.
        let events: u64 = t.ledger.iter().map(|row| row.read).sum();
        assert_eq!(Some(events), number(&holds, "events="), "{}", path.display());
        let in_kernel_category = |row: &&model::LedgerRow| row.category.eq_ignore_ascii_case("kernel");
        let kernels: u64 = t.ledger.iter().filter(in_kernel_category).map(|row| row.kept).sum();
        assert_eq!(Some(kernels), number(&holds, "kernels="), "{}", path.display());
        let slices: u64 = t.lanes.iter().map(|lane| lane.len() as u64).sum();
        let kept: u64 = t.ledger.iter().filter(|row| row.time_ns > 0).map(|row| row.kept).sum();
        assert_eq!(slices, kept, "{}: every slice has its row in the ledger", path.display());
        for stat in &t.stats {
            assert!(!stat.name.starts_with("kineto.") || stat.severity < model::Severity::DataLoss, "{stat:?}");
        }
        if let Some(rank) = number(&holds, "rank=") {
            assert_eq!(t.processes[0].rank.map(u64::from), Some(rank), "{}", path.display());
        }
    }
}

/// Kernels by name: count and total ns.
type Summary = BTreeMap<String, (u64, i64)>;

fn kernels(t: &Trace) -> Summary {
    let mut summary = Summary::new();
    for lane in &t.lanes {
        for i in 0..lane.len() {
            if lane.category[i] == Category::Kernel {
                let entry = summary.entry(t.strings.get(lane.name[i]).to_owned()).or_default();
                *entry = (entry.0 + 1, entry.1 + lane.dur[i]);
            }
        }
    }
    summary
}

/// `kernel_summary.csv` of TraceLens: one row per (operator, kernel name, stream) with a sum in µs and a count.
fn tracelens(path: &Path) -> Summary {
    let text = std::fs::read_to_string(path).unwrap();
    let mut summary = Summary::new();
    for row in csv_rows(&text).into_iter().skip(1) {
        let micros: f64 = row[4].parse().unwrap();
        let entry = summary.entry(row[2].clone()).or_default();
        // Their sums are floats of terms with three decimals, so a row is right to far less than a nanosecond.
        *entry = (entry.0 + row[5].parse::<f64>().unwrap() as u64, entry.1 + (micros * 1000.0).round() as i64);
    }
    summary
}

fn csv_rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            '\r' => {}
            c => field.push(c),
        }
    }
    rows
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn kernel_times_agree_with_tracelens() {
    let corpus = corpus();
    for platform in ["h100", "mi300"] {
        for model in ["Qwen_Qwen1.5-0.5B-Chat__1016005", "gaunernst_bert-small-uncased__1016001"] {
            let ours = kernels(&read(&corpus.join(format!("kineto/tl-{platform}/{model}.json.gz"))));
            let oracle =
                corpus.join(format!("../oracles/tracelens/{platform}/{model}_perf_report_csvs/kernel_summary.csv"));
            let theirs = tracelens(&oracle);
            // TraceLens lists copies and fills with the kernels; those are other categories here and in the file.
            let is_kernel = |name: &&String| !name.starts_with("Memcpy ") && !name.starts_with("Memset ");
            let names: Vec<_> = theirs.keys().filter(is_kernel).collect();
            assert!(names.len() > 5);
            for name in &names {
                assert_eq!(ours.get(*name), theirs.get(*name), "{platform} {model}: {name}");
            }
            assert_eq!(ours.len(), names.len(), "{platform} {model}: kernels that TraceLens does not list");
        }
    }
}
