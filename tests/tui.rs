//! The terminal interface as people see it: whole screens of the simulated samples, and what keys and clicks do to them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    fmt::Write,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer, layout::Rect, style::Color};
use stratoscope::{
    diagnose,
    i18n::Lang,
    platform::Packs,
    tui::{
        App, Keymap, Opened, Settings,
        action::{Action, Scope},
        app::Request,
        key::Key,
        theme::Depth,
        view::Point,
    },
};

const LAUNCH_BOUND: &str = "launch-bound-eager.json.gz";
const TENSOR_PARALLEL: &str = "tensor-parallel-rocm.json.gz";

fn read(samples: &[&str]) -> Opened {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-traces");
    let packs = Packs::embedded().unwrap();
    let input = |name: &&str| {
        let trace = common::read(&root.join(name));
        let analysis = common::analyze(&trace);
        let diagnosis = diagnose::diagnose(&trace, &analysis, &packs);
        (trace, analysis, diagnosis)
    };
    Opened::new(samples.iter().map(input).collect())
}

/// The samples, read once for all tests.
fn opened(samples: &[&'static str]) -> Arc<Opened> {
    static READ: Mutex<Vec<(Vec<&str>, Arc<Opened>)>> = Mutex::new(Vec::new());
    let mut known = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, opened)) = known.iter().find(|(names, _)| names == samples) {
        return Arc::clone(opened);
    }
    let opened = Arc::new(read(samples));
    known.push((samples.to_vec(), Arc::clone(&opened)));
    opened
}

fn settings() -> Settings {
    Settings {
        lang: Lang::En,
        theme: "dark".into(),
        depth: Depth::True,
        ascii: false,
        mouse: true,
        keymap: Keymap::load(None).unwrap(),
    }
}

fn app(sample: &'static str) -> App {
    App::new(opened(&[sample]), settings())
}

fn press(app: &mut App, keys: &str) {
    for name in keys.split_whitespace() {
        app.key(Key::parse(name).unwrap_or_else(|| panic!("no key '{name}'")));
    }
}

fn buffer(app: &mut App, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| app.draw(frame.buffer_mut())).unwrap();
    terminal.backend().buffer().clone()
}

/// The rows of a screen; a wide character covers the cell after it.
fn rows(buf: &Buffer) -> Vec<String> {
    let row = |y: u16| {
        let mut text = String::new();
        let mut covered = 0;
        for x in 0..buf.area.width {
            let symbol = buf.cell((x, y)).unwrap().symbol();
            if covered > 0 {
                covered -= 1;
                continue;
            }
            covered = stratoscope::tui::text::width(symbol).saturating_sub(1);
            text.push_str(symbol);
        }
        text.trim_end().to_owned()
    };
    (0..buf.area.height).map(row).collect()
}

fn screen(app: &mut App, width: u16, height: u16) -> String {
    rows(&buffer(app, width, height)).join("\n")
}

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

const VIEWS: [(&str, &str); 8] = [
    ("1", "overview"),
    ("2", "timeline"),
    ("3", "findings"),
    ("4", "operators"),
    ("5", "steps"),
    ("6", "ranks"),
    ("7", "import"),
    ("8", "manifest"),
];

#[test]
fn every_view_at_the_sizes_people_have() {
    let mut app = app(LAUNCH_BOUND);
    for (key, name) in VIEWS {
        press(&mut app, key);
        for (width, height) in [(80, 24), (120, 40), (200, 60)] {
            insta::assert_snapshot!(format!("{name}_{width}x{height}"), screen(&mut app, width, height));
        }
    }
}

#[test]
fn every_view_in_chinese() {
    let mut app = App::new(opened(&[LAUNCH_BOUND]), Settings { lang: Lang::Zh, ..settings() });
    for (key, name) in VIEWS {
        press(&mut app, key);
        insta::assert_snapshot!(format!("{name}_zh"), screen(&mut app, 80, 24));
    }
}

#[test]
fn several_ranks_and_what_lies_over_a_view() {
    let mut app = app(TENSOR_PARALLEL);
    press(&mut app, "2");
    insta::assert_snapshot!("timeline_ranks", screen(&mut app, 120, 40));
    press(&mut app, "6");
    insta::assert_snapshot!("ranks_ranks", screen(&mut app, 120, 40));
    press(&mut app, "?");
    insta::assert_snapshot!("help", screen(&mut app, 80, 24));
    press(&mut app, "esc : z o o m");
    insta::assert_snapshot!("palette", screen(&mut app, 80, 24));
}

#[test]
fn colours_and_what_stands_for_them_without() {
    let mut coloured = app(LAUNCH_BOUND);
    let mut mono = App::new(opened(&[LAUNCH_BOUND]), Settings { depth: Depth::Mono, ..settings() });
    for app in [&mut coloured, &mut mono] {
        press(app, "3 enter");
    }
    insta::assert_snapshot!("timeline_colours", styles(&buffer(&mut coloured, 80, 24)));
    let plain = buffer(&mut mono, 80, 24);
    insta::assert_snapshot!("timeline_mono", format!("{}\n\n{}", rows(&plain).join("\n"), styles(&plain)));
    for (key, _) in VIEWS {
        press(&mut mono, key);
        let buf = buffer(&mut mono, 100, 30);
        assert!(buf.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset), "{key}");
    }
}

#[test]
fn an_ascii_terminal_gets_ascii() {
    let mut app = App::new(opened(&[LAUNCH_BOUND]), Settings { ascii: true, ..settings() });
    for (key, name) in VIEWS {
        press(&mut app, key);
        let shown = screen(&mut app, 120, 40);
        let beyond: Vec<char> = shown.chars().filter(|c| !c.is_ascii()).collect();
        assert!(beyond.is_empty(), "{name}: {beyond:?}");
    }
    press(&mut app, "?");
    assert!(screen(&mut app, 80, 24).is_ascii());
}

#[test]
fn a_terminal_that_is_too_small_is_told_so_and_none_at_all_does_no_harm() {
    let mut app = app(LAUNCH_BOUND);
    for (key, _) in VIEWS {
        press(&mut app, key);
        assert_eq!(screen(&mut app, 19, 3), "19x3 < 20x3\n\n");
        for (width, height) in [(0, 0), (1, 1), (0, 9), (9, 0), (20, 3), (21, 4), (40, 6), (300, 3), (20, 90)] {
            buffer(&mut app, width, height);
        }
    }
    press(&mut app, "1");
    insta::assert_snapshot!("overview_20x3", screen(&mut app, 20, 3));
}

#[test]
fn one_key_leads_from_a_finding_to_its_evidence() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "3");
    let findings = screen(&mut app, 120, 40);
    assert!(findings.contains("in the timeline: slice 1 / "), "{findings}");
    press(&mut app, "enter");
    let timeline = screen(&mut app, 120, 40);
    // The slice that is named below the lanes is the first of the finding's rows.
    let opened = opened(&[LAUNCH_BOUND]);
    let look = opened.look(0).unwrap();
    let row = look.capture.findings[0].evidence.iter().find_map(|fact| fact.rows.first()).unwrap();
    let (track, at) = look.trace.locate(*row).unwrap();
    let lane = &look.trace.lanes[track.0 as usize];
    let name = look.trace.strings.get(lane.name[at]);
    let detail: String = timeline.lines().rev().skip(1).take(3).collect();
    assert!(detail.contains(name), "{name} in {detail}");
    // And the way back is one key too.
    press(&mut app, "esc");
    assert_eq!(screen(&mut app, 120, 40), findings);
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
    let queue = look.analysis.ranks[0].timeline.queues[0];
    let starts = &look.trace.lanes[queue.0 as usize].start;
    let expected = stratoscope::report::units::time(starts[1] - starts[0]);
    let shown = screen(&mut app, 120, 40);
    assert!(shown.contains(&format!("A→B {expected}")), "{expected} in {shown}");
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
fn what_the_footer_and_the_tabs_show_can_be_clicked() {
    let mut app = app(LAUNCH_BOUND);
    let shown = rows(&buffer(&mut app, 120, 40));
    let click = |app: &mut App, y: usize, text: &str| {
        let x = shown[y].find(text).unwrap();
        let x = shown[y][..x].chars().count();
        app.point(Point::Click(x as u16, y as u16))
    };
    assert_eq!(click(&mut app, 39, "quit"), Some(Request::Quit));
    click(&mut app, 0, "findings");
    assert!(screen(&mut app, 120, 40).contains("What to do"));
}

#[test]
fn every_action_that_is_offered_does_something_by_its_key_and_by_the_palette() {
    let keymap = Keymap::load(None).unwrap();
    let mut app = app(TENSOR_PARALLEL);
    for (view, _) in VIEWS {
        for action in Action::ALL {
            press(&mut app, view);
            buffer(&mut app, 100, 30);
            if !app.actions().contains(action) {
                continue;
            }
            app.key(keymap.keys(*action)[0]);
            let shown = screen(&mut app, 100, 30);
            assert!(!shown.contains("means nothing here now"), "{} in view {view}", action.id());
            // Help, palette and search are closed again.
            if matches!(action, Action::Help | Action::Palette | Action::Search) {
                press(&mut app, "esc");
            }
        }
    }
    press(&mut app, "1");
    buffer(&mut app, 100, 30);
    press(&mut app, ":");
    for c in "show_steps".chars() {
        app.key(Key::of(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)));
    }
    press(&mut app, "enter");
    assert!(screen(&mut app, 100, 30).contains("to median"));
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
fn what_is_copied_cannot_act_on_a_shell() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "3");
    buffer(&mut app, 100, 30);
    let Some(Request::Copy(text)) = app.key(Key::parse("y").unwrap()) else { panic!("nothing was copied") };
    assert!(text.contains("RT-") && !text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
}

/// `docs/keys.md` is made from the actions and the keymap; `STRATO_BLESS=1` writes it.
#[test]
fn the_page_of_keys_is_what_the_program_does() {
    let keymap = Keymap::load(None).unwrap();
    let mut page = String::from(
        "# Keys of `strato view`\n\nMade from the program: `strato view --print-keys` prints the keymap to change.\n`ctrl-c` always quits.\n",
    );
    for scope in Scope::ALL {
        write!(page, "\n## {}\n\n| keys | action | 动作 | name |\n| --- | --- | --- | --- |\n", scope.text().en)
            .unwrap();
        for action in Action::ALL.iter().filter(|action| action.scope() == scope) {
            let keys: Vec<String> = keymap.keys(*action).iter().map(|key| format!("`{key}`")).collect();
            let text = action.text();
            writeln!(page, "| {} | {} | {} | `{}` |", keys.join(" "), text.en, text.zh, action.id()).unwrap();
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/keys.md");
    if std::env::var_os("STRATO_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap_or_default(),
        page,
        "run with STRATO_BLESS=1 and read the difference"
    );
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
                Deed::Type(c) => { app.key(Key::of(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE))); }
                Deed::Click(x, y) => { app.point(Point::Click(x, y)); }
                Deed::Wheel(x, y, up) => { app.point(Point::Wheel(x, y, up)); }
                Deed::Drag(x, y) => { app.drag(Some((x, y))); }
                Deed::Resize(width, height) => buf = Buffer::empty(Rect::new(0, 0, width, height)),
            }
            app.draw(&mut buf);
        }
    }
}
