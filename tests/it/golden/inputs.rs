//! Reports on captures that come with the program, and on small files of what has no timeline.

use std::path::Path;

use super::{all_hold, held_against, report};
use crate::{
    common::{printed, samples, schema},
    damaged::inputs,
    kernel_metrics::PAGE,
};

/// A page, and who makes its text.
type Page = (&'static str, fn(&Path) -> String);

pub(super) const PAGES: &[Page] = &[
    ("sample-healthy", |_| report(&samples(), "healthy-full-graph.json.gz", &["--full"])),
    ("sample-measured", |directory| {
        std::fs::write(directory.join("page.csv"), PAGE).unwrap();
        let page = directory.join("page.csv");
        report(&samples(), "launch-bound-eager.json.gz", &["--full", "--kernel-metrics", page.to_str().unwrap()])
    }),
    ("sample-nsys", |_| report(&samples(), "sync-per-layer.sqlite", &["--full"])),
    ("sample-rocm", |_| report(&samples(), "tensor-parallel-rocm.json.gz", &["--full"])),
    ("sums", |directory| of_format(directory, "nsys-stats")),
    ("cluster", |directory| of_format(directory, "ascend-cluster")),
    ("log", |directory| of_format(directory, "log")),
];

/// The report on the files of a format that the damage tests have, in a directory of their own.
fn of_format(directory: &Path, format: &str) -> String {
    let mut files = inputs::all().into_iter().filter(|input| input.format == format);
    let folder = directory.join(format);
    std::fs::create_dir(&folder).unwrap();
    let input = files.next_back().unwrap();
    std::fs::write(folder.join(input.name), &input.bytes).unwrap();
    printed(&["diagnose", "--full", "--lang", "en", input.name], &folder)
}

#[test]
fn reports_on_the_samples_are_as_their_schema_says() {
    let of = schema::read("strato.diagnosis");
    for file in [
        "healthy-full-graph.json.gz",
        "launch-bound-eager.json.gz",
        "sync-per-layer.sqlite",
        "tensor-parallel-rocm.json.gz",
    ] {
        let json = printed(&["diagnose", "--format", "json", file], &samples());
        schema::check(&of, &serde_json::from_str(&json).unwrap(), file);
    }
}

#[test]
fn reports_on_captures_that_come_with_the_program_are_as_accepted() {
    let directory = tempfile::tempdir().unwrap();
    all_hold(PAGES.iter().map(|(name, page)| held_against(&format!("{name}.md"), &page(directory.path()))));
}
