//! Files of sums on their own, without the capture they were made from: nothing in them has a place in time, so neither a
//! step nor a cause can be found. They are recognised in order to say so, and what to give instead.

use std::path::Path;

use model::TraceSink;

use crate::{Format, Head, Match, ReadError, ReadOptions, sqlite};

/// The format.
pub const FORMAT: Format = Format {
    id: "ascend-sums",
    name: "Ascend sums of steps, calls, collectives and memory (declined: give the capture they were made from)",
    matches,
    read,
    lead: crate::alone,
};

/// Words that all stand in the first bytes of a kind of file, and what such a file holds.
const KINDS: [(&[&str], &str); 13] = [
    (&["Level,API Name,Time(us),Count"], "sums of the host's calls"),
    (&["Name,Input Shapes,Call Stack,Host Self Duration(us)"], "sums of the framework's operators"),
    (&["Iteration ID,FP Start(us)"], "times of iterations"),
    (&["Fusion Op,Original Ops"], "names and memory of fused operators"),
    (&["Allocation Time(us)", "Size(KB)"], "sizes of allocations"),
    (&["Component,Timestamp(us)"], "memory over time"),
    (&["Hit Rate", "Victim Rate"], "cache hits of kernels"),
    (&["\"Communication Time Info\"", "\"Elapse Time(ms)\""], "sums of each collective"),
    (&["\"Transport Type\"", "\"Transit Size(MB)\""], "bytes and bandwidth of each pair of ranks"),
    (&["\"collective\"", "\"p2p\"", "[["], "the ranks of each communication group"),
    // What torch_npu notes beside a capture: profiler_metadata.json, profiler_info_RANK.json.
    (&["\"ENV_VARIABLES\"", "\"ASCEND_GLOBAL_LOG_LEVEL\""], "the process groups and settings of a rank"),
    (&["\"common_config\"", "\"experimental_config\""], "the settings of a profiler"),
    // What the tests of msprof compare with: test by test, operators with their shapes and the mean of each, µs.
    (&["{\"test_", "AicMetrics", "\": {\""], "mean times of operators, without how often each ran"),
];
/// The same of timelines that are no record of a run's time, or none that can be read with its host: bare arrays of events, which
/// would pass for traces of the framework.
const TIMELINES: [(&[&str], &str, &str); 1] = [
    // What aclmdlRICaptureEnd's debug output shows: one task after the other, each as long as the next.
    (
        &[" aclGraph\"", "\"Model Id\""],
        "the tasks of a captured graph in their order, with times that are made up",
        "give the profile of a run that replays the graph (*_ascend_pt, PROF_*)",
    ),
];
/// Bytes that a JSON file of sums must show what it is in.
const HEAD: usize = 4 << 10;

/// What a bare array of events holds that is declined, and what to give instead.
fn timeline(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let shown = bytes.get(..HEAD.min(bytes.len())).filter(|shown| shown.starts_with(b"["))?;
    let has = |word: &&str| memchr::memmem::find(shown, word.as_bytes()).is_some();
    TIMELINES.iter().find(|(words, ..)| words.iter().all(has)).map(|(_, holds, next)| (*holds, *next))
}

fn kind(head: &Head<'_>) -> Option<&'static str> {
    if head.path.is_dir() {
        return None;
    }
    if head.bytes.starts_with(sqlite::SIGNATURE) {
        return sums_database(head.path).then_some("sums of steps and collectives");
    }
    let bytes = head.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head.bytes).trim_ascii_start();
    // Of a table only the names of its columns count, of JSON its first objects.
    let is_json = bytes.starts_with(b"{");
    let shown = match is_json {
        true => bytes.get(..HEAD.min(bytes.len())).unwrap_or_default(),
        false => bytes.split(|b| *b == b'\n').next().unwrap_or_default(),
    };
    let has = |word: &&str| memchr::memmem::find(shown, word.as_bytes()).is_some();
    let of_kind = |words: &[&str]| words.iter().all(has) && words.iter().any(|w| w.starts_with('"')) == is_json;
    KINDS.iter().find(|(words, _)| of_kind(words)).map(|(_, holds)| *holds)
}

/// Whether a database has the tables of such sums. Each table's own statement stands in the file's first page.
fn sums_database(path: &Path) -> bool {
    const MARKS: [&[u8]; 2] = [b"StepTraceTime", b"CommAnalyzerTime"];
    let Ok(head) = crate::container::head(path, HEAD) else { return false };
    MARKS.iter().any(|mark| memchr::memmem::find(&head, mark).is_some())
}

fn matches(head: &Head<'_>) -> Match {
    match () {
        () if !head.path.is_dir() && timeline(head.bytes).is_some() => Match::Certain,
        () if kind(head).is_some() => Match::Possible,
        () => Match::No,
    }
}

fn read(path: &Path, _: &mut dyn TraceSink, _: &ReadOptions<'_>) -> Result<(), ReadError> {
    let bytes = crate::container::head(path, 64 << 10)?;
    if let Some((holds, next)) = timeline(&bytes) {
        return Err(ReadError::Declined { path: path.to_owned(), holds: holds.to_owned(), next: next.to_owned() });
    }
    let holds = kind(&Head::new(path, &bytes)).unwrap_or("sums");
    Err(ReadError::Declined {
        path: path.to_owned(),
        holds: holds.to_owned(),
        next: "give the directory of the profiler that it was made from (*_ascend_pt, *_ascend_ms, PROF_*)".to_owned(),
    })
}
