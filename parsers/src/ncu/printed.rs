//! The details page as `ncu` prints it for people: a line per kernel, and below it sections with a metric per line. Source: texts of
//! ncu 2022 to 2024.

use std::path::Path;

use model::{Conditions, KernelSummary, Severity, TraceSink};

use super::{Kernels, take, value};
use crate::{
    Place, Progress, ReadError,
    lanes::Account,
    lines::Lines,
    printed_table::{cell, dashes},
};

/// Longest line that is read whole: names of kernels have some KiB.
const LINE: usize = 64 << 10;
/// What a section begins with.
const SECTION: &str = "Section: ";
/// The name of the first column, where the columns have names.
const LABEL: &str = "Metric Name";

/// The line that begins a kernel: its name, with its shape in newer versions, or the time at which it was measured in older ones:
/// `  gemm(float *) (117, 1, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 8.6`, `  gemm(float *), 2024-Jul-13 20:44:08, Context 1, Stream 7`.
fn heading(line: &str) -> Option<&str> {
    let said = line.strip_prefix("  ").filter(|said| !said.starts_with(' '))?;
    let (kernel, rest) = said.rsplit_once(", Context ")?;
    rest.contains(", Stream ").then_some(kernel)
}

/// The name of a kernel, and its grid and block.
fn kernel(heading: &str) -> (&str, [Option<[u32; 3]>; 2]) {
    let is_time =
        |text: &str| text.len() == 20 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-: ".contains(&b));
    let name = heading.rsplit_once(", ").filter(|(_, time)| is_time(time)).map_or(heading, |(name, _)| name);
    let shaped = name.rsplit_once(")x(").and_then(|(before, block)| {
        let (name, grid) = before.rsplit_once(" (")?;
        let block = value::shape(&format!("({block}"))?;
        Some((name, [Some(value::shape(&format!("({grid})"))?), Some(block)]))
    });
    shaped.unwrap_or((name, [None; 2]))
}

/// Whether the first bytes of a file hold a kernel with a section.
pub(super) fn matches(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    lines.any(|line| heading(line).is_some()) && lines.any(|line| line.trim_start().starts_with(SECTION))
}

/// Reads every kernel of the file.
pub(super) fn read(
    path: &Path,
    kernels: &mut Kernels,
    sink: &mut dyn TraceSink,
    progress: Progress<'_>,
) -> Result<(), ReadError> {
    let mut lines = Lines::open(path, LINE)?;
    let (mut section, mut columns) = (String::new(), None::<Vec<(usize, usize)>>);
    let (mut account, mut inside) = (Account::default(), false);
    while let Some(line) = lines.next()? {
        let line = String::from_utf8_lossy(line).trim_end().to_owned();
        if let Some(heading) = heading(&line) {
            let (name, [grid, block]) = kernel(heading);
            let known = KernelSummary::of(sink.intern(name), Conditions::Isolated);
            kernels.known.push((KernelSummary { grid, block, ..known }, [None; 2]));
            (section, columns, inside) = (String::new(), None, false);
        } else if let Some(name) = line.trim_start().strip_prefix(SECTION) {
            (section, columns, inside) = (name.to_owned(), None, false);
        } else if let Some(spans) = dashes(&line) {
            columns = Some(spans);
            inside = true;
        } else if line.is_empty() {
            inside = false;
        } else if let (Some([name, unit, number]), true) = (columns.as_deref(), inside) {
            let label = cell(&line, *name, false);
            let Some((summary, cycles)) = kernels.known.last_mut().filter(|_| !label.is_empty() && label != LABEL)
            else {
                continue;
            };
            account.read += 1;
            let (unit, text) = (cell(&line, *unit, false), cell(&line, *number, true));
            if let Some(time) = take(sink, summary, cycles, &[&section, &label, &unit, &text]) {
                account.keep(0, time);
            }
        }
        let (done, total) = lines.progress();
        progress(done, total);
    }
    if kernels.known.is_empty() {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: "the header of a CSV page of ncu, or a kernel with its sections".to_owned(),
            next: "print it again with 'ncu --import FILE --page raw --csv'".to_owned(),
        });
    }
    account.tell(sink, super::FORMAT.id, "rows", "measurements of kernels; rules of the tool are not kept");
    if let Some(why) = lines.damage() {
        sink.stat("ncu.damaged_file", Severity::DataLoss, 1, Some(why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use crate::ReadOptions;
    use model::{Metric, TraceBuilder};

    /// What ncu prints unless it is asked for CSV was a text of no known format.
    #[test]
    fn pages_that_ncu_prints_are_measurements_of_kernels() {
        let rule = "    ------------------------------- --------------- ---------------";
        let text = format!(
            "==PROF== Profiling \"gemm\" - 1: 0%....100% - 8 passes\n[7] python3@127.0.0.1\n  gemm<int, 2>(float *), 2024-Jul-13 20:44:08, Context 1, Stream 7\n\n\
             \x20   NVTX Start/End Ranges:\n    Section: Command line profiler metrics\n{rule}\n\
             \x20   gpu__time_duration.sum                  usecond            5.98\n\
             \x20   launch__thing                             block               3\n{rule}\n\n\
             \x20 add(int) (117, 1, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 8.6\n    Section: GPU Speed Of Light Throughput\n{rule}\n\
             \x20   Metric Name                         Metric Unit    Metric Value\n{rule}\n\
             \x20   Memory Throughput                             %           41.50\n\
             \x20   Duration                                     us            2.50\n{rule}\n\n    OPT   Look at memory first.\n"
        );
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ncu.txt");
        std::fs::write(&path, text).unwrap();
        let mut builder = TraceBuilder::new("t", "");
        assert_eq!(crate::detect::read(&path, &mut builder, &ReadOptions::default()).unwrap().id, "ncu");
        let trace = builder.finish();
        let found: Vec<_> =
            trace.summaries.iter().map(|s| (trace.strings.get(s.kernel), s.total, s.grid, s.block)).collect();
        let expected = [
            ("gemm<int, 2>(float *)", Some(5_980), None, None),
            ("add(int)", Some(2_500), Some([117, 1, 1]), Some([128, 1, 1])),
        ];
        assert_eq!(found, expected);
        assert_eq!(trace.summaries[1].metric(Metric::Memory), Some(41.5));
        assert_eq!(trace.summaries[0].counters.len(), 1);
        // The same page as CSV has the same measurements.
        let page = directory.path().join("p.details.txt");
        let csv = directory.path().join("p.details.csv");
        std::fs::write(&csv, "").unwrap();
        assert_eq!((super::super::FORMAT.lead)(&page), Some(csv));
    }
}
