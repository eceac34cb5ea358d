//! `visualize_data.bin`: sections of JSON, each behind its length (8 bytes, little endian), its kind, a byte of padding
//! length and `ZZ`. The section on the operator and the map of its cores are read; the rest is what a viewer draws.

use std::{
    io::{BufReader, ErrorKind, Read},
    path::Path,
};

use model::{Conditions, KernelSummary, Metric, Ns, Provenance, Severity, TraceSink};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{Place, Progress, ReadError};

/// Bytes before the text of a section, and the first of the text.
const HEAD: usize = 13;
/// Longest section that is read; real ones have some 50 KiB.
const MAX_SECTION: u64 = 16 << 20;
/// Kind of the section on the operator.
const OPERATOR: u8 = 5;
/// Kind of the map of the cores.
const CORES: u8 = 8;
/// Units of a core that compute.
const UNITS: [&str; 3] = ["Cube", "Vector", "Vector1"];

/// Whether a file begins with a section.
pub(super) fn matches(bytes: &[u8]) -> bool {
    bytes.get(10..HEAD).is_some_and(|mark| mark == b"ZZ{") && bytes.get(4..8) == Some(&[0; 4])
}

#[derive(Deserialize)]
struct Operator<'a> {
    name: String,
    #[serde(borrow)]
    duration: Option<&'a RawValue>,
    block_dim: Option<Value>,
    soc: Option<String>,
}

#[derive(Deserialize)]
struct Cores {
    core_memory_map: Vec<Value>,
}

/// Reads the sections one by one.
pub(super) fn read(path: &Path, sink: &mut dyn TraceSink, progress: Progress<'_>) -> Result<(), ReadError> {
    let io = |source| ReadError::Io { path: path.to_owned(), source };
    let file = input::open(path).map_err(io)?;
    let total = file.metadata().map(|meta| meta.len()).unwrap_or(0);
    let mut source = BufReader::new(file);
    let (mut at, mut operator, mut metrics) = (0u64, None, Vec::new());
    let (mut sections, mut kept, mut broken) = (0u64, 0u64, 0u64);
    while at < total {
        let mut head = [0u8; HEAD - 1];
        match source.read_exact(&mut head) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                broken += 1;
                break;
            }
            read => read.map_err(io)?,
        }
        let [l0, l1, l2, l3, l4, l5, l6, l7, kind, ..] = head;
        let length = u64::from_le_bytes([l0, l1, l2, l3, l4, l5, l6, l7]);
        sections += 1;
        at = at.saturating_add(length).saturating_add(head.len() as u64);
        progress(at.min(total), total);
        let mut section = (&mut source).take(length);
        if !matches!(kind, OPERATOR | CORES) || length > MAX_SECTION {
            let skipped = std::io::copy(&mut section, &mut std::io::sink()).map_err(io)?;
            broken += u64::from(skipped < length);
            continue;
        }
        let mut bytes = Vec::new();
        section.read_to_end(&mut bytes).map_err(io)?;
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        let taken = match kind {
            OPERATOR => told(text, sink).map(|found| operator = Some(found)),
            _ => serde_json::from_slice::<Cores>(text).ok().map(|cores| metrics = of_cores(&cores.core_memory_map)),
        };
        kept += u64::from(taken.is_some());
        broken += u64::from(taken.is_none() || (bytes.len() as u64) < length);
    }
    let time = operator.as_ref().and_then(|operator: &KernelSummary| operator.total).unwrap_or(0);
    sink.ledger("sections", sections, kept, time, "the operator and the work of its cores; the rest is a viewer's");
    if broken > 0 {
        sink.stat("msprof-op.damaged_section", Severity::DataLoss, broken, None);
    }
    let Some(operator) = operator else {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: "a section that names the operator".to_owned(),
            next: "give the directory that msprof op wrote (OPPROF_*), with its tables".to_owned(),
        });
    };
    sink.summary(KernelSummary { metrics, ..operator });
    Ok(())
}

/// The operator that a section names.
fn told(text: &[u8], sink: &mut dyn TraceSink) -> Option<KernelSummary> {
    let told: Operator<'_> = serde_json::from_slice(text).ok()?;
    let time: Option<Ns> = told
        .duration
        .and_then(|raw| model::time::parse_decimal(raw.get().trim_matches('"').as_bytes(), 3).ok().map(|(ns, _)| ns));
    let time = time.filter(|time| *time >= 0);
    let blocks = told.block_dim.as_ref().and_then(number).filter(|n| *n >= 1.0 && *n <= f64::from(u32::MAX));
    if let Some(soc) = &told.soc {
        sink.manifest("hardware.device", soc, Provenance::Observed);
    }
    Some(KernelSummary {
        total: time,
        range: time.map(|time| (time, time)),
        grid: blocks.map(|n| [n as u32, 1, 1]),
        ..KernelSummary::of(sink.intern(&told.name), Conditions::Isolated)
    })
}

/// A number, which some versions write as text.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|n| n.is_finite())
}

/// What the map of the cores says: the busiest kind of unit, mean over the cores, and the hits of the last cache.
fn of_cores(cores: &[Value]) -> Vec<(Metric, f64)> {
    let at = |core: &Value, unit: &str, what: &str| number(core.get(unit)?.get(what)?);
    // Cycles over cycles: the ratio beside them is a share in one version and a percentage in another.
    let busy = |unit: &str| {
        let shares = cores.iter().filter_map(|core| {
            let (worked, all) = (at(core, unit, "cycle")?, at(core, unit, "total_cycles")?);
            (all > 0.0).then(|| worked / all)
        });
        let (sum, count) = shares.fold((0.0, 0u32), |(sum, count), share| (sum + share, count + 1));
        (count > 0).then(|| 100.0 * sum / f64::from(count))
    };
    let hits: f64 = cores.iter().filter_map(|core| at(core, "L2cache", "hit")).sum();
    let misses: f64 = cores.iter().filter_map(|core| at(core, "L2cache", "miss")).sum();
    let hit = (hits + misses > 0.0).then(|| 100.0 * hits / (hits + misses));
    let compute = UNITS.into_iter().filter_map(busy).reduce(f64::max);
    compute.map(|value| (Metric::Compute, value)).into_iter().chain(hit.map(|value| (Metric::L2Hit, value))).collect()
}
