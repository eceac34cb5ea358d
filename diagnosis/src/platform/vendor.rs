//! Vendors of devices, as packs describe them.

use serde::Deserialize;

use super::{PackError, schema};

/// What is particular to the devices, the driver and the libraries of one vendor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vendor {
    /// Its names, as captures and device tools spell them; the first is the usual one.
    pub ids: Vec<String>,
    /// Whether a launch says how many cores it takes, not into how many blocks its work is cut.
    #[serde(default)]
    pub launches_name_cores: bool,
    /// Variables that choose which devices a process sees and in which order; each numbers what the one before it has left.
    #[serde(default)]
    pub visible_devices: Vec<String>,
    /// What brings its driver and device tools: a command, or where to get it.
    pub install: String,
    /// Libraries that are opened when they are needed.
    #[serde(default)]
    pub library: Vec<Library>,
    /// Where this comes from.
    pub source: String,
}

/// A library of a vendor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Library {
    /// Names under which it may lie, the newest first.
    pub names: Vec<String>,
    /// What it is for.
    pub what: String,
    /// What brings it.
    pub install: String,
}

impl Vendor {
    /// Whether a name is one of the vendor's.
    pub fn is(&self, name: &str) -> bool {
        self.ids.iter().any(|id| id == name)
    }
}

/// The vendors of the built-in packs, for those who need no other knowledge.
///
/// # Errors
/// When a built-in pack is damaged, which a test excludes.
pub fn vendors() -> Result<Vec<Vendor>, PackError> {
    Ok(schema::embedded()?.into_iter().flat_map(|(_, pack)| pack.vendor).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::platform::Packs;

    #[test]
    fn a_name_is_of_one_vendor_with_a_source() {
        let vendors = vendors().unwrap();
        let mut names: Vec<&String> = vendors.iter().flat_map(|vendor| &vendor.ids).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert!(count > 6 && names.len() == count, "{names:?}");
        for vendor in &vendors {
            assert!(!vendor.install.is_empty() && !vendor.source.is_empty(), "{vendor:?}");
            let named = |library: &Library| !library.names.is_empty() && !library.what.is_empty();
            assert!(vendor.library.iter().all(named), "{vendor:?}");
        }
    }

    #[test]
    fn launches_of_ascend_name_cores_and_those_of_others_blocks() {
        let packs = Packs::embedded().unwrap();
        let by_core = |name: &str| packs.vendor(name).is_some_and(|vendor| vendor.launches_name_cores);
        assert!(by_core("ascend") && by_core("huawei"));
        assert!(!["nvidia", "amd", "hygon", "cambricon", "unheard of"].into_iter().any(by_core));
    }
}
