//! Names that were made to do harm: on no screen, in no clipboard and in no file do they act, and every row keeps its cells.

use std::num::NonZeroU16;

use diagnosis::i18n::Lang;
use model::{ImportStat, Provenance, Severity, Trace};
use ratatui::{Terminal, TerminalOptions, Viewport, backend::CrosstermBackend, buffer::Buffer, layout::Rect};
use report::text::acts;
use stratoscope::tui::{App, Opened, Settings, app::Request, clipboard, key::Key, text};

use crate::common::screen::{self, LAUNCH_BOUND, TENSOR_PARALLEL, VIEWS, press, settings};

/// Everything that acts on a terminal, turns text around, hides, or grows: and a megabyte of it.
fn hostile() -> String {
    let acting = "\u{1b}[2J\u{1b}]52;c;AAAA\u{7}\u{1b}]0;title\u{1b}\\\u{9b}31m\r\n\t\u{8}\u{7f}";
    let turning = "\u{202e}evil\u{202c}\u{2066}\u{2069}\u{200f}\u{61c}";
    let hiding = "\u{200b}\u{200d}\u{feff}\u{2060}\u{ad}\u{e0041}";
    let marks = format!("e{}", "\u{301}".repeat(4000));
    let wide = "核ｶﾞ한국어👨\u{200d}👩\u{200d}👧❤\u{fe0f}";
    let markup = "`*_|<b>&\"'[x](y)";
    format!("{acting}{turning}{hiding}{marks}{wide}{markup}{}", "A".repeat(1 << 20))
}

/// A sample in which every text of the capture has become hostile: those that were read after the analysis, so that findings and
/// steps stay, or those before it, so that their names reach classes and findings.
fn spoiled(name: &str, before: bool) -> Opened {
    let hostile = hostile();
    let spoil = |trace: &mut Trace| {
        let mut strings = model::Strings::default();
        for (_, text) in trace.strings.iter().skip(1) {
            strings.intern(&format!("{text}{hostile}"));
        }
        trace.strings = strings;
        trace.source = format!("{}{hostile}", trace.source);
        for key in ["model.name", "hardware.device", "software.engine", "user.note"] {
            trace.manifest.set(key, format!("x{hostile}"), Provenance::Declared);
        }
        for stat in &mut trace.stats {
            stat.example = Some(hostile.clone());
        }
        let (name, example) = (format!("kineto.{hostile}"), Some(hostile.clone()));
        trace.stats.push(ImportStat { name, severity: Severity::DataLoss, count: 3, example });
    };
    let mut trace = screen::sample(name);
    if before {
        spoil(&mut trace);
        return Opened::new(vec![screen::diagnosed(trace)]);
    }
    let (mut trace, analysis, diagnosis) = screen::diagnosed(trace);
    spoil(&mut trace);
    Opened::new(vec![(trace, analysis, diagnosis)])
}

/// Cells hold what shows, and a terminal that is told of them shows the same.
pub fn assert_clean(buf: &Buffer, what: &str) {
    for cell in &buf.content {
        let symbol = cell.symbol();
        assert!(!symbol.chars().any(acts) && symbol.len() <= 24, "{what}: {symbol:?}");
    }
    let area = buf.area;
    let options = TerminalOptions { viewport: Viewport::Fixed(area) };
    let mut bytes = Vec::new();
    let mut terminal = Terminal::with_options(CrosstermBackend::new(&mut bytes), options).unwrap();
    terminal.draw(|frame| frame.buffer_mut().clone_from(buf)).unwrap();
    drop(terminal);
    let cells = |cells| NonZeroU16::new(cells).unwrap();
    let mut parser = vt100::Parser::new(cells(area.height), cells(area.width), 0);
    parser.process(&bytes);
    for (y, row) in text::rows(buf, area).iter().enumerate() {
        // Where terminals disagree on a character's width, everything after it is displaced.
        let shown = parser.screen().contents_between(y as u16, 0, y as u16, area.width);
        let plain = |text: &str| text.chars().filter(|c| c.is_ascii_graphic()).collect::<String>();
        assert_eq!(plain(shown.trim_end()), plain(row), "{what}, row {y}");
    }
}

fn assert_inert(text: &str, what: &str) {
    assert!(!text.chars().any(|c| acts(c) && !matches!(c, '\n' | '\r')), "{what}: acts");
    assert!(!text.replace("\r\n", "\n").contains('\r'), "{what}: a bare return");
}

fn look_at_everything(opened: Opened, lang: Lang) {
    let opened = std::sync::Arc::new(opened);
    for (width, height) in [(80, 24), (120, 40)] {
        let mut app = App::new(std::sync::Arc::clone(&opened), Settings { lang, ..settings() });
        for (key, name) in VIEWS {
            let what = format!("{name} at {width}x{height}");
            for keys in ["", "]", "x", "enter", "b"] {
                press(&mut app, key);
                let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
                app.draw(&mut buf);
                press(&mut app, keys);
                buf.reset();
                app.draw(&mut buf);
                assert_clean(&buf, &what);
                if let Some(Request::Copy(text)) = app.key(Key::parse("y").unwrap()) {
                    assert_inert(&text, &what);
                    let mut out = Vec::new();
                    clipboard::copy(&mut out, &text, false).unwrap();
                    let inside = out.strip_prefix(b"\x1b]52;c;").unwrap().strip_suffix(b"\x1b\\").unwrap();
                    assert!(inside.iter().all(u8::is_ascii_graphic) && inside.len() < 100_000, "{what}");
                }
                if let Some(Request::Save(exports)) = app.key(Key::parse("e").unwrap()) {
                    for export in exports {
                        assert_inert(&export.text, &format!("{what} as {}", export.extension));
                    }
                }
            }
        }
        for over in ["?", ":", "/"] {
            press(&mut app, over);
            let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
            app.draw(&mut buf);
            assert_clean(&buf, over);
            press(&mut app, "esc");
        }
    }
}

#[test]
fn hostile_names_act_nowhere() {
    look_at_everything(spoiled(LAUNCH_BOUND, false), Lang::En);
    look_at_everything(spoiled(TENSOR_PARALLEL, false), Lang::Zh);
}

#[test]
fn hostile_names_that_reach_the_analysis_act_nowhere() {
    look_at_everything(spoiled(TENSOR_PARALLEL, true), Lang::En);
}

#[test]
fn what_is_typed_acts_nowhere() {
    let mut app = screen::app(LAUNCH_BOUND);
    for over in [":", "/"] {
        press(&mut app, over);
        for letter in hostile().chars().take(300) {
            let event = crossterm::event::KeyEvent::new(
                crossterm::event::KeyCode::Char(letter),
                crossterm::event::KeyModifiers::NONE,
            );
            app.key(Key::of(event));
            let mut buf = Buffer::empty(Rect::new(0, 0, 80, 24));
            app.draw(&mut buf);
            assert_clean(&buf, over);
        }
        press(&mut app, "enter esc");
    }
}
