//! The rows of a diagnosis.

use model::{SliceId, Span};

use super::super::{Results, Value, load, results, save_results};
use super::{ask, assert_same, small, temporary, text};

/// Results of `n` steps whose every value tells where it was put.
fn diagnosed(n: u32) -> Results {
    let part = |bucket: &str, layer, ns, provenance| results::Part { bucket: bucket.into(), layer, ns, provenance };
    let step = |number: u32| results::Step {
        rank: 3,
        device: 1,
        number,
        label: format!("execute {number}"),
        class: "decode".into(),
        anchor: "graph_launch:g".into(),
        confidence: "medium",
        selection: "steady",
        window: Span::new(100, 110),
        parts: vec![part("compute.gemm", "operator", 7, "measured"), part("comm.wait", "communication", 3, "modelled")],
    };
    let finding = |class: Option<&str>, to| results::Finding {
        rule: "RT-14",
        layer: "runtime",
        severity: "high",
        confidence: "low",
        class: class.map(str::to_owned),
        claim: "slow".to_owned(),
        from: 10,
        to,
        method: "bound",
        body: "{}".to_owned(),
    };
    let findings = vec![finding(Some("decode"), Some((4, 10))), finding(None, None)];
    let waits = vec![results::WaitCause {
        step: 0,
        slice: SliceId(2),
        rank: 3,
        late: 1,
        bucket: "rt.host.gc".into(),
        layer: "runtime",
        ns: -4,
        provenance: "measured",
    }];
    Results { ops: Vec::new(), steps: (0..n).map(step).collect(), findings, waits }
}

#[test]
fn results_stay_with_their_capture_and_change_nothing_that_is_loaded() {
    let (_keep, path) = temporary();
    let (trace, none) = (small(), Results::default());
    save_results(&path, &[(&trace, &diagnosed(2)), (&trace, &none), (&trace, &diagnosed(1))]).unwrap();
    load(&path).unwrap().iter().for_each(|found| assert_same(found, &trace));
    let one = |sql: &str| ask(&path, sql).unwrap().1;
    let [i, none] = [Value::Integer, |_| Value::Null];
    let steps = "SELECT s.*, sum(a.ns), count(*) FROM step s JOIN attribution a ON a.step_id = s.id AND \
                 a.capture_id = s.capture_id AND a.rank = s.rank GROUP BY s.id ORDER BY s.id";
    let step = |id, capture, number: i64| {
        let [label, class] = [text(&format!("execute {number}")), text("decode")];
        let how = [text("graph_launch:g"), text("medium"), text("steady")];
        let place = [i(id), i(capture), i(3), i(1), i(number), label, class];
        [&place[..], &how, &[i(100), i(10), i(10), i(2)]].concat()
    };
    assert_eq!(one(steps), [step(0, 1, 0), step(1, 1, 1), step(2, 3, 0)]);
    assert_eq!(
        one("SELECT layer, ns, provenance FROM attribution WHERE step_id = 2 ORDER BY bucket"),
        [[text("communication"), i(3), text("modelled")], [text("operator"), i(7), text("measured")]]
    );
    let finding = |id, capture, class, low, high| {
        let key = [i(id), i(capture), text("RT-14"), text("runtime"), text("high"), text("low"), class, text("slow")];
        [&key[..], &[i(10), low, high, text("bound"), text("{}")]].concat()
    };
    let of_capture = |id, capture| {
        [finding(id, capture, text("decode"), i(4), i(10)), finding(id + 1, capture, none(0), none(0), none(0))]
    };
    assert_eq!(one("SELECT * FROM finding ORDER BY id"), [of_capture(0, 1), of_capture(2, 3)].concat());
    let waits = "SELECT w.step_id, w.slice_id - c.first_slice, w.rank, w.late_rank, w.bucket, w.layer, w.ns, w.provenance \
                 FROM wait_cause w JOIN capture c ON c.id = w.capture_id ORDER BY w.id";
    let wait = |step| [i(step), i(2), i(3), i(1), text("rt.host.gc"), text("runtime"), i(-4), text("measured")];
    assert_eq!(one(waits), [wait(0), wait(2)]);
}
