//! What stands first on the page: the answer in a sentence, the bar of the layers, and the costs, each with a button that shows
//! its evidence in the timeline.

use std::fmt::Write;

use super::writer::{Contents, words};
use crate::{
    model::Capture,
    screen::brief::{self, Cost},
    text,
};
use diagnosis::i18n::{Lang, Text};

/// Name of the section of costs, as that of the findings.
const COSTS: Text = Text::new("Findings", "发现");

/// The answer. `shown` are the positions of the findings whose evidence the page can show; `number` is that of the capture.
pub fn answer(capture: &Capture, number: usize, shown: &[usize], contents: &mut Contents, lang: Lang) -> String {
    let sentence = brief::sentence(capture, lang);
    let id = contents.entry(1, &text::plain(&capture.source, text::NAME));
    let mut out = format!(
        "<section class=\"first\">\n<p class=\"note\">{} · <span>{}</span> {}</p>\n<h1 id=\"{id}\">{}</h1>\n",
        words(&brief::ran(capture, lang)),
        words(&text::plain(&capture.source, text::NAME)),
        super::badge(capture.simulated, lang),
        words(&sentence),
    );
    out.push_str(&bar(capture, lang));
    let costs = brief::costs(capture, lang);
    if capture.verdict.place.is_some() || !costs.is_empty() {
        let id = contents.entry(2, COSTS.get(lang));
        let _ = writeln!(out, "<h2 id=\"{id}\">{}</h2>", COSTS.get(lang));
        if costs.is_empty() {
            let _ = writeln!(out, "<p>{}</p>", brief::none(lang));
        }
    }
    if !costs.is_empty() {
        let titles = brief::titles(capture, lang);
        out.push_str("<ol class=\"costs\">\n");
        costs.iter().for_each(|own| cost(&mut out, own, &titles, (number, shown.contains(&own.finding)), lang));
        out.push_str("</ol>\n");
    }
    let unknown = brief::unknown(capture, lang);
    if !unknown.is_empty() {
        let _ =
            write!(out, "<p class=\"note\">{}</p>\n<ul class=\"note\">", Text::new("Not known:", "未知：").get(lang));
        unknown.iter().for_each(|doubt| out.extend(["<li>", &words(doubt), "</li>"]));
        out.push_str("</ul>\n");
    }
    out.push_str("</section>\n");
    out
}

/// Name of the picture of a finding's evidence: a button names it, and a timeline has it.
pub fn picture(capture: usize, finding: usize) -> String {
    format!("{capture}-{finding}")
}

/// The layers of a step, the largest first.
fn bar(capture: &Capture, lang: Lang) -> String {
    let layers = brief::tones(capture);
    let all: f64 = layers.iter().map(|(_, share)| share).sum();
    if layers.is_empty() {
        return String::new();
    }
    let (mut drawn, mut told, mut x) = (String::new(), String::new(), 0.0);
    for (layer, share) in &layers {
        let width = share / all.max(f64::MIN_POSITIVE) * 1000.0;
        let name = brief::layer((*layer, *share), lang);
        let _ = write!(
            drawn,
            "<rect class=\"{}\" x=\"{x:.1}\" width=\"{width:.1}\" height=\"24\"><title>{name}</title></rect>",
            layer.key()
        );
        let _ = write!(told, "<li class=\"{}\"><i></i>{name}</li>", layer.key());
        x += width;
    }
    format!(
        "<svg class=\"share\" viewBox=\"0 0 1000 24\" preserveAspectRatio=\"none\" role=\"img\" aria-hidden=\"true\">{drawn}</svg>\n\
         <ul class=\"shares\">{told}</ul>\n"
    )
}

fn cost(out: &mut String, cost: &Cost, titles: &[&str; 4], (capture, shown): (usize, bool), lang: Lang) {
    let [size, after, saves, sure] = titles;
    let title = if cost.title.is_empty() { cost.rule } else { cost.title };
    let _ = write!(
        out,
        "<li><p><b>{}</b> <code>{}</code></p>\n<dl><div><dt>{size}</dt><dd>{}</dd></div>",
        words(title),
        cost.rule,
        cost.size
    );
    if let Some((step, share)) = &cost.after {
        let most = cost.most * 100.0;
        let _ = write!(
            out,
            "<div><dt>{after}</dt><dd>{step}</dd></div><div><dt>{saves}</dt><dd>{share} \
             <svg viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect width=\"{most:.1}\" height=\"8\"/></svg>\
             </dd></div><div><dt>{sure}</dt><dd>{}</dd></div>",
            cost.sure
        );
    }
    let _ = write!(out, "</dl>\n<p>{}</p>\n", words(&cost.claim));
    if let Some(advice) = &cost.advice {
        let _ = writeln!(out, "<p class=\"advice\">{}</p>", words(advice));
    }
    if shown {
        let show = Text::new("show the evidence", "查看证据").get(lang);
        let name = picture(capture, cost.finding);
        let _ = writeln!(out, "<button type=\"button\" class=\"chip\" data-shows=\"{name}\">{show}</button>");
    }
    out.push_str("</li>\n");
}
