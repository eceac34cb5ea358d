//! The terminal interface as people see it: whole screens of the simulated samples, and what keys and clicks do to them.

mod early;
mod evidence;
mod hostile;
mod operators;
mod places;
mod reach;
mod sizes;
mod steps;
mod texts;

use std::fmt::Write;

use crate::common::{
    ascend,
    screen::{
        LAUNCH_BOUND, TENSOR_PARALLEL, VIEWS, app, buffer, diagnosed, opened, press, rows, screen, settings, two_ranks,
    },
};
use diagnosis::i18n::Lang;
use proptest::prelude::*;
use ratatui::{buffer::Buffer, layout::Rect, style::Color};
use session::{Options, Reading, Session};
use stratoscope::tui::{
    App, Opened, Settings,
    action::Action,
    app::Request,
    key::Key,
    theme::{Depth, Theme},
    view::Point,
};

/// The styles of a screen, run by run: `12 fg/bg modifiers`.
fn styles(buf: &Buffer) -> String {
    let colour = |c: Color| if c == Color::Reset { "-".to_owned() } else { c.to_string() };
    let mut out = String::new();
    for y in 0..buf.area.height {
        let style = |x: u16| {
            let cell = buf.cell((x, y)).unwrap();
            let modifier = format!("{:?}", cell.modifier).replace("NONE", "");
            format!("{}/{} {modifier}", colour(cell.fg), colour(cell.bg)).trim_end().to_owned()
        };
        let (mut from, mut runs) = (0, Vec::new());
        for x in 1..=buf.area.width {
            if x == buf.area.width || style(x) != style(from) {
                runs.push(format!("{} {}", x - from, style(from)));
                from = x;
            }
        }
        writeln!(out, "{}", runs.join(" · ")).unwrap();
    }
    out
}

/// Sizes that terminals have.
const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

/// Every view at every size, under `settings`.
fn every_view(settings: Settings, prefix: &str) -> Vec<(String, Buffer)> {
    let mut app = App::new(opened(&[LAUNCH_BOUND]), settings);
    let mut shown = Vec::new();
    for (key, view) in VIEWS {
        press(&mut app, key);
        for (width, height) in SIZES {
            let buf = buffer(&mut app, width, height);
            let name = format!("{view}_{prefix}{width}x{height}");
            insta::assert_snapshot!(name.clone(), rows(&buf).join("\n"));
            shown.push((name, buf));
        }
    }
    shown
}

#[test]
fn every_view_at_the_sizes_people_have() {
    every_view(settings(), "");
}

#[test]
fn every_view_in_chinese() {
    every_view(Settings { lang: Lang::Zh, ..settings() }, "zh_");
}

#[test]
fn every_view_without_colour() {
    for (name, buf) in every_view(Settings { depth: Depth::Mono, ..settings() }, "mono_") {
        assert!(buf.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset), "{name}");
    }
}

#[test]
fn every_view_in_ascii() {
    for (name, buf) in every_view(Settings { ascii: true, ..settings() }, "ascii_") {
        let beyond: Vec<&str> = buf.content.iter().map(|cell| cell.symbol()).filter(|s| !s.is_ascii()).collect();
        assert!(beyond.is_empty(), "{name}: {beyond:?}");
    }
}

/// What each theme makes of two screens that use all that it has: the findings, and a piece of evidence in the timeline.
#[test]
fn every_theme_at_every_depth() {
    let depths = [("24bit", Depth::True), ("256", Depth::Indexed), ("16", Depth::Sixteen)];
    let coloured = Theme::NAMES.into_iter().flat_map(|theme| depths.map(|(name, depth)| (theme, name, depth)));
    for (theme, depth_name, depth) in coloured.chain([("dark", "no_color", Depth::Mono)]) {
        let mut app = App::new(opened(&[LAUNCH_BOUND]), Settings { theme: theme.into(), depth, ..settings() });
        press(&mut app, "3");
        let findings = styles(&buffer(&mut app, 100, 24));
        press(&mut app, "enter");
        let timeline = styles(&buffer(&mut app, 80, 24));
        insta::assert_snapshot!(format!("styles_{theme}_{depth_name}"), format!("{findings}\n{timeline}"));
    }
}

/// That nothing was found is said with how much could not be found.
#[test]
fn a_capture_without_findings_says_what_that_means() {
    let mut app = app("healthy-full-graph.json.gz");
    press(&mut app, "1");
    assert!(screen(&mut app, 120, 40).contains("No cost of 5 % or more has a known cause."));
    press(&mut app, "3");
    insta::assert_snapshot!("findings_none", screen(&mut app, 120, 10));
}

#[test]
fn several_ranks_and_what_lies_over_a_view() {
    let mut app = App::new(Opened::new(vec![diagnosed(two_ranks())]), settings());
    press(&mut app, "2");
    insta::assert_snapshot!("timeline_ranks", screen(&mut app, 120, 40));
    press(&mut app, "6");
    insta::assert_snapshot!("ranks_ranks", screen(&mut app, 120, 40));
    let mut app = self::app(TENSOR_PARALLEL);
    press(&mut app, "6");
    screen(&mut app, 80, 24);
    press(&mut app, "?");
    insta::assert_snapshot!("help", screen(&mut app, 80, 24));
    press(&mut app, "esc : z o o m");
    insta::assert_snapshot!("palette", screen(&mut app, 80, 24));
}

/// What a rank of sums computed stood as 0 %, and the time between its collectives as a step, where the report shows sums and dashes.
#[test]
fn ranks_of_which_only_sums_are_known_have_no_zeros() {
    let directory = tempfile::tempdir().unwrap();
    for (rank, late) in [(0, 0.0), (1, 40.0)] {
        ascend::rank_of_sums(directory.path(), rank, late);
    }
    let session = Session::open(&[directory.path().to_owned()], &Reading::default()).unwrap();
    let captures = session.examine(&Options::default()).unwrap().diagnose().unwrap().captures;
    let mut app = App::new(Opened::new(captures), settings());
    press(&mut app, "6");
    insta::assert_snapshot!("ranks_of_sums", screen(&mut app, 120, 24));
    press(&mut app, "1");
    let overview = screen(&mut app, 120, 60);
    assert!(overview.contains("operator –") && overview.contains("runtime –"), "{overview}");
}

#[test]
fn the_way_back_from_the_evidence_of_a_finding_is_one_key() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "3");
    let findings = screen(&mut app, 120, 40);
    assert!(findings.contains("in the timeline: stretch 1 / "), "{findings}");
    press(&mut app, "enter");
    assert_ne!(screen(&mut app, 120, 40), findings);
    press(&mut app, "esc");
    assert_eq!(screen(&mut app, 120, 40), findings);
}

#[test]
fn a_finding_of_the_overview_leads_to_its_evidence_too() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "3 j enter");
    let evidence = screen(&mut app, 120, 40);
    press(&mut app, "1");
    buffer(&mut app, 120, 40);
    press(&mut app, "right");
    let overview = screen(&mut app, 120, 40);
    press(&mut app, "enter");
    assert_eq!(screen(&mut app, 120, 40), evidence, "from:\n{overview}");
    // The selected one is marked.
    let opened = opened(&[LAUNCH_BOUND]);
    let second = opened.look(0).unwrap().capture().unwrap().findings[1].rule;
    assert!(overview.lines().any(|line| line.starts_with('▸') && line.contains(second)), "{overview}");
}

#[test]
fn a_replay_of_a_graph_has_a_lane_and_leads_to_its_kernels() {
    let mut app = app("healthy-full-graph.json.gz");
    press(&mut app, "2");
    buffer(&mut app, 120, 40);
    press(&mut app, "k ]");
    let replay = screen(&mut app, 120, 40);
    let detail: String = replay.lines().rev().skip(1).take(3).collect();
    assert!(replay.contains("graph replays") && detail.contains("operations"), "{replay}");
    press(&mut app, "a");
    assert!(screen(&mut app, 120, 40).contains("launched by"));
}

#[test]
fn a_launch_leads_to_its_kernel_and_back() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "4 b enter");
    let kernel = screen(&mut app, 120, 40);
    assert!(kernel.contains("launched by"), "{kernel}");
    press(&mut app, "a");
    let launch = screen(&mut app, 120, 40);
    let detail: String = launch.lines().rev().skip(1).take(3).collect();
    assert!(detail.contains("Launch") && !detail.contains("launched by"), "{detail}");
    press(&mut app, "a");
    let back: String = screen(&mut app, 120, 40).lines().rev().skip(1).take(3).collect();
    let before: String = kernel.lines().rev().skip(1).take(3).collect();
    assert_eq!(back, before);
}

#[test]
fn time_between_two_marks_is_measured() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "2");
    buffer(&mut app, 120, 40);
    press(&mut app, "] m ] m");
    let opened = opened(&[LAUNCH_BOUND]);
    let look = opened.look(0).unwrap();
    let queue = look.found.unwrap().analysis.ranks[0].timeline.queues[0];
    let starts = &look.trace.lanes[queue.0 as usize].start;
    let expected = report::units::time(starts[2] - starts[1]);
    let shown = screen(&mut app, 120, 40);
    assert!(shown.contains(&format!("A→B {expected}")), "{expected} in {shown}");
    // Set once more at the same place, a mark is taken away.
    press(&mut app, "m");
    assert!(screen(&mut app, 120, 40).contains("mark A is set"));
    press(&mut app, "[ m");
    let none = screen(&mut app, 120, 40);
    assert!(!none.contains("mark A is set") && !none.contains("A→B"), "{none}");
}

#[test]
fn a_mark_cuts_no_number_out_of_the_ruler() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "2");
    buffer(&mut app, 120, 40);
    let ticks = |app: &mut App| -> Vec<String> {
        let shown = screen(app, 120, 40);
        let ruler = shown.lines().find(|line| line.matches('│').count() > 3).unwrap().to_owned();
        ruler.split('│').map(|label| label.trim().to_owned()).collect()
    };
    let before = ticks(&mut app);
    for keys in ["m ]", "b ] ] ]", "m ] ] ]"] {
        press(&mut app, keys);
        let after = ticks(&mut app);
        let cut: Vec<&String> =
            after.iter().filter(|label| label.chars().any(|c| c.is_ascii_digit()) && !before.contains(label)).collect();
        assert!(cut.is_empty(), "{cut:?} of {before:?}");
    }
}

#[test]
fn a_search_goes_from_match_to_match() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "2");
    buffer(&mut app, 120, 40);
    press(&mut app, "/ n o r m enter");
    let detail = |app: &mut App| -> String { screen(app, 120, 40).lines().rev().skip(1).take(3).collect() };
    let first = detail(&mut app);
    assert!(first.contains("norm"), "{first}");
    press(&mut app, "n");
    let second = detail(&mut app);
    assert!(second.contains("norm") && first != second, "{second}");
    press(&mut app, "N");
    assert_eq!(detail(&mut app), first);
    press(&mut app, "/ q q q q enter");
    assert!(screen(&mut app, 120, 40).contains("no further match"));
}

#[test]
fn what_means_nothing_is_said_and_not_done() {
    let mut app = app(LAUNCH_BOUND);
    let before = screen(&mut app, 100, 30);
    press(&mut app, ")");
    let after = screen(&mut app, 100, 30);
    assert!(after.contains("next rank: means nothing here now"), "{after}");
    let above = |s: &str| s.lines().take(29).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(above(&before), above(&after));
}

#[test]
fn the_report_that_is_read_is_the_one_that_is_written() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "R");
    assert!(screen(&mut app, 120, 40).contains("Largest"));
    let Some(Request::Save(files)) = app.key(Key::parse("e").unwrap()) else { panic!("nothing is written") };
    let written = files.iter().find(|file| file.extension == "md").unwrap();
    let opened = opened(&[LAUNCH_BOUND]);
    assert_eq!(written.text, opened.report().document(Lang::En).markdown());
}

#[test]
fn what_is_copied_cannot_act_on_a_shell() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "3");
    buffer(&mut app, 100, 30);
    let Some(Request::Copy(text)) = app.key(Key::parse("y").unwrap()) else { panic!("nothing was copied") };
    assert!(text.contains("RT-") && !text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
}

/// Anything that hands can do.
#[derive(Clone, Debug)]
enum Deed {
    Act(usize),
    Type(char),
    Click(u16, u16),
    Wheel(u16, u16, bool),
    Drag(u16, u16),
    Resize(u16, u16),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => (0..Action::ALL.len()).prop_map(Deed::Act),
        1 => any::<char>().prop_map(Deed::Type),
        1 => (0u16..130, 0u16..50).prop_map(|(x, y)| Deed::Click(x, y)),
        1 => (0u16..130, 0u16..50, any::<bool>()).prop_map(|(x, y, up)| Deed::Wheel(x, y, up)),
        1 => (0u16..130, 0u16..50).prop_map(|(x, y)| Deed::Drag(x, y)),
        1 => (0u16..130, 0u16..50).prop_map(|(w, h)| Deed::Resize(w, h)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_hands_can_break_it(deeds in proptest::collection::vec(deed(), 1..120)) {
        let mut app = App::new(opened(&[LAUNCH_BOUND, TENSOR_PARALLEL]), settings());
        let mut buf = Buffer::empty(Rect::new(0, 0, 80, 24));
        for deed in deeds {
            match deed {
                Deed::Act(i) => { app.act(Action::ALL[i]); }
                Deed::Type(c) => { Key::parse(&c.to_string()).map(|key| app.key(key)); }
                Deed::Click(x, y) => { app.point(Point::Click(x, y)); }
                Deed::Wheel(x, y, up) => { app.point(Point::Wheel(x, y, up)); }
                Deed::Drag(x, y) => { app.drag(Some((x, y))); }
                Deed::Resize(width, height) => buf = Buffer::empty(Rect::new(0, 0, width, height)),
            }
            app.draw(&mut buf);
        }
    }
}
