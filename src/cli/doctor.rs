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
use report::{
    columns::Columns,
    document::Align,
    screen::{
        Look,
        canvas::{self, Line, Style},
    },
};

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
    if io::stdout().is_terminal() {
        let mut out = io::stdout().lock();
        short(&found, global.look()).iter().try_for_each(|line| out.write_all(line.as_bytes()))?;
        out.flush()?;
        return Ok(Exit::Done);
    }
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

/// One line per check, fitted to a terminal: what is there, then what to do about what is not.
fn short(found: &[(String, Finding)], look: Look) -> Vec<String> {
    let width = look.columns();
    let names = found.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut cut = false;
    let mut line = |style: Style, name: &str, mark: &str, said: &str| {
        let mut line = Line::of(style, format!("{mark:7}  "));
        line.push(Style::Strong, canvas::left(name, names + 2));
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = canvas::fit(&said, width.saturating_sub(line.width()));
        cut |= shown != said;
        line.push(Style::Plain, shown);
        let mut out = String::new();
        line.write(&mut out, look);
        out
    };
    let (good, lacking): (Vec<_>, Vec<_>) = found.iter().partition(|(_, own)| own.remedy.is_none());
    let mut out: Vec<String> = good
        .into_iter()
        .map(|(name, own)| match own.verdict {
            "ok" => line(Style::Tone(1), name, "ok", &own.state),
            _ => line(Style::Dim, name, "unknown", &own.state),
        })
        .collect();
    for (name, own) in lacking {
        let said = own.remedy.as_deref().unwrap_or(&own.state);
        out.push(line(Style::Tone(0), name, "missing", said));
    }
    if cut {
        out.push("\nWhole lines: strato doctor | cat\n".to_owned());
    }
    out
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// One check took a line of 1 585 characters.
    #[test]
    fn a_check_is_one_line_of_the_terminal() {
        let long = "a state of many words, ".repeat(70);
        let found = vec![
            ("formats".to_owned(), Finding::good(long.clone())),
            ("governor".to_owned(), Finding::unknown("no such file".to_owned())),
            ("cuda".to_owned(), Finding::lacking(long, "install the driver")),
        ];
        for width in [40, 80, 120] {
            let lines = short(&found, Look { width, colour: false, ascii: false });
            assert!(lines.iter().all(|line| line.trim().chars().count() <= width), "{lines:?}");
            assert_eq!(lines.len(), found.len() + 1, "{lines:?}");
            assert!(lines[2].starts_with("missing  cuda") && lines[2].contains("install the driver"), "{lines:?}");
            assert!(lines[3].contains("strato doctor | cat"), "{lines:?}");
        }
    }
}
