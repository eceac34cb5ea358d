//! Captures of which a part is lost: the report says so first, says nothing that the whole capture does not, and the exit code
//! tells a script. `STRATO_SWEEP=full` goes through all of the sweep and prints a table.

mod captures;
mod hostile;
mod sweep;

use std::{fmt::Write as _, path::Path};

use diagnosis::{analysis::Analysis, diagnose::Diagnosis, i18n::Lang};
use flate2::read::GzDecoder;
use model::Trace;
use session::{Options, Reading, Session};
use simulator::{Config, samples, simulate};

use crate::common::strato;

/// A capture with what was found in it.
type Diagnosed = (Trace, Analysis, Diagnosis);

/// Reads and diagnoses what lies at a path, as one capture.
fn diagnosed(path: &Path) -> Diagnosed {
    let session = Session::open(&[path.to_owned()], &Reading::default()).unwrap();
    let mut diagnosed = session.examine(&Options::default()).and_then(session::Examined::diagnose).unwrap();
    assert_eq!(diagnosed.captures.len(), 1, "{}", path.display());
    diagnosed.captures.remove(0)
}

fn headline(diagnosis: &Diagnosis) -> String {
    report::phrase::plain(&diagnosis.verdict.headline, Lang::En)
}

/// The rows of a Kineto file: what precedes the events, the events, and what follows them.
struct Rows {
    lines: Vec<String>,
}

impl Rows {
    /// A short run of a sample.
    fn of(sample: &str) -> Self {
        let config = samples::all().into_iter().find(|s| s.file == sample).unwrap().config;
        let run = simulate(&Config { steps: 12, layers: 2, ..config });
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(sample);
        run.write_kineto(&path).unwrap();
        Self::read(&path)
    }

    fn read(path: &Path) -> Self {
        let text = std::io::read_to_string(GzDecoder::new(std::fs::File::open(path).unwrap())).unwrap();
        Self { lines: text.lines().map(str::to_owned).collect() }
    }

    /// The same after every `nth` row of these categories was changed, and how many rows there were and how many are changed.
    fn damaged(
        &self,
        of: &[&str],
        (nth, phase): (usize, usize),
        change: impl Fn(&str) -> String,
    ) -> (Self, usize, usize) {
        let (mut met, mut changed) = (0, 0);
        let marks: Vec<String> = of.iter().map(|cat| format!(r#""ph": "X", "cat": "{cat}""#)).collect();
        let one = |line: &String| {
            if !marks.iter().any(|mark| line.contains(mark)) {
                return line.clone();
            }
            met += 1;
            if met % nth != phase {
                return line.clone();
            }
            changed += 1;
            change(line)
        };
        let lines = self.lines.iter().map(one).collect();
        (Self { lines }, met, changed)
    }

    fn text(&self) -> String {
        self.lines.join("\n")
    }

    fn write(&self, path: &Path) {
        std::fs::write(path, self.text()).unwrap();
    }
}

const DEVICE: [&str; 3] = ["kernel", "gpu_memcpy", "gpu_memset"];

/// Ways in which a row gets lost.
fn unreadable(line: &str) -> String {
    let (before, after) = line.split_once(r#""ts": "#).unwrap();
    let rest = after.split_once(',').unwrap().1;
    format!(r#"{before}"ts": "12x",{rest}"#)
}

fn without_duration(line: &str) -> String {
    let (before, after) = line.split_once(r#""dur": "#).unwrap();
    let rest = after.split_once(',').unwrap().1;
    format!(r#"{before}"dur": "?",{rest}"#)
}

fn broken(line: &str) -> String {
    line.replacen(r#""dur": "#, r#""dur" "#, 1)
}

fn deleted(_: &str) -> String {
    String::new()
}

/// Half of the kernels have times that are none: "48 % of the step are gaps between the nodes of the graph, critical", with exit
/// code 0, was said of a device that is always busy.
#[test]
fn half_of_the_kernels_unreadable_heads_the_report_and_no_gap_is_blamed() {
    let whole = Rows::of("healthy-full-graph.json.gz");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("half.json");
    for change in [unreadable, without_duration, broken] {
        let (half, all, lost) = whole.damaged(&["kernel"], (2, 0), change);
        half.write(&path);
        let (_, analysis, diagnosis) = diagnosed(&path);
        assert_eq!((analysis.loss.device.lost, analysis.loss.device.all), (lost as u64, all as u64));
        assert!(analysis.loss.forbids_shares() && diagnosis.verdict.place.is_none());
        // What a kernel is of a step, and what stands beside it, is as unknown as the gaps.
        assert_eq!(sweep::claims(&diagnosis), std::collections::BTreeSet::new());
        let said = headline(&diagnosis);
        let counted = |n: usize| report::units::count(n as u64);
        let expected = format!("Incomplete: {} of {} kernels could not be read", counted(lost), counted(all));
        assert!(said.starts_with(&expected), "{said}");
        assert!(!said.contains('%'), "{said}");
        for gate in [&[][..], &["--fail-on", "critical"], &["--fail-on", "low"]] {
            let output = strato(&[&["diagnose", "half.json"], gate].concat(), directory.path());
            let (out, err) = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).into();
            assert_eq!(output.status.code(), Some(if gate.is_empty() { 3 } else { 6 }), "{err}");
            assert!(out.contains(&expected) && !out.contains("RT-"), "{out}");
            assert!(err.contains("kernels could not be read"), "{err}");
        }
    }
}

/// A call without a duration is kept as a moment, for its link, and was counted as whole.
#[test]
fn calls_without_a_duration_are_lost_calls() {
    let (half, _, lost) =
        Rows::of("launch-bound-eager.json.gz").damaged(&["cuda_runtime", "cuda_driver"], (20, 0), without_duration);
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    half.write(file.path());
    let (_, analysis, diagnosis) = diagnosed(file.path());
    let said = headline(&diagnosis);
    assert_eq!(analysis.loss.host.lost, lost as u64, "{said}");
    assert!(said.starts_with("Incomplete: ") && said.contains("calls and operators of the host"), "{said}");
    assert!(!analysis.loss.forbids_shares(), "the device is whole: {said}");
}

/// Kernels whose rows were taken out of the file leave the ends of the arrows that led to them.
#[test]
fn rows_that_arrows_lead_to_and_that_are_not_there_are_lost() {
    let (half, _, lost) = Rows::of("healthy-full-graph.json.gz").damaged(&DEVICE, (2, 0), deleted);
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    half.write(file.path());
    let (_, analysis, diagnosis) = diagnosed(file.path());
    assert_eq!(analysis.loss.device.lost, lost as u64);
    assert!(headline(&diagnosis).starts_with("Incomplete: "), "{}", headline(&diagnosis));
}

/// Three rows of a thousand change no answer; a script still hears of them.
#[test]
fn a_small_loss_is_told_beside_the_verdict() {
    let whole = Rows::of("launch-bound-eager.json.gz");
    let (few, ..) = whole.damaged(&["kernel"], (300, 1), unreadable);
    let directory = tempfile::tempdir().unwrap();
    few.write(&directory.path().join("few.json"));
    let (_, analysis, diagnosis) = diagnosed(&directory.path().join("few.json"));
    assert!(analysis.loss.is_any() && !analysis.loss.forbids_causes(), "{:?}", analysis.loss);
    assert!(diagnosis.verdict.place.is_some() && !headline(&diagnosis).contains("Incomplete"));
    let output = strato(&["diagnose", "few.json"], directory.path());
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), err.lines().count()), (Some(3), 1), "{err}");
}

/// Kineto writes the device's rows last: the first half of a file has the host's whole run and little of the device's.
#[test]
fn a_file_that_ends_early_says_where_and_that_the_device_comes_last() {
    let text = Rows::of("launch-bound-eager.json.gz").text();
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    for cut in [60, 80, 95] {
        std::fs::write(file.path(), &text[..text.len() * cut / 100]).unwrap();
        let (_, analysis, diagnosis) = diagnosed(file.path());
        let said = headline(&diagnosis);
        assert!(said.starts_with("Incomplete: the source could not be read to its end (byte "), "{cut} %: {said}");
        assert!(said.contains("its format holds device operations last"), "{cut} %: {said}");
        assert!(analysis.ranks.is_empty() || analysis.loss.forbids_shares(), "{cut} %");
    }
}
