//! The answer in one sentence, and the bar of the layers.

use super::{
    Runtime, Screen,
    canvas::{Line, Style, left, wrap_at_most},
    say,
};
use crate::{sections::words, units};
use diagnosis::{
    analysis::Layer,
    diagnose::{Place, VerdictLayer},
    i18n::{Lang, Message, Text, Value},
};

/// Lines of the sentence.
const LINES: usize = 4;
/// Share of the step below which a layer has no part of the bar.
const LEAST: f64 = 0.005;
/// Mean over median from which the slow steps have words of their own (decided form of the verdict).
const SLOW_STEPS: f64 = 1.05;
/// The same from which they are called much slower; heuristic.
const MUCH_SLOWER: f64 = 1.5;
/// What a bar is drawn with, the largest part first: each is told by its letter too.
const TONES: [char; 4] = ['█', '▒', '░', '·'];

/// The sentence, on lines.
pub(super) fn lines(screen: &Screen<'_>) -> Vec<Line> {
    let said = said(screen);
    wrap_at_most(&said, screen.width(), LINES).into_iter().map(|line| Line::of(Style::Strong, line)).collect()
}

/// The sentence.
pub(super) fn said(screen: &Screen<'_>) -> String {
    let verdict = &screen.capture.verdict;
    let judged = !matches!(verdict.layer, VerdictLayer::Undecided | VerdictLayer::Load);
    let class = verdict.place.as_ref().map_or("", |place| place.class.as_str());
    match screen.measured() {
        Some(headline) => headline,
        None => match verdict.place.as_ref().filter(|_| judged) {
            Some(place) => sentence(screen, place),
            None => say::message(&verdict.headline, class, screen.lang),
        },
    }
}

/// What a step takes, and for what.
fn sentence(screen: &Screen<'_>, place: &Place) -> String {
    let capture = screen.capture;
    let device = screen.device();
    let stage = capture.leading_rank().and_then(|rank| rank.main_class()).map(|class| super::stage(class.stage));
    let slow = place.mean as f64 > SLOW_STEPS * place.median as f64 && place.steps > 2;
    let takes = match (screen.is_window(), slow) {
        (true, _) if place.ahead.is_some() => Text::new(
            "Nothing marks steps: the last {mean} of the device's work count as one, after a start-up of {ahead}.",
            "没有步的标记：设备工作的最后 {mean} 按一步计，之前的 {ahead} 是启动阶段。",
        ),
        (true, _) => Text::new(
            "Nothing marks steps: the {mean} from the first to the last operation of the device count as one.",
            "没有步的标记：从首个到最后一个设备算子的 {mean} 按一步计。",
        ),
        (_, true) if place.mean as f64 > MUCH_SLOWER * place.median as f64 => Text::new(
            "A {stage}step takes {mean} on average, {median} in the median: some steps are much slower.",
            "一个{stage}步平均耗时 {mean}，中位数 {median}：部分步明显更慢。",
        ),
        (_, true) => Text::new(
            "A {stage}step takes {mean} on average, {median} in the median.",
            "一个{stage}步平均耗时 {mean}，中位数 {median}。",
        ),
        (_, false) if place.mark.is_some() => Text::new(
            "The {stage}step's mark lasts {mark}. From the first to the last device operation it takes {mean}; for the rest only the host works.",
            "该{stage}步的标记长 {mark}，从首个到最后一个设备算子只有 {mean}，其余时间仅主机工作。",
        ),
        (_, false) if place.steps == 1 => Text::new(
            "The {stage}step takes {mean} from its first to its last device operation.",
            "该{stage}步从首个到最后一个设备算子耗时 {mean}。",
        ),
        (_, false) => Text::new("A {stage}step takes {mean} on average.", "一个{stage}步平均耗时 {mean}。"),
    };
    let largest = Layer::ALL.into_iter().zip(place.layers).max_by(|(_, a), (_, b)| a.total_cmp(b));
    let (layer, share) = largest.unwrap_or((Layer::Measurement, 0.0));
    let parts = screen.runtime();
    let most = parts.first().filter(|(_, part)| *part >= ALONE * share);
    let for_what = match layer {
        Layer::Runtime => match most {
            Some((Runtime::Host, _)) => Text::new(
                "For {share} of it the {device} waits for the host.",
                "其中 {share} 的时间 {device} 在等待主机。",
            ),
            Some((Runtime::Copies, _)) => {
                Text::new("For {share} of it the {device} copies data.", "其中 {share} 的时间 {device} 在拷贝数据。")
            }
            Some((Runtime::Device, _)) => Text::new(
                "For {share} of it the {device} pauses between queued operations or waits for another queue.",
                "其中 {share} 的时间 {device} 在已入队的算子之间停顿，或等待其他队列。",
            ),
            Some((Runtime::Unstarted, _)) => Text::new(
                "For {share} of it the {device} is idle and does not begin what was launched.",
                "其中 {share} 的时间 {device} 空闲，却没有开始已下发的工作。",
            ),
            Some((Runtime::Silent, _)) => Text::new(
                "For {share} of it the {device} is idle, and no record says what the host does.",
                "其中 {share} 的时间 {device} 空闲，且没有记录说明主机在做什么。",
            ),
            None => Text::new(
                "For {share} of it the {device} computes nothing: {parts}.",
                "其中 {share} 的时间 {device} 没有计算：{parts}。",
            ),
        },
        Layer::Operator => match screen.operator() {
            Some(_) => {
                Text::new("Kernels take {share} of it, {op} alone {part}.", "kernel 占 {share}，其中 {op} 占 {part}。")
            }
            None => Text::new("Kernels take {share} of it.", "kernel 占 {share}。"),
        },
        Layer::Communication if place.waits_for.is_some() => Text::new(
            "For {share} of it the ranks exchange data or wait for each other: rank {rank} waits for rank {late} for {wait}.",
            "其中 {share} 的时间各 rank 在通信或相互等待：rank {rank} 等待 rank {late} 占 {wait}。",
        ),
        Layer::Communication => Text::new(
            "For {share} of it the ranks exchange data or wait for each other.",
            "其中 {share} 的时间各 rank 在通信或相互等待。",
        ),
        Layer::Measurement => {
            Text::new("For {share} of it the capture does not show the cause.", "其中 {share} 的时间采集未显示原因。")
        }
    };
    // What stands for all of the runtime's share is told by its own.
    let share = most.filter(|_| layer == Layer::Runtime).map_or(share, |(_, part)| *part);
    let (op, part) = screen.operator().unwrap_or_default();
    let (late, wait) = place.waits_for.unwrap_or_default();
    let args = [
        ("rank", Value::Count(place.rank.into())),
        ("late", Value::Count(late.into())),
        ("wait", Value::Share(wait)),
        ("stage", Value::Text(stage.unwrap_or(Text::new("", "")))),
        ("mean", Value::Ns(place.mean)),
        ("mark", Value::Ns(place.mark.unwrap_or(place.mean))),
        ("median", Value::Ns(place.median)),
        ("ahead", Value::Ns(place.ahead.unwrap_or(0))),
        ("share", Value::Share(share)),
        ("device", Value::Text(device)),
        ("op", Value::Raw(op)),
        ("part", Value::Share(part)),
        ("parts", Value::Phrase(listed(screen, &parts))),
    ];
    let said = [takes, for_what].map(|text| say::message(&Message::new(text, args.clone()), "", screen.lang));
    let outside = place.outside.as_ref().map(|outside| say::message(outside, &place.class, screen.lang));
    let said: Vec<String> = said.into_iter().chain(outside).collect();
    let space = if screen.lang == Lang::En { " " } else { "" };
    let said = said.join(space);
    // "A decode step", "A step", and no "A unknown step".
    if said.starts_with("A  step") { said.replacen("A  step", "A step", 1) } else { said }
}

/// Part of the runtime's share from which one kind of it stands for all.
const ALONE: f64 = 0.85;
/// Share of the step from which a part is listed.
const LISTED: f64 = 0.02;

/// What the device does instead of computing, each with its share.
fn listed(screen: &Screen<'_>, parts: &[(Runtime, f64)]) -> String {
    let words = |kind: Runtime| match kind {
        Runtime::Host => Text::new("{share} waiting for the host", "{share} 等待主机"),
        Runtime::Copies => Text::new("{share} copying", "{share} 拷贝"),
        Runtime::Device => Text::new(
            "{share} between queued operations or waiting for another queue",
            "{share} 在已入队算子之间或等待其他队列",
        ),
        Runtime::Unstarted => Text::new("{share} not beginning launched work", "{share} 未开始已下发的工作"),
        Runtime::Silent => Text::new("{share} idle with no record of the host", "{share} 空闲且没有主机记录"),
    };
    let shown = parts.iter().filter(|(_, share)| *share >= LISTED);
    let said = shown.map(|(kind, share)| {
        say::message(&Message::new(words(*kind), [("share", Value::Share(*share))]), "", screen.lang)
    });
    said.collect::<Vec<_>>().join(if screen.lang == Lang::En { ", " } else { "，" })
}

/// The layers that the bar shows with their shares, the largest first.
pub(super) fn shares(screen: &Screen<'_>) -> Vec<(Layer, f64)> {
    let Some(place) = screen.capture.verdict.place.as_ref() else { return Vec::new() };
    let mut layers: Vec<(Layer, f64)> = Layer::ALL.into_iter().zip(place.layers).collect();
    layers.retain(|(_, share)| *share >= LEAST);
    layers.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    layers
}

/// The bar of the layers, and their names below it.
pub(super) fn bar(screen: &Screen<'_>) -> Vec<Line> {
    let layers = shares(screen);
    if layers.is_empty() && screen.capture.verdict.place.is_none() {
        return Vec::new();
    }
    let width = screen.width();
    let all: f64 = layers.iter().map(|(_, share)| share).sum();
    let (mut drawn, mut names, mut ends, mut sum) = (Line::new(), Line::new(), 0, 0.0);
    for (n, (layer, share)) in layers.iter().enumerate() {
        sum += share / all.max(f64::MIN_POSITIVE);
        let to = ((sum * width as f64).round() as usize).clamp(ends, width);
        let tone = TONES.get(n).copied().unwrap_or('·');
        drawn.push(Style::Tone(n), tone.to_string().repeat(to - ends));
        let word = screen.get(words::layer(*layer));
        let name = format!("{tone} {word} {}", units::whole_share(*share));
        // A part too narrow for its name lets the others go on behind it.
        let at = names.width().max(ends.min(width.saturating_sub(1)));
        let gap = usize::from(n > 0 && at == names.width()) * 2;
        let pad = at.saturating_sub(names.width()).max(gap);
        let own = left(&name, 0);
        let fits = names.width() + pad + unicode_width::UnicodeWidthStr::width(own.as_str()) <= width;
        names.push(Style::Plain, " ".repeat(if fits { pad } else { 2 }));
        names.push(Style::Tone(n), own);
        ends = to;
    }
    let mut below = vec![names];
    if below.iter().any(|names| names.width() > width) {
        below.clear();
        let mut names = Line::new();
        for (n, (layer, share)) in layers.iter().enumerate() {
            let tone = TONES.get(n).copied().unwrap_or('·');
            let name = format!("{tone} {} {}", screen.get(words::layer(*layer)), units::whole_share(*share));
            let own = unicode_width::UnicodeWidthStr::width(name.as_str());
            if names.width() > 0 && names.width() + 2 + own > width {
                below.push(std::mem::take(&mut names));
            }
            names.push(Style::Plain, if names.width() > 0 { "  " } else { "" });
            names.push(Style::Tone(n), name);
        }
        below.push(names);
    }
    [drawn].into_iter().chain(below).collect()
}
