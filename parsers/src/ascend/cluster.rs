//! What `msprof-analyze cluster` made of all ranks of a job: `cluster_analysis_output` as a directory, and each of its files,
//! as text or as `cluster_analysis.db`. These are sums of steps, collectives and links; of single collectives most versions say
//! when each rank began them, which joins the ranks.
//!
//! | module | owns |
//! | --- | --- |
//! | `gathered` | sums from any of the files, each counted once |
//! | `steps` | `cluster_step_trace_time.csv` |
//! | `communication` | `cluster_communication.json` and `cluster_communication_matrix.json` |
//! | `database` | `cluster_analysis.db` |
//!
//! Facts of the format: msprof-analyze (mstt) of 2023 to 2025, whose tables of communication were renamed in 2025 from
//! `ClusterCommAnalyzer*` to `ClusterCommunication*`. Ranks are those of the job: the analysis has mapped the groups' own.

use std::path::{Path, PathBuf};

use model::{Clock, Provenance, Severity, TraceSink};

use super::layout::name;
use crate::{Format, Head, Match, Place, ReadError, ReadOptions, csv_table, sqlite};

mod communication;
#[cfg(feature = "sqlite")]
pub(super) mod database;
mod gathered;
mod steps;
#[cfg(all(test, feature = "sqlite"))]
mod tests;

pub(super) use gathered::{Entry, Gathered};
pub(super) use steps::PARTS;

/// The format.
pub const FORMAT: Format = Format {
    id: "ascend-cluster",
    name: "Ascend cluster analysis (cluster_analysis_output: sums of each rank's steps and of each link)",
    matches,
    read,
    lead: crate::alone,
};

/// Its files by name, the database first: it holds what the text does.
const FILES: &[&str] = &[
    #[cfg(feature = "sqlite")]
    "cluster_analysis.db",
    "cluster_step_trace_time.csv",
    "cluster_communication.json",
    "cluster_communication_matrix.json",
];
/// Bytes that must show what a file is: the ranks of a large group are some kilobytes.
const HEAD: usize = 64 << 10;

/// What one of the files is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    #[cfg(feature = "sqlite")]
    Database,
    Steps,
    Collectives,
    Links,
}

impl Kind {
    /// Whether the file holds what all others hold.
    fn is_whole(self) -> bool {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Database => true,
            Self::Steps | Self::Collectives | Self::Links => false,
        }
    }
}

fn kind(head: &Head<'_>) -> Option<Kind> {
    if head.bytes.starts_with(sqlite::SIGNATURE) {
        #[cfg(feature = "sqlite")]
        return database::is_known(head.path).then_some(Kind::Database);
        #[cfg(not(feature = "sqlite"))]
        return None;
    }
    if steps::is_header(&csv_table::first_header(head.bytes)) {
        return Some(Kind::Steps);
    }
    communication::kind(head.bytes)
}

fn kind_of(path: &Path) -> Option<Kind> {
    let bytes = crate::container::head(path, HEAD).ok()?;
    kind(&Head::new(path, &bytes))
}

fn parts(directory: &Path) -> impl Iterator<Item = PathBuf> {
    FILES.iter().map(|name| directory.join(name)).filter(|path| path.is_file())
}

fn matches(head: &Head<'_>) -> Match {
    let known = match head.path.is_dir() {
        true => parts(head.path).any(|path| kind_of(&path).is_some()),
        false => kind(head).is_some(),
    };
    if known { Match::Certain } else { Match::No }
}

fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let files = if path.is_dir() { parts(path).collect() } else { vec![path.to_owned()] };
    let (mut gathered, mut is_whole) = (Gathered::default(), false);
    for file in &files {
        if is_whole {
            sink.ledger(&name(file), 0, 0, 0, "not read: the database holds the same");
            continue;
        }
        let kind = kind_of(file);
        let outcome = match kind {
            #[cfg(feature = "sqlite")]
            Some(Kind::Database) => database::read(file, &mut gathered, sink, options.progress),
            Some(Kind::Steps) => steps::read(file, &mut gathered, sink, options.progress),
            Some(kind) => communication::read(file, kind, &mut gathered, sink, options.progress),
            None => Err(nothing_in(file)),
        };
        match outcome {
            Ok(()) => is_whole = kind.is_some_and(Kind::is_whole) && !gathered.is_empty(),
            Err(error) if files.len() == 1 => return Err(error),
            Err(error) => {
                sink.stat("ascend-cluster.unreadable_file", Severity::DataLoss, 1, Some(&error.to_string()));
            }
        }
    }
    if gathered.is_empty() {
        return Err(nothing_in(path));
    }
    if path.is_dir() && path.join(GROUPS).is_file() {
        sink.ledger(GROUPS, 0, 0, 0, "not read: the ranks of each communication group");
    }
    let form = if gathered.tell(sink) {
        "cluster analysis: collectives of all ranks, sums of steps and links"
    } else {
        sink.manifest("evidence.grade", "totals", Provenance::Observed);
        sink.clock(Clock::AsIs { unix_zero: None });
        "cluster analysis: sums of steps and links"
    };
    for (key, value) in [("hardware.vendor", "ascend"), ("measurement.traced", "ascend"), ("ascend.form", form)] {
        sink.manifest(key, value, Provenance::Observed);
    }
    Ok(())
}

/// Which ranks communicate with each other; the sums hold their own ranks.
const GROUPS: &str = "communication_group.json";

fn nothing_in(path: &Path) -> ReadError {
    ReadError::Malformed {
        path: path.to_owned(),
        place: Place::File,
        expected: "the steps, collectives or links of a job's ranks".to_owned(),
        next: "run 'msprof-analyze cluster -m all -d DIR' again, or give the directories of the ranks (*_ascend_pt)"
            .to_owned(),
    }
}
