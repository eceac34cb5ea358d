//! `strato diff`: two captures of the same work beside each other, or the reason why they may not be.

mod gate;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use model::manifest::{self, Field};

use diagnosis::{
    compare::contract::claim,
    i18n::{Lang, Text},
};
use report::diff::{json, markdown};
use session::{Declaration, Pair};

use super::{
    Global,
    examine::Narrowed,
    exit::{Exit, Usage},
    output::Kind,
    progress::Bar,
    say,
    source::Source,
    target,
};

/// Say whether two captures may be compared, and which part of the step makes the difference.
///
/// A and B are trace files, profiler output directories or capture files; several runs of one side are given with commas
/// between them. B is held against A: what B takes longer is positive.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// What is compared from.
    #[arg(value_name = "A")]
    a: String,
    /// What is compared to.
    #[arg(value_name = "B")]
    b: String,
    #[command(flatten)]
    terms: Terms,
    /// Form of the report.
    #[arg(long, value_enum, default_value_t = Form::Md)]
    format: Form,
    /// Write the report to this file instead of the terminal.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    gate: gate::Gate,
    /// Print nothing; the exit code says it, and --output is still written.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    narrowed: Narrowed,
    #[command(flatten)]
    source: Source,
}

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Markdown, for people.
    Md,
    /// JSON, for scripts.
    Json,
}

/// A field that may differ on purpose.
fn studied(key: &str) -> Result<&'static Field, String> {
    match manifest::field(key) {
        Some(field) if claim::may_be_studied(field) => Ok(field),
        Some(_) => Err(format!("runs that differ in '{key}' did different work; nothing can be studied by that")),
        None => Err(format!("'{key}' is no field of the manifest, such as software.graph_mode")),
    }
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    let inputs = [paths(&arguments.a)?, paths(&arguments.b)?];
    if let Some(output) = &arguments.output {
        inputs.iter().try_for_each(|inputs| target::check(output, inputs))?;
    }
    let baseline = arguments.gate.baseline()?;
    let bar = Bar::new(global.lang());
    let terms = arguments.terms.read()?;
    let pair = Pair::open(&inputs, &arguments.source.reading(), &arguments.narrowed.options(), &terms)?;
    for source in pair.twice() {
        say(&format!("strato: {}", twice(source, Lang::En)));
    }
    let report = pair.compare(&terms)?;
    drop(bar);
    let lang = global.lang();
    let (text, kind) = match arguments.format {
        Form::Md => (markdown::render(&report, lang), Kind::Markdown),
        Form::Json => (json::render(&report, lang)?, Kind::Data),
    };
    if arguments.output.is_some() || !arguments.quiet {
        global.deliver(&text, kind, arguments.output.as_deref())?;
    }
    Ok(arguments.gate.judge(&report, baseline))
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
