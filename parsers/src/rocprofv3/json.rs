//! The JSON of rocprofv3: an object per process, with tables of names and then the records that refer to them.

use std::path::Path;

use model::{Severity, TraceSink};

use super::{
    import::Import,
    records::{Names, ROOT, Records},
};
use crate::{Place, Progress, ReadError, json_walk::walk};

/// Whether content begins as rocprofv3's JSON does.
pub(super) fn matches(head: &[u8]) -> bool {
    let Some(rest) = head.trim_ascii_start().strip_prefix(b"{") else { return false };
    let Some(rest) = rest.trim_ascii_start().strip_prefix(b"\"") else { return false };
    rest.strip_prefix(ROOT.as_bytes()).is_some_and(|rest| rest.starts_with(b"\""))
}

/// Reads the file twice: the names first, wherever they stand, then the records.
pub(super) fn read(path: &Path, sink: &mut dyn TraceSink, progress: Progress<'_>) -> Result<(), ReadError> {
    let mut names = Names::default();
    let broken = walk(path, &|_, _| {}, &Names::list, &mut |process, place, raw| names.take(process, place, raw))?;
    if names.is_empty() {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: format!("the JSON of rocprofv3 ({})", broken.unwrap_or_else(|| "it holds no process".to_owned())),
            next: "record again with 'rocprofv3 --runtime-trace --output-format json -- COMMAND'".to_owned(),
        });
    }
    let mut import = Import::new(sink);
    names.agents(&mut import.agents);
    let mut records = Records::new(&names);
    let take = &mut |process, place: &str, raw: &str| records.take(&mut import, process, place, raw);
    let broken = walk(path, progress, &Records::list, take)?;
    records.tell(&mut *import.sink);
    if let Some(why) = broken {
        import.sink.stat("rocprofv3.damaged_file", Severity::DataLoss, 1, Some(&why));
    }
    import.settle();
    Ok(())
}
