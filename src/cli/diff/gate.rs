//! Whether a difference is a regression: the gate that a build pipeline asks.

use std::path::{Path, PathBuf};

use crate::cli::{
    exit::{Exit, Usage},
    fail_on::FailOn,
    say,
};
use diagnosis::diagnose::Severity;
use report::diff::{
    Compared, DiffReport,
    ci::{Asked, Check, Slower},
    gate::{Accepted, Ends},
    json::SCHEMA,
};

/// Options of the gate.
#[derive(Debug, clap::Args)]
pub struct Gate {
    /// End with exit code 1 when B is slower than A by so much (low 1 %, medium 3 %, high 10 %, critical 20 % of the step; of one
    /// launch each from 2 % on), with 5 when the two may not be compared, with 6 when nothing of them can be judged.
    #[arg(long, value_enum, value_name = "SEVERITY")]
    fail_on: Option<FailOn>,
    /// Difference that is accepted: the JSON report of an earlier comparison of the same devices and model. Only what is slower
    /// than that counts, as a whole and slot by slot.
    #[arg(long, value_name = "FILE", requires = "fail_on")]
    baseline: Option<PathBuf>,
}

impl Gate {
    /// What an earlier comparison accepted: nothing without a baseline.
    ///
    /// # Errors
    /// When the baseline is no comparison.
    pub fn baseline(&self) -> Result<Accepted, Usage> {
        self.baseline.as_deref().map_or_else(|| Ok(Accepted::default()), accepted)
    }

    /// Asks the gate; the report says what it decided.
    ///
    /// # Errors
    /// A baseline of other machines or another model.
    pub fn ask(&self, report: DiffReport, accepted: &Accepted) -> Result<DiffReport, Usage> {
        let Some(limit) = self.fail_on.map(Severity::from) else { return Ok(report) };
        let own = report.identity();
        let other = accepted.identity.iter().zip(&own).find_map(|(was, is)| match (was, is) {
            (Some(was), Some(is)) if was != is => Some((was.clone(), is.clone())),
            _ => None,
        });
        if let Some((was, is)) = other {
            return Err(Usage(format!(
                "the baseline is of '{was}' and this comparison of '{is}'; give the baseline of this pair, or none"
            )));
        }
        let gate = report::diff::gate::Gate::of(&report, limit, accepted);
        Ok(DiffReport { gate: Some(gate), ..report })
    }

    /// What the gate says of two results without steps.
    pub fn results_check(&self, report: &dyn Compared) -> Check {
        let slowdown = report.slowdown();
        let limit = self.fail_on.map(Severity::from);
        let ends = match (slowdown, limit) {
            (None, _) => Ends::Refused,
            (Some(share), Some(limit)) if Severity::of(share) >= limit => Ends::Slower,
            _ => Ends::Pass,
        };
        let [a, b] = report.heads().each_ref().map(|head| head.name.clone());
        let named = |(name, share): (String, f64)| format!("{name}: {:+.1} %", 100.0 * share);
        let details = report.slower().unwrap_or_default().into_iter().take(NAMED).map(named).collect();
        Check { name: format!("{b} beside {a}"), ends, slowdown, details, is_asked: limit.is_some() }
    }

    /// The same for scripts; nothing where nobody asked.
    pub fn results_asked(&self, report: &dyn Compared) -> Option<Asked> {
        let limit = self.fail_on.map(Severity::from)?;
        let Check { ends, slowdown, .. } = self.results_check(report);
        let slower = report.slower().unwrap_or_default().into_iter();
        let slower = slower.filter(|(_, share)| Severity::of(*share) >= limit).map(|(name, by)| Slower { name, by });
        Some(Asked { ends, limit: limit.key(), slowdown, slower: slower.collect() })
    }

    /// How a comparison of two results without steps ends.
    pub fn judge_results(&self, report: &dyn Compared) -> Exit {
        let Some(limit) = self.fail_on.map(Severity::from) else { return Exit::Done };
        let check = self.results_check(report);
        let named = if check.ends == Ends::Slower { format!(": {}", check.details.join("; ")) } else { String::new() };
        say(&format!("strato: gate: {} (fails from {} on){named}", check.ends.word(), limit.key()));
        exit(check.ends)
    }

    /// How the command ends.
    pub fn judge(report: &DiffReport) -> Exit {
        let Some(gate) = &report.gate else { return Exit::Done };
        let by = gate.slowdown.map_or_else(String::new, |share| format!(", B takes {:+.1} % against A", 100.0 * share));
        let slots: Vec<&str> = gate.slower.iter().take(NAMED).map(|(name, _)| name.as_str()).collect();
        let slots = if slots.is_empty() { String::new() } else { format!(": {}", slots.join(", ")) };
        say(&format!("strato: gate: {} (fails from {} on){by}{slots}", gate.ends.word(), gate.limit.key()));
        exit(gate.ends)
    }
}

/// The exit code of a gate. What cannot be judged must not pass.
fn exit(ends: Ends) -> Exit {
    match ends {
        Ends::Pass => Exit::Done,
        Ends::Slower => Exit::Findings,
        Ends::Refused => Exit::Refused,
        Ends::Unjudged => Exit::Unjudged,
    }
}

/// Slots that are named on the command line.
const NAMED: usize = 3;

fn accepted(file: &Path) -> Result<Accepted, Usage> {
    let refused = |what: &str| {
        Usage(format!("baseline '{}': {what}; give what 'strato diff --format json' wrote", file.display()))
    };
    let text = input::text(file, input::DOCUMENT).map_err(|e| refused(&e.to_string()))?;
    let document: serde_json::Value = serde_json::from_str(&text).map_err(|e| refused(&e.to_string()))?;
    if document["schema"] != SCHEMA {
        return Err(refused(&format!("it is no comparison ('schema' is not {SCHEMA})")));
    }
    if document["forced"] == true {
        return Err(refused("its numbers were forced and are no result"));
    }
    let time = |key: &str| document["waterfall"][key].as_i64().filter(|ns| *ns > 0);
    let (from, to) = time("from_ns").zip(time("to_ns")).ok_or_else(|| refused("it compares nothing"))?;
    let terms = document["answer"]["terms"].as_array().into_iter().flatten();
    let term = |term: &serde_json::Value| Some((term["name"].as_str()?.to_owned(), term["delta_ns"].as_i64()?));
    let device = |side: &str| document[side]["device"].as_str().map(str::to_owned);
    let controls = document["contract"]["controls"].as_array();
    let model = controls.and_then(|all| all.iter().find(|own| own["field"] == "model.name"));
    let model = model.and_then(|own| own["a"]["value"].as_str().or_else(|| own["b"]["value"].as_str()));
    Ok(Accepted {
        share: (to - from) as f64 / from as f64,
        terms: terms.filter_map(term).collect(),
        identity: [device("a"), device("b"), model.map(str::to_owned)],
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_baseline_is_the_json_of_a_comparison() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("accepted.json");
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            accepted(&file)
        };
        let good = r#"{"schema":"strato.diff/2","waterfall":{"from_ns":1000,"to_ns":1250}}"#;
        assert_eq!(read(good).unwrap().share, 0.25);
        for (bad, said) in [
            ("{", "EOF"),
            (r#"{"schema":"strato.diagnosis/2"}"#, "no comparison"),
            (r#"{"schema":"strato.diff/2","waterfall":null}"#, "compares nothing"),
        ] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("accepted.json"), "{error}");
        }
        assert!(
            accepted(&directory.path().join("none")).unwrap_err().to_string().contains("strato diff --format json")
        );
    }
}
