//! Two captures in the terminal interface as people see them: whole screens of a pair that may be compared, of one with caveats
//! and of one that the contract refuses, and what keys do to them.

use crate::common;
use crate::common::pair::{Known, compared, pair, steady};
use diagnosis::{compare::contract::Verdict, i18n::Lang};
use model::Trace;
use proptest::prelude::*;
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer, style::Color};
use stratoscope::tui::{
    App, Keymap, Settings, action::Action, app::Request, key::Key, text, theme::Depth, view::Point,
};

const PANELS: [&str; 6] = ["ladders", "waterfall", "layer", "timelines", "contract", "readiness"];

fn settings() -> Settings {
    Settings {
        lang: Lang::En,
        theme: "dark".into(),
        depth: Depth::True,
        ascii: false,
        mouse: true,
        keymap: Keymap::load(None).unwrap(),
        start: Default::default(),
    }
}

fn app(known: Known, lang: Lang) -> App {
    App::new(compared(known), Settings { lang, ..settings() })
}

fn press(app: &mut App, keys: &str) -> Option<Request> {
    let press = |name| app.key(Key::parse(name).unwrap_or_else(|| panic!("no key '{name}'")));
    keys.split_whitespace().map(press).last().flatten()
}

fn buffer(app: &mut App, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| app.draw(frame.buffer_mut())).unwrap();
    terminal.backend().buffer().clone()
}

fn screen(app: &mut App, width: u16, height: u16) -> String {
    let buf = buffer(app, width, height);
    text::rows(&buf, buf.area).join("\n")
}

#[test]
fn every_panel_of_a_comparable_pair_at_the_sizes_people_have() {
    assert_eq!(compared(Known::All).beside().unwrap().report.contract.verdict(), Verdict::Comparable);
    for (lang, prefix) in [(Lang::En, ""), (Lang::Zh, "zh_")] {
        let mut app = app(Known::All, lang);
        for panel in PANELS {
            for (width, height) in [(80, 24), (120, 40), (200, 60)] {
                let shown = screen(&mut app, width, height);
                insta::assert_snapshot!(format!("comparable_{panel}_{prefix}{width}x{height}"), shown);
            }
            press(&mut app, "p");
        }
    }
}

#[test]
fn every_panel_of_a_pair_with_caveats_in_both_languages() {
    assert_eq!(compared(Known::Hard).beside().unwrap().report.contract.verdict(), Verdict::Caveats);
    for (lang, code) in [(Lang::En, "en"), (Lang::Zh, "zh")] {
        let mut app = app(Known::Hard, lang);
        for panel in PANELS {
            insta::assert_snapshot!(format!("caveats_{panel}_{code}"), screen(&mut app, 100, 36));
            press(&mut app, "p");
        }
    }
}

#[test]
fn a_refused_pair_is_nowhere_set_beside_each_other() {
    for (lang, code) in [(Lang::En, "en"), (Lang::Zh, "zh")] {
        let mut app = app(Known::Nothing, lang);
        let first = screen(&mut app, 100, 60);
        for panel in ["pictures", "contract", "readiness"] {
            insta::assert_snapshot!(format!("refused_{panel}_{code}"), screen(&mut app, 100, 60));
            // All of it, also what has to be scrolled to; the last line holds the keys.
            let tall = screen(&mut app, 100, 400);
            assert!(!tall.contains('%') && !tall.contains('×'), "{tall}");
            press(&mut app, "p");
        }
        assert_eq!(screen(&mut app, 100, 60), first, "there are no other panels");
    }
    let report = compared(Known::Nothing);
    assert!(report.beside().unwrap().report.difference.is_none());
}

#[test]
fn without_colour_and_beyond_ascii() {
    for known in [Known::Hard, Known::Nothing] {
        let mut mono = App::new(compared(known), Settings { depth: Depth::Mono, ..settings() });
        let mut ascii = App::new(compared(known), Settings { ascii: true, ..settings() });
        for panel in PANELS {
            let buf = buffer(&mut mono, 100, 30);
            assert!(buf.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset), "{panel}");
            let shown = screen(&mut ascii, 120, 40);
            let beyond: Vec<char> = shown.chars().filter(|c| !c.is_ascii()).collect();
            assert!(beyond.is_empty(), "{panel}: {beyond:?}");
            if known == Known::Hard {
                insta::assert_snapshot!(format!("mono_{panel}"), screen(&mut mono, 100, 30));
                insta::assert_snapshot!(format!("ascii_{panel}"), shown);
            }
            press(&mut mono, "p");
            press(&mut ascii, "p");
        }
    }
}

#[test]
fn the_difference_stays_where_not_everything_fits() {
    let mut app = app(Known::Hard, Lang::En);
    for panel in ["waterfall", "layer"] {
        press(&mut app, "p");
        assert!(screen(&mut app, 60, 20).contains("B − A"), "{panel}");
    }
}

#[test]
fn no_size_is_too_small_to_survive() {
    for known in [Known::Hard, Known::Nothing] {
        let mut app = app(known, Lang::En);
        for _ in PANELS {
            for (width, height) in
                [(0, 0), (1, 1), (0, 9), (9, 0), (20, 3), (21, 4), (20, 5), (40, 6), (300, 3), (20, 90)]
            {
                buffer(&mut app, width, height);
            }
            press(&mut app, "p");
        }
    }
}

#[test]
fn the_sums_of_the_waterfall_are_those_of_the_report() {
    let mut app = app(Known::Hard, Lang::En);
    press(&mut app, "p");
    let shown = screen(&mut app, 120, 40);
    let opened = compared(Known::Hard);
    let waterfall = &opened.beside().unwrap().report.difference.as_ref().unwrap().waterfall;
    let exact = report::units::exact_ns;
    let sum = format!("A {} + {} = B {}", exact(waterfall.from), exact(waterfall.delta()), exact(waterfall.to));
    assert!(shown.contains(&sum), "{sum} in {shown}");
}

#[test]
fn a_slot_leads_to_its_kernels_on_both_sides_and_these_to_their_captures() {
    let mut app = app(Known::Hard, Lang::En);
    buffer(&mut app, 120, 40);
    press(&mut app, "p p");
    buffer(&mut app, 120, 40);
    press(&mut app, "j j enter");
    let linked = screen(&mut app, 120, 40);
    assert!(linked.contains("timelines") && linked.contains("followed"), "{linked}");
    let told = |screen: &str| -> Vec<String> {
        let lines: Vec<&str> = screen.lines().collect();
        lines[lines.len() - 4..lines.len() - 1].iter().map(|line| (*line).to_owned()).collect()
    };
    let before = told(&linked);
    assert!(before[1].trim_start().starts_with('A') && before[2].trim_start().starts_with('B'), "{before:?}");
    // The other side's keys move on what corresponds, and back.
    press(&mut app, "j");
    assert_eq!(told(&screen(&mut app, 120, 40)), before);
    press(&mut app, "}");
    let next = told(&screen(&mut app, 120, 40));
    assert_ne!(next, before);
    assert_eq!(next[0].split(" · ").next(), before[0].split(" · ").next(), "the same slot of the next layer");
    press(&mut app, "{ k");
    assert_eq!(told(&screen(&mut app, 120, 40)), before);
    press(&mut app, "j enter");
    let timeline = screen(&mut app, 120, 40);
    assert!(timeline.contains("2/2 steady-eager"), "{timeline}");
    // The comparison is where it was left.
    press(&mut app, "9");
    assert!(screen(&mut app, 120, 40).contains("followed"));
}

#[test]
fn both_timelines_zoom_and_pan_together() {
    let mut app = app(Known::Hard, Lang::En);
    buffer(&mut app, 120, 40);
    press(&mut app, "P P P");
    let whole = screen(&mut app, 120, 40);
    press(&mut app, "+ + + + + l");
    let near = screen(&mut app, 120, 40);
    let halves = |screen: &str| {
        let lines: Vec<String> = screen.lines().skip(4).map(str::to_owned).collect();
        (lines[..14].to_vec(), lines[16..28].to_vec())
    };
    assert!(halves(&whole).0 != halves(&near).0 && halves(&whole).1 != halves(&near).1, "{whole}\n{near}");
    press(&mut app, "0");
    assert_eq!(halves(&screen(&mut app, 120, 40)), halves(&whole));
    let step = |screen: &str| screen.lines().find(|line| line.contains("A step")).unwrap().to_owned();
    press(&mut app, ",");
    assert_ne!(step(&screen(&mut app, 120, 40)), step(&whole));
}

#[test]
fn panels_can_be_clicked_and_every_offered_action_does_something() {
    let keymap = Keymap::load(None).unwrap();
    let mut app = app(Known::Hard, Lang::En);
    let shown = screen(&mut app, 120, 40);
    let (y, line) = shown.lines().enumerate().find(|(_, line)| line.contains("waterfall")).unwrap();
    let x = line.chars().take_while(|c| *c != 'w').count();
    app.point(Point::Click(x as u16, y as u16));
    assert!(screen(&mut app, 120, 40).contains("add up to it exactly"));
    for panel in 0..PANELS.len() {
        for action in Action::ALL {
            let mut app = App::new(compared(Known::Hard), settings());
            buffer(&mut app, 100, 30);
            (0..panel).for_each(|_| drop(press(&mut app, "p")));
            buffer(&mut app, 100, 30);
            if app.actions().contains(action) && !matches!(action, Action::Help | Action::Palette | Action::Search) {
                app.key(keymap.keys(*action)[0]);
                let shown = screen(&mut app, 100, 30);
                assert!(!shown.contains("means nothing here now"), "{} in panel {panel}", action.id());
            }
        }
    }
}

#[test]
fn hostile_names_stay_in_their_cells() {
    let hostile = |trace: &Trace| {
        let mut edited = common::edited(trace, |mut event| {
            event.name = format!(
                "{}\u{1b}[2J\u{202e}| ` <b> {}",
                event.name,
                "x".repeat(if event.dur % 97 == 0 { 100_000 } else { 3 })
            );
            vec![event]
        });
        edited.manifest = trace.manifest.clone();
        edited.source = "dir/\u{1b}]0;title\u{7}a\u{301}\u{301}.json".into();
        edited
    };
    let traces = steady().map(|file| common::read(&file));
    for known in [Known::Hard, Known::Nothing] {
        let mut app = App::new(pair(traces.each_ref().map(|trace| vec![hostile(trace)]), known), settings());
        for _ in PANELS {
            let buf = buffer(&mut app, 100, 30);
            for cell in &buf.content {
                assert!(!cell.symbol().contains(['\u{1b}', '\u{202e}', '\u{7}']) && cell.symbol().len() <= 24);
            }
            press(&mut app, "j j p");
        }
        let Some(Request::Copy(copied)) = press(&mut app, "y") else { continue };
        assert!(!copied.chars().any(|c| c.is_control() && c != '\n'), "{copied}");
    }
}

#[test]
fn what_is_written_to_files_has_whole_numbers() {
    let mut app = app(Known::Hard, Lang::En);
    buffer(&mut app, 120, 40);
    let Some(Request::Save(files)) = press(&mut app, "p e") else { panic!("nothing to save") };
    let csv = files.iter().find(|file| file.extension == "csv").unwrap();
    let deltas: i64 = csv.text.lines().skip(1).map(|row| row.rsplit(',').next().unwrap().parse::<i64>().unwrap()).sum();
    let opened = compared(Known::Hard);
    assert_eq!(deltas, opened.beside().unwrap().report.difference.as_ref().unwrap().waterfall.delta());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn no_order_of_keys_and_sizes_breaks_it(
        keys in proptest::collection::vec(0usize..24, 1..60), size in (0u16..140, 0u16..50),
    ) {
        const KEYS: [&str; 24] = [
            "p", "P", "j", "k", "h", "l", "+", "-", "0", "F", "f", "]", "[", "}", "{", ".", ",", "enter", "9", "s", "i", "G",
            "g", "H",
        ];
        for known in [Known::Hard, Known::Nothing] {
            let mut app = app(known, Lang::Zh);
            for key in &keys {
                press(&mut app, KEYS[*key]);
            }
            buffer(&mut app, size.0, size.1);
            app.point(Point::Click(size.0 / 2, size.1 / 2));
            app.point(Point::Wheel(size.0 / 2, size.1 / 2, true));
            app.point(Point::Drag((size.0 / 2, size.1 / 2), (1, 1)));
            buffer(&mut app, 100, 30);
        }
    }
}

/// Two captures that are compared have one report, whichever of them is looked at.
#[test]
fn the_report_of_a_pair_is_that_of_both() {
    let mut app = app(Known::All, Lang::En);
    press(&mut app, "R");
    let first = screen(&mut app, 120, 40);
    assert!(first.contains("A eager.") && first.contains("B again."), "{first}");
    press(&mut app, ">");
    assert_eq!(screen(&mut app, 120, 40), first);
}
