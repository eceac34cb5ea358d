//! Captures that somebody put together, left incomplete, or made to mislead or to starve: what each lacks is said first.
//! `STRATO_HOSTILE` names the folder of those that were found; the same kinds are made here.

use std::path::PathBuf;

use simulator::{Config, simulate_job};

use super::*;

/// What each file gets: its exit code, how the first sentence of the verdict or of the refusal goes on, and what is not said.
const FILES: [(&str, i32, &str, &str); 14] = [
    ("cat-rank0-rank1.json.gz", 0, "**Decode (", "Incomplete"),
    ("concat-two-docs.json", 3, "rows stand twice and were counted once", "Incomplete"),
    ("dir-json-and-strato", 0, "# Diagnosis of several captures", "Incomplete"),
    ("four-of-64-ranks", 3, "**Incomplete: 4 of 64 ranks captured, ranks `2, 5, 6,", "with every rank"),
    ("half-of-kernels-broken.json", 3, "**Incomplete: 200 of 425 kernels could not be read.", "RT-18"),
    ("half-of-kernels-unreadable-tsx.json", 3, "**Incomplete: 200 of 425 kernels could not be read.", "RT-18"),
    ("hostile-names.json", 0, "**Decode (", "<script"),
    ("nsys-half-of-kernel-rows-unreadable.sqlite.gz", 3, "unpack it ('gzip -dk ", "export it again"),
    ("nsys-hang-57KB.sqlite", 3, "**Incomplete: the source could not be read to its end", "18 446 744 073"),
    ("otlp-8192-spans-one-line.json.gz", 0, "the capture is of the host alone", "check that the exporter"),
    ("r19-without-culprit", 3, "**Incomplete: 3 of 4 ranks captured, rank 2 is absent.", "CM-01"),
    ("slow-damaged-gzip-3MB.json.gz", 3, "**Incomplete: the source could not be read to its end", "RT-"),
    ("tids160000.json.gz", 0, "## Verdict", "Incomplete"),
    (
        "two-of-four-ranks",
        3,
        "**Incomplete: 2 of 4 ranks captured, ranks `2, 3` are absent.",
        "with every rank present",
    ),
];

/// What a run says that may end in any way: its code, and everything it printed.
fn said(path: &str, directory: &Path) -> (Option<i32>, String) {
    let output = strato(&["diagnose", "--lang", "en", path], directory);
    let texts = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (output.status.code(), texts.concat())
}

/// Looks at nothing where `STRATO_HOSTILE` names no folder.
#[test]
fn every_hostile_file_gets_its_answer() {
    let Some(folder) = std::env::var_os("STRATO_HOSTILE").map(PathBuf::from) else { return };
    let known = FILES.map(|(name, ..)| name);
    let mut wrong: Vec<String> = Vec::new();
    for entry in folder.read_dir().unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        wrong.extend((!known.contains(&&*name)).then(|| format!("{name}: nobody says what is right")));
    }
    for (name, code, says, never) in FILES {
        let (ended, text) = said(name, &folder);
        let first: Vec<&str> = text.lines().filter(|line| !line.is_empty()).take(8).collect();
        if ended != Some(code) || !text.contains(says) || text.contains(never) {
            wrong.push(format!("{name}: {ended:?}, not {code} with '{says}' without '{never}': {}", first.join(" | ")));
        }
    }
    // The database is one of the kind when it is unpacked.
    let (packed, file) = ("nsys-half-of-kernel-rows-unreadable.sqlite.gz", tempfile::NamedTempFile::new().unwrap());
    let mut content = GzDecoder::new(std::fs::File::open(folder.join(packed)).unwrap());
    std::io::copy(&mut content, &mut file.as_file()).unwrap();
    let (ended, text) = said(&file.path().to_string_lossy(), &folder);
    if ended != Some(3) || !text.contains("**Incomplete: ") || text.contains("RT-18") {
        wrong.push(format!("{packed}, unpacked: {ended:?}, {}", text.lines().take(6).collect::<Vec<_>>().join(" | ")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The second half of what `cat` joined was dropped without a word.
#[test]
fn ranks_in_one_file_are_the_ranks_of_a_directory() {
    let job = Config { steps: 12, layers: 2, ..Config::draw_job(5, 2) };
    let directory = tempfile::tempdir().unwrap();
    let files = simulate_job(&job).write_kineto(directory.path()).unwrap();
    let apart = diagnosed(directory.path());
    let joined = tempfile::NamedTempFile::with_suffix(".json.gz").unwrap();
    let bytes: Vec<u8> = files.iter().flat_map(|file| std::fs::read(file).unwrap()).collect();
    std::fs::write(joined.path(), bytes).unwrap();
    let together = diagnosed(joined.path());
    assert_eq!((together.1.ranks.len(), together.1.loss.is_any()), (2, false), "{:?}", together.1.loss);
    assert_eq!(together.0.slice_count(), apart.0.slice_count());
    assert_eq!(sweep::claims(&together.2), sweep::claims(&apart.2));
}

/// Of few ranks of a large job "every rank was there" was said.
#[test]
fn few_ranks_of_many_are_never_every_rank() {
    let job = Config { steps: 12, layers: 2, ..Config::draw_job(5, 8) };
    let directory = tempfile::tempdir().unwrap();
    for file in simulate_job(&job).write_kineto(directory.path()).unwrap().into_iter().skip(3) {
        std::fs::remove_file(file).unwrap();
    }
    let (code, text) = said(".", directory.path());
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("**Incomplete: 3 of 8 ranks captured, ranks `3, 4, 5, 6, 7` are absent."), "{text}");
    assert!(!text.contains("every rank"), "{text}");
}
