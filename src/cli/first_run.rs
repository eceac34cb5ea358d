//! What `strato diagnose` looks at when it is given nothing: the reference engine on this machine's CPU, held against what
//! probes of the machine have just measured.
//!
//! The model is the smallest that people run, as long as it fits the free memory; probes and steps have a time each, so
//! that a slow or busy machine gives fewer steps and not a longer wait.

use std::time::{Duration, Instant};

use engine::{Config, preset};
use model::Trace;

use super::{
    decode::{self, DecodeArgs, Weights, milliseconds},
    exit::Usage,
    progress::Bar,
    say,
};
use diagnosis::i18n::{Lang, Text};

/// The model of people's first run, and the one for machines without room for it.
const MODEL: &str = "qwen2.5-0.5b";
const SMALL: &str = "tiny";
/// Tokens of the prompt and to generate.
const PROMPT: usize = 32;
const TOKENS: usize = 64;
/// Time for each probe, of which there are five; making their memory ready comes on top.
const PROBE: Duration = Duration::from_millis(1200);
/// Time from the first token on after which no further step begins.
const STEPS: Duration = Duration::from_secs(15);
/// Memory beside the weights: caches and buffers of the run, and what the probes read to get past every cache.
const BESIDE: u64 = 1 << 30;

/// What is run where so much memory is free; without a `model` the best that fits. `None` of free memory is unknown, and
/// then little is assumed.
fn choose(model: Option<&str>, free: Option<u64>) -> DecodeArgs {
    let fits = |weights: Weights| {
        let bytes = preset(MODEL).map_or(u64::MAX, |config| bytes(&config, weights));
        free.is_some_and(|free| free >= bytes.saturating_add(BESIDE))
    };
    let (name, dtype) = match model {
        Some(model) => (model, Weights::Bf16),
        None if fits(Weights::Bf16) => (MODEL, Weights::Bf16),
        None if fits(Weights::Q8) => (MODEL, Weights::Q8),
        None => (SMALL, Weights::Bf16),
    };
    DecodeArgs::within(STEPS, name, dtype, PROMPT, TOKENS)
}

/// Bytes of the weights of a model.
fn bytes(config: &Config, weights: Weights) -> u64 {
    let rows = config.step_parameters().div_ceil(config.hidden.max(1));
    (weights.dtype().row_bytes(config.hidden) as u64).saturating_mul(rows as u64)
}

/// Probes this machine, runs the engine on it, and gives the capture with the ceilings. What is being done is told on stderr
/// unless `quiet`.
///
/// # Errors
/// When the model is none that the engine knows, or cannot be run.
pub fn capture(model: Option<&str>, quiet: bool, lang: Lang) -> anyhow::Result<Trace> {
    let what = choose(model, super::memory::available());
    let began = Instant::now();
    let small = model.is_none() && what.model == SMALL;
    if !quiet {
        say(&introduction(&what, lang));
        if small {
            let text = Text::new(
                "strato: memory is short: this is a toy model, and its figures say little of a real one",
                "strato：内存不足：使用玩具模型，其数字不能代表真实模型",
            );
            say(text.get(lang));
        }
    }
    let bar = if quiet { Bar::hidden() } else { Bar::new(lang) };
    let probing = Text::new("probing", "探测").get(lang);
    bar.doing(probing);
    let probes = decode::probed(&what, &[], PROBE, |probe, _| bar.doing(&format!("{probing}: {}", probe.name)))?;
    bar.doing(Text::new("making weights", "生成权重").get(lang));
    let tokens = TOKENS as u64;
    let done = decode::capture(&what, |step| {
        let took = milliseconds(step.span.end - step.span.start);
        bar.doing(&format!("{} {}: {took}", Text::new("step", "步").get(lang), step.number));
        bar.at(u64::from(step.number), tokens);
    })?;
    drop(bar);
    if done.steps.len() < 2 {
        return Err(Usage(format!(
            "the machine is too slow or too busy for '{}': no token was decoded in {} s; choose a smaller one with --model",
            what.model,
            STEPS.as_secs()
        ))
        .into());
    }
    if !quiet {
        let text = Text::new("strato: measured in", "strato：测量用时").get(lang);
        say(&format!("{text} {:.0} s", began.elapsed().as_secs_f64()));
    }
    let mut trace = done.trace;
    trace.probes = probes;
    Ok(trace)
}

fn introduction(what: &DecodeArgs, lang: Lang) -> String {
    let (model, dtype) = (&what.model, what.dtype.dtype().name());
    match lang {
        Lang::En => format!(
            "strato: no PATH was given: probing this machine and decoding {model} ({dtype}) on its CPU, which takes up to a minute (strato diagnose PATH reads your traces, --samples shows the bundled ones)"
        ),
        Lang::Zh => format!(
            "strato：未指定 PATH：正在探测本机并在其 CPU 上解码 {model}（{dtype}），最多约一分钟（strato diagnose PATH 读取您的采集，--samples 显示自带样例）"
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn the_model_is_what_fits_the_free_memory() {
        let chosen = |free| {
            let what = choose(None, free);
            (what.model.clone(), what.dtype.dtype().name())
        };
        let of = |model: &str, dtype| (model.to_owned(), dtype);
        // Weights of 0.99 GB in bf16, and 0.52 GB in q8.
        assert_eq!(chosen(Some(8 << 30)), of(MODEL, "bf16"));
        assert_eq!(chosen(Some(17 << 27)), of(MODEL, "bf16"));
        assert_eq!(chosen(Some(14 << 27)), of(MODEL, "q8"));
        assert_eq!(chosen(Some(1 << 30)), of(SMALL, "bf16"));
        assert_eq!(chosen(None), of(SMALL, "bf16"));
        assert_eq!(choose(Some("llama-3.2-1b"), None).model, "llama-3.2-1b");
    }
}
