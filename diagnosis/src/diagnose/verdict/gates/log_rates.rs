//! What a server's log samples although it times no step: throughput, requests, cache, preemptions, and when that changed.

use model::{Ns, Trace};

use crate::i18n::{Message, Text, Value};

/// What it says of a log without such samples.
const SET_UP: Text = Text::new(
    "The log times no step: it says how the engine was set up and started, and nothing of where a step's time goes. Log the latency of each step, or record a trace.",
    "日志中没有步时：只说明引擎的配置与启动过程，不能说明一步的时间花在哪里。请记录每步延迟，或采集一次 trace。",
);
/// What it says of the samples.
const SAMPLES: Text = Text::new(
    "The log times no step, but in {n} samples the engine generates {rate} tokens/s (median; {low} to {high}){step}{queue}{cache}{preempted}{change}. Where a step's time goes, it does not say: record a trace, or log the latency of each step.",
    "日志中没有步时，但 {n} 个采样显示引擎生成 {rate} tokens/s（中位数；{low} 至 {high}）{step}{queue}{cache}{preempted}{change}。一步的时间花在哪里无从得知：请采集 trace，或记录每步延迟。",
);
const STEP: Text =
    Text::new(": with {running} requests running, about {step} per step", "：{running} 个请求在运行，约每步 {step}");
const QUEUE: Text = Text::new("; up to {waiting} requests wait", "；最多 {waiting} 个请求在排队");
const NO_QUEUE: Text = Text::new("; no request waits", "；没有请求排队");
const CACHE: Text = Text::new("; the KV cache is filled to {cache}", "；KV cache 最高占用 {cache}");
const PREEMPTED: Text = Text::new("; {n} requests were preempted", "；有 {n} 个请求被抢占");
const CHANGE: Text = Text::new(
    "; {after} after the first sample the throughput changes from {from} to {to} tokens/s",
    "；首个采样后 {after}，吞吐由 {from} 变为 {to} tokens/s",
);

/// Samples on each side of a change at least; own value.
const LEAST: usize = 3;
/// Ratio of the throughput of both sides from which it is a change; own value.
const CHANGED: f64 = 1.3;
/// Part of the samples of each side that lie on that side of the middle between both; own value.
const APART: f64 = 0.75;

/// A sample: time and value.
type Sample = (Ns, f64);

/// The samples of the counters with this name, in order of their time.
fn samples(trace: &Trace, name: &str) -> Vec<Sample> {
    let tracks = trace.counters.iter().filter(|counter| trace.strings.get(counter.name) == name);
    let mut found: Vec<Sample> = tracks.flat_map(|c| c.t.iter().copied().zip(c.value.iter().copied())).collect();
    found.retain(|(_, value)| value.is_finite());
    found.sort_by_key(|(t, _)| *t);
    found
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn values(samples: &[Sample]) -> Vec<f64> {
    samples.iter().map(|(_, value)| *value).collect()
}

/// The sentence.
pub(super) fn headline(trace: &Trace) -> Message {
    rates(trace).unwrap_or_else(|| Message::plain(SET_UP))
}

/// The sentence on the samples of throughput; `None` where there are none in which the engine generated anything.
pub(super) fn rates(trace: &Trace) -> Option<Message> {
    let none = || Value::Text(Text::new("", ""));
    let largest = |name: &str| values(&samples(trace, name)).into_iter().reduce(f64::max);
    let busy: Vec<Sample> =
        samples(trace, "generation_throughput").into_iter().filter(|(_, rate)| *rate > 0.0).collect();
    let rate = median(values(&busy))?;
    let (low, high) = busy.iter().fold((rate, rate), |(low, high), (_, v)| (low.min(*v), high.max(*v)));
    let step = step(trace, &busy).map(|(running, ns)| {
        Message::new(STEP, [("running", Value::Number(running)), ("step", Value::Ns(ns))]).within()
    });
    let queue = largest("num_requests_waiting").map(|waiting| match waiting > 0.0 {
        true => Message::new(QUEUE, [("waiting", Value::Number(waiting))]).within(),
        false => Value::Text(NO_QUEUE),
    });
    let cache = largest("kv_cache_usage").map(|share| Message::new(CACHE, [("cache", Value::Share(share))]).within());
    // One engine counts them from its start, the other says how many each time.
    let retracted: f64 = values(&samples(trace, "num_retracted_reqs")).into_iter().sum();
    let preempted = largest("num_preemptions").unwrap_or(0.0) + retracted;
    let preempted =
        (preempted > 0.0).then(|| Message::new(PREEMPTED, [("n", Value::Count(preempted as u64))]).within());
    let change = change(&busy).map(|(after, from, to)| {
        let args = [("after", Value::Ns(after)), ("from", Value::Number(from)), ("to", Value::Number(to))];
        Message::new(CHANGE, args).within()
    });
    let args = [
        ("n", Value::Count(busy.len() as u64)),
        ("rate", Value::Number(rate)),
        ("low", Value::Number(low)),
        ("high", Value::Number(high)),
        ("step", step.unwrap_or_else(none)),
        ("queue", queue.unwrap_or_else(none)),
        ("cache", cache.unwrap_or_else(none)),
        ("preempted", preempted.unwrap_or_else(none)),
        ("change", change.unwrap_or_else(none)),
    ];
    Some(Message::new(SAMPLES, args))
}

/// Median of the requests that run, and of the time of a step, ns: each request gets a token per step, or as many as are accepted
/// of a draft.
fn step(trace: &Trace, busy: &[Sample]) -> Option<(f64, Ns)> {
    let running = samples(trace, "num_requests_running");
    let accepted = median(values(&samples(trace, "spec_accept_length"))).filter(|n| *n >= 1.0).unwrap_or(1.0);
    let at = |t: Ns| {
        let place = running.partition_point(|(known, _)| *known <= t).checked_sub(1)?;
        running.get(place).map(|(_, n)| *n).filter(|n| *n > 0.0)
    };
    let pairs: Vec<(f64, f64)> = busy.iter().filter_map(|(t, rate)| Some((at(*t)?, *rate))).collect();
    let ns = median(pairs.iter().map(|(n, rate)| accepted * n / rate * 1e9).collect())?;
    let running = median(pairs.iter().map(|(n, _)| *n).collect())?;
    (ns.is_finite() && ns < 9e18).then_some((running, ns as Ns))
}

/// The place where the throughput changes most, if it does: ns after the first sample, and the medians of both sides.
fn change(busy: &[Sample]) -> Option<(Ns, f64, f64)> {
    let total: f64 = busy.iter().map(|(_, value)| value).sum();
    let (mut before, mut best) = (0.0, None::<(f64, usize)>);
    for (place, (_, value)) in (1..).zip(busy) {
        before += value;
        let (left, right) = (place as f64, (busy.len() - place) as f64);
        if place < LEAST || busy.len() - place < LEAST {
            continue;
        }
        // Variance between both sides.
        let apart = left * right * (before / left - (total - before) / right).powi(2);
        if best.is_none_or(|(most, _)| apart > most) {
            best = Some((apart, place));
        }
    }
    let (_, place) = best?;
    let (left, right) = busy.split_at_checked(place)?;
    let (from, to) = (median(values(left))?, median(values(right))?);
    let middle = f64::midpoint(from, to);
    let side = |samples: &[Sample], above: bool| {
        let there = samples.iter().filter(|(_, value)| (*value > middle) == above).count();
        there as f64 >= APART * samples.len() as f64
    };
    let apart = side(left, from > to) && side(right, to > from);
    let after = right.first()?.0.saturating_sub(left.first()?.0);
    (apart && from.max(to) >= CHANGED * from.min(to)).then_some((after, from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{analysis::script::Script, i18n::Lang};

    fn said(rates: &[f64], running: f64, further: &[(&str, f64)]) -> String {
        let mut s = Script::default();
        for (i, rate) in (0..).zip(rates) {
            s.counter("generation_throughput", i * 10_000_000_000, *rate);
            s.counter("num_requests_running", i * 10_000_000_000, running);
        }
        for (name, value) in further {
            s.counter(name, 0, *value);
        }
        headline(&s.trace()).render(Lang::En, |value| format!("{value:?}"))
    }

    /// Every log got the same sentence, although throughput, queue and cache stood in the capture.
    #[test]
    fn throughput_requests_and_queue_are_told() {
        let text = said(&[2.0, 5.0, 0.0, 4.0], 4.0, &[("num_requests_waiting", 7.0), ("kv_cache_usage", 0.8)]);
        assert!(text.contains("in Count(3) samples") && text.contains("Number(4.0) tokens/s"), "{text}");
        // A step gives each of the four requests a token: 4 / 4 per second.
        assert!(
            text.contains("Ns(1000000000)") && text.contains("Number(7.0)") && text.contains("Share(0.8)"),
            "{text}"
        );
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
}
