//! Every action is reached by its keys, by the palette and by the mouse, and all of them do the same; and what the program says
//! of its keys is what they do.

use std::{fmt::Write, path::Path};

use stratoscope::tui::{
    App, Keymap, Settings,
    action::{Action, Scope},
    app::Request,
    key::Key,
    view::Point,
};

use crate::common::pair::{Known, compared};
use crate::common::screen::{
    LAUNCH_BOUND, TENSOR_PARALLEL, VIEWS, app, buffer, opened, press, rows, screen, settings, two_captures,
};

const SIZE: (u16, u16) = (100, 30);
/// States that together offer everything that can be done with captures: keys that lead there from the start. Those after a
/// bar are of a pair that is compared.
const STATES: [&str; 13] = [
    "1",
    "> 1",
    "2 ] ]",
    "2 j j",
    "2 ] b",
    "2 ] / n o r m enter n",
    "3",
    "4",
    "5",
    "6 1",
    "| 1",
    "| 9 p p",
    "| 9 p p p",
];

fn start(state: &str) -> App {
    let of_pair = state.strip_prefix("| ");
    let mut app = App::new(of_pair.map_or_else(two_captures, |_| compared(Known::All)), settings());
    buffer(&mut app, SIZE.0, SIZE.1);
    for key in of_pair.unwrap_or(state).split(' ') {
        press(&mut app, key);
        buffer(&mut app, SIZE.0, SIZE.1);
    }
    app
}

/// What has become of it: what is asked of the terminal, and what is seen.
fn after(mut app: App, request: Option<Request>) -> (Option<Request>, String) {
    let seen = screen(&mut app, SIZE.0, SIZE.1);
    (request, seen)
}

/// The cell at which a text stands on a line.
fn find(shown: &[String], line: usize, text: &str) -> (u16, u16) {
    let at = shown[line].find(text).unwrap_or_else(|| panic!("no '{text}' in '{}'", shown[line]));
    (shown[line][..at].chars().count() as u16, line as u16)
}

/// Clicks on the footer's way to the palette, turns the wheel until the action is seen, and clicks on it.
fn by_mouse(app: &mut App, action: Action) -> Option<Request> {
    let shown = rows(&buffer(app, SIZE.0, SIZE.1));
    let (x, y) = find(&shown, usize::from(SIZE.1) - 1, ": commands");
    assert_eq!(app.point(Point::Click(x, y)), None);
    for _ in 0..=Action::ALL.len() {
        let shown = rows(&buffer(app, SIZE.0, SIZE.1));
        // An entry stands after the frame, the mark of the selected one, and its keys.
        let is_entry = |row: &&String| {
            let inside = row.split('│').nth(1).unwrap_or("");
            inside.chars().skip(19).collect::<String>().trim() == action.text().en
        };
        if let Some(row) = shown.iter().find(is_entry) {
            let y = shown.iter().position(|other| other == row).unwrap();
            let (x, y) = find(&shown, y, action.text().en);
            return app.point(Point::Click(x, y));
        }
        app.point(Point::Wheel(SIZE.0 / 2, SIZE.1 / 2, false));
    }
    panic!("{} is not in the palette", action.id());
}

/// Types the action's name into the palette, goes down to it, and takes it.
fn by_palette(app: &mut App, action: Action) -> Option<Request> {
    press(app, ":");
    for letter in action.id().chars() {
        app.key(Key::parse(&letter.to_string()).unwrap());
    }
    let holds = |other: &&Action| {
        let text = other.text();
        [other.id(), text.en, text.zh].iter().any(|text| text.to_lowercase().contains(action.id()))
    };
    let above = Action::ALL.iter().filter(holds).position(|other| *other == action).unwrap();
    (0..above).for_each(|_| press(app, "down"));
    app.key(Key::parse("enter").unwrap())
}

#[test]
fn every_action_is_reached_by_key_by_palette_and_by_mouse() {
    let keymap = Keymap::load(None).unwrap();
    for action in Action::ALL.iter().copied().filter(|action| action.scope() != Scope::Live) {
        let state = STATES.into_iter().find(|state| start(state).actions().contains(&action));
        let state = state.unwrap_or_else(|| panic!("no state offers {}", action.id()));
        let mut straight = start(state);
        let request = straight.act(action);
        let expected = after(straight, request);
        assert!(!expected.1.contains("means nothing here now"), "{} in {state}", action.id());
        let keys = keymap.keys(action);
        assert!(!keys.is_empty(), "{} has no key", action.id());
        for key in keys {
            let mut app = start(state);
            let request = app.key(*key);
            assert_eq!(after(app, request), expected, "{} by {key} in {state}", action.id());
        }
        let mut app = start(state);
        let request = by_palette(&mut app, action);
        assert_eq!(after(app, request), expected, "{} by palette in {state}", action.id());
        let mut app = start(state);
        let request = by_mouse(&mut app, action);
        assert_eq!(after(app, request), expected, "{} by mouse in {state}", action.id());
    }
}

/// What is offered in a view does something there, and the footer, the tabs and the rows of the help are clicked as well.
#[test]
fn what_is_offered_does_something_wherever_it_is_offered() {
    let keymap = Keymap::load(None).unwrap();
    let mut app = app(TENSOR_PARALLEL);
    for (view, _) in VIEWS {
        for action in Action::ALL {
            press(&mut app, view);
            buffer(&mut app, SIZE.0, SIZE.1);
            if !app.actions().contains(action) {
                continue;
            }
            app.key(keymap.keys(*action)[0]);
            let shown = screen(&mut app, SIZE.0, SIZE.1);
            assert!(!shown.contains("means nothing here now"), "{} in view {view}", action.id());
            if matches!(action, Action::Help | Action::Palette | Action::Search) {
                press(&mut app, "esc");
            }
        }
    }
}

#[test]
fn what_the_footer_the_tabs_and_the_help_show_can_be_clicked() {
    let mut app = app(LAUNCH_BOUND);
    let shown = rows(&buffer(&mut app, 120, 40));
    let (x, y) = find(&shown, 39, "quit");
    assert_eq!(app.point(Point::Click(x, y)), Some(Request::Quit));
    for (_, name) in VIEWS {
        let (x, y) = find(&shown, 0, name);
        app.point(Point::Click(x, y));
        let tabs = buffer(&mut app, 120, 40);
        let chosen: String = (0..120u16)
            .map(|x| tabs.cell((x, 0)).unwrap())
            .filter(|cell| cell.modifier.contains(ratatui::style::Modifier::REVERSED))
            .map(|cell| cell.symbol())
            .collect();
        assert!(chosen.ends_with(name), "'{chosen}' after a click on {name}");
    }
    press(&mut app, "1 ?");
    let help = rows(&buffer(&mut app, 120, 40));
    let entry = format!("{:<15} findings", "3");
    let line = help.iter().position(|row| row.contains(&entry)).unwrap();
    let (x, y) = find(&help, line, &entry);
    app.point(Point::Click(x, y));
    assert!(screen(&mut app, 120, 80).contains("What to do"));
}

/// Help and palette name every action with all of its keys, also with those of a user; nothing is cut at 80 columns.
#[test]
fn help_footer_and_palette_say_what_the_keymap_says() {
    let user = "[global]\nquit = [\"Q\", \"f10\"]\nsearch = []\n[timeline]\nzoom_in = [\"z\"]\n";
    for keymap in [Keymap::load(None).unwrap(), Keymap::load(Some(user)).unwrap()] {
        let mut app = App::new(opened(&[LAUNCH_BOUND]), Settings { keymap: keymap.clone(), ..settings() });
        buffer(&mut app, 80, 24);
        press(&mut app, "?");
        let mut help: Vec<String> = Vec::new();
        for _ in 0..Action::ALL.len() {
            for row in rows(&buffer(&mut app, 80, 24)) {
                let inside: Vec<char> = row.split('│').nth(1).unwrap_or("").chars().collect();
                help.extend(inside.chunks(38).map(|half| half.iter().collect::<String>().trim().to_owned()));
            }
            press(&mut app, "down");
        }
        assert!(help.iter().all(|entry| !entry.contains('…')), "{help:?}");
        for action in Action::ALL {
            let keys: Vec<String> = keymap.keys(*action).iter().map(Key::to_string).collect();
            let entry = format!("{:<15} {}", keys.join(" "), action.text().en);
            assert!(help.contains(&entry.trim().to_owned()), "'{entry}' is not in the help");
        }
        press(&mut app, "esc 2");
        let footer = rows(&buffer(&mut app, 200, 24)).pop().unwrap();
        let first = |action: Action| keymap.keys(action)[0].to_string();
        for action in [Action::ZoomIn, Action::Quit, Action::Help] {
            let said = format!("{} {}", first(action), action.text().en);
            assert!(footer.contains(&said), "'{said}' is not in '{footer}'");
        }
    }
}

/// `docs/keys.md` is made from the actions and the keymap; `STRATO_BLESS=1` writes it.
#[test]
fn the_page_of_keys_is_what_the_program_does() {
    let keymap = Keymap::load(None).unwrap();
    let mut page = String::from(
        "# Keys of `strato view`, `strato run` and `strato top`\n\nMade from the program: `strato view --print-keys` prints the keymap to change.\n`ctrl-c` always quits.\n",
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("docs/keys.md");
    if std::env::var_os("STRATO_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap_or_default(),
        page,
        "run with STRATO_BLESS=1 and read the difference"
    );
}
