//! The file format of a platform pack.

use std::path::PathBuf;

use serde::Deserialize;

use super::{
    card::SemanticsCard, chip::Chip, error::PackError, inductor::InductorEntry, model_shape::ModelEntry,
    pattern::PatternEntry, remedy::RemedyEntry, step::Stage, vendor::Vendor,
};

/// One pack as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackFile {
    /// Name in reports: `cuda`, `ascend`, …
    pub id: String,
    /// Vendors it serves; empty for all.
    #[serde(default)]
    pub vendors: Vec<String>,
    /// Source of what does not name its own.
    pub source: String,
    /// When it was last checked, `YYYY-MM`.
    pub date: String,
    #[serde(default)]
    pub op: Vec<PatternEntry>,
    #[serde(default)]
    pub inductor: Vec<InductorEntry>,
    #[serde(default)]
    pub host_call: Vec<PatternEntry>,
    #[serde(default)]
    pub host_activity: Vec<PatternEntry>,
    #[serde(default)]
    pub step: Vec<StepEntry>,
    #[serde(default)]
    pub card: Vec<SemanticsCard>,
    #[serde(default)]
    pub chip: Vec<Chip>,
    #[serde(default)]
    pub model: Vec<ModelEntry>,
    #[serde(default)]
    pub remedy: Vec<RemedyEntry>,
    #[serde(default)]
    pub log: Vec<LogEntry>,
    #[serde(default)]
    pub vendor: Vec<Vendor>,
    #[serde(default)]
    pub device_name: Vec<DeviceName>,
}

/// What the names of a vendor's devices hold, for readers of captures that name devices and no vendor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeviceName {
    /// Vendor as captures spell it.
    pub vendor: String,
    /// Parts of names, in their letter case.
    pub contains: Vec<String>,
    #[serde(default)]
    #[allow(dead_code)] // read by people, in the pack; required to be text here
    pub source: Option<String>,
}

/// A kind of log line, for the importer of logs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogEntry {
    pub engine: String,
    /// Regex whose named groups are fields of a log line, such as `latency_ms` or `graph_mode`.
    pub regex: String,
    #[serde(default)]
    #[allow(dead_code)] // read by people, in the pack; required to be text here
    pub source: Option<String>,
}

/// A kind of step annotation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepEntry {
    pub engine: String,
    /// Whole-text regex with the groups `prefill_requests`, `prefill_tokens`, `decode_requests`, `context_tokens`,
    /// `more_context_tokens` (added to the former), `index`, `graph` and `compile` (`hit` or `miss`), all optional.
    pub regex: String,
    /// Stage; absent where the counts decide.
    pub stage: Option<Stage>,
    pub specificity: u8,
    #[serde(default)]
    pub ignore_case: bool,
    #[serde(default)]
    #[allow(dead_code)] // read by people, in the pack; required to be text here
    pub source: Option<String>,
}

/// The packs built into the program, the generic ones last so that a platform's own names go first.
const EMBEDDED: [(&str, &str); 19] = [
    ("cuda.toml", include_str!("packs/cuda.toml")),
    ("rocm.toml", include_str!("packs/rocm.toml")),
    ("rocm_advice.toml", include_str!("packs/rocm_advice.toml")),
    ("ascend.toml", include_str!("packs/ascend.toml")),
    ("ascend_advice.toml", include_str!("packs/ascend_advice.toml")),
    ("cpu.toml", include_str!("packs/cpu.toml")),
    ("opencl.toml", include_str!("packs/opencl.toml")),
    ("mlu.toml", include_str!("packs/mlu.toml")),
    ("musa.toml", include_str!("packs/musa.toml")),
    ("metax.toml", include_str!("packs/metax.toml")),
    ("mtia.toml", include_str!("packs/mtia.toml")),
    ("chips.toml", include_str!("packs/chips.toml")),
    ("models.toml", include_str!("packs/models.toml")),
    ("vendors.toml", include_str!("packs/vendors.toml")),
    ("generic.toml", include_str!("packs/generic.toml")),
    ("operators.toml", include_str!("packs/operators.toml")),
    ("engines.toml", include_str!("packs/engines.toml")),
    ("logs.toml", include_str!("packs/logs.toml")),
    ("advice.toml", include_str!("packs/advice.toml")),
];

/// Largest pack file read, in bytes; the embedded ones have some 20 KiB.
const MAX_PACK: u64 = 4 << 20;

/// The embedded packs, each with its name for errors.
pub(super) fn embedded() -> Result<Vec<(String, PackFile)>, PackError> {
    EMBEDDED.iter().map(|(name, text)| Ok(((*name).to_owned(), parse(name, text)?))).collect()
}

/// The packs of a folder in order of file name. A folder that does not exist holds none.
pub(super) fn folder(path: &PathBuf) -> Result<Vec<(String, PackFile)>, PackError> {
    let read = |error| PackError::Read { path: path.clone(), error };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(read)? {
        let file = entry.map_err(read)?.path();
        if file.extension().is_some_and(|e| e == "toml") {
            files.push(file);
        }
    }
    files.sort();
    files.into_iter().map(read_pack).collect()
}

fn read_pack(path: PathBuf) -> Result<(String, PackFile), PackError> {
    let read = |error| PackError::Read { path: path.clone(), error };
    let text = input::text(&path, MAX_PACK).map_err(read)?;
    let name = path.display().to_string();
    let pack = parse(&name, &text)?;
    Ok((name, pack))
}

fn parse(name: &str, text: &str) -> Result<PackFile, PackError> {
    toml::from_str(text).map_err(|error| PackError::syntax(name, text, &error))
}
