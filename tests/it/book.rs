//! The book and the README: pages, links and commands. `STRATO_BLESS=1` writes the output that pages show again.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use rayon::prelude::*;

/// The sources of the two editions, below the root of the repository.
const EDITIONS: [&str; 2] = ["docs/book/src", "docs/book/zh/src"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn blessing() -> bool {
    std::env::var_os("STRATO_BLESS").is_some_and(|v| v == "1")
}

/// Every Markdown file below a directory, sorted.
fn markdown(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(markdown(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The text with the files in place that mdBook includes, whole (`{{#include FILE}}`) or from a line on (`{{#include FILE:N:}}`).
fn expanded(page: &Path) -> String {
    let mut text = String::new();
    for line in fs::read_to_string(page).unwrap().lines() {
        let Some(what) = line.strip_prefix("{{#include ").and_then(|rest| rest.strip_suffix("}}")) else {
            text.push_str(line);
            text.push('\n');
            continue;
        };
        let (file, from) = match what.split_once(':') {
            Some((file, lines)) => (file, lines.trim_end_matches(':').parse().unwrap()),
            None => (what, 1),
        };
        let path = page.parent().unwrap().join(file);
        let included = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page:?} includes {file}: {error}"));
        for line in included.lines().skip(from - 1) {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// The lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// Targets of links, without those that stand in code.
fn links(text: &str) -> Vec<String> {
    let code = regex::Regex::new("`[^`]*`").unwrap();
    let link = regex::Regex::new(r"\]\(([^()\s]+)\)").unwrap();
    prose(text)
        .flat_map(|line| {
            // Code inside a link's text goes too, and what is around it stays a link.
            let line = code.replace_all(line, "");
            link.captures_iter(&line).map(|found| found[1].to_owned()).collect::<Vec<_>>()
        })
        .collect()
}

/// What a heading is called in an address: as mdBook and GitHub make it.
fn anchors(text: &str) -> BTreeSet<String> {
    prose(text)
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let title = line.trim_start_matches('#').trim();
            title
                .chars()
                .filter_map(|c| match c {
                    c if c.is_alphanumeric() || c == '_' || c == '-' => Some(c.to_lowercase().to_string()),
                    c if c.is_whitespace() => Some("-".into()),
                    _ => None,
                })
                .collect()
        })
        .collect()
}

/// Pages of an edition that its table of contents names.
fn named(edition: &str) -> BTreeSet<String> {
    let summary = fs::read_to_string(root().join(edition).join("SUMMARY.md")).unwrap();
    let all = links(&summary);
    let named: BTreeSet<String> = all.iter().cloned().collect();
    assert_eq!(named.len(), all.len(), "{edition}/SUMMARY.md names a page twice");
    named
}

/// Pages of an edition that are there.
fn present(edition: &str) -> BTreeSet<String> {
    let base = root().join(edition);
    let relative = |page: &PathBuf| page.strip_prefix(&base).unwrap().to_string_lossy().replace('\\', "/");
    markdown(&base).iter().map(relative).filter(|page| page != "SUMMARY.md").collect()
}

#[test]
fn the_readme_is_short() {
    for name in ["README.md", "README.zh-CN.md"] {
        let lines = fs::read_to_string(root().join(name)).unwrap().lines().count();
        assert!(lines <= 120, "{name} has {lines} lines");
    }
}

#[test]
fn every_page_is_in_its_table_of_contents() {
    for edition in EDITIONS {
        assert_eq!(named(edition), present(edition), "{edition}");
    }
}

#[test]
fn both_editions_have_the_same_pages() {
    let order = |edition: &str| links(&fs::read_to_string(root().join(edition).join("SUMMARY.md")).unwrap());
    assert_eq!(order(EDITIONS[0]), order(EDITIONS[1]));
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let mut pages: Vec<PathBuf> = ["README.md", "README.zh-CN.md"].map(|name| root().join(name)).into();
    pages.extend(markdown(&root().join("docs")));
    let mut wrong = String::new();
    let mut count = 0;
    for page in &pages {
        let text = expanded(page);
        for link in links(&text).into_iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            count += 1;
            let (file, anchor) = link.split_once('#').map_or((link.as_str(), None), |(file, at)| (file, Some(at)));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let shown = page.strip_prefix(root()).unwrap().display();
            if !target.exists() {
                writeln!(wrong, "{shown}: {link}: no such file").unwrap();
            } else if let Some(anchor) = anchor {
                let known = if file.is_empty() { anchors(&text) } else { anchors(&expanded(&target)) };
                if !known.contains(anchor) {
                    writeln!(wrong, "{shown}: {link}: no such heading").unwrap();
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 200, "{count} links");
}

#[test]
fn the_pages_of_rules_hold_every_rule() {
    for (edition, directory, up) in
        [(EDITIONS[0], "docs/rules", "../../../rules"), (EDITIONS[1], "docs/rules/zh", "../../../../rules/zh")]
    {
        let page = fs::read_to_string(root().join(edition).join("reference/rules.md")).unwrap();
        for entry in fs::read_dir(root().join(directory)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") && name != "README.md" {
                assert!(page.contains(&format!("{{{{#include {up}/{name}}}}}")), "{edition}: {name}");
            }
        }
    }
}

/// One row of the page for each table and view, with the columns that a capture file has.
#[test]
fn the_pages_of_sql_name_every_table_and_column() {
    let directory = tempfile::tempdir().unwrap();
    let sample = crate::common::samples().join("sync-per-layer.sqlite");
    let file = directory.path().join("it.strato");
    let (sample, file) = (sample.to_str().unwrap(), file.to_str().unwrap());
    crate::common::printed(&["import", "-q", "-o", file, sample], root());
    let query = "select m.name as item, p.name as col from sqlite_master m, pragma_table_info(m.name) p \
                 where m.type in ('table', 'view') and m.name not like 'sqlite_%' order by m.name, p.cid";
    let rows: Vec<serde_json::Value> =
        serde_json::from_str(&crate::common::printed(&["sql", "--json", file, query], root())).unwrap();
    let mut known: Vec<(String, Vec<String>)> = Vec::new();
    for row in &rows {
        let (item, column) = (row["item"].as_str().unwrap(), format!("`{}`", row["col"].as_str().unwrap()));
        match known.last_mut() {
            Some((last, columns)) if last == item => columns.push(column),
            _ => known.push((item.to_owned(), vec![column])),
        }
    }
    assert!(known.len() > 30, "{known:?}");
    for edition in EDITIONS {
        let page = fs::read_to_string(root().join(edition).join("reference/sql.md")).unwrap();
        for (item, columns) in &known {
            let row = page.lines().find(|line| line.starts_with(&format!("| `{item}` |")));
            let row = row.unwrap_or_else(|| panic!("{edition}/reference/sql.md lacks {item}"));
            assert!(row.ends_with(&format!("| {} |", columns.join(", "))), "{edition}: {item}: {}", columns.join(", "));
        }
        let rows = page.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(rows, known.len(), "{edition}/reference/sql.md has a row of no table");
    }
}

/// One command of a page with the output that the page shows after it.
struct Shown {
    command: String,
    output: Vec<String>,
}

/// The blocks of a page that are run.
fn consoles(text: &str) -> String {
    let mut inside = false;
    let lines = text.lines().filter(|line| {
        inside = if line.starts_with("```") { *line == "```console" } else { inside };
        inside
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The commands of a block of a console.
fn commands(block: &[&str]) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    for line in block {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => all.push(Shown { command: command.to_owned(), output: Vec::new() }),
            (None, Some(last)) if last.output.is_empty() && last.command.ends_with('\\') => {
                last.command.push('\n');
                last.command.push_str(line);
            }
            (None, Some(last)) => last.output.push((*line).to_owned()),
            (None, None) => panic!("a block of a console begins with '$ ': {line}"),
        }
    }
    all
}

/// The code that a comment after a command states.
fn stated(command: &str) -> i32 {
    command.rsplit_once(" # exit ").map_or(0, |(_, code)| code.trim().parse().expect("a code after '# exit'"))
}

/// What a command prints, in a directory with the samples; an error if it ends with another code than is stated.
fn run(command: &str, directory: &Path) -> Result<Vec<String>, String> {
    let program = Path::new(env!("CARGO_BIN_EXE_strato"));
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", program.parent().unwrap().display());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(directory).env_clear().env("LANG", "C.UTF-8").env("PATH", path);
    let output = shell.output().unwrap();
    let (code, wanted) = (output.status.code(), stated(command));
    if code != Some(wanted) {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("$ {command}\n  ends with {code:?}, not {wanted}: {errors}"));
    }
    let text = String::from_utf8(output.stdout).unwrap();
    Ok(text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect())
}

/// Runs what a page shows, and gives the page with the output that the program prints.
fn performed(text: &str, wrong: &mut Vec<String>) -> (String, usize) {
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(crate::common::samples(), directory.path().join("sample-traces")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let (mut page, mut count, mut at) = (String::new(), 0, 0);
    while let Some(line) = lines.get(at) {
        page.push_str(line);
        page.push('\n');
        at += 1;
        if *line != "```console" {
            continue;
        }
        let end = at + lines[at..].iter().position(|line| line.starts_with("```")).expect("the end of a block");
        for shown in commands(&lines[at..end]) {
            count += 1;
            writeln!(page, "$ {}", shown.command).unwrap();
            let told = !shown.output.is_empty();
            match run(&shown.command, directory.path()) {
                Ok(printed) if told => {
                    let held: Vec<&str> = shown.output.iter().map(|line| line.trim_end()).collect();
                    if held.join("\n").trim_end() != printed.join("\n") {
                        wrong.push(format!("$ {}\n  prints\n{}", shown.command, printed.join("\n")));
                    }
                    printed.iter().for_each(|line| writeln!(page, "{line}").unwrap());
                }
                Ok(_) => {}
                Err(error) => {
                    wrong.push(error);
                    shown.output.iter().for_each(|line| writeln!(page, "{line}").unwrap());
                }
            }
        }
        at = end;
    }
    (page, count)
}

#[test]
fn every_command_of_the_book_ends_as_the_page_says() {
    let mut pages: Vec<PathBuf> = ["README.md", "README.zh-CN.md"].map(|name| root().join(name)).into();
    EDITIONS.iter().for_each(|edition| pages.extend(markdown(&root().join(edition))));
    // A page whose commands and output are those of its English page is as right as that.
    let mut seen = BTreeSet::new();
    pages.retain(|page| seen.insert(consoles(&fs::read_to_string(page).unwrap())) || blessing());
    let told: Vec<(String, usize)> = pages
        .par_iter()
        .map(|page| {
            let mut wrong = Vec::new();
            let text = fs::read_to_string(page).unwrap();
            let (written, count) = performed(&text, &mut wrong);
            if blessing() && written != text {
                fs::write(page, written).unwrap();
            }
            let shown = page.strip_prefix(root()).unwrap().display();
            (wrong.iter().map(|error| format!("{shown}: {error}\n")).collect(), count)
        })
        .collect();
    let wrong: String = told.iter().map(|(wrong, _)| wrong.as_str()).collect();
    assert!(wrong.is_empty(), "{wrong}\nwrite the output again with STRATO_BLESS=1");
    let count: usize = told.iter().map(|(_, count)| count).sum();
    assert!(count > 80 || blessing(), "{count} commands");
}
