//! What a server's log samples although it times no step: throughput, requests, cache, preemptions, and when that changed.

use std::collections::BTreeMap;

use model::{Ns, ProcessId, Trace};

mod requests;
mod run;
mod served;
#[cfg(test)]
mod tests;

use served::{Kind, Sample, Served, median};

use crate::i18n::{Message, Text, Value};

/// What it says of a log without such samples.
const SET_UP: Text = Text::new(
    "The log times no step: it says how the engine was set up and started, and nothing of where a step's time goes. Log the latency of each step, or record a trace.",
    "日志中没有步时：只说明引擎的配置与启动过程，不能说明一步的时间花在哪里。请记录每步延迟，或采集一次 trace。",
);
/// The same of a log that tells how the engine started or ended.
const NO_STEP: Text = Text::new(
    "The log times no step: log the latency of each step, or record a trace, to see where a step's time goes.",
    "日志中没有步时：要知道一步的时间花在哪里，请记录每步延迟，或采集 trace。",
);
/// What it says while nothing but decode steps ran.
const DECODES: Text = Text::new(
    "While it {alone} decodes, {who} generates {rate} tokens/s ({spread}), with {running}: about {token} per token of a request{accepted}.{all}",
    "{alone}做 decode 时，{who}生成 {rate} tokens/s（{spread}），{running}：每个请求每 token 约 {token}{accepted}。{all}",
);
const ONLY: Text = Text::new("only", "只");
const MOSTLY: Text = Text::new("mostly", "主要");
/// What it says of a further load.
const LOAD: Text = Text::new(
    " With {running}: {rate} tokens/s, {token} per token of a request.",
    "{running}：{rate} tokens/s，每个请求每 token {token}。",
);
/// What it says where every interval reads prompts as well.
const MIXED: Text = Text::new(
    "While prompts are read as well, {who} generates {rate} tokens/s ({spread}), with {running}: a request gets a token every {token} on average{accepted}.{all}",
    "在同时读入 prompt 的情况下，{who}生成 {rate} tokens/s（{spread}），{running}：每个请求平均每 {token} 得到一个 token{accepted}。{all}",
);
/// What it says where no request ran through a whole interval.
const PARTIAL: Text = Text::new(
    "In all, {who} generates {rate} tokens/s ({spread}). No request ran through a whole sampling interval, so no time per token follows.",
    "总体上，{who}生成 {rate} tokens/s（{spread}）。没有请求贯穿一个完整的采样间隔，无法得出每 token 用时。",
);
/// What it says where prompts are nearly all that was read and written.
const PREFILLS: Text = Text::new(
    "About {prompt} prompt tokens were read and {generated} generated: the engine prefills{speed}.{alone}",
    "约读入 {prompt} 个 prompt token，生成 {generated} 个：引擎在做 prefill{speed}。{alone}",
);
const NOT_ALONE: Text = Text::new(
    " No sample shows decoding alone, so no time per token follows.",
    "没有采样只含 decode，无法得出每 token 用时。",
);
const ENGINE: Text = Text::new("the engine", "引擎");
const RANK: Text = Text::new("each of {n} ranks", "{n} 个 rank 各自");
const SPREAD: Text = Text::new("median of {n} samples; {low} to {high}", "{n} 个采样的中位数；{low} 至 {high}");
const SAMPLE: Text = Text::new("one sample", "1 个采样");
const SPEED: Text = Text::new(
    ", at {speed} prompt tokens/s (median by token)",
    "，速度 {speed} prompt tokens/s（按 token 计的中位数）",
);
const ONE: Text = Text::new("one request running", "1 个请求在运行");
const MANY: Text = Text::new("{running} requests running", "{running} 个请求在运行");
const ACCEPTED: Text = Text::new(
    ", {step} per step, in which speculative decoding gives {accepted} tokens",
    "，每步 {step}，投机解码每步给出 {accepted} 个 token",
);
/// The same of intervals that read prompts too, of which no step has a time.
const DRAFTED: Text =
    Text::new("; speculative decoding gives {accepted} tokens per step", "；投机解码每步给出 {accepted} 个 token");
const ALL: Text = Text::new(
    " Over all {n} samples with generated tokens the median is {rate} tokens/s.",
    "在全部 {n} 个有生成的采样中，中位数为 {rate} tokens/s。",
);
const RATIO: Text = Text::new(
    " About {prompt} prompt tokens were read and {generated} generated ({ratio} to 1).",
    "约读入 {prompt} 个 prompt token，生成 {generated} 个（{ratio}:1）。",
);
const CACHED: Text =
    Text::new(" The prefix cache holds {share} of the prompt tokens.", "前缀缓存命中 {share} 的 prompt token。");
const STALLED: Text = Text::new(
    " In {n} further samples requests ran and got no token.",
    "另有 {n} 个采样中有请求在运行却没有生成 token。",
);
const STALLED_ONCE: Text =
    Text::new(" In one further sample requests ran and got no token.", "另有 1 个采样中有请求在运行却没有生成 token。");
const RANKS: Text =
    Text::new(" Together the ranks generate about {rate} tokens/s.", "各 rank 合计约 {rate} tokens/s。");
const QUEUE: Text = Text::new(" Up to {waiting} requests wait.", "最多 {waiting} 个请求在排队。");
const QUEUE_OF_ONE: Text = Text::new(" Up to one request waits.", "最多 1 个请求在排队。");
const NO_QUEUE: Text = Text::new(" No request waits.", "没有请求排队。");
const CACHE: Text = Text::new(" The KV cache is filled to {cache} at most.", "KV cache 最高占用 {cache}。");
const PREEMPTED: Text = Text::new(" Requests were preempted {n} times.", "请求被抢占 {n} 次。");
const CHANGE: Text = Text::new(
    " After {after} the throughput changes from {from} to {to} tokens/s{reads}.",
    "{after} 后吞吐由 {from} 变为 {to} tokens/s{reads}。",
);
const READS: Text = Text::new(": {prompt} prompt tokens/s are read then", "：此时读入 {prompt} prompt tokens/s");
const END: Text = Text::new(
    " The log times no step: record a trace, or log the latency of each step, to see where the time goes.",
    "日志中没有步时：要知道时间花在哪里，请采集 trace，或记录每步延迟。",
);

/// Prompt tokens per generated one from which decoding is no part of the time that a sample could show: reading a token costs a
/// hundredth of generating one where several requests share a step; heuristic.
const PREFILL: f64 = 100.0;
/// Prompt tokens per generated one from which the ratio explains the rate; heuristic.
const MANY_PROMPTS: f64 = 5.0;
/// Share of the samples with a whole interval that only decode from which these are what the engine does; heuristic.
const ALONE: f64 = 0.1;
/// Part of a rate by which that over all samples must differ to be said as well; heuristic.
const DIFFERS: f64 = 0.1;
/// Samples on each side of a change at least; own value.
const LEAST: usize = 3;
/// Ratio of the throughput of both sides from which it is a change; own value.
const CHANGED: f64 = 1.3;
/// Part of the samples of each side that lie on that side of the middle between both; own value.
const APART: f64 = 0.75;

/// A number with three significant digits.
fn number(n: f64) -> Value {
    if n >= 1000.0 { about(n) } else { Value::Number(three(n)) }
}

/// A count with three significant digits: it is a sum of rates over time.
fn about(n: f64) -> Value {
    Value::Count(three(n).round() as u64)
}

fn three(n: f64) -> f64 {
    let scale = 10f64.powf(2.0 - n.abs().max(1e-9).log10().floor());
    (n * scale).round() / scale
}

fn none() -> Value {
    Value::Text(Text::new("", ""))
}

/// The sentence.
pub(super) fn headline(trace: &Trace) -> Message {
    rates(trace).unwrap_or_else(|| Message::plain(SET_UP))
}

/// What a log says of the run and of its rates; `None` where it says neither.
pub(super) fn rates(trace: &Trace) -> Option<Message> {
    const SPACED: Text = Text::new("{before} {next}", "{before}{next}");
    let rates = sampled(trace);
    let (first, start) = (run::first(trace), run::start(trace));
    let told = first.is_some() || start.is_some();
    let end = (told && rates.is_none()).then(|| Message::plain(NO_STEP));
    let said = first.into_iter().chain(rates).chain(start).chain(end);
    said.reduce(|before, next| Message::new(SPACED, [("before", before.within()), ("next", next.within())]))
}

/// The sentences on the samples of throughput; `None` where there are none in which the engine read or generated anything.
fn sampled(trace: &Trace) -> Option<Message> {
    if let Some(requests) = requests::of(trace) {
        return Some(requests);
    }
    let served = Served::of(trace);
    let busy = served.kind(|kind| !matches!(kind, Kind::Stalled | Kind::Idle));
    let whole = served.kind(|kind| matches!(kind, Kind::Decode | Kind::Mixed));
    let alone = served.kind(|kind| kind == Kind::Decode);
    let ratio = served.prompt / served.generated.max(1.0);
    let prefills = served.prompt > 0.0 && (busy.is_empty() || ratio >= PREFILL);
    let (text, shown) = match () {
        () if !alone.is_empty() && (prefills || alone.len() as f64 >= ALONE * whole.len() as f64) => (DECODES, &alone),
        () if !whole.is_empty() => (MIXED, &whole),
        () => (PARTIAL, &busy),
    };
    let loads = served::by_load(shown);
    let own = loads.first().map_or(&[][..], Vec::as_slice);
    // Beside one of several loads all samples say nothing more.
    let all = if loads.len() > 1 { own } else { &busy };
    let lead = (!prefills || text == DECODES).then(|| spoken(text, own, all)).flatten();
    let further =
        loads.iter().skip(1).filter(|_| text != PARTIAL && lead.is_some()).take(LOADS).filter_map(|own| load(own));
    let further: Vec<Message> = further.collect();
    let first = prefills.then(|| self::prefills(&served, lead.is_none()));
    let counted = !prefills && served.timed && ratio >= MANY_PROMPTS;
    let ratio = counted.then(|| {
        let args = [("prompt", about(served.prompt)), ("generated", about(served.generated)), ("ratio", number(ratio))];
        Message::new(RATIO, args)
    });
    let cached = served.cached.filter(|share| *share > 0.0);
    let cached = cached.map(|share| Message::new(CACHED, [("share", Value::Share(share))]));
    let stalled = served.kind(|kind| kind == Kind::Stalled).len() as u64;
    let stalled = match stalled {
        0 => None,
        1 => Some(Message::plain(STALLED_ONCE)),
        n => Some(Message::new(STALLED, [("n", Value::Count(n))])),
    };
    let together = lead.as_ref().and_then(|_| together(shown));
    let change = change(if served.fixed { &busy } else { &whole }, busy.first().map_or(0, |first| first.t))
        .filter(|_| served.timed && loads.len() == 1);
    let lead = match (first, lead) {
        (Some(first), Some(lead)) => {
            const BOTH: Text = Text::new("{first} {lead}", "{first}{lead}");
            Message::new(BOTH, [("first", first.within()), ("lead", lead.within())])
        }
        (first, lead) => first.or(lead)?,
    };
    let facts = [ratio, cached, together, stalled, queue(trace), cache(trace), preempted(trace), change];
    let said = further.into_iter().chain(facts.into_iter().flatten()).chain([Message::plain(END)]);
    const JOINED: Text = Text::new("{before}{next}", "{before}{next}");
    Some(said.fold(lead, |before, next| Message::new(JOINED, [("before", before.within()), ("next", next.within())])))
}

/// Loads that are told after the first.
const LOADS: usize = 3;

/// How many requests run.
fn requests_of(running: f64) -> Value {
    match running == 1.0 {
        true => Value::Text(ONE),
        false => Message::new(MANY, [("running", number(running))]).within(),
    }
}

/// Time of a sample per token of one of its requests, ns.
fn per_token(sample: &Sample) -> f64 {
    sample.running / sample.rate * 1e9
}

/// What a further load gives.
fn load(samples: &[Sample]) -> Option<Message> {
    let rate = median(samples.iter().map(|sample| sample.rate).collect())?;
    let running = median(samples.iter().map(|sample| sample.running).collect())?;
    let token = median(samples.iter().map(per_token).filter(|ns| ns.is_finite()).collect())?;
    let args = [("running", requests_of(running)), ("rate", number(rate)), ("token", Value::Ns(token as Ns))];
    Some(Message::new(LOAD, args))
}

/// The sentence on the median of some samples.
fn spoken(text: Text, samples: &[Sample], busy: &[Sample]) -> Option<Message> {
    let rates = || samples.iter().map(|sample| sample.rate);
    let rate = median(rates().collect())?;
    let (low, high) = rates().fold((rate, rate), |(low, high), rate| (low.min(rate), high.max(rate)));
    let running = median(samples.iter().map(|sample| sample.running).collect()).unwrap_or(0.0);
    let token = median(samples.iter().map(per_token).filter(|ns| ns.is_finite()).collect()).unwrap_or(0.0);
    // A step gives each request a token, or as many as are accepted of a draft.
    let steps = samples.iter().filter_map(|sample| Some((sample.accepted?, per_token(sample) * sample.accepted?)));
    let (lengths, steps): (Vec<f64>, Vec<f64>) = steps.filter(|(_, ns)| ns.is_finite()).unzip();
    let accepted = median(lengths).zip(median(steps)).filter(|(length, _)| *length > 1.0);
    let accepted = accepted.map(|(length, step)| {
        let length = ("accepted", number(length));
        let step = [("step", Value::Ns(step as Ns))].into_iter().filter(|_| text == DECODES);
        Message::new(if text == DECODES { ACCEPTED } else { DRAFTED }, step.chain([length])).within()
    });
    let all = median(busy.iter().map(|sample| sample.rate).collect()).filter(|all| (all - rate).abs() > DIFFERS * rate);
    let spread = match samples.len() {
        1 => Value::Text(SAMPLE),
        n => {
            let args = [("n", Value::Count(n as u64)), ("low", number(low)), ("high", number(high))];
            Message::new(SPREAD, args).within()
        }
    };
    let who = match ranks(samples).len() as u64 {
        n if n > 1 => Message::new(RANK, [("n", Value::Count(n))]).within(),
        _ => Value::Text(ENGINE),
    };
    let all =
        all.map(|rate| Message::new(ALL, [("n", Value::Count(busy.len() as u64)), ("rate", number(rate))]).within());
    let only = if samples.iter().all(|sample| sample.prompt <= 0.0) { ONLY } else { MOSTLY };
    let running = requests_of(running);
    let args = [
        ("alone", Value::Text(only)),
        ("rate", number(rate)),
        ("who", who),
        ("spread", spread),
        ("running", running),
        ("token", Value::Ns(token as Ns)),
        ("accepted", accepted.unwrap_or_else(none)),
        ("all", all.unwrap_or_else(none)),
    ];
    Some(Message::new(text, args))
}

/// The sentence on an engine that reads prompts; `only` if no sentence about decoding follows.
fn prefills(served: &Served, only: bool) -> Message {
    let speed =
        served::by_token(served.prefill.clone()).map(|speed| Message::new(SPEED, [("speed", number(speed))]).within());
    let args = [
        ("prompt", about(served.prompt)),
        ("generated", about(served.generated)),
        ("speed", speed.unwrap_or_else(none)),
        ("alone", if only { Value::Text(NOT_ALONE) } else { none() }),
    ];
    Message::new(PREFILLS, args)
}

/// The rates of each rank.
fn ranks(samples: &[Sample]) -> BTreeMap<ProcessId, Vec<f64>> {
    let mut ranks: BTreeMap<ProcessId, Vec<f64>> = BTreeMap::new();
    samples.iter().for_each(|sample| ranks.entry(sample.rank).or_default().push(sample.rate));
    ranks
}

/// What all ranks generate together, where several report: the sum of their medians.
fn together(samples: &[Sample]) -> Option<Message> {
    let ranks = ranks(samples);
    let several = ranks.len() > 1;
    let rate = ranks.into_values().filter_map(median).sum();
    several.then(|| Message::new(RANKS, [("rate", number(rate))]))
}

fn largest(trace: &Trace, name: &str) -> Option<f64> {
    served::points(trace, name).into_values().flatten().map(|(_, value)| value).reduce(f64::max)
}

fn queue(trace: &Trace) -> Option<Message> {
    largest(trace, "num_requests_waiting").map(|waiting| match waiting > 0.0 {
        true if waiting == 1.0 => Message::plain(QUEUE_OF_ONE),
        true => Message::new(QUEUE, [("waiting", Value::Number(waiting))]),
        false => Message::plain(NO_QUEUE),
    })
}

fn cache(trace: &Trace) -> Option<Message> {
    largest(trace, "kv_cache_usage").map(|share| Message::new(CACHE, [("cache", Value::Share(share))]))
}

fn preempted(trace: &Trace) -> Option<Message> {
    // One engine counts them from its start, the other says how many each time.
    let retracted: f64 = served::points(trace, "num_retracted_reqs").into_values().flatten().map(|(_, n)| n).sum();
    let preempted = largest(trace, "num_preemptions").unwrap_or(0.0) + retracted;
    (preempted > 0.0).then(|| Message::new(PREEMPTED, [("n", Value::Count(preempted as u64))]))
}

/// The place where the throughput changes most, if it does: how long after `first`, the medians of both sides, and the
/// prompts that are read behind it where they are why.
fn change(busy: &[Sample], first: Ns) -> Option<Message> {
    let total: f64 = busy.iter().map(|sample| sample.rate).sum();
    let (mut before, mut best) = (0.0, None::<(f64, usize)>);
    for (place, sample) in (1..).zip(busy) {
        before += sample.rate;
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
    let values = |samples: &[Sample], of: fn(&Sample) -> f64| median(samples.iter().map(of).collect());
    let (from, to) = (values(left, |sample| sample.rate)?, values(right, |sample| sample.rate)?);
    let middle = f64::midpoint(from, to);
    let side = |samples: &[Sample], above: bool| {
        let there = samples.iter().filter(|sample| (sample.rate > middle) == above).count();
        there as f64 >= APART * samples.len() as f64
    };
    let apart = side(left, from > to) && side(right, to > from);
    let after = right.first()?.t.saturating_sub(first);
    let (was, prompt) = (values(left, |sample| sample.prompt)?, values(right, |sample| sample.prompt)?);
    let reads = (to < from && prompt > was && prompt >= MANY_PROMPTS * to)
        .then(|| Message::new(READS, [("prompt", number(prompt))]).within());
    (apart && from.max(to) >= CHANGED * from.min(to)).then(|| {
        let args = [("after", Value::Ns(after)), ("from", number(from)), ("to", number(to))];
        Message::new(CHANGE, args.into_iter().chain([("reads", reads.unwrap_or_else(none))]))
    })
}
