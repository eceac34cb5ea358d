//! Parts of sample captures are taken away in every way that a file loses them. Nothing may be said that the whole does not say.

use std::collections::BTreeSet;

use diagnosis::{analysis::Layer, diagnose::Severity};
use simulator::{Config, simulate, simulate_job};

use super::*;

/// Shares that are lost, as every nth row.
fn shares() -> &'static [usize] {
    if is_full() { &[100, 20, 4, 2] } else { &[100, 4] }
}

pub(super) fn is_full() -> bool {
    std::env::var("STRATO_SWEEP").is_ok_and(|sweep| sweep == "full")
}

/// Rules that claim a gain.
pub fn claims(diagnosis: &Diagnosis) -> BTreeSet<&'static str> {
    let gains = diagnosis.findings.iter().filter(|f| f.layer != Layer::Measurement && f.severity > Severity::Info);
    gains.map(|finding| finding.rule).collect()
}

/// What is wrong with the answer on a damaged capture; `lost` is the share of what was taken away.
fn judge(whole: &Diagnosis, (_, analysis, diagnosis): &Diagnosed, lost: f64) -> Option<String> {
    let new: Vec<_> = claims(diagnosis).difference(&claims(whole)).copied().collect();
    let said = headline(diagnosis);
    if !new.is_empty() {
        return Some(format!("{new:?} is new: {said}"));
    }
    if !analysis.loss.is_any() && analysis.loss.ranks.is_none() {
        return Some(format!("nothing is told: {said}"));
    }
    (lost > 0.01 && !said.starts_with("Incomplete: ")).then(|| format!("not said first: {said}"))
}

#[test]
fn no_loss_adds_a_claim_or_goes_untold() {
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    let (mut table, mut wrong) = (String::new(), Vec::new());
    let mut tell = |what: String, fault: Option<String>| {
        let _ = writeln!(table, "{what}: {}", fault.as_deref().unwrap_or("ok"));
        wrong.extend(fault.map(|fault| format!("{what}: {fault}")));
    };
    for sample in ["healthy-full-graph.json.gz", "launch-bound-eager.json.gz", "tensor-parallel-rocm.json.gz"] {
        let rows = Rows::of(sample);
        rows.write(file.path());
        let (_, analysis, whole) = diagnosed(file.path());
        assert!(!analysis.loss.is_any(), "{sample}: {:?}", analysis.loss);
        let calls = &["cuda_runtime", "cuda_driver"][..];
        for (of, kind) in [(&DEVICE[..], "device rows"), (calls, "calls")] {
            for nth in shares() {
                for (change, how) in
                    [(unreadable as fn(&str) -> String, "unreadable"), (broken, "broken"), (deleted, "deleted")]
                {
                    let (damaged, all, lost) = rows.damaged(of, (*nth, nth / 2), change);
                    damaged.write(file.path());
                    let share = lost as f64 / all as f64;
                    tell(
                        format!("{sample}: {lost} of {all} {kind} {how}"),
                        judge(&whole, &diagnosed(file.path()), share),
                    );
                }
            }
        }
        let text = rows.text();
        for cut in (10..100).step_by(if is_full() { 3 } else { 30 }) {
            std::fs::write(file.path(), &text[..text.len() * cut / 100]).unwrap();
            tell(format!("{sample}: cut at {cut} %"), judge(&whole, &diagnosed(file.path()), 1.0));
        }
    }
    if is_full() {
        println!("{table}");
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

/// A database of Nsight Systems loses rows too: times that are text, and rows that are gone.
#[test]
fn rows_of_a_database_that_cannot_be_read_are_told() {
    let config = samples::all().into_iter().find(|s| s.file == "sync-per-layer.sqlite").unwrap().config;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sqlite");
    simulate(&Config { steps: 12, layers: 2, ..config }).write_nsys(&path).unwrap();
    let (_, analysis, whole) = diagnosed(&path);
    assert!(!analysis.loss.is_any(), "{:?}", analysis.loss);
    for (table, nth) in [("KERNEL", 2), ("KERNEL", 20), ("RUNTIME", 2), ("MEMCPY", 1)] {
        let damaged = directory.path().join("b.sqlite");
        std::fs::copy(&path, &damaged).unwrap();
        let table = format!("CUPTI_ACTIVITY_KIND_{table}");
        let update = format!("UPDATE {table} SET start = 'x' || start WHERE rowid % {nth} = 0");
        execute(&damaged, &update);
        let fault = judge(&whole, &diagnosed(&damaged), 1.0 / f64::from(nth));
        assert_eq!(fault, None, "{table}, every {nth}.");
        // Numbers that no row has tell of rows that are gone.
        let gone = directory.path().join("c.sqlite");
        std::fs::copy(&path, &gone).unwrap();
        // The first and the last row stay, so that what is gone lies between.
        let ends = format!("rowid > 1 AND rowid < (SELECT max(rowid) FROM {table})");
        execute(&gone, &format!("DELETE FROM {table} WHERE rowid % {nth} = 0 AND {ends}"));
        let found = diagnosed(&gone);
        // Two rows that are left are far apart: the calls of those between have no work then.
        let told = found.0.stat("nsys.rows_taken_out") > 0 || nth == 1 && found.1.loss.unrecorded.lost > 0;
        assert!(told, "{table}, every {nth}: {:?}", found.1.loss);
        assert_eq!(judge(&whole, &found, 1.0 / f64::from(nth)), None, "{table}, every {nth}.");
    }
}

pub(super) fn execute(database: &Path, statement: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        use sqlx::{ConnectOptions as _, Executor as _, sqlite::SqliteConnectOptions};
        let mut connection = SqliteConnectOptions::new().filename(database).connect().await.unwrap();
        connection.execute(sqlx::AssertSqlSafe(statement.to_owned())).await.unwrap();
    });
}

/// Of a job some ranks are not captured: who they are is said first, and nobody else is blamed for them.
#[test]
fn absent_ranks_are_named_first_and_nobody_is_blamed_for_them() {
    let job = Config { steps: 12, layers: 2, ..Config::draw_job(5, 4) };
    let directory = tempfile::tempdir().unwrap();
    let files = simulate_job(&job).write_kineto(directory.path()).unwrap();
    let whole = diagnosed(directory.path());
    assert_eq!((whole.1.ranks.len(), whole.1.loss.ranks.clone()), (4, None));
    for absent in 0..4 {
        let part = tempfile::tempdir().unwrap();
        for (rank, file) in files.iter().enumerate().filter(|(rank, _)| *rank != absent) {
            std::fs::copy(file, part.path().join(format!("rank{rank}.json.gz"))).unwrap();
        }
        let found = diagnosed(part.path());
        let said = headline(&found.2);
        assert!(said.starts_with(&format!("Incomplete: 3 of 4 ranks captured, rank {absent} is absent. ")), "{said}");
        let blames = |rule: &&&str| rule.starts_with("CM-");
        let new: Vec<_> = claims(&found.2).difference(&claims(&whole.2)).filter(blames).copied().collect();
        assert!(new.is_empty(), "{new:?} without rank {absent}: {said}");
        let output = strato(&["diagnose", "."], part.path());
        assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
