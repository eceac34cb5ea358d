//! No large cost is silent, and nothing that a plain table shows first is missing from our first screen.

use std::path::Path;

use diagnosis::{diagnose::Diagnosis, largest::Kind};
use model::{Category, Ns, Trace};
use session::{Options, Reading, Session};
use simulator::{Config, Fault, FaultKind, simulate};

use crate::common;

/// Part of the time that is not useful which statements cover at least.
const COVERED: f64 = 0.90;

/// What is stated of the time that is not useful, in 0..=1; `None` where no step counts.
fn covered(found: &Diagnosis) -> Option<f64> {
    let coverage = found.coverage;
    (coverage.not_useful > 0).then(|| coverage.stated as f64 / coverage.not_useful as f64)
}

/// Every capture of the corpus that can be diagnosed, with what was found.
fn diagnosed(mut see: impl FnMut(&Path, &Trace, &Diagnosis)) {
    let mut paths = Vec::new();
    common::captures(&common::corpus(), &mut paths);
    paths.sort();
    for path in paths {
        let Ok(session) = Session::open(std::slice::from_ref(&path), &Reading::default()) else { continue };
        let Ok(examined) = session.examine(&Options::default()).and_then(session::Examined::diagnose) else { continue };
        examined.captures.iter().for_each(|(trace, _, found)| see(&path, trace, found));
    }
}

#[test]
fn no_large_cost_of_a_simulated_run_is_silent() {
    let (mut judged, mut silent) = (0, Vec::new());
    for (seed, kind) in (1u64..).zip(FaultKind::ALL) {
        let fault = Fault { kind: *kind, magnitude_permille: 1000 };
        let drawn = Config::draw_with(seed, &[fault]);
        let config = Config { layers: drawn.layers.min(8), steps: drawn.steps.min(24), ranks: 1, ..drawn };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.json.gz");
        simulate(&config).write_kineto(&path).unwrap();
        let (_, _, found) = common::diagnosed(common::read(&path));
        let Some(part) = covered(&found) else { continue };
        judged += 1;
        if part < COVERED {
            silent.push((kind.key(), part));
        }
    }
    assert!(judged >= 40, "only {judged} runs have steps that count");
    assert!(silent.is_empty(), "{silent:?}");
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn no_large_cost_of_a_real_capture_is_silent() {
    let (mut judged, mut silent) = (0, Vec::new());
    diagnosed(|path, _, found| {
        let Some(part) = covered(found) else { return };
        judged += 1;
        if part < COVERED {
            silent.push((path.to_owned(), part));
        }
    });
    assert!(judged >= 60, "only {judged} captures have steps that count");
    assert!(silent.is_empty(), "{silent:?}");
}

/// Rows of a plain table that are compared.
const FIRST: usize = 5;
/// Part of the recorded time from which such a row is worth its place.
const WORTH: f64 = 0.05;
/// Captures of a device whose waits and whole graphs are rows of kernels: `event_wait`, `merge`, `remote`.
const NO_KERNELS: &str = "hta-mtia_inference_trace";

/// Sums of the slices of a category that begin while the device works, by name, the longest first: counted slice by slice, as
/// `select name, sum(dur) … group by name order by 2 desc limit 5` does.
fn table(trace: &Trace, category: Category, (first, last): (Ns, Ns)) -> Vec<(String, Ns)> {
    let mut sums = std::collections::BTreeMap::<&str, Ns>::new();
    for lane in trace.lanes.iter() {
        for row in (0..lane.len()).filter(|row| lane.category[*row] == category) {
            if (first..=last).contains(&lane.start[row]) {
                *sums.entry(trace.strings.get(lane.name[row])).or_default() += lane.dur[row];
            }
        }
    }
    let mut sums: Vec<(String, Ns)> = sums.into_iter().map(|(name, ns)| (name.to_owned(), ns)).collect();
    sums.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    sums.truncate(FIRST);
    sums
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn what_a_plain_table_shows_first_is_in_our_tables() {
    let (mut compared, mut missing) = (0, Vec::new());
    diagnosed(|path, trace, found| {
        // The time that the tables speak of: from the first to the last step of any rank, or of the device's work.
        let work = trace.lanes.iter().flat_map(|lane| (0..lane.len()).map(move |row| (lane, row)));
        let work = work.filter(|(lane, row)| lane.category[*row].is_device_work());
        let (first, last) = work.fold((Ns::MAX, Ns::MIN), |(first, last), (lane, row)| {
            (first.min(lane.start[row]), last.max(lane.end(row)))
        });
        let covers: Ns = found.largest.tables.iter().map(|tables| tables.time).max().unwrap_or(0);
        // Where the steps are a part of the recording, the rest is told as such and stands in no table.
        if first > last || (covers as f64) < 0.9 * (last - first) as f64 || path.to_string_lossy().contains(NO_KERNELS)
        {
            return;
        }
        for (category, kind) in [(Category::Kernel, Kind::Kernel), (Category::HostApi, Kind::Call)] {
            for (name, ns) in table(trace, category, (first, last)) {
                if (ns as f64) < WORTH * (last - first) as f64 {
                    continue;
                }
                compared += 1;
                let shown = found.largest.tables.iter().flat_map(|tables| tables.of(kind)).any(|row| row.name == name);
                if !shown {
                    missing.push((path.to_owned(), kind, name, ns));
                }
            }
        }
    });
    assert!(compared >= 60, "only {compared} rows were compared");
    assert!(missing.is_empty(), "{missing:#?}");
}
