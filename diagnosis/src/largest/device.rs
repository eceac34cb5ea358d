//! What the device did: kernels by name, copies by direction and memory.

use model::{CopyDetail, Detail, Ns, Span, StringId, Trace};
use rustc_hash::FxHashMap;

use super::{
    cover::Cover,
    row::{Kind, Row, Sum, largest},
};
use crate::analysis::{CopyDir, DeviceOp, OpKind, Rank};

/// The device operations of a rank that begin in the time of the tables, and the time that they cover.
pub(super) struct Work<'a> {
    /// The operations.
    pub ops: Vec<(usize, &'a DeviceOp)>,
    /// Time in which something computed.
    pub computing: Cover,
    /// Time in which a kernel ran, collectives among them.
    kernels: Cover,
    /// Time of the tables in which the device did nothing.
    pub idle: Cover,
    communication: Cover,
    copies: Cover,
    /// Time that a finding is about.
    pub stated: Cover,
}

impl<'a> Work<'a> {
    /// The work of a rank in `windows`.
    pub fn of(rank: &'a Rank, windows: &Cover, stated: Vec<Span>) -> Self {
        let all = &rank.timeline.ops;
        let cover = |pick: fn(OpKind) -> bool| {
            Cover::of(all.iter().filter(|op| pick(op.kind)).map(|op| Span::new(op.start, op.end)).collect())
        };
        let clip = |cover: Cover| {
            let inside = |window: &Span| {
                let window = *window;
                cover.spans().iter().map(move |span| span.clip(window)).filter(|span| !span.is_empty())
            };
            Cover::of(windows.spans().iter().flat_map(inside).collect())
        };
        let ops = all.iter().enumerate().filter(|(_, op)| windows.contains(op.start)).collect();
        Self {
            ops,
            computing: cover(|kind| matches!(kind, OpKind::Compute | OpKind::Opaque)),
            kernels: cover(|kind| !matches!(kind, OpKind::Copy(_))),
            idle: windows.without(&cover(|_| true)),
            communication: clip(cover(|kind| kind == OpKind::Comm)),
            copies: clip(cover(|kind| matches!(kind, OpKind::Copy(_)))),
            stated: Cover::of(stated),
        }
    }

    /// The time in which collectives ran and nothing computed, and that in which copies ran and no kernel, ns.
    pub fn exposed(&self) -> (Option<Ns>, Option<Ns>) {
        let alone = |of: &Cover, over: &Cover| (of.len() > 0).then(|| of.without(over).len());
        (alone(&self.communication, &self.computing), alone(&self.copies, &self.kernels))
    }

    /// For how much of an operation a finding speaks of it, ns.
    pub fn stated(&self, op: &DeviceOp) -> Ns {
        self.stated.within(Span::new(op.start, op.end))
    }

    /// What of a collective no computation hides, ns.
    pub fn alone(&self, op: &DeviceOp) -> Ns {
        op.dur().saturating_sub(self.computing.within(Span::new(op.start, op.end)))
    }
}

/// The kernels with the most time.
pub(super) fn kernels(trace: &Trace, work: &Work<'_>) -> Vec<Row> {
    let mut sums: FxHashMap<(StringId, &'static str, bool), Sum> = FxHashMap::default();
    for (_, op) in &work.ops {
        let of = match op.kind {
            OpKind::Copy(_) => continue,
            OpKind::Opaque => "graph",
            OpKind::Compute | OpKind::Comm => op.op.name(),
        };
        let comm = op.kind == OpKind::Comm;
        let exposed = if comm { work.alone(op) } else { 0 };
        sums.entry((op.name, of, comm)).or_default().add(op.dur(), (exposed, work.stated(op)), op.slice);
    }
    let name = |id: StringId| trace.strings.get(id);
    largest(
        sums,
        |(id, of, _)| (name(id), of),
        |(id, of, comm), sum| Row { exposed: comm.then_some(sum.exposed), ..sum.row(Kind::Kernel, name(id), of) },
    )
}

/// The copies and fills with the most time, by direction and kind of memory.
pub(super) fn copies(trace: &Trace, work: &Work<'_>) -> Vec<Row> {
    type Key = (CopyDir, Option<StringId>, Option<StringId>);
    let mut sums: FxHashMap<Key, Sum> = FxHashMap::default();
    let mut moved: FxHashMap<Key, (i64, Ns)> = FxHashMap::default();
    for (_, op) in &work.ops {
        let OpKind::Copy(dir) = op.kind else { continue };
        let detail = detail(trace, op);
        let key = (dir, detail.and_then(|d| d.src), detail.and_then(|d| d.dst));
        let hidden = work.kernels.within(Span::new(op.start, op.end));
        sums.entry(key).or_default().add(op.dur(), (op.dur().saturating_sub(hidden), work.stated(op)), op.slice);
        if let Some(bytes) = detail.and_then(|d| d.bytes) {
            let (all, time) = moved.entry(key).or_default();
            (*all, *time) = (all.saturating_add(bytes), time.saturating_add(op.dur()));
        }
    }
    let name = |(dir, src, dst): Key| {
        let text = |id: Option<StringId>| id.map(|id| trace.strings.get(id)).filter(|text| !text.is_empty());
        match (text(src), text(dst)) {
            (Some(src), Some(dst)) => format!("{} {src} → {dst}", direction(dir)),
            (None, Some(only)) | (Some(only), None) => format!("{} {only}", direction(dir)),
            (None, None) => direction(dir).to_owned(),
        }
    };
    largest(sums, name, |key, sum| {
        let moved = moved.get(&key).filter(|(bytes, _)| *bytes > 0);
        Row {
            exposed: Some(sum.exposed),
            bytes: moved.map(|(bytes, _)| *bytes),
            rate: moved.filter(|(_, time)| *time > 0).map(|(bytes, time)| *bytes as f64 * 1e9 / *time as f64),
            ..sum.row(Kind::Copy, name(key), key.0.name())
        }
    })
}

/// What a direction is called in a row.
fn direction(dir: CopyDir) -> &'static str {
    match dir {
        CopyDir::HtoD => "HtoD",
        CopyDir::DtoH => "DtoH",
        CopyDir::DtoD => "DtoD",
        CopyDir::PtoP => "PtoP",
        CopyDir::HtoH => "HtoH",
        CopyDir::Staging => "staging",
        CopyDir::Memset => "memset",
        CopyDir::Unknown => "copy",
    }
}

fn detail<'t>(trace: &'t Trace, op: &DeviceOp) -> Option<&'t CopyDetail> {
    let (track, row) = trace.locate(op.slice)?;
    match trace.detail(trace.lanes.get(track.0 as usize)?, row)? {
        Detail::Copy(copy) => Some(copy),
        _ => None,
    }
}
