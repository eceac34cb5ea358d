//! Two captures with what a comparison says of them, more or less of which is declared.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use model::{
    ProbeRow, Reading, Statistic, Trace,
    manifest::{Control, FIELDS, Field},
    probe::{ProbeUnit, Setting},
};
use report::diff::DiffReport;
use session::{Declaration, Options, Pair, Terms};
use simulator::{Config, Fault, FaultKind, samples, simulate};
use stratoscope::tui::{Opened, opened};

use super::screen::LAUNCH_BOUND;

/// What is declared of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Known {
    /// Nothing: the contract refuses it.
    Nothing,
    /// What must be equal.
    Hard,
    /// Everything, of captures with probes and a noise floor.
    All,
}

impl Known {
    fn holds(self, field: &Field) -> bool {
        match self {
            Self::Nothing => false,
            Self::Hard => field.control == Control::Hard,
            Self::All => true,
        }
    }
}

/// A declaration file of what neither capture says or shows: it is the same of both. What one of them shows is declared of
/// the other; where both show it nothing is, be it equal or not.
pub fn declaration(captures: [&Trace; 2], known: Known) -> String {
    let complete = captures.map(|trace| super::examined(trace.clone()).trace.manifest);
    let mut tables = [("both", String::new()), ("a", String::new()), ("b", String::new())];
    for field in FIELDS.iter().filter(|field| known.holds(field)) {
        let (table, value) = match complete.each_ref().map(|manifest| manifest.value(field.key)) {
            [None, None] => (0, common_value(field.key)),
            [None, Some(other)] => (1, other),
            [Some(other), None] => (2, other),
            [Some(_), Some(_)] => continue,
        };
        writeln!(tables[table].1, "{} = {}", field.key, toml::Value::from(value)).unwrap();
    }
    let named = tables.into_iter().filter(|(_, fields)| !fields.is_empty());
    named.map(|(name, fields)| format!("[{name}]\n{fields}")).collect()
}

fn common_value(key: &str) -> &'static str {
    match key {
        "measurement.repeats" => "6",
        "measurement.inflation" => "1.01",
        "measurement.clock_lock" => "yes",
        _ => "the same",
    }
}

/// Runs of one model that may be compared: as one graph per step, and operation by operation. Unlike those of the samples they
/// begin after everything was compiled, so that no step that counts compiles.
pub fn steady() -> [PathBuf; 2] {
    static WRITTEN: OnceLock<[PathBuf; 2]> = OnceLock::new();
    let write = |(name, sample): (&str, &str)| {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        simulate(&warm(sample)).write_kineto(&file).unwrap();
        file
    };
    let pair = [("steady-graph.json.gz", "healthy-full-graph.json.gz"), ("steady-eager.json.gz", LAUNCH_BOUND)];
    WRITTEN.get_or_init(|| pair.map(write)).clone()
}

/// The run of a sample without the steps that compile.
fn warm(sample: &str) -> Config {
    let sample = samples::all().into_iter().find(|known| known.file == sample).unwrap();
    Config { warmup_steps: 0, ..sample.config }
}

/// Six launches of one run, and six of it with slower products; as if they were of a device that was probed.
fn launches() -> [Vec<Trace>; 2] {
    let directory = tempfile::tempdir().unwrap();
    let slow = Fault { kind: FaultKind::SlowGemm, magnitude_permille: 1000 };
    [("eager", vec![]), ("again", vec![slow])].map(|(name, slower)| {
        let config = warm(LAUNCH_BOUND);
        let config = Config { faults: [config.faults.clone(), slower].concat(), ..config };
        let launch = |seed| {
            let file = directory.path().join(format!("{name}.{seed}.json"));
            simulate(&Config { seed, ..config.clone() }).write_kineto(&file).unwrap();
            let mut trace = super::read(&file);
            trace.simulated = false;
            trace.probes.rows.push(ProbeRow {
                probe: "read".into(),
                metric: "bandwidth".into(),
                unit: ProbeUnit::BytesPerSecond,
                setting: Setting::default(),
                value: Reading::Value(Statistic::of([3e12, 3e12]).unwrap()),
            });
            trace
        };
        (0..6).map(launch).collect()
    })
}

/// Two sides with what their comparison says, read once for all tests.
pub fn compared(known: Known) -> Arc<Opened> {
    static READ: Mutex<Vec<(Known, Arc<Opened>)>> = Mutex::new(Vec::new());
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, opened)) = read.iter().find(|(of, _)| *of == known) {
        return Arc::clone(opened);
    }
    let sides = match known {
        Known::All => launches(),
        _ => steady().map(|file| vec![super::read(&file)]),
    };
    let opened = Arc::new(pair(sides, known));
    read.push((known, Arc::clone(&opened)));
    opened
}

/// Two sides with what their comparison says.
pub fn pair(sides: [Vec<Trace>; 2], known: Known) -> Opened {
    let declared = declaration(sides.each_ref().map(|side| &side[0]), known);
    let (pair, report) = compare(sides, &declared);
    let (captures, sides) = pair.diagnose();
    Opened::compared(captures, opened::Pair { report, sides })
}

/// Compares two sides as the program does where this is declared of them.
pub fn compare(sides: [Vec<Trace>; 2], declared: &str) -> (Pair, DiffReport) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pair.toml");
    std::fs::write(&file, declared).unwrap();
    let terms = Terms { declared: Declaration::read(&file).unwrap(), ..Terms::default() };
    let pair = Pair::of(sides.map(super::session), &Options::default(), &terms).unwrap();
    let report = pair.compare(&terms).unwrap();
    (pair, report)
}
