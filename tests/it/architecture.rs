//! Imports point the way of ARCHITECTURE.md's table. The crates' own borders are Cargo's to guard; this guards those between the
//! rooms of a crate, the one way from paths to reports, and the subcommands, by reading the source.

use std::path::{Path, PathBuf};

/// What each room may import of its own crate.
const ALLOWED: &[(&str, &[&str])] = &[
    ("diagnosis/src/platform", &[]),
    ("diagnosis/src/i18n", &[]),
    ("diagnosis/src/analysis", &["platform"]),
    ("diagnosis/src/ledger", &["analysis", "platform"]),
    ("diagnosis/src/cause", &["ledger", "analysis", "platform", "i18n"]),
    ("diagnosis/src/largest", &["ledger", "analysis", "platform"]),
    ("diagnosis/src/diagnose", &["cause", "analysis", "platform", "i18n", "largest"]),
    ("diagnosis/src/compare", &["analysis", "platform"]),
    ("diagnosis/src/link_test", &["platform"]),
    ("diagnosis/src/serving", &["compare"]),
    ("diagnosis/src/decide", &["serving", "compare"]),
    ("src/tui", &[]),
    ("src/cli", &["tui"]),
];
/// Crates that a room may not import although its crate does.
const FORBIDDEN: &[(&str, &[&str])] =
    &[("src/tui", &["parsers", "store", "engine", "collectors", "probes", "simulator"])];

/// Names that follow any of `roots` and `::` in code, comments left out.
fn paths(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or("");
        let words =
            code.replace("::", " :: ").replace(['{', '}', ',', ';', '(', ')', '<', '>', '&', '[', ']', '!'], " ");
        let words: Vec<&str> = words.split_whitespace().collect();
        for (i, pair) in words.windows(2).enumerate() {
            if pair[1] == "::" && (i == 0 || words[i - 1] != "::") {
                found.push((number + 1, pair[0].to_owned()));
            }
        }
    }
    found
}

/// Rooms that `crate::` and `stratoscope::` paths name, groups `use crate::{a, b::c}` included.
fn rooms(text: &str) -> Vec<String> {
    members_of(text, &["crate::", "stratoscope::"])
}

/// First names that follow any of `roots` in code, groups included.
fn members_of(text: &str, roots: &[&str]) -> Vec<String> {
    let code: String = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    for root in roots {
        for (at, _) in code.match_indices(root) {
            let rest = &code[at + root.len()..];
            match rest.strip_prefix('{') {
                None => found.push(first_name(rest)),
                Some(group) => found.extend(members(group)),
            }
        }
    }
    found
}

fn first_name(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// First names of the members of a group, up to its closing brace.
fn members(group: &str) -> Vec<String> {
    let mut found = vec![first_name(group)];
    let mut depth = 0;
    for (i, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => found.push(first_name(&group[i + 1..])),
            _ => {}
        }
    }
    found
}

/// The room that a file lies in, and the names of all rooms of its crate.
fn room(path: &str) -> Option<(&'static str, &'static [&'static str])> {
    ALLOWED.iter().find(|(room, _)| path.starts_with(&format!("{room}/"))).copied()
}

/// What a file imports and may not.
fn violations(path: &str, text: &str) -> Vec<String> {
    let Some((own, allowed)) = room(path) else { return Vec::new() };
    let (root, name) = own.rsplit_once('/').unwrap();
    let known = |other: &str| ALLOWED.iter().any(|(room, _)| *room == format!("{root}/{other}"));
    let inner =
        rooms(text).into_iter().filter(|other| other != name && known(other) && !allowed.contains(&other.as_str()));
    let mut found: Vec<String> = inner.map(|other| format!("{path}: {name} may not import {other}")).collect();
    let (_, forbidden) = FORBIDDEN.iter().find(|(room, _)| *room == own).unwrap_or(&("", &[]));
    let outer = paths(text).into_iter().filter(|(_, other)| forbidden.contains(&other.as_str()));
    found.extend(outer.map(|(line, other)| format!("{path}:{line}: {name} may not import {other}")));
    found
}

/// Where a file calls, or imports, what only the session may call.
fn second_callers(path: &str, text: &str) -> Vec<String> {
    if path.starts_with("diagnosis/") || path.starts_with("session/src/") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (module, function) in [("analysis", "analyze"), ("diagnose", "diagnose")] {
        let named = members_of(text, &[&format!("{module}::")]);
        let is_glob = text.contains(&format!("{module}::*"));
        // Under another name a call would not be seen.
        let alias = regex::Regex::new(&format!(r"\b{module}(::\{{?\s*(self|{function}))?\s+as\s+\w+")).unwrap();
        let is_glob = is_glob || alias.is_match(text);
        if is_glob || named.iter().any(|name| name == function) {
            found.push(format!("{path}: only the session may call {module}::{function}"));
        }
    }
    found
}

/// The modules of the subcommands, as the lines of the command line's `enum Command` name them.
fn subcommands(cli: &str) -> Vec<String> {
    let (_, commands) = cli.split_once("enum Command {").expect("the subcommands");
    let (lines, _) = commands.split_once("\n}").expect("their end");
    lines.lines().filter_map(|line| Some(line.split_once('(')?.1.split_once("::")?.0.to_owned())).collect()
}

/// Other subcommands that a file of a subcommand names.
fn foreign_subcommands(path: &str, text: &str, subcommands: &[String]) -> Vec<String> {
    let below = path.trim_start_matches("src/cli/");
    let own = below.split(['/', '.']).next().unwrap_or("");
    let is_top = !below.contains('/') || below == format!("{own}/mod.rs");
    if below == "mod.rs" {
        return Vec::new();
    }
    // `crate::cli::view` and `crate::{cli::{say, view}}` alike.
    let roots: &[&str] = if is_top { &["cli::", "super::"] } else { &["cli::", "super::super::"] };
    members_of(text, roots)
        .into_iter()
        .filter(|name| name != own && subcommands.contains(name))
        .map(|name| format!("{path} imports {name}"))
        .collect()
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in directory.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Every source file below some folders, with its path from the root of the workspace.
fn all(folders: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    folders.iter().for_each(|folder| sources(&root.join(folder), &mut files));
    assert!(files.len() > 10, "the source was not found");
    let name = |file: &PathBuf| file.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
    files.iter().map(|file| (name(file), std::fs::read_to_string(file).unwrap())).collect()
}

#[test]
fn imports_point_left() {
    let found: Vec<String> =
        all(&["src", "diagnosis/src"]).iter().flat_map(|(path, text)| violations(path, text)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn only_the_session_analyses_and_diagnoses() {
    let everything = [
        "src",
        "tests",
        "benches",
        "report",
        "store",
        "session",
        "parsers",
        "engine",
        "collectors",
        "probes",
        "simulator",
        "fuzz",
    ];
    let files = all(&everything);
    let outside = files.iter().filter(|(path, _)| path != "tests/it/architecture.rs");
    let found: Vec<String> = outside.flat_map(|(path, text)| second_callers(path, text)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    // Calls by any path; methods of that name and definitions are something else.
    let calls = |text: &str| {
        regex::Regex::new(r"(?m)(fn |[.\w])?\b(analyze|diagnose)\(")
            .unwrap()
            .captures_iter(text)
            .filter(|c| c.get(1).is_none())
            .count()
    };
    let inside = files.iter().filter(|(path, _)| path.starts_with("session/src/"));
    assert_eq!(inside.map(|(_, text)| calls(text)).sum::<usize>(), 2, "one call of each");
    assert_eq!(calls("use d::diagnose; fn diagnose() { diagnose(a); pair.diagnose(); x::diagnose(b) }"), 2);
    for (path, planted) in [
        ("src/cli/export.rs", "let d = diagnosis::diagnose::diagnose(&trace, &analysis, &packs);"),
        ("tests/it/tui.rs", "use diagnosis::{analysis::{self, Analysis}, diagnose::{Diagnosis, diagnose}};"),
        ("benches/lanes.rs", "let a = analysis::analyze(&trace, &packs, &options);"),
        ("report/src/build.rs", "use diagnosis::analysis::{Analysis, analyze};"),
        ("tests/it/tui.rs", "use diagnosis::diagnose::*;"),
        ("tests/it/tui.rs", "use diagnosis::diagnose as d;"),
        ("tests/it/tui.rs", "use diagnosis::analysis::{self as a, Analysis};"),
        ("tests/it/tui.rs", "use diagnosis::analysis::analyze as look;"),
    ] {
        assert!(!second_callers(path, planted).is_empty(), "{path}: {planted}");
    }
    assert!(second_callers("src/cli/view.rs", "use diagnosis::diagnose::Diagnosis; session.diagnose()?").is_empty());
}

#[test]
fn subcommands_do_not_import_each_other() {
    let files = all(&["src/cli"]);
    let (_, cli) = files.iter().find(|(path, _)| path == "src/cli/mod.rs").unwrap();
    let subcommands = subcommands(cli);
    assert!(subcommands.len() > 15 && subcommands.iter().any(|name| name == "diff"), "{subcommands:?}");
    let found: Vec<String> =
        files.iter().flat_map(|(path, text)| foreign_subcommands(path, text, &subcommands)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    for (path, planted) in [
        ("src/cli/view.rs", "use super::{Global, diff::Terms};"),
        ("src/cli/run/live.rs", "use crate::cli::view;"),
        ("src/cli/run/live.rs", "use super::super::view;"),
        ("src/cli/run/live.rs", "use crate::{cli::{say, view}, tui::Job};"),
        ("src/cli/examine.rs", "fn f() { super::doctor::memory() }"),
    ] {
        assert_eq!(foreign_subcommands(path, planted, &subcommands).len(), 1, "{path}: {planted}");
    }
    assert!(
        foreign_subcommands("src/cli/run/mod.rs", "use super::{Global, decode}; // super::view", &subcommands)
            .is_empty()
    );
}

/// Whoever wants a diagnosis links neither a terminal nor a database nor a command line.
#[test]
fn the_session_without_its_features_links_no_terminal_and_no_sqlite() {
    let tree = |arguments: &[&str]| {
        let mut cargo = std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["tree", "--offline", "--locked", "-e", "normal", "--prefix", "none", "-p", "stratoscope-session"]);
        let output = cargo.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let heavy = |tree: &str| -> Vec<String> {
        let names = tree.lines().filter_map(|line| line.split(' ').next());
        names
            .filter(|name| {
                ["clap", "ratatui", "crossterm", "indicatif", "sqlx", "libsqlite3-sys", "tokio"].contains(name)
            })
            .map(str::to_owned)
            .collect()
    };
    let lean = tree(&["--no-default-features"]);
    assert!(lean.contains("stratoscope-diagnosis") && heavy(&lean).is_empty(), "{:?}", heavy(&lean));
    assert!(heavy(&tree(&[])).contains(&"libsqlite3-sys".to_owned()), "with its features it reads databases");
    let example = include_str!("../../session/examples/findings.rs");
    assert!(example.lines().count() <= 40, "the example is to be short");
}

/// Modules of the formats, as the lines of the parsers' `REGISTRY` name them.
fn formats(lib: &str) -> Vec<String> {
    let (_, registry) = lib.split_once("pub const REGISTRY").expect("a registry");
    let (lines, _) = registry.split_once("];").expect("its end");
    let mut formats: Vec<String> =
        lines.lines().filter_map(|line| line.trim().split_once("::")).map(|(module, _)| module.to_owned()).collect();
    formats.dedup();
    formats
}

/// Formats that a file of the parsers names and may not: each knows itself, what they share knows none.
fn foreign_formats(path: &str, text: &str, formats: &[String]) -> Vec<String> {
    let own = path.split(['/', '.']).next().unwrap_or("");
    // What readers are handed holds what the reader of logs knows.
    if matches!(own, "lib" | "detect" | "options") {
        return Vec::new();
    }
    let named = members_of(text, &["crate::", "super::"]).into_iter();
    named.filter(|name| name != own && formats.contains(name)).map(|name| format!("{path} imports {name}")).collect()
}

#[test]
fn no_parser_imports_another() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("parsers/src");
    let formats = formats(&std::fs::read_to_string(root.join("lib.rs")).unwrap());
    assert!(formats.len() > 10 && formats.iter().any(|f| f == "rocprofv3"), "{formats:?}");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let check = |file: &PathBuf| {
        let name = file.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
        foreign_formats(&name, &std::fs::read_to_string(file).unwrap(), &formats)
    };
    let found: Vec<String> = files.iter().flat_map(check).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    for (path, text) in [
        ("ncu.rs", "use crate::nsys;"),
        ("ncu/tests.rs", "use crate::{Format, nsys::FORMAT};"),
        ("ncu.rs", "fn f() { super::nsys::read() }"),
        ("csv_table.rs", "use crate::ncu::Metric;"),
    ] {
        assert_eq!(foreign_formats(path, text, &formats).len(), 1, "{path}: {text}");
    }
    assert!(foreign_formats("ncu/value.rs", "use crate::{csv, ncu::Metric}; // crate::nsys", &formats).is_empty());
}

/// The listing of CONTRIBUTING.md that shows a format is the code of that format.
#[test]
fn the_example_of_a_format_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = std::fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let listing = guide.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let code = std::fs::read_to_string(root.join("parsers/src/rocprof_stats.rs")).unwrap();
    for part in listing.split("// …\n").map(str::trim).filter(|part| !part.is_empty()) {
        assert!(code.contains(part), "not in rocprof_stats.rs:\n{part}");
    }
    for (path, held) in [
        ("parsers/src/lib.rs", "    rocprof_stats::FORMAT,\n"),
        ("parsers/tests/rocm_corpus.rs", "fn sums_of_rocprof_stats_stay_sums()"),
        ("parsers/tests/damaged/inputs.rs", "\"results.stats.csv\""),
        ("diagnosis/src/platform/packs/rocm.toml", "formats = [\"rocprof-stats\"]"),
        ("fuzz/fuzz_targets/rocprof_stats.rs", "parsers::format(\"rocprof-stats\")"),
    ] {
        assert!(std::fs::read_to_string(root.join(path)).unwrap().contains(held), "{path} without {held}");
    }
}

/// Files that may open others without the door `input`, and what they open: the system's own, or what the program itself made.
const OPENERS: &[(&str, &str)] = &[
    ("collectors/src/host.rs", "/proc"),
    ("collectors/src/record/command.rs", "the note that this program leaves"),
    ("collectors/src/record/signals.rs", "/dev/tty"),
    ("collectors/src/telemetry.rs", "/proc and /sys"),
    ("engine/src/buffer.rs", "/sys"),
    ("engine/src/cuda/device.rs", "/sys"),
    ("input/src/lib.rs", "the door"),
    ("probes/src/caches.rs", "/sys"),
    ("src/cli/doctor/machine.rs", "/proc and /sys"),
    ("src/cli/memory.rs", "/proc and /sys"),
    ("src/tui/events.rs", "/dev/tty"),
    ("store/src/replace.rs", "locks of its own temporary files"),
];

/// Where code that is no test opens or reads a file without the door.
fn side_doors(path: &str, text: &str) -> Vec<String> {
    let is_test = path.ends_with("/tests.rs") || path.split('/').any(|folder| folder == "tests");
    if is_test || OPENERS.iter().any(|(file, _)| *file == path) {
        return Vec::new();
    }
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
    let opens = |line: &&str| {
        let code = line.split("//").next().unwrap_or("");
        ["fs::read_to_string(", "fs::read(", "io::read_to_string(", "File::open(", ".read(true).open("]
            .iter()
            .any(|call| code.contains(call))
    };
    code.lines().filter(opens).map(|line| format!("{path}: {}; open it with input::open", line.trim())).collect()
}

/// A pipe that is opened waits for ever, and a device that is read to its end has none.
#[test]
fn files_of_others_come_in_by_one_door() {
    let rooms = ["src", "session/src", "parsers/src", "store/src", "diagnosis/src", "report/src", "engine/src"];
    let rooms: Vec<&str> =
        rooms.into_iter().chain(["collectors/src", "probes/src", "model/src", "input/src"]).collect();
    let files = all(&rooms);
    let found: Vec<String> = files.iter().flat_map(|(path, text)| side_doors(path, text)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    for (file, what) in OPENERS {
        assert!(files.iter().any(|(path, _)| path == file), "{file}, which opens {what}, is gone");
    }
    for planted in [
        "let text = std::fs::read_to_string(path)?;",
        "let text = fs::read(&path)?; // of the user",
        "let text = std::io::read_to_string(std::io::stdin())?;",
        "let file = File::open(path)?;",
        "let file = OpenOptions::new().read(true).open(path)?;",
    ] {
        assert_eq!(side_doors("session/src/reading.rs", planted).len(), 1, "{planted}");
    }
    let tested = "fn f() {}\n#[cfg(test)]\nmod tests { fn f() { std::fs::read(p) } }";
    assert!(side_doors("src/cli/plan.rs", tested).is_empty() && side_doors("src/tests/a.rs", "fs::read(p)").is_empty());
}

#[test]
fn a_planted_violation_is_caught() {
    let planted = [
        ("diagnosis/src/analysis/steps.rs", "fn f() { crate::diagnose::diagnose(p) }"),
        ("diagnosis/src/analysis/steps.rs", "use crate::{\n    platform::Pack,\n    diagnose::{Rule, Finding},\n};"),
        ("diagnosis/src/diagnose/mod.rs", "use crate::compare;"),
        ("diagnosis/src/platform/mod.rs", "use crate::i18n::Text;"),
        ("src/tui/app.rs", "let f = parsers::detect::read;"),
        ("src/tui/view/steps.rs", "use store::load;"),
        ("src/tui/view/steps.rs", "use crate::cli::table;"),
    ];
    for (path, text) in planted {
        assert_eq!(violations(path, text).len(), 1, "{path}: {text}: {:?}", violations(path, text));
    }
}

#[test]
fn what_is_allowed_passes() {
    let fine = [
        (
            "diagnosis/src/analysis/steps.rs",
            "use crate::{analysis::ops, platform::{Pack, Chip}}; // never crate::diagnose",
        ),
        ("diagnosis/src/diagnose/verdict.rs", "use crate::analysis::model::Parsers;"),
        ("src/cli/import.rs", "use parsers::ReadError; use store; use crate::tui::Job;"),
        ("src/main.rs", "use stratoscope::cli;"),
    ];
    for (path, text) in fine {
        assert_eq!(violations(path, text), Vec::<String>::new());
    }
}
