//! Which format a file is of, told by its content, and the one call that reads a file of any format.

use std::path::{Path, PathBuf};

use model::TraceSink;

use crate::{Format, Head, Match, REGISTRY, ReadError, ReadOptions, container, device_text, exported, format, sqlite};

/// Bytes of content that detection looks at.
const HEAD: usize = 64 << 10;

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
    let head = Head { path, bytes: &bytes, patterns: options.patterns };
    REGISTRY
        .iter()
        .map(|format| ((format.matches)(&head), format))
        .filter(|(sure, _)| *sure != Match::No)
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .map(|(_, format)| format)
        .ok_or_else(|| match device_text::read(&String::from_utf8_lossy(&bytes)) {
            Some((tool, readout)) if !readout.devices.is_empty() => {
                ReadError::NoRun { path: path.into(), tool: tool.id }
            }
            _ if !cfg!(feature = "sqlite") && sqlite::is_needed(&bytes) => {
                ReadError::WithoutSqlite { path: path.into() }
            }
            _ => unknown(path),
        })
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
        Some(id) => format(id).ok_or_else(|| unknown(path))?,
        None => detect(path, options)?,
    };
    (chosen.read)(path, sink, options)?;
    Ok(chosen)
}

fn unknown(path: &Path) -> ReadError {
    let known = REGISTRY.iter().map(|f| f.id).collect::<Vec<_>>().join(", ");
    ReadError::UnknownFormat { path: path.into(), known }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use model::TraceBuilder;
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

    #[test]
    fn an_unknown_file_names_the_formats_there_are() {
        let text = file(b"hello");
        let error = detect(text.path(), &ReadOptions::default()).map(|f| f.id).unwrap_err();
        assert!(error.to_string().contains("kineto"), "{error}");
        let mut sink = TraceBuilder::new("t", "t");
        let error = read(text.path(), &mut sink, &as_format("nonsense")).map(|f| f.id).unwrap_err();
        assert!(matches!(error, ReadError::UnknownFormat { .. }));
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

    #[test]
    fn a_format_that_is_forced_is_used() {
        let bare = file(br#"[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]"#);
        let mut sink = TraceBuilder::new("t", "t");
        assert_eq!(read(bare.path(), &mut sink, &as_format("kineto")).unwrap().id, "kineto");
        assert_eq!(sink.finish().slice_count(), 1);
    }
}
