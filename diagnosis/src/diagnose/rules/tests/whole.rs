#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{Provenance, TraceSink, manifest::DIVERGES};

use super::{
    super::testing::{CONTIGUOUS, GEMM, Run, diagnosis, us},
    runtime::{eager, graph},
};
use crate::{
    analysis::{Confidence, Layer, script::Script},
    diagnose::{Assessment, Level, VerdictLayer},
    i18n::{Lang, Message, Value},
};

#[test]
fn a_launch_bound_run_is_blamed_once_and_on_the_runtime() {
    let d = diagnosis(&eager(us(4)));
    assert_eq!(d.verdict.layer, VerdictLayer::Runtime);
    assert_eq!(d.findings[0].rule, "RT-14");
    assert_eq!(d.findings[0].supersedes, ["RT-01"]);
    assert!(d.findings.iter().all(|f| f.rule != "RT-01"));
    assert_eq!(d.verdict.because[0], "RT-14");
}

#[test]
fn a_full_graph_that_keeps_the_device_busy_has_no_host_finding() {
    let d = diagnosis(&graph(12, |_, _| {}));
    let host: Vec<_> = d.findings.iter().filter(|f| f.layer == Layer::Runtime).map(|f| f.rule).collect();
    // What is left of the time is always stated, and accuses nobody.
    assert!(host.iter().all(|rule| *rule == "CO-14"), "{host:?}");
    assert_eq!(d.verdict.layer, VerdictLayer::Operator);
    assert!(d.verdict.because.is_empty());
    assert_eq!(d.verdict.level, Some(Level::Run));
    assert!(!d.verdict.missing.is_empty());
}

#[test]
fn between_step_scheduling_is_the_verdict_where_it_costs_most_and_is_seen() {
    let scheduled = |seen: bool| {
        let mut run = Run { script: Script::default(), host: 0, device: 0 };
        for _ in 0..12 {
            let from = run.host;
            run.graph(&[(GEMM, us(50)); 10], us(1)).token();
            let label = "decode";
            run.script.host(model::Category::UserRange, label, (from, run.host));
            if seen {
                run.work(model::Category::FrameworkOp, "aten::to", us(300));
            } else {
                run.think(us(300));
            }
        }
        diagnosis(&run.script.analyze())
    };
    let (seen, unseen) = (scheduled(true), scheduled(false));
    let first = seen.verdict.first.as_ref().unwrap();
    assert_eq!((first.layer, first.rule), (VerdictLayer::Runtime, "RT-12"));
    let doubt = said(&unseen.verdict.unjudged[0].sentence);
    assert_eq!(unseen.verdict.because, ["RT-12"], "{doubt}");
    assert!(unseen.verdict.first.is_none(), "no request looks the same");
    assert!(doubt.contains("no request"), "{doubt}");
}

#[test]
fn idle_time_that_nothing_explains_is_not_left_out_of_the_verdict() {
    let silent = |gap| {
        let mut s = Script::default();
        for step in 0..8 {
            let from = step * 12 * (us(10) + gap);
            for i in 0..12 {
                let at = from + i * (us(10) + gap);
                s.kernel(7, GEMM, (at, at + us(10)), None, None);
            }
            s.host(
                model::Category::UserRange,
                "execute_context_0(0)_generation_4(4)",
                (from, from + 12 * (us(10) + gap)),
            );
        }
        diagnosis(&s.analyze())
    };
    let (idle, busy) = (silent(us(2)), silent(100));
    let doubt = said(&idle.verdict.unjudged[0].sentence);
    assert_eq!(idle.verdict.because, ["CP-08"], "{doubt}");
    assert!(doubt.contains("nothing recorded says"), "{doubt}");
    let told = |d: &crate::diagnose::Diagnosis| {
        d.verdict.unjudged.iter().map(|doubt| said(&doubt.sentence)).collect::<String>()
    };
    assert!(busy.verdict.because.is_empty() && !told(&busy).contains("nothing recorded says"), "{}", told(&busy));
}

#[test]
fn a_capture_that_cannot_explain_itself_gets_no_verdict() {
    let mut s = Script::default();
    for i in 0..8 {
        s.kernel(7, GEMM, (i * us(100), i * us(100) + us(20)), None, None);
    }
    let d = diagnosis(&s.analyze());
    assert_eq!(d.verdict.layer, VerdictLayer::Undecided);
    assert!(d.findings.iter().any(|f| f.rule == "CP-08"));
    assert!(d.abstained.iter().any(|a| a.rule == "RT-14" && !a.needs.is_empty()));
}

/// A message in English, with its counts and the capture's words.
fn said(message: &Message) -> String {
    message.render(Lang::En, |value| match value {
        Value::Count(n) => n.to_string(),
        Value::Raw(text) | Value::Phrase(text) => text.clone(),
        other => format!("{other:?}"),
    })
}

/// Levels of a run whose manifest says these things; of `steps` steps, the first of which does not count.
fn levels(steps: usize, facts: &[(&str, &str)]) -> Vec<Assessment> {
    let say = |r: &mut Run, i| {
        for (key, value) in facts.iter().filter(|_| i == 0) {
            r.script.builder.manifest(key, value, Provenance::Observed);
        }
    };
    diagnosis(&graph(steps, say)).verdict.levels
}

#[test]
fn the_first_level_rests_on_numbers_that_were_held_against_a_reference() {
    let met = |facts: &[(&str, &str)]| {
        let levels = levels(12, facts);
        let [run, ..] = levels.as_slice() else { panic!("{levels:?}") };
        assert!(run.level == Level::Run && run.checks[0].met);
        (run.checks[1].met, said(&run.checks[1].what))
    };
    let (unknown, text) = met(&[]);
    assert!(!unknown && text.contains("strato run --numerics"), "{text}");
    let (right, text) = met(&[("precision.deviation", "within precision of bf16")]);
    assert!(right && text.ends_with("is within precision of bf16"), "{text}");
    let (wrong, text) = met(&[("precision.deviation", &format!("{DIVERGES} at layer 3"))]);
    assert!(!wrong && text.contains("is diverges at layer 3"), "{text}");
}

#[test]
fn verification_needs_repeats_a_noise_floor_and_the_whole_contract() {
    let checks = |steps, facts: &[(&str, &str)]| {
        let levels = levels(steps, facts);
        let verify = levels.into_iter().find(|assessment| assessment.level == Level::Verify).unwrap();
        verify.checks.into_iter().map(|c| (c.met, said(&c.what))).collect::<Vec<_>>()
    };
    let few = checks(12, &[("measurement.repeats", "4")]);
    assert!(few[..3].iter().all(|(met, _)| !met), "{few:?}");
    assert!(few[3].0, "the other launches are a second run: {few:?}");
    assert!(few[0].1.contains("hard fields are known") && few[1].1.contains("(4 now)"), "{few:?}");
    let enough = checks(40, &[("measurement.repeats", "5")]);
    assert!(enough[1].0 && enough[2].0 && enough[2].1.contains("95th percentile"), "{enough:?}");
    let hard = model::manifest::FIELDS.iter().filter(|field| field.control == model::manifest::Control::Hard);
    let all: Vec<(&str, &str)> = hard.map(|field| (field.key, "1")).collect();
    assert!(checks(40, &all)[0].0);
}

#[test]
fn nothing_on_the_device_reaches_no_level() {
    let mut s = Script::default();
    s.call("cudaLaunchKernel", (0, 10));
    let d = diagnosis(&s.analyze());
    assert_eq!((d.verdict.layer, d.verdict.level), (VerdictLayer::Undecided, None));
    assert_eq!(d.verdict.missing.len(), 1);
    assert!(d.verdict.levels.iter().all(|assessment| !assessment.is_met()));
}

#[test]
fn measurement_findings_come_last_and_texts_are_complete() {
    for capture in [
        eager(us(4)),
        graph(12, |r, _| {
            r.think(us(300));
        }),
    ] {
        let d = diagnosis(&capture);
        let gates: Vec<bool> = d.findings.iter().map(|f| f.layer == Layer::Measurement).collect();
        assert!(gates.is_sorted());
        for lang in [Lang::En, Lang::Zh] {
            let mut texts = vec![&d.verdict.headline];
            texts.extend(&d.verdict.missing);
            texts.extend(d.findings.iter().flat_map(|f| f.competing.iter().flat_map(|c| [&c.claim, &c.why])));
            texts.extend(d.findings.iter().flat_map(|f| f.evidence.iter().map(|e| &e.what)));
            for text in texts {
                let shown = text.render(lang, |_| "x".into());
                assert!(!shown.is_empty() && !shown.contains(['{', '}']), "{shown}");
            }
        }
    }
}

#[test]
fn few_steps_leave_a_finding_unsure() {
    let short = Run::steps(3, |r, _| {
        for _ in 0..20 {
            r.work(model::Category::FrameworkOp, "aten::linear", us(15)).launch(GEMM, us(4));
        }
        r.token();
    });
    let d = diagnosis(&short);
    let launch = d.findings.iter().find(|f| f.rule == "RT-14" || f.rule == "RT-01").unwrap();
    assert_eq!(launch.confidence, Confidence::Low);
}

#[test]
fn collectives_of_one_rank_alone_are_not_passed_over_for_what_little_else_is_known() {
    let d = diagnosis(&graph(12, |r, _| {
        r.graph(&[("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", us(2_000))], 0);
    }));
    assert_eq!(d.verdict.place.unwrap().layer, VerdictLayer::Communication, "where the time is stands without a cause");
    let doubt = said(&d.verdict.unjudged[0].sentence);
    assert!(doubt.contains("inside collectives"), "{doubt}");
}

#[test]
fn a_capture_that_mostly_captures_a_graph_is_a_start_up() {
    let mut s = Script::default();
    s.launch((0, us(1)), GEMM, (us(2), us(10)));
    s.call("cudaStreamBeginCapture", (us(20), us(21)));
    s.call("cudaStreamEndCapture", (us(900), us(901)));
    s.launch((us(950), us(951)), GEMM, (us(952), us(960)));
    let d = diagnosis(&s.analyze());
    let headline = d.verdict.headline.render(Lang::En, |_| String::new());
    assert!(headline.contains("start-up"), "{headline}");
}

#[test]
fn rules_about_steps_abstain_where_nothing_marks_a_step() {
    let mut s = Script::default();
    for i in 0..4 {
        s.launch((i * us(100), i * us(100) + us(5)), GEMM, (i * us(100) + us(10), i * us(100) + us(60)));
    }
    let d = diagnosis(&s.analyze());
    let why = |rule: &str| d.abstained.iter().any(|a| a.rule == rule && a.why.is_some());
    assert!(["RT-01", "RT-09", "RT-12"].into_iter().all(why));
    assert!(d.abstained.iter().all(|a| a.rule != "RT-18"), "no graph, so nothing to say of its nodes");
}

/// Kernels of a run that was under way when the recording began take nothing from what is known of the steps.
#[test]
fn work_launched_before_the_recording_is_no_damage() {
    let capture = |hole: bool| {
        let mut s = Script::default();
        for i in 0..40 {
            let at = i * us(100);
            let lost = i < 10 || (hole && i == 20);
            match lost {
                true => s.kernel(7, GEMM, (at + us(10), at + us(60)), None, None),
                false => {
                    s.launch((at, at + us(5)), GEMM, (at + us(10), at + us(60)));
                }
            }
        }
        s.analyze()
    };
    let (before, hole) = (capture(false), capture(true));
    assert_eq!((before.1.integrity.unlinked, before.1.integrity.before_recording), (10, 10));
    assert_eq!((hole.1.integrity.unlinked, hole.1.integrity.before_recording), (11, 10));
    assert_eq!((before.1.integrity.lost_links, hole.1.integrity.lost_links), (0, 1));
    assert!(diagnosis(&before).findings.iter().all(|f| f.rule != "CP-05"));
    assert!(diagnosis(&hole).findings.iter().any(|f| f.rule == "CP-05"));
}

/// Long conversions and many small operations share next to nothing: neither takes the other's place.
#[test]
fn rules_that_share_few_operations_both_stay() {
    let capture = Run::steps(12, |r, _| {
        for _ in 0..10 {
            r.launch(CONTIGUOUS, us(60));
            for _ in 0..12 {
                r.launch(GEMM, us(4));
                r.launch(
                    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
                    us(4),
                );
            }
        }
        r.token();
    });
    let rules: Vec<&str> = diagnosis(&capture).findings.iter().map(|f| f.rule).collect();
    assert!(rules.contains(&"OP-05") && rules.contains(&"OP-08"), "{rules:?}");
}

/// A cast inside an unfused norm is a conversion too: both findings stay, and the second says what they share.
#[test]
fn findings_that_count_the_same_kernels_say_so() {
    let elementwise =
        |functor: &str| format!("void at::native::vectorized_elementwise_kernel<4, at::native::{functor} >(int)");
    let cast = elementwise("direct_copy_kernel_cuda(at::TensorIteratorBase&)");
    let norm = [
        cast.clone(),
        elementwise("pow_tensor_scalar_kernel_impl<float, float>"),
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float> > >"
            .into(),
        elementwise("CUDAFunctorOnSelf_add<float>"),
        elementwise("rsqrt_kernel_cuda(at::TensorIteratorBase&)"),
        elementwise("BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >"),
        cast,
    ];
    let mut s = Script::default();
    for (i, name) in norm.iter().cycle().take(4 * norm.len()).enumerate() {
        let at = us(100) * i as i64;
        s.launch((at, at + us(2)), name, (at + us(5), at + us(95)));
    }
    let d = diagnosis(&s.analyze());
    let rule = |id: &str| d.findings.iter().find(|f| f.rule == id).unwrap();
    assert!(rule("OP-03").estimate.max_gain_share() > 0.3);
    let shared = rule("OP-05").competing.iter().filter(|c| c.claim.text.en.contains("composites")).count();
    assert_eq!(shared, 1);
}

/// What a capture that says this of its logits is blamed for, and by what layer.
fn blamed(facts: &[(&str, &str)]) -> (Vec<&'static str>, VerdictLayer) {
    let say = |r: &mut Run, i| {
        for (key, value) in facts.iter().filter(|_| i == 0) {
            r.script.builder.manifest(key, value, Provenance::Observed);
        }
    };
    let d = diagnosis(&graph(12, say));
    let sure = d.findings.iter().filter(|f| f.severity == crate::diagnose::Severity::Critical);
    (sure.map(|f| f.rule).filter(|rule| *rule == "NM-01").collect(), d.verdict.layer)
}

#[test]
fn l6_wrong_numbers_stand_before_a_critical_loss_of_time() {
    let mut s = Script::default();
    s.builder.manifest(
        model::manifest::FINITE,
        "no: of 12 steps 12, from step 0 on (512 logits)",
        Provenance::Observed,
    );
    for i in 0..200 {
        let at = us(100) * i;
        s.launch((at, at + us(2)), "gemm", (at + us(5), at + us(30)));
    }
    let d = diagnosis(&s.analyze());
    let rules: Vec<_> = d.findings.iter().map(|f| (f.rule, f.severity)).collect();
    assert_eq!(rules[0], ("NM-01", crate::diagnose::Severity::Critical), "{rules:?}");
    assert!(rules[1..].iter().any(|(_, severity)| *severity == crate::diagnose::Severity::Critical), "{rules:?}");
}

#[test]
fn numbers_that_are_not_finite_come_before_every_time() {
    let deviation = format!("{} from step 0, layer 1, operator down_proj", model::manifest::NOT_FINITE);
    for facts in [
        &[(model::manifest::FINITE, "no: of 12 steps 12, from step 0 on (512 logits)")][..],
        &[("precision.deviation", deviation.as_str())],
    ] {
        assert_eq!(blamed(facts), (vec!["NM-01"], VerdictLayer::Operator), "{facts:?}");
    }
}

#[test]
fn numbers_that_are_finite_or_unknown_are_no_finding() {
    for facts in [
        &[][..],
        &[(model::manifest::FINITE, "yes: the logits of all 12 steps")],
        &[("precision.deviation", "diverges at layer 3")],
    ] {
        assert_eq!(blamed(facts).0, Vec::<&str>::new(), "{facts:?}");
    }
}
