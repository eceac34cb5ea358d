#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use model::TraceBuilder;

const TABLE: &str = "\
some line of a log
-------------------------  ------------  ------------  ------------  ------------  ------------  ------------
                     Name    Self CPU %      Self CPU     CPU total     Self CUDA    CUDA total    # of Calls
-------------------------  ------------  ------------  ------------  ------------  ------------  ------------
                 aten::mm         1.91%     787.655ms     960.840ms       15.234s       15.234s         23650
         DDP.forward step         0.00%       0.000us       0.000us        9.051s        9.051s            80
         DDP.forward step         0.35%     142.377ms        3.378s       0.000us        8.886s            80
          Cijk_MT96x96...         0.00%       0.000us       0.000us        5.487s        5.487s          7580
      hipMemcpyWithStream        79.05%       32.547s       32.547s       0.000us       0.000us          1110
                 a broken row
-------------------------  ------------  ------------  ------------  ------------  ------------  ------------
Self CPU time total: 41.174s
Self CUDA time total: 40.244s
";

fn import(text: &str) -> model::Trace {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("profile-summary.txt");
    std::fs::write(&path, text).unwrap();
    let mut builder = TraceBuilder::new("t", "");
    assert_eq!(crate::detect::read(&path, &mut builder, &ReadOptions::default()).unwrap().id, FORMAT.id);
    builder.finish()
}

type Sum<'t> = (Conditions, &'t str, u64, Option<Ns>);

fn sums(trace: &model::Trace) -> Vec<Sum<'_>> {
    let mut all: Vec<_> =
        trace.summaries.iter().map(|s| (s.conditions, trace.strings.get(s.kernel), s.count, s.total)).collect();
    all.sort_by_key(|(.., total)| std::cmp::Reverse(*total));
    all
}

/// A table that people paste into reports was no trace of a known format.
#[test]
fn rows_are_kernels_operators_and_calls_and_a_table_sorted_anew_counts_once() {
    let trace = import(&format!("{TABLE}\n{TABLE}"));
    let expected = [
        (Conditions::Host, "hipMemcpyWithStream", 1_110, Some(32_547_000_000)),
        (Conditions::Operators, "aten::mm", 23_650, Some(15_234_000_000)),
        (Conditions::Run, "Cijk_MT96x96...", 7_580, Some(5_487_000_000)),
        (Conditions::Host, "aten::mm", 23_650, Some(787_655_000)),
        (Conditions::Host, "DDP.forward step", 80, Some(142_377_000)),
    ];
    assert_eq!(sums(&trace), expected);
    assert_eq!(trace.manifest.value("totals.device_ns"), Some("40244000000"));
    assert_eq!(trace.stat("torch-table.incomplete_row"), 2);
    assert_eq!(trace.manifest.value("hardware.vendor"), Some("amd"));
}

/// A table that was saved on Windows had no row, and the lines of stacks were rows that could not be read.
#[test]
fn lines_of_stacks_and_carriage_returns_are_no_rows() {
    let rows = "\
-------------------------  ------------  ------------  ------------  ---------------------------
                     Name      Self CPU     CPU total    # of Calls              Source Location
-------------------------  ------------  ------------  ------------  ---------------------------
                 aten::mm     787.655ms     960.840ms            40  net.py(31): forward
                                                                     train.py(7): <module>

-------------------------  ------------  ------------  ------------  ---------------------------
Self CPU time total: 900.000ms
";
    let trace = import(&rows.replace('\n', "\r\n"));
    assert_eq!(sums(&trace), [(Conditions::Host, "aten::mm", 40, Some(787_655_000))]);
    assert_eq!(trace.stat("torch-table.incomplete_row"), 0);
}

/// A launch was an operator of device time, and the range of an optimizer a kernel beside the operator that it is.
#[test]
fn calls_of_the_runtime_are_no_operators_and_ranges_of_optimizers_no_kernels() {
    let row = |name: &str, host: &str, device: &str| {
        format!("{name:>25}         0.00%  {host:>12}       0.000us  {device:>12}       0.000us             2\n")
    };
    let more = [
        row("cudaLaunchKernel", "5.000ms", "1.000ms"),
        row("Optimizer.step#AdamW.step", "7.000ms", "2.000ms"),
        row("Optimizer.step#AdamW.step", "0.000us", "9.000ms"),
        row("ProfilerStep*", "1.000ms", "0.000us"),
    ];
    let trace = import(&TABLE.replacen("                 a broken row\n", &more.concat(), 1));
    let of = |name: &str| -> Vec<_> {
        sums(&trace).into_iter().filter(|sum| sum.1 == name).map(|sum| (sum.0, sum.3)).collect()
    };
    assert_eq!(of("cudaLaunchKernel"), [(Conditions::Host, Some(5_000_000))]);
    let optimizer = [(Conditions::Host, Some(7_000_000)), (Conditions::Operators, Some(2_000_000))];
    assert_eq!(of("Optimizer.step#AdamW.step"), optimizer);
    assert_eq!(trace.manifest.value("totals.steps"), Some("2"));
}

/// The time of a step stood in the file, and nothing was said of how much of it the device works.
#[test]
fn the_time_of_a_step_around_the_tables_is_kept() {
    for (line, ns) in [
        ("Measured: 12.5 ms/step over 10 steps", Some(12_500_000)),
        ("mean 850us per iteration", Some(850_000)),
        ("  full_step_wall        mean=7161.880 ms  std= 38.657 ms", Some(7_161_880_000)),
        ("[TIMED] step 3: loss = 9.70", None),
        ("saved 30 MB/step", None),
        ("Warmup done in 70.8s (1415.8 ms/step avg)", None),
    ] {
        assert_eq!(step(line), ns, "{line}");
    }
    let trace = import(&format!("Measured: 12.5 ms/step\n{TABLE}"));
    assert_eq!(trace.manifest.value("totals.step_ns"), Some("12500000"));
}

/// vLLM prints the table behind the names of two processes, and the file was "a log that times no step".
#[test]
fn a_table_in_the_log_of_an_engine_is_read_without_the_names_of_processes() {
    let of = |who: &str, line: &str| format!("\u{1b}[1;36m(EngineCore pid=1)\u{1b}[0;0m ({who} pid=2) {line}\n");
    let ranks = ["Worker_TP0", "Worker_TP1"].into_iter();
    let both: String = ranks.flat_map(|who| TABLE.lines().map(move |line| of(who, line))).collect();
    assert_eq!(sums(&import(&both)), sums(&import(TABLE)));
}

#[test]
fn a_table_without_a_device_is_one_of_the_host() {
    let text = TABLE.replace("Self CUDA ", "CUDA-avg  ").replace("CUDA total", "Input x   ");
    let trace = import(&text);
    assert!(trace.summaries.iter().all(|s| s.conditions == Conditions::Host));
}

/// The GEMM of one table stood over the totals of another one: "gemm 2.7 %", which was 99.8 % of its own.
#[test]
fn tables_of_other_totals_are_other_runs_and_notebooks_are_read() {
    let other = TABLE.replace("41.174s", "1.000s").replace("40.244s", "900.000ms").replace("5.487s", "800.000ms");
    let trace = import(&format!("{other}\n{TABLE}"));
    assert_eq!(trace.manifest.value("totals.device_ns"), Some("40244000000"));
    assert_eq!(trace.stat("torch-table.other_runs"), 1);
    let kernel = |trace: &model::Trace| {
        let of = |row: &&model::KernelSummary| trace.strings.get(row.kernel).starts_with("Cijk");
        trace.summaries.iter().filter(of).map(|row| row.total).collect::<Vec<_>>()
    };
    assert_eq!(kernel(&trace), [Some(5_487_000_000)]);
    let quoted: Vec<String> = TABLE.lines().map(|line| format!("      {:?},", format!("{line}\n"))).collect();
    let notebook = format!(
        "{{\n \"cells\": [\n  {{\n   \"cell_type\": \"code\",\n   \"text\": [\n{}\n ]}}]}}\n",
        quoted.join("\n")
    );
    assert_eq!(kernel(&import(&notebook)), [Some(5_487_000_000)]);
}
