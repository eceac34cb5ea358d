//! Captures opened for the terminal interface, and what its screens hold.

use std::sync::{Arc, Mutex, PoisonError};

use diagnosis::i18n::Lang;
use model::Trace;
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer};
use stratoscope::tui::{App, Keymap, Opened, Settings, key::Key, text, theme::Depth};

pub use super::{diagnosed, sample};

pub const LAUNCH_BOUND: &str = "launch-bound-eager.json.gz";
pub const TENSOR_PARALLEL: &str = "tensor-parallel-rocm.json.gz";

/// The views with the keys that lead to them.
pub const VIEWS: [(&str, &str); 9] = [
    ("1", "overview"),
    ("2", "timeline"),
    ("3", "findings"),
    ("4", "operators"),
    ("5", "steps"),
    ("6", "ranks"),
    ("7", "import"),
    ("8", "manifest"),
    ("R", "report"),
];

/// A job of two ranks: the same work twice, of which the second is later by its number in the capture only.
pub fn two_ranks() -> Trace {
    let first = sample(TENSOR_PARALLEL);
    let mut second = first.clone();
    second.processes.iter_mut().filter(|process| process.rank.is_some()).for_each(|process| process.rank = Some(1));
    model::trace::join(vec![first, second]).unwrap()
}

/// Two captures, of which the first has two ranks; read once for all tests.
pub fn two_captures() -> Arc<Opened> {
    static READ: std::sync::OnceLock<Arc<Opened>> = std::sync::OnceLock::new();
    let open = || Arc::new(Opened::new(vec![diagnosed(two_ranks()), diagnosed(sample(LAUNCH_BOUND))]));
    Arc::clone(READ.get_or_init(open))
}

/// The samples, read once for all tests.
pub fn opened(samples: &[&'static str]) -> Arc<Opened> {
    static READ: Mutex<Vec<(Vec<&str>, Arc<Opened>)>> = Mutex::new(Vec::new());
    let mut known = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, opened)) = known.iter().find(|(names, _)| names == samples) {
        return Arc::clone(opened);
    }
    let opened = Arc::new(Opened::new(samples.iter().map(|name| diagnosed(sample(name))).collect()));
    known.push((samples.to_vec(), Arc::clone(&opened)));
    opened
}

pub fn settings() -> Settings {
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

pub fn app(sample: &'static str) -> App {
    App::new(opened(&[sample]), settings())
}

pub fn press(app: &mut App, keys: &str) {
    for name in keys.split_whitespace() {
        app.key(Key::parse(name).unwrap_or_else(|| panic!("no key '{name}'")));
    }
}

pub fn buffer(app: &mut App, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| app.draw(frame.buffer_mut())).unwrap();
    terminal.backend().buffer().clone()
}

pub fn rows(buf: &Buffer) -> Vec<String> {
    text::rows(buf, buf.area)
}

pub fn screen(app: &mut App, width: u16, height: u16) -> String {
    rows(&buffer(app, width, height)).join("\n")
}
