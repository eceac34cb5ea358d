//! What can be looked at while the diagnosis is made, and how the diagnosis arrives.

use std::{
    sync::{
        Arc, OnceLock,
        mpsc::{Sender, channel},
    },
    time::{Duration, Instant},
};

use diagnosis::{i18n::Lang, platform::Packs};
use model::Trace;
use proptest::prelude::*;
use ratatui::{buffer::Buffer, layout::Rect};
use stratoscope::tui::{
    App, Face, Job, Opened, Opening, Settings, Sketch, action::Action, app::Request, face::Tick, key::Key,
    opening::Over,
};

use crate::common::screen::{
    LAUNCH_BOUND, TENSOR_PARALLEL, VIEWS, diagnosed, press, rows, sample, screen, settings, two_ranks,
};

/// How long work in the background may take: the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);
/// Lines that say what is selected.
const DETAIL: usize = 3;

fn sketch(traces: &[Trace]) -> Arc<Sketch> {
    Arc::new(Sketch::of(traces, &Packs::embedded().unwrap()))
}

fn early(sketch: &Arc<Sketch>, settings: Settings) -> App {
    let mut app = App::early(Arc::clone(sketch), settings);
    app.doing("diagnosing … 3 s".to_owned());
    app
}

#[test]
fn the_timeline_is_there_while_the_diagnosis_is_made() {
    let sketch = sketch(&[sample(LAUNCH_BOUND)]);
    let en =
        (Lang::En, "en", "diagnosing … 3 s", "Shown once the diagnosis is done; the timeline (2) is there already.");
    let zh = (Lang::Zh, "zh", "诊断 … 3 s", "诊断完成后显示；时间线 (2) 已可查看。");
    for (lang, name, doing, waits) in [en, zh] {
        let mut app = early(&sketch, Settings { lang, ..settings() });
        app.doing(doing.to_owned());
        insta::assert_snapshot!(format!("timeline_{name}"), screen(&mut app, 80, 24));
        press(&mut app, "3");
        insta::assert_snapshot!(format!("findings_{name}"), screen(&mut app, 80, 24));
        for (key, view) in VIEWS.into_iter().filter(|(_, view)| *view != "timeline") {
            press(&mut app, key);
            let shown = screen(&mut app, 80, 24);
            assert!(shown.contains(waits), "{view}:\n{shown}");
        }
    }
}

/// Two captures, of which the first has two ranks, before the diagnosis and after; made once for all tests.
fn two() -> (Arc<Sketch>, Arc<Opened>) {
    static MADE: OnceLock<(Arc<Sketch>, Arc<Opened>)> = OnceLock::new();
    let made = || {
        let traces = [two_ranks(), sample(LAUNCH_BOUND)];
        let sketch = sketch(&traces);
        let opened = Opened::after(&sketch, traces.into_iter().map(diagnosed).collect());
        (sketch, Arc::new(opened))
    };
    MADE.get_or_init(made).clone()
}

/// The ruler, the lane that is selected and the slice.
fn place(shown: &str) -> [String; 3] {
    let lines: Vec<&str> = shown.lines().collect();
    let selected = lines.iter().find(|line| line.starts_with('▶') || line.starts_with('▸') || line.starts_with('>'));
    let name = lines[lines.len() - 1 - DETAIL];
    [lines[2], selected.unwrap(), name].map(str::to_owned)
}

#[test]
fn the_diagnosis_arrives_without_moving_what_is_seen() {
    for keys in ["]", "] + + + l", "J j ] +", "/ n o r m enter + +", "] b ] ] b ] m", "j j j j + ]", "G"] {
        let (sketch, opened) = two();
        let mut app = early(&sketch, settings());
        screen(&mut app, 120, 40);
        for key in keys.split(' ') {
            press(&mut app, key);
            screen(&mut app, 120, 40);
        }
        let before = screen(&mut app, 120, 40);
        assert!(before.contains("diagnosing … 3 s") && !before.contains("idle: why"), "{before}");
        app.arrive(opened);
        let after = screen(&mut app, 120, 40);
        assert_eq!(place(&before), place(&after), "{keys}:\n{before}\n{after}");
        assert!(after.contains("the diagnosis is done") && !after.contains("diagnosing …"), "{after}");
        // What needs the analysis is there now, and the way back too.
        press(&mut app, "1");
        assert!(screen(&mut app, 120, 40).contains("Largest"));
        press(&mut app, "2");
        assert_eq!(place(&screen(&mut app, 120, 40)), place(&after), "{keys}");
    }
}

#[test]
fn bookmarks_lead_to_the_same_places_after_the_diagnosis() {
    let (sketch, opened) = two();
    let mut app = early(&sketch, settings());
    screen(&mut app, 120, 40);
    press(&mut app, "J ] ] b j ] b K");
    screen(&mut app, 120, 40);
    app.act(Action::NextBookmark);
    let before = place(&screen(&mut app, 120, 40));
    app.act(Action::NextBookmark);
    app.arrive(opened);
    app.act(Action::PreviousBookmark);
    assert_eq!(place(&screen(&mut app, 120, 40))[1..], before[1..]);
}

#[test]
fn no_slice_changes_its_colour() {
    for name in [LAUNCH_BOUND, TENSOR_PARALLEL] {
        let traces = [sample(name)];
        let sketch = sketch(&traces);
        let opened = Opened::after(&sketch, traces.into_iter().map(diagnosed).collect());
        let (before, after) = (sketch.look(0).unwrap().lanes, opened.look(0).unwrap().lanes);
        for lane in &before.lanes {
            let same = &after.lanes[after.position(lane.of).unwrap()];
            let Some((old, new)) = lane.slices().zip(same.slices()) else { continue };
            assert_eq!(old.len(), new.len());
            for slot in 0..old.len() {
                assert_eq!((old.span(slot), old.kind(slot)), (new.span(slot), new.kind(slot)), "{name}: {}", lane.name);
            }
        }
        let fresh = Opened::new(vec![diagnosed(sample(name))]);
        let fresh = fresh.look(0).unwrap().lanes;
        assert_eq!(fresh.lanes.len(), after.lanes.len());
        for (a, b) in fresh.lanes.iter().zip(&after.lanes) {
            assert_eq!((a.of, &a.name, a.slices().map(|i| i.len())), (b.of, &b.name, b.slices().map(|i| i.len())));
        }
    }
}

/// A job that goes on when it is told to.
fn waiting() -> (Opening<String>, Sender<()>) {
    let (early, arrived) = channel();
    let (go, told) = channel();
    let traces = [sample(LAUNCH_BOUND)];
    let job = Job::start(move |progress| {
        let sketch = sketch(&traces);
        drop(early.send(Arc::clone(&sketch)));
        progress.doing("diagnosing", "a/b.json");
        // Who calls it off drops the other end.
        told.recv().map_err(|_| "called off".to_owned())?;
        Ok(Opened::after(&sketch, traces.into_iter().map(diagnosed).collect()))
    });
    (Opening::new(job.unwrap(), arrived, settings()), go)
}

fn drawn(opening: &mut Opening<String>) -> String {
    let mut buf = Buffer::empty(Rect::new(0, 0, 100, 30));
    opening.draw(&mut buf);
    rows(&buf).join("\n")
}

fn until(opening: &mut Opening<String>, text: &str) -> String {
    let began = Instant::now();
    loop {
        opening.tick();
        let shown = drawn(opening);
        if shown.contains(text) {
            return shown;
        }
        assert!(began.elapsed() < PATIENCE, "waited for '{text}' and saw:\n{shown}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn who_looks_goes_on_looking_and_who_does_not_sees_the_verdict() {
    let (mut opening, go) = waiting();
    let shown = until(&mut opening, "diagnosing … ");
    assert!(shown.contains("stream 7"), "{shown}");
    go.send(()).unwrap();
    until(&mut opening, "Largest");
    assert_eq!(opening.tick(), Tick::Same);

    let (mut opening, go) = waiting();
    until(&mut opening, "stream 7");
    opening.key(Key::parse("+").unwrap());
    go.send(()).unwrap();
    let shown = until(&mut opening, "the diagnosis is done");
    assert!(shown.contains("idle: why") && !shown.contains("Largest"), "{shown}");
}

#[test]
fn it_is_left_while_the_diagnosis_is_made() {
    let (mut opening, go) = waiting();
    until(&mut opening, "stream 7");
    assert_eq!(opening.key(Key::parse("q").unwrap()), Some(Request::Quit));
    assert!(opening.finish().is_none(), "nobody waits for the job");
    drop(go);
}

#[test]
fn what_is_over_soon_shows_no_screen_before() {
    let began = Instant::now();
    let (mut opening, go) = waiting();
    opening.tick();
    let shown = drawn(&mut opening);
    // On a machine that took longer than that the screen is there by right.
    assert!(began.elapsed() >= Duration::from_millis(200) || shown.trim().is_empty(), "{shown}");
    go.send(()).unwrap();
    until(&mut opening, "Largest");
}

#[test]
fn a_diagnosis_that_fails_says_why() {
    let (mut opening, go) = waiting();
    until(&mut opening, "stream 7");
    drop(go);
    let began = Instant::now();
    while opening.tick() != Tick::Done {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(matches!(opening.finish(), Some(Over::Failed(why)) if why == "called off"));
}

#[test]
fn findings_are_gone_through_where_the_report_has_no_line_to_show_one() {
    let (sketch, opened) = two();
    let mut app = early(&sketch, settings());
    app.arrive(opened);
    press(&mut app, "R");
    let mut buf = Buffer::empty(Rect::new(0, 0, 74, 2));
    for action in [Action::Right, Action::Right, Action::Left, Action::Left] {
        app.draw(&mut buf);
        app.act(action);
    }
    app.draw(&mut buf);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn no_hands_can_break_it_before_or_after(
        before in proptest::collection::vec(0..Action::ALL.len(), 0..40),
        after in proptest::collection::vec(0..Action::ALL.len(), 0..20),
        size in (0u16..130, 0u16..50),
    ) {
        let (sketch, opened) = two();
        let mut app = early(&sketch, settings());
        let mut buf = Buffer::empty(Rect::new(0, 0, size.0, size.1));
        for action in before {
            app.act(Action::ALL[action]);
            app.draw(&mut buf);
        }
        app.arrive(opened);
        for action in after {
            app.act(Action::ALL[action]);
            app.draw(&mut buf);
        }
    }
}
