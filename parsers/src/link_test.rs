//! Output of link tests (`nccl-tests`, `rccl-tests`, `hccl_test`) and debug logs of NCCL and RCCL, as a table of link probes.
//!
//! `nccl-tests` prints algorithm and bus bandwidth, `hccl_test` algorithm bandwidth only: the two are kept apart, because
//! for an all-reduce of eight ranks they differ by 1.75. Nothing is filled in that was not printed.
//!
//! | module | owns |
//! | --- | --- |
//! | `perf` | rows of the tests |
//! | `debug` | channels and calls of a debug log |
//! | `topology` | links of the machine that a debug log lists |

use std::path::Path;

use model::{
    Category, Clock, CollectiveCall, Detail, Ns, Provenance::Observed, Reading, Severity, Slice, TraceSink, TrackKey,
    TrackKind,
};

use crate::{
    Format, Head, Match, Place, Progress, ReadError, ReadOptions,
    lines::{Lines, plain},
};

mod debug;
mod perf;
#[cfg(test)]
mod tests;
mod topology;

pub use topology::{Slow, Topology};

/// The format.
pub const FORMAT: Format =
    Format { id: "link-test", name: "NCCL, RCCL or HCCL test output or debug log", matches, read, lead: crate::alone };

/// One measured size.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkProbe {
    /// Collective such as `all_reduce`, if the text names it.
    pub op: Option<String>,
    /// Ranks that took part, if the text says it.
    pub ranks: Option<u32>,
    /// Message size, bytes, as the test counts it.
    pub bytes: i64,
    /// Element type.
    pub dtype: Option<String>,
    /// Whether input and output were one buffer; absent where the test does not tell.
    pub in_place: Option<bool>,
    /// Mean time of one operation, ns.
    pub time: Reading<Ns>,
    /// Algorithm bandwidth, size over time, GB/s.
    pub algbw: Reading<f64>,
    /// Bus bandwidth, algorithm bandwidth times the factor of the collective, GB/s.
    pub busbw: Reading<f64>,
    /// Whether the result was right; absent where it was not checked.
    pub correct: Option<bool>,
}

/// One connection of a debug log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// Rank that sends.
    pub from: u32,
    /// Rank that receives.
    pub to: u32,
    /// Transport such as `P2P/CUMEM` or `NET/IB/0/GDRDMA`.
    pub via: String,
}

/// What a text holds.
#[derive(Clone, Debug, Default)]
pub struct LinkTable {
    /// Measured sizes in the order of the text.
    pub probes: Vec<LinkProbe>,
    /// Connections with the number of their channels.
    pub links: std::collections::BTreeMap<Link, u64>,
    /// Calls of a debug log: collective, elements, ranks, with how often each was called.
    pub calls: std::collections::BTreeMap<(String, u64, Option<u32>), u64>,
    /// Links of the machine, as the library's search of the topology prints them.
    pub topology: Topology,
    /// Models of the devices that took part.
    pub devices: std::collections::BTreeSet<String>,
    /// Mean bus bandwidth of all sizes as the test prints it, GB/s.
    pub mean_busbw: Option<f64>,
    /// Version of the communication library, if the text says it.
    pub library: Option<String>,
    /// Lines that look like a row or call and could not be read.
    pub unread: u64,
    /// All other lines.
    pub other: u64,
    /// Distinct links or calls beyond what is kept.
    pub dropped: u64,
}

/// Longest line that is read whole, bytes.
const LINE: usize = 16 << 10;
/// Distinct links, and distinct calls, that are kept of one text.
const DISTINCT: usize = 1 << 16;

fn matches(head: &Head<'_>) -> Match {
    let text = plain(head.bytes);
    let known = |line: &str| perf::Header::of(untagged(line)).is_some() || debug::is_known(line);
    // Reports about logs quote their lines.
    let quotes = text.trim_start().starts_with('{');
    if !quotes && text.lines().any(known) { Match::Certain } else { Match::No }
}

/// A line without what a launcher puts before the lines of each process: `0: ` (`srun --label`), `[1,0]<stdout>:`
/// (`mpirun --tag-output`).
fn untagged(line: &str) -> &str {
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let labelled = line.get(digits..).filter(|_| digits > 0).and_then(|rest| rest.strip_prefix(": "));
    let tagged = || line.strip_prefix('[')?.split_once("]<stdout>:").map(|(_, rest)| rest);
    labelled.or_else(tagged).unwrap_or(line)
}

/// Reads a test's output or a debug log.
///
/// # Errors
/// When the file cannot be read.
pub fn table(path: &Path, progress: Progress<'_>) -> Result<LinkTable, ReadError> {
    let mut lines = Lines::open(path, LINE)?;
    let (mut table, mut test) = (LinkTable::default(), perf::Test::default());
    while let Some(line) = lines.next()? {
        let text = plain(line);
        let text = untagged(&text);
        match test.take(text) {
            perf::Taken::Row(rows) => table.probes.extend(rows),
            perf::Taken::RowAfterLoss(rows) => {
                table.probes.extend(rows);
                table.unread += 1;
            }
            perf::Taken::Fact => table.other += 1,
            perf::Taken::Unreadable => table.unread += 1,
            perf::Taken::Nothing if !perf::is_log(text) => debug::take(&mut table, text),
            perf::Taken::Nothing => {}
        }
        // Behind what is of the test, a line of the log may stand on the same one.
        if perf::is_log(text) {
            debug::take(&mut table, text);
        }
        if let Some(mean) = text.strip_prefix("# Avg bus bandwidth").and_then(|rest| rest.split(':').nth(1)) {
            table.mean_busbw = mean.trim().parse().ok().filter(|mean: &f64| mean.is_finite());
        }
        let (done, total) = lines.progress();
        progress(done, total);
    }
    table.dropped += table.topology.dropped;
    table.unread += test.unfinished() + lines.cut + u64::from(lines.damage().is_some());
    table.devices = test.devices();
    Ok(table)
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let table = table(path, options.progress)?;
    if table.probes.is_empty() && table.links.is_empty() && table.calls.is_empty() {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: "rows of a link test, or channels or calls of a debug log".to_owned(),
            next: "run the test to its end, or set NCCL_DEBUG=INFO".to_owned(),
        });
    }
    sink.clock(Clock::AsIs { unix_zero: None });
    if let Some(library) = &table.library {
        sink.manifest("software.comm_library", library, Observed);
    }
    for (via, channels) in transports(&table) {
        sink.manifest(&format!("link.{via}"), &channels.to_string(), Observed);
    }
    if table.devices.len() == 1 {
        table.devices.iter().for_each(|device| sink.manifest("hardware.device", device, Observed));
    }
    topology_facts(sink, &table.topology);
    if let Some(mean) = table.mean_busbw {
        sink.manifest("link.mean_busbw", &format!("{mean} GB/s"), Observed);
    }
    probes(sink, &table);
    let links: u64 = table.links.values().sum();
    let calls: u64 = table.calls.values().sum();
    for (category, count, note) in [
        ("channels", links, "facts link.<transport>: channels by transport"),
        ("calls", calls, "kept in the link table: a debug log gives them no time"),
        ("other lines", table.other, "not read"),
    ] {
        if count > 0 {
            sink.ledger(category, count, if category == "channels" { count } else { 0 }, 0, note);
        }
    }
    for (what, count) in [("unreadable_row", table.unread), ("too_many_distinct", table.dropped)] {
        if count > 0 {
            sink.stat(&format!("link_test.{what}"), Severity::DataLoss, count, None);
        }
    }
    Ok(())
}

/// The links of the machine: rates of each kind, and the slowest one by its ends.
fn topology_facts(sink: &mut dyn TraceSink, topology: &Topology) {
    let slowest = topology.slowest();
    for (kind, rates) in &topology.kinds {
        let (least, greatest) = *rates;
        let shown = if least < greatest { format!("{least} to {greatest} GB/s") } else { format!("{least} GB/s") };
        sink.manifest(&format!("link.topology.{kind}"), &shown, Observed);
        if Topology::is_uneven(*rates) {
            let ends = slowest.as_ref().filter(|slow| slow.kind == *kind).map(|slow| {
                let [from, to] = &slow.ends;
                format!(", the slowest from {from} to {to}")
            });
            let ends = ends.unwrap_or_default();
            let example = format!("{kind}: {shown}{ends}; the slower ones bound every collective over them");
            sink.stat("link_test.uneven_links", Severity::Notice, 1, Some(&example));
        }
    }
    let Some(Slow { kind, ends: [from, to], rate, of }) = slowest else { return };
    let facts =
        [("kind", kind), ("from", from), ("to", to), ("gb_per_s", rate.to_string()), ("of_gb_per_s", of.to_string())];
    for (key, value) in facts {
        sink.manifest(&format!("link.slowest.{key}"), &value, Observed);
    }
}

/// Channels by transport.
fn transports(table: &LinkTable) -> std::collections::BTreeMap<&str, u64> {
    let mut out = std::collections::BTreeMap::new();
    for (link, channels) in &table.links {
        // The first part tells the kind: `P2P`, `SHM`, `NET`; devices behind it make the list as long as the machine.
        *out.entry(link.via.split('/').next().unwrap_or(&link.via)).or_insert(0) += channels;
    }
    out
}

/// Each measured size as one call of its collective, one after the other, with its bandwidths as counters.
fn probes(sink: &mut dyn TraceSink, table: &LinkTable) {
    let process = sink.process(0);
    // What is done in place and what is not are series of their own: a track each, the second one only where it is needed.
    let mut tracks = [None; 2];
    let names = ["link test", "link test, in place"];
    let (mut at, mut kept, mut wrong) = (0i64, 0, 0);
    for probe in &table.probes {
        wrong += u64::from(probe.correct == Some(false));
        let Some(time) = probe.time.value() else { continue };
        let place = usize::from(probe.in_place == Some(true));
        let key = TrackKey { kind: TrackKind::Global, process, device: None, context: None, id: place as i64 };
        let track = *tracks[place].get_or_insert_with(|| {
            let track = sink.track(key);
            sink.name_track(track, names[place]);
            track
        });
        let text = |sink: &mut dyn TraceSink, text: &Option<String>| text.as_deref().map(|text| sink.intern(text));
        let (op, dtype) = (text(sink, &probe.op), text(sink, &probe.dtype));
        let call = CollectiveCall {
            op,
            group_size: probe.ranks,
            bytes: Some(probe.bytes),
            dtype,
            ..CollectiveCall::default()
        };
        let name = sink.intern(probe.op.as_deref().unwrap_or("collective"));
        let detail = Detail::Collective(Box::new(call));
        let category = Category::CollectiveCall;
        sink.slice(Slice { track, start: at, dur: *time, name, category, correlation: None, detail: Some(&detail) });
        for (name, value) in [("algbw", &probe.algbw), ("busbw", &probe.busbw)] {
            if let Some(value) = value.value() {
                let name = sink.intern(name);
                sink.counter(process, None, name, "GB/s", at, *value);
            }
        }
        (at, kept) = (at.saturating_add(*time), kept + 1);
    }
    if !table.probes.is_empty() {
        sink.ledger("measured sizes", table.probes.len() as u64, kept, at, "one call each, one after the other");
    }
    if wrong > 0 {
        sink.stat("link_test.wrong_result", Severity::Error, wrong, Some("the collective gave a wrong result"));
    }
}
