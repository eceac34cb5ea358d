//! The first screen for what has a screen or a page of its own: the terminal interface, which scrolls, and the page.

use super::{
    Screen, answer,
    canvas::{Line, Look},
    costs, head, rest, say,
};
use crate::{model::Capture, sections::words, units};
use diagnosis::{analysis::Layer, i18n::Lang};

/// Lines of the interface's overview that belong to the first screen.
const ROWS: usize = 36;

fn of(capture: &Capture, lang: Lang, width: usize) -> Screen<'_> {
    let look = Look { width, colour: false, ascii: false };
    Screen { all: std::slice::from_ref(capture), capture, lang, look }
}

/// The first screen without commands, in lines of a width: each with the position of the finding whose cost begins in it.
pub fn lines(capture: &Capture, lang: Lang, width: usize) -> Vec<(Option<usize>, Line)> {
    let screen = of(capture, lang, width);
    let parts = screen.parts([rest::unknown(&screen), Vec::new(), Vec::new()], ROWS);
    let mut out: Vec<(Option<usize>, Line)> = Vec::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        if !out.is_empty() {
            out.push((None, Line::new()));
        }
        out.extend(part);
    }
    out
}

/// The layers in the order of the bar's tones.
pub fn tones(capture: &Capture) -> Vec<(Layer, f64)> {
    answer::shares(&of(capture, Lang::En, 0))
}

/// What ran, on what, and which steps.
pub fn ran(capture: &Capture, lang: Lang) -> String {
    head::said(&of(capture, lang, 0))
}

/// The answer in a sentence.
pub fn sentence(capture: &Capture, lang: Lang) -> String {
    answer::said(&of(capture, lang, 0))
}

/// What was not judged and would matter.
pub fn unknown(capture: &Capture, lang: Lang) -> Vec<String> {
    rest::doubts(&of(capture, lang, 0))
}

/// A cost in words.
pub struct Cost {
    /// Position of the finding that names it.
    pub finding: usize,
    /// Rule.
    pub rule: &'static str,
    /// Title of the rule.
    pub title: &'static str,
    /// Time of a step that it takes, with its unit.
    pub size: String,
    /// The step after the fix and what that saves, with their units; `None` where nothing is promised.
    pub after: Option<(String, String)>,
    /// Largest share of the step that a fix saves.
    pub most: f64,
    /// How sure it is.
    pub sure: &'static str,
    /// What it rests on.
    pub claim: String,
    /// What to do.
    pub advice: Option<String>,
}

/// The costs of the first screen.
pub fn costs(capture: &Capture, lang: Lang) -> Vec<Cost> {
    let screen = of(capture, lang, 0);
    if screen.measured().is_some() {
        return Vec::new();
    }
    let all: Vec<_> = costs::costs(&screen).collect();
    let findings: Vec<_> = all.iter().map(|(_, finding)| *finding).collect();
    let scale = costs::scale(&findings);
    let unit = |digits: String| format!("{digits}\u{a0}{}", scale.name());
    let cost = |(at, finding): (usize, &diagnosis::diagnose::Finding)| {
        let advice = finding.remedy.first().map(|remedy| match lang {
            Lang::En => say::plain(&remedy.text_en),
            Lang::Zh => say::plain(&remedy.text_zh),
        });
        Cost {
            finding: at,
            rule: finding.rule,
            title: diagnosis::diagnose::rules::find(finding.rule).map_or("", |rule| rule.doc().title.get(lang)),
            size: unit(scale.digits(costs::amount(finding))),
            after: costs::promised(finding, scale).map(|(after, saves)| (unit(after), format!("{saves}\u{a0}%"))),
            most: finding.estimate.max_gain_share().clamp(0.0, 1.0),
            sure: words::confidence(finding.confidence).get(lang),
            claim: costs::claimed(&screen, finding),
            advice,
        }
    };
    all.into_iter().map(cost).collect()
}

/// What stands in place of costs where there are none.
pub fn none(lang: Lang) -> &'static str {
    costs::NONE.get(lang)
}

/// A layer's name and its share.
pub fn layer((layer, share): (Layer, f64), lang: Lang) -> String {
    format!("{} {}", words::layer(layer).get(lang), units::whole_share(share))
}

/// Titles of the columns of costs.
pub fn titles(capture: &Capture, lang: Lang) -> [&'static str; 4] {
    costs::titles(&of(capture, lang, 0))
}
