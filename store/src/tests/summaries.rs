//! Kernel summaries in a capture file.

use model::{Conditions, KernelSummary, Metric};

use super::{probes::BEFORE_PROBES, *};

/// A capture of sums and measurements, and no timeline.
fn sums(name: &str) -> Trace {
    let mut b = TraceBuilder::new(name, "nsys-stats");
    let (kernel, other, reason) = (b.intern(name), b.intern("other"), b.intern("long_scoreboard"));
    let counter = b.intern("TCC_HIT[3]");
    b.summary(KernelSummary {
        count: 3,
        total: Some(600),
        range: Some((100, 300)),
        ..KernelSummary::of(kernel, Conditions::Run)
    });
    b.summary(KernelSummary {
        grid: Some([4, 2, 1]),
        block: Some([128, 1, 1]),
        metrics: Metric::ALL.into_iter().zip([0.5, 61.924_661, -0.0]).collect(),
        stalls: vec![(reason, 7.25)],
        counters: vec![(counter, 4_096.5)],
        ..KernelSummary::of(other, Conditions::Isolated)
    });
    b.finish()
}

#[test]
fn summaries_come_back_on_open() {
    let (_directory, path) = temporary();
    let traces = [sums("a"), small(), sums("b")];
    save(&path, &traces).unwrap();
    let loaded = load(&path).unwrap();
    assert_eq!(loaded.len(), 3);
    traces.iter().zip(&loaded).for_each(|(a, b)| assert_same(a, b));
    let rows = ask(&path, "SELECT name, conditions, count, total_ns FROM summaries WHERE capture_id = 3").unwrap().1;
    assert_eq!(rows[0], [text("b"), text("run"), Value::Integer(3), Value::Integer(600)]);
    let rows = ask(&path, "SELECT name, reason, value FROM measurements WHERE metric = 'stall'").unwrap().1;
    assert_eq!(rows, vec![vec![text("other"), text("long_scoreboard"), Value::Real(7.25)]; 2]);
    let rows = ask(&path, "SELECT name, reason, value FROM measurements WHERE metric = 'counter'").unwrap().1;
    assert_eq!(rows, vec![vec![text("other"), text("TCC_HIT[3]"), Value::Real(4_096.5)]; 2]);
}

/// Files of the second schema have no place for summaries and open as before.
#[test]
fn a_file_of_the_second_schema_opens_without_summaries() {
    let (_directory, path) = temporary();
    save(&path, &[small()]).unwrap();
    tamper(
        &path,
        &format!("{BEFORE_PROBES} DROP VIEW measurements; DROP VIEW summaries; DROP TABLE kernel_metric; DROP TABLE kernel_summary;
         PRAGMA user_version = 2"),
    );
    assert_same(&small(), &load(&path).unwrap()[0]);
}

#[test]
fn damaged_summaries_are_refused_in_words() {
    for (sql, told) in [
        ("UPDATE kernel_summary SET conditions = 'in space'", "unknown conditions 'in space'"),
        ("UPDATE kernel_summary SET name_id = 4711", "there is no string 4711"),
        ("UPDATE kernel_metric SET summary_id = 4711", "there is no kernel summary 4711"),
        ("UPDATE kernel_metric SET metric = 'charm'", "unknown metric 'charm'"),
        ("UPDATE kernel_summary SET grid_x = -1", "out of range"),
    ] {
        let (_directory, path) = temporary();
        save(&path, &[sums("a")]).unwrap();
        tamper(&path, sql);
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains(told), "{sql}: {error}");
    }
}
