//! Going to a place by a command, by a link and by a search, and what a rule says.

use stratoscope::tui::{
    App,
    app::Request,
    at::{At, Start},
    key::Key,
    text,
};

use crate::common::screen::{LAUNCH_BOUND, TENSOR_PARALLEL, app, buffer, opened, press, screen, settings};

fn key(app: &mut App, name: &str) -> Option<Request> {
    app.key(Key::parse(name).unwrap())
}

fn started(sample: &'static str, at: &str) -> App {
    let start = Start { paths: "a.json b.json".into(), at: Some(at.parse().unwrap()) };
    App::new(opened(&[sample]), stratoscope::tui::Settings { start, ..settings() })
}

#[test]
fn a_step_is_four_keys_away_and_a_step_that_is_not_there_is_said() {
    let mut app = app(LAUNCH_BOUND);
    screen(&mut app, 120, 40);
    press(&mut app, ": 1 2 enter");
    let shown = screen(&mut app, 120, 40);
    assert!(shown.contains("idle: why") && shown.contains("step 12"), "{shown}");
    press(&mut app, ": 9 9 9 enter");
    let shown = screen(&mut app, 120, 40);
    assert!(shown.contains("there is no step 999; the steps are 0 – 25"), "{shown}");
    press(&mut app, ": t space 3 m s enter");
    let at = screen(&mut app, 120, 40);
    assert!(!at.contains("no time") && at != shown, "{at}");
}

#[test]
fn a_link_opens_the_view_that_it_was_copied_in() {
    let mut app = app(LAUNCH_BOUND);
    screen(&mut app, 120, 40);
    press(&mut app, "2 : 1 2 enter j j + + L");
    let before = screen(&mut app, 120, 40);
    let Some(Request::Copy(link)) = key(&mut app, "Y") else { panic!("nothing was copied") };
    let place = link.strip_prefix("strato view FILE --at ").unwrap().trim_matches('\'');
    let mut other = started(LAUNCH_BOUND, place);
    let after = screen(&mut other, 120, 40);
    // The ruler, the lanes and the selected one; only what is said of a slice depends on the cursor.
    let lanes = |shown: &str| shown.lines().skip(3).take(20).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lanes(&before), lanes(&after), "{link}");
    let Some(Request::Copy(again)) = key(&mut other, "Y") else { panic!("nothing was copied") };
    assert!(again.starts_with("strato view a.json b.json --at ") && again.ends_with(place), "{again}");
}

#[test]
fn a_place_is_found_by_step_and_lane_and_what_is_not_there_is_named() {
    let shown = screen(&mut started(LAUNCH_BOUND, "step=3,lane=stream7"), 120, 40);
    assert!(shown.lines().any(|row| row.starts_with("▸stream 7")), "{shown}");
    let shown = screen(&mut started(LAUNCH_BOUND, "step=3,lane=stream99"), 120, 40);
    assert!(shown.contains("there is no lane 'stream99'") && shown.contains("A decode step takes"), "{shown}");
    let shown = screen(&mut started(LAUNCH_BOUND, "rank=7"), 120, 40);
    assert!(shown.contains("there is no rank 7"), "{shown}");
    let shown = screen(&mut started(LAUNCH_BOUND, "t=9s"), 120, 40);
    assert!(shown.contains("the capture ends after"), "{shown}");
    assert!("lane=x,y".parse::<At>().is_err());
    // The cursor is seen wherever it is.
    let shown = screen(&mut started(LAUNCH_BOUND, "step=3,t=30ms,lane=stream7"), 120, 40);
    assert!(shown.lines().nth(2).is_some_and(|ruler| ruler.contains('▼')), "{shown}");
}

#[test]
fn a_search_says_how_many_and_how_long_and_lists_the_names() {
    let mut app = app(LAUNCH_BOUND);
    screen(&mut app, 120, 40);
    press(&mut app, "2 / s p l i t k v _ k e r n e l enter");
    let shown = screen(&mut app, 120, 40);
    assert!(shown.contains("names: 1, slices: 104, in all 1.87 ms, longest 18.7 µs"), "{shown}");
    press(&mut app, "/ n v j e t enter *");
    let shown = screen(&mut app, 120, 40);
    assert!(shown.contains("1.97 ms") && shown.contains("104×") && shown.contains("19.8 µs"), "{shown}");
    press(&mut app, "j enter");
    let shown = screen(&mut app, 120, 40);
    assert!(shown.contains("nvjet_tst") && !shown.contains("104×"), "{shown}");
}

/// Chinese text of the view below was drawn over the side of the frame.
#[test]
fn no_wide_character_reaches_into_a_frame() {
    let mut app =
        App::new(opened(&[LAUNCH_BOUND]), stratoscope::tui::Settings { lang: diagnosis::i18n::Lang::Zh, ..settings() });
    buffer(&mut app, 120, 40);
    press(&mut app, "E");
    let buf = buffer(&mut app, 120, 40);
    let side = |y: u16| (1..60).find(|x| ["│", "┌"].contains(&buf[(*x, y)].symbol()));
    let (top, x) = (0..40).find_map(|y| Some((y, side(y).filter(|x| buf[(*x, y)].symbol() == "┌")?))).unwrap();
    let inside: Vec<u16> = (top + 1..40).take_while(|y| buf[(x, *y)].symbol() == "│").collect();
    assert!(inside.len() > 20, "{inside:?}");
    assert!(inside.iter().all(|y| text::width(buf[(x - 1, *y)].symbol()) < 2));
}

#[test]
fn one_key_says_what_a_rule_means_with_this_captures_values() {
    for keys in ["3 E", "1 E", ": r u l e space R T - 1 4 enter"] {
        let mut app = app(LAUNCH_BOUND);
        screen(&mut app, 120, 40);
        for name in keys.split(' ') {
            press(&mut app, name);
            screen(&mut app, 120, 40);
        }
        let shown = screen(&mut app, 120, 40);
        assert!(shown.contains("In this capture") && shown.contains("RT-14: Launch-bound"), "{keys}:\n{shown}");
        press(&mut app, "esc");
        assert!(!screen(&mut app, 120, 40).contains("In this capture"), "{keys}");
    }
    let mut app = app(TENSOR_PARALLEL);
    screen(&mut app, 120, 40);
    press(&mut app, ": r u l e space X enter");
    assert!(screen(&mut app, 120, 40).contains("there is no rule X"));
}
