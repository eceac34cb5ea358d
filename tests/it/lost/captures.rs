//! Real captures of which parts are taken away, or that something is joined to: of every format some. What a capture still shows
//! of a loss is in the first sentence, and nothing is said that the whole capture does not say. `STRATO_SWEEP=full` takes every
//! share and cuts everywhere; the table is printed with `--nocapture`.

mod damage;

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::Value;

use super::*;
use crate::common::{copy, corpus};
use damage::{
    Damage,
    Kind::{self, Bytes, Events, Lines, Ranks, Tables},
    Whole,
};

/// Which rows nothing in a capture tells of once they are gone.
#[derive(Clone, Copy, PartialEq)]
enum Silent {
    Nothing,
    /// The host's; of the device's, few.
    Host,
    All,
}

const NSYS: Kind =
    Tables(&["CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"], &["CUPTI_ACTIVITY_KIND_RUNTIME"]);

const CAPTURES: [(&str, Kind, Silent); 22] = [
    // Of 120 rows of the host a few launch something.
    ("kineto/tl-vllm-decode-full/graph_execution.json.gz", Events, Silent::Host),
    ("kineto/tl-h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", Events, Silent::Nothing),
    ("kineto/tl-h100/gaunernst_bert-small-uncased__1016001.json.gz", Events, Silent::Nothing),
    ("kineto/tl-mi300/gaunernst_bert-small-uncased__1016001.json.gz", Events, Silent::Nothing),
    ("kineto/tl-mi210-gpuonly/gpu_only_trace.json.gz", Events, Silent::Nothing),
    ("kineto/hta-critical_path/benchmark_result_2869224_1695835535_trace.json.gz", Events, Silent::Nothing),
    ("kineto/tl-mi300-ddp/train_resnet18.json.gz", Events, Silent::Nothing),
    ("kineto/tl-sglang-prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz", Events, Silent::Nothing),
    ("kineto-labelled/gemm/gemm_01_compute_few_tiles.json", Events, Silent::Nothing),
    ("nsys-sqlite/nsysai-healthy/healthy_1pct.sqlite", NSYS, Silent::Nothing),
    ("nsys-sqlite/nsysai-h100-2gpu/h100_2gpu_1s.sqlite", NSYS, Silent::Nothing),
    ("nsys-sqlite/memfusion/report1.sqlite", NSYS, Silent::Nothing),
    ("nsys-sqlite/nsysai-mfu/mfu_2gpu_before.sqlite", NSYS, Silent::Nothing),
    (
        "rocprof/bmm-rocpd/28_results.db",
        Tables(
            &["rocpd_kernel_dispatch_00003fdc_92cb_72cb_9169_c7e541b1fcdf"],
            &["rocpd_region_00003fdc_92cb_72cb_9169_c7e541b1fcdf"],
        ),
        Silent::Nothing,
    ),
    ("rocprof/llamacpp-v1/results.csv", Lines, Silent::Nothing),
    ("rocprof/llamacpp-v3-strix/prefill_kernel_trace.csv", Lines, Silent::Nothing),
    ("rocprof/tl-908/908_results.json.gz", Bytes, Silent::Nothing),
    (
        "ascend-pytorch/alexnet-ddp-2rank-db-level0/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db",
        Tables(&["TASK"], &["CANN_API", "PYTORCH_API"]),
        Silent::Nothing,
    ),
    ("ascend-pytorch/alexnet-ddp-2rank-text-level1", Ranks, Silent::Nothing),
    // Its rows have no number.
    ("ascend-pytorch/advisor-compute-advice-backend/kernel_details.csv", Lines, Silent::All),
    // Its operators have no arrows.
    ("ascend-pytorch/advisor-timeline-advice/trace_view.json", Events, Silent::Host),
    ("other/tl-jax-xplane/tw003.xplane.pb", Bytes, Silent::Nothing),
];

/// What the program says of a capture: exit code, first sentence, rules that claim a gain, records that were kept.
struct Said {
    code: i32,
    first: String,
    claims: BTreeSet<String>,
    kept: u64,
}

fn said(path: &Path) -> Said {
    let name = path.file_name().unwrap().to_str().unwrap();
    let output = strato(&["diagnose", "--format", "json", "--lang", "en", name], path.parent().unwrap());
    let code = output.status.code().unwrap();
    let Ok(report) = serde_json::from_slice::<Value>(&output.stdout) else {
        return Said { code, first: String::from_utf8(output.stderr).unwrap(), claims: BTreeSet::new(), kept: 0 };
    };
    let list = |name: &str| report[name].as_array().cloned().unwrap_or_default();
    let findings = list("findings");
    let gains = findings.iter().filter(|f| f["layer"] != "measurement" && f["severity"] != "info");
    let claims = gains.map(|f| f["rule"].as_str().unwrap().to_owned()).collect();
    let first = report["verdict"]["headline"].as_str().unwrap_or_default().to_owned();
    let kept = list("ledger").iter().filter_map(|row| row["kept"].as_u64()).sum();
    Said { code, first, claims, kept }
}

const UNTOLD: &str = "nothing in the file says it";

/// How what is said of the rest is judged: what is right about it, or what is wrong.
fn judged(
    [whole, other, left]: [&Said; 3],
    damage: Damage,
    (gone, all): (u64, u64),
    (silent, whole_rows): (Silent, bool),
) -> Result<&'static str, String> {
    let new: Vec<_> = left.claims.difference(&whole.claims).filter(|rule| !other.claims.contains(*rule)).collect();
    if !new.is_empty() {
        return Err(format!("{new:?} is new"));
    }
    let told = ["Incomplete: ", "strato: "].iter().any(|start| left.first.starts_with(start));
    let untold = match damage {
        // What stands twice is counted once, and changes no answer.
        Damage::Twice if left.code == 3 => return Ok("counted once, or named"),
        Damage::Joined if left.kept >= whole.kept + other.kept => return Ok("both are read"),
        Damage::Joined if left.code == 3 && told => return Ok("named"),
        // One rank is what many record of a job: then the first sentence says so, and nothing was lost.
        Damage::Rank(_) if left.first.starts_with("1 of ") => return Ok("named"),
        Damage::Device(_) => silent == Silent::All || silent != Silent::Nothing && gone as f64 <= 0.01 * all as f64,
        Damage::Host(_) => matches!(silent, Silent::Host | Silent::All),
        // A table that ends with a whole row is a shorter table.
        Damage::Cut(_) => whole_rows,
        _ => false,
    };
    // About 1 % of the records changes no answer: then the exit code alone tells of the loss.
    match left.code {
        3 if told || gone as f64 <= 0.015 * all as f64 => Ok("ok"),
        3 => Err("the loss is not in the first sentence".to_owned()),
        // Two rows may be calls that had nothing to do.
        0 if untold || gone < 3 && matches!(damage, Damage::Device(_) | Damage::Host(_)) => Ok(UNTOLD),
        code => Err(format!("exit code {code}")),
    }
}

/// A row of the table, and whether something is wrong with it.
type Row = (String, bool);

/// The rows of the table for one capture.
fn rows(index: usize) -> Vec<Row> {
    let (relative, kind, silent) = &CAPTURES[index];
    let source = corpus().join(relative);
    let name = |relative: &str| Path::new(relative).extension().map(ToOwned::to_owned);
    let like = |at: &usize| {
        let (other, its, _) = &CAPTURES[*at];
        std::mem::discriminant(its) == std::mem::discriminant(kind) && name(other) == name(relative)
    };
    let other =
        (0..CAPTURES.len()).map(|step| (index + step + 1) % CAPTURES.len()).find(like).filter(|at| *at != index);
    let other = other.filter(|_| !matches!(kind, Ranks)).map(|at| corpus().join(CAPTURES[at].0));
    let (whole, directory) = (Whole::of(&source, kind, other.as_deref()), tempfile::tempdir().unwrap());
    let place = |i: usize| {
        let path = directory.path().join(i.to_string()).join(&whole.name);
        match kind {
            Ranks => copy(&source, &path),
            _ => std::fs::create_dir_all(path.parent().unwrap()).unwrap(),
        }
        path
    };
    let path = place(0);
    if !matches!(kind, Ranks) {
        std::fs::write(&path, &whole.bytes).unwrap();
    }
    let before = said(&path);
    let beside = other.as_deref().map(said);
    let nothing = Said { code: 0, first: String::new(), claims: BTreeSet::new(), kept: 0 };
    let first = |said: &Said| said.first.chars().take(90).collect::<String>();
    let mut rows = vec![(format!("{relative} | whole | | {} | {} |", before.code, first(&before)), false)];
    for (i, damage) in Damage::all(kind, beside.is_some()).into_iter().enumerate() {
        let path = place(i + 1);
        let (gone, all) = whole.damaged(&path, kind, damage);
        let left = said(&path);
        let whole_rows = matches!((kind, damage), (Lines, Damage::Cut(at)) if whole.ends_with_a_row(at));
        let joined = beside.as_ref().filter(|_| damage == Damage::Joined).unwrap_or(&nothing);
        let judged = judged([&before, joined, &left], damage, (gone, all), (*silent, whole_rows));
        let of = if all > 0 { format!("{gone} of {all}") } else { String::new() };
        let outcome = judged.as_ref().map_or_else(|wrong| format!("WRONG: {wrong}"), |right| (*right).to_owned());
        let row = format!("{relative} | {} | {of} | {} | {} | {outcome}", damage.name(), left.code, first(&left));
        rows.push((row, judged.is_err()));
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
    rows
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn of_real_captures_no_loss_adds_a_claim_or_goes_untold() {
    let (next, found) = (AtomicUsize::new(0), std::sync::Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= CAPTURES.len() {
                        break;
                    }
                    let rows = rows(index);
                    found.lock().unwrap().extend(rows);
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    println!("capture | taken away | rows | exit code | first sentence | judged");
    found.iter().for_each(|(row, _)| println!("{row}"));
    let wrong: Vec<&str> = found.iter().filter(|(_, wrong)| *wrong).map(|(row, _)| &**row).collect();
    assert!(wrong.is_empty(), "{} of {} wrong\n{}", wrong.len(), found.len(), wrong.join("\n"));
}
