//! Pages for people that say what the program says: made from it, so that they cannot disagree. `STRATO_BLESS=1` writes them anew.

use std::{fmt::Write as _, fs, path::Path};

use clap::CommandFactory as _;
use stratoscope::cli::Cli;

/// Lines of the README: what a newcomer reads before the first command.
const README: usize = 150;
/// Lines of a finding that the README shows.
const EXAMPLE: usize = 25;
const BEGIN: &str = "<!-- example: written by a test from what the program prints -->\n";
const END: &str = "<!-- end of example -->";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compares a page with what it should hold, or writes it.
fn held(path: &str, text: &str) {
    let file = root().join(path);
    if std::env::var_os("STRATO_BLESS").is_some_and(|v| v == "1") {
        fs::write(&file, text).unwrap();
    }
    let old = fs::read_to_string(&file).unwrap_or_default();
    let differing = old.lines().zip(text.lines()).find(|(old, new)| old != new);
    assert!(old == text, "{path} is not what the program says ({differing:?}); write it anew with STRATO_BLESS=1");
}

fn printed(arguments: &[&str]) -> String {
    let out = crate::common::strato(arguments, root());
    assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn the_example_of_the_readme_is_what_the_program_prints() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (before, rest) = readme.split_once(BEGIN).expect("the beginning of the example");
    let (_, after) = rest.split_once(END).expect("its end");
    let report = printed(&["diagnose", "--lang", "en", "sample-traces/launch-bound-eager.json.gz"]);
    // The answer, and the first finding with its evidence.
    let section = |from: &str, to: &str| -> Vec<&str> {
        let lines = report.lines().skip_while(|line| !line.starts_with(from));
        let (head, rest): (Vec<&str>, Vec<&str>) =
            lines.enumerate().fold((Vec::new(), Vec::new()), |mut all, (n, line)| {
                let part = if n == 0 { &mut all.0 } else { &mut all.1 };
                part.push(line);
                all
            });
        head.into_iter().chain(rest.into_iter().take_while(|line| !line.starts_with(to))).collect()
    };
    let verdict = section("**Decode", "## ");
    let first = section("### 1.", "### ");
    assert!(verdict.len() > 3 && first.len() > 5, "{report}");
    let shown: Vec<&str> = verdict.into_iter().chain(first.into_iter().take(EXAMPLE)).collect();
    let quoted: String = shown.iter().map(|line| format!("> {line}").trim_end().to_owned() + "\n").collect();
    let page = format!("{before}{BEGIN}{}\n{END}{after}", quoted.trim_end_matches(">\n"));
    assert!(page.lines().count() <= README, "the README has {} lines", page.lines().count());
    held("README.md", &page);
}

#[test]
fn the_picture_of_the_readme_is_what_the_terminal_shows() {
    let picture = printed(&["export", "-q", "--format", "screen", "sample-traces/launch-bound-eager.json.gz"]);
    held("docs/overview.svg", &picture);
}

/// Every page that the README links is there.
#[test]
fn links_of_the_readme_lead_somewhere() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let links: Vec<&str> = readme.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(links.len() > 10, "{links:?}");
    for link in links.into_iter().filter(|link| !link.contains("://")) {
        assert!(root().join(link).exists(), "{link}");
    }
}

#[test]
fn the_page_of_commands_is_the_help_of_the_program() {
    let mut cli = Cli::command().term_width(100);
    cli.build();
    let mut page = String::from(
        "# Commands\n\nWhat `strato help COMMAND` prints. A test writes this page from the program.\n\n| command | |\n| --- | --- |\n",
    );
    let commands: Vec<_> =
        cli.get_subcommands().filter(|c| c.get_name() != "help" && !c.is_hide_set()).cloned().collect();
    for command in &commands {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(page, "| [`{name}`](#strato-{name}) | {about} |", name = command.get_name()).unwrap();
    }
    for mut command in commands {
        let name = command.get_name().to_owned();
        let help = command.render_long_help().to_string();
        let lines: String = help.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
        writeln!(page, "\n## strato {name}\n\n```text\n{}```", lines.trim_start()).unwrap();
    }
    held("docs/commands.md", &page);
}

#[test]
fn the_page_of_formats_has_every_format_that_is_read() {
    let page = fs::read_to_string(root().join("docs/formats.md")).unwrap();
    let (before, rest) = page.split_once("| format | what it is |\n| --- | --- |\n").expect("the table");
    let (_, after) = rest.split_once("\n\n").expect("what follows it");
    let rows: Vec<String> =
        parsers::REGISTRY.iter().map(|format| format!("| `{}` | {} |", format.id, format.name)).collect();
    let table = format!("| format | what it is |\n| --- | --- |\n{}\n\n", rows.join("\n"));
    held("docs/formats.md", &format!("{before}{table}{after}"));
}
