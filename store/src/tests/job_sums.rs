//! Sums of a job in a capture file.

use model::{JobSums, LinkSum, StepPart, StepSum};

use super::*;

fn summed(name: &str) -> Trace {
    let mut b = TraceBuilder::new(name, "ascend-cluster");
    let (step, other, transport) = (b.intern(name), b.intern("other"), b.intern("RDMA"));
    let parts = vec![(StepPart::Computing, 70), (StepPart::ExposedCommunication, 20), (StepPart::Free, -1)];
    let of = |step, rank, stage| StepSum { step, rank, stage, parts: parts.clone() };
    b.job_sums(JobSums {
        steps: vec![of(step, 0, Some(0)), of(step, 1, Some(0)), of(other, 1, None)],
        links: vec![LinkSum { from: 0, to: 8, transport, bytes: 20_971_520, time: 863_815 }],
    });
    b.finish()
}

#[test]
fn sums_of_a_job_come_back_on_open_and_answer_sql() {
    let (_directory, path) = temporary();
    let traces = [summed("a"), small(), summed("b")];
    save(&path, &traces).unwrap();
    let loaded = load(&path).unwrap();
    traces.iter().zip(&loaded).for_each(|(a, b)| assert_same(a, b));
    let sql = "SELECT step, stage, ns FROM step_sums WHERE capture_id = 3 AND rank = 1 AND part = 'computing'";
    let rows = ask(&path, sql).unwrap().1;
    assert_eq!(
        rows,
        [[text("b"), Value::Integer(0), Value::Integer(70)], [text("other"), Value::Null, Value::Integer(70)]]
    );
    let rows = ask(&path, "SELECT transport, round(gb_per_s, 3) FROM link_sums WHERE capture_id = 1").unwrap().1;
    assert_eq!(rows, [[text("RDMA"), Value::Real(24.278)]]);
}

#[test]
fn a_file_of_the_fourth_schema_opens_without_sums_of_a_job() {
    let (_directory, path) = temporary();
    save(&path, &[small()]).unwrap();
    let before = "DROP VIEW step_sums; DROP VIEW link_sums; DROP TABLE step_sum; DROP TABLE link_sum";
    tamper(&path, &format!("{before}; PRAGMA user_version = 4"));
    assert_same(&small(), &load(&path).unwrap()[0]);
}

#[test]
fn damaged_sums_of_a_job_are_refused_in_words() {
    for (sql, told) in [
        ("UPDATE step_sum SET part = 'dreaming'", "unknown part 'dreaming'"),
        ("UPDATE step_sum SET step_id = 4711", "there is no string 4711"),
        ("UPDATE link_sum SET from_rank = -1", "out of range"),
        ("UPDATE link_sum SET transport_id = 4711", "there is no string 4711"),
    ] {
        let (_directory, path) = temporary();
        save(&path, &[summed("a")]).unwrap();
        tamper(&path, sql);
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains(told), "{sql}: {error}");
    }
}

#[test]
fn sums_that_the_profiler_made_come_back_on_open_and_answer_sql() {
    use model::{ProcessId, Stated, StatedSum};
    let (_directory, path) = temporary();
    let mut b = TraceBuilder::new("a", "ascend");
    let (source, call) = (b.intern("api_statistic.csv"), b.intern("aclrtMalloc"));
    b.stated(StatedSum {
        process: Some(ProcessId(0)),
        source,
        what: Stated::HostCalls,
        name: Some(call),
        count: Some(3),
        time: 5,
    });
    b.stated(StatedSum { process: None, source, what: Stated::Computing, name: None, count: None, time: 7 });
    let trace = b.finish();
    save(&path, std::slice::from_ref(&trace)).unwrap();
    assert_eq!(load(&path).unwrap()[0].stated, trace.stated);
    let rows = ask(&path, "SELECT source, what, name, count, ns FROM stated_sums ORDER BY ns").unwrap().1;
    let first =
        [text("api_statistic.csv"), text("host_calls"), text("aclrtMalloc"), Value::Integer(3), Value::Integer(5)];
    assert_eq!(rows[0], first);
    assert_eq!(rows[1][1..4], [text("computing"), Value::Null, Value::Null]);
}
