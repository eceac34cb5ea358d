//! The comparison on a terminal: one screen, no Markdown, the devices by name; pipes get the Markdown as before.

use std::path::Path;

use diagnosis::i18n::Lang;
use report::{
    diff::DiffReport,
    screen::{self, Look},
};
use session::{Declaration, Options, Pair, Reading, Terms};
use simulator::{Config, Fault, FaultKind, simulate};
use unicode_width::UnicodeWidthStr;

use crate::common::{self, pair::steady};

fn compare(a: &Path, b: &Path, same: &[&str]) -> DiffReport {
    let mut declared = Declaration::default();
    same.iter().for_each(|key| declared.same(key).unwrap());
    let terms = Terms { declared, ..Terms::default() };
    let inputs = [vec![a.to_owned()], vec![b.to_owned()]];
    let pair = Pair::open(&inputs, &Reading::default(), &Options::default(), &terms).unwrap();
    pair.compare(&terms).unwrap()
}

fn shown(report: &DiffReport, lang: Lang, width: usize) -> String {
    screen::diff::render(report, ["a.json.gz", "b c.json.gz"], lang, Look { width, colour: false, ascii: false })
}

/// Everything that holds of any screen.
fn fits(report: &DiffReport) {
    for lang in [Lang::En, Lang::Zh] {
        for width in (40..=80).chain([100, 120, 200]) {
            let screen = shown(report, lang, width);
            assert!(screen.lines().count() <= screen::ROWS, "{screen}");
            assert!(screen.lines().all(|line| line.width() <= width), "{width}:\n{screen}");
            assert!(!screen.contains('`') && !screen.contains("**") && !screen.contains("| "), "{screen}");
        }
    }
}

#[test]
fn a_pair_that_is_refused_says_how_to_go_on() {
    let [a, b] = steady();
    let report = compare(&a, &b, &[]);
    fits(&report);
    let screen = shown(&report, Lang::En, 120);
    assert!(report.difference.is_none() && screen.contains("Not comparable"), "{screen}");
    let open: Vec<&str> = report.contract.open(diagnosis::compare::contract::MAIN).iter().map(|f| f.key).collect();
    assert!(!open.is_empty(), "{screen}");
    // The command is whole once the lines that a shell takes for one are one.
    let whole = shown(&report, Lang::En, 200);
    let asked = format!("strato diff a.json.gz 'b c.json.gz' --same {}", open.join(","));
    assert!(whole.replace(" \\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ").contains(&asked), "{whole}");
    // What each takes for itself is there, and nothing is set beside the other.
    assert!(screen.matches("step takes").count() == 2 && !screen.contains("slower"), "{screen}");
}

#[test]
fn a_pair_that_may_be_compared_has_one_answer_and_bars_that_lead_from_one_to_the_other() {
    let [a, b] = steady();
    let open = compare(&a, &b, &[]).contract.open(diagnosis::compare::contract::MAIN);
    let open: Vec<&str> = open.iter().map(|field| field.key).collect();
    let report = compare(&a, &b, &open);
    assert!(report.difference.is_some(), "{:?}", report.contract.verdict());
    fits(&report);
    let screen = shown(&report, Lang::En, 120);
    assert!(screen.contains("slower") || screen.contains("faster") || screen.contains("within 1 %"), "{screen}");
    assert!(screen.contains("Caveats: ") && screen.contains("per step, "), "{screen}");
    // The numbers of the rows add up to those of the last one, but for rounding.
    let number = |cell: &str| cell.replace('−', "-").replace('+', "").parse::<f64>().ok();
    let rows = screen.lines().skip_while(|line| !line.starts_with("per step, ")).skip(2);
    let rows: Vec<&str> = rows.take_while(|line| !line.is_empty()).collect();
    let differs = |line: &&str| line.split_whitespace().filter(|c| c.starts_with(['+', '−'])).find_map(number);
    let (last, first) = rows.split_last().unwrap();
    let sum: f64 = first.iter().filter_map(differs).sum();
    let whole = differs(last).unwrap();
    assert!((sum - whole).abs() <= 0.01 * whole.abs() + 0.06 * rows.len() as f64, "{sum} {whole}\n{screen}");
}

#[test]
fn a_pipe_gets_markdown_and_a_file_gets_it_too() {
    let [a, b] = steady();
    let directory = tempfile::tempdir().unwrap();
    let [a, b] = [&a, &b].map(|path| path.to_str().unwrap());
    let run = |more: &[&str]| {
        let output = common::strato(&[&["diff", a, b, "--lang", "en"], more].concat(), directory.path());
        String::from_utf8(output.stdout).unwrap()
    };
    let piped = run(&[]);
    assert!(piped.starts_with("# B beside A"), "{piped}");
    assert_eq!(piped, run(&["--format", "md"]));
    assert_eq!(run(&["-o", "out.md"]), "");
    assert_eq!(std::fs::read_to_string(directory.path().join("out.md")).unwrap(), piped);
    assert!(run(&["--format", "term"]).lines().all(|line| !line.starts_with('#')));
}

#[test]
fn what_is_said_on_the_command_line_is_said_of_the_pair() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config {
        steps: 8,
        layers: 2,
        ..Config::draw_with(3, &[Fault { kind: FaultKind::GraphOff, magnitude_permille: 1000 }])
    };
    let [a, b] = ["a.json.gz", "b.json.gz"].map(|name| directory.path().join(name));
    simulate(&config).write_kineto(&a).unwrap();
    simulate(&config.twin()).write_kineto(&b).unwrap();
    let run = |more: &[&str]| {
        common::strato(&[&["diff", "a.json.gz", "b.json.gz", "--format", "toml"], more].concat(), directory.path())
    };
    let text = |more: &[&str]| String::from_utf8(run(more).stdout).unwrap();
    assert!(text(&["--declare", "model.name=m7"]).contains("\"model.name\" = \"m7\""));
    assert!(text(&["--same", "model.name"]).contains("\"model.name\" = \"the same on both sides\""));
    let wrong = run(&["--same", "model.nam"]);
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert!(!wrong.status.success() && said.contains("'model.nam' is no field"), "{said}");
}
