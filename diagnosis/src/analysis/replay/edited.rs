//! A model with edits carried out.

use std::borrow::Cow;

use model::{Ns, Span, TrackId};
use rustc_hash::FxHashMap;

use super::{
    Variant,
    calibrate::TURNS,
    model::{CallRow, Fate, Model, NONE, Node, OpRow},
};
use crate::{
    analysis::{Call, Edit, Rank, Step, median},
    platform::HostCall,
};

/// Time of a call that launches, without waiting, from which it does something else besides, ns; own value, five times what a slow
/// launch takes.
pub const SLOW_LAUNCH: Ns = 100_000;

/// Graph launch of a good driver: fixed part, ns, and per node, in ns per thousand nodes. NVIDIA reports 2.5 µs and about
/// 1 ns per node for straight graphs from CUDA 12.6, and up to 200 ns per node before; the middle of what captures show.
const GRAPH_GOOD: (Ns, Ns) = (6_000, 10_000);
/// Graph launch of an older driver, same parts and source.
const GRAPH_POOR: (Ns, Ns) = (15_000, 60_000);
/// Node gaps of current devices, short and long, ns; own values from captures.
const NODE_GAP: (Ns, Ns) = (700, 1_500);
/// Calls looked back upon for the event that orders a launch.
const EVENTS: usize = 4;

/// The rows of a model, those that no edit touched still the model's own.
pub(super) struct Edited<'a> {
    model: &'a Model,
    rank: &'a Rank,
    variant: Variant,
    ops: Cow<'a, [OpRow]>,
    calls: Cow<'a, [CallRow]>,
    /// Collectives whose transfer takes another time, ns.
    pub transfers: Vec<(u32, Ns)>,
    /// Halves of the time of operations beside their queue that the queue loses.
    pub lost_beside: Ns,
    /// Operations removed of each call.
    gone: FxHashMap<u32, u32>,
}

impl<'a> Edited<'a> {
    /// The model with `edits` in it.
    pub fn new(model: &'a Model, rank: &'a Rank, edits: &[&Edit], variant: Variant) -> Self {
        let mut edited = Self {
            model,
            rank,
            variant,
            ops: Cow::Borrowed(&model.ops),
            calls: Cow::Borrowed(&model.calls),
            transfers: Vec::new(),
            lost_beside: Ns::from(variant == Variant::Cautious),
            gone: FxHashMap::default(),
        };
        edits.iter().for_each(|edit| edited.carry_out(edit));
        edited
    }

    /// Operations.
    pub fn ops(&self) -> &[OpRow] {
        &self.ops
    }

    /// Calls.
    pub fn calls(&self) -> &[CallRow] {
        &self.calls
    }

    /// Time that the rows lost to the edits, ns: of the device, of the host, and of calls that waited.
    pub fn taken(&self) -> Ns {
        let of_op = |(was, is): (&OpRow, &OpRow)| match is.fate {
            Fate::Removed => was.dur + was.gap.max(0),
            Fate::Aside => was.dur,
            Fate::Stays => (was.dur - is.dur).max(0) + (was.gap - is.gap).max(0) + (was.lag - is.lag).max(0),
        };
        let calls = &self.rank.timeline.calls;
        let of_call = |((was, is), call): ((&CallRow, &CallRow), &crate::analysis::Call)| {
            let waited = if is.awaits == was.awaits { 0 } else { (call.end - call.start - was.own).max(0) };
            waited + (was.before - is.before).max(0) + (was.own - is.own).max(0)
        };
        let ops: Ns = self.model.ops.iter().zip(self.ops()).map(of_op).sum();
        ops + self.model.calls.iter().zip(self.calls()).zip(calls).map(of_call).sum::<Ns>() + self.last_launches()
    }

    /// The way to the device of launches that are gone and that no other follows before the host waits, and what the host did
    /// before them, ns: that now lies beside what the device still does. Before a launch that stays it does not.
    fn last_launches(&self) -> Ns {
        let mut ways = FxHashMap::default();
        for row in self.ops().iter().filter(|row| row.fate == Fate::Removed && !row.from_end) {
            let way: &mut Ns = ways.entry(row.call).or_default();
            *way = row.latency.max(*way);
        }
        let (mut last, mut sum) = (vec![0; self.model.threads.len()], 0);
        let rows = self.model.calls.iter().zip(self.calls()).zip(&self.rank.timeline.calls);
        for (c, ((was, is), call)) in (0u32..).zip(rows) {
            let Some(last) = last.get_mut(was.thread as usize) else { continue };
            if is.own == 0 && was.own > 0 {
                *last += is.before + ways.get(&c).map_or(0, |way| (way - was.own).max(0));
            } else if call.ops > 0 {
                *last = 0;
            } else if was.awaits != NONE {
                sum += std::mem::take(last);
            }
        }
        sum
    }

    /// What the busiest queue of the device has to do in a step, and what the host's calls need without waiting, ns: no step
    /// is shorter. Collectives that ranks share take their `transfer`, and no wait.
    pub fn least(&self, step: &Step, transfer: &[Ns]) -> (Ns, Ns) {
        let timeline = &self.rank.timeline;
        let mut queues = vec![0; timeline.queues.len()];
        for o in step.ops.clone() {
            let (Some(row), Some(op)) = (self.ops.get(o), timeline.ops.get(o)) else { continue };
            if let Some(queue) = queues.get_mut(op.queue as usize).filter(|_| row.fate == Fate::Stays) {
                let needs = transfer.get(row.instance as usize).copied().unwrap_or(row.dur);
                *queue += (needs + row.gap.min(0)).max(0);
            }
        }
        let mut threads = vec![0; self.model.threads.len()];
        let begun = |t: Ns| timeline.calls.partition_point(|call| call.start < t);
        for row in self.calls.get(begun(step.window.start)..begun(step.window.end)).unwrap_or(&[]) {
            if let Some(thread) = threads.get_mut(row.thread as usize).filter(|_| row.awaits == NONE) {
                *thread += row.own;
            }
        }
        (queues.into_iter().max().unwrap_or(0), threads.into_iter().max().unwrap_or(0))
    }

    fn hopeful(&self) -> bool {
        self.variant == Variant::Hopeful
    }

    fn carry_out(&mut self, edit: &Edit) {
        match edit {
            Edit::Remove(ops) => ops.iter().for_each(|o| self.remove(*o)),
            Edit::Resize(ops) => ops.iter().for_each(|(o, ns)| self.resize(*o, *ns)),
            Edit::Fuse(groups) => {
                for (group, ns) in groups {
                    if let Some((first, rest)) = group.split_first() {
                        self.resize(*first, *ns);
                        rest.iter().for_each(|o| self.remove(*o));
                    }
                }
            }
            Edit::Graph(groups) => groups.iter().for_each(|group| self.graph(group)),
            Edit::Gap(ops) => {
                for (o, most) in ops {
                    self.op(*o, |row| row.gap = row.gap.min((*most).max(0)));
                }
            }
            Edit::Pace(ops) => ops.iter().for_each(|(o, ns)| self.op(*o, |row| row.gap = *ns)),
            Edit::Lag(ops) => {
                for (o, most) in ops {
                    self.op(*o, |row| row.lag = row.lag.min((*most).max(0)));
                }
            }
            Edit::Unblock(calls) => {
                calls.iter().for_each(|c| self.unblock(*c));
                if self.hopeful() && !self.model.typical.gap_seen {
                    // What follows at once on this device, no record shows: it may be nothing.
                    self.ops.to_mut().iter_mut().for_each(|row| row.gap = row.gap.min(0));
                }
            }
            Edit::Host(track, stretches) => stretches.iter().for_each(|(span, ns)| self.host(*track, *span, *ns)),
            Edit::OverlapSteps(percent) => self.overlap_steps((*percent).clamp(0, 100)),
            Edit::Transfer(ops) => {
                for (o, ns) in ops {
                    self.transfer(*o, (*ns).max(0));
                }
            }
            Edit::Alone(ops) => {
                for (o, ns) in ops {
                    self.op(*o, |row| (row.instance, row.dur) = (NONE, (*ns).max(0)));
                }
            }
            Edit::Aside(ops) => ops.iter().for_each(|o| self.op(*o, |row| row.fate = Fate::Aside)),
            Edit::Hoped(edit) => {
                if self.hopeful() {
                    self.carry_out(edit);
                }
            }
        }
    }

    fn op(&mut self, o: u32, change: impl FnOnce(&mut OpRow)) {
        // An operation that is gone stays gone: of two edits the stronger one holds.
        if let Some(row) = self.ops.to_mut().get_mut(o as usize).filter(|row| row.fate != Fate::Removed) {
            change(row);
        }
    }

    fn call(&mut self, c: u32, change: impl FnOnce(&mut CallRow)) {
        if let Some(row) = self.calls.to_mut().get_mut(c as usize) {
            change(row);
        }
    }

    fn resize(&mut self, o: u32, ns: Ns) {
        self.op(o, |row| row.dur = ns.max(0));
    }

    fn transfer(&mut self, o: u32, ns: Ns) {
        let instance = self.ops.get(o as usize).map_or(NONE, |row| row.instance);
        if instance == NONE {
            self.op(o, |row| row.dur = row.dur.min(ns));
        } else {
            self.transfers.push((instance, ns));
        }
    }

    fn remove(&mut self, o: u32) {
        let Some(row) = self.ops.get(o as usize).filter(|row| row.fate != Fate::Removed) else { return };
        let call = row.call;
        let in_graph = self.rank.timeline.ops.get(o as usize).is_some_and(|op| op.in_graph);
        let typical = &self.model.typical;
        let usual = typical.node_gap.filter(|_| in_graph).unwrap_or(typical.gap).max(0);
        if (call == NONE || in_graph) && row.gap > 2 * usual {
            // Far more than usual has other reasons than this operation: idle time that nothing explains stays.
            self.op(o, |row| (row.dur, row.gap) = (0, row.gap - usual));
        } else {
            self.op(o, |row| row.fate = Fate::Removed);
        }
        if call == NONE {
            return;
        }
        let gone = self.gone.entry(call).or_default();
        *gone += 1;
        if self.rank.timeline.calls.get(call as usize).is_some_and(|c| c.ops <= *gone) {
            self.silence(call);
        }
    }

    /// A launch that is not made: neither its call nor what the host usually does before one, nor the event that orders it.
    fn silence(&mut self, c: u32) {
        let calls = &self.rank.timeline.calls;
        let Some(track) = calls.get(c as usize).map(|call| call.track) else { return };
        let before = calls.get(..c as usize).unwrap_or(&[]).iter().enumerate().rev().take(EVENTS);
        let orders = |kind| matches!(kind, HostCall::EventRecord | HostCall::StreamWaitEvent);
        let events: Vec<u32> = before
            .filter(|(_, call)| call.track == track)
            .take_while(|(_, call)| orders(call.kind))
            .map(|(i, _)| i as u32)
            .collect();
        let usual = self.model.typical.before;
        for c in events.into_iter().chain([c]) {
            self.call(c, |row| {
                // What is far more than usual has other reasons than this launch.
                row.before = if row.before <= 2 * usual { 0 } else { row.before - usual };
                row.own = 0;
                row.awaits = NONE;
            });
        }
    }

    /// The operations of a group become nodes of one graph, launched where the first of them was.
    fn graph(&mut self, group: &[u32]) {
        let timeline = &self.rank.timeline;
        let mut calls: Vec<u32> =
            group.iter().filter_map(|o| self.ops.get(*o as usize)).map(|r| r.call).filter(|c| *c != NONE).collect();
        calls.sort_unstable();
        calls.dedup();
        let (Some(first), Some(last)) = (calls.first().copied(), calls.last().copied()) else { return };
        let typical = self.model.typical;
        let (known, nodes) = (typical.graph_launch, group.len() as Ns);
        let on_host = timeline.on_host;
        let (fixed, each) = match self.hopeful() {
            // A replay by the host's own cores is one launch, and at most what a driver's takes.
            true if on_host => (typical.launch, 0),
            false if !on_host => GRAPH_POOR,
            _ => GRAPH_GOOD,
        };
        let cost = known.unwrap_or(fixed) + nodes * each / 1000;
        let node_gap = match typical.node_gap {
            Some(gap) => gap,
            None if on_host => typical.gap,
            None if self.hopeful() => typical.gap.min(NODE_GAP.0),
            None => typical.gap.max(NODE_GAP.1),
        };
        // Threads may take turns: the backward pass of training is launched by a thread of its own.
        // One that launches little of it does something else in between.
        let mut launched: FxHashMap<TrackId, usize> = FxHashMap::default();
        for call in calls.iter().filter_map(|c| timeline.calls.get(*c as usize)) {
            *launched.entry(call.track).or_default() += 1;
        }
        let leader = timeline.calls.get(first as usize).map(|call| call.track);
        launched.retain(|track, n| Some(*track) == leader || *n * TURNS >= calls.len());
        // What a call does besides launching may have to be done beside a graph too.
        let keeps = !self.hopeful();
        for c in first..=last {
            let launches = |call: &&Call| launched.contains_key(&call.track);
            let Some(call) = timeline.calls.get(c as usize).filter(launches) else { continue };
            let replaced = call.ops > 0 && calls.binary_search(&c).is_ok()
                || matches!(call.kind, HostCall::EventRecord | HostCall::StreamWaitEvent);
            self.call(c, |row| {
                if c != first {
                    row.before = 0;
                }
                if replaced {
                    row.own =
                        if keeps && row.own >= SLOW_LAUNCH { row.own - typical.launch.min(SLOW_LAUNCH) } else { 0 };
                    row.awaits = NONE;
                }
            });
        }
        let piece = |c: u32| timeline.calls.get(c as usize).is_some_and(|call| call.kind == HostCall::GraphLaunch);
        let alike = calls.iter().filter(|c| piece(**c) || !piece(first));
        let usual = median(alike.filter_map(|c| self.model.calls.get(*c as usize)).map(|r| r.before).collect());
        // The first launch had its own share of what the host does before each; in doubt a graph needs what is usual before
        // any launch of the rank.
        let kept = if self.hopeful() { 0 } else { typical.before };
        let share = (usual.unwrap_or(0) - kept).max(0);
        self.call(first, |row| {
            row.own += cost;
            row.before -= share.min(row.before);
        });
        let latency = cost + typical.graph_latency;
        let hopeful = self.hopeful();
        for o in group {
            self.op(*o, |row| {
                (row.call, row.from_end, row.latency, row.core) = (first, false, latency, NONE);
                // Operations that overlapped go on doing so, and the host's own cores are no faster from one to the next.
                let stays = row.gap < 0 || on_host && !hopeful;
                row.gap = if stays { row.gap } else { node_gap };
            });
        }
    }

    fn unblock(&mut self, c: u32) {
        let Some(call) = self.rank.timeline.calls.get(c as usize) else { return };
        let launches = call.ops > 0;
        let typical = self.model.typical;
        self.call(c, |row| {
            row.awaits = NONE;
            row.own = if launches { row.own.min(typical.launch) } else { 0 };
        });
        if self.hopeful()
            && let Some(Node::Begin(next)) = self.after(c)
        {
            self.call(next, |row| row.before = row.before.min(typical.before));
        }
    }

    /// The point of the call's thread after its return.
    fn after(&self, c: u32) -> Option<Node> {
        self.points_after(c)?.first().map(|(_, node)| *node)
    }

    /// The points of the call's thread after its return.
    fn points_after(&self, c: u32) -> Option<&'a [(Ns, Node)]> {
        let end = self.rank.timeline.calls.get(c as usize)?.end;
        let model: &'a Model = self.model;
        let points = &model.threads.get(model.calls.get(c as usize)?.thread as usize)?.points;
        let rest = points.get(points.partition_point(|(t, _)| *t < end)..)?;
        let at = rest.iter().position(|(_, node)| *node == Node::End(c))?;
        rest.get(at + 1..)
    }

    /// Takes out of every stretch between two points its share of what the span loses.
    fn host(&mut self, track: TrackId, span: Span, ns: Ns) {
        let model: &'a Model = self.model;
        let Some(thread) = model.thread(track) else { return };
        let (len, less) = (i128::from(span.len()), i128::from((span.len() - ns.max(0)).max(0)));
        let mut at = thread.points.partition_point(|(t, _)| *t <= span.start);
        if len <= 0 {
            return;
        }
        while let Some((end, node)) = thread.points.get(at) {
            let start = at.checked_sub(1).and_then(|i| thread.points.get(i)).map_or(*end, |(t, _)| *t);
            if start >= span.end {
                return;
            }
            let inside = Span::new(start, *end).clip(span).len();
            let cut = Ns::try_from(i128::from(inside) * less / len).unwrap_or(0);
            match *node {
                Node::Begin(c) => self.call(c, |row| row.before -= cut.min(row.before)),
                Node::End(c) => self.call(c, |row| row.own -= cut.min(row.own)),
                _ => {}
            }
            at += 1;
        }
    }

    /// The wait that ends each step becomes the wait of the step before, and what follows it is done beside the thread that
    /// launches; cautiously the wait stays, and so many percent of what follows it.
    fn overlap_steps(&mut self, percent: Ns) {
        let waits = self.final_waits();
        for pair in waits.windows(2) {
            let [(step, before), (next, c)] = pair else { continue };
            if next != &(step + 1) {
                continue;
            }
            if !self.hopeful() {
                self.leave_after(*before, percent);
                continue;
            }
            self.leave_after(*before, 0);
            let awaited = self.model.calls.get(*before as usize).map_or(NONE, |row| row.awaits);
            let launches = self.rank.timeline.calls.get(*c as usize).is_some_and(|call| call.ops > 0);
            let usual = self.model.typical.launch;
            self.call(*c, |row| {
                row.awaits = awaited;
                row.own = if launches { row.own.min(usual) } else { row.own };
            });
        }
    }

    /// Leaves so many percent of the host's time from a wait to the next launch.
    fn leave_after(&mut self, c: u32, percent: Ns) {
        let calls = &self.rank.timeline.calls;
        let points = self.points_after(c).unwrap_or_default();
        let begun = points.iter().filter_map(|(_, node)| if let Node::Begin(i) = node { Some(*i) } else { None });
        let capturing = &self.rank.timeline.capturing;
        for (i, call) in begun.filter_map(|i| Some((i, calls.get(i as usize)?))) {
            // Compilation, graph construction and allocation are no work of the scheduler.
            let other = call.kind.is_compile() || matches!(call.kind, HostCall::Alloc | HostCall::Free);
            let around = capturing.get(capturing.partition_point(|span| span.end <= call.start));
            if other || around.is_some_and(|span| span.start <= call.start) {
                continue;
            }
            self.call(i, |row| {
                row.before = row.before.saturating_mul(percent) / 100;
                if call.ops == 0 {
                    row.own = row.own.saturating_mul(percent) / 100;
                }
            });
            if call.ops > 0 {
                return;
            }
        }
    }

    /// The last call of each step that waits for the step's own work.
    fn final_waits(&self) -> Vec<(usize, u32)> {
        let steps = &self.rank.steps;
        let mut waits: Vec<(usize, u32)> = Vec::new();
        for (c, (call, row)) in self.rank.timeline.calls.iter().zip(&self.model.calls).enumerate() {
            if !call.blocking || row.awaits == NONE {
                continue;
            }
            let of = steps.partition_point(|s| s.ops.end <= row.awaits as usize);
            match waits.last_mut() {
                Some((last, wait)) if *last == of => *wait = c as u32,
                Some((last, _)) if *last > of => {}
                _ => waits.push((of, c as u32)),
            }
        }
        waits
    }
}
