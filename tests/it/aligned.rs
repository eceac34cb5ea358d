//! Ranks are drawn on one clock: a collective is at one time on all of its ranks, in the terminal, on the page, in the SVG and in the
//! file for Perfetto.

use std::{collections::HashMap, path::Path};

use diagnosis::{
    analysis::{Analysis, OpKind, job::Instance},
    diagnose::Diagnosis,
    i18n::Lang,
};
use model::{Ns, Span, Trace};
use report::{perfetto, svg};
use session::{Options, Reading, Session};
use simulator::{Config, simulate_job};
use stratoscope::tui::{
    App, Opened,
    export::picture,
    lane::{LaneSet, Of},
};

use crate::common::{
    self,
    screen::{press, screen, settings},
};

type Captured = (Trace, Analysis, Diagnosis);

fn open(path: &Path) -> Vec<Captured> {
    let session = Session::open(&[path.to_owned()], &Reading::default()).unwrap();
    session.examine(&Options::default()).unwrap().diagnose().unwrap().captures
}

/// The members of a collective that lie apart by more than their clocks are known to, given when each is drawn.
fn apart(instance: &Instance, analysis: &Analysis, drawn: impl Fn(usize, u32) -> Option<Span>) -> Option<Ns> {
    let spans: Vec<Span> = instance.members.iter().filter_map(|member| drawn(member.rank, member.op)).collect();
    let sure = |rank: usize| analysis.job.clocks.get(rank).copied().flatten().map_or(0, |clock| clock.uncertainty);
    let sure: Ns = instance.members.iter().map(|member| sure(member.rank)).max().unwrap_or(0);
    let last = spans.iter().map(|span| span.start).max()?;
    let first = spans.iter().map(|span| span.end).min()?;
    (last > first.saturating_add(sure)).then_some(last - first)
}

/// When a lane set draws each collective of a rank, by the index of its operation.
fn on_lanes(set: &LaneSet, rank: usize) -> HashMap<u32, Span> {
    let mut found: HashMap<u32, Span> = HashMap::new();
    let Some(index) = set.position(Of::Collectives(rank)).and_then(|lane| set.lanes[lane].slices()) else {
        return found;
    };
    for slot in 0..index.len() {
        let (row, span) = (index.row(slot).unwrap(), index.span(slot).unwrap());
        found.entry(row).and_modify(|s| *s = Span::new(s.start.min(span.start), s.end.max(span.end))).or_insert(span);
    }
    found
}

/// When the file for Perfetto has each slice of a collective, by the id of the slice.
fn in_perfetto(capture: &Captured) -> HashMap<u32, Span> {
    let mut out = Vec::new();
    perfetto::write(&mut out, std::slice::from_ref(capture), Lang::En).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let ns = |event: &serde_json::Value, key: &str| (event[key].as_f64().unwrap() * 1000.0).round() as Ns;
    let mut found: HashMap<u32, Span> = HashMap::new();
    for event in file["traceEvents"].as_array().unwrap().iter().filter(|event| event["cat"] == "strato.collective") {
        let (Some(id), Some(_)) = (event["args"]["of_slice"].as_u64(), event["dur"].as_f64()) else { continue };
        let start = ns(event, "ts");
        let span = Span::new(start, start + ns(event, "dur"));
        let joined = |s: &mut Span| *s = Span::new(s.start.min(span.start), s.end.max(span.end));
        found.entry(id as u32).and_modify(joined).or_insert(span);
    }
    found
}

/// Collectives of a capture that are drawn at one time on all of their ranks, and what is wrong with the others.
fn look(captures: Vec<Captured>, of: &str, wrong: &mut Vec<String>) -> usize {
    let mut looked = 0;
    for capture in captures.into_iter().filter(|(_, analysis, _)| analysis.ranks.len() > 1) {
        let listed = in_perfetto(&capture);
        let opened = Opened::new(vec![capture]);
        let look = opened.look(0).unwrap();
        let analysis = look.analysis().unwrap();
        let drawn: Vec<HashMap<u32, Span>> = (0..analysis.ranks.len()).map(|rank| on_lanes(look.lanes, rank)).collect();
        let slice = |rank: usize, op: u32| analysis.ranks[rank].timeline.ops[op as usize].slice.0;
        let mut complain = |kind: &str, n: usize, by: Option<Ns>| {
            wrong.extend(by.map(|by| format!("{of}: collective {n} lies {by} ns apart in {kind}")));
        };
        for (n, instance) in
            analysis.job.instances.iter().enumerate().filter(|(_, instance)| instance.members.len() > 1)
        {
            let comm = |rank: usize, op: u32| analysis.ranks[rank].timeline.ops[op as usize].kind == OpKind::Comm;
            if !instance.members.iter().all(|member| comm(member.rank, member.op)) {
                continue;
            }
            looked += 1;
            complain("the terminal", n, apart(instance, analysis, |rank, op| drawn[rank].get(&op).copied()));
            complain("Perfetto", n, apart(instance, analysis, |rank, op| listed.get(&slice(rank, op)).copied()));
        }
        // The page and the SVG draw what this holds: the same times as the terminal.
        let lanes: Vec<usize> =
            (0..analysis.ranks.len()).filter_map(|rank| look.lanes.position(Of::Collectives(rank))).collect();
        let page = picture::of_lanes(&look, &lanes, look.lanes.extent.unwrap(), Lang::En);
        for (lane, drawn) in lanes.iter().zip(&page.lanes) {
            let index = look.lanes.lanes[*lane].slices().unwrap();
            let first = drawn.marks.first().map(|mark| mark.whole.start);
            if first != index.span(0).map(|span| span.start) {
                wrong.push(format!("{of}: a lane of the page begins at {first:?} and not at {:?}", index.span(0)));
            }
        }
        assert!(svg::render(&page, Lang::En).contains("<svg"));
    }
    looked
}

#[test]
fn a_collective_is_at_one_time_on_all_ranks_of_simulated_jobs() {
    let (mut wrong, mut looked) = (Vec::new(), 0);
    for (seed, ranks) in [(5, 2), (6, 4), (7, 3), (8, 2)] {
        let directory = tempfile::tempdir().unwrap();
        let job = Config { steps: 8, layers: 2, ..Config::draw_job(seed, ranks) };
        assert!(job.clock_offset_ns > 50_000, "the clocks of the job agree");
        simulate_job(&job).write_kineto(directory.path()).unwrap();
        looked += look(open(directory.path()), &format!("seed {seed}"), &mut wrong);
    }
    assert!(wrong.is_empty(), "{} of {looked}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(looked > 60, "{looked}");
}

/// Drawn by its own clock, the rank of a slow link looked like one that comes late.
#[test]
fn the_head_of_a_rank_says_how_far_its_clock_was_moved() {
    let directory = tempfile::tempdir().unwrap();
    simulate_job(&Config { steps: 8, layers: 2, ..Config::draw_job(5, 2) }).write_kineto(directory.path()).unwrap();
    let captures = open(directory.path());
    let clock = captures[0].1.job.clocks[1].unwrap();
    let mut app = App::new(Opened::new(captures), settings());
    press(&mut app, "2");
    let shown = screen(&mut app, 120, 60);
    let head = shown.lines().find(|line| line.contains("rank 1 ·")).unwrap_or_else(|| panic!("{shown}"));
    let word = if clock.ahead > 0 { "ahead" } else { "behind" };
    let by = report::units::brief(clock.ahead.abs());
    assert!(head.contains(&format!("clock {by} {word}, drawn aligned")), "{head}");
    assert!(!shown.lines().any(|line| line.contains("rank 0 ·") && line.contains("aligned")), "{shown}");
}

/// Captures of several ranks.
const CORPUS: [&str; 8] = [
    "nsys-sqlite/nsysai-h100-2gpu/h100_2gpu_1s.sqlite",
    "ascend-pytorch/alexnet-ddp-2rank-text-level0",
    "ascend-pytorch/alexnet-ddp-2rank-text-level1",
    "ascend-pytorch/alexnet-ddp-2rank-text-level2",
    "ascend-pytorch/alexnet-ddp-2rank-db-level0",
    "ascend-pytorch/alexnet-ddp-2rank-db-level2",
    "ascend-pytorch/gpt3-2023-2rank-level1-l0bw",
    "ascend-pytorch/megatron-qwen3-0.6b-pp2dp2-4rank-level2-cann8.3RC1",
];

#[test]
#[ignore = "needs STRATO_CORPUS, the folder of real captures"]
fn a_collective_is_at_one_time_on_all_ranks_of_real_captures() {
    let corpus = common::corpus();
    let (mut wrong, mut looked) = (Vec::new(), 0);
    for file in CORPUS {
        let found = look(open(&corpus.join(file)), file, &mut wrong);
        eprintln!("{file}: {found} collectives on several ranks");
        looked += found;
    }
    assert!(wrong.is_empty(), "{} of {looked}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(looked >= 50, "{looked}");
}
