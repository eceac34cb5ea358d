//! Which format a file is of, told by its content, and the one call that reads a file of any format.

use std::path::{Path, PathBuf};

use model::TraceSink;

use crate::{Format, Head, Match, REGISTRY, ReadError, ReadOptions, container, device_text, exported, format, sqlite};

/// Bytes of content that detection looks at.
const HEAD: usize = 64 << 10;
/// Bytes of a text that are looked at where its first ones are of no format: servers and training scripts print for a long time
/// before the first line of a format (the farthest one met began at byte 400 000).
const FURTHER: usize = 16 << 20;

/// The format that is surest of the file or directory at `path`, whatever `options.format` says; of equals, the one that
/// stands first in [`REGISTRY`].
///
/// # Errors
/// [`ReadError::UnknownFormat`] when no format recognises it, [`ReadError::NoRun`] when it shows devices and no run,
/// [`ReadError::Exported`] when this program made it of captures; other errors when it cannot be read at all.
pub fn detect(path: &Path, options: &ReadOptions<'_>) -> Result<&'static Format, ReadError> {
    // A directory that is one capture has no content of its own; its format knows it by what lies in it.
    let bytes = if path.is_dir() { Vec::new() } else { container::head(path, HEAD)? };
    if let Some(captures) = exported::captures(&bytes) {
        return Err(ReadError::Exported { path: path.into(), captures });
    }
    let mut found = surest(&Head { path, bytes: &bytes, patterns: options.patterns });
    if found.is_none() && bytes.len() == HEAD && !bytes.contains(&0) {
        found = surest(&Head { path, bytes: &container::head(path, FURTHER)?, patterns: options.patterns });
    }
    refuse_packed(path, &bytes, found)?;
    found.ok_or_else(|| match device_text::read(&String::from_utf8_lossy(&bytes)) {
        Some((tool, readout)) if !readout.devices.is_empty() => ReadError::NoRun { path: path.into(), tool: tool.id },
        _ if !cfg!(feature = "sqlite") && sqlite::is_needed(&bytes) => ReadError::WithoutSqlite { path: path.into() },
        _ => unknown(path),
    })
}

/// The format that is surest of what it sees.
fn surest(head: &Head<'_>) -> Option<&'static Format> {
    let sure = REGISTRY.iter().map(|format| ((format.matches)(head), format)).filter(|(sure, _)| *sure != Match::No);
    sure.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, format)| format)
}

/// The other file whose reading gives the capture of `path` too, if there is one.
pub fn lead(path: &Path, options: &ReadOptions<'_>) -> Option<PathBuf> {
    detect(path, options).ok().and_then(|format| (format.lead)(path))
}

/// Reads `path` into `sink`, as the format that the options name or as what it is detected to be, and says which format
/// that was.
///
/// # Errors
/// [`ReadError`] when there is no such format or nothing useful could be read.
pub fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<&'static Format, ReadError> {
    let chosen = match options.format {
        Some(id) => {
            let chosen = format(id).ok_or_else(|| unknown(path))?;
            if path.is_file() {
                refuse_packed(path, &container::head(path, sqlite::SIGNATURE.len())?, Some(chosen))?;
            }
            chosen
        }
        None => detect(path, options)?,
    };
    (chosen.read)(path, sink, options)?;
    Ok(chosen)
}

/// The format whose reader unpacks a database by itself: its own tool compresses what it records.
const UNPACKS: &str = "rpd";

/// SQLite reads files as they lie on the disk: the error of a database that was compressed, whose content begins so.
fn refuse_packed(path: &Path, content: &[u8], format: Option<&Format>) -> Result<(), ReadError> {
    let unpacks = format.is_some_and(|format| format.id == UNPACKS);
    if unpacks || !content.starts_with(sqlite::SIGNATURE) || !container::is_packed(path)? {
        return Ok(());
    }
    let file = path.display();
    Err(ReadError::NotRead {
        path: path.into(),
        what: "a compressed SQLite database".to_owned(),
        why: "a database is read where it lies, page by page".to_owned(),
        next: format!("unpack it ('gzip -dk {file}', 'zstd -d {file}') and give what comes out"),
    })
}

fn unknown(path: &Path) -> ReadError {
    let known = crate::readable().collect::<Vec<_>>().join(", ");
    ReadError::UnknownFormat { path: path.into(), known }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use model::{Category, TraceBuilder};
    use std::io::Write;

    fn file(content: &[u8]) -> tempfile::NamedTempFile {
        let mut temp = tempfile::NamedTempFile::new().unwrap();
        temp.write_all(content).unwrap();
        temp
    }

    fn as_format(id: &str) -> ReadOptions<'_> {
        ReadOptions { format: Some(id), ..ReadOptions::default() }
    }

    #[test]
    fn content_decides_not_the_name() {
        let json = br#"{"schemaVersion": 1, "deviceProperties": [], "traceEvents": []}"#;
        assert_eq!(detect(file(json).path(), &ReadOptions::default()).unwrap().id, "kineto");
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(json).unwrap();
        assert_eq!(detect(file(&gz.finish().unwrap()).path(), &ReadOptions::default()).unwrap().id, "kineto");
    }

    /// "Not a database; export it again" was said of a whole export that somebody had compressed.
    #[test]
    fn a_compressed_database_says_how_to_unpack_it() {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(b"SQLite format 3\0 CUPTI_ACTIVITY_KIND_KERNEL StringIds").unwrap();
        let packed = file(&gz.finish().unwrap());
        for options in [ReadOptions::default(), as_format("nsys")] {
            let error = read(packed.path(), &mut TraceBuilder::new("t", "t"), &options).map(|f| f.id).unwrap_err();
            assert!(matches!(error, ReadError::NotRead { .. }) && error.to_string().contains("gzip -dk"), "{error}");
        }
    }

    #[test]
    fn an_unknown_file_names_the_formats_there_are() {
        let text = file(b"hello");
        let error = detect(text.path(), &ReadOptions::default()).map(|f| f.id).unwrap_err();
        assert!(error.to_string().contains("kineto"), "{error}");
        let mut sink = TraceBuilder::new("t", "t");
        let error = read(text.path(), &mut sink, &as_format("nonsense")).map(|f| f.id).unwrap_err();
        assert!(matches!(error, ReadError::UnknownFormat { .. }));
    }

    fn is(content: &[u8]) -> Option<&'static str> {
        detect(file(content).path(), &ReadOptions::default()).map(|format| format.id).ok()
    }

    /// A run of hipprof whose host events carry a category that Kineto's files of 2021 have.
    const HIPPROF: &str = r#"{"otherData":{"tool":"hipprof"},"traceEvents":[
{"ph":"M","name":"process_name","pid":6,"args":{"name":"GPU0"}},
{"ph":"X","cat":"Operator","name":"hipLaunchKernel","pid":2,"tid":7,"ts":"1000.5","dur":2,"args":{"pid":"7","Index":1,"BeginNs":"1000500","EndNs":"1002500"}},
{"ph":"X","name":"first","pid":6,"tid":0,"ts":1010.125,"dur":"5.5","args":{"pid":"7","Index":1,"queue-id":"0"}},
{"ph":"X","name":"second","pid":6,"tid":0,"ts":1015.625,"dur":"4","args":{"pid":"7","Index":2,"queue-id":"0"}}]}"#;

    #[test]
    fn one_category_of_another_format_does_not_take_a_file_from_the_format_that_it_names() {
        let spaced = HIPPROF.replace("\"tool\":\"hipprof\"", "\"tool\" :\n \"hipprof 5.7\"");
        let other = HIPPROF.replace("\"cat\":\"Operator\"", "\"cat\": \"cpu_op\"");
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(HIPPROF.as_bytes()).unwrap();
        let packed = gz.finish().unwrap();
        for content in [HIPPROF.as_bytes(), other.as_bytes(), spaced.as_bytes(), &packed] {
            let mut sink = TraceBuilder::new("t", "t");
            let format = read(file(content).path(), &mut sink, &ReadOptions::default()).unwrap();
            let trace = sink.finish();
            let kernels =
                trace.lanes.iter().flat_map(|lane| &lane.category).filter(|c| **c == Category::Kernel).count();
            assert_eq!((format.id, kernels), ("hipprof", 2), "{}", String::from_utf8_lossy(content));
        }
    }

    #[test]
    fn a_format_is_known_by_keys_with_values_in_any_spelling() {
        let event =
            |cat: &str| format!("[{{\"ph\":\"X\",{cat},\"name\":\"a\",\"ts\":1,\"dur\":2,\"pid\":1,\"tid\":1}}]");
        for own in ["\"cat\":\"Operator\"", "\"cat\" : \"cpu_op\"", "\"cat\"\n:\t\"user_annotation\""] {
            let json = event(own);
            let head = Head::new(Path::new("x"), json.as_bytes());
            assert_eq!((format("kineto").unwrap().matches)(&head), Match::Certain, "{json}");
        }
        for other in
            ["\"cat\":\"op\"", "\"args\":\"Operator\"", "\"said\":\"\\\"cat\\\": \\\"Operator\\\"\"", "\"cpu_op\":1"]
        {
            let json = event(other);
            let head = Head::new(Path::new("x"), json.as_bytes());
            assert_eq!((format("kineto").unwrap().matches)(&head), Match::Possible, "{json}");
        }
        for ascend in
            ["\"args\":{\"name\" : \"Ascend Hardware\"}", "\"cat\":\"async_npu\"", "\"ts\": \"1736408883000010.000\""]
        {
            assert_eq!(is(event(ascend).as_bytes()), Some("ascend"), "{ascend}");
        }
        assert_eq!(is(event("\"args\":\"CANN\"").as_bytes()), Some("kineto"), "a bare list of events");
    }

    #[test]
    fn words_of_a_format_in_a_text_are_not_the_format() {
        for text in [
            "Kineto writes \"cat\": \"cpu_op\" and \"deviceProperties\" [..]; hipprof says \"tool\":\"hipprof\", \"ph\".",
            "# Notes\nThe table has ID, Kernel Name and Section Name; Total Time (ns), Time (%); block_id,sub_block_id.\n",
            "{\"about\": \"\\\"cat\\\": \\\"cpu_op\\\", \\\"traceEvents\\\"\", \"notes\": [\"avg_latency\", \"latencies\"]}",
            "{\"words\": [\"request_throughput\", \"mean_ttft_ms\", \"ttfts\", \"itls\", \"BeginNs\", \"traceEvents\"]}",
            "[\"Ascend Hardware\", \"CANN\", \"async_npu\", \"ph\"]",
            "{\"tool\": \"hipprof\"}",
            "{\"name\": \"rocprofiler-sdk-tool\"}",
            "SQLite format 3 is the format of rocpd_string and CUPTI_ACTIVITY_KIND_KERNEL.",
        ] {
            assert_eq!(is(text.as_bytes()), None, "{text}");
        }
    }

    #[cfg(not(feature = "sqlite"))]
    #[test]
    fn a_build_without_sqlite_says_what_reads_a_database() {
        for content in [&b"SQLite format 3\0\x10\0"[..], b"NVIDIA Tegra Profiler Report 1.0"] {
            let error = detect(file(content).path(), &ReadOptions::default()).map(|format| format.id).unwrap_err();
            assert!(error.to_string().contains("feature 'sqlite'"), "{error}");
        }
    }

    const PRINTED: &str = "\
| npu-smi 24.1.0                   Version: 24.1.0                                              |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 93.6        40                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3161 / 65536         |
+===========================+===============+====================================================+
";

    #[test]
    fn what_a_device_tool_prints_is_no_run() {
        let known = crate::device_text::read(PRINTED).map(|(tool, readout)| (tool.id, readout.devices.len()));
        assert_eq!(known, Some(("npu-smi", 1)));
        let error = detect(file(PRINTED.as_bytes()).path(), &ReadOptions::default()).map(|f| f.id).unwrap_err();
        assert!(error.is_foreign() && error.to_string().contains("what npu-smi prints"), "{error}");
        let about = detect(file(b"run `npu-smi info` first\n| NPU Name | Health |\n").path(), &ReadOptions::default())
            .map(|f| f.id)
            .unwrap_err();
        assert!(matches!(about, ReadError::UnknownFormat { .. }), "{about}");
    }

    /// A server's log was of no known format where its first batch came late, and what `npu-smi` prints where it began with that.
    #[test]
    fn a_log_is_known_by_its_serving_lines_however_late_they_come() {
        let line = "[2026-03-01 10:00:00 TP0] Decode batch, #running-req: 4, #token: 900, token usage: 0.10, npu graph: True, gen throughput (token/s): 80.00, #queue-req: 0,\n";
        let late = format!("{PRINTED}{}{line}", "loading weights, shard by shard\n".repeat(9000));
        assert_eq!(is(late.as_bytes()), Some("log"));
        let table = format!(
            "{}---- ------------ ------------\nName     Self CPU   # of Calls\n---- ------------ ------------\nab      3.000us            1\n",
            "step 1: loss 2.5\n".repeat(9000)
        );
        assert_eq!(is(table.as_bytes()), Some("torch-table"));
    }

    #[test]
    fn a_format_that_is_forced_is_used() {
        let bare = file(br#"[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]"#);
        let mut sink = TraceBuilder::new("t", "t");
        assert_eq!(read(bare.path(), &mut sink, &as_format("kineto")).unwrap().id, "kineto");
        assert_eq!(sink.finish().slice_count(), 1);
    }
}
