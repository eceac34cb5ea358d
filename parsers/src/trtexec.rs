//! The time of each layer of a TensorRT engine, as `trtexec --exportProfile FILE` writes it: a list whose first element says how often
//! the engine ran, and whose others say how long each layer took in all. No layer has a place in time, so they become summaries.
//! Source: `samples/common/sampleReporting.cpp` of TensorRT 8 to 10.

use std::path::Path;

use model::{Conditions, KernelSummary, Provenance::Observed, Severity, TraceSink};
use serde::Deserialize;

use crate::{Format, Head, Match, Place, ReadError, ReadOptions, container, json::member, lanes::Account};

/// The format.
pub const FORMAT: Format = Format {
    id: "trtexec",
    name: "layer profile of TensorRT (trtexec --exportProfile)",
    matches,
    read,
    lead: crate::alone,
};

/// Most bytes of a profile; one of a thousand layers has some hundred kilobytes.
const MOST: usize = 16 << 20;

#[derive(Debug, Deserialize)]
struct Element {
    /// How often the engine ran; only in the first element.
    count: Option<u64>,
    name: Option<String>,
    /// Time of a layer in all runs, ms.
    #[serde(rename = "timeMs")]
    time_ms: Option<f64>,
}

fn matches(head: &Head<'_>) -> Match {
    let is_list = head.bytes.trim_ascii_start().starts_with(b"[");
    let has = |key: &str| member::has_key(head.bytes, key);
    if is_list && has("timeMs") && has("averageMs") && has("percentage") { Match::Certain } else { Match::No }
}

fn read(path: &Path, sink: &mut dyn TraceSink, _: &ReadOptions<'_>) -> Result<(), ReadError> {
    let bytes = container::head(path, MOST)?;
    let (mut runs, mut account, mut at) = (None, Account::default(), 0);
    let mut layers = Vec::new();
    // Element by element, so that a broken one costs itself and a cut what follows it.
    while let Some(begin) = memchr::memchr(b'{', bytes.get(at..).unwrap_or_default()).map(|found| at + found) {
        let mut elements = serde_json::Deserializer::from_slice(bytes.get(begin..).unwrap_or_default()).into_iter();
        let element: Option<Element> = elements.next().and_then(Result::ok);
        // Behind a broken one the next begins after its end: what is nested in it is no layer.
        at = match element {
            Some(_) => begin + elements.byte_offset().max(1),
            None => memchr::memchr(b'}', bytes.get(begin..).unwrap_or_default()).map_or(bytes.len(), |end| begin + end),
        };
        match element {
            Some(Element { count: Some(count), .. }) => runs = runs.or(Some(count)),
            element => layers.push(element.and_then(|element| {
                let time = element.time_ms.filter(|ms| ms.is_finite() && (0.0..1e12).contains(ms))?;
                Some((element.name?, (time * 1e6) as i64))
            })),
        }
    }
    for layer in layers {
        account.read += 1;
        let Some((name, total)) = layer else {
            account.incomplete += 1;
            continue;
        };
        let known = KernelSummary::of(sink.intern(&name), Conditions::Run);
        sink.summary(KernelSummary { count: runs.unwrap_or(0), total: Some(total), ..known });
        account.keep(0, total);
    }
    if account.read == account.incomplete {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: "a list of layers, each with name and timeMs".to_owned(),
            next: "export the profile again with trtexec --exportProfile".to_owned(),
        });
    }
    let cut = u64::from(!bytes.trim_ascii_end().ends_with(b"]"));
    if cut > 0 {
        sink.stat("trtexec.truncated", Severity::DataLoss, cut, Some("the list has no end"));
    }
    account.tell(sink, FORMAT.id, "layers", "sums of layers over all runs of the engine");
    if let Some(runs) = runs {
        sink.manifest("trtexec.runs", &runs.to_string(), Observed);
    }
    sink.manifest("software.engine", "TensorRT", Observed);
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use model::TraceBuilder;
    use std::io::Write;

    #[test]
    fn layers_are_sums_over_all_runs() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(
            br#"[ { "count" : 100 }
, { "name" : "conv1 + relu", "timeMs" : 148.32, "averageMs" : 1.4832, "medianMs" : 1.48, "percentage" : 98.5 }
, { "name" : "broken", "averageMs" : 1.0, "percentage" : 1.5 }
]"#,
        )
        .unwrap();
        let mut sink = TraceBuilder::new("t", "trtexec");
        assert_eq!(crate::detect::detect(file.path(), &ReadOptions::default()).unwrap().id, "trtexec");
        crate::detect::read(file.path(), &mut sink, &ReadOptions::default()).unwrap();
        let trace = sink.finish();
        let rows: Vec<_> =
            trace.summaries.iter().map(|row| (trace.strings.get(row.kernel), row.count, row.total)).collect();
        assert_eq!(rows, [("conv1 + relu", 100, Some(148_320_000))]);
        assert_eq!((trace.ledger[0].read, trace.ledger[0].kept), (2, 1));
        assert_eq!(trace.manifest.value("trtexec.runs"), Some("100"));
    }
}
