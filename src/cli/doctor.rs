//! `strato doctor`: what this machine can read, run and show now, and how to get what is missing.

mod devices;
mod machine;
mod vendors;

use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
    path::PathBuf,
};

use collectors::host::Host;
use model::Reading;
use report::{columns::Columns, document::Align};

use super::{Global, Lang, exit::Exit};

/// Show what this machine can collect, run, read and show, what is missing and how to get it.
#[derive(Debug, clap::Args)]
pub struct Arguments {}

/// What a check found: the state, and what to do if it is not as it should be.
struct Finding {
    verdict: &'static str,
    state: String,
    remedy: Option<Cow<'static, str>>,
}

impl Finding {
    fn good(state: impl Into<String>) -> Self {
        Self { verdict: "ok", state: state.into(), remedy: None }
    }

    fn lacking(state: impl Into<String>, remedy: impl Into<Cow<'static, str>>) -> Self {
        Self { verdict: "missing", state: state.into(), remedy: Some(remedy.into()) }
    }

    /// Nobody can say: the state is the reason.
    fn unknown(reason: String) -> Self {
        Self { verdict: "unreadable", state: reason, remedy: None }
    }
}

type Check = fn(&Global) -> Finding;

/// Every check, one line each.
const CHECKS: &[(&str, Check)] = &[
    ("processor", processor),
    ("instructions", |_| machine::instructions()),
    ("cores", |_| machine::cores()),
    ("caches", |_| machine::caches()),
    ("memory", |_| machine::memory()),
    ("huge pages", |_| machine::huge_pages()),
    ("governor", |_| machine::governor()),
    ("numa", |_| machine::numa()),
    ("counters", |_| machine::counters()),
    ("opencl", |_| devices::opencl()),
    ("cuda", |_| devices::cuda()),
    ("nvml", |_| devices::nvml()),
    ("cupti", |_| devices::cupti()),
    ("ascend", |_| devices::ascend()),
    ("formats", formats),
    ("locale", locale),
    ("language", language),
    ("terminal", terminal),
];

pub(super) fn run(global: &Global, _: Arguments) -> anyhow::Result<Exit> {
    let checks = CHECKS.iter().map(|(name, check)| ((*name).to_owned(), check(global)));
    let found: Vec<(String, Finding)> = checks.chain(vendors::rows()).collect();
    // States are sentences: only what is before them stands in columns, and what to do stands below.
    let columns = |name: &str, finding: &Finding| vec![name.to_owned(), finding.verdict.to_owned()];
    let sample: Vec<_> = found.iter().map(|(name, finding)| columns(name, finding)).collect();
    let layout = Columns::new(&["check", "verdict", "state, and what to do"], &[Align::Left; 3], &sample);
    let mut out = io::stdout().lock();
    layout.row(&mut out, &["check", "verdict", "state, and what to do"])?;
    layout.rule(&mut out)?;
    for (name, finding) in &found {
        let mut cells = columns(name, finding);
        cells.push(finding.state.clone());
        layout.row(&mut out, &cells)?;
        if let Some(remedy) = &finding.remedy {
            layout.row(&mut out, &["", "", &format!("-> {remedy}")])?;
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn processor(_: &Global) -> Finding {
    let architecture = std::env::consts::ARCH;
    match Host::read().cpu {
        Reading::Value(name) => Finding::good(format!("{name}, {architecture}")),
        Reading::Unavailable(reason) => Finding::unknown(format!("{architecture}; name: {reason}")),
    }
}

fn formats(_: &Global) -> Finding {
    Finding::good(parsers::REGISTRY.iter().map(|f| format!("{} ({})", f.id, f.name)).collect::<Vec<_>>().join(", "))
}

fn locale(_: &Global) -> Finding {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|v| std::env::var(v).ok().filter(|v| !v.is_empty()));
    let text = set.unwrap_or_else(|| "none set".to_owned());
    let lower = text.to_ascii_lowercase();
    if lower.contains("utf-8") || lower.contains("utf8") {
        Finding::good(text)
    } else {
        Finding::lacking(text, "names with other letters may look wrong: export LANG=C.UTF-8")
    }
}

fn language(global: &Global) -> Finding {
    Finding::good(match global.lang() {
        Lang::En => "en",
        Lang::Zh => "zh",
    })
}

fn terminal(global: &Global) -> Finding {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return Finding::good("stdout is not a terminal: plain text");
    }
    let term = std::env::var("TERM").unwrap_or_else(|_| "TERM unset".to_owned());
    Finding::good(format!("{term}, colour {}", if global.paints(&stdout) { "on" } else { "off" }))
}

/// The first file of that name in the directories of PATH.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}
