//! No two modules of a room stand on each other: who reads a module can read those it imports first. A module is a file or
//! folder of the room; what its own files import from each other is its own affair.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Imports between the modules of a room; `mod` is what the room's own file defines.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Words and marks of code, without comments, strings and what only tests see.
fn tokens(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
    let mut tokens = Vec::new();
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '/' if chars.peek() == Some(&'/') => while chars.next().is_some_and(|c| c != '\n') {},
            '"' => {
                while let Some(c) = chars.next() {
                    match c {
                        '\\' => drop(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            ':' if chars.peek() == Some(&':') => {
                chars.next();
                tokens.push("::".to_owned());
            }
            c if c.is_alphanumeric() || c == '_' => {
                let mut word = c.to_string();
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    word.push(c);
                }
                tokens.push(word);
            }
            c if c.is_whitespace() => {}
            c => tokens.push(c.to_string()),
        }
    }
    tokens
}

/// Every path that begins at `at`, groups spread out; and where they end.
fn spread(tokens: &[String], at: usize) -> (Vec<Vec<String>>, usize) {
    let word = |at: usize| tokens.get(at).map(String::as_str);
    let mut path = Vec::new();
    let mut at = at;
    loop {
        if word(at) == Some("{") {
            let mut paths = Vec::new();
            at += 1;
            while !matches!(word(at), None | Some("}")) {
                if word(at) == Some(",") {
                    at += 1;
                    continue;
                }
                let (inner, end) = spread(tokens, at);
                paths.extend(inner.into_iter().map(|rest| path.iter().cloned().chain(rest).collect::<Vec<_>>()));
                at = end.max(at + 1);
            }
            return (paths, at + 1);
        }
        match word(at) {
            Some(name) if name.chars().all(|c| c.is_alphanumeric() || c == '_') => path.push(name.to_owned()),
            Some("*") => {}
            _ => return (vec![path], at),
        }
        if word(at + 1) != Some("::") {
            let alias = if word(at + 1) == Some("as") { 2 } else { 0 };
            return (vec![path], at + 1 + alias);
        }
        at += 2;
    }
}

/// Paths of a text that begin with `crate`, `super` or `self`, and those that it uses or re-exports from where it stands.
fn paths(text: &str) -> Vec<Vec<String>> {
    let tokens = tokens(text);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let starts = matches!(tokens[at].as_str(), "crate" | "super" | "self" | "use")
            && tokens[..at].last().is_none_or(|t| t != "::");
        let leads = tokens.get(at + 1).is_some_and(|next| next == "::" || tokens[at] == "use");
        if starts && leads {
            let (paths, end) = spread(&tokens, if tokens[at] == "use" { at + 1 } else { at });
            found.extend(paths);
            at = end.max(at + 1);
        } else {
            at += 1;
        }
    }
    found
}

/// Names that the room's own file makes visible, and the module that they come from.
fn exports(text: &str, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let own = |path: Vec<String>| -> Option<(String, String)> {
        let path: Vec<String> = path.into_iter().skip_while(|name| name == "self").collect();
        let (first, last) = (path.first()?.clone(), path.last()?.clone());
        (path.len() > 1 && modules.contains(&first)).then_some((last, first))
    };
    paths(text).into_iter().filter_map(own).collect()
}

/// What a file of a module imports of its room: `inside` is the way from the room to the file's module.
fn named(room: &str, inside: &[String], text: &str) -> Vec<String> {
    let resolve = |path: Vec<String>| -> Option<String> {
        let mut path = path.into_iter().peekable();
        let mut place: Vec<String> = inside.to_vec();
        match path.peek()?.as_str() {
            "crate" => {
                path.next();
                if path.next()? != room {
                    return None;
                }
                place.clear();
            }
            "super" => {
                while path.next_if(|name| name == "super").is_some() {
                    place.pop()?;
                }
            }
            _ => return None,
        }
        if place.is_empty() { path.next() } else { None }
    };
    paths(text).into_iter().filter_map(resolve).collect()
}

/// Files of a room that are no tests, each with the way from the room to its module.
fn files(folder: &Path, inside: &[String], found: &mut Vec<(Vec<String>, String)>) {
    const TESTS: [&str; 5] = ["tests", "testing", "script", "job_script", "ranks_tests"];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let below = |name: String| inside.iter().cloned().chain([name]).collect::<Vec<String>>();
        if TESTS.contains(&name.as_str()) || name.ends_with("_tests") {
            continue;
        }
        if path.is_dir() {
            files(&path, &below(name), found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let module = if name == "mod" { inside.to_vec() } else { below(name) };
            found.push((module, fs::read_to_string(&path).unwrap()));
        }
    }
}

fn room(name: &str) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name), &[], &mut found);
    assert!(found.len() > 20, "{name} was not found");
    found
}

fn imports(name: &str, files: &[(Vec<String>, String)]) -> Imports {
    let modules: BTreeSet<String> = files.iter().filter_map(|(module, _)| module.first().cloned()).collect();
    let own = files.iter().find(|(module, _)| module.is_empty()).map_or("", |(_, text)| text);
    let exports = exports(own, &modules);
    // The room's own file declares every module, so whoever imports what it defines itself closes a circle.
    let mut imports = Imports::from([("mod".to_owned(), modules.clone())]);
    for (module, text) in files {
        let from = module.first().cloned().unwrap_or_else(|| "mod".to_owned());
        for name in named(name, module, text) {
            let to = match exports.get(&name) {
                _ if modules.contains(&name) => name,
                Some(home) => home.clone(),
                None => "mod".to_owned(),
            };
            if to != from {
                imports.entry(from.clone()).or_default().insert(to);
            }
        }
    }
    imports
}

/// Modules that stand on each other, circle by circle: the strongly connected components of more than one.
fn circles(imports: &Imports) -> Vec<BTreeSet<String>> {
    let reached = |from: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(next) = open.pop() {
            for to in imports.get(next).into_iter().flatten() {
                if seen.insert(to.clone()) {
                    open.push(to);
                }
            }
        }
        seen
    };
    let reach: BTreeMap<&String, BTreeSet<String>> = imports.keys().map(|from| (from, reached(from))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (from, to) in &reach {
        let circle: BTreeSet<String> =
            to.iter().filter(|other| reach.get(other).is_some_and(|back| back.contains(*from))).cloned().collect();
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

#[test]
fn no_modules_of_a_room_stand_on_each_other() {
    for name in ["analysis", "diagnose"] {
        let imports = imports(name, &room(name));
        assert!(imports.values().map(BTreeSet::len).sum::<usize>() > 40, "{name}: {imports:?}");
        assert_eq!(circles(&imports), Vec::<BTreeSet<String>>::new(), "{name}");
    }
}

#[test]
fn who_judges_knows_no_rule() {
    let knowing = |imports: &Imports| -> Vec<String> {
        let knows = |(from, to): &(&String, &BTreeSet<String>)| *from != "mod" && to.contains("rules");
        imports.iter().filter(knows).map(|(from, _)| from.clone()).collect()
    };
    let mut files = room("diagnose");
    let imports_of = |files: &[(Vec<String>, String)]| imports("diagnose", files);
    let imports = imports_of(&files);
    assert!(knowing(&imports).is_empty(), "{:?} import rules; they are handed a catalogue", knowing(&imports));
    let planted = "fn f() { crate::diagnose::rules::find(id); }".to_owned();
    files.push((vec!["verdict".to_owned(), "gates".to_owned()], planted));
    assert_eq!(knowing(&imports_of(&files)), ["verdict"]);
    for below in ["signals", "estimate", "relations", "catalogue"] {
        let to = imports.get(below).cloned().unwrap_or_default();
        assert!(to.is_disjoint(&["ranking", "readiness", "verdict"].map(str::to_owned).into()), "{below}: {to:?}");
    }
}

#[test]
fn a_planted_circle_is_caught() {
    for (name, module, text, circle) in [
        ("diagnose", "gain", "fn f(_: &super::Diagnosis) {}", ["gain", "mod"]),
        ("diagnose", "estimate", "use super::rules::gate::LEAST_STEPS;", ["estimate", "rules"]),
        ("analysis", "timeline", "use super::{model::{Options, Step}, median};", ["timeline", "model"]),
        ("analysis", "host", "use crate::{analysis::{Rank, median}, platform::Packs};", ["host", "model"]),
        ("analysis", "jitter", "fn f() -> super::Analysis { super::pipeline::analyze() }", ["jitter", "pipeline"]),
    ] {
        let mut files = room(name);
        files.push((vec![module.to_owned()], text.to_owned()));
        let imports = imports(name, &files);
        let caught = circles(&imports).iter().any(|found| circle.iter().all(|module| found.contains(*module)));
        assert!(caught, "{text}: {:?}", circles(&imports));
    }
}

#[test]
fn paths_are_read_as_they_are_written() {
    let text = "use super::{a::{B, c}, d}; // use super::e\nlet s = \"super::f\"; fn g() { super::super::h::i() }";
    let read: Vec<String> = paths(text).into_iter().map(|path| path.join("::")).collect();
    assert_eq!(read, ["super::a::B", "super::a::c", "super::d", "super::super::h::i"]);
}
