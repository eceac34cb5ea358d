//! Pages for people that say what the program says: made from it, so that they cannot disagree. `STRATO_BLESS=1` writes them anew.

use std::{fmt::Write as _, fs, path::Path};

use clap::CommandFactory as _;
use stratoscope::cli::Cli;

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
fn the_picture_of_the_readme_is_what_the_terminal_shows() {
    let picture = printed(&["export", "-q", "--format", "screen", "sample-traces/launch-bound-eager.json.gz"]);
    held("docs/overview.svg", &picture);
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
