//! Captures that somebody put together or left incomplete: what each lacks is said first.

use simulator::{Config, simulate_job};

use super::*;

/// What a run says that may end in any way: its code, and everything it printed.
fn said(path: &str, directory: &Path) -> (Option<i32>, String) {
    let output = strato(&["diagnose", "--lang", "en", path], directory);
    let texts = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (output.status.code(), texts.concat())
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
