#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::io::Write;

use model::{Trace, TraceBuilder};

use super::*;

fn read_text(text: &str) -> Trace {
    read_with(text, &ReadOptions::default()).unwrap()
}

fn read_with(text: &str, options: &ReadOptions<'_>) -> Result<Trace, ReadError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let mut sink = TraceBuilder::new("t", "log");
    assert_eq!(crate::detect::read(file.path(), &mut sink, options)?.id, "log");
    Ok(sink.finish())
}

/// (name, start, duration) of every slice in the order of tracks.
fn slices(trace: &Trace) -> Vec<(String, i64, i64)> {
    let lanes = trace.lanes.iter().flat_map(|l| (0..l.len()).map(move |i| (l.name[i], l.start[i], l.dur[i])));
    lanes.map(|(name, start, dur)| (trace.strings.get(name).to_owned(), start, dur)).collect()
}

fn step(name: &str, start: i64, dur: i64) -> (String, i64, i64) {
    (format!("log step {name}"), start, dur)
}

#[test]
fn the_literal_seed_form_is_laid_end_to_end_and_joined_in_order() {
    let trace = read_text(
        "log(platform=h20, batch_size=8, prompt_len=128, stage=prefill, latency_ms=12.5)\n\
         log(platform=h20, batch_size=8, prompt_len=128, stage=decode, latency_ms=3.000001)\n\
         log(graph_mode=eager, compile_hit=False, memory_allocated=1024)\n\
         log(graph_mode=full, compile_hit=True, memory_allocated=2048)\n",
    );
    assert_eq!(
        slices(&trace),
        [
            step("prefill=8 tokens=1024 graph=eager compile=miss", 0, 12_500_000),
            step("decode=8 context=1024 graph=full compile=hit", 12_500_000, 3_000_001),
        ]
    );
    assert_eq!(trace.counters[0].t, [0, 12_500_000]);
    assert_eq!(trace.counters[0].value, [1024.0, 2048.0]);
    assert_eq!(trace.manifest.value("log.platform"), Some("h20"));
    assert_eq!((trace.stat("log.step_without_time"), trace.start_unix_ns), (2, None));
}

#[test]
fn json_lines_join_by_step_and_keep_their_clock() {
    let trace = read_text(
        r#"{"ts_ns": 1754586817000000000, "rank": 1, "step": 7, "batch_size": 4, "stage": "decode", "latency_ms": 2.5}
{"ts_ns": 1754586817010000000, "rank": 1, "step": 8, "batch_size": 4, "stage": "decode", "latency_ms": NaN}
{"ts_ns": 1754586817020000000, "rank": 1, "step": 9, "batch_size": 4, "stage": "decode", "latency_ms": 9, "odd": {"a": 1}}
{"step": 9, "rank": 1, "graph_mode": "piecewise", "compile_hit": false, "compile_ms": 6}
{"step": 77, "rank": 1, "graph_mode": "full", "compile_hit": true}
{"ts_ns": 1754586817020000000, "rank": 1, "step": 9, "stage": "sample", "latency_ms": 1}
{"cut": "#,
    );
    assert_eq!(
        slices(&trace),
        [
            step("decode=4", 0, 2_500_000),
            step("decode=4 graph=piecewise compile=miss", 13_500_000, 9_000_000),
            ("log compile".into(), 13_500_000, 6_000_000),
            ("sample".into(), 21_500_000, 1_000_000),
        ]
    );
    assert_eq!(trace.start_unix_ns, Some(1_754_586_816_997_500_000));
    assert_eq!(trace.processes[0].rank, Some(1));
    for (stat, count) in [("unknown_field", 1), ("runtime_line_without_step", 1), ("malformed_line", 1)] {
        assert_eq!(trace.stat(&format!("log.{stat}")), count, "{stat}");
    }
    let row = trace.ledger.iter().find(|row| row.category == "JSON lines").unwrap();
    assert_eq!((row.read, row.kept, row.time_ns), (6, 5, 2_500_000 + 9_000_000 + 6_000_000 + 1_000_000));
}

#[test]
fn a_table_with_absent_and_unreadable_cells() {
    let trace = read_text(
        "platform,batch_size,prompt_len,stage,latency_ms,graph_mode,compile_hit\r\n\
         \"a,b\",8,16,decode,1.5,full,1\r\n\
         a,,,decode,2.5,,\r\n\
         a,8,16,decode,fast,eager,0\r\n\
         a,8,16,decode,-3,eager,0,extra\r\n",
    );
    assert_eq!(
        slices(&trace),
        [step("decode=8 context=128 graph=full compile=hit", 0, 1_500_000), step("decode", 1_500_000, 2_500_000)]
    );
    // `fast`, `-3` and the cell beyond the columns; the steps of the first two are lost, and join no other.
    assert_eq!((trace.stat("log.unreadable_value"), trace.stat("log.step_without_latency")), (3, 2));
}

#[test]
fn lines_of_engines_become_events_counters_and_facts() {
    let trace = read_text(
        "INFO 08-07 17:14:03 [llm_engine.py:230] Initializing a V0 LLM engine (v0.9.2) with config: model='/m', speculative_config=None, dtype=torch.float16, tensor_parallel_size=2, enforce_eager=False\n\
         Capturing CUDA graph shapes:  50%|x| 1/2\rCapturing CUDA graph shapes: 100%|x| 2/2\n\
         INFO 08-07 17:15:08 [model_runner.py:1671] Graph capturing finished in 35 secs, took 0.43 GiB\n\
         (EngineCore pid=8) INFO 08-07 17:15:10 [backends.py:387] Compiling a graph for compile range (1, 16384) takes 20.50 s\n\
         INFO 08-07 17:15:14 [metrics.py:417] Avg prompt throughput: 1023.2 tokens/s, Avg generation throughput: 866.5 tokens/s, Running: 8 reqs, Swapped: 0 reqs, Pending: 3 reqs, GPU KV cache usage: 0.2%, CPU KV cache usage: 0.0%.\n\
         [2025-01-08 20:17:32 TP0] Decode batch. #running-req: 2, #token: 27373, token usage: 0.09, cuda graph: False, gen throughput (token/s): 33.38, #queue-req: 0\n\
         INFO 06-24 19:42:23 [utils.py:297] Calculated maximum supported batch sizes for ACL graph: 66\n",
    );
    let found: Vec<(String, i64)> = slices(&trace).into_iter().map(|(name, _, dur)| (name, dur)).collect();
    let second = 1_000_000_000;
    assert_eq!(found, [("log graph capture".into(), 35 * second), ("log compile".into(), 20 * second + second / 2)]);
    let sampled = |name: &str| sampled(&trace, name);
    assert_eq!(sampled("num_requests_running"), [8.0, 2.0]);
    assert_eq!(sampled("num_requests_waiting"), [3.0, 0.0]);
    assert_eq!(sampled("kv_cache_usage"), [0.002, 0.09]);
    assert_eq!(sampled("graph_replayed"), [0.0]);
    for (key, value) in [
        ("model.name", "/m"),
        ("software.engine", "vllm v0.9.2"),
        ("parallel.tp", "2"),
        ("precision.weights", "float16"),
        ("caps.graph_sizes_supported", "66"),
    ] {
        assert_eq!(trace.manifest.value(key), Some(value), "{key}");
    }
    let other = trace.ledger.iter().find(|row| row.category == "other lines").unwrap();
    assert_eq!((other.read, other.kept), (2, 0));
}

#[test]
fn a_pattern_of_the_user_reads_lines_that_nobody_knows() {
    let pattern = r"^iter (?P<step>\d+) bs (?P<batch_size>\d+) (?P<stage>\w+) in (?P<latency_us>[\d.]+)us graph=(?P<graph_mode>\w+)$";
    let patterns = Patterns::with(&[("mine".to_owned(), pattern.to_owned())]).unwrap();
    let options = ReadOptions { patterns: &patterns, ..ReadOptions::default() };
    let trace = read_with(MINE, &options).unwrap();
    assert_eq!(slices(&trace), [step("decode=2 graph=eager", 0, 1_500_250)]);
    assert_eq!(trace.ledger.iter().map(|row| row.category.as_str()).collect::<Vec<_>>(), ["mine lines", "other lines"]);
}

/// A log of an engine that only a pattern of the user knows.
const MINE: &str = "start\niter 1 bs 2 decode in 1500.25us graph=none\nend\n";

#[test]
fn patterns_of_one_session_are_unknown_to_another() {
    let of = |engine: &str| {
        (engine.to_owned(), r"^iter \d+ bs (?P<batch_size>\d+) \w+ in (?P<latency_us>[\d.]+)us".to_owned())
    };
    let (ours, theirs) = (Patterns::with(&[of("ours")]).unwrap(), Patterns::with(&[of("theirs")]).unwrap());
    let engine = |patterns: &Patterns| {
        let trace = read_with(MINE, &ReadOptions { patterns, ..ReadOptions::default() })?;
        let known = trace.ledger.iter().find(|row| row.category != "other lines");
        Ok::<_, ReadError>(known.map(|row| row.category.clone()).unwrap_or_default())
    };
    std::thread::scope(|scope| {
        let session = scope.spawn(|| engine(&theirs).unwrap());
        assert_eq!(engine(&ours).unwrap(), "ours lines");
        assert_eq!(session.join().unwrap(), "theirs lines");
    });
    let refused = engine(Patterns::built_in());
    assert!(matches!(refused, Err(ReadError::UnknownFormat { .. })), "{refused:?}");
}

#[test]
fn what_is_no_log_is_left_to_others() {
    for text in ["hello\n", "a,b\n1,2\n", "{\"x\": 1}\n", "x=1 y=2\n", "{\"latency_ms\":\n1}\n", "\0latency_ms=1\n"] {
        let head = Head::new(Path::new("x"), text.as_bytes());
        assert_eq!(matches(&head), Match::No, "{text}");
    }
}

#[test]
fn hostile_numbers_and_stamps_neither_panic_nor_become_times() {
    let trace = read_text(
        "latency_ms=1e300 batch_size=99999999999\n\
         latency_ms=9e15 stage=decode\n\
         ts_ns=9223372036854775807 latency_ms=1 stage=decode batch_size=4294967295 prompt_len=18446744073709551615\n\
         latency_ms= graph_mode==x\n=\n\
         ts_ns=-9223372036854775808 latency_ms=5\n",
    );
    assert!(trace.stat("log.unreadable_value") >= 2);
    assert!(slices(&trace).iter().all(|(_, _, dur)| *dur <= model::time::LONGEST));
}

/// Lines of a chat template, which begin with braces, were records that could not be read; the time of a request's tokens was not
/// kept.
#[test]
fn a_line_with_a_brace_in_a_text_log_is_no_lost_record() {
    let trace = read_text(
        "loading\n{{- 'hello' }}\nprompt eval time =     125.00 ms /    50 tokens (    2.50 ms per token,   400.00 tokens per second)\n\
         \x20      eval time =     500.00 ms /    10 tokens (   50.00 ms per token,    20.00 tokens per second)\n",
    );
    assert_eq!(trace.stat("log.malformed_line"), 0);
    assert_eq!((sampled(&trace, "generation_time"), sampled(&trace, "prompt_tokens")), (vec![500.0], vec![50.0]));
}

fn sampled(trace: &Trace, name: &str) -> Vec<f64> {
    let id = trace.strings.find(name).unwrap();
    trace.counters.iter().filter(|c| c.name == id).flat_map(|c| c.value.clone()).collect()
}

/// The accepted length of vLLM and the prompt tokens of SGLang stood in the log and nowhere else; several engines were one.
#[test]
fn accepted_lengths_prompt_tokens_and_engines_are_read() {
    let metrics = |engine: &str, rate: &str| {
        format!(
            "INFO 08-07 17:15:14 [loggers.py:9] Engine {engine}: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: {rate} tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 5.0%\n"
        )
    };
    let trace = read_text(&format!(
        "{}{}INFO 08-07 17:15:14 [metrics.py:9] SpecDecoding metrics: Mean acceptance length: 2.50, Accepted throughput: 3.00 tokens/s\n\
         [2026-03-01 10:00:00 TP0] Prefill batch, #new-seq: 1, #new-token: 700, #cached-token: 300, token usage: 0.00, #running-req: 0, #queue-req: 0, input throughput (token/s): 90.50,\n",
        metrics("000", "7.0"),
        metrics("001", "8.0")
    ));
    assert_eq!(sampled(&trace, "spec_accept_length"), [2.5]);
    assert_eq!((sampled(&trace, "prompt_tokens"), sampled(&trace, "cached_prompt_tokens")), (vec![700.0], vec![300.0]));
    assert!(sampled(&trace, "prompt_throughput").contains(&90.5));
    assert_eq!(trace.processes.iter().filter_map(|process| process.rank).collect::<Vec<_>>(), [0, 1]);
}

/// A start that failed before the one that served was "the engine failed", and a start of nine minutes took 28 s.
#[test]
fn the_start_ends_where_requests_may_come_and_forgets_an_earlier_failure() {
    let failed = "ERROR 11-12 06:27:08 [core.py:1] EngineCore failed to start.\n";
    let served = "INFO 11-12 06:27:09 [api_server.py:1] vLLM API server version 0.9.2\n\
                  INFO 11-12 06:36:20 [x.py:1] Graph capturing finished in 28 secs\nINFO:     Application startup complete.\n";
    let trace = |text: &str| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let mut sink = model::TraceBuilder::new("t", "log");
        crate::detect::read(file.path(), &mut sink, &crate::ReadOptions::default()).unwrap();
        sink.finish()
    };
    let both = trace(&format!("{failed}{served}"));
    assert_eq!(both.manifest.value("log.failure"), None);
    assert_eq!(both.manifest.value("log.ready_ns"), Some("551000000000"));
    let ended = trace(&format!("{served}{failed}"));
    assert_eq!(ended.manifest.value("log.failure"), Some("EngineCore failed to start"));
}
