//! Two simulated captures with what a comparison says of them, more or less of which is declared.

use std::path::Path;

use diagnosis::{
    compare::{
        Difference, Statistics,
        contract::{self, Facts, Subject},
    },
    diagnose,
    platform::Packs,
};
use model::{
    EvidenceClass, Trace,
    manifest::{Control, FIELDS, Provenance},
};
use report::diff::{DiffReport, Head};
use stratoscope::tui::{Opened, opened::Pair};

/// What is declared of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Known {
    /// Nothing: the contract refuses it.
    Nothing,
    /// What must be equal.
    Hard,
    /// Everything, with repeats and probes.
    All,
}

pub fn sample(name: &str) -> Trace {
    super::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-traces").join(name))
}

fn declare(trace: &mut Trace, known: Known) {
    let declared = |field: &&model::manifest::Field| match known {
        Known::Nothing => false,
        Known::Hard => field.control == Control::Hard,
        Known::All => true,
    };
    for field in FIELDS.iter().filter(declared) {
        let value = match field.key {
            "measurement.repeats" => "6",
            "measurement.inflation" => "1.01",
            "measurement.clock_lock" => "yes",
            _ => "as on the other side",
        };
        if trace.manifest.value(field.key).is_none() {
            trace.manifest.set(field.key, value, Provenance::Declared);
        }
    }
}

/// Two captures with what their comparison says.
pub fn pair(mut traces: [Trace; 2], known: Known) -> Opened {
    let packs = Packs::embedded().unwrap();
    traces.iter_mut().for_each(|trace| {
        declare(trace, known);
        trace.simulated &= known != Known::All;
    });
    let analyses = traces.each_ref().map(super::analyze);
    let facts = [0, 1].map(|n| {
        let mut facts = Facts::of(&traces[n], &analyses[n]);
        if known == Known::All {
            facts.evidence.insert(EvidenceClass::Probes);
            (facts.runs, facts.noise) = (Some(6), true);
        }
        facts
    });
    let [a, b] = &traces;
    let [of_a, of_b] = &analyses;
    let contract = contract::judge(
        Subject { manifest: &a.manifest, facts: &facts[0] },
        Subject { manifest: &b.manifest, facts: &facts[1] },
        &[],
    );
    let head = |trace: &Trace| Head {
        name: trace.source.rsplit('/').next().unwrap().to_owned(),
        device: trace.manifest.value("hardware.device").map(str::to_owned),
        simulated: trace.simulated,
    };
    let report = DiffReport::build(
        [head(a), head(b)],
        contract,
        || Difference::of((a, of_a), (b, of_b), false),
        |difference| Statistics::of(difference, [&[(a, of_a)], &[(b, of_b)]]),
        Default::default,
    );
    let inputs = traces.into_iter().zip(analyses).map(|(trace, analysis)| {
        let diagnosis = diagnose::diagnose(&trace, &analysis, &packs);
        (trace, analysis, diagnosis)
    });
    let inputs: Vec<_> = inputs.collect();
    let report = report.with_readiness([0, 1].map(|n| inputs[n].2.readiness.clone()));
    Opened::compared(inputs, Pair { report, sides: [0, 1] })
}
