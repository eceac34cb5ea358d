//! Views that are texts: what they speak of leads on, and what is written is all of them.

use stratoscope::tui::{App, app::Request, key::Key};

use crate::common::screen::{LAUNCH_BOUND, app, buffer, opened, press, screen};

/// The text file that the view that is seen is written to.
fn written(app: &mut App) -> String {
    let Some(Request::Save(files)) = app.key(Key::parse("e").unwrap()) else { panic!("nothing is written") };
    let mut texts = files.into_iter().filter(|file| file.extension == "txt");
    let text = texts.next().unwrap().text;
    assert!(texts.next().is_none(), "one text of one view");
    text
}

#[test]
fn a_finding_of_the_whole_report_leads_to_its_evidence_too() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "3");
    buffer(&mut app, 120, 40);
    press(&mut app, "j enter");
    let evidence = screen(&mut app, 120, 40);
    press(&mut app, "R");
    let top = screen(&mut app, 120, 40);
    press(&mut app, "enter");
    assert!(screen(&mut app, 120, 40).contains("means nothing here now"), "no finding is seen yet:\n{top}");
    press(&mut app, "right");
    let first = screen(&mut app, 120, 40);
    assert!(first.lines().any(|line| line.starts_with("▸1. ")), "{first}");
    press(&mut app, "right");
    let second = screen(&mut app, 120, 40);
    assert!(second.lines().any(|line| line.starts_with("▸2. ")), "{second}");
    press(&mut app, "enter");
    assert_eq!(screen(&mut app, 120, 40), evidence);
    // From the end of the report the way back leads to the last one.
    press(&mut app, "R G left");
    let last = opened(&[LAUNCH_BOUND]).look(0).unwrap().capture().unwrap().findings.len();
    let shown = screen(&mut app, 120, 40);
    assert!(shown.lines().any(|line| line.starts_with(&format!("▸{last}. "))), "{shown}");
}

#[test]
fn the_text_that_is_written_is_whole_and_without_the_marks_of_the_screen() {
    for key in ["1", "R"] {
        let mut app = app(LAUNCH_BOUND);
        press(&mut app, key);
        let seen = screen(&mut app, 120, 20);
        let text = written(&mut app);
        assert!(seen.contains('┃') && !text.contains('┃'), "{seen}\n{text}");
        assert!(text.lines().count() > 40, "{text}");
        assert!(text.lines().all(|line| !line.starts_with('▸')), "{text}");
    }
}
