//! What a run says on stdout: lines for people, or one JSON object.

use std::{
    io::{self, Write},
    path::Path,
};

use engine::Target;
use serde_json::json;

use crate::cli::{
    decode::{DecodeArgs, Done, milliseconds},
    terminal_text,
};

fn durations(done: &Done) -> Vec<i64> {
    let mut decode: Vec<i64> = done.steps.iter().skip(1).map(|step| step.span.end - step.span.start).collect();
    decode.sort_unstable();
    decode
}

/// The value below which so many percent lie, the lower of two.
fn percentile(sorted: &[i64], percent: usize) -> Option<i64> {
    sorted.get(sorted.len().checked_sub(1)? * percent / 100).copied()
}

/// The tokens that each sequence got.
pub(super) fn tokens(what: &DecodeArgs, done: &Done) -> Vec<Vec<u32>> {
    let of = |sequence: usize| done.steps.iter().filter_map(|step| step.tokens.get(sequence).copied()).collect();
    (0..what.batch).map(of).collect()
}

pub(super) fn summary(what: &DecodeArgs, done: &Done) -> serde_json::Value {
    let decode = durations(done);
    let total: i64 = decode.iter().sum();
    let per_second = (total > 0).then(|| (decode.len() * what.batch) as f64 * 1e9 / total as f64);
    let is_cpu = done.options.target == Target::Cpu;
    let mut summary = json!({
        "model": what.model,
        "backend": done.options.target.name(),
        "device": done.trace.manifest.value("hardware.device"),
        "dtype": done.options.dtype.name(),
        "isa": is_cpu.then(|| done.options.isa.name()),
        "tp": what.tp,
        "observer": done.trace.manifest.value("measurement.observer"),
        "device_times": done.trace.manifest.value("evidence.device"),
        "inflation": done.trace.manifest.value("measurement.inflation").and_then(|ratio| ratio.parse::<f64>().ok()),
        "threads": is_cpu.then_some(done.options.threads),
        "tokens": tokens(what, done),
        "prefill_ns": done.steps.first().map(|step| step.span.end - step.span.start),
        "step_ns": { "p50": percentile(&decode, 50), "p90": percentile(&decode, 90), "p99": percentile(&decode, 99) },
        "tokens_per_second": per_second,
        "weight_bytes_per_step": done.bytes,
        "not_finite": done.not_finite,
    });
    if let Some(fields) = summary.as_object_mut().filter(|_| done.trace.simulated) {
        fields.insert("simulated".to_owned(), true.into());
    }
    summary
}

pub(super) fn lines(out: &mut dyn Write, what: &DecodeArgs, done: &Done, output: Option<&Path>) -> io::Result<()> {
    let decode = durations(done);
    let options = &done.options;
    let ranks = if what.tp > 1 { format!("{} ranks of ", what.tp) } else { String::new() };
    let device = match options.target {
        Target::Cpu => format!("{} kernels, {ranks}{} threads", options.isa.name(), options.threads),
        Target::OpenCl(_) | Target::Cuda(_) | Target::Ascend(_) => {
            let device = done.trace.manifest.value("hardware.device").unwrap_or("an unnamed device");
            format!("{ranks}{device}")
        }
    };
    writeln!(out, "{}, {} weights, {}", what.model, options.dtype.name(), terminal_text::plain(&device))?;
    if let Some(prefill) = done.steps.first().map(|step| step.span.end - step.span.start) {
        let tokens = what.batch * options.prompt;
        let rate = tokens as f64 * 1e9 / prefill.max(1) as f64;
        writeln!(out, "prefill  {tokens} tokens in {} ({rate:.0} tokens/s)", milliseconds(prefill))?;
    }
    let ends = (percentile(&decode, 50), percentile(&decode, 90), percentile(&decode, 99));
    if let (Some(p50), Some(p90), Some(p99)) = ends {
        let rate = what.batch as f64 * 1e9 / p50.max(1) as f64;
        let bandwidth = done.bytes.map(|bytes| bytes as f64 / p50.max(1) as f64);
        let bandwidth = bandwidth.map_or(String::new(), |rate| format!(", weights at {rate:.1} GB/s"));
        writeln!(
            out,
            "decode   {} steps, p50 {}, p90 {}, p99 {} ({rate:.1} tokens/s{bandwidth})",
            decode.len(),
            milliseconds(p50),
            milliseconds(p90),
            milliseconds(p99)
        )?;
    }
    for (name, key) in [("device", "evidence.device"), ("observer", "cupti.cost")] {
        if let Some(said) = done.trace.manifest.value(key) {
            writeln!(out, "{name:<9}{}", terminal_text::plain(said))?;
        }
    }
    match output {
        Some(path) => writeln!(out, "wrote {}", terminal_text::plain(&path.display().to_string())),
        None => Ok(()),
    }
}
