//! The critical path of a step: the chain of work and waiting that no part of can shrink without the step getting shorter
//! (method §2.10). It explains; what a change brings is for the replay to say, because the next path is not far away.

use ::model::{Ns, Span};

use super::{
    Replay,
    model::{Model, NONE, Node},
};
use crate::analysis::{Layer, OpKind, Rank, Step, bucket::Bucket};

/// The critical path of the median step of a rank's main class.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CriticalPath {
    /// Rank whose step it is.
    pub rank: u32,
    /// Class of the step.
    pub class: String,
    /// Position of the step in the run.
    pub step: u32,
    /// Length of the step, ns.
    pub length: Ns,
    /// Part of each layer on the path, ns; the parts add up to `length`. What no recorded cause leads back to is
    /// measurement.
    pub layers: Vec<(Layer, Ns)>,
    /// Times that the path goes over to another rank.
    pub hops: usize,
    /// Operations on the path, those of other ranks included.
    pub ops: usize,
}

/// Where the way back along the path has come to.
#[derive(Clone, Copy)]
enum At {
    /// The start of an operation.
    Start(u32),
    /// The end of an operation, of which the last so many ns lie beside the path.
    End(u32, Ns),
    /// A point of a thread, by thread and position.
    Host(usize, usize),
}

/// The way back from the end of a step.
struct Way {
    /// Time of the step that is yet to be explained, ns.
    left: Ns,
    layers: [(Layer, Ns); Layer::ALL.len()],
    hops: usize,
    ops: usize,
}

impl Way {
    fn charge(&mut self, layer: Layer, ns: Ns) {
        let ns = ns.clamp(0, self.left);
        self.left -= ns;
        if let Some((_, sum)) = self.layers.iter_mut().find(|(l, _)| *l == layer) {
            *sum += ns;
        }
    }
}

impl Replay<'_> {
    /// The critical path of the median step of the rank at this position.
    pub fn critical_path(&self, at: usize) -> Option<CriticalPath> {
        let rank = self.analysis.ranks.get(at)?;
        let class = rank.main_class()?;
        let mut steps: Vec<&Step> = rank.steady_steps(class).collect();
        steps.sort_by_key(|s| (s.window.len(), s.index));
        let followed = |s: &&&Step| rank.steps.get(s.index as usize + 1).is_some();
        let median = *steps.iter().skip(steps.len().saturating_sub(1) / 2).find(followed)?;
        let next = rank.steps.get(median.index as usize + 1)?.ops.start as u32;
        let way = self.back(at, At::Start(next), median.window.len());
        Some(CriticalPath {
            rank: rank.rank,
            class: class.key.clone(),
            step: median.index,
            length: median.window.len(),
            layers: way.layers.to_vec(),
            hops: way.hops,
            ops: way.ops,
        })
    }

    /// Follows causes back from a point until so much time is explained.
    fn back(&self, mut rank: usize, mut at: At, length: Ns) -> Way {
        let layers = Layer::ALL.map(|layer| (layer, 0));
        let mut way = Way { left: length, layers, hops: 0, ops: 0 };
        // Every hop goes to an earlier point, or once over to another rank of a collective.
        let most = 2 * self.models.iter().map(|m| m.nodes.len()).sum::<usize>();
        for _ in 0..most {
            let (Some(model), Some(of)) = (self.models.get(rank), self.analysis.ranks.get(rank)) else { break };
            let earlier = match at {
                At::Start(o) => cause(model, of, o, &mut way),
                At::End(o, beside) => {
                    way.ops += 1;
                    let (next, hopped) = self.through(rank, (o, beside), &mut way);
                    if hopped != rank {
                        (rank, way.hops) = (hopped, way.hops + 1);
                    }
                    next
                }
                At::Host(thread, point) => before(model, of, thread, point, &mut way),
            };
            match earlier {
                Some(earlier) if way.left > 0 => at = earlier,
                _ => break,
            }
        }
        let left = way.left;
        way.charge(Layer::Measurement, left);
        way
    }

    /// From the end of an operation to the start that decides it: its own, or that of the last rank in a collective.
    fn through(&self, rank: usize, (o, beside): (u32, Ns), way: &mut Way) -> (Option<At>, usize) {
        let Some(model) = self.models.get(rank) else { return (None, rank) };
        let (Some(row), Some(op)) =
            (model.ops.get(o as usize), self.analysis.ranks.get(rank).and_then(|r| r.timeline.ops.get(o as usize)))
        else {
            return (None, rank);
        };
        let members = self.analysis.job.instances.get(row.instance as usize).map_or(&[][..], |i| &i.members);
        let length = |m: &&crate::analysis::job::Member| {
            self.analysis.ranks.get(m.rank).and_then(|r| r.timeline.ops.get(m.op as usize)).map(|op| op.dur())
        };
        // All end at once, so the shortest came last.
        let last = members.iter().filter(|m| length(m).is_some()).min_by_key(|m| (length(m), m.rank != rank));
        if let Some(last) = last.filter(|m| m.rank != rank) {
            way.charge(Layer::Communication, length(&last).unwrap_or(0) - beside);
            return (Some(At::Start(last.op)), last.rank);
        }
        way.charge(layer(op.kind), op.dur() - beside);
        (Some(At::Start(o)), rank)
    }
}

fn layer(kind: OpKind) -> Layer {
    match kind {
        OpKind::Compute => Layer::Operator,
        OpKind::Comm => Layer::Communication,
        OpKind::Copy(dir) => Bucket::Copy(dir).layer(),
        OpKind::Opaque => Bucket::GraphOpaque.layer(),
    }
}

/// What let an operation start: of queue, event and launch the one that came last.
fn cause(model: &Model, rank: &Rank, o: u32, way: &mut Way) -> Option<At> {
    let row = model.ops.get(o as usize)?;
    let start = *model.starts.get(o as usize)?;
    let ended = |p: u32, after: Ns| model.ends.get(p as usize).is_some_and(|end| end + after == start);
    for (p, after) in [(row.pred, row.gap), (row.dep, row.lag)] {
        if ended(p, after) {
            let is_launched = rank.timeline.calls.get(row.call as usize).is_some();
            wait(rank, Span::new(start - after.max(0), start), is_launched, way);
            return Some(At::End(p, (-after).max(0)));
        }
    }
    let call = rank.timeline.calls.get(row.call as usize)?;
    let (t, node) = if row.from_end { (call.end, Node::End(row.call)) } else { (call.start, Node::Begin(row.call)) };
    way.charge(Layer::Runtime, start - t);
    let thread = model.calls.get(row.call as usize)?.thread as usize;
    position(model, thread, t, node).map(|point| At::Host(thread, point))
}

/// Charges what an operation waited for: idle time to the layer that it is attributed to; beside other work of the device, to
/// the runtime, which orders the queues, unless nothing shows what of the host launched the operation.
fn wait(rank: &Rank, span: Span, is_launched: bool, way: &mut Way) {
    let first = rank.gaps.partition_point(|gap| gap.span.end <= span.start);
    let gaps = rank.gaps.iter().skip(first).take_while(|gap| gap.span.start < span.end);
    let mut busy = span.len();
    for (bucket, part) in gaps.flat_map(|gap| &gap.parts) {
        let ns = part.clip(span).len().max(0);
        busy -= ns;
        way.charge(bucket.layer(), ns);
    }
    way.charge(if is_launched { Layer::Runtime } else { Layer::Measurement }, busy);
}

/// Position of a point of a thread.
fn position(model: &Model, thread: usize, t: Ns, node: Node) -> Option<usize> {
    let points = &model.threads.get(thread)?.points;
    let from = points.partition_point(|(time, _)| *time < t);
    points.iter().skip(from).position(|(_, n)| *n == node).map(|i| from + i)
}

/// What let the host come to a point: the end of what it waited for, or its own point before.
fn before(model: &Model, rank: &Rank, thread: usize, point: usize, way: &mut Way) -> Option<At> {
    let points = &model.threads.get(thread)?.points;
    let (t, node) = *points.get(point)?;
    if let Node::End(c) = node {
        let row = model.calls.get(c as usize)?;
        let waited = model.ends.get(row.awaits as usize).is_some_and(|end| end + row.tail == t);
        let begun = rank.timeline.calls.get(c as usize).is_some_and(|call| call.start < t - row.tail);
        if waited && begun {
            way.charge(Layer::Runtime, row.tail.max(0));
            return Some(At::End(row.awaits, 0));
        }
    }
    // A thread that goes on when another one has seen the device finish waits for that operation, where it is this rank's.
    if let Node::Begin(c) = node
        && let Some(row) = model.calls.get(c as usize).filter(|row| row.heeds != NONE)
        && let Some(told) = model.ops.iter().position(|op| op.tells == row.heeds)
    {
        way.charge(Layer::Runtime, row.before);
        return Some(At::End(told as u32, 0));
    }
    let (earlier, _) = *points.get(point.checked_sub(1)?)?;
    way.charge(Layer::Runtime, t - earlier);
    Some(At::Host(thread, point - 1))
}
