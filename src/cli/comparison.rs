//! What a comparison of captures is asked for on the command line.

use std::path::{Path, PathBuf};

use diagnosis::{
    compare::contract::claim,
    i18n::{Lang, Text},
};
use model::manifest::{self, Field};
use session::Declaration;

use super::exit::Usage;

/// What a comparison rests on beside its captures.
#[derive(Debug, Default, clap::Args)]
pub struct Terms {
    /// What is known of the captures and they do not say: a TOML file with tables [both], [a] and [b], whose keys are fields
    /// of the manifest.
    #[arg(long, value_name = "FILE")]
    declare: Option<PathBuf>,
    /// Field that differs on purpose: what the pair was made to find out (may be given several times).
    #[arg(long, value_name = "FIELD", value_parser = studied)]
    study: Vec<&'static Field>,
    /// Measured ceilings of the machine of A: what 'strato probe --save' wrote there.
    #[arg(long, value_name = "FILE")]
    probe_a: Option<PathBuf>,
    /// Measured ceilings of the machine of B.
    #[arg(long, value_name = "FILE")]
    probe_b: Option<PathBuf>,
}

impl Terms {
    /// Whether any was given.
    pub fn is_given(&self) -> bool {
        !self.study.is_empty() || [&self.declare, &self.probe_a, &self.probe_b].into_iter().any(Option::is_some)
    }

    /// What a session is told of them.
    ///
    /// # Errors
    /// A declaration that cannot be read.
    pub fn read(&self) -> anyhow::Result<session::Terms> {
        Ok(session::Terms {
            declared: self.declare.as_deref().map(Declaration::read).transpose()?.unwrap_or_default(),
            study: self.study.clone(),
            probes: [self.probe_a.clone(), self.probe_b.clone()],
        })
    }
}

/// A field that may differ on purpose.
fn studied(key: &str) -> Result<&'static Field, String> {
    match manifest::field(key) {
        Some(field) if claim::may_be_studied(field) => Ok(field),
        Some(_) => Err(format!("runs that differ in '{key}' did different work; nothing can be studied by that")),
        None => Err(format!("'{key}' is no field of the manifest, such as software.graph_mode")),
    }
}

/// Said of a capture that was given twice.
pub fn twice(source: &str, lang: Lang) -> String {
    let text =
        Text::new("was given twice for one side; one launch counts once", "在同一侧给出了两次；同一次启动只计一次");
    format!("'{source}' {}", text.get(lang))
}

/// The paths of one side, which stand with commas between them unless a file has a comma in its name.
///
/// # Errors
/// A side that names nothing.
pub fn paths(side: &str) -> Result<Vec<PathBuf>, Usage> {
    if Path::new(side).exists() {
        return Ok(vec![side.into()]);
    }
    let paths: Vec<PathBuf> = side.split(',').filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    if paths.is_empty() { Err(Usage("a side of the comparison is empty; name a capture".into())) } else { Ok(paths) }
}
