//! What a comparison of captures is asked for on the command line.

use std::path::{Path, PathBuf};

use diagnosis::{
    compare::contract::claim,
    i18n::{Lang, Text},
    platform::Stage,
};
use model::manifest::{self, Field};
use session::Declaration;

use super::exit::Usage;

/// What a comparison rests on beside its captures.
#[derive(Debug, Default, clap::Args)]
pub struct Terms {
    /// Metadata missing from the captures: FIELD=VALUE for both sides, a.FIELD=VALUE or b.FIELD=VALUE for one (may be given
    /// several times); or a TOML file with tables [both], [a] and [b], '-' for standard input. 'strato diff A B --format toml'
    /// writes such a file to fill in.
    #[arg(long, value_name = "FIELD=VALUE|FILE")]
    declare: Vec<String>,
    /// Fields with the same value on both sides, whatever it is: commas stand between them.
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    same: Vec<String>,
    /// Field that differs on purpose: what the pair was made to find out (may be given several times).
    #[arg(long, value_name = "FIELD", value_parser = studied)]
    study: Vec<&'static Field>,
    /// Show the numbers although the two may not be compared; every form of the report says so first.
    #[arg(long)]
    force: bool,
    /// The two do unequal amounts of work on purpose: times are told by token, layer and
    /// operation, and more work is told from slower work.
    #[arg(long)]
    work_differs: bool,
    /// Compare steps of this stage: what the captures do not say of theirs.
    #[arg(long, value_name = "STAGE", value_enum)]
    stage: Option<Asked>,
    /// Measured ceilings of the machine of A: what 'strato probe --save' wrote there.
    #[arg(long, value_name = "FILE")]
    probe_a: Option<PathBuf>,
    /// Measured ceilings of the machine of B.
    #[arg(long, value_name = "FILE")]
    probe_b: Option<PathBuf>,
}

/// A stage that may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Asked {
    /// Prompts.
    Prefill,
    /// One token of each sequence.
    Decode,
    /// Both in one step.
    Mixed,
    /// Training.
    Train,
}

impl Asked {
    fn stage(self) -> Stage {
        match self {
            Self::Prefill => Stage::Prefill,
            Self::Decode => Stage::Decode,
            Self::Mixed => Stage::Mixed,
            Self::Train => Stage::Train,
        }
    }
}

impl Terms {
    /// Whether any was given.
    pub fn is_given(&self) -> bool {
        let asked = self.force || self.work_differs || self.stage.is_some();
        asked
            || !(self.study.is_empty() && self.declare.is_empty() && self.same.is_empty())
            || [&self.probe_a, &self.probe_b].into_iter().any(Option::is_some)
    }

    /// What is declared: in a file, in a few words, and as the same on both sides.
    fn declared(&self) -> anyhow::Result<Declaration> {
        let is_file = |said: &&String| said.as_str() == "-" || !said.contains('=') || Path::new(said.as_str()).exists();
        let (files, words): (Vec<&String>, Vec<&String>) = self.declare.iter().partition(is_file);
        if let [_, second, ..] = files.as_slice() {
            return Err(Usage(format!("'{second}' is a second file of declarations; put both into one")).into());
        }
        let mut declared =
            files.first().map(|file| Declaration::read(Path::new(file))).transpose()?.unwrap_or_default();
        words.into_iter().try_for_each(|said| declared.add(said))?;
        self.same.iter().try_for_each(|key| declared.same(key))?;
        Ok(declared)
    }

    /// What a session is told of them.
    ///
    /// # Errors
    /// A declaration that cannot be read.
    pub fn read(&self) -> anyhow::Result<session::Terms> {
        Ok(session::Terms {
            declared: self.declared()?,
            study: self.study.clone(),
            force: self.force,
            work_differs: self.work_differs,
            slo: None,
            stage: self.stage.map(Asked::stage),
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
