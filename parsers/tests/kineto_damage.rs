//! Hostile and damaged Kineto files: reading them never panics or hangs, and what is whole is kept.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use model::{Trace, TraceBuilder};
use parsers::{ReadError, kineto};

fn read(content: &[u8]) -> Result<Trace, ReadError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(content).unwrap();
    let mut sink = TraceBuilder::new("test", "kineto");
    (kineto::FORMAT.read)(file.path(), &mut sink, &parsers::ReadOptions::default())?;
    Ok(sink.finish())
}

const EVENTS: usize = 120;

/// A small trace with the shape of a real one.
fn sample() -> Vec<u8> {
    let mut events = Vec::new();
    for i in 0..EVENTS / 3 {
        let (op, launch, kernel) = (i * 40, i * 40 + 5, i * 40 + 12);
        events.push(format!(
            r#"  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 25286, "tid": 25286,
    "ts": 14286257{op:05}.044, "dur": 30.822,
    "args": {{
      "External id": {i},"Record function id": 0, "Input type": ["c10::BFloat16", "long int"], "Input Dims": [[15, 1024], [{i}]]
    }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 25286, "tid": 25286,
    "ts": 14286257{launch:05}.5, "dur": 6,
    "args": {{ "External id": {i},"cbid": 211, "correlation": {i} }}
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "gemm<float, 4>(int, \"x\")", "pid": 0, "tid": 7,
    "ts": 14286257{kernel:05}.25, "dur": 18.112,
    "args": {{ "device": 0, "context": 1, "stream": 7, "correlation": {i}, "grid": [8, 1, 1], "block": [128, 1, 1] }}
  }}"#
        ));
    }
    format!(
        "{{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{{\"id\": 0, \"name\": \"NVIDIA H100\"}}],\n  \"traceEvents\": [\n{}\n  ],\n  \"baseTimeNanoseconds\": 1751410836000000000\n}}\n",
        events.join(",\n")
    )
    .into_bytes()
}

/// Random numbers that are the same in every run (splitmix64).
fn random() -> impl FnMut(usize) -> usize {
    let mut state = 7u64;
    move |below| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below as u64) as usize
    }
}

#[test]
fn the_sample_is_whole() {
    let t = read(&sample()).unwrap();
    assert_eq!((t.slice_count(), t.stats.len()), (EVENTS, 0));
    assert!(t.lanes.iter().flat_map(|lane| &lane.link).filter(|link| **link != u32::MAX).count() == EVENTS / 3);
}

#[test]
fn a_file_cut_anywhere_keeps_its_complete_events() {
    let whole = sample();
    let mut random = random();
    for _ in 0..200 {
        let end = random(whole.len());
        let cut = &whole[..end];
        // An event is complete where its last bracket is there.
        let complete = String::from_utf8_lossy(cut).matches("\n  }").count();
        match read(cut) {
            Ok(t) => {
                assert_eq!(t.slice_count(), complete, "cut at {end}");
                assert_eq!(t.stat("kineto.truncated"), u64::from(end < whole.len() - 1), "cut at {end}");
            }
            Err(error) => assert!(complete == 0, "cut at {end}: {error}"),
        }
    }
}

#[test]
fn a_flipped_byte_costs_two_events_at_most() {
    let whole = sample();
    let mut random = random();
    for _ in 0..2000 {
        let mut bytes = whole.clone();
        let at = random(bytes.len());
        bytes[at] ^= (1 + random(255)) as u8;
        let t = read(&bytes).unwrap_or_else(|error| panic!("byte {at}: {error}"));
        assert!(t.slice_count() >= EVENTS - 2, "byte {at} = {}: {} events, {:?}", bytes[at], t.slice_count(), t.stats);
        if t.slice_count() < EVENTS {
            let lost: u64 = t.stats.iter().filter(|s| s.severity >= model::Severity::DataLoss).map(|s| s.count).sum();
            let told = lost > 0 || t.ledger.iter().any(|row| row.read > row.kept);
            assert!(told || t.stat("kineto.empty_events") > 0, "byte {at} = {}: a silent loss", bytes[at]);
        }
    }
}

#[test]
fn any_bytes_are_survived() {
    let mut random = random();
    let alphabet: &[u8] = br#"{}[]",:\ 0e-.pXnu"#;
    for _ in 0..2000 {
        let len = random(400);
        let mut bytes = br#"{"traceEvents": [{"ph": "X", "#.to_vec();
        bytes.extend((0..len).map(|_| alphabet[random(alphabet.len())]));
        let _ = read(&bytes);
    }
}

#[test]
fn long_names_and_deep_nesting() {
    let long = "n".repeat(1 << 20);
    let deep = format!("{}{}", "[".repeat(1 << 20), "]".repeat(1 << 20));
    let event = |name: &str, extra: &str| {
        format!(
            r#"{{"ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {{"x": {extra}}}}}"#
        )
    };
    let events = [event(&long, "0"), event("deep", &deep), event("fine", "[[[]]]")].join(",");
    let t = read(format!(r#"{{"traceEvents": [{events}]}}"#).as_bytes()).unwrap();
    assert_eq!((t.slice_count(), t.stat("kineto.broken_events"), t.stat("trace.long_text_cut")), (2, 1, 1));
}

#[test]
fn an_event_larger_than_any_limit_is_counted_and_left() {
    let event = |name: &str| {
        format!(r#"{{"ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 1, "tid": 1, "ts": 1, "dur": 1}}"#)
    };
    let huge = event(&"h".repeat(40 << 20));
    let t = read(format!(r#"{{"traceEvents": [{}, {huge}, {}]}}"#, event("a"), event("b")).as_bytes()).unwrap();
    assert_eq!(t.slice_count(), 2);
    assert!(t.strings.find("a").is_some() && t.strings.find("b").is_some());
    assert!(t.stat("kineto.oversized_events") + t.stat("kineto.broken_events") > 0);
}

#[test]
fn a_gzip_bomb_is_read_in_bounded_memory() {
    // 300 MB of zeros behind an event, in about 300 kB of gzip.
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(
        br#"{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1}, "#,
    )
    .unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..300 {
        gz.write_all(&zeros).unwrap();
    }
    let bomb = gz.finish().unwrap();
    assert!(bomb.len() < 4 << 20);
    let before = resident();
    let t = read(&bomb).unwrap();
    assert_eq!(t.slice_count(), 1);
    assert!(t.stats.iter().any(|s| s.severity == model::Severity::DataLoss));
    if let (Some(before), Some(after)) = (before, resident()) {
        assert!(after.saturating_sub(before) < 200 << 10, "grew by {} kB", after - before);
    }
    let zeros = read(&vec![0; 20 << 20]).expect_err("zeros are no trace");
    assert!(zeros.to_string().contains("byte 0"), "{zeros}");
}

/// Peak resident memory, kB, where the system tells it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().trim_end_matches(" kB").parse().ok()
}
