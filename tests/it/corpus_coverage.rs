//! How much of the device time of every real capture has a canonical operator. `STRATO_CORPUS` names their directory; run
//! with `--nocapture` to see the share of each and the names that no pack knows.

use crate::common;
use std::{collections::BTreeMap, path::Path};

use diagnosis::platform::Packs;
use model::{Category, Trace, TrackKind};
use session::{Reading, Session};

/// Least share of device time that the packs must know: of captures of language models, and of all others.
const LANGUAGE_MODEL: f64 = 0.95;
const ANY: f64 = 0.85;

/// Captures of language models, by the beginning of their path.
const LANGUAGE_MODELS: &[&str] = &[
    "kineto/tl-h100/",
    "kineto/tl-mi300/",
    "kineto/tl-sglang-prefilldecode/",
    "kineto/tl-vllm-decode-",
    "ncu-csv/sglang-fork/",
    "nsys-sqlite/sglang-fork/",
    "nsys-stats-csv/dsocr-rtx5090/",
    "rocprof/llamacpp-",
];

/// Captures whose kernels have names that say nothing, and the share of their time that is known at least: whole models as one
/// operation on MTIA (`merge`, `remote`), and `main_kernel` and `mix` of TileLang and of one author.
const LITTLE_KNOWN: &[(&str, f64)] = &[
    ("kineto/hta-mtia_inference_trace/", 0.45),
    ("msprof/neopan-tilelang-", 0.0),
    ("msprof-op/bigorange-mixop-2026-09", 0.0),
    // Operators of MindSpore with the scopes they stand in, and those of the AI CPU.
    ("mindspore/mindinsight-run2-alexnet-910/normal_run/profiler/aicore", 0.70),
    ("mindspore/mindinsight-run2-alexnet-910/normal_run/profiler/aicpu", 0.0),
    // Its report names no kernel.
    ("metax/mcprofiler-nsa-c500/", 0.0),
];

/// Least number of captures with device time that must be found, so that a corpus that is not there cannot pass.
const CAPTURES: usize = 40;

fn read(path: &Path) -> Option<Trace> {
    Session::open(&[path.to_owned()], &Reading::default()).ok()?.into_captures().pop()
}

/// Device time of each name, ns: of work on a timeline, or of sums where there is no timeline.
fn device_time(trace: &Trace) -> BTreeMap<&str, i64> {
    let mut time = BTreeMap::new();
    let queues = trace.tracks.iter().zip(&trace.lanes).filter(|(track, _)| track.key.kind == TrackKind::DeviceQueue);
    for (_, lane) in queues {
        let work = |i: &usize| matches!(lane.category[*i], Category::Kernel | Category::Memcpy | Category::Memset);
        for i in (0..lane.len()).filter(work) {
            *time.entry(trace.strings.get(lane.name[i])).or_default() += lane.dur[i];
        }
    }
    if time.is_empty() {
        for sum in &trace.summaries {
            *time.entry(trace.strings.get(sum.kernel)).or_default() += sum.total.unwrap_or(0);
        }
    }
    time.retain(|name, ns| *ns > 0 && !OWN.contains(name));
    time
}

/// Operators that somebody wrote for the capture: no pack can know them.
const OWN: &[&str] = &["sin_custom"];

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn the_packs_know_the_kernels_of_every_real_capture() {
    let corpus = common::corpus();
    let packs = Packs::embedded().unwrap();
    let mut paths = Vec::new();
    common::captures(&corpus, &mut paths);
    paths.sort();
    let (mut covered, mut below) = (0, Vec::new());
    for path in paths {
        let Some(trace) = read(&path) else { continue };
        let time = device_time(&trace);
        let total: i64 = time.values().sum();
        if total == 0 {
            continue;
        }
        let mut unknown: Vec<_> = time.iter().filter(|(name, _)| !packs.op(name).mapped).collect();
        unknown.sort_by_key(|(_, ns)| -**ns);
        let missing: i64 = unknown.iter().map(|(_, ns)| **ns).sum();
        let share = 1.0 - missing as f64 / total as f64;
        let name = path.strip_prefix(&corpus).unwrap().to_string_lossy().into_owned();
        let little = LITTLE_KNOWN.iter().find(|(own, _)| name.starts_with(own)).map(|(_, share)| *share);
        let wanted = if let Some(share) = little {
            share
        } else if LANGUAGE_MODELS.iter().any(|own| name.starts_with(own)) {
            LANGUAGE_MODEL
        } else {
            ANY
        };
        println!("{:6.2} % of {:14} ns, at least {:2.0} %: {name}", 100.0 * share, total, 100.0 * wanted);
        for (name, ns) in unknown.iter().take(12) {
            println!("    {:6.2} % {}", 100.0 * **ns as f64 / total as f64, name.chars().take(160).collect::<String>());
        }
        covered += 1;
        if share < wanted {
            below.push(format!("{name}: {share:.3} of at least {wanted}"));
        }
    }
    assert!(below.is_empty(), "{below:#?}");
    assert!(covered >= CAPTURES, "{covered} captures");
}
