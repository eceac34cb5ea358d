//! What the first screen says of time that no finding explains: the reason is the true one, and so is the input that would decide.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::Category;

use super::{
    super::testing::{GEMM, NORM, Run, check, diagnosis, fires, us},
    first_screen::{text, unjudged},
};
use crate::{analysis::script::Script, diagnose::Diagnosis};

/// Steps of products of which sizes, and types where `typed`, were recorded, on a device without a name.
fn products(kernel: &str, typed: bool) -> Vec<String> {
    let run = Run::steps(12, |r, _| {
        for _ in 0..10 {
            let types = if typed { r#"["c10::BFloat16", "c10::BFloat16"]"# } else { "" };
            r.shaped(kernel, us(80), "[[8, 4096], [4096, 4096]]", types);
        }
        r.token();
    });
    unjudged(&diagnosis(&run))
}

/// Sizes and types stood in the report's own table, and the first screen asked for sizes and types.
#[test]
fn where_the_peak_is_missing_the_peak_is_asked_for() {
    let asks = |doubts: &[String], what: &str| doubts.iter().any(|doubt| doubt.contains(what));
    let known = products("gemm_of_nobody_knows", true);
    assert!(asks(&known, "no peaks of this device") && !asks(&known, "record"), "{known:?}");
    // The kernel's name tells the type that was not recorded.
    let named = products("sgemm_of_nobody_knows", false);
    assert!(asks(&named, "no peaks of this device"), "{named:?}");
    let untyped = products("gemm_of_nobody_knows", false);
    assert!(asks(&untyped, "sizes were recorded without types"), "{untyped:?}");
}

/// Products that the host cannot keep busy were neither found nor undecided: nothing was said of them.
#[test]
fn a_finding_that_gains_nothing_is_undecided_with_its_reason() {
    let run = |think| {
        Run::steps(12, move |r, _| {
            for _ in 0..20 {
                r.think(us(think)).launch("ampere_sgemm_128x64_tn", us(50));
            }
            r.token();
        })
    };
    let told = |d: &Diagnosis| {
        let of = d.abstained.iter().find(|abstained| abstained.rule == "OP-22");
        of.and_then(|abstained| abstained.why.as_ref()).is_some_and(|why| text(why).contains("something else sets"))
    };
    let found = |d: &Diagnosis| d.findings.iter().any(|finding| finding.rule == "OP-22");
    let hidden = run(200);
    assert!(fires("OP-22", &hidden));
    let d = diagnosis(&hidden);
    assert!(!found(&d) && told(&d), "{:?}", d.abstained);
    let d = diagnosis(&run(1));
    assert!(found(&d) && !told(&d));
}

/// A convolution with 96 % of the time, and the headline was a conversion with 2 %.
#[test]
fn a_headline_says_how_little_the_findings_explain() {
    let run = |long| {
        let mut s = Script::default();
        let mut at = 0;
        for (name, ns) in [("nchwToNhwcKernel", us(200)), (GEMM, long), ("nchwToNhwcKernel", us(200))] {
            s.kernel(7, name, (at, at + ns), None, None);
            at += ns;
        }
        text(&diagnosis(&s.analyze()).verdict.headline)
    };
    let little = run(us(10_000));
    assert!(little.contains("of that layer. Fix first: OP-05"), "{little}");
    let much = run(us(500));
    assert!(much.contains("Fix first: OP-05"), "{much}");
}

/// 66 modules that were loaded once each in the one step there is were "loaded again and again".
#[test]
fn rt05_does_not_refute_first_loads_that_one_step_holds() {
    let mut s = Script::default();
    for i in 0..40 {
        let at = us(400) * i;
        if i % 2 == 0 {
            s.call("cuLibraryLoadData", (at + us(60), at + us(360)));
        }
        s.launch((at, at + us(5)), GEMM, (at + us(7), at + us(57)));
    }
    let once = s.analyze();
    let found = check("RT-05", &once);
    assert!(!found[0].competing[0].refuted && text(&found[0].competing[0].claim).contains("each once"), "{found:?}");
    let again = Run::steps(20, |r, step| {
        r.launch(GEMM, us(50));
        if [15, 18].contains(&step) {
            r.call("cuLibraryLoadData", us(900));
        }
        r.launch(NORM, us(5)).token();
    });
    assert!(check("RT-05", &again)[0].competing[0].refuted);
}

/// Of idle time that nothing explains nobody learned where it lies, although one range of the program held it.
#[test]
fn idle_time_without_a_cause_is_in_a_range_of_the_program() {
    let inside = |range: (i64, i64)| {
        let mut s = Script::default();
        for i in 0..12 {
            let at = us(1_000) * i;
            s.kernel(7, GEMM, (at, at + us(100)), None, None);
            s.host(Category::HostApi, "cuCtxGetCurrent", (at, at + us(1)));
            s.host(Category::UserRange, "optimizer", (at + us(range.0), at + us(range.1)));
        }
        let unjudged = diagnosis(&s.analyze()).verdict.unjudged;
        unjudged.iter().map(|doubt| text(&doubt.sentence)).collect::<String>()
    };
    let said = inside((150, 850));
    assert!(said.contains("most of it while the program is in `optimizer`"), "{said}");
    let said = inside((150, 350));
    assert!(!said.contains("while the program"), "{said}");
}
