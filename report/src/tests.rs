//! The formats against one report written by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use unicode_width::UnicodeWidthStr;

use super::{json, model::Report, sample, terminal};
use diagnosis::i18n::{Lang, Value};

fn json_of(report: &Report) -> serde_json::Value {
    serde_json::from_str(&json::render(report, Lang::En).unwrap()).unwrap()
}

#[test]
fn markdown_in_english() {
    insta::assert_snapshot!("markdown_en", sample::report(false).document(Lang::En).markdown());
}

#[test]
fn markdown_in_chinese() {
    insta::assert_snapshot!("markdown_zh", sample::report(false).document(Lang::Zh).markdown());
}

/// What promises a gain stands in the brief report as it does in the whole one; of the rest it says how much it is.
#[test]
fn the_brief_report_leaves_out_nothing_in_silence() {
    let report = sample::report(false);
    for lang in [Lang::En, Lang::Zh] {
        let (brief, whole) = (report.brief(lang).markdown(), report.document(lang).markdown());
        assert!(3 * brief.lines().count() < 2 * whole.lines().count(), "{brief}");
        let headings = |page: &str| page.lines().filter(|line| line.starts_with("### ")).map(str::to_owned).collect();
        let (short, long): (Vec<String>, Vec<String>) = (headings(&brief), headings(&whole));
        assert!(!short.is_empty() && short.iter().all(|heading| long.contains(heading)), "{short:?}");
        assert!(brief.contains("--full"));
        for finding in report.captures.iter().flat_map(|capture| &capture.findings) {
            assert!(brief.contains(finding.rule), "{}", finding.rule);
        }
        for stat in report.captures.iter().flat_map(|capture| &capture.stats) {
            assert!(brief.contains(&stat.name), "{}", stat.name);
        }
    }
    insta::assert_snapshot!("brief_en", report.brief(Lang::En).markdown());
    insta::assert_snapshot!("brief_zh", report.brief(Lang::Zh).markdown());
}

#[test]
fn json_holds_what_the_page_says_of_host_idle_attention_and_copies() {
    let document = json_of(&sample::report(false));
    let class = &document["steps"]["classes"][0];
    assert_eq!(class["host_median_ns"], 9_000_000);
    let rows = document["attribution"].as_array().unwrap();
    let (main, other) = (&rows[0], &rows[1]);
    assert_eq!(main["idle"]["early_ns"], 9_000_000);
    assert_eq!(main["attended"]["keys"], 512);
    assert_eq!(main["copies"][0]["bytes"], 3 << 20);
    assert!(other["idle"].is_null() && other["attended"].is_null(), "what is not known is absent");
    assert_eq!(other["copies"], serde_json::json!([]), "copies are those of the main class");
}

/// What a program that links the crates gets, beside the documents.
#[test]
fn a_report_serialises() {
    let value = serde_json::to_value(sample::report(true)).unwrap();
    let capture = &value["captures"][0];
    assert_eq!(capture["evidence"][0], "device");
    assert_eq!(capture["findings"][0]["layer"], "runtime");
    assert_eq!(capture["ranks"][0]["anchor"]["kind"], "user_range");
}

#[test]
fn json_document() {
    insta::assert_snapshot!("json", json::render(&sample::report(true), Lang::En).unwrap());
}

/// In the Chinese report every line of prose holds Chinese: no fixed string was left untranslated.
#[test]
fn no_prose_stays_english() {
    let text = sample::report(true).document(Lang::Zh).markdown();
    let names = regex::Regex::new("(`[^`]*`)|[A-Z]{2}-[0-9]{2}").unwrap();
    for line in text.lines() {
        let words = names.replace_all(line, "");
        let latin = words.split(|c: char| !c.is_ascii_alphabetic()).filter(|w| w.len() > 3).collect::<Vec<_>>();
        let allowed = [
            "rank",
            "kernel",
            "kineto",
            "nvidia",
            "token",
            "simulated",
            "torch",
            "profiler",
            "activity",
            "cuda",
            "vendor",
            "guide",
            "host",
            "calls",
        ];
        let foreign: Vec<_> = latin.into_iter().filter(|w| !allowed.contains(w)).collect();
        assert!(foreign.is_empty(), "{foreign:?} in {line}");
    }
}

#[test]
fn buckets_and_layers_add_up_to_the_window() {
    let document = json_of(&sample::report(false));
    let entries = document["attribution"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    for entry in entries {
        let sum = |values: Vec<&serde_json::Value>| values.iter().map(|v| v.as_i64().unwrap()).sum::<i64>();
        let window = entry["window_ns"].as_i64().unwrap();
        assert_eq!(sum(entry["buckets"].as_array().unwrap().iter().map(|b| &b["ns"]).collect()), window);
        assert_eq!(sum(entry["layers"].as_object().unwrap().values().collect()), window);
        assert_eq!(entry["layers"].as_object().unwrap().len(), 4);
    }
}

/// A value reads the same in every table: each is rounded by itself, and the sum row is exact.
#[test]
fn one_value_reads_the_same_in_every_table() {
    let mut report = sample::report(false);
    let class = &mut report.captures[0].ranks[0].classes[0];
    (class.used, class.total) = (1, 349_597);
    for (row, ns) in class.buckets.iter_mut().zip([174_130, 113_711, 39_521, 21_947, 211, 77]) {
        row.ns = ns;
    }
    let text = report.document(Lang::En).markdown();
    let gemm = text.lines().find(|l| l.starts_with("| `compute.gemm`")).unwrap();
    assert!(gemm.contains("174.1 ") && gemm.contains("49.8 %"), "{gemm}");
    assert!(text.contains("349\u{202f}597 ns over 1 step") && text.contains("**349.6**"));
}

#[test]
fn a_simulated_capture_says_so_everywhere() {
    let text = sample::report(true).document(Lang::En).markdown();
    let top: String = text.lines().take(4).collect();
    assert!(top.contains("**simulated**"), "{top}");
    let title = |l: &&str| l.starts_with("**") && l.ends_with("**") && !l.contains("cannot launch");
    let titles: Vec<&str> = text.lines().filter(title).collect();
    assert!(titles.len() >= 8 && titles.iter().all(|t| t.ends_with(" — simulated**")), "{titles:?}");
    let document = json_of(&sample::report(true));
    assert_eq!(document["simulated"], true);
    assert_eq!(document["captures"][0]["simulated"], true);
    assert!(document["attribution"].as_array().unwrap().iter().all(|a| a["simulated"] == true));
    assert!(!sample::report(false).document(Lang::En).markdown().contains("simulated"));
}

/// A report on nothing still has every section, and each says why it is empty.
#[test]
fn empty_sections_say_why() {
    let mut report = sample::report(false);
    let capture = &mut report.captures[0];
    capture.ranks.clear();
    capture.findings.clear();
    capture.abstained.clear();
    capture.ledger.clear();
    capture.stats.clear();
    capture.facts.clear();
    capture.devices.clear();
    capture.mapping = Default::default();
    for lang in [Lang::En, Lang::Zh] {
        let text = report.document(lang).markdown();
        let lines: Vec<&str> = text.lines().filter(|l| !l.is_empty()).collect();
        for pair in lines.windows(2) {
            assert!(!(pair[0].starts_with("##") && pair[1].starts_with("##")), "empty: {pair:?}");
        }
        assert!(!lines.last().unwrap().starts_with('#'));
    }
    let document = json_of(&report);
    assert!(document["steps"].is_null() && document["attribution"].as_array().unwrap().is_empty());
    assert!(json_of(&Report::default())["verdict"].is_null());
}

#[test]
fn ranks_of_which_only_sums_are_there_are_told() {
    let mut report = sample::report(false);
    report.captures[0].ranks.clear();
    let sums = report.captures[0].job_sums.ranks.len();
    let text = report.document(Lang::En).markdown();
    assert!(sums > 1 && text.contains(&format!("sums of {sums} (rank ")), "{sums}");
    assert!(!text.contains("none with device work"));
    report.captures[0].job_sums.ranks.clear();
    assert!(report.document(Lang::En).markdown().contains("none with device work"));
}

/// What a rank of sums computed stood as operator 0.0 in the table of ranks, below the sums that said how much it was.
#[test]
fn a_rank_of_sums_has_what_its_sums_say_and_no_zero() {
    let mut report = sample::report(false);
    let capture = &mut report.captures[0];
    let mut other = capture.ranks[0].clone();
    (other.rank, other.only_collectives) = (1, true);
    other.classes.truncate(1);
    capture.ranks.push(other);
    let row = |report: &Report| {
        let text = report.document(Lang::En).markdown();
        let (_, table) = text.split_once("**Other classes and ranks").unwrap();
        let row = table.lines().find(|line| line.starts_with("|    1 |")).unwrap();
        row.split('|').skip(4).map(|cell| cell.trim().replace('\u{202f}', " ")).collect::<Vec<_>>()
    };
    assert_eq!(row(&report)[..5], ["8 000.0", "–", "1 000.0", "1 000.0", "10 000.0"], "8, 1 and 1 ms per step");
    assert_eq!(json_of(&report)["attribution"][2]["only_collectives"], true);
    report.captures[0].job_sums.ranks.clear();
    assert_eq!(row(&report)[..2], ["–", "–"], "nobody knows");
    report.captures[0].ranks.remove(0);
    let text = report.document(Lang::En).markdown();
    let operator = text.lines().find(|line| line.starts_with("| operator ")).unwrap();
    assert_eq!(operator.matches(" – |").count(), 2, "{operator}");
    assert!(text.contains("Of rank 1 only collectives were kept") && !text.contains("steps that count ("), "{text}");
}

/// The page gave the rate of copies that only their calls tell of, and the document for scripts did not know of them.
#[test]
fn copies_that_were_not_traced_have_their_rate_in_json_too() {
    let mut report = sample::report(false);
    assert!(json_of(&report)["attribution"][0].get("untraced_copies").is_none());
    let rank = &mut report.captures[0].ranks[0];
    rank.untraced = vec![crate::model::Copies { name: "copy.h2d", count: 2, bytes: 8 << 20, time: 2_097_152 }];
    let main = rank.main.unwrap();
    let said = json_of(&report)["attribution"][main]["untraced_copies"].clone();
    let expected = serde_json::json!([{
        "bytes": 8 << 20, "bytes_per_second": 4e9, "count": 2, "name": "copy.h2d", "time_ns": 2_097_152
    }]);
    assert_eq!(said, expected);
    assert!(report.document(Lang::En).markdown().replace('\u{202f}', " ").contains("4.0 GB/s"));
}

#[test]
fn the_gravest_capture_leads() {
    let mut report = sample::report(false);
    let mut second = sample::report(true).captures.remove(0);
    second.id = 2;
    report.captures[0].findings.clear();
    report.captures.push(second);
    assert_eq!(report.leading().unwrap().id, 2);
    let text = report.document(Lang::En).markdown();
    assert!(text.starts_with("# Diagnosis of several captures\n") && text.matches("\n# Diagnosis of ").count() == 2);
    report.captures[1].findings.clear();
    assert_eq!(report.leading().unwrap().id, 1);
}

/// Everything a capture can put into a report, at its worst.
#[test]
fn hostile_text_stays_text() {
    let evil = format!("a|b`c\u{1b}]0;x\u{7}\u{1b}[2J\u{202e}\n# h <script>*x*{}", "y".repeat(1 << 20));
    let mut report = sample::report(false);
    let capture = &mut report.captures[0];
    capture.source.clone_from(&evil);
    capture.format.clone_from(&evil);
    capture.devices[0].name = Some(evil.clone());
    capture.devices[0].vendor = Some(evil.clone());
    capture.facts[0].0.clone_from(&evil);
    capture.facts[0].1.clone_from(&evil);
    capture.mapping.unmapped[0].0.clone_from(&evil);
    capture.ledger[0].category.clone_from(&evil);
    capture.ledger[0].note.clone_from(&evil);
    capture.stats[0].name.clone_from(&evil);
    capture.stats[0].example = Some(evil.clone());
    capture.findings[0].claim.text = diagnosis::i18n::Text::new("{x}", "{x}");
    capture.findings[0].claim.args = vec![("x", Value::Raw(evil.clone()))];
    capture.findings[0].class.clone_from(&evil);
    let rank = &mut capture.ranks[0];
    rank.anchor.name.clone_from(&evil);
    rank.classes[0].key.clone_from(&evil);
    rank.classes[0].buckets[3].name = format!("rt.host.{evil}");
    rank.kernels[0].name.clone_from(&evil);

    let acts =
        |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}');
    let text = report.document(Lang::En).markdown();
    assert!(!text.contains(acts) && text.len() < 200_000, "{}", text.len());
    assert_eq!(text.lines().filter(|l| l.starts_with("# ")).count(), 1, "a name made a heading");
    // Outside code spans no tag is left open to HTML.
    let outside = regex::Regex::new("``+[^\n]*?``+|`[^`\n]*`").unwrap().replace_all(&text, "").into_owned();
    assert!(!outside.replace("\\<", "").contains("<script"), "{outside}");
    // A table keeps its columns whatever stands in it.
    for table in text.split("\n\n").filter(|p| p.starts_with("| ")) {
        let columns = |l: &str| l.replace("\\|", "").matches('|').count();
        let first = columns(table.lines().next().unwrap());
        assert!(table.lines().all(|l| columns(l) == first && l.width() < 2000), "{table}");
    }
    let shown = report.document(Lang::En).terminal();
    assert_eq!(terminal::uncoloured(&shown), text);
    let raw = json::render(&report, Lang::En).unwrap();
    assert!(!raw.contains(acts) && raw.len() < 200_000);
    assert!(!json_of(&report).to_string().contains("\\u001b"));
}
