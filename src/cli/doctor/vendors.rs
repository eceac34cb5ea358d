//! What `strato doctor` says of the tools and libraries of the vendors: which are there, which are missing, and the command
//! that brings them.

use std::{ffi::OsString, path::PathBuf};

use collectors::{cupti, mspti::preload, record, telemetry::dcmi};
use diagnosis::platform::{Vendor, vendors};
use engine::{ascend, library};
use parsers::device_text;

use super::{Finding, on_path};

/// Something of a vendor.
struct Piece {
    vendor: String,
    /// Its name, which of a library is that of its first file.
    name: String,
    /// What it is for.
    what: String,
    is_there: Result<String, &'static str>,
    remedy: String,
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

fn bare(names: &[String]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

/// The file that a variable names and no other; without one the names.
fn named(by: &str, names: &[String]) -> Vec<PathBuf> {
    let given = variable(by).filter(|file| !file.is_empty());
    given.map_or_else(|| bare(names), |file| vec![file.into()])
}

fn of_cann(names: &[String]) -> Vec<PathBuf> {
    let given = variable("STRATO_ASCEND_LIB").filter(|file| !file.is_empty());
    given.map_or_else(|| names.iter().flat_map(|name| ascend::places(name)).collect(), |file| vec![file.into()])
}

/// Files to try for a library of these names in their order, as who opens it does; a bare name is looked for where the loader
/// looks.
fn files(names: &[String]) -> Vec<PathBuf> {
    match names.first().map_or("", String::as_str) {
        "libcuda.so.1" => named("STRATO_CUDA_DRIVER", names),
        "libnvrtc.so.13" => named("STRATO_NVRTC", names),
        "libcupti.so.13" => cupti::find::candidates(&variable),
        "libnccl.so.2" => named("STRATO_NCCL", names),
        "libascendcl.so" | "libhccl.so" => of_cann(names),
        "libmspti.so" => preload::find(&variable).into_iter().collect(),
        "libdcmi.so" => dcmi::candidates(&variable).unwrap_or_default(),
        _ => bare(names),
    }
}

/// The first of these files that is there.
fn first(files: Vec<PathBuf>) -> Result<String, &'static str> {
    let is_there = |file: &PathBuf| match file.to_str().filter(|_| file.components().count() == 1) {
        Some(name) => library::found(&[name]).is_some(),
        None => file.is_file(),
    };
    files.into_iter().find(is_there).map(|file| file.display().to_string()).ok_or("it is not found")
}

/// What brings a device tool: it comes with the vendor's driver.
fn tool_remedy(vendors: &[Vendor], name: &str) -> String {
    let known = vendors.iter().find(|vendor| vendor.is(name));
    known.map_or_else(|| "the driver of the device, from its vendor".to_owned(), |vendor| vendor.install.clone())
}

/// One row for everything of a vendor of whom something is here; one row in all for a vendor of whom nothing is.
pub(super) fn rows() -> Vec<(String, Finding)> {
    let known = match vendors() {
        Ok(known) => known,
        Err(error) => {
            let remedy = "install strato again: what it knows of the vendors is damaged";
            return vec![("vendors".to_owned(), Finding::lacking(error.to_string(), remedy))];
        }
    };
    let pieces = pieces(&known);
    let mut named: Vec<&str> = pieces.iter().map(|piece| piece.vendor.as_str()).collect();
    named.dedup();
    let mut rows: Vec<(String, Finding)> = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    for vendor in named {
        if told.contains(&vendor) {
            continue;
        }
        told.push(vendor);
        let own: Vec<&Piece> = pieces.iter().filter(|piece| piece.vendor == vendor).collect();
        if own.iter().all(|piece| piece.is_there.is_err()) {
            let names: Vec<&str> = own.iter().map(|piece| piece.name.as_str()).collect();
            let remedy = format!("only for devices of {vendor}: {}", tool_remedy(&known, vendor));
            rows.push((vendor.to_owned(), Finding::lacking(format!("none of {}", names.join(", ")), remedy)));
            continue;
        }
        for Piece { name, what, is_there, remedy, .. } in own {
            let finding = match is_there {
                Ok(place) => Finding::good(format!("{what}: {place}")),
                Err(why) => Finding::lacking(format!("{what}: {why}"), remedy.clone()),
            };
            rows.push((name.clone(), finding));
        }
    }
    rows
}

fn pieces(vendors: &[Vendor]) -> Vec<Piece> {
    let program = |name: &str| on_path(name).map(|path| path.display().to_string()).ok_or("not on PATH");
    let tools = device_text::REGISTRY.iter().map(|tool| Piece {
        vendor: tool.vendor.to_owned(),
        name: tool.id.to_owned(),
        what: "device tool".to_owned(),
        is_there: program(tool.id),
        remedy: tool_remedy(vendors, tool.vendor),
    });
    let profilers = record::REGISTRY.iter().map(|profiler| Piece {
        vendor: profiler.vendor.to_owned(),
        name: profiler.id.to_owned(),
        what: "profiler".to_owned(),
        is_there: program(profiler.id),
        remedy: profiler.remedy.into(),
    });
    let libraries = vendors.iter().flat_map(|vendor| vendor.library.iter().map(move |library| (vendor, library)));
    let libraries = libraries.map(|(vendor, library)| Piece {
        vendor: vendor.ids.first().cloned().unwrap_or_default(),
        name: library.names.first().cloned().unwrap_or_default(),
        what: library.what.clone(),
        is_there: first(files(&library.names)),
        remedy: library.install.clone(),
    });
    tools.chain(profilers).chain(libraries).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_library_is_the_first_of_its_files_that_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let [there, absent] = ["libmspti.so", "libnone.so"].map(|name| directory.path().join(name));
        std::fs::write(&there, "").unwrap();
        assert_eq!(first(vec![absent.clone(), there.clone()]), Ok(there.display().to_string()));
        assert!(first(vec![absent, "libstrato-none.so.9".into()]).is_err());
        #[cfg(target_os = "linux")]
        assert_eq!(first(vec!["libstrato-none.so.9".into(), "libc.so.6".into()]), Ok("libc.so.6".to_owned()));
    }

    #[test]
    fn every_tool_profiler_and_library_is_spoken_of_and_what_is_missing_has_a_remedy() {
        let vendors = vendors().unwrap();
        let libraries: usize = vendors.iter().map(|vendor| vendor.library.len()).sum();
        assert!(libraries > 10, "{libraries} libraries");
        let pieces = pieces(&vendors);
        assert_eq!(pieces.len(), device_text::REGISTRY.len() + record::REGISTRY.len() + libraries);
        assert!(pieces.iter().all(|piece| !piece.name.is_empty() && !piece.remedy.is_empty()));
        let rows = rows();
        for piece in &pieces {
            let is_told =
                |(name, finding): &(String, Finding)| *name == piece.name || finding.state.contains(&piece.name);
            assert!(rows.iter().any(is_told), "{} is not spoken of", piece.name);
        }
        assert!(rows.iter().all(|(_, finding)| finding.verdict == "ok" || finding.remedy.is_some()));
    }
}
