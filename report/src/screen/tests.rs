//! The screen of the report written by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use unicode_width::UnicodeWidthStr;

use super::*;
use crate::sample;

fn shown(lang: Lang, width: usize) -> String {
    render(&sample::report(false), lang, Look { width, colour: false, ascii: false })
}

#[test]
fn one_screen_in_english() {
    insta::assert_snapshot!("screen_80", shown(Lang::En, 80));
    insta::assert_snapshot!("screen_120", shown(Lang::En, 120));
}

#[test]
fn one_screen_in_chinese() {
    insta::assert_snapshot!("screen_100_zh", shown(Lang::Zh, 100));
}

#[test]
fn it_fits_every_terminal() {
    for lang in [Lang::En, Lang::Zh] {
        for width in (40..80).chain([80, 100, 120, 160, 200]) {
            let screen = shown(lang, width);
            assert!(screen.lines().count() <= ROWS, "{screen}");
            assert!(screen.lines().all(|line| line.width() <= width), "{width}:\n{screen}");
            assert!(!screen.contains('`') && !screen.contains("**") && !screen.contains("| "), "{screen}");
        }
    }
}

#[test]
fn colour_adds_nothing_and_ascii_is_ascii() {
    let report = sample::report(false);
    let coloured = render(&report, Lang::En, Look { width: 100, colour: true, ascii: false });
    let codes = regex::Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    assert_eq!(codes.replace_all(&coloured, ""), shown(Lang::En, 100));
    let plain = render(&report, Lang::En, Look { width: 100, colour: false, ascii: true });
    assert!(plain.is_ascii(), "{plain}");
}
