#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{
    EvidenceClass, Provenance,
    manifest::{Control as Weight, FIELDS, Manifest, field},
};

use super::{
    About, Change, Claim, Code, Contract, Facts, Force, Rule, Side, Status, Subject, Verdict,
    claim::{may_be_studied, refused_different, refused_unknown},
    judge,
};

/// A field's value in a run of which everything is known.
fn value(key: &str) -> &'static str {
    match key {
        "caps.batch" | "measurement.repeats" => "8",
        "workload.prompt_len" | "workload.output_len" | "quality.generated_tokens" => "1000",
        "quality.accuracy" => "0.75",
        "precision.deviation" => "within precision of bf16",
        "warmup.change_point" => "settled from step 3 on",
        "measurement.traced" => "nsys",
        "measurement.inflation" => "1.01",
        "parallel.world_size" => "2",
        "hardware.vendor" => "nvidia",
        _ => "x",
    }
}

/// A value of the field that no rule takes for the first.
fn other(key: &str) -> &'static str {
    match key {
        "precision.deviation" => "diverges at layer 3",
        "warmup.change_point" => "still falling at the end",
        "measurement.traced" => "no",
        "measurement.inflation" => "1.02",
        "measurement.repeats" | "caps.batch" => "9",
        "parallel.world_size" => "4",
        "workload.prompt_len" | "workload.output_len" | "quality.generated_tokens" => "2000",
        "quality.accuracy" => "0.5",
        "hardware.vendor" => "amd",
        _ => "y",
    }
}

fn whole() -> Manifest {
    let mut manifest = Manifest::default();
    FIELDS.iter().for_each(|field| manifest.set(field.key, value(field.key), Provenance::Observed));
    manifest
}

fn without(key: &str) -> Manifest {
    let mut manifest = Manifest::default();
    let others = FIELDS.iter().filter(|field| field.key != key);
    others.for_each(|field| manifest.set(field.key, value(field.key), Provenance::Observed));
    manifest
}

fn with(key: &str, value: &str) -> Manifest {
    let mut manifest = without(key);
    manifest.set(key, value, Provenance::Observed);
    manifest
}

fn sound() -> Facts {
    let evidence = EvidenceClass::ALL.into_iter().collect();
    Facts { evidence, steps: 40, power: true, noise: true, ..Facts::default() }
}

fn of(a: &Manifest, b: &Manifest) -> Contract {
    let facts = sound();
    judge(Subject { manifest: a, facts: &facts }, Subject { manifest: b, facts: &facts }, &[])
}

#[test]
fn equal_runs_of_which_everything_is_known_are_comparable() {
    let contract = of(&whole(), &whole());
    assert_eq!(contract.reasons, []);
    assert!(Claim::ALL.iter().all(|claim| contract.of(*claim) == Verdict::Comparable));
    assert!(contract.controls.iter().all(|control| control.status == Status::Equal));
    assert_eq!(contract.controls.len(), FIELDS.len());
}

/// Every field of the contract, changed alone.
#[test]
fn a_hard_field_that_differs_is_refused_and_a_soft_one_is_a_caveat() {
    let (mut hard, mut soft) = (0, 0);
    for field in FIELDS {
        for (a, b) in [(whole(), with(field.key, other(field.key))), (with(field.key, other(field.key)), whole())] {
            let contract = of(&a, &b);
            assert_eq!(contract.control(field.key).unwrap().status, Status::Different, "{}", field.key);
            let reasons = contract.reasons.as_slice();
            assert!(reasons.iter().all(|r| r.about == About::Field(field)), "{}: {reasons:?}", field.key);
            if field.control == Weight::Hard {
                hard += 1;
                assert_eq!(contract.verdict(), Verdict::NotComparable, "{}", field.key);
                assert_eq!(contract.of(Claim::E2e), Verdict::NotComparable, "{}", field.key);
                for claim in Claim::ALL {
                    let refused = refused_different(field).contains(&claim);
                    let verdict = if refused { Verdict::NotComparable } else { Verdict::Caveats };
                    assert_eq!(contract.of(claim), verdict, "{} {}", field.key, claim.key());
                }
                assert!(contract.refusals(Claim::Step).all(|r| r.code == Code::of_difference(field)));
                assert!(!contract.changes(Claim::Step).is_empty(), "{}", field.key);
            } else if field.key != "hardware.price" {
                soft += 1;
                assert!(Claim::ALL.iter().all(|claim| contract.of(*claim) == Verdict::Caveats), "{}", field.key);
                let codes: Vec<String> = contract.reasons.iter().map(super::Reason::text).collect();
                assert_eq!(codes, [format!("DIFFERENT({})", field.key)]);
                assert!(contract.changes(Claim::Step).is_empty());
            }
        }
    }
    assert_eq!((hard, soft), (98, 74), "the fields were not all tried");
}

/// Every field of the contract, unknown alone.
#[test]
fn an_unknown_hard_field_refuses_the_claims_that_rest_on_it() {
    // These follow from others that are known.
    let proved = super::rule::proved_by("model.weight_hash");
    for field in FIELDS.iter().filter(|field| !proved.contains(&field.key)) {
        let contract = of(&whole(), &without(field.key));
        assert_eq!(contract.control(field.key).unwrap().status, Status::Unknown, "{}", field.key);
        for claim in Claim::ALL {
            let refused = match field.control {
                Weight::Hard => refused_unknown(field).contains(&claim),
                Weight::Soft => field.key == "hardware.price" && claim == Claim::Cost,
            };
            assert_eq!(contract.of(claim) == Verdict::NotComparable, refused, "{} {}", field.key, claim.key());
        }
        let text = format!("UNKNOWN({})", field.key);
        let of_field = |reason: &&super::Reason| reason.about == About::Field(field);
        assert!(contract.reasons.iter().filter(of_field).all(|r| r.text() == text && r.side == Some(Side::B)));
        assert!(contract.reasons.iter().any(|r| of_field(&r)), "{}", field.key);
        if field.control == Weight::Hard {
            let wanted = [Change::Declare { side: Some(Side::B), fields: vec![field] }];
            assert_eq!(contract.changes(Claim::E2e), wanted, "{}", field.key);
        }
    }
}

#[test]
fn what_says_the_same_in_other_words_is_equivalent() {
    let rule = |key: &str, a: &str, b: &str| of(&with(key, a), &with(key, b)).control(key).unwrap().status;
    assert_eq!(rule("precision.weights", "torch.bfloat16", "BF16"), Status::Equivalent(Rule::SameFormat));
    assert_eq!(rule("precision.weights", "fp8_e4m3", "int8"), Status::Different);
    assert_eq!(rule("model.name", "Qwen/Qwen1.5-0.5B", "/models/qwen1.5-0.5b/"), Status::Equivalent(Rule::SameName));
    assert_eq!(rule("model.name", "Qwen/Qwen1.5-0.5B", "Qwen/Qwen1.5-0.5B-Chat"), Status::Different);
    assert_eq!(rule("workload.prompt_len", "1000", "1020"), Status::Equivalent(Rule::Within(2)));
    assert_eq!(rule("workload.prompt_len", "1000", "1021"), Status::Different);
    assert_eq!(rule("workload.output_len", "90 tokens", "100 tokens"), Status::Equivalent(Rule::Within(10)));
    assert_eq!(rule("workload.output_len", "89 tokens", "100 tokens"), Status::Different);
    assert_eq!(rule("workload.output_len", "100 tokens", "100 requests"), Status::Different);
    assert_eq!(rule("caps.batch", "1000", "1001"), Status::Different);
    assert_eq!(rule("measurement.traced", "nsys", "ascend"), Status::Equivalent(Rule::BothTraced));
    assert_eq!(
        rule("warmup.change_point", "settled from step 3 on", "settled from step 9 on"),
        Status::Equivalent(Rule::BothSettled)
    );
}

#[test]
fn equal_hashes_prove_what_is_unknown_and_nothing_that_differs() {
    let contract = of(&whole(), &without("model.layers"));
    assert_eq!(contract.control("model.layers").unwrap().status, Status::Equivalent(Rule::Proved("model.weight_hash")));
    assert_eq!(contract.verdict(), Verdict::Comparable);
    assert_eq!(of(&whole(), &with("model.layers", "y")).control("model.layers").unwrap().status, Status::Different);
}

#[test]
fn ranks_that_tensor_parallelism_uses_up_leave_no_other_parallelism() {
    let said = |world: &str, tp: &str| {
        let mut m = Manifest::default();
        m.set("parallel.world_size", world, Provenance::Declared);
        m.set("parallel.tp", tp, Provenance::Observed);
        m
    };
    let contract = of(&said("8", "8"), &said("8", "4"));
    let pp = contract.control("parallel.pp").unwrap();
    assert_eq!(pp.a.as_ref().map(|e| (e.value.as_str(), e.provenance)), Some(("1", Provenance::Declared)));
    assert_eq!(pp.b, None);
    assert_eq!(contract.control("parallel.ep").unwrap().a, None, "experts may be spread over the same ranks");
    let one = of(&said("1", "1"), &said("0", "1"));
    assert_eq!(one.control("parallel.ep").unwrap().a.as_ref().map(|e| e.value.as_str()), Some("1"));
    assert_eq!(one.control("parallel.ep").unwrap().b, None);
}

#[test]
fn what_a_pair_studies_is_a_caveat_and_a_model_is_never_studied() {
    let facts = sound();
    let (a, b) = (whole(), with("parallel.tp", "y"));
    let tp = field("parallel.tp").unwrap();
    let (a, b) = (Subject { manifest: &a, facts: &facts }, Subject { manifest: &b, facts: &facts });
    let contract = judge(a, b, &[tp]);
    assert_eq!(contract.verdict(), Verdict::Caveats);
    assert_eq!(contract.reasons.iter().map(super::Reason::text).collect::<Vec<_>>(), ["STUDIED(parallel.tp)"]);
    assert_eq!(judge(a, b, &[]).changes(Claim::Step).last(), Some(&Change::Study { fields: vec![tp] }));
    assert!(may_be_studied(tp));
    assert!(
        !["model.name", "workload.prompt_len", "quality.accuracy"].iter().any(|k| may_be_studied(field(k).unwrap()))
    );
}

#[test]
fn of_two_batches_the_larger_one_is_run_again() {
    let caps = field("caps.batch").unwrap();
    let changes = of(&with("caps.batch", "32"), &with("caps.batch", "8")).changes(Claim::Step);
    assert_eq!(changes.first(), Some(&Change::Rerun { side: Side::A, settings: vec![(caps, "8".to_owned())] }));
}

#[test]
fn what_a_capture_shows_of_itself_counts_beside_its_manifest() {
    let manifest = whole();
    let judged = |facts: Facts| {
        let clean = sound();
        let a = Subject { manifest: &manifest, facts: &clean };
        let contract = judge(a, Subject { manifest: &manifest, facts: &facts }, &[]);
        let [reason] = contract.reasons.as_slice() else { panic!("{:?}", contract.reasons) };
        assert_eq!(reason.side, Some(Side::B));
        (reason.text(), reason.force, contract.verdict())
    };
    let refused = |text: &str| (text.to_owned(), Force::Refuses, Verdict::NotComparable);
    let limited = |text: &str| (text.to_owned(), Force::Limits, Verdict::Caveats);
    assert_eq!(judged(Facts { broken: true, ..sound() }), refused("INTEGRITY"));
    assert_eq!(judged(Facts { steps: 0, ..sound() }), refused("UNKNOWN"));
    assert_eq!(judged(Facts { lost: 3, ..sound() }), limited("INTEGRITY"));
    assert_eq!(judged(Facts { simulated: true, ..sound() }), limited("SIMULATED"));
    assert_eq!(judged(Facts { runs: Some(4), ..sound() }), limited("REPEATS"));
    assert_eq!(judged(Facts { noise: false, ..sound() }), limited("NOISE"));
    let blind = EvidenceClass::ALL.into_iter().filter(|class| *class != EvidenceClass::HostApi).collect();
    assert_eq!(judged(Facts { evidence: blind, ..sound() }), limited("EVIDENCE"));
    let (_, force, verdict) = judged(Facts { power: false, ..sound() });
    assert_eq!((force, verdict), (Force::Refuses, Verdict::Comparable), "power is nothing to a step");
}

#[test]
fn tracing_that_slowed_a_run_is_a_caveat_up_to_twice_its_time() {
    let verdict = |ratio: &str| {
        let slow = with("measurement.inflation", ratio);
        of(&slow, &slow).verdict()
    };
    assert_eq!(
        ["1.05", "1.06", "2", "2.01"].map(verdict),
        [Verdict::Comparable, Verdict::Caveats, Verdict::Caveats, Verdict::NotComparable]
    );
}

#[test]
fn two_vendors_in_one_group_are_refused() {
    let mixed = with("hardware.vendor", "amd, nvidia");
    let contract = of(&mixed, &mixed);
    assert!(contract.reasons.iter().all(|r| r.code == Code::MixedVendor) && contract.reasons.len() == 2);
    assert_eq!(contract.verdict(), Verdict::NotComparable);
}

#[test]
fn a_capture_is_comparable_with_itself_whatever_it_knows() {
    let nothing = Manifest::default();
    let evidence = [EvidenceClass::Device].into_iter().collect();
    let facts = Facts { evidence, steps: 3, digest: Some(7), simulated: true, ..Facts::default() };
    let subject = Subject { manifest: &nothing, facts: &facts };
    let contract = judge(subject, subject, &[]);
    assert_eq!(contract.verdict(), Verdict::Comparable);
    assert!(contract.controls.iter().all(|c| c.status == Status::Equivalent(Rule::SameCapture)));
    // Captures of which records are missing had no answer even beside themselves.
    let broken = Facts { broken: true, ..facts.clone() };
    let subject_broken = Subject { manifest: &nothing, facts: &broken };
    assert_eq!(judge(subject_broken, subject_broken, &[]).verdict(), Verdict::Caveats);
    let elsewhere = Facts { digest: Some(8), ..facts.clone() };
    let contract = judge(subject, Subject { manifest: &nothing, facts: &elsewhere }, &[]);
    assert_eq!(contract.verdict(), Verdict::NotComparable);
}

/// D1: a run on a machine that others had was compared, and told to be 1.6 times slower.
#[test]
fn d1_what_the_diagnosis_withholds_is_refused() {
    let manifest = whole();
    let judged = |facts: Facts| {
        let clean = sound();
        let a = Subject { manifest: &manifest, facts: &clean };
        judge(a, Subject { manifest: &manifest, facts: &facts }, &[])
    };
    for facts in [Facts { shared: true, ..sound() }, Facts { idle: true, ..sound() }] {
        let contract = judged(facts);
        assert_eq!(contract.verdict(), Verdict::NotComparable);
        assert!(contract.refusals(Claim::Step).all(|r| r.text() == "WITHHELD" && r.side == Some(Side::B)));
    }
}

/// D4: the stage of one side's steps that a kernel's name told made two metrics of one.
#[test]
fn d4_the_same_time_of_steps_is_one_metric_whoever_tells_their_stage() {
    let metric = |stage: &str| format!("{stage} time on the device, from a step's first operation to the next step's");
    let status = |a: &str, b: &str| {
        of(&with("measurement.metric", &metric(a)), &with("measurement.metric", &metric(b)))
            .control("measurement.metric")
            .unwrap()
            .status
    };
    assert_eq!(status("step", "decode"), Status::Equivalent(Rule::SameSteps));
    assert_eq!(status("prefill", "decode"), Status::Different);
}

/// D11: what nobody can know, or what means nothing to a step, was asked for before any number.
#[test]
fn d11_a_step_asks_for_few_fields() {
    let asked: Vec<&str> =
        FIELDS.iter().filter(|field| refused_unknown(field).contains(&Claim::Step)).map(|field| field.key).collect();
    assert_eq!(asked, ["model.name", "workload.prompt_len", "parallel.tp", "caps.batch"]);
}
