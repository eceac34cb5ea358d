//! `cluster_communication.json`, by group, step, operation and rank, and `cluster_communication_matrix.json`, by group, step,
//! operation and pair of ranks. A MB is 10⁶ bytes, a GB/s 10⁹ bytes per second: 20.97152 MB in 0.8638 ms are 24.28 GB/s.

use std::{borrow::Cow, path::Path};

use model::{Ns, Severity, TraceSink};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Kind,
    gathered::{Entry, Gathered},
};
use crate::{Progress, ReadError, json_walk, lanes::Account};

/// Keys above an entry: group, step, operation, and rank or pair of ranks.
const DEPTH: usize = 4;

/// What the first bytes of a file show. The files of a single rank have the same words, and the step as their first key.
pub(super) fn kind(bytes: &[u8]) -> Option<Kind> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let has = |word: &str| memchr::memmem::find(bytes, word.as_bytes());
    let links = has("\"Transit Size(MB)\"").zip(has("\"Transport Type\"")).map(|(size, kind)| size.min(kind));
    let (kind, first) = match has("\"Communication Time Info\"") {
        Some(first) => (Kind::Collectives, first),
        None => (Kind::Links, links?),
    };
    let before = bytes.get(..first)?;
    let count = |byte| before.iter().filter(|b| **b == byte).count();
    let key = bytes.strip_prefix(b"{")?.trim_ascii_start().strip_prefix(b"\"")?;
    (!key.starts_with(b"step") && count(b'{') == count(b'}') + DEPTH + 1).then_some(kind)
}

/// Times of a rank in a collective, ms.
#[derive(Deserialize)]
struct Collective<'a> {
    #[serde(rename = "Communication Time Info", borrow)]
    times: Times<'a>,
}

#[derive(Deserialize)]
struct Times<'a> {
    #[serde(rename = "Start Timestamp(us)", borrow, default)]
    start: Option<&'a RawValue>,
    #[serde(rename = "Elapse Time(ms)", borrow)]
    elapse: &'a RawValue,
    #[serde(rename = "Transit Time(ms)", borrow)]
    transit: &'a RawValue,
    #[serde(rename = "Wait Time(ms)", borrow)]
    wait: &'a RawValue,
}

/// What moved over a link.
#[derive(Deserialize)]
struct Link<'a> {
    #[serde(rename = "Transport Type", borrow)]
    transport: Cow<'a, str>,
    #[serde(rename = "Transit Size(MB)", borrow)]
    size: &'a RawValue,
    #[serde(rename = "Transit Time(ms)", borrow)]
    time: &'a RawValue,
}

/// A decimal number times 10⁶ that is not negative: ms as ns, MB as bytes.
fn million(number: &RawValue) -> Option<i64> {
    model::time::parse_decimal(number.get().as_bytes(), 6).ok().map(|(n, _)| n).filter(|n| *n >= 0)
}

/// Reads one of the two files.
///
/// # Errors
/// [`ReadError`] when the file cannot be read.
pub(super) fn read(
    path: &Path,
    kind: Kind,
    gathered: &mut Gathered,
    sink: &mut dyn TraceSink,
    progress: Progress<'_>,
) -> Result<(), ReadError> {
    let mut account = Account::default();
    let damage = json_walk::leaves(path, DEPTH, progress, &mut |keys, text| {
        let [set, step, operation, place] = keys else { return };
        account.read += 1;
        let entry = Entry { step, set, operation };
        let taken = match kind {
            Kind::Links => link(gathered, entry, place, text),
            _ => collective(gathered, entry, place, text),
        };
        match taken {
            Some(time) => account.keep(0, time),
            None => account.incomplete += 1,
        }
    })?;
    let (name, becomes) = match kind {
        Kind::Links => ("links", "sums over the transfers of each pair of ranks; a group's own sum counts once"),
        _ => ("collectives", "sums of the times in collectives of each rank; a group's own sum counts once"),
    };
    account.tell(sink, "ascend-cluster", name, becomes);
    if let Some(damage) = damage {
        let example = format!("{}: {damage}", super::name(path));
        sink.stat("ascend-cluster.damaged_file", Severity::DataLoss, 1, Some(&example));
    }
    Ok(())
}

/// Takes the times of a rank in a collective; how long it was in it.
fn collective(gathered: &mut Gathered, entry: Entry<'_>, rank: &str, text: &str) -> Option<Ns> {
    let rank = rank.parse().ok()?;
    let Collective { times } = serde_json::from_str(text).ok()?;
    let [elapse, transit, wait] = [million(times.elapse)?, million(times.transit)?, million(times.wait)?];
    let start = times.start.and_then(|us| model::time::parse_decimal(us.get().as_bytes(), 3).ok()).map(|(ns, _)| ns);
    let group = entry.operation.split_once('@').map(|(_, group)| group);
    gathered.collective(entry, rank, [elapse, transit, wait], (start, group));
    Some(elapse)
}

/// Takes what moved over a link; for how long.
fn link(gathered: &mut Gathered, entry: Entry<'_>, pair: &str, text: &str) -> Option<Ns> {
    let (from, to) = pair.split_once('-')?;
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    let link: Link<'_> = serde_json::from_str(text).ok()?;
    let (bytes, time) = (million(link.size)?, million(link.time)?);
    gathered.link(entry, from, to, &link.transport, [bytes, time]);
    Some(time)
}
