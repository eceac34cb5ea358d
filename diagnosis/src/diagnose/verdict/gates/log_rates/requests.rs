//! What an engine says of each request when it is over: the time of its prompt and of its generated tokens.

use model::Trace;

use super::{
    about, none, number,
    served::{median, points},
};
use crate::i18n::{Message, Text, Value};

/// What it says.
const REQUESTS: Text = Text::new(
    "A generated token takes {token} (median of {n} requests; {low} to {high}): {rate} tokens/s per request.{prompt} The log gives no step: record a trace to see where the time of a token goes.",
    "生成一个 token 用 {token}（{n} 个请求的中位数；{low} 至 {high}）：每个请求 {rate} tokens/s。{prompt}日志没有给出步：要知道一个 token 的时间花在哪里，请采集 trace。",
);
/// The same of a log with one request.
const REQUEST: Text = Text::new(
    "A generated token takes {token} in the one request of the log: {rate} tokens/s.{prompt} The log gives no step: record a trace to see where the time of a token goes.",
    "日志中唯一的请求生成一个 token 用 {token}：{rate} tokens/s。{prompt}日志没有给出步：要知道一个 token 的时间花在哪里，请采集 trace。",
);
const PROMPTS: Text = Text::new(
    " Reading {tokens} prompt tokens takes {share} of the time, at {rate} tokens/s.",
    "读入 {tokens} 个 prompt token 占用 {share} 的时间，速度 {rate} tokens/s。",
);

/// The sentence; `None` where no request says the time of its tokens.
pub(super) fn of(trace: &Trace) -> Option<Message> {
    let of = |name: &str| -> Vec<f64> { points(trace, name).into_values().flatten().map(|(_, value)| value).collect() };
    let (times, tokens) = (of("generation_time"), of("generated_tokens"));
    let each: Vec<f64> =
        times.iter().zip(&tokens).filter(|(ms, n)| **ms > 0.0 && **n > 0.0).map(|(ms, n)| ms / n).collect();
    let token = median(each.clone())?;
    let (low, high) = each.iter().fold((token, token), |(low, high), ms| (low.min(*ms), high.max(*ms)));
    let (reading, prompts): (f64, f64) = (of("prompt_time").iter().sum(), of("prompt_tokens").iter().sum());
    let generating: f64 = times.iter().sum();
    let prompt = (reading > 0.0).then(|| {
        let share = Value::Share(reading / (reading + generating));
        let args = [("tokens", about(prompts)), ("share", share), ("rate", number(prompts / reading * 1e3))];
        Message::new(PROMPTS, args).within()
    });
    let ns = |ms: f64| Value::Ns((ms * 1e6) as i64);
    let args = [
        ("token", ns(token)),
        ("n", Value::Count(each.len() as u64)),
        ("low", ns(low)),
        ("high", ns(high)),
        ("rate", number(1e3 / token)),
        ("prompt", prompt.unwrap_or_else(none)),
    ];
    Some(match each.len() {
        1 => Message::new(REQUEST, args.into_iter().filter(|(name, _)| !matches!(*name, "n" | "low" | "high"))),
        _ => Message::new(REQUESTS, args),
    })
}
