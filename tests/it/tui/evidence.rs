//! Evidence on the screen: one key after a finding the stretch of time that it is about fills most of the window, with why the device was
//! idle, its queue, and what the claim names. What is counted is read from the drawn screen.

use std::path::{Path, PathBuf};

use diagnosis::{
    diagnose::Finding,
    i18n::{Message, Value},
};
use model::Ns;
use session::{Options, Reading, Session};
use stratoscope::tui::{App, Opened, app::Request, key::Key, text};

use crate::common::{
    self,
    screen::{LAUNCH_BOUND, TENSOR_PARALLEL, app, diagnosed, opened, press, rows, screen, settings, two_ranks},
};

const SIZE: (u16, u16) = (120, 40);
/// Where lanes begin on a screen of 120 columns.
const LABELS: usize = 28;
/// Share of the evidence that has to be seen.
const SEEN: f64 = 0.6;

/// A time as screens write it, ns.
fn ns(written: &str) -> Option<f64> {
    let text: String = written.chars().filter(|c| !matches!(c, '\u{202f}' | '\u{a0}' | ' ')).collect();
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let unit = match &text[at..] {
        "ns" => 1.0,
        "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    text[..at].parse::<f64>().ok().map(|value| value * unit)
}

/// What a screen with evidence shows.
struct Shown {
    rows: Vec<String>,
    /// Length of the stretch that the title names, ns.
    stretch: f64,
    /// Share of it in the window, from the length of the window and the place of the cursor on the ruler.
    seen: f64,
}

fn shown(app: &mut App) -> Result<Shown, String> {
    let rows: Vec<String> = screen(app, SIZE.0, SIZE.1).lines().map(str::to_owned).collect();
    let all = || rows.join("\n");
    let title = rows[1].split_once(": ").and_then(|(_, rest)| ns(rest.split("  ").next()?));
    let stretch = title.ok_or_else(|| format!("no stretch in the title: {}", rows[1]))?;
    let column = |text: &str| text.chars().skip(LABELS).position(|c| c == '▼');
    let from = column(&rows[2]).ok_or_else(|| format!("no cursor on the ruler:\n{}", all()))?;
    let window: String = rows[3].chars().take(LABELS - 1).collect();
    let window = ns(window.trim()).ok_or_else(|| format!("no length of the window: {window}"))?;
    let after = window * (1.0 - from as f64 / (f64::from(SIZE.0) - LABELS as f64));
    Ok(Shown { seen: (after / stretch.max(1.0)).min(1.0), stretch, rows })
}

/// Names of the capture in a message.
fn names(message: &Message, out: &mut Vec<String>) {
    for (_, value) in &message.args {
        match value {
            Value::Raw(name) | Value::Kernel(name) | Value::Phrase(name) => out.push(name.clone()),
            Value::Message(inner) => names(inner, out),
            _ => {}
        }
    }
}

/// What is wrong with the evidence of the findings of a capture, and how many were looked at. `before` are the keys that lead there.
fn look(opened: Opened, of: &str, wrong: &mut Vec<String>) -> usize {
    let opened = std::sync::Arc::new(opened);
    let captures: Vec<Vec<Finding>> = opened.report().captures.iter().map(|capture| capture.findings.clone()).collect();
    let mut looked = 0;
    for (at, findings) in captures.iter().enumerate() {
        for (i, finding) in findings.iter().enumerate() {
            let Some(longest) = finding.stretches.first().map(|stretch| stretch.span.len()).filter(|ns| *ns > 0) else {
                continue;
            };
            let mut app = App::new(std::sync::Arc::clone(&opened), settings());
            let (first, count) = (opened.leading(), captures.len());
            press(&mut app, &"> ".repeat((at + count - first) % count));
            press(&mut app, &format!("3 {}", "j ".repeat(i)));
            screen(&mut app, SIZE.0, SIZE.1);
            press(&mut app, "enter");
            looked += 1;
            let about = format!("{of} {}", finding.rule);
            match shown(&mut app) {
                Err(why) => wrong.push(format!("{about}: {why}")),
                Ok(shown) => complain(&opened, at, finding, longest, &shown, &about, wrong),
            }
        }
    }
    looked
}

fn complain(
    opened: &Opened,
    at: usize,
    finding: &Finding,
    longest: Ns,
    shown: &Shown,
    about: &str,
    wrong: &mut Vec<String>,
) {
    let screen = shown.rows.join("\n");
    let mut complain = |what: String| wrong.push(format!("{about}: {what}\n{screen}\n"));
    if (shown.stretch / longest as f64 - 1.0).abs() > 0.02 {
        complain(format!("the title says {} ns where the costliest stretch takes {longest} ns", shown.stretch));
    }
    if shown.seen < SEEN {
        complain(format!("{:.0} % of the evidence is seen", shown.seen * 100.0));
    }
    let look = opened.look(at).unwrap();
    let analysis = look.analysis().unwrap();
    let rank = analysis.ranks.iter().find(|rank| finding.ranks.first().is_none_or(|of| *of == rank.rank)).unwrap();
    if !rank.gaps.is_empty() && !screen.contains("idle: why") {
        complain("why the device was idle is not seen".to_owned());
    }
    let queue = |row: &&String| row.trim_start_matches(['▸', ' ']).starts_with("stream");
    if !rank.timeline.queues.is_empty() && !shown.rows.iter().any(|row| queue(&row)) {
        complain("no queue is seen".to_owned());
    }
    // What the claim names is seen where it happens at that time: as a lane, in the line of frames, or below the lanes.
    let span = finding.stretches.first().unwrap().span;
    let mut claimed = Vec::new();
    names(&finding.claim, &mut claimed);
    let there = |name: &String| {
        let id = look.trace.strings.find(name);
        id.filter(|_| !name.is_empty()).is_some_and(|id| {
            let tracks = rank.timeline.queues.iter().chain(&rank.timeline.threads);
            tracks.filter_map(|track| look.trace.lanes.get(track.0 as usize)).any(|lane| {
                (0..lane.len())
                    .any(|row| lane.name[row] == id && lane.start[row] < span.end && lane.end(row) > span.start)
            })
        })
    };
    let claimed: Vec<String> = claimed.into_iter().filter(there).map(|name| text::safe(&name)).collect();
    let start = |name: &String| name.chars().take(5).collect::<String>();
    if !claimed.is_empty() && !claimed.iter().any(|name| screen.contains(&start(name))) {
        complain(format!("none of {claimed:?} is seen"));
    }
}

fn judge(looked: usize, least: usize, wrong: &[String]) {
    assert!(wrong.is_empty(), "{} of {looked} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(looked >= least, "{looked} findings were looked at");
}

#[test]
fn one_key_shows_the_evidence_of_every_finding() {
    let (mut wrong, mut looked) = (Vec::new(), 0);
    for sample in [LAUNCH_BOUND, TENSOR_PARALLEL, "sync-per-layer.sqlite", "healthy-full-graph.json.gz"] {
        looked += look(Opened::new(vec![diagnosed(common::sample(sample))]), sample, &mut wrong);
    }
    looked += look(Opened::new(vec![diagnosed(two_ranks())]), "two ranks", &mut wrong);
    judge(looked, 10, &wrong);
}

/// Captures of three vendors, of one rank and of several, with pauses, kernels, collectives and copies.
const CORPUS: [&str; 24] = [
    "kineto/vllm-mi300x-vs-h100/1_h100_1000isl_10osl_32con.pt.trace.json.gz",
    "kineto/vllm-mi300x-vs-h100/1_mi300x_1000isl_10osl_32con.pt.trace.json.gz",
    "kineto/tl-h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "kineto/tl-h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "kineto/tl-mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "kineto/tl-mi300/gaunernst_bert-small-uncased__1016001.json.gz",
    "kineto/tl-b200/eager_trace.json.gz",
    "kineto/tl-mi300-ddp/train_resnet18.json.gz",
    "kineto/tl-xdit-flux/profile_trace_rank_0.json.gz",
    "kineto/tl-vllm-decode-full/graph_execution.json.gz",
    "kineto/tl-vllm-decode-capture/graph_capture_rank_0.1773709742341309550.pt.trace.json.gz",
    "kineto/tl-sglang-prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz",
    "kineto/tl-mi210-gpuonly/gpu_only_trace.json.gz",
    "kineto/tl-mi300-actckpt/resnet_act_checkpoint.json.gz",
    "kineto/hta-critical_path/benchmark_result_2869224_1695835535_trace.json.gz",
    "kineto/hta-trace_diff/control.json.gz",
    "kineto/kineto-resnet50-v100/worker0.1623143089861.pt.trace.json.gz",
    "nsys-sqlite/nsysai-h100-2gpu/h100_2gpu_1s.sqlite",
    "nsys-sqlite/fuser-h200/report1.sqlite",
    "nsys-sqlite/lt-gemm/profile.sqlite",
    "nsys-sqlite/sglang-fork/baseline-report.sqlite",
    "ascend-pytorch/alexnet-ddp-2rank-text-level1",
    "ascend-pytorch/megatron-qwen3-0.6b-pp2dp2-4rank-level2-cann8.3RC1",
    "ascend-pytorch/alexnet-ddp-2rank-db-level2",
];

/// A capture as `strato view` opens it.
fn open(path: PathBuf) -> Opened {
    let session = Session::open(&[path], &Reading::default()).unwrap();
    Opened::new(session.examine(&Options::default()).unwrap().diagnose().unwrap().captures)
}

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn one_key_shows_the_evidence_of_every_finding_of_real_captures() {
    let corpus = common::corpus();
    let (mut wrong, mut looked) = (Vec::new(), 0);
    for file in CORPUS {
        let of = Path::new(file).iter().rev().nth(usize::from(file.ends_with("z"))).unwrap().to_string_lossy();
        looked += look(open(corpus.join(file)), &of, &mut wrong);
    }
    eprintln!("{looked} findings of {} captures were looked at", CORPUS.len());
    judge(looked, 60, &wrong);
}

/// The frame that the first finding of this capture names stood sixteen keys deep, and 0.1 % of its pause was seen.
#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn the_pause_before_the_forward_pass_stands_with_its_frame() {
    let mut app = App::new(open(common::corpus().join(CORPUS[1])), settings());
    screen(&mut app, SIZE.0, SIZE.1);
    press(&mut app, "3 enter");
    let shown = shown(&mut app).unwrap();
    let screen = shown.rows.join("\n");
    assert!(
        shown.seen > 0.99
            && shown.stretch > 20e6
            && screen.contains("llama.py(374): forward")
            && screen.contains("rt.host.forward"),
        "{screen}"
    );
}

#[test]
fn the_stretches_of_a_finding_are_walked_through_and_round() {
    let opened = opened(&[LAUNCH_BOUND]);
    let finding = &opened.look(0).unwrap().capture().unwrap().findings[0];
    let count = finding.stretches.len();
    assert!(count > 2, "{count}");
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "3 enter");
    let first = shown(&mut app).unwrap();
    press(&mut app, "n");
    let second = shown(&mut app).unwrap();
    assert!(second.seen >= SEEN);
    assert!(first.rows[1].contains("1 of ") && second.rows[1].contains("2 of "), "{}", second.rows[1]);
    press(&mut app, "N N");
    let last = shown(&mut app).unwrap();
    assert!(last.rows[1].trim_start().starts_with(&format!("{count} of ")), "{}", last.rows[1]);
    press(&mut app, "n");
    assert_eq!(shown(&mut app).unwrap().rows, first.rows);
    // Whoever looks at all of the capture sees all of its lanes.
    press(&mut app, "0");
    let all = screen(&mut app, SIZE.0, SIZE.1);
    assert!(all.contains("of no rank") && !first.rows.join("\n").contains("of no rank"), "{all}");
}

#[test]
fn one_key_leads_to_the_costliest_idle_time_with_what_the_host_did() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "2 c");
    let first = shown(&mut app).unwrap();
    assert!(first.seen >= SEEN && first.rows[1].contains("idle time 1 / "), "{}", first.rows.join("\n"));
    assert!(first.rows.iter().any(|row| row.contains("thread 4711")), "{}", first.rows.join("\n"));
    let total = |shown: &Shown| {
        let said = shown.rows[1].rsplit_once("in all ").map(|(_, total)| total.trim().to_owned());
        said.and_then(|said| ns(&said)).unwrap_or(shown.stretch)
    };
    press(&mut app, "c");
    let second = shown(&mut app).unwrap();
    assert!(second.rows[1].contains("idle time 2 / ") && total(&second) <= total(&first), "{}", second.rows[1]);
}

/// A picture that is written while evidence is seen marks it.
#[test]
fn a_picture_of_evidence_marks_its_ends() {
    let mut app = app(LAUNCH_BOUND);
    let saved = |app: &mut App| {
        screen(app, SIZE.0, SIZE.1);
        let Some(Request::Save(files)) = app.key(Key::parse("e").unwrap()) else { panic!("nothing is written") };
        files.into_iter().find(|file| file.extension == "svg").unwrap().text
    };
    press(&mut app, "3 enter");
    let picture = saved(&mut app);
    assert_eq!(picture.matches("<path class=\"evidence\"").count(), 2);
    assert!(picture.contains("Evidence of RT-14: "), "{picture}");
    press(&mut app, "0");
    assert!(!saved(&mut app).contains("<path class=\"evidence\""));
}

/// A search that was under way does not take the keys that go through the evidence.
#[test]
fn a_search_before_does_not_hold_back_the_evidence() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "3 / R T enter 3 enter n");
    assert!(rows(&crate::common::screen::buffer(&mut app, SIZE.0, SIZE.1))[1].contains("2 of "));
}

/// The page had no way from a finding to what it is about, and lanes of frames were left out of it.
#[test]
fn every_cost_of_the_page_has_a_button_that_shows_its_evidence() {
    let mut looked = 0;
    for sample in [LAUNCH_BOUND, TENSOR_PARALLEL, "sync-per-layer.sqlite"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-traces").join(sample);
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_strato"))
            .args(["diagnose", "--format", "html", "--lang", "en"])
            .arg(file)
            .output()
            .unwrap();
        let page = String::from_utf8(output.stdout).unwrap();
        let costs = page.split("<ol class=\"costs\">").nth(1).unwrap().split("</ol>").next().unwrap();
        assert_eq!(costs.matches("<li>").count(), costs.matches("data-shows=").count(), "{sample}: {costs}");
        for name in costs.split("data-shows=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            let figure = page.split(&format!("data-picture=\"{name}\"")).nth(1).unwrap();
            let data = figure.split("application/json\">").nth(1).unwrap().split("</script>").next().unwrap();
            let data: serde_json::Value = serde_json::from_str(data).unwrap();
            let pair = |key: &str| [0, 1].map(|at| data[key][at].as_f64().unwrap());
            let ([from, to], [start, end]) = (pair("evidence"), pair("focus"));
            assert!(to > from && to.min(end) - from.max(start) >= SEEN * (to - from), "{sample} {name}");
            let lanes: Vec<&str> =
                data["lanes"].as_array().unwrap().iter().filter_map(|l| l["label"].as_str()).collect();
            assert!(lanes.contains(&"idle: why") && lanes.iter().any(|lane| lane.starts_with("stream")), "{lanes:?}");
            looked += 1;
        }
    }
    assert!(looked >= 4, "{looked}");
}
