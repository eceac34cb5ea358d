#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use model::{
    Category, Clock, Detail, Ns, OpDetail, ProcessId, Slice, StringId, Trace, TraceBuilder, TraceSink, TrackId,
    TrackKey, TrackKind,
};

use super::{Misfit, Tracks, apply, range_at};
use crate::platform::Packs;

/// A trace of one process with one thread and one queue.
struct Written {
    builder: TraceBuilder,
    thread: TrackId,
    queue: TrackId,
}

impl Written {
    fn of(pid: i64) -> Self {
        let mut builder = TraceBuilder::new("/somewhere/capture.json", "kineto");
        let process = builder.process(0);
        builder.describe_process(process, Some(pid), None, None);
        let track = |kind, device, id| TrackKey { kind, process: ProcessId(0), device, context: None, id };
        let thread = builder.track(track(TrackKind::HostThread, None, 1));
        let queue = builder.track(track(TrackKind::DeviceQueue, Some(0), 7));
        builder.clock(Clock::AsIs { unix_zero: None });
        Self { builder, thread, queue }
    }

    fn slice(
        &mut self,
        track: TrackId,
        category: Category,
        name: &str,
        span: (Ns, Ns),
        correlation: Option<i64>,
        detail: Option<Detail>,
    ) {
        let name = self.builder.intern(name);
        let (start, dur) = (span.0, span.1 - span.0);
        self.builder.slice(Slice { track, start, dur, name, category, correlation, detail: detail.as_ref() });
    }

    fn host(&mut self, category: Category, name: &str, span: (Ns, Ns), detail: Option<Detail>) {
        self.slice(self.thread, category, name, span, None, detail);
    }

    /// A launch under the capture, inside an operator with shapes where there are some.
    fn captured(&mut self, at: Ns, kernel: Option<&str>, operator: Option<(&str, &str)>) {
        if let Some((operator, shapes)) = operator {
            let shapes = Some(self.builder.intern(shapes));
            self.host(
                Category::FrameworkOp,
                operator,
                (at, at + 10),
                Some(Detail::Op(OpDetail { shapes, dtypes: None })),
            );
        }
        let kernel = kernel.map(|kernel| Detail::Launch(self.builder.intern(kernel)));
        self.host(Category::HostApi, "hipLaunchKernel", (at + 1, at + 2), kernel);
    }

    fn kernel(&mut self, name: &str, span: (Ns, Ns), correlation: i64) {
        self.slice(self.queue, Category::Kernel, name, span, Some(correlation), None);
    }
}

/// A capture of the graph `gemm, norm, gemm` in a module, after a launch that did run.
fn capture(named: bool) -> Trace {
    let mut w = Written::of(851);
    w.slice(w.thread, Category::HostApi, "hipLaunchKernel", (1, 2), Some(1), None);
    w.kernel("warm", (3, 4), 1);
    w.host(Category::UserRange, "capture_32_FULL", (5, 95), None);
    w.host(Category::PythonFrame, "nn.Module: Model_0", (6, 94), None);
    w.host(Category::HostApi, "hipStreamBeginCapture", (8, 9), None);
    let name = |name: &'static str| named.then_some(name);
    w.captured(10, name("gemm"), Some(("aten::addmm", "[[32,8],[8,4]]")));
    w.host(Category::PythonFrame, "nn.Module: Norm_1", (29, 41), None);
    w.captured(30, name("norm"), None);
    w.captured(50, name("gemm"), Some(("aten::mm", "[[32,4],[4,8]]")));
    w.host(Category::HostApi, "hipStreamEndCapture", (70, 71), None);
    w.captured(75, name("after"), None);
    w.builder.finish()
}

/// A run that replays kernels of these names.
fn run(pid: i64, names: &[&str]) -> Trace {
    let mut w = Written::of(pid);
    w.slice(w.thread, Category::HostApi, "hipGraphLaunch", (0, 5), Some(9), None);
    for (name, i) in names.iter().zip(0..) {
        w.kernel(name, (10 + 10 * i, 18 + 10 * i), 9);
    }
    w.builder.finish()
}

/// What stands beside the queue at each kernel: operator, its shapes, module.
fn beside(trace: &Trace) -> Vec<(String, String, String)> {
    let (queue, lane) =
        trace.tracks.iter().zip(&trace.lanes).find(|(track, _)| track.key.kind == TrackKind::DeviceQueue).unwrap();
    let tracks = Tracks::of(trace);
    let at = |track: Option<TrackId>, start| track.and_then(|track| range_at(trace, track, start));
    let text = |id: StringId| trace.strings.get(id).to_owned();
    lane.start
        .iter()
        .map(|start| {
            let operator = at(tracks.operators(queue.key), *start);
            let shapes = match operator.and_then(|(lane, row)| trace.detail(lane, row)) {
                Some(Detail::Op(op)) => op.shapes.map_or(String::new(), text),
                _ => String::new(),
            };
            let name =
                |found: Option<(&model::Columns, usize)>| found.map_or(String::new(), |(l, row)| text(l.name[row]));
            (name(operator), shapes, name(at(tracks.modules(queue.key), *start)))
        })
        .collect()
}

fn row(operator: &str, shapes: &str, module: &str) -> (String, String, String) {
    (operator.to_owned(), shapes.to_owned(), module.to_owned())
}

#[test]
fn each_replayed_kernel_gets_what_launched_it_under_the_capture() {
    let packs = Packs::embedded().unwrap();
    let mut run = run(851, &["gemm", "norm", "gemm"]);
    let slices = run.slice_count();
    let fit = apply(&mut run, &capture(true), &packs).unwrap();
    assert_eq!((fit.replays, fit.kernels, fit.matched, fit.by_name, fit.named), (1, 3, 3, true, 0));
    assert_eq!(
        beside(&run),
        [
            row("aten::addmm", "[[32,8],[8,4]]", "Model_0"),
            row("", "", "Model_0 / Norm_1"),
            row("aten::mm", "[[32,4],[4,8]]", "Model_0"),
        ]
    );
    assert_eq!(run.slice_count(), slices + 2 + 3, "two operators and three modules");
    assert_eq!(run.manifest.value("graph_capture.match"), Some("3 of 3 replayed kernels (100.0 %), by name and order"));
    assert_eq!(run.manifest.value("graph_capture.graphs"), Some("capture_32_FULL"));
    assert_eq!(run.manifest.value("graph_capture.source"), Some("capture.json"));
}

#[test]
fn without_names_the_only_graph_of_that_size_is_taken_and_gives_none_away() {
    let packs = Packs::embedded().unwrap();
    let mut replay = run(851, &["gemm", "norm", "gemm"]);
    let fit = apply(&mut replay, &capture(false), &packs).unwrap();
    assert_eq!((fit.matched, fit.by_name), (3, false));
    assert!(replay.manifest.value("graph_capture.match").unwrap().contains("by order only"));
}

#[test]
fn kernels_without_a_name_take_that_of_their_launch() {
    let packs = Packs::embedded().unwrap();
    let mut replay = run(851, &["gemm", "N/A", "gemm"]);
    let fit = apply(&mut replay, &capture(true), &packs).unwrap();
    assert_eq!((fit.matched, fit.named), (3, 1));
    let named = replay.lanes.iter().any(|lane| lane.name.iter().any(|name| replay.strings.get(*name) == "norm"));
    assert!(named);
}

#[test]
fn a_capture_that_does_not_fit_is_refused_and_changes_nothing() {
    let packs = Packs::embedded().unwrap();
    let refused = |run: &Trace, capture: &Trace| {
        let mut tried = run.clone();
        let misfit = apply(&mut tried, capture, &packs).unwrap_err();
        assert_eq!((tried.slice_count(), tried.tracks.len()), (run.slice_count(), run.tracks.len()));
        assert_eq!(tried.manifest.value("graph_capture.match"), None);
        misfit
    };
    let good = capture(true);
    assert!(matches!(refused(&run(7, &["gemm", "norm", "gemm"]), &good), Misfit::OtherProcess { .. }));
    // Two of three names are below the share that makes it the same graph; two kernels are another graph.
    let other = refused(&run(851, &["gemm", "norm", "other"]), &good);
    assert_eq!(other, Misfit::NoneFits { replays: "3".into(), graphs: "3".into(), best: "66.7 %".into() });
    assert!(matches!(refused(&run(851, &["gemm", "norm"]), &good), Misfit::NoneFits { .. }));
    assert_eq!(refused(&good, &good), Misfit::NoReplay);
    let eager = run(851, &["gemm"]);
    assert_eq!(refused(&eager, &eager), Misfit::NoCapture);
}

#[test]
fn a_replay_of_a_graph_that_was_not_captured_is_counted() {
    let packs = Packs::embedded().unwrap();
    let mut w = Written::of(851);
    for (correlation, names) in [(9, vec!["gemm", "norm", "gemm"]), (10, vec!["gemm"])] {
        let at = correlation * 100;
        w.slice(w.thread, Category::HostApi, "hipGraphLaunch", (at, at + 5), Some(correlation), None);
        for (name, i) in names.iter().zip(1..) {
            w.kernel(name, (at + 10 * i, at + 10 * i + 8), correlation);
        }
    }
    let mut run = w.builder.finish();
    let fit = apply(&mut run, &capture(true), &packs).unwrap();
    assert_eq!((fit.replays, fit.unknown, fit.kernels, fit.matched), (1, 1, 4, 3));
    assert_eq!(run.stat("graph_capture.unknown_replay"), 1);
}
