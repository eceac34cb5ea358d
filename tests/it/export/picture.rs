//! What the terminal's timeline shows, as a picture.

use diagnosis::i18n::Lang;
use ratatui::{Terminal, backend::TestBackend};
use stratoscope::tui::{App, Keymap, Opened, Settings, app::Request, key::Key, theme::Depth};

use crate::common;

#[test]
fn the_timeline_of_the_terminal_is_written_as_a_picture_of_what_is_seen() {
    let capture = common::diagnosed(common::sample("launch-bound-eager.json.gz"));
    let keymap = Keymap::load(None).unwrap();
    let settings = Settings {
        lang: Lang::Zh,
        theme: "dark".into(),
        depth: Depth::True,
        ascii: false,
        mouse: true,
        keymap,
        start: Default::default(),
    };
    let mut app = App::new(Opened::new(vec![capture]), settings);
    let mut terminal = Terminal::new(TestBackend::new(120, 30)).unwrap();
    let mut picture = |keys: &[&str]| {
        for key in keys {
            app.key(Key::parse(key).unwrap());
            terminal.draw(|frame| app.draw(frame.buffer_mut())).unwrap();
        }
        let Some(Request::Save(files)) = app.key(Key::parse("e").unwrap()) else { panic!("nothing is written") };
        files.into_iter().find(|file| file.extension == "svg").expect("a picture").text
    };
    let all = picture(&["2"]);
    assert!(all.starts_with("<svg") && all.trim_end().ends_with("</svg>") && all.contains("模拟数据"));
    let marks = |picture: &str| picture.matches("<rect class=\"k").count();
    let near = picture(&["+", "+", "+", "+"]);
    assert!(marks(&near) > 3 && marks(&near) < marks(&all), "{} of {}", marks(&near), marks(&all));
}
