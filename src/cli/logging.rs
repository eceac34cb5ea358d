//! What the program says of its own work: to stderr with `-v`, to a file with `--log-file`, as a trace with `--self-trace`.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use session::progress::{NOTE, PROGRESS, STAGE};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{LevelFilter, Targets},
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::tui::terminal;

use super::{
    exit::Usage,
    progress::Shown,
    self_trace::{self, SelfTrace},
    terminal_text::plain,
};

/// Options of what the program says of its own work.
#[derive(Clone, Debug, clap::Args)]
pub struct Logging {
    /// Say on stderr what is being done; twice for details. The variable RUST_LOG chooses more finely.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Write what is being done to this file, with times.
    #[arg(long, global = true, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// Write a capture of this program's own work, for 'strato view'.
    #[arg(long, global = true, value_name = "FILE")]
    self_trace: Option<PathBuf>,
}

/// Ends the trace of the program itself, if one is written.
#[derive(Default)]
pub struct Ending(Option<(Arc<SelfTrace>, PathBuf)>);

impl Ending {
    /// Writes the capture of the program's own work.
    ///
    /// # Errors
    /// Those of the file.
    pub fn finish(self) -> anyhow::Result<()> {
        let Some((trace, file)) = self.0 else { return Ok(()) };
        Ok(store::save(&file, &[trace.capture()])?)
    }
}

impl Logging {
    /// Whether what is being done is said on stderr.
    pub fn is_verbose(&self) -> bool {
        self.verbose > 0
    }

    /// Subscribes to what the program tells of its work. A second call changes nothing.
    ///
    /// # Errors
    /// A file that cannot be written, and a filter in RUST_LOG that cannot be read.
    pub fn start(&self) -> anyhow::Result<Ending> {
        let ours = Targets::new().with_targets([
            (STAGE, LevelFilter::INFO),
            (PROGRESS, LevelFilter::TRACE),
            (NOTE, LevelFilter::WARN),
        ]);
        let bars = Shown.with_filter(ours);
        let stderr = fmt::layer().with_writer(Sanitised::<Stderr>::default()).with_ansi(false);
        let stderr = stderr.without_time().with_target(self.verbose > 1).with_filter(self.filter(self.verbose)?);
        for path in self.log_file.iter().chain(&self.self_trace) {
            refuse_capture(path)?;
        }
        let file = match &self.log_file {
            None => None,
            Some(path) => {
                let file = File::options().create(true).append(true).open(path).map_err(|e| {
                    Usage(format!("cannot write to '{}': {e}; choose another --log-file", path.display()))
                })?;
                let layer = fmt::layer().with_writer(Sanitised(Arc::new(file))).with_ansi(false);
                Some(layer.with_filter(self.filter(self.verbose.max(1))?))
            }
        };
        let own = self.self_trace.as_ref().map(|path| (Arc::new(SelfTrace::new()), path.clone()));
        let spans = own.as_ref().map(|(trace, _)| {
            let own = Targets::new().with_target("strato", LevelFilter::INFO);
            self_trace::Spans(Arc::clone(trace)).with_filter(own)
        });
        drop(Registry::default().with(bars).with(stderr).with(file).with(spans).try_init());
        Ok(Ending(own))
    }

    /// What is let through: `RUST_LOG` where it is set, else what so many `-v` ask for. Progress is for bars, and notes are said anyway.
    fn filter(&self, verbose: u8) -> anyhow::Result<EnvFilter> {
        let level = match verbose {
            0 => "off",
            1 => "strato=info",
            _ => "strato=debug",
        };
        let asked = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
        let directives = asked.unwrap_or_else(|| level.to_owned());
        let filter = EnvFilter::try_new(format!("{directives},{PROGRESS}=off,{NOTE}=off"));
        Ok(filter.map_err(|e| Usage(format!("RUST_LOG '{directives}' is no filter: {e}; write it as strato=debug")))?)
    }
}

/// A slip of the pen must not cost a capture: what the program says of itself never replaces or grows one.
fn refuse_capture(path: &Path) -> Result<(), Usage> {
    let is_trace = path.is_file()
        && (store::is_capture(path).unwrap_or(false)
            || parsers::detect::detect(path, &parsers::ReadOptions::default()).is_ok());
    if is_trace {
        let path = path.display();
        return Err(Usage(format!("will not write to '{path}', which is a trace; choose another name")));
    }
    Ok(())
}

/// Where lines go whose texts may come from a trace: nothing in them moves a cursor.
#[derive(Default)]
struct Sanitised<T>(T);

#[derive(Clone, Copy, Default)]
struct Stderr;

/// A line on its way.
struct Line<W>(W);

impl<W: Write> Write for Line<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(plain(text.trim_end_matches('\n')).as_bytes())?;
        self.0.write_all(b"\n")?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<'a> MakeWriter<'a> for Sanitised<Stderr> {
    type Writer = Line<Box<dyn Write>>;

    fn make_writer(&'a self) -> Self::Writer {
        // A line under the terminal interface would break its picture; a log file has it all the same.
        Line(if terminal::is_taken() { Box::new(io::sink()) } else { Box::new(io::stderr()) })
    }
}

impl<'a> MakeWriter<'a> for Sanitised<Arc<File>> {
    type Writer = Line<Arc<File>>;

    fn make_writer(&'a self) -> Self::Writer {
        Line(Arc::clone(&self.0))
    }
}
