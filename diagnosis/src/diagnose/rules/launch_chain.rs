//! The chain of launches of a step: how far apart they are, and what the issuing thread does between them.

use std::collections::{BTreeSet, HashMap};

use model::{Category, Columns, Span, StringId, Trace, TrackId};

use super::{launching, reading};
use crate::{
    analysis::{Bucket, Rank, Step},
    diagnose::rule::Context,
};

/// Time between two launches without any record that is not the framework's way from one operation to the next, ns; own
/// value: an eager framework takes 5 to 50 µs per operation, twice that under a profiler.
const HOLE: i64 = 100_000;
/// The launches of one step as the issuing thread made them.
pub(super) struct Chain {
    /// Launch calls.
    pub launches: usize,
    /// From the first launch to the end of the last, ns.
    pub length: i64,
    /// From the start of the first launch to the start of the last, ns.
    pub paced: i64,
    /// Time in holes and in what the host computes itself, ns.
    pub holes: i64,
    /// Time inside calls and framework operations, ns.
    pub called: i64,
    /// Time inside Python code and nothing of these, ns.
    pub python: i64,
    /// Whether the thread has framework records.
    pub framework: bool,
}

/// Times that a thread has records, as disjoint spans in order.
pub(super) struct Recorded {
    /// In calls and framework operations.
    called: Vec<Span>,
    /// In these or in Python frames.
    any: Vec<Span>,
    /// In framework operations that do their work on the host.
    hosted: Vec<Span>,
    /// Whether framework operations are among them.
    framework: bool,
}

impl Recorded {
    fn of(trace: &Trace, lane: &Columns) -> Self {
        let spans = |wanted: &mut dyn FnMut(usize) -> bool| {
            let mut out: Vec<Span> = Vec::new();
            for i in (0..lane.len()).filter(|i| wanted(*i)) {
                match out.last_mut() {
                    Some(last) if lane.start[i] <= last.end => last.end = last.end.max(lane.end(i)),
                    _ => out.push(Span::new(lane.start[i], lane.end(i))),
                }
            }
            out
        };
        let framework = lane.category.contains(&Category::FrameworkOp);
        let mut names: HashMap<StringId, bool> = HashMap::new();
        let mut computes = |i: usize| {
            let name = lane.name[i];
            *names.entry(name).or_insert_with(|| is_arithmetic(trace.strings.get(name)))
        };
        let is_runtime = |i: &usize| matches!(lane.category[*i], Category::HostApi | Category::LibraryApi);
        let calls: Vec<usize> = (0..lane.len()).filter(is_runtime).collect();
        // Where no operator holds the call that it makes, the record does not say which of them make any.
        let mut nests = false;
        let mut hosted = spans(&mut |i| {
            let computes = lane.category[i] == Category::FrameworkOp && computes(i);
            let quiet = computes && calls_nothing(lane, &calls, i);
            nests |= computes && !quiet;
            quiet
        });
        if !nests {
            hosted.clear();
        }
        Self {
            called: spans(&mut |i| is_call(lane.category[i])),
            any: spans(&mut |i| is_call(lane.category[i]) || lane.category[i] == Category::PythonFrame),
            hosted,
            framework,
        }
    }
}

/// Whether nothing of the device's runtime is called inside a record; `calls` are the rows of all calls in order.
fn calls_nothing(lane: &Columns, calls: &[usize], at: usize) -> bool {
    let next = calls.get(calls.partition_point(|row| *row <= at));
    next.is_none_or(|row| lane.start[*row] >= lane.end(at))
}

/// Operators of PyTorch that compute: on tensors of a device each of them launches something.
const ARITHMETIC: [&str; 34] = [
    "add",
    "addmm",
    "argmax",
    "baddbmm",
    "bmm",
    "cat",
    "convolution",
    "copy_",
    "cumsum",
    "div",
    "embedding",
    "exp",
    "gather",
    "gelu",
    "index",
    "index_put_",
    "index_select",
    "layer_norm",
    "linear",
    "matmul",
    "max",
    "mean",
    "mm",
    "mul",
    "native_layer_norm",
    "pow",
    "relu",
    "rsqrt",
    "scaled_dot_product_attention",
    "silu",
    "softmax",
    "sort",
    "sub",
    "sum",
];

fn is_arithmetic(name: &str) -> bool {
    let base = name.strip_prefix("aten::").map(|base| base.trim_start_matches('_'));
    base.is_some_and(|base| ARITHMETIC.contains(&base))
}

fn is_call(category: Category) -> bool {
    matches!(category, Category::FrameworkOp | Category::HostApi | Category::LibraryApi)
}

/// What of disjoint spans in order lies in `span`.
fn within(spans: &[Span], span: Span) -> impl Iterator<Item = Span> + '_ {
    let first = spans.partition_point(|s| s.end <= span.start);
    spans.iter().skip(first).take_while(move |s| s.start < span.end).map(move |s| s.clip(span))
}

/// The launches of a step. Threads take turns: the backward pass of training is launched by a thread of its own.
pub(super) fn chain(
    cx: &Context<'_>,
    rank: &Rank,
    step: &Step,
    threads: &mut HashMap<TrackId, Recorded>,
) -> Option<Chain> {
    let calls = || rank.ops_of(step).iter().filter_map(|op| rank.timeline.call(op));
    let span = Span::new(calls().map(|c| c.start).min()?, calls().map(|c| c.end).max()?);
    let launches = rank.ops_of(step).iter().filter(|op| op.first_of_call).count();
    let tracks: BTreeSet<TrackId> = calls().map(|c| c.track).collect();
    let (mut called, mut any, mut hosted, mut framework) = (Vec::new(), Vec::new(), Vec::new(), false);
    for track in tracks {
        let Some(lane) = cx.trace.lanes.get(track.0 as usize) else { continue };
        let recorded = threads.entry(track).or_insert_with(|| Recorded::of(cx.trace, lane));
        framework |= recorded.framework;
        called.extend(within(&recorded.called, span));
        any.extend(within(&recorded.any, span));
        hosted.extend(within(&recorded.hosted, span));
    }
    // What has a name and a cause of its own, such as data loading, is no hole between two launches.
    let named = |(bucket, part): &(Bucket, Span)| {
        let own = matches!(bucket, Bucket::Host(_)) && !launching::is_between(cx.analysis, *bucket);
        own.then(|| part.clip(span))
    };
    let parts = reading::gaps(rank, step).iter().flat_map(|gap| gap.parts.iter().filter_map(named));
    let elsewhere: Vec<Span> = parts.filter(|part| !part.is_empty()).collect();
    let length = span.len() - elsewhere.iter().map(|part| part.len()).sum::<i64>();
    let beside = reading::merged(elsewhere);
    let outside = |span: Span| span.len() - within(&beside, span).map(|part| part.len()).sum::<i64>();
    let hosted: i64 = reading::merged(hosted).into_iter().map(outside).sum();
    called.extend(&beside);
    let (called, any) = (reading::merged(called), reading::merged(any));
    let time = |spans: &[Span]| spans.iter().map(|s| s.len()).sum::<i64>();
    let ends = std::iter::once(span.start).chain(called.iter().map(|s| s.end));
    let quiet = ends.zip(called.iter().map(|s| s.start).chain([span.end])).map(|(end, next)| next - end);
    // What the host computes itself launches nothing either.
    let holes = quiet.filter(|quiet| *quiet > HOLE).sum::<i64>() + hosted;
    let paced = calls().map(|c| c.start).max()? - span.start;
    let (called, any) = (time(&called), time(&any));
    Some(Chain { launches, length, paced, holes, called, python: any - called, framework })
}
