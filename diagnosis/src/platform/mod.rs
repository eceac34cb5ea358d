//! Platform knowledge as data: which canonical operator a kernel name is, what kind a runtime call is, which ranges are
//! steps, what the rows of a source mean, what a chip is, and what to do about a finding.
//!
//! The facts lie in `packs/*.toml`, one file per platform, each with its source; a user adds packs without rebuilding
//! (format: `schema`). Names of different platforms hardly collide, and captures of mixed or unknown vendor exist, so
//! all packs answer together; only cards and remedies ask for the vendor.

mod bus;
mod card;
mod chip;
mod error;
mod host;
mod inductor;
mod knowledge;
mod literals;
mod model_shape;
mod name;
mod op;
mod pattern;
mod remedy;
mod schema;
mod step;
#[cfg(test)]
mod tests;
mod vendor;

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

pub use bus::bus_factor;
pub use card::{Granularity, SemanticsCard, Trust};
pub use chip::{Chip, Peaks};
pub use error::PackError;
pub use host::{HostCall, is_runtime_call};
pub use model_shape::{Experts, Latent, LinearAttention, MAX_CONFIG, ModelShape, ShapeError, Sliding};
pub use op::{CanonicalOp, OpClass, OpMatch, is_all_reduce, moves_memory};
pub use remedy::Remedy;
pub use step::{Stage, StepLabel};
pub use vendor::{Library, Vendor, vendors};

use knowledge::Knowledge;
use pattern::Name;

/// All knowledge, immutable after loading and cheap to clone.
#[derive(Clone, Debug)]
pub struct Packs(Arc<Knowledge>);

/// Bytes of a range's text that are looked at; the longest known step annotation has about 150.
const MAX_RANGE: usize = 512;

/// `cudaLaunchKernel_v7000`, `cuStreamSynchronize_ptsz`, `hipGetDevicePropertiesR0600`: the same calls as without.
fn api_without_version(api: &str) -> &str {
    let api = ["_ptsz", "_ptds", "_spt"].iter().find_map(|s| api.strip_suffix(s)).unwrap_or(api);
    let digits = api.trim_end_matches(|c: char| c.is_ascii_digit());
    if digits.len() < api.len() { digits.strip_suffix("_v").or(digits.strip_suffix('R')).unwrap_or(api) } else { api }
}

impl Packs {
    /// The packs built into the program.
    ///
    /// # Errors
    /// When a built-in pack is damaged, which a test excludes.
    pub fn embedded() -> Result<Self, PackError> {
        // They never change, and reading them takes longer than reading a small capture.
        static EMBEDDED: OnceLock<Packs> = OnceLock::new();
        if let Some(packs) = EMBEDDED.get() {
            return Ok(packs.clone());
        }
        let packs = Self(Arc::new(Knowledge::new(schema::embedded()?)?));
        Ok(EMBEDDED.get_or_init(|| packs).clone())
    }

    /// Whether these are the built-in packs and no others.
    pub fn is_embedded(&self) -> bool {
        Self::embedded().is_ok_and(|embedded| Arc::ptr_eq(&embedded.0, &self.0))
    }

    /// The built-in packs with those of the given folders before them; an earlier folder goes before a later one.
    ///
    /// # Errors
    /// When a folder or pack cannot be read, does not parse, or holds an unknown key or value.
    pub fn load(user_dirs: &[PathBuf]) -> Result<Self, PackError> {
        if user_dirs.is_empty() {
            return Self::embedded();
        }
        let mut packs = Vec::new();
        for dir in user_dirs {
            packs.extend(schema::folder(dir)?);
        }
        packs.extend(schema::embedded()?);
        Ok(Self(Arc::new(Knowledge::new(packs)?)))
    }

    /// The canonical operator of a device kernel or op type. Meant to be called once per distinct name.
    pub fn op(&self, name: &str) -> OpMatch {
        let name = Name::new(name);
        if let Some((op, pack)) = self.0.inductor.find(name.base()) {
            return OpMatch { op, slots: vec![op], pack: pack.to_owned(), mapped: true };
        }
        self.0.ops.find(&name).cloned().unwrap_or_else(OpMatch::unknown)
    }

    /// The kind of a runtime or driver call.
    pub fn host_call(&self, api: &str) -> HostCall {
        self.0.host_calls.find(&Name::new(api_without_version(api.trim()))).copied().unwrap_or(HostCall::Other)
    }

    /// What a range says of an engine's step; `None` for ranges that are not steps.
    pub fn step_label(&self, range: &str) -> Option<StepLabel> {
        let text = range.get(..range.floor_char_boundary(MAX_RANGE))?.trim();
        self.0.steps.iter().find_map(|step| step.label(text))
    }

    /// A label for host work that matters between steps (`prepare_inputs`, `sampler`, `scheduler`, `detokenize`, `gc`,
    /// `rpc`, …), read from the name of a framework operator, Python frame or user range.
    pub fn host_activity(&self, name: &str) -> Option<&str> {
        self.0.activities.find(&Name::new(name)).map(String::as_str)
    }

    /// What is particular to a vendor, by a name that captures and device tools give it.
    pub fn vendor(&self, name: &str) -> Option<&Vendor> {
        self.0.vendors.iter().find(|vendor| vendor.is(name))
    }

    /// What the rows of a source mean. An unknown source gets the card that assumes least.
    pub fn card(&self, format: &str, vendor: Option<&str>) -> &SemanticsCard {
        let fitting = self.0.cards.iter().filter_map(|card| Some((card.fit(format, vendor)?, card)));
        // The first of equals wins: user packs come first.
        let best = fitting.reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.map_or(&self.0.fallback, |(_, card)| card)
    }

    /// What is published of the chip that a device's name says it is.
    pub fn chip(&self, device: &str) -> Option<&Chip> {
        let device = device.to_ascii_lowercase();
        let fitting = self.0.chips.iter().filter_map(|chip| Some((chip.fit(&device)?, chip)));
        // The first of equals wins: user packs come first.
        fitting.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, chip)| chip)
    }

    /// The shape of a model by the name that it or its quantised or tuned versions have; the organisation may be left out.
    pub fn model(&self, name: &str) -> Option<&ModelShape> {
        self.0.models.iter().find(|model| model.is(name))
    }

    /// Models whose shapes are known.
    pub fn models(&self) -> &[ModelShape] {
        &self.0.models
    }

    /// What to do about a finding of a rule, the platform's own advice first, then the generic one.
    pub fn remedies(&self, rule: &str, vendor: Option<&str>) -> Vec<Remedy> {
        let of_rule = || self.0.remedies.iter().filter(|r| r.rules.iter().any(|name| name == rule));
        let own = of_rule().filter(|r| vendor.is_some_and(|v| r.vendors.iter().any(|name| name == v)));
        let generic = of_rule().filter(|r| r.vendors.is_empty());
        own.chain(generic).map(|r| r.remedy.clone()).collect()
    }

    /// Log lines that the packs know, as (engine, regex); the importer of logs says which groups a regex may name.
    pub fn log_patterns(&self) -> &[(String, String)] {
        &self.0.logs
    }

    /// What the name of a device betrays of its vendor, as (part of the name, vendor): the first that fits decides.
    pub fn device_vendors(&self) -> &[(String, String)] {
        &self.0.device_vendors
    }

    /// What to do about a finding on every platform, in the order of the packs.
    pub fn all_remedies(&self, rule: &str) -> Vec<Remedy> {
        self.0.remedies.iter().filter(|r| r.rules.iter().any(|name| name == rule)).map(|r| r.remedy.clone()).collect()
    }
}
