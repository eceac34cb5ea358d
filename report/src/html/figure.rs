//! Figures of the page that need no script: the layers of each class as a bar, the steps of the main class as a histogram.

use std::fmt::Write;

use model::Ns;

use super::badge;
use crate::{
    model::{Capture, ClassPart, RankPart},
    phrase,
    screen::diff::Bar,
    sections::words,
    svg::escape,
    text, units,
};
use diagnosis::{
    analysis::Layer,
    i18n::{Lang, Message, Text, Value},
};

/// Classes with a bar of their own.
const BARS: usize = 6;
/// Bars of the histogram at most; few steps have fewer, by the rule of the square root.
const BINS: usize = 48;
/// Steps from which a histogram shows more than the table does.
const LEAST: usize = 8;
/// Beyond so many medians steps share the last bar; few steps that are very long would leave one bar for all the others.
const FAR: Ns = 3;

/// Where the time of each class goes, layer by layer.
pub fn layers(capture: &Capture, lang: Lang) -> String {
    let Some(rank) = capture.leading_rank() else { return String::new() };
    let counted = rank.classes.iter().filter(|class| class.used > 0 && class.total > 0);
    let main = rank.main_class();
    let mut classes: Vec<&ClassPart> = counted.collect();
    classes.sort_by_key(|class| !main.is_some_and(|main| std::ptr::eq(main, *class)));
    if classes.is_empty() {
        return String::new();
    }
    let title = Text::new("Where a step's time goes", "每步时间去向").get(lang);
    let mut out = format!(
        "<figure class=\"layers\">\n<h3>{title} <small>{}</small>{}</h3>\n",
        of_rank(rank, lang),
        badge(capture.simulated, lang)
    );
    for class in classes.iter().take(BARS) {
        bar(&mut out, class, lang);
    }
    out.push_str("</figure>\n");
    out
}

fn of_rank(rank: &RankPart, lang: Lang) -> String {
    let device = Text::new("device", "设备").get(lang);
    format!("rank {}, {device} {}", rank.rank, rank.device)
}

fn bar(out: &mut String, class: &ClassPart, lang: Lang) {
    let key = escape(&text::plain(&class.key, text::NAME));
    let steps = match class.used {
        1 => Text::new("{n} step of {time}", "{n} 步，{time}"),
        _ => Text::new("{n} steps, median {time}", "{n} 步，中位数 {time}"),
    };
    let values = [("n", Value::Count(class.used as u64)), ("time", Value::Ns(class.median))];
    let steps = phrase::plain(&Message::new(steps, values), lang);
    let _ = write!(
        out,
        "<p><b>{key}</b> <span>{steps}</span></p>\n<svg viewBox=\"0 0 1000 24\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{key}\">",
    );
    let shares = Layer::ALL.into_iter().zip(class.layers());
    let permille = |ns: Ns| (i128::from(ns) * 1_000_000 / i128::from(class.total.max(1))) as f64 / 1000.0;
    let mut before = 0;
    let mut told = String::new();
    for (layer, ns) in shares.filter(|(_, ns)| *ns > 0) {
        let name = words::layer(layer).get(lang);
        let share = units::share_of(ns, class.total);
        let _ = write!(
            out,
            "<rect class=\"{}\" x=\"{:.3}\" width=\"{:.3}\" height=\"24\"><title>{name} {share}</title></rect>",
            layer.key(),
            permille(before),
            permille(ns)
        );
        before += ns;
        let _ = write!(told, "<li class=\"{}\"><i></i>{name} <b>{share}</b></li>", layer.key());
    }
    let _ = write!(out, "</svg>\n<ul class=\"shares\">{told}</ul>\n");
}

/// From one side to the other, a bar per difference.
pub fn waterfall(bars: &[Bar], lang: Lang) -> String {
    if bars.is_empty() {
        return String::new();
    }
    let title = Text::new("What makes the difference", "差异的来源").get(lang);
    let mut out = format!("<figure class=\"waterfall\">\n<h3>{title}</h3>\n");
    for bar in bars {
        let [begin, end] = bar.ends.map(|part| part * 1000.0);
        let _ = writeln!(
            out,
            "<p><span>{}</span><b>{}</b><svg viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
             <rect class=\"{}\" x=\"{begin:.1}\" width=\"{:.1}\" height=\"10\"/></svg></p>",
            escape(&text::plain(&bar.name, text::NAME)),
            escape(&bar.said),
            bar.kind,
            (end - begin).max(2.0)
        );
    }
    out.push_str("</figure>\n");
    out
}

/// How long the steps of the main class were.
pub fn steps(capture: &Capture, lang: Lang) -> String {
    let Some((rank, class)) = capture.leading_rank().and_then(|rank| Some((rank, rank.main_class()?))) else {
        return String::new();
    };
    let lengths = &class.lengths;
    let (Some(least), Some(most)) = (lengths.iter().copied().min(), lengths.iter().copied().max()) else {
        return String::new();
    };
    if lengths.len() < LEAST || least == most {
        return String::new();
    }
    let far = most.min(class.median.saturating_mul(FAR)).max(least + 1);
    let most_bins = BINS.min(3 * lengths.len().isqrt());
    let bins = bins(lengths, least, far, most_bins);
    // Whole units, so that every bar is as wide as the others.
    let wide = 960 / bins.len().max(1) - 2;
    let span = bins.len() * (wide + 2);
    let highest = bins.iter().max().copied().unwrap_or(1).max(1);
    let title = Text::new("How long the steps are", "步时间分布").get(lang);
    let key = escape(&text::plain(&class.key, text::NAME));
    let steps = Text::new("steps", "步").get(lang);
    let mut out = format!(
        "<figure class=\"histogram\">\n<h3>{title} <small>{key} · {}</small>{}</h3>\n<svg viewBox=\"0 0 {span} 120\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{title}\">",
        of_rank(rank, lang),
        badge(capture.simulated, lang)
    );
    let edge = |i: usize| least + ((i128::from(far - least)) * i as i128 / bins.len().max(1) as i128) as Ns;
    for (i, count) in bins.iter().enumerate().filter(|(_, count)| **count > 0) {
        let height = (count * 112 / highest).max(2);
        let beyond = if i + 1 == bins.len() { most } else { edge(i + 1) };
        let _ = write!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{wide}\" height=\"{height}\"><title>{} – {}: {} {steps}</title></rect>",
            i * (wide + 2) + 1,
            120 - height,
            units::time(edge(i)),
            units::time(beyond),
            units::count(*count as u64)
        );
    }
    let place = |ns: Ns| {
        (i128::from((ns - least).clamp(0, far - least)) * span as i128 / i128::from((far - least).max(1))) as i64
    };
    let median = Text::new("median", "中位数").get(lang);
    let marks = [(median, Some(class.median)), ("p95", class.p95), ("p99", class.p99)];
    let mut told = String::new();
    for (name, ns) in marks.into_iter().filter_map(|(name, ns)| Some((name, ns?))) {
        let _ = write!(out, "<path d=\"M{0} 0V120\"><title>{name}</title></path>", place(ns));
        let _ = write!(told, "<li>{name} <b>{}</b></li>", units::time(ns));
    }
    let beyond = if far < most { format!(" – {}", units::time(most)) } else { String::new() };
    let _ = write!(
        out,
        "</svg>\n<p class=\"axis\"><span>{}</span><span>{}{beyond}</span></p>\n<ul class=\"shares\"><li>{} {steps}</li>{told}</ul>\n</figure>\n",
        units::time(least),
        units::time(far),
        units::count(lengths.len() as u64)
    );
    out
}

/// Steps by their length; the last bar holds all that are longer.
fn bins(lengths: &[Ns], least: Ns, far: Ns, count: usize) -> Vec<usize> {
    let mut bins = vec![0; count];
    for length in lengths {
        let at = i128::from(length - least) * count as i128 / i128::from((far - least).max(1));
        if let Some(bin) = bins.get_mut((at.max(0) as usize).min(count.saturating_sub(1))) {
            *bin += 1;
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_in_one_bar() {
        let lengths = [100, 110, 120, 130, 299, 300, 100_000];
        let bins = bins(&lengths, 100, 300, 10);
        assert_eq!(bins.iter().sum::<usize>(), lengths.len());
        assert_eq!(bins.last(), Some(&3));
        assert_eq!(bins.first(), Some(&2));
    }
}
