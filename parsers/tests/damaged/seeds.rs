//! What the fuzzer begins with: the whole file of every format, and the beginnings of real captures.

use std::path::{Path, PathBuf};

use parsers::{REGISTRY, ReadError, detect};

use super::INPUTS;

/// Formats that read nothing: one asks a tool, the others decline.
const WITHOUT: [&str; 3] = ["nsys-rep", "ascend-sums", "not-read"];
/// Most bytes of a seed: the fuzzer is quick with short ones.
const SEED: usize = 16 << 10;
/// Largest database that is taken, as a whole: without its end it holds little.
const WHOLE: usize = 128 << 10;

/// The target that reads a format. The forms of Ascend share one.
fn target(format: &str) -> String {
    match format {
        "op-summary" | "op-statistic" | "ascend-cluster" => "ascend".to_owned(),
        other => other.replace('-', "_"),
    }
}

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

#[test]
fn every_format_has_a_fuzz_target() {
    let manifest = std::fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    let formats = REGISTRY.iter().map(|format| format.id).filter(|id| !WITHOUT.contains(id));
    for format in formats.chain(["device-text"]) {
        let target = target(format);
        assert!(fuzz().join(format!("fuzz_targets/{target}.rs")).is_file(), "{format} has no target");
        assert!(manifest.contains(&format!("name = \"{target}\"")), "the target of {format} is not built");
    }
}

/// Writes the seeds below the directory that `STRATO_SEEDS` names, those of real captures where `STRATO_CORPUS` names them.
/// Where nobody asks for them they go to a place that is taken away again.
#[test]
fn seeds_for_the_fuzzer_are_written_where_they_are_asked_for() {
    let elsewhere = tempfile::tempdir().unwrap();
    let asked = std::env::var_os("STRATO_SEEDS").map(PathBuf::from);
    let is_asked = asked.is_some();
    let seeds = asked.unwrap_or_else(|| elsewhere.path().to_owned());
    let mut written = 0;
    let mut write = |target: &str, name: &str, bytes: &[u8]| {
        std::fs::create_dir_all(seeds.join(target)).unwrap();
        std::fs::write(seeds.join(target).join(name), bytes).unwrap();
        written += 1;
    };
    for input in &*INPUTS {
        write(&target(input.format), input.name, &input.bytes);
    }
    let corpus = std::env::var_os("STRATO_CORPUS").filter(|_| is_asked);
    let mut folders: Vec<PathBuf> = corpus.map(PathBuf::from).into_iter().collect();
    while let Some(folder) = folders.pop() {
        for path in folder.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let target = match detect::detect(&path, &parsers::ReadOptions::default()) {
                Ok(format) if WITHOUT.contains(&format.id) => continue,
                Ok(format) => target(format.id),
                Err(ReadError::NoRun { .. }) => "device_text".to_owned(),
                Err(_) => continue,
            };
            let mut bytes = std::fs::read(&path).unwrap();
            if bytes.starts_with(b"SQLite") && bytes.len() > WHOLE {
                continue;
            }
            if !bytes.starts_with(b"SQLite") {
                bytes.truncate(SEED);
            }
            let name = path.strip_prefix(std::env::var_os("STRATO_CORPUS").unwrap()).unwrap();
            write(&target, &name.to_string_lossy().replace(['/', '\\'], "_"), &bytes);
        }
    }
    println!("{written} seeds");
    assert!(written >= INPUTS.len());
}
