//! Sums by operator, on their own: `op_statistic_*.csv`, tables of operators exported without the times at which they
//! started (`op_summary_*.csv` of an older export), and those of MindInsight (MindSpore before 2.0):
//! `aicore_intermediate_*_detail.csv` with the mean time of each operator of a step, `aicore_intermediate_*_type.csv`, and
//! `aicpu_intermediate_*.csv`. Nothing can be said of steps, gaps or overlap, and a sum must not be
//! compared with elapsed time: tasks run side by side.

use std::path::{Path, PathBuf};

use model::{Conditions, KernelSummary, Ns, Provenance, Severity, TraceSink};

use crate::{
    Format, Head, Match, Place, ReadError, ReadOptions,
    csv_table::{self, Row, Table},
    lanes::Account,
};

/// The format.
pub const FORMAT: Format = Format {
    id: "op-statistic",
    name: "Ascend sums by operator (op_statistic, op_summary without start times)",
    matches,
    read,
    lead,
};

/// Columns of a table with a row per type of operator.
const BY_TYPE: [&str; 3] = ["op type", "count", "total time(us)"];
/// Columns of a table with a row per task.
const BY_TASK: [&str; 3] = ["op name", "op type", "task duration(us)"];
/// Columns of MindInsight's tables: a row per operator of the graph, per type, and per operator of the AI CPU; times are ms.
const BY_NAME: [&str; 2] = ["full_op_name", "execution_time"];
const BY_KIND: [&str; 3] = ["op_type", "execution_time", "execution_frequency"];
const ON_CPU: [&str; 3] = ["serial_number", "kernel_type", "total_time"];
/// What the name of an operator of the AI CPU ends with: it shares its name with those of the AI Core.
const AI_CPU: &str = " (AI CPU)";

/// The columns that are read, in the order in which [`take`] counts them: of one table or of the other.
const COLUMNS: [&str; 6] = [
    "op name|op type|full_op_name|op_type|kernel_type",
    "count|execution_frequency",
    "total time(us)|task duration(us)|total_time|execution_time",
    "min time(us)",
    "max time(us)",
    "core type|task type",
];

fn is_header(header: &[String]) -> bool {
    csv_table::has_all(header, &BY_TYPE) || csv_table::has_all(header, &BY_TASK) || is_mindinsight(header)
}

fn is_mindinsight(header: &[String]) -> bool {
    [&BY_NAME[..], &BY_KIND, &ON_CPU].iter().any(|marks| csv_table::has_all(header, marks))
}

/// The type of an operator of a graph: `MatMul` of `Default/network/dense/MatMul-op12`.
fn kind(name: &str) -> &str {
    let last = name.rsplit('/').next().unwrap_or(name);
    let numbered = last.rsplit_once("-op").filter(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    numbered.map_or(last, |(kind, _)| kind)
}

/// The tables of MindInsight that are read with another one beside them: sums by type with those by name, which they are made of,
/// and the AI CPU's with the AI Core's.
fn lead(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let rank = name.strip_prefix("aicore_intermediate_").and_then(|rest| rest.strip_suffix("_type.csv"));
    let rank = rank.or_else(|| name.strip_prefix("aicpu_intermediate_")?.strip_suffix(".csv"))?;
    let lead = path.with_file_name(format!("aicore_intermediate_{rank}_detail.csv"));
    lead.is_file().then_some(lead)
}

/// The table of the AI CPU next to one of the AI Core.
fn of_cpu(path: &Path) -> Option<PathBuf> {
    let rank = path.file_name()?.to_str()?.strip_prefix("aicore_intermediate_")?.strip_suffix("_detail.csv")?;
    Some(path.with_file_name(format!("aicpu_intermediate_{rank}.csv"))).filter(|path| path.is_file())
}

/// Length of a tick of the step trace, ns: MindInsight divides its counter by 1e5 for milliseconds.
const TICK: Ns = 10;

/// The mean time of the steps in the step trace next to a table, ns. What is not a step has the number 0.
fn step_time(path: &Path, options: &ReadOptions<'_>) -> Option<Ns> {
    let rank = path.file_name()?.to_str()?.strip_prefix("aicore_intermediate_")?.strip_suffix("_detail.csv")?;
    let beside = path.with_file_name(format!("step_trace_raw_{rank}_detail_time.csv"));
    let mut table =
        Table::open_lines(&beside, |header| csv_table::has_all(header, &["step_num", "start_point", "total"])).ok()?;
    table.select(&["step_num", "total"]);
    let (mut steps, mut sum): (Ns, Ns) = (0, 0);
    while let Some(row) = table.next(options.progress).ok()? {
        let total = row.int(0).filter(|number| *number > 0).and(row.int(1)).filter(|ticks| *ticks > 0);
        if let Some(ticks) = total {
            (steps, sum) = (steps + 1, sum.saturating_add(ticks.saturating_mul(TICK)));
        }
    }
    (steps > 0).then(|| sum / steps)
}

fn matches(head: &Head<'_>) -> Match {
    // A table that also says when its tasks started is a timeline, and certainly so.
    if is_header(&csv_table::first_header(head.bytes)) { Match::Possible } else { Match::No }
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let mut rows = table(path, sink, options)?;
    if let Some(beside) = of_cpu(path) {
        match table(&beside, sink, options) {
            Ok(of_cpu) => {
                (rows.read, rows.kept) = (rows.read + of_cpu.read, rows.kept + of_cpu.kept);
                (rows.time, rows.incomplete) =
                    (rows.time.saturating_add(of_cpu.time), rows.incomplete + of_cpu.incomplete);
            }
            Err(error) => sink.stat("ascend.unreadable_file", Severity::DataLoss, 1, Some(&error.to_string())),
        }
    }
    if rows.kept == 0 {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: "rows with an operator's count and total time".to_owned(),
            next: "give the timeline, the database or op_summary of the same profile instead".to_owned(),
        });
    }
    rows.tell(sink, "ascend", "rows", "sums of operators");
    if let Some(step) = step_time(path, options) {
        sink.manifest("totals.step_ns", &step.to_string(), Provenance::Observed);
    }
    for (key, value) in [
        ("evidence.grade", "totals"),
        ("hardware.vendor", "ascend"),
        ("measurement.traced", "ascend"),
        ("ascend.form", "sums by operator"),
    ] {
        sink.manifest(key, value, Provenance::Observed);
    }
    Ok(())
}

/// Reads the rows of a table.
fn table(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<Account, ReadError> {
    let mut table = Table::open_lines(path, is_header)?;
    let has = |name: &str| table.header().iter().any(|column| column == name);
    let form = Form {
        counted: has("count") || has("execution_frequency"),
        unit: if is_mindinsight(table.header()) { 6 } else { 3 },
        by_name: has(BY_NAME[0]),
        on_cpu: csv_table::has_all(table.header(), &ON_CPU),
    };
    table.select(&COLUMNS);
    let mut rows = Account::default();
    while let Some(row) = table.next(options.progress)? {
        rows.read += 1;
        match take(sink, row, form) {
            Some(time) => rows.keep(0, time),
            None => rows.incomplete += 1,
        }
    }
    rows.incomplete += table.cut();
    table.tell_damage(sink, "ascend");
    Ok(rows)
}

/// What tells one table's rows from another's.
#[derive(Clone, Copy)]
struct Form {
    /// Whether a row is the sum of several executions.
    counted: bool,
    /// Exponent of the unit of times, in ns.
    unit: i32,
    /// Whether operators are named by their place in the graph.
    by_name: bool,
    /// Whether they ran on the AI CPU.
    on_cpu: bool,
}

/// Adds the sum of a row; its total time.
fn take(sink: &mut dyn TraceSink, row: Row<'_>, form: Form) -> Option<Ns> {
    let counted = form.counted;
    let (name, total) = (row.text(0)?, row.decimal(2, form.unit).filter(|total| *total >= 0)?);
    let name = match form {
        Form { on_cpu: true, .. } => format!("{name}{AI_CPU}").into(),
        Form { by_name: true, .. } => kind(&name).to_owned().into(),
        _ => name,
    };
    let count = if counted { u64::try_from(row.int(1)?).ok()? } else { 1 };
    let range = if counted { row.decimal(3, 3).zip(row.decimal(4, 3)) } else { Some((total, total)) };
    let kernel = sink.intern(&name);
    let summary = KernelSummary { count, total: Some(total), range, ..KernelSummary::of(kernel, Conditions::Run) };
    sink.summary(summary);
    sink.ledger(core_type(row.text(5).as_deref(), form), count, count, total, "part of the sums, by core");
    Some(total)
}

/// The kind of core of a row.
fn core_type(said: Option<&str>, form: Form) -> &str {
    said.unwrap_or(if form.on_cpu { "AI_CPU" } else { "no core type" })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use model::{Trace, TraceBuilder};

    fn import(path: &Path) -> Trace {
        let mut builder = TraceBuilder::new("t", "");
        assert_eq!(crate::detect::read(path, &mut builder, &ReadOptions::default()).unwrap().id, FORMAT.id);
        builder.finish()
    }

    /// MindInsight's tables were refused, although they hold what `op_statistic` does.
    #[test]
    fn operators_of_mindinsight_are_sums_by_type_with_those_of_the_ai_cpu() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let detail = write(
            "aicore_intermediate_0_detail.csv",
            "full_op_name,execution_time\nDefault/a/MatMul-op12,0.25\nDefault/b/MatMul-op7,0.5\nDefault/x,\n",
        );
        let of_type = write(
            "aicore_intermediate_0_type.csv",
            "op_type,execution_time,execution_frequency,percent\nMatMul,0.75,2,100\n",
        );
        let of_cpu = write("aicpu_intermediate_0.csv", "serial_number,kernel_type,total_time\n1,GetNext,0.888\n");
        let sums = |trace: &Trace| -> Vec<(String, u64, Option<Ns>)> {
            trace.summaries.iter().map(|s| (trace.strings.get(s.kernel).to_owned(), s.count, s.total)).collect()
        };
        let matmul = |count, ns| ("MatMul".to_owned(), count, Some(ns));
        let of_ai_cpu = ("GetNext (AI CPU)".to_owned(), 1, Some(888_000));
        assert_eq!(sums(&import(&detail)), [matmul(1, 250_000), matmul(1, 500_000), of_ai_cpu.clone()]);
        assert_eq!(sums(&import(&of_type)), [matmul(2, 750_000)]);
        assert_eq!(sums(&import(&of_cpu)), [of_ai_cpu]);
        // The step trace of the same run says how long a step takes: 2 370 905 and 2 370 907 ticks.
        let steps = "step_num,start_point,end_point,total\n1,10,2370915,2370905\n2,9,8,2370907\n0,0,0,0\n";
        write("step_trace_raw_0_detail_time.csv", steps);
        assert_eq!(import(&detail).manifest.value("totals.step_ns"), Some("23709060"));
        assert_eq!([lead(&of_type), lead(&of_cpu), lead(&detail)], [Some(detail.clone()), Some(detail), None]);
    }
}
