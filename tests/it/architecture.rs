//! Imports point the way of ARCHITECTURE.md's table. The crates' own borders are Cargo's to guard; this guards those
//! between the rooms of the root package, by reading its source.

use std::path::{Path, PathBuf};

/// What each room may import: other rooms of the root package, and our crates.
const ALLOWED: &[(&str, &[&str])] = &[
    ("store", &["model"]),
    ("platform", &["model"]),
    ("config", &["model"]),
    ("i18n", &[]),
    ("analysis", &["model", "platform"]),
    ("diagnose", &["analysis", "platform", "model", "i18n"]),
    ("compare", &["analysis", "platform", "model"]),
    ("report", &["diagnose", "compare", "analysis", "model", "i18n"]),
    ("tui", &["report", "diagnose", "compare", "analysis", "platform", "config", "model", "i18n"]),
];
/// Crates of ours that a room sees only if its row says so.
const CRATES: &[&str] = &["model", "parsers", "engine", "collectors", "probes", "simulator"];

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

/// What a file of the root package imports and may not.
fn violations(path: &str, text: &str) -> Vec<String> {
    let room = path.trim_start_matches("src/").split(['/', '.']).next().unwrap_or("");
    let mut found = Vec::new();
    let sqlx = paths(text).into_iter().find(|(_, name)| name == "sqlx");
    if let Some((line, _)) = sqlx.filter(|_| room != "store") {
        found.push(format!("{path}:{line}: only store may use sqlx"));
    }
    if matches!(room, "main" | "lib" | "cli") {
        return found;
    }
    let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == room) else {
        found.push(format!("{path}: '{room}' is a room that ARCHITECTURE.md does not know"));
        return found;
    };
    let known = |name: &str| name == "cli" || ALLOWED.iter().any(|(room, _)| *room == name);
    for name in rooms(text) {
        if name != room && known(&name) && !allowed.contains(&name.as_str()) {
            found.push(format!("{path}: {room} may not import {name}"));
        }
    }
    for (line, name) in paths(text) {
        if CRATES.contains(&name.as_str()) && !allowed.contains(&name.as_str()) {
            found.push(format!("{path}:{line}: {room} may not import {name}"));
        }
    }
    found
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

#[test]
fn imports_point_left() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    assert!(files.len() > 10, "the source was not found");
    let check = |file: &PathBuf| {
        let name = file.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
        violations(&name, &std::fs::read_to_string(file).unwrap())
    };
    let found: Vec<String> = files.iter().flat_map(check).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
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
    if matches!(own, "lib" | "detect") {
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
        ("src/platform/packs/rocm.toml", "formats = [\"rocprof-stats\"]"),
        ("fuzz/fuzz_targets/rocprof_stats.rs", "parsers::format(\"rocprof-stats\")"),
    ] {
        assert!(std::fs::read_to_string(root.join(path)).unwrap().contains(held), "{path} without {held}");
    }
}

#[test]
fn a_planted_violation_is_caught() {
    let planted = [
        ("src/store/save.rs", "use parsers::REGISTRY;"),
        ("src/store/save.rs", "use crate::cli::table;"),
        ("src/analysis/steps.rs", "fn f() { crate::store::load(p) }"),
        ("src/analysis/steps.rs", "use crate::{\n    platform::Pack,\n    diagnose::{Rule, Finding},\n};"),
        ("src/diagnose/mod.rs", "use report;"),
        ("src/tui/app.rs", "let f = parsers::detect::read;"),
        ("src/tui/view/steps.rs", "use crate::store::load;"),
        ("src/cli/sql.rs", "use sqlx::Row;"),
        ("src/report/json.rs", "async fn f(c: &mut sqlx::SqliteConnection) {}"),
        ("src/storage/mod.rs", ""),
    ];
    for (path, text) in planted {
        assert_eq!(violations(path, text).len(), 1, "{path}: {text}: {:?}", violations(path, text));
    }
}

#[test]
fn what_is_allowed_passes() {
    let fine = [
        ("src/store/save.rs", "use sqlx::Row; use model::Trace; use crate::store::chunk;"),
        ("src/analysis/steps.rs", "use crate::{analysis::ops, platform::{Pack, Chip}}; // never crate::store"),
        ("src/report/md.rs", "use crate::{compare::Contract, diagnose::Finding}; use crate::analysis::model::Parsers;"),
        ("src/cli/import.rs", "use parsers::ReadError; use crate::{store, diagnose};"),
        ("src/main.rs", "use stratoscope::cli;"),
    ];
    for (path, text) in fine {
        assert_eq!(violations(path, text), Vec::<String>::new());
    }
}
