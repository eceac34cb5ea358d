//! `strato export`: captures in forms that other programs read.

use std::{
    io::{self, BufWriter, Write},
    path::PathBuf,
};

use clap::ValueEnum;
use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    Global,
    examine::Examine,
    exit::{Exit, Usage},
    page::{self, Input},
    say, target, whole_file,
};
use crate::tui::{
    App, Keymap, Opened, Settings,
    at::Start,
    export::{picture, screen},
    theme::{Depth, Theme},
};
use diagnosis::i18n::{Lang, Message, Text, Value};
use report::{perfetto, phrase, svg};

/// Columns and rows of a screen that is drawn as a picture.
const SCREEN: (u16, u16) = (120, 38);

/// Write captures for other programs: a trace for the Perfetto UI, a page for a browser, a picture.
///
/// The file appears only when it is whole. Without PATH the reference engine runs on this machine's CPU, and that run is
/// written.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// What to write.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Form,
    /// File to write, instead of the standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Say nothing but errors.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    examine: Examine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Trace events as JSON, every slice: for the Perfetto UI and trace_processor.
    Perfetto,
    /// One page for a browser: the report, its figures, and a timeline of the steps.
    Html,
    /// A picture of the step in the middle of the main class.
    Svg,
    /// A picture of the first screen of the terminal interface.
    Screen,
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    let lang = global.lang();
    if let Some(output) = &arguments.output {
        arguments.examine.files().into_iter().try_for_each(|files| target::check(output, files))?;
        if store::is_capture(output).unwrap_or(false) {
            let output = output.display();
            return Err(Usage(format!("will not replace '{output}', which is a capture; choose another name")).into());
        }
    }
    let (diagnosed, done) = arguments.examine.run(global, arguments.quiet)?;
    let inputs = diagnosed.captures;
    let write = arguments.format.writer(inputs, lang);
    let told = match &arguments.output {
        Some(output) => whole_file::write(output, write)?,
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            let told = write(&mut out)?;
            out.flush()?;
            told
        }
    };
    if !arguments.quiet {
        told.iter().for_each(|line| say(line));
    }
    Ok(done)
}

impl Form {
    /// What writes captures, and says what the file holds that the file itself does not say.
    fn writer(self, inputs: Vec<Input>, lang: Lang) -> impl FnOnce(&mut dyn Write) -> io::Result<Vec<String>> {
        move |out| match self {
            Self::Perfetto => perfetto::write(out, &inputs, lang).map(|written| told(&written, lang)),
            Self::Html => page::write(out, inputs, lang).map(|()| Vec::new()),
            Self::Screen => {
                let mut app = App::new(Opened::new(inputs), settings(lang));
                let mut cells = Buffer::empty(Rect::new(0, 0, SCREEN.0, SCREEN.1));
                app.draw(&mut cells);
                out.write_all(screen::render(&cells).as_bytes()).map(|()| Vec::new())
            }
            Self::Svg => {
                let opened = Opened::new(inputs);
                let drawn = opened.look(opened.leading()).and_then(|look| picture::of_step(&look, lang));
                let none = || io::Error::new(io::ErrorKind::InvalidData, "the capture holds no slices to draw");
                out.write_all(svg::render(&drawn.ok_or_else(none)?, lang).as_bytes()).map(|()| Vec::new())
            }
        }
    }
}

/// How the interface looks where nobody chose.
fn settings(lang: Lang) -> Settings {
    let keymap = Keymap::load(None).unwrap_or_default();
    Settings {
        lang,
        theme: Theme::NAMES[0].to_owned(),
        depth: Depth::True,
        ascii: false,
        mouse: false,
        keymap,
        start: Start::default(),
    }
}

/// What a trace for Perfetto holds, and what it could not hold.
fn told(written: &perfetto::Written, lang: Lang) -> Vec<String> {
    let parts = [
        (
            true,
            Text::new(
                "strato: {n} slices of the capture, {derived} of the analysis, {flows} links, {samples} samples",
                "strato：采集的 {n} 个切片、分析得出的 {derived} 个切片、{flows} 条连线、{samples} 个样本",
            ),
            written.slices,
        ),
        (
            written.beside > 0,
            Text::new(
                "strato: {n} slices overlap others of their track without nesting; they lie on threads beside it (+1, …)",
                "strato：{n} 个切片与同一轨道的其他切片重叠但不嵌套，放在旁边的线程上（+1、…）",
            ),
            written.beside,
        ),
        (
            written.broken_flows > 0,
            Text::new(
                "strato: {n} links are not drawn: they end before they begin, or outside of every slice",
                "strato：{n} 条连线未画出：终点早于起点，或不在任何切片内",
            ),
            written.broken_flows,
        ),
        (
            written.no_numbers > 0,
            Text::new("strato: {n} samples are no numbers and are left out", "strato：{n} 个样本不是数值，已略去"),
            written.no_numbers,
        ),
    ];
    let line = |(_, text, n): (bool, Text, u64)| {
        let counts = [("n", n), ("derived", written.derived), ("flows", written.flows), ("samples", written.samples)];
        phrase::plain(&Message::new(text, counts.map(|(name, n)| (name, Value::Count(n)))), lang)
    };
    parts.into_iter().filter(|(said, ..)| *said).map(line).collect()
}
