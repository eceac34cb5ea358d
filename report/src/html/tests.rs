//! The page of the report that was written by hand.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::sample;

/// What stands on the page, without its style and script.
fn main(page: &str) -> &str {
    page.split("<main>").nth(1).unwrap().split("</main>").next().unwrap()
}

#[test]
fn page_in_english() {
    insta::assert_snapshot!("page_en", main(&page(&sample::report(true), &[], Lang::En)));
}

#[test]
fn page_in_chinese() {
    insta::assert_snapshot!("page_zh", main(&page(&sample::report(false), &[], Lang::Zh)));
}

/// The page says what the markdown says: every heading but that of the capture, whose place the answer has, and every row of every
/// table. The costs and their evidence stand before all that.
#[test]
fn the_page_holds_the_markdown() {
    let report = sample::report(false);
    let page = page(&report, &[], Lang::En);
    let text = report.document(Lang::En).markdown();
    // The heading of the costs is one more.
    assert_eq!(page.matches("<h2").count(), text.lines().filter(|line| line.starts_with("## ")).count() + 1);
    assert!(page.find("<ol class=\"costs\">") < page.find("<details>"), "{page}");
    assert_eq!(
        page.matches("<tr").count(),
        text.lines().filter(|line| line.starts_with("| ") && !line.contains("---")).count()
    );
}

/// The policy names what the page holds, to the byte: a browser compares them so.
#[test]
fn the_policy_names_the_style_and_the_script() {
    let page = page(&sample::report(false), &[], Lang::En);
    for (tag, directive) in [("style", "style-src"), ("script", "script-src")] {
        let inside = page.split(&format!("<{tag}>")).nth(1).unwrap().split(&format!("</{tag}>")).next().unwrap();
        assert!(page.contains(&format!("{directive} '{}'", digest(inside))), "{tag}");
    }
}

#[test]
fn hostile_text_stays_text() {
    let evil = format!("a|b`c\u{1b}[2J\u{202e}</code></script><script>x()</script>\n# h {}", "y".repeat(1 << 20));
    let mut report = sample::report(false);
    let capture = &mut report.captures[0];
    capture.source.clone_from(&evil);
    capture.facts[0].0.clone_from(&evil);
    capture.ledger[0].note.clone_from(&evil);
    capture.stats[0].example = Some(evil.clone());
    capture.ranks[0].classes[0].key.clone_from(&evil);
    capture.ranks[0].kernels[0].name = evil;
    let page = page(&report, &[], Lang::En);
    assert_eq!((page.matches("<script").count(), page.matches("<h1").count()), (1, 2));
    assert!(!page.contains(['\u{1b}', '\u{202e}']) && page.len() < 200_000, "{}", page.len());
}

#[test]
fn a_page_without_anything_is_a_page() {
    let page = page(&Report::default(), &[], Lang::Zh);
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("zh-CN"));
}
