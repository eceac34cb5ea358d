//! Where each nanosecond of a run went, told from what the simulator did.
//!
//! A step's window reaches from the start of its first device operation to that of the next step's; the last one ends
//! with its last operation. While operations run, an interval belongs to the first of compute, transfer, copy and wait
//! that is active; between equals it is divided evenly among the operations, nanoseconds that do not divide going to
//! the earliest started (then the earliest issued). An interval without operations belongs to the operation that ends
//! it: before its launch call began to what the host was doing, during the call to the call, after it to what the start
//! really waited for.

use std::collections::BTreeMap;

use crate::record::{Bound, DeviceOp, Direction, HostEvent, HostKind, Work};

/// Bucket to nanoseconds.
pub type Buckets = BTreeMap<String, i64>;

fn add(buckets: &mut Buckets, bucket: &str, ns: i64) {
    if ns > 0 {
        *buckets.entry(bucket.to_owned()).or_default() += ns;
    }
}

/// Part of an operation with one bucket. Lower ranks hide higher ones.
struct Piece {
    start: i64,
    end: i64,
    rank: u8,
    bucket: String,
    order: (i64, usize),
}

fn pieces(ops: &[DeviceOp]) -> Vec<Piece> {
    let mut out = Vec::with_capacity(ops.len() + 16);
    for (at, op) in ops.iter().enumerate() {
        let mut piece = |start, end, rank, bucket: String| {
            if end > start {
                out.push(Piece { start, end, rank, bucket, order: (op.start, at) });
            }
        };
        match op.work {
            Work::Compute(class) => piece(op.start, op.end, 1, format!("compute.{}", class.name())),
            Work::Collective { wait, .. } => {
                let split = op.start + wait;
                piece(op.start, split, 4, "comm.wait".to_owned());
                piece(split, op.end, 2, "comm.transfer".to_owned());
            }
            Work::Copy { direction, .. } => {
                let way = match direction {
                    Direction::HostToDevice => "h2d",
                    Direction::DeviceToHost => "d2h",
                    Direction::DeviceToDevice => "d2d",
                    Direction::PeerToPeer => "p2p",
                };
                piece(op.start, op.end, 3, format!("copy.{way}"));
            }
            Work::Memset => piece(op.start, op.end, 3, "copy.memset".to_owned()),
        }
    }
    out.sort_by_key(|piece| (piece.start, piece.order));
    out
}

/// Divides an interval in which `active` operations run.
fn share(buckets: &mut Buckets, active: &[&Piece], ns: i64) {
    let Some(rank) = active.iter().map(|piece| piece.rank).min() else { return };
    let mut equals: Vec<_> = active.iter().filter(|piece| piece.rank == rank).collect();
    equals.sort_by_key(|piece| piece.order);
    let count = i64::try_from(equals.len()).unwrap_or(1);
    for (at, piece) in (0..).zip(equals) {
        add(buckets, &piece.bucket, ns / count + i64::from(at < ns % count));
    }
}

/// Exclusive attribution of the windows between consecutive `bounds` (ns, increasing).
pub(crate) fn attribute(ops: &[DeviceOp], host: &[HostEvent], bounds: &[i64]) -> Vec<Buckets> {
    let pieces = pieces(ops);
    let mut cuts: Vec<i64> =
        pieces.iter().flat_map(|piece| [piece.start, piece.end]).chain(bounds.iter().copied()).collect();
    cuts.sort_unstable();
    cuts.dedup();
    // Owners of idle intervals: by start, then in the order of issue.
    let mut owners: BTreeMap<i64, &DeviceOp> = BTreeMap::new();
    for op in ops {
        owners.entry(op.start).or_insert(op);
    }
    let thread = Thread::new(host);
    let mut windows = vec![Buckets::new(); bounds.len().saturating_sub(1)];
    let (mut active, mut next): (Vec<&Piece>, usize) = (Vec::new(), 0);
    for cut in cuts.windows(2) {
        let &[from, to] = cut else { continue };
        active.retain(|piece| piece.end > from);
        while let Some(piece) = pieces.get(next).filter(|piece| piece.start <= from) {
            active.push(piece);
            next += 1;
        }
        let window = bounds.partition_point(|bound| *bound <= from);
        let Some(buckets) = window.checked_sub(1).and_then(|window| windows.get_mut(window)) else { continue };
        if !active.is_empty() {
            share(buckets, &active, to - from);
        } else if let Some(owner) = owners.get(&to) {
            thread.idle(buckets, owner, from, to);
        }
    }
    windows
}

/// The host thread that issued everything.
struct Thread<'a> {
    host: &'a [HostEvent],
    /// Latest end among the events up to each index, so that a scan backwards knows when to stop.
    reach: Vec<i64>,
}

impl<'a> Thread<'a> {
    /// Events are recorded in the order of their starts.
    fn new(host: &'a [HostEvent]) -> Self {
        let reach = host
            .iter()
            .scan(i64::MIN, |reach, event| {
                *reach = event.end.max(*reach);
                Some(*reach)
            })
            .collect();
        Self { host, reach }
    }

    /// The idle interval `[from, to)` that `owner` ended.
    fn idle(&self, buckets: &mut Buckets, owner: &DeviceOp, from: i64, to: i64) {
        let call = &self.host[owner.call];
        let before = call.start.clamp(from, to);
        let during = call.end.clamp(before, to);
        let graph = call.kind == HostKind::GraphLaunch;
        self.host_part(buckets, from, before);
        add(buckets, if graph { "rt.graph_launch" } else { "rt.launch_api" }, during - before);
        let after = match owner.bound {
            Bound::Node => "rt.graph_internal",
            Bound::Dependency(ready) if ready > call.end => "rt.device_dep",
            Bound::Stream if call.end < from => "rt.dispatch",
            _ => "rt.launch_latency",
        };
        add(buckets, after, to - during);
    }

    /// What the host did in `[from, to)`, before it came to the owner's launch.
    fn host_part(&self, buckets: &mut Buckets, from: i64, to: i64) {
        if from >= to {
            return;
        }
        let past = self.host.partition_point(|event| event.start < to);
        let mut states: Vec<(i64, i64, u8, &'static str)> = Vec::new();
        for (event, reach) in self.host[..past].iter().zip(&self.reach[..past]).rev() {
            if *reach <= from {
                break;
            }
            if event.end > from
                && let Some((rank, bucket)) = state(event, from)
            {
                states.push((event.start.max(from), event.end.min(to), rank, bucket));
            }
        }
        let mut cuts: Vec<i64> = states.iter().flat_map(|state| [state.0, state.1]).chain([from, to]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        for cut in cuts.windows(2) {
            let &[start, end] = cut else { continue };
            let first = states.iter().filter(|state| state.0 <= start && end <= state.1).min_by_key(|state| state.2);
            add(buckets, first.map_or("rt.host", |state| state.3), end - start);
        }
    }
}

/// Rank and bucket of what a host event does in an idle interval that begins at `idle`; `None` for plain host work.
fn state(event: &HostEvent, idle: i64) -> Option<(u8, &'static str)> {
    match event.kind {
        HostKind::Overhead => Some((1, "prof")),
        HostKind::Compile | HostKind::ModuleLoad | HostKind::Capture => Some((2, "rt.compile")),
        HostKind::Alloc => Some((3, "rt.alloc")),
        kind if kind.blocks() && event.start < idle => Some((4, "rt.sync_tail")),
        kind if kind.blocks() => Some((5, "rt.sync_idle")),
        HostKind::Launch | HostKind::GraphLaunch | HostKind::Copy => Some((7, "rt.launch_api")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Class;

    fn host(kind: HostKind, start: i64, end: i64) -> HostEvent {
        HostEvent {
            kind,
            name: "".into(),
            start,
            end,
            correlation: None,
            external: None,
            inputs: None,
            stream: None,
            step: 0,
        }
    }

    fn op(work: Work, stream: usize, start: i64, end: i64, call: usize, bound: Bound) -> DeviceOp {
        DeviceOp {
            work,
            slot: None,
            stream,
            start,
            end,
            call,
            node: None,
            bound,
            bytes: 0,
            blocks: 0,
            name: None,
            peer: None,
            step: 0,
        }
    }

    fn told(ops: &[DeviceOp], host: &[HostEvent], end: i64) -> Vec<(String, i64)> {
        attribute(ops, host, &[0, end]).remove(0).into_iter().collect()
    }

    fn rows(rows: &[(&str, i64)]) -> Vec<(String, i64)> {
        rows.iter().map(|(bucket, ns)| ((*bucket).to_owned(), *ns)).collect()
    }

    #[test]
    fn what_runs_together_is_ranked_and_shared() {
        let calls = [host(HostKind::Launch, -9, -8)];
        let ops = [
            op(Work::Compute(Class::Gemm), 0, 0, 11, 0, Bound::Launch),
            op(Work::Compute(Class::Norm), 1, 4, 11, 0, Bound::Launch),
            op(Work::Collective { wait: 10, seq: 1 }, 0, 11, 31, 0, Bound::Stream),
            op(Work::Memset, 1, 15, 26, 0, Bound::Launch),
        ];
        // 7 ns are shared, 4 to the earlier; the copy hides the wait up to 21 and the transfer hides the copy after it.
        let expected =
            [("comm.transfer", 10), ("comm.wait", 4), ("compute.gemm", 8), ("compute.norm", 3), ("copy.memset", 6)];
        assert_eq!(told(&ops, &calls, 31), rows(&expected));
    }

    #[test]
    fn idle_time_goes_to_what_its_owner_waited_for() {
        let first = || op(Work::Compute(Class::Gemm), 0, 0, 10, 0, Bound::Launch);
        let after = |calls: &[HostEvent], call, bound| {
            let ops = [first(), op(Work::Compute(Class::Gemm), 0, 100, 101, call, bound)];
            let mut told = told(&ops, calls, 101);
            told.retain(|(bucket, _)| bucket != "compute.gemm");
            told
        };
        let launch = host(HostKind::Launch, -5, -1);
        let sync = host(HostKind::Sync(crate::record::SyncOn::Stream), 5, 20);
        let late = [launch.clone(), sync, host(HostKind::Alloc, 30, 36), host(HostKind::Launch, 60, 80)];
        let expected =
            [("rt.alloc", 6), ("rt.host", 34), ("rt.launch_api", 20), ("rt.launch_latency", 20), ("rt.sync_tail", 10)];
        assert_eq!(after(&late, 3, Bound::Launch), rows(&expected));
        assert_eq!(after(std::slice::from_ref(&launch), 0, Bound::Stream), rows(&[("rt.dispatch", 90)]));
        assert_eq!(after(std::slice::from_ref(&launch), 0, Bound::Dependency(50)), rows(&[("rt.device_dep", 90)]));
        assert_eq!(after(std::slice::from_ref(&launch), 0, Bound::Node), rows(&[("rt.graph_internal", 90)]));
        let graph = [launch, host(HostKind::Overhead, 12, 20), host(HostKind::GraphLaunch, 30, 90)];
        let expected = [("prof", 8), ("rt.graph_launch", 60), ("rt.host", 12), ("rt.launch_latency", 10)];
        assert_eq!(after(&graph, 2, Bound::Launch), rows(&expected));
    }
}
