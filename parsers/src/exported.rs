//! What this program itself wrote for viewers. It reads like a trace of a profiler, and has less than the captures that it was
//! made of: what is derived stands in it as if it had been recorded.

use serde_json::{Deserializer, Value};

/// Captures that are named; of more it is said that there are others.
const NAMED: usize = 3;
/// How the trace for the Perfetto UI begins its account of them.
const MARK: &[u8] = b"\"otherData\":{\"captures\":[";
/// Bytes within which the account begins.
const BEGINNING: usize = 256;

/// The captures that a file with these first bytes was made of, each in quotes; `None` of any other file.
pub fn captures(head: &[u8]) -> Option<String> {
    let beginning = head.get(..BEGINNING).unwrap_or(head);
    let at = beginning.windows(MARK.len()).position(|window| window == MARK)?;
    let mut rest = head.get(at + MARK.len()..)?;
    let mut sources = Vec::new();
    // An account of very many goes beyond the head; the first ones are enough.
    while sources.len() <= NAMED {
        let mut values = Deserializer::from_slice(rest).into_iter::<Value>();
        let Some(Ok(capture)) = values.next() else { break };
        // Nobody else writes by how much it moved a capture's times.
        capture.get("shift_ns")?;
        sources.push(format!("'{}'", capture.get("source")?.as_str()?));
        rest = rest.get(values.byte_offset()..).and_then(|rest| rest.strip_prefix(b",")).unwrap_or_default();
    }
    let others = if sources.len() > NAMED { " and others" } else { "" };
    sources.truncate(NAMED);
    (!sources.is_empty()).then(|| format!("{}{others}", sources.join(", ")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn an_export_names_what_it_was_made_of_and_nothing_else_is_one() {
        let of = |count: usize| {
            let one = |i| format!(r#"{{"format":"nsys","shift_ns":"0","simulated":false,"source":"run {i}.strato"}}"#);
            let captures: Vec<String> = (0..count).map(one).collect();
            let mark = "{\"displayTimeUnit\":\"ns\",\"stratoSimulated\":true,";
            format!(
                "{mark}\"otherData\":{{\"captures\":[{}],\"schema\":\"strato.perfetto/1\"}},\"traceEvents\":[",
                captures.join(",")
            )
        };
        assert_eq!(captures(of(1).as_bytes()).unwrap(), "'run 0.strato'");
        assert_eq!(captures(of(2).as_bytes()).unwrap(), "'run 0.strato', 'run 1.strato'");
        let many = of(2000);
        let cut = &many.as_bytes()[..64 << 10];
        assert_eq!(captures(cut).unwrap(), "'run 0.strato', 'run 1.strato', 'run 2.strato' and others");
        for other in [
            "",
            r#"{"otherData":{"captures":["#,
            r#"{"otherData":{"captures":[]},"traceEvents":[]}"#,
            r#"{"otherData":{"captures":[{"source":"theirs"}]},"traceEvents":[]}"#,
            r#"{"otherData":{"captures":[1,2]},"traceEvents":[]}"#,
            r#"{"schemaVersion": 1, "deviceProperties": [], "traceEvents": []}"#,
        ] {
            assert_eq!(captures(other.as_bytes()), None, "{other}");
        }
    }
}
