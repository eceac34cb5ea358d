//! Whether a difference is a regression: the gate that a build pipeline asks.

use std::path::{Path, PathBuf};

use crate::cli::{
    exit::{Exit, Usage},
    fail_on::FailOn,
};
use diagnosis::diagnose::Severity;
use report::diff::{DiffReport, json::SCHEMA};

/// Options of the gate.
#[derive(Debug, clap::Args)]
pub struct Gate {
    /// End with exit code 1 when B is slower than A by so much (low 1 %, medium 3 %, high 10 %, critical 20 % of the step),
    /// or when the two may not be compared.
    #[arg(long, value_enum, value_name = "SEVERITY")]
    fail_on: Option<FailOn>,
    /// Difference that is accepted: the JSON report of an earlier comparison. Only what is slower than that counts.
    #[arg(long, value_name = "FILE", requires = "fail_on")]
    baseline: Option<PathBuf>,
}

impl Gate {
    /// How much slower B may be, as a share of A: nothing without a baseline.
    ///
    /// # Errors
    /// When the baseline is no comparison.
    pub fn baseline(&self) -> Result<f64, Usage> {
        self.baseline.as_deref().map_or(Ok(0.0), accepted)
    }

    /// How the command ends.
    pub fn judge(&self, report: &DiffReport, accepted: f64) -> Exit {
        let Some(limit) = self.fail_on.map(Severity::from) else { return Exit::Done };
        match report.slowdown() {
            Some(slower) if Severity::of(slower - accepted) < limit => Exit::Done,
            // What cannot be judged must not pass.
            _ => Exit::Findings,
        }
    }
}

fn accepted(file: &Path) -> Result<f64, Usage> {
    let refused = |what: &str| {
        Usage(format!("baseline '{}': {what}; give what 'strato diff --format json' wrote", file.display()))
    };
    let text = std::fs::read_to_string(file).map_err(|e| refused(&e.to_string()))?;
    let document: serde_json::Value = serde_json::from_str(&text).map_err(|e| refused(&e.to_string()))?;
    if document["schema"] != SCHEMA {
        return Err(refused(&format!("it is no comparison ('schema' is not {SCHEMA})")));
    }
    let time = |key: &str| document["waterfall"][key].as_i64().filter(|ns| *ns > 0);
    let (from, to) = time("from_ns").zip(time("to_ns")).ok_or_else(|| refused("it compares nothing"))?;
    Ok((to - from) as f64 / from as f64)
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
        assert_eq!(read(good).unwrap(), 0.25);
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
