//! The profile that JAX, XLA and TensorFlow write (`<host>.xplane.pb`, a message `XSpace`), plain or compressed.
//!
//! A space has planes (`/device:GPU:0`, `/host:CPU`), a plane has lines (a stream, a thread), a line has events, and names and
//! facts of events stand in tables of their plane. An event begins an offset in picoseconds after its line. Both its ends are
//! rounded down to whole nanoseconds, so that neighbours that met still meet. Source: `tsl/profiler/protobuf/xplane.proto`
//! of OpenXLA (numbers of the fields), `xplane_schema.cc` beside it (names of planes, lines and facts), and files of JAX on AMD
//! and on a TPU v6 and of TensorFlow on NVIDIA.

use std::path::{Path, PathBuf};

use model::{Clock, Ns, Provenance, Severity, TraceSink};
use rustc_hash::FxHashMap;

use crate::{
    Format, Head, Match, Place, Progress, ReadError, ReadOptions, container, hip, json::member, lanes::Account,
};

mod hlo;
mod lines;
mod plane;
mod steps;
#[cfg(test)]
mod tests;
mod tpu;
mod wire;

use lines::Import;
use plane::Plane;
use wire::Fields;

/// A profile of XLA.
pub const FORMAT: Format = Format { id: "xplane", name: "JAX/XLA profile (.xplane.pb)", matches, read, lead };

/// The profile next to the JSON that the profiler makes of it for viewers, which holds the first million events and few of their
/// facts: `<host>.xplane.pb` of `<host>.trace.json.gz`. Source: `jax/_src/profiler.py`, `trace_events_to_json.cc` of OpenXLA.
fn lead(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let host = [".trace.json.gz", ".trace.json"].iter().find_map(|ending| name.strip_suffix(ending))?;
    Some(path.with_file_name(format!("{host}.xplane.pb"))).filter(|profile| profile.is_file())
}

/// Whether the content is that JSON: events without categories, in processes named like planes.
fn is_for_viewers(bytes: &[u8]) -> bool {
    let plane = |name: &[u8]| name.starts_with(b"/device:") || name.starts_with(b"/host:");
    bytes.trim_ascii_start().starts_with(b"{")
        && member::has_key(bytes, "traceEvents")
        && member::texts(bytes, "name").any(plane)
}

/// Fields of `XSpace` and of `XPlane`.
const PLANES: u64 = 1;
const PLANE_NAME: u64 = 2;
/// Names that planes begin with, or have. Source: `xplane_schema.cc`.
const PLANE_NAMES: [&str; 4] = ["/host:", "/device:", "Task Environment", "#Chip "];
/// Most bytes of content: protocol buffers end at 2 GiB. A compressed file may inflate to so many for each of its own, and
/// so many beside.
const MOST: u64 = 2 << 30;
const INFLATED: (u64, u64) = (64, 64 << 20);

fn matches(head: &Head<'_>) -> Match {
    if lead(head.path).is_some() && is_for_viewers(head.bytes) {
        return Match::Named;
    }
    let Some((PLANES, first)) = Fields::of(head.bytes).next() else { return Match::No };
    let Some(plane) = first.bytes() else { return Match::No };
    let mut name = Fields::of(plane).take(3).filter(|(field, _)| *field == PLANE_NAME).filter_map(|(_, v)| v.text());
    let known = |name: &str| PLANE_NAMES.iter().any(|known| name.starts_with(known));
    if name.next().is_some_and(known) { Match::Certain } else { Match::No }
}

/// The content, and what was wrong with it. What it takes is held by `sink`.
fn content(
    path: &Path,
    sink: &mut dyn TraceSink,
    progress: Progress<'_>,
) -> Result<(Vec<u8>, Option<String>), ReadError> {
    let size = std::fs::metadata(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?.len();
    let most = size.saturating_mul(INFLATED.0).saturating_add(INFLATED.1).min(MOST);
    let mut source = container::Source::open(path)?;
    let (mut bytes, mut known) = (Vec::new(), 0);
    while source.append_to(&mut bytes)? {
        sink.hold((bytes.len() - known) as u64);
        known = bytes.len();
        progress(0, size);
        if bytes.len() as u64 > most {
            return Ok((bytes, Some(format!("more than {most} bytes"))));
        }
    }
    let damage = source.damage().map(str::to_owned);
    Ok((bytes, damage))
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let profile = lead(path);
    if let Some(profile) = &profile {
        let what = format!("'{}' was read: the JSON made of it holds less", profile.display());
        sink.stat("xplane.profile_read_instead", Severity::Notice, 1, Some(&what));
    }
    let path = profile.as_deref().unwrap_or(path);
    let (bytes, mut damage) = content(path, sink, options.progress)?;
    let total = bytes.len() as u64;
    let mut import = Import::new(&mut *sink);
    let (mut planes, mut done) = (0u64, 0u64);
    let mut space = Fields::of(&bytes);
    for (field, value) in space.by_ref() {
        let Some(plane) = value.bytes().filter(|_| field == PLANES) else { continue };
        done = done.saturating_add(plane.len() as u64);
        let plane = Plane::of(plane);
        planes += u64::from(!plane.name.is_empty());
        import.plane(&plane);
        (options.progress)(done, total);
    }
    if planes == 0 {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: format!("planes of a profile of XLA ({})", damage.as_deref().unwrap_or("none")),
            next: "record again with 'jax.profiler.trace(DIRECTORY)' and give DIRECTORY/plugins/profile/*/*.xplane.pb"
                .to_owned(),
        });
    }
    if import.broken || space.broken {
        damage.get_or_insert_with(|| "a message ends before its last field".to_owned());
    }
    import.settle();
    sink.let_go(total);
    if let Some(why) = damage {
        sink.stat("xplane.damaged_file", Severity::DataLoss, 1, Some(&why));
    }
    Ok(())
}

/// What becomes of the events of one kind of line.
type Accounts = FxHashMap<&'static str, (Account, &'static str)>;

/// Tells what every such file says.
fn tell_source(sink: &mut dyn TraceSink, vendor: Option<&str>, start: Option<Ns>, first: Option<Ns>) {
    match vendor {
        Some(vendor) => hip::manifest(sink, vendor, "xplane"),
        None => sink.manifest("software.profiler", "xplane", Provenance::Observed),
    }
    // Lines count from the start of the profile; files of before 2023 count from the epoch.
    let since_epoch = first.is_some_and(|first| first > start.map_or(1 << 60, |start| start / 2));
    let unix_offset = if since_epoch { Some(0) } else { start };
    sink.clock(Clock::FromFirstSlice { unix_offset });
}
