//! Ceilings in a capture file.

use model::{ProbeRow, ProbeRun, ProbeUnit, Reading, Setting, Statistic};

use super::*;

/// What makes a file one of the third schema, which has no rows of probes.
pub const BEFORE_PROBES: &str = "DROP TABLE probe_provenance; ALTER TABLE probe_result DROP COLUMN repeats;
    ALTER TABLE probe_result DROP COLUMN mad; ALTER TABLE probe_result DROP COLUMN setting;";

fn probed(name: &str) -> Trace {
    let mut trace = TraceBuilder::new(name, "strato-probe").finish();
    let row = |value, threads: u32| ProbeRow {
        probe: "read".to_owned(),
        metric: "bandwidth".to_owned(),
        unit: ProbeUnit::BytesPerSecond,
        setting: Setting::new().with(Setting::THREADS, threads).with(Setting::BYTES, 1u64 << 28),
        value,
    };
    let measured = Statistic { median: 1.5e10, min: 1.4e10, max: 1.6e10, mad: 1e8, repeats: 7 };
    trace.probes = ProbeRun {
        provenance: vec![
            ("device".to_owned(), Reading::Value("some CPU".to_owned())),
            ("steal".to_owned(), Reading::Unavailable("/proc/stat: no such file".to_owned())),
        ],
        rows: vec![row(Reading::Value(measured), 1), row(Reading::Unavailable("one core".to_owned()), 2)],
    };
    trace
}

#[test]
fn ceilings_come_back_on_open_and_answer_sql() {
    let (_directory, path) = temporary();
    let traces = [probed("a"), small(), probed("b")];
    save(&path, &traces).unwrap();
    let loaded = load(&path).unwrap();
    traces.iter().zip(&loaded).for_each(|(a, b)| assert_same(a, b));
    let sql = "SELECT setting, value, low, repeats, reason FROM probe_result WHERE capture_id = 3 ORDER BY id";
    let rows = ask(&path, sql).unwrap().1;
    let setting = text("threads=1 bytes=268435456");
    assert_eq!(rows[0], [setting, Value::Real(1.5e10), Value::Real(1.4e10), Value::Integer(7), Value::Null]);
    assert_eq!((&rows[1][1], &rows[1][4]), (&Value::Null, &text("one core")));
}

#[test]
fn a_file_of_the_third_schema_opens_without_ceilings() {
    let (_directory, path) = temporary();
    save(&path, &[small()]).unwrap();
    tamper(&path, &format!("{BEFORE_PROBES} PRAGMA user_version = 3"));
    assert_same(&small(), &load(&path).unwrap()[0]);
}

#[test]
fn damaged_ceilings_are_refused_in_words() {
    for (sql, told) in [
        ("UPDATE probe_result SET unit = 'furlong'", "unknown unit 'furlong'"),
        ("UPDATE probe_result SET mad = NULL", "column 11 is empty"),
        ("UPDATE probe_result SET repeats = -1", "out of range"),
        ("UPDATE probe_result SET capture_id = 4711", "there is no capture 4711"),
    ] {
        let (_directory, path) = temporary();
        save(&path, &[probed("a")]).unwrap();
        tamper(&path, sql);
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains(told), "{sql}: {error}");
    }
}
