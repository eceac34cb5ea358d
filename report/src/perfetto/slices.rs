//! The capture's own slices and links. Host threads are written before queues, so that of a call and its kernel that begin in
//! the same nanosecond the call comes first.

use std::io;

use model::{
    CollectiveCall, Columns, Detail, Ns, SliceId, Span, StringId, SyncKind, Trace, TrackId, TrackKind,
    trace::NO_CORRELATION,
};
use rustc_hash::FxHashMap;

use super::{
    File, Source,
    event::{Args, End, Names, Slice},
    nest::Row,
    places::{Layout, Thread},
};

/// Writes every slice of a capture once.
pub fn write(source: &Source<'_>, layout: &Layout, file: &mut File<'_, '_>) -> io::Result<()> {
    let trace = source.trace;
    let (links, mut launches) = Links::of(source);
    let mut names = Names::of(&trace.strings);
    let mut tracks: Vec<TrackId> = (0..trace.tracks.len() as u32).map(TrackId).collect();
    tracks.sort_by_key(|id| trace.tracks.get(id.0 as usize).map(|track| track.key.kind != TrackKind::HostThread));
    for id in tracks {
        let at = id.0 as usize;
        if let (Some(lane), Some((pid, order))) = (trace.lanes.get(at), layout.tracks.get(at)) {
            let thread = Thread::new(*pid, source.track_name(id), *order);
            Lane { source, links: &links, launches: &mut launches, id, lane, thread }.write(&mut names, file)?;
        }
    }
    file.written.broken_flows += links.broken;
    Ok(())
}

/// One end of a link that the source recorded.
struct Recorded {
    at: Ns,
    id: u64,
    end: End,
    kind: StringId,
}

/// Whether a slice launched something that a link can lead to, one bit each.
struct Launches(Vec<u64>);

impl Launches {
    /// Returns whether there is such a slice.
    fn add(&mut self, id: SliceId) -> bool {
        self.0.get_mut(id.0 as usize / 64).map(|word| *word |= 1 << (id.0 % 64)).is_some()
    }

    fn remove(&mut self, id: SliceId) {
        if let Some(word) = self.0.get_mut(id.0 as usize / 64) {
            *word &= !(1 << (id.0 % 64));
        }
    }

    fn has(&self, id: SliceId) -> bool {
        self.0.get(id.0 as usize / 64).is_some_and(|word| word >> (id.0 % 64) & 1 == 1)
    }
}

/// Links between slices of a capture.
struct Links {
    /// Ends of recorded links on each track, in order of time.
    recorded: FxHashMap<TrackId, Vec<Recorded>>,
    /// Links that end before they begin.
    broken: u64,
}

impl Links {
    fn of(source: &Source<'_>) -> (Self, Launches) {
        let trace = source.trace;
        let count = trace.slice_count();
        let mut launches = Launches(vec![0; count.div_ceil(64)]);
        let mut links = Self { recorded: FxHashMap::default(), broken: 0 };
        for lane in &trace.lanes {
            for row in 0..lane.len() {
                let Some(launch) = lane.link(row) else { continue };
                if !in_order(trace, lane, row, launch) || !launches.add(launch) {
                    links.broken += 1;
                }
            }
        }
        let first = source.first_link + count as u64;
        for (id, flow) in (first..).zip(&trace.flows) {
            if flow.to.1 < flow.from.1 {
                links.broken += 1;
                continue;
            }
            for ((track, at), end) in [(flow.from, End::From), (flow.to, End::To)] {
                links.recorded.entry(track).or_default().push(Recorded { at, id, end, kind: flow.kind });
            }
        }
        links.recorded.values_mut().for_each(|ends| ends.sort_by_key(|end| end.at));
        (links, launches)
    }
}

/// Whether a launch began before what it launched, by the clocks of the source: viewers refuse a link back in time.
fn in_order(trace: &Trace, lane: &Columns, row: usize, launch: SliceId) -> bool {
    let begun = trace.locate(launch).and_then(|(track, at)| trace.lanes.get(track.0 as usize)?.start.get(at));
    begun.zip(lane.start.get(row)).is_some_and(|(launch, start)| launch <= start)
}

/// The slices of one track on their way into the file.
struct Lane<'a> {
    source: &'a Source<'a>,
    links: &'a Links,
    launches: &'a mut Launches,
    id: TrackId,
    lane: &'a Columns,
    thread: Thread,
}

impl Lane<'_> {
    fn write(mut self, names: &mut Names<'_>, file: &mut File<'_, '_>) -> io::Result<()> {
        let mut ends = self.links.recorded.get(&self.id).map_or(&[][..], Vec::as_slice);
        let mut args = Args::default();
        for (row, start) in self.lane.start.iter().enumerate() {
            let (before, rest) = ends.split_at(ends.partition_point(|end| end.at < *start));
            ends = rest;
            self.recorded(before, names, file)?;
            self.slice(row, *start, &mut args, names, file)?;
        }
        self.recorded(ends, names, file)
    }

    fn slice(
        &mut self,
        row: usize,
        start: Ns,
        args: &mut Args,
        names: &mut Names<'_>,
        file: &mut File<'_, '_>,
    ) -> io::Result<()> {
        let (trace, lane) = (self.source.trace, self.lane);
        let (Some(name), Some(category)) = (lane.name.get(row), lane.category.get(row)) else { return Ok(()) };
        let id = lane.id(row);
        args.clear().number("slice", i64::from(id.0));
        args.number("correlation", lane.correlation.get(row).copied().filter(|c| *c != NO_CORRELATION));
        let launch = lane.link(row);
        args.number("launch_slice", launch.map(|launch| i64::from(launch.0)));
        if let Some(op) = self.source.analysis.ops.get(name).filter(|op| op.mapped && category.is_device_work()) {
            args.text("op", op.op.name());
        }
        if let Some(detail) = trace.detail(lane, row) {
            describe(trace, detail, args);
        }
        let link = |slice: SliceId| self.source.first_link + u64::from(slice.0);
        let from = launch.filter(|launch| in_order(trace, lane, row, *launch));
        let drawn = from.filter(|launch| self.launches.has(*launch));
        let link = match drawn {
            Some(launch) => Some((link(launch), End::To)),
            None => self.launches.has(id).then(|| (link(id), End::From)),
        };
        let span = self.source.span(Span::new(start, lane.end(row)), self.source.clocks.track(self.id));
        let name = names.get(*name);
        let slice = Slice { span, name: &name, category: category.name(), link, args };
        let row = self.thread.put(&slice, file)?;
        file.written.slices += 1;
        file.written.beside += u64::from(row != Row::Nested(0));
        // A track of its own takes no links. Threads of the host come first, so that what a call there launched knows of it.
        if row == Row::Alone {
            self.launches.remove(id);
        }
        match drawn.filter(|_| row != Row::Alone) {
            Some(_) => file.written.flows += 1,
            None => file.written.broken_flows += u64::from(from.is_some()),
        }
        Ok(())
    }

    /// Ends of recorded links, before what begins later is written.
    fn recorded(&self, ends: &[Recorded], names: &mut Names<'_>, file: &mut File<'_, '_>) -> io::Result<()> {
        for Recorded { at, id, end, kind } in ends {
            let at = self.source.time(*at, self.source.clocks.track(self.id));
            match self.thread.at(at) {
                Some(place) => {
                    file.events.link(place, *id, *end, at, &names.get(*kind))?;
                    file.written.flows += u64::from(*end == End::To);
                }
                None => file.written.broken_flows += 1,
            }
        }
        Ok(())
    }
}

/// What more is known of a slice.
fn describe(trace: &Trace, detail: &Detail, args: &mut Args) {
    let text = |id: Option<StringId>| id.map(|id| trace.strings.get(id));
    match detail {
        Detail::Kernel(kernel) => {
            args.number("graph", kernel.graph).number("graph_node", kernel.graph_node);
            for (key, shape) in [("grid", kernel.grid), ("block", kernel.block)] {
                let shape = shape.map(|[x, y, z]| format!("{x} × {y} × {z}"));
                args.text(key, shape.as_deref());
            }
            if let Some(call) = &kernel.collective {
                collective(trace, call, args);
            }
        }
        Detail::Copy(copy) => {
            args.text("direction", text(copy.direction)).text("src", text(copy.src)).text("dst", text(copy.dst));
            args.number("bytes", copy.bytes).number("graph_node", copy.graph_node);
        }
        Detail::Op(op) => {
            args.text("shapes", text(op.shapes)).text("dtypes", text(op.dtypes));
        }
        Detail::Collective(call) => collective(trace, call, args),
        Detail::Sync(kind) => {
            args.text("waits_for", sync(*kind));
        }
        Detail::Peer(rank) => {
            args.number("waits_for_rank", i64::from(*rank));
        }
        Detail::Launch(kernel) => {
            args.text("launches", text(Some(*kernel)));
        }
        Detail::Failed(code) => {
            args.number("failed_with", *code);
        }
    }
}

fn sync(kind: SyncKind) -> &'static str {
    match kind {
        SyncKind::Event => "event",
        SyncKind::StreamWaitEvent => "event, by a stream",
        SyncKind::Stream => "stream",
        SyncKind::Context => "context",
    }
}

fn collective(trace: &Trace, call: &CollectiveCall, args: &mut Args) {
    let text = |id: Option<StringId>| id.map(|id| trace.strings.get(id));
    args.text("collective", text(call.op)).text("group", text(call.group)).text("dtype", text(call.dtype));
    args.number("group_size", call.group_size.map(i64::from)).number("sequence", call.seq);
    args.number("payload_bytes", call.bytes);
}
