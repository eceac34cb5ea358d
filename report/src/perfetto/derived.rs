//! What the analysis says, as slices on threads of their own: steps, idle time by cause, collectives with the wait apart from
//! the transfer, copies, graph replays.

use std::{cmp::Reverse, io};

use model::{Ns, Span};
use rustc_hash::FxHashMap;

use super::{
    File, Source,
    event::{Args, Slice, quoted},
    places::{Layout, Thread, order},
};
use crate::{phrase, sections::words};
use diagnosis::{
    analysis::{DeviceOp, OpKind, Rank, Step},
    diagnose::{Finding, Stretch, rules},
    i18n::Text,
};

/// A slice that the analysis made.
struct Made {
    span: Span,
    name: String,
    args: Args,
}

impl Made {
    fn new(span: Span, name: impl Into<String>) -> Self {
        Self { span, name: name.into(), args: Args::default() }
    }
}

/// Writes what was found in each rank. What may be as long as the capture is made slice by slice; it is in order of time.
pub fn write(source: &Source<'_>, layout: &Layout, file: &mut File<'_, '_>) -> io::Result<()> {
    for (at, (rank, pid)) in source.analysis.ranks.iter().zip(&layout.ranks).enumerate() {
        let by = source.clocks.rank(at);
        let thread = |name: Text, order: u32| Thread::new(*pid, source.get(name).to_owned(), order);
        let steps_thread = thread(Text::new("steps", "步"), order::STEPS);
        put(
            source,
            (steps_thread, by),
            "strato.step",
            rank.steps.iter().map(|step| of_step(source, rank, step)),
            file,
        )?;
        let idle_thread = thread(Text::new("idle: why", "空闲原因"), order::IDLE);
        put(source, (idle_thread, by), "strato.idle", idle(source, rank), file)?;
        let evidence_thread = thread(Text::new("evidence", "证据"), order::EVIDENCE);
        put(source, (evidence_thread, by), "strato.evidence", sorted(evidence(source, rank)), file)?;
        let together = thread(Text::new("collectives", "集合通信"), order::COLLECTIVES);
        put(source, (together, by), "strato.collective", sorted(collectives(source, rank)), file)?;
        let copied = thread(Text::new("copies", "拷贝"), order::COPIES);
        put(source, (copied, by), "strato.copy", copies(source, rank), file)?;
        let replayed = thread(Text::new("graph replays", "图重放"), order::REPLAYS);
        put(source, (replayed, by), "strato.graph_replay", sorted(replays(source, rank)), file)?;
    }
    Ok(())
}

fn sorted(mut made: Vec<Made>) -> impl Iterator<Item = Made> {
    made.sort_by_key(|made| (made.span.start, Reverse(made.span.end)));
    made.into_iter()
}

fn put(
    source: &Source<'_>,
    (mut thread, by): (Thread, Ns),
    category: &'static str,
    made: impl Iterator<Item = Made>,
    file: &mut File<'_, '_>,
) -> io::Result<()> {
    for made in made {
        let name = quoted(&made.name);
        let slice = Slice { span: source.span(made.span, by), name: &name, category, link: None, args: &made.args };
        thread.put(&slice, file)?;
        file.written.derived += 1;
    }
    Ok(())
}

/// Stretches that are marked of a finding, at most: the costliest ones.
const MARKED: usize = 16;

/// Where to look at what each finding is about.
fn evidence(source: &Source<'_>, rank: &Rank) -> Vec<Made> {
    let of_rank = source.diagnosis.findings.iter().filter(|finding| finding.selected_on == rank.rank);
    let made = |finding: &Finding| {
        let title = rules::find(finding.rule).map_or("", |rule| source.get(rule.doc().title));
        let claim = phrase::plain(&finding.claim, source.lang);
        let one = |stretch: &Stretch| {
            let mut made = Made::new(stretch.span, format!("{} {title}", finding.rule));
            made.args.text("rule", finding.rule).text("claim", claim.as_str()).number("cost_ns", stretch.cost);
            made
        };
        finding.stretches.iter().take(MARKED).map(one).collect::<Vec<_>>()
    };
    of_rank.flat_map(made).collect()
}

fn of_step(source: &Source<'_>, rank: &Rank, step: &Step) -> Made {
    let word = source.get(Text::new("step", "步"));
    let mut made = Made::new(step.window, format!("{word} {} {}", step.index, step.label).trim_end());
    let class = rank.classes.get(step.class).map_or("", |class| class.key.as_str());
    made.args.number("step", i64::from(step.index)).text("class", class);
    made.args.text("counted", source.get(words::selection(step.selection)));
    let mut buckets = Args::default();
    for (bucket, ns) in &step.buckets {
        buckets.named(&bucket.name(&source.analysis.host_labels), *ns);
    }
    made.args.json("buckets_ns", &buckets.object());
    made
}

fn idle<'a>(source: &'a Source<'_>, rank: &'a Rank) -> impl Iterator<Item = Made> + 'a {
    let parts = rank.gaps.iter().flat_map(|gap| gap.parts.iter().map(move |part| (gap, part)));
    parts.map(|(gap, (bucket, span))| {
        let mut made = Made::new(*span, bucket.name(&source.analysis.host_labels));
        made.args.text("layer", bucket.layer().key()).number("step", i64::from(gap.step));
        let owner = gap.owner.and_then(|owner| rank.timeline.ops.get(owner as usize));
        made.args.number("ended_by_slice", owner.map(|op| i64::from(op.slice.0)));
        made
    })
}

fn of_op(source: &Source<'_>, op: &DeviceOp, span: Span, name: impl Into<String>) -> Made {
    let mut made = Made::new(span, name);
    made.args.number("of_slice", i64::from(op.slice.0));
    made.args.text("name", source.trace.strings.get(op.name));
    made
}

fn collectives(source: &Source<'_>, rank: &Rank) -> Vec<Made> {
    let mut made = Vec::new();
    for op in rank.timeline.ops.iter().filter(|op| op.kind == OpKind::Comm) {
        let transfer = op.end - rank.collectives.transfer_of(source.trace, op);
        let wait = Span::new(op.start, transfer);
        if !wait.is_empty() {
            made.push(of_op(source, op, wait, source.get(Text::new("wait", "等待"))));
        }
        made.push(of_op(source, op, Span::new(transfer, op.end), op.op.name()));
    }
    made
}

fn copies<'a>(source: &'a Source<'_>, rank: &'a Rank) -> impl Iterator<Item = Made> + 'a {
    let copies = rank.timeline.ops.iter().filter(|op| matches!(op.kind, OpKind::Copy(_)));
    copies.map(|op| of_op(source, op, Span::new(op.start, op.end), op.op.name()))
}

/// From the first kernel of a replay to the last; replays of one graph are one after the other.
fn replays(source: &Source<'_>, rank: &Rank) -> Vec<Made> {
    let mut replays: FxHashMap<u32, (Span, i64)> = FxHashMap::default();
    for op in rank.timeline.ops.iter().filter(|op| op.in_graph || op.kind == OpKind::Opaque) {
        let Some(call) = op.call else { continue };
        let (span, count) = replays.entry(call).or_insert((Span::new(op.start, op.end), 0));
        *span = Span::new(span.start.min(op.start), span.end.max(op.end));
        *count += 1;
    }
    let one = |(call, (span, count)): (u32, (Span, i64))| {
        let call = rank.timeline.calls.get(call as usize)?;
        let word = source.get(Text::new("graph replay", "图重放"));
        let mut made = Made::new(span, word);
        made.args.number("operations", count).number("launch_slice", i64::from(call.slice.0));
        Some(made)
    };
    replays.into_iter().filter_map(one).collect()
}
