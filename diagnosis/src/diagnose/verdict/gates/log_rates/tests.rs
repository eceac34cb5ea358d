use model::TraceSink;

use super::headline;
use crate::{
    analysis::script::Script,
    i18n::{Lang, Value},
};

/// Ten seconds, ns.
const INTERVAL: i64 = 10_000_000_000;

fn text(s: Script) -> String {
    headline(&s.trace()).render(Lang::En, shown)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Message(message) => message.render(Lang::En, shown),
        Value::Text(text) => text.get(Lang::En).to_owned(),
        value => format!("{value:?}"),
    }
}

/// Samples of prompt and generated tokens per second and of the requests that run at their end.
fn samples(rows: &[(f64, f64, f64)]) -> Script {
    let mut s = Script::default();
    for (i, (prompt, rate, running)) in (0..).zip(rows) {
        s.counter("prompt_throughput", i * INTERVAL, *prompt);
        s.counter("generation_throughput", i * INTERVAL, *rate);
        s.counter("num_requests_running", i * INTERVAL, *running);
    }
    s
}

fn said(rates: &[f64], running: f64, further: &[(&str, f64)]) -> String {
    let rows: Vec<_> = rates.iter().map(|rate| (0.0, *rate, running)).collect();
    let mut s = samples(&rows);
    for (name, value) in further {
        s.counter(name, 0, *value);
    }
    text(s)
}

/// Every log got the same sentence, although throughput, queue and cache stood in the capture.
#[test]
fn throughput_requests_and_queue_are_told() {
    let text = said(&[2.0, 5.0, 4.0, 4.0], 4.0, &[("num_requests_waiting", 7.0), ("kv_cache_usage", 0.8)]);
    assert!(text.contains("Number(4.0) tokens/s (median of Count(3) samples"), "{text}");
    // A step gives each of the four requests a token: 4 / 4 per second.
    assert!(text.contains("Ns(1000000000)") && text.contains("Number(7.0)") && text.contains("Share(0.8)"), "{text}");
    assert!(said(&[], 1.0, &[]).contains("set up and started"));
    assert!(said(&[0.0, 0.0], 1.0, &[]).contains("set up and started"), "an idle engine has no rate");
}

#[test]
fn a_lasting_change_of_throughput_is_told_and_noise_is_not() {
    let drop = said(&[100.0, 101.0, 99.0, 100.0, 40.0, 41.0, 39.0, 40.0], 8.0, &[]);
    assert!(drop.contains("Ns(40000000000)") && drop.contains("Number(40.0)"), "{drop}");
    assert!(!said(&[100.0, 40.0, 99.0, 41.0, 100.0, 40.0, 101.0, 42.0], 8.0, &[]).contains("changes from"));
    assert!(said(&[9.0], 8.0, &[("num_preemptions", 3.0)]).contains("Count(3)"));
}

/// 1.4 million prompt tokens and 120 generated ones were "1.25 s per step".
#[test]
fn an_engine_that_reads_prompts_prefills_and_has_no_time_per_step() {
    let text = text(samples(&[(9000.0, 0.8, 1.0), (9500.0, 0.8, 1.0), (9100.0, 0.0, 1.0), (9000.0, 0.9, 1.0)]));
    assert!(
        text.starts_with("About Count(366000) prompt tokens were read and Count(25) generated: the engine prefills"),
        "{text}"
    );
    assert!(!text.contains("per token of") && !text.contains("a token every"), "{text}");
    assert!(text.contains("In one further sample requests ran and got no token."), "{text}");
}

/// The median over all samples, those in which prompts are read among them, was the rate of decoding.
#[test]
fn the_rate_of_decoding_is_that_of_samples_that_only_decode() {
    let text = text(samples(&[
        (9000.0, 2.0, 1.0),
        (0.0, 20.0, 1.0),
        (0.0, 20.0, 1.0),
        (0.0, 5.0, 1.0),
        (8000.0, 1.0, 1.0),
        (8000.0, 1.0, 1.0),
        (8000.0, 1.0, 1.0),
        (8000.0, 1.0, 1.0),
    ]));
    let expected = "generates Number(20.0) tokens/s (median of Count(2) samples; Number(20.0) to Number(20.0)), with one request running: about Ns(50000000) per token";
    assert!(text.contains(expected), "{text}");
    assert!(
        text.contains("Over all Count(8) samples with generated tokens the median is Number(1.5) tokens/s."),
        "{text}"
    );
    assert!(
        text.starts_with("About Count(410000) prompt tokens were read and Count(510) generated: the engine prefills"),
        "{text}"
    );
    assert!(text.contains("changes from") == text.contains("prompt tokens/s are read then"), "{text}");
}

/// Requests over tokens per second was the time of a step although each step gave several tokens.
#[test]
fn a_step_of_speculative_decoding_gives_as_many_tokens_as_are_accepted() {
    let mut s = samples(&[(0.0, 20.0, 2.0), (0.0, 20.0, 2.0), (0.0, 20.0, 2.0)]);
    for i in 0..3 {
        s.counter("spec_accept_length", i * INTERVAL, 2.5);
    }
    let text = text(s);
    assert!(text.contains("about Ns(100000000) per token of a request, Ns(250000000) per step"), "{text}");
    assert!(text.contains("gives Number(2.5) tokens"), "{text}");
}

/// A sample in which the request had just started was the only one with a running request, and so the typical one.
#[test]
fn a_request_that_did_not_run_through_an_interval_gives_no_time_per_token() {
    let text = text(samples(&[(2.0, 12.0, 0.0), (2.0, 12.0, 0.0), (2.0, 3.0, 1.0), (0.0, 9.0, 0.0)]));
    assert!(text.contains("Number(10.5) tokens/s (median of Count(4) samples"), "{text}");
    assert!(text.contains("No request ran through a whole sampling interval"), "{text}");
}

/// Batches of prompts between two lines of decode steps, and a server that only reads prompts.
#[test]
fn batches_of_prompts_count_with_the_interval_in_which_they_were_read() {
    let mut s = Script::default();
    for i in 0..4 {
        s.counter("generation_throughput", i * INTERVAL, 10.0);
        s.counter("num_requests_running", i * INTERVAL, 1.0);
    }
    s.counter("prompt_tokens", INTERVAL + 1, 9_000.0);
    let text = text(s);
    assert!(text.contains("Number(10.0) tokens/s (median of Count(2) samples"), "{text}");
    let mut s = Script::default();
    s.counter("prompt_tokens", 0, 8_000.0).counter("prompt_throughput", 0, 4_000.0);
    assert!(self::text(s).contains(
        "About Count(8000) prompt tokens were read and Count(0) generated: the engine prefills, at Count(4000)"
    ));
}

/// "The log times no step" stood over times per token, and samples without a time were nanoseconds apart.
#[test]
fn requests_that_say_their_own_times_give_the_time_of_a_token() {
    let mut s = Script::default();
    for i in 0..2 {
        s.counter("generation_throughput", i, 20.0);
        s.counter("generation_time", i, 500.0).counter("generated_tokens", i, 10.0);
        s.counter("prompt_time", i, 125.0).counter("prompt_tokens", i, 50.0);
    }
    let text = text(s);
    assert!(text.starts_with("A generated token takes Ns(50000000) (median of Count(2) requests"), "{text}");
    assert!(
        text.contains("Reading Count(100) prompt tokens takes Share(0.2) of the time, at Number(400.0) tokens/s."),
        "{text}"
    );
}

/// A rank's rate was that of the engine.
#[test]
fn the_rate_of_a_rank_is_not_that_of_the_engine() {
    let mut s = Script::default();
    for rank in 0..2 {
        s.rank(rank);
        for i in 0..4 {
            s.counter("generation_throughput", i * INTERVAL, 30.0).counter("num_requests_running", i * INTERVAL, 3.0);
        }
    }
    let text = text(s);
    assert!(
        text.starts_with("While it only decodes, each of Count(2) ranks generates Number(30.0) tokens/s"),
        "{text}"
    );
    assert!(text.contains("Together the ranks generate about Number(60.0) tokens/s."), "{text}");
}

/// Runs of 1, 8 and 32 requests were pooled to one rate "with 8 requests", and what read a few prompts "only decoded".
#[test]
fn several_loads_are_told_one_by_one() {
    let rows = |running: f64, rate: f64, n: usize| vec![(0.0, rate, running); n];
    let all = [rows(8.0, 640.0, 8), rows(1.0, 100.0, 6), rows(32.0, 1_600.0, 6)].concat();
    let text = text(samples(&all));
    assert!(text.starts_with("While it only decodes, the engine generates Count(1600) tokens/s"), "{text}");
    let further = "With one request running: Number(100.0) tokens/s, Ns(10000000) per token of a request.";
    assert!(text.contains(further) && text.contains("Number(8.0) requests running: Number(640.0) tokens/s"), "{text}");
    assert!(!text.contains("changes from"), "the next load is no change of the engine: {text}");
    let prompts: Vec<(f64, f64, f64)> = all.iter().map(|(_, rate, running)| (rate / 2.0, *rate, *running)).collect();
    assert!(self::text(samples(&prompts)).starts_with("While it mostly decodes"));
    let wandering: Vec<(f64, f64, f64)> = (0..30).map(|i| (0.0, 100.0 + f64::from(i), f64::from(i % 15 + 5))).collect();
    assert!(!self::text(samples(&wandering)).contains("tokens/s, Ns("));
}

/// Four samples gave "7 tokens/s with 4 requests: 741 ms per token", the upper middle of one beside the lower of the other.
#[test]
fn the_middle_of_an_even_number_of_samples_is_that_of_both() {
    assert_eq!(super::served::median(vec![4.2, 9.6, 7.0, 5.4]), Some(6.2));
    assert_eq!(super::served::median(vec![3.0, 1.0, 2.0]), Some(2.0));
}

/// A log of an engine that failed, or that took 11 minutes to start, said "how the engine was set up and started".
#[test]
fn how_the_engine_started_and_that_it_failed_come_first() {
    let mut s = samples(&[]);
    s.counter("startup_load", 0, 106.0);
    s.counter("startup_init", 5, 682.0);
    s.counter("startup_compile", 5, 447.0);
    s.counter("startup_init", 6, 2.0);
    let text = self::text(s);
    let start = "The engine's start takes Ns(106000000000) for the weights, Ns(682000000000) to set the engine up (of that Ns(447000000000)";
    assert!(text.starts_with(start) && text.ends_with("to see where a step's time goes."), "{text}");
    let mut s = samples(&[(0.0, 12.0, 1.0), (0.0, 12.0, 1.0), (0.0, 12.0, 1.0)]);
    s.builder.manifest("log.failure", "EngineCore failed to start", model::Provenance::Observed);
    s.builder.manifest(
        "log.error",
        "ValueError: No available memory for the cache blocks.",
        model::Provenance::Observed,
    );
    let text = self::text(s);
    let failed = "The engine failed: Phrase(\"EngineCore failed to start\"); the first error is Phrase(\"ValueError: No available memory for the cache blocks\"). While";
    assert!(text.starts_with(failed), "{text}");
    let mut s = samples(&[]);
    s.builder.manifest("log.layers_on_device", "0/37", model::Provenance::Observed);
    assert!(self::text(s).starts_with("Of the model's layers Raw(\"0/37\") are on the device"));
}

/// Two health checks of 6 and 1 token outvoted a prompt of 2 369 tokens.
#[test]
fn the_speed_of_reading_prompts_is_that_of_their_tokens() {
    let batches = vec![(0.1, 6.0), (0.31, 1.0), (1_367.66, 2_369.0)];
    assert_eq!(super::served::by_token(batches), Some(1_367.66));
    assert_eq!(super::served::by_token(Vec::new()), None);
}
