#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::super::testing::{GEMM, NORM, Run, diagnosis, us};
use crate::{
    diagnose::{Estimate, Finding},
    i18n::Value,
};

/// A seventh of a step went to `.item()` for each of 47 requests, and nothing was found: without one wait there is the next.
#[test]
fn rt11_counts_values_that_are_read_one_by_one_together() {
    let of = |values: usize, between: bool, before_token: bool| {
        Run::steps(12, move |r, _| {
            r.graph(&[(GEMM, us(200)); 10], us(1)).wait();
            for _ in 0..values {
                let at = r.host;
                r.script.copy("cudaMemcpyAsync", (at, at + us(8)), "DtoH", "pageable", 4, (at + us(5), at + us(7)));
                r.script.call("cudaStreamSynchronize", (at + us(9), at + us(13)));
                (r.host, r.device) = (at + us(33), at + us(7));
                if between {
                    r.launch(NORM, us(3)).wait();
                }
            }
            if before_token {
                r.launch(NORM, us(3)).wait();
            }
            r.token();
        })
    };
    let run = |values: usize| of(values, false, false);
    let finding = |values: usize| diagnosis(&run(values)).findings.into_iter().find(|f| f.rule == "RT-11");
    let count = |f: &Finding| {
        f.evidence.iter().find(|e| e.what.text.en.contains("one behind the other")).map(|e| e.value.clone())
    };
    let singly = |f: &Finding| f.evidence.iter().any(|e| e.what.text.en.contains("one behind the other"));
    let many = finding(40).expect("forty of them are a third of the step");
    let Estimate { from, to_low: low, to_high: high, .. } = many.estimate;
    // The token's copy brings all of them: 33 us each, of which the host's way of 20 us may half remain.
    assert!((us(1_150)..=us(1_360)).contains(&(from - low)) && from - high >= us(600), "{from} {low} {high}");
    let layers = diagnosis(&of(40, true, false)).findings.into_iter().find(|f| f.rule == "RT-11");
    assert!(
        !layers.is_some_and(|layers| singly(&layers)),
        "each value depends on what was computed since the one before"
    );
    assert!(singly(&many) && !finding(3).is_some_and(|few| singly(&few)));
    // Where something is computed before the token's copy, the last of them brings the rest.
    let apart = diagnosis(&of(40, false, true)).findings.into_iter().find(|f| f.rule == "RT-11");
    assert_eq!((count(&many), apart.as_ref().and_then(count)), (Some(Value::Number(40.0)), Some(Value::Number(39.0))));
}
