//! `strato import`: traces into a capture file, with an account of what was read and what was not.

use std::{
    io::{self, BufWriter, Write},
    path::PathBuf,
    time::Instant,
};

use model::{Severity, Trace, Work};
use report::{columns, document::Align};
use session::{Reading, Session};
use tracing::info;

use super::{
    Global, ended,
    exit::Exit,
    progress::Bar,
    results,
    source::{KernelMetrics, Source},
    target,
    terminal_text::plain,
    unread,
};
use store::{self, Results};

/// Import traces into a capture file and show what was read and what was not.
///
/// A directory is one profiler's output: every file of a known format in it is taken. The file appears only when it is
/// whole. Where a file or a rank of it cannot be read, or nothing of it can be kept, the rest is imported and the exit code is 3.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Trace files, profiler output directories or capture files.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Capture file to write; an earlier capture file of that name is replaced.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Print nothing but errors.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    kernel_metrics: KernelMetrics,
}

pub(super) fn run(global: &Global, arguments: Arguments) -> anyhow::Result<Exit> {
    let Arguments { paths, output, quiet, source: reading, kernel_metrics } = arguments;
    target::check(&output, &paths)?;
    target::check(&output, &kernel_metrics.files)?;
    let memory = reading.memory(Work::Import);
    let reading = Reading { kernel_metrics: kernel_metrics.files, memory, ..reading.reading() };
    let packs = reading.packs()?;
    let bar = Bar::new(global.lang());
    let start = Instant::now();
    let session = Session::open(&paths, &reading)?;
    let done = unread::tell(session.unread());
    let traces = session.into_captures();
    let read = start.elapsed();
    bar.stage("writing", output.display());
    let named: Vec<Results> =
        traces.iter().map(|t| Results { ops: results::ops(t, &packs), ..Results::default() }).collect();
    ended::whole(|| store::save_results(&output, &traces.iter().zip(&named).collect::<Vec<_>>()))?;
    drop(bar);
    let slices: usize = traces.iter().map(Trace::slice_count).sum();
    let written = start.elapsed().saturating_sub(read);
    info!(target: "strato", "{slices} slices read in {read:.2?}, written in {written:.2?}");
    if quiet {
        return Ok(done);
    }
    let stdout = io::stdout();
    let paint = global.paints(&stdout);
    let mut out = BufWriter::new(stdout.lock());
    for (trace, number) in traces.iter().zip(1..) {
        account(&mut out, number, trace, paint)?;
    }
    writeln!(out, "wrote {} ({slices} slices)", plain(&output.display().to_string()))?;
    out.flush()?;
    Ok(done)
}

fn account(out: &mut dyn Write, number: usize, trace: &Trace, paint: bool) -> io::Result<()> {
    writeln!(out, "capture {number}: {} [{}]", plain(&trace.source), plain(&trace.format))?;
    let ledger: Vec<Vec<String>> = trace
        .ledger
        .iter()
        .map(|r| vec![r.category.clone(), r.read.to_string(), r.kept.to_string(), duration(r.time_ns), r.note.clone()])
        .collect();
    if !ledger.is_empty() {
        writeln!(out)?;
        let align = [Align::Left, Align::Right, Align::Right, Align::Right, Align::Left];
        columns::write(out, &["category", "read", "kept", "time", "note"], &align, &ledger)?;
    }
    let mut stats: Vec<_> = trace.stats.iter().collect();
    stats.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.name.cmp(&b.name)));
    if !stats.is_empty() {
        writeln!(out)?;
    }
    for stat in stats {
        let example = stat.example.as_deref().map(|e| format!("  e.g. {}", plain(e))).unwrap_or_default();
        let severity = severity(stat.severity, paint);
        writeln!(out, "{severity}  {} {}{example}", stat.count, plain(&stat.name))?;
    }
    writeln!(out)
}

/// The severity's name in a field of nine cells, red where something was lost and yellow where something is unusual.
fn severity(severity: Severity, paint: bool) -> String {
    let name = format!("{:<9}", severity.name());
    let color = match severity {
        Severity::Info => None,
        Severity::Notice => Some(33),
        Severity::DataLoss | Severity::Error => Some(31),
    };
    match color.filter(|_| paint) {
        Some(color) => format!("\u{1b}[{color}m{name}\u{1b}[0m"),
        None => name,
    }
}

/// Nanoseconds in the largest unit of which there is at least one, cut to three decimals.
fn duration(ns: i64) -> String {
    let (unit, name) = match ns.unsigned_abs() {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (1_000, "µs"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}.{:03} {name}", ns.unsigned_abs() / unit, ns.unsigned_abs() % unit / (unit / 1000))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use model::{TraceBuilder, TraceSink};

    use super::*;

    #[test]
    fn durations_keep_their_unit() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (-1_500, "-1.500 µs"),
            (2_000_999, "2.000 ms"),
            (i64::MAX, "9223372036.854 s"),
            (i64::MIN, "-9223372036.854 s"),
        ];
        for (ns, expected) in cases {
            assert_eq!(duration(ns), expected);
        }
    }

    #[test]
    fn the_account_shows_losses_first_and_neutralises_names() {
        let mut b = TraceBuilder::new("a\u{1b}[2J.json", "kineto");
        b.ledger("kernel", 10, 8, 12_345, "slices on device queues");
        b.stat("kineto.odd", Severity::Info, 1, None);
        b.stat("kineto.truncated", Severity::DataLoss, 2, Some("byte 77"));
        let mut out = Vec::new();
        account(&mut out, 1, &b.finish(), false).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "capture 1: a\\u{1b}[2J.json [kineto]\n\n\
            category  read  kept       time  note\n\
            --------  ----  ----  ---------  -----------------------\n\
            kernel      10     8  12.345 µs  slices on device queues\n\n\
            data_loss  2 kineto.truncated  e.g. byte 77\n\
            info       1 kineto.odd\n\n";
        assert_eq!(text, expected);
    }
}
