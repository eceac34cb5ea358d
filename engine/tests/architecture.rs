//! No two modules of the engine need each other: what devices and runs have in common lies below both. This reads the source:
//! every name that a module takes from the root of the crate, by the module that it comes from.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// Which modules each module takes something from.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Code without comments and without what only tests compile, which may look at everything.
fn code(text: &str) -> String {
    let own = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or("");
    own.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join(" ")
}

fn word(text: &str) -> &str {
    let text = text.trim_start();
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("")
}

/// The members of a group that its opening brace has begun, as they stand.
fn members(group: &str) -> Vec<&str> {
    let (mut found, mut depth, mut from) = (Vec::new(), 0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                found.push(group[from..at].trim());
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(group[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    found.retain(|member| !member.is_empty());
    found
}

/// First names behind the root of the crate: behind `crate::`, and behind as many `super::` as a file lies deep.
fn from_root(code: &str, depth: usize) -> Vec<String> {
    let mut found = Vec::new();
    for root in ["crate::".to_owned(), "super::".repeat(depth)] {
        for (at, _) in code.match_indices(&root) {
            let is_whole = !code[..at].ends_with([':', '_']) && !code[..at].ends_with(char::is_alphanumeric);
            let rest = &code[at + root.len()..];
            match rest.strip_prefix('{') {
                _ if !is_whole => {}
                Some(group) => found.extend(members(group).into_iter().map(|member| word(member).to_owned())),
                None => found.push(word(rest).to_owned()),
            }
        }
    }
    found
}

/// Names that the root gives on, each with the module that has it.
fn given_on(lib: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let code = code(lib);
    for statement in code.split("pub use ").skip(1) {
        let Some((module, names)) = statement.split_once("::") else { continue };
        let names = names.split(';').next().unwrap_or("");
        let names = names.strip_prefix('{').map_or_else(|| vec![word(names)], members);
        found.extend(names.into_iter().map(|name| (name.to_owned(), module.trim().to_owned())));
    }
    found
}

/// What each module of these files, named from the source's root, takes from others.
fn imports(files: &[(String, String)]) -> Imports {
    let lib = files.iter().find(|(path, _)| path == "lib.rs").map_or("", |(_, text)| text);
    let given_on = given_on(lib);
    let of = |path: &str| path.split(['/', '.']).next().unwrap_or("").to_owned();
    let modules: BTreeSet<String> = files.iter().map(|(path, _)| of(path)).filter(|name| name != "lib").collect();
    let mut found: Imports = modules.iter().map(|module| (module.clone(), BTreeSet::new())).collect();
    for (path, text) in files.iter().filter(|(path, _)| path != "lib.rs") {
        for name in from_root(&code(text), path.split('/').count()) {
            let from = given_on.get(&name).unwrap_or(&name);
            if modules.contains(from) && *from != of(path) {
                found.entry(of(path)).or_default().insert(from.clone());
            }
        }
    }
    found
}

/// What is reached from a module.
fn reached<'i>(imports: &'i Imports, module: &'i str, seen: &mut BTreeSet<&'i str>) {
    for next in imports.get(module).into_iter().flatten() {
        if seen.insert(next) {
            reached(imports, next, seen);
        }
    }
}

/// Modules that reach each other, each circle once.
fn circles(imports: &Imports) -> BTreeSet<Vec<&str>> {
    let reach = |module| {
        let mut seen = BTreeSet::new();
        reached(imports, module, &mut seen);
        seen
    };
    let all: BTreeMap<&str, BTreeSet<&str>> = imports.keys().map(|module| (module.as_str(), reach(module))).collect();
    let mut found = BTreeSet::new();
    for (module, reach) in &all {
        let circle: Vec<&str> = reach.iter().copied().filter(|other| all[other].contains(module)).collect();
        if !circle.is_empty() {
            found.insert(circle);
        }
    }
    found
}

fn sources(root: &Path, directory: &Path, found: &mut Vec<(String, String)>) {
    let mut entries: Vec<PathBuf> = directory.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(root, &path, found);
        } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            found.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
}

fn engine() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &root, &mut files);
    files
}

#[test]
fn no_module_needs_one_that_needs_it() {
    let imports = imports(&engine());
    // That the reading sees what there is.
    for (module, from) in [
        ("run", "target"),
        ("target", "cuda"),
        ("run", "ascend"),
        ("cuda", "backend"),
        ("backend", "options"),
        ("cpu", "comm"),
    ] {
        assert!(imports[module].contains(from), "{module} takes nothing from {from}: {:?}", imports[module]);
    }
    assert!(circles(&imports).is_empty(), "modules that need each other: {:?}", circles(&imports));
    let devices = ["cpu", "cuda", "opencl", "ascend", "target", "run", "inject"];
    for floor in ["backend", "options", "comm", "faults", "hook", "record", "program"] {
        let mut below = BTreeSet::new();
        reached(&imports, floor, &mut below);
        let above: Vec<&str> = devices.into_iter().filter(|device| below.contains(device)).collect();
        assert!(above.is_empty(), "{floor} lies below {above:?} and needs them");
    }
}

#[test]
fn a_planted_circle_is_caught_whatever_way_it_is_written() {
    for planted in [
        "use crate::run::Mode;\n",
        "use crate::{\n    Error,\n    run::{Engine, Mode},\n};\n",
        "fn f() -> crate::run::Mode { todo!() }\n",
        "use super::run::Mode;\n",
        "pub use crate::RunOptions;\n",
    ] {
        let mut files = engine();
        let lib = files.iter_mut().find(|(path, _)| path == "lib.rs").unwrap();
        lib.1.push_str("pub use run::{RunOptions, Engine};\n");
        let options = files.iter_mut().find(|(path, _)| path == "options.rs").unwrap();
        options.1.insert_str(0, planted);
        let imports = imports(&files);
        let found = circles(&imports);
        let circle = found.iter().next().unwrap_or_else(|| panic!("not seen: {planted}"));
        assert!(circle.contains(&"options") && circle.contains(&"run") && circle.contains(&"backend"), "{circle:?}");
        assert_eq!(found.len(), 1, "one circle is told once: {found:?}");
    }
    for harmless in ["// use crate::run::Mode;\n", "use crate::Error;\n", "use std::run::Mode;\n"] {
        let mut files = engine();
        files.iter_mut().find(|(path, _)| path == "options.rs").unwrap().1.insert_str(0, harmless);
        assert!(circles(&imports(&files)).is_empty(), "{harmless}");
    }
    let mut files = engine();
    files.iter_mut().find(|(path, _)| path == "cuda/queue.rs").unwrap().1.push_str("use super::super::run::Engine;\n");
    assert!(circles(&imports(&files)).iter().any(|circle| circle.contains(&"cuda")), "two floors up");
}
