//! Which profiler runs a command.

use std::{ffi::OsStr, path::PathBuf};

use collectors::record::{self, Profiler};
use parsers::device_text;

use crate::cli::exit::Missing;

/// The profiler that was named, or else the one in `path`. Where there are several, one whose vendor's device tool is there too
/// comes first: that is a machine with the vendor's driver.
///
/// # Errors
/// When there is none, with what brings it.
pub(super) fn choose(named: Option<&str>, path: &OsStr) -> Result<(&'static Profiler, PathBuf), Missing> {
    if let Some(profiler) = named.and_then(record::profiler) {
        let found = profiler.find(path).map(|program| (profiler, program));
        return found.ok_or_else(|| Missing(format!("{} is not in PATH; {}", profiler.id, profiler.remedy)));
    }
    let has_device = |profiler: &Profiler| {
        let own = |tool: &&device_text::Tool| tool.vendor == profiler.vendor;
        device_text::REGISTRY.iter().filter(own).any(|tool| collectors::program::find(tool.id, path).is_some())
    };
    let there = record::REGISTRY.iter().filter_map(|profiler| Some((profiler, profiler.find(path)?)));
    there.min_by_key(|(profiler, _)| !has_device(profiler)).ok_or_else(none)
}

fn none() -> Missing {
    let names: Vec<&str> = record::REGISTRY.iter().map(|profiler| profiler.id).collect();
    let remedies: Vec<String> =
        record::REGISTRY.iter().map(|profiler| format!("for {}: {}", profiler.vendor, profiler.remedy)).collect();
    Missing(format!("none of the profilers {} is in PATH; {}", names.join(", "), remedies.join("; ")))
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_profiler_of_the_device_that_is_there_comes_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().as_os_str();
        let program = |name: &str| {
            let file = directory.path().join(name);
            std::fs::write(&file, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        let refused = choose(None, path).unwrap_err().to_string();
        for said in ["nsys, msprof, rocprofv3", "for ascend: install the CANN toolkit", "/opt/rocm/bin"] {
            assert!(refused.contains(said), "{refused}");
        }
        assert!(choose(Some("msprof"), path).unwrap_err().to_string().starts_with("msprof is not in PATH; install"));
        let chosen = |named| choose(named, path).unwrap().0.id;
        program("rocprofv3");
        assert_eq!(chosen(None), "rocprofv3");
        program("nsys");
        assert_eq!(chosen(None), "nsys");
        program("rocm-smi");
        assert_eq!(chosen(None), "rocprofv3");
        assert_eq!(chosen(Some("nsys")), "nsys");
    }
}
