//! The report as one page that needs nothing but a browser: the text of the report, the layers of each class as bars, the
//! steps as a histogram, and a timeline that is zoomed and panned.
//!
//! A policy in the page forbids every connection and every script and style but its own two, by their digests. What stands
//! in it from a capture went through `writer`, which keeps it text, or through `data`, which keeps it data.
//!
//! | module | owns |
//! | --- | --- |
//! | `writer` | a document as HTML |
//! | `first` | the answer and the costs |
//! | `figure` | bars and histogram |
//! | `data` | the timeline as data in the page |

mod data;
mod figure;
mod first;
#[cfg(test)]
mod tests;
mod writer;

use std::{fmt::Write, io};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use sha2::{Digest, Sha256};

use super::{
    document::{Block, Document},
    model::{Capture, Report},
    screen::diff::Bar,
    sections::{self, Part},
    svg::escape,
    timeline::Timeline,
};
use diagnosis::i18n::{Lang, Text};
use writer::Contents;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = concat!(include_str!("timeline.js"), include_str!("evidence.js"));

/// What the timeline's keys do.
const KEYS: [(&[Text], Text); 8] = [
    (&[Text::new("drag", "拖动"), key("←"), key("→")], Text::new("pan", "平移")),
    (&[Text::new("Ctrl + wheel", "Ctrl + 滚轮"), key("+"), key("−")], Text::new("zoom", "缩放")),
    (&[key("↑"), key("↓")], Text::new("lane", "泳道")),
    (&[key("["), key("]")], Text::new("slice before, after", "前一个、后一个切片")),
    (&[key("f")], Text::new("fit the slice", "适配切片")),
    (&[key("l")], Text::new("what launched it", "下发它的调用")),
    (&[key("0")], Text::new("all", "全部")),
    (&[key("Esc")], Text::new("nothing chosen", "取消选择")),
];

const fn key(name: &'static str) -> Text {
    Text::new(name, name)
}

/// Pictures of a capture.
#[derive(Clone, Debug, Default)]
pub struct Pictures {
    /// As much of it as a page holds; none where it has no slices.
    pub whole: Option<Timeline>,
    /// The evidence of findings, by their positions.
    pub evidence: Vec<(usize, Timeline)>,
}

/// Writes the page. `pictures` are those of the captures, in their order.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn io::Write, report: &Report, pictures: &[Pictures], lang: Lang) -> io::Result<()> {
    out.write_all(page(report, pictures, lang).as_bytes())
}

/// The page.
fn page(report: &Report, pictures: &[Pictures], lang: Lang) -> String {
    let mut contents = Contents::default();
    let mut body = String::new();
    if report.captures.len() > 1 {
        body.push_str(&contents.section(&sections::overview(report, lang)));
    }
    for (capture, i) in report.captures.iter().zip(0..) {
        let none = Pictures::default();
        body.push_str(&of_capture(capture, (i, pictures.get(i).unwrap_or(&none)), &mut contents, lang));
    }
    let title = report.leading().map_or_else(String::new, |c| c.source.clone());
    framed(&title, &contents.list(), &body, report.simulated(), lang)
}

/// A document as a page of its own, without figures and timelines.
pub fn document(document: &Document, title: &str, simulated: bool, lang: Lang) -> String {
    let mut contents = Contents::default();
    let body = contents.section(document);
    framed(title, &contents.list(), &body, simulated, lang)
}

/// A comparison as a page of its own, with the waterfall and the timelines of both sides after the answer: they move together.
pub fn comparison(
    document: &Document,
    title: &str,
    (bars, timelines): (&[Bar], &[Option<Timeline>; 2]),
    simulated: bool,
    lang: Lang,
) -> String {
    let mut contents = Contents::default();
    // The title and the answer stand before the pictures, each other part folded below them.
    let is_part = |block: &Block| matches!(block, Block::Heading { level: 2, .. });
    let starts: Vec<usize> = document.blocks.iter().enumerate().filter(|(_, b)| is_part(b)).map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([document.blocks.len()]);
    let part = |from: usize, to: usize| Document { blocks: document.blocks.get(from..to).unwrap_or_default().to_vec() };
    let mut parts = starts.iter().copied().zip(ends);
    let first = parts.next().map_or(document.blocks.len(), |(_, end)| end);
    let mut body = contents.section(&part(0, first));
    body.push_str(&figure::waterfall(bars, lang));
    for (timeline, side) in timelines.iter().zip(["A", "B"]) {
        let name = format!("{} {side}", TIMELINE.get(lang));
        body.push_str(&timeline.as_ref().map_or_else(String::new, |own| canvas(own, &name, &mut contents, lang)));
    }
    for (from, to) in parts {
        let section = contents.section(&part(from, to));
        body.push_str(&folded(&section, ""));
    }
    framed(title, &contents.list(), &body, simulated, lang)
}

/// The page around what stands in it.
fn framed(title: &str, contents: &str, body: &str, simulated: bool, lang: Lang) -> String {
    let title = escape(&super::text::plain(title, super::text::NAME));
    let code = match lang {
        Lang::En => "en",
        Lang::Zh => "zh-CN",
    };
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
        digest(SCRIPT),
        digest(STYLE)
    );
    let contents_word = Text::new("Contents", "目录").get(lang);
    format!(
        "<!DOCTYPE html>\n<html lang=\"{code}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>Stratoscope · {title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <header class=\"bar\"><span class=\"brand\">Stratoscope</span>{badge}</header>\n\
         <div class=\"sheet\">\n<nav aria-label=\"{contents_word}\"><p>{contents_word}</p>{contents}</nav>\n\
         <main>\n{body}</main>\n</div>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        badge = badge(simulated, lang),
    )
}

/// What a simulated report carries at every place.
fn badge(simulated: bool, lang: Lang) -> String {
    match simulated {
        true => format!("<span class=\"badge\">{}</span>", Text::new("simulated", "模拟数据").get(lang)),
        false => String::new(),
    }
}

/// The answer with its evidence first, then what takes the most time and the longest gaps; everything else is folded.
fn of_capture(capture: &Capture, (i, pictures): (usize, &Pictures), contents: &mut Contents, lang: Lang) -> String {
    let shown: Vec<usize> = pictures.evidence.iter().map(|(finding, _)| *finding).collect();
    let mut out = first::answer(capture, i, &shown, contents, lang);
    out.push_str(&drawn(capture, (i, pictures), contents, lang));
    for part in Part::ALL {
        let own = contents.section(&part.of(capture, lang));
        let figures = match part {
            Part::Answer => figure::layers(capture, lang) + &figure::steps(capture, lang),
            _ => String::new(),
        };
        match part {
            _ if own.is_empty() => out.push_str(&figures),
            Part::Serving | Part::LinkTest | Part::Largest | Part::Gaps => out.push_str(&own),
            _ => out.push_str(&folded(&own, &figures)),
        }
    }
    out
}

/// A section under its own heading, closed until it is asked for.
fn folded(section: &str, figures: &str) -> String {
    let inside = section.trim_start_matches("<section>\n").trim_end_matches("</section>\n");
    let (heading, rest) = inside.split_once('\n').unwrap_or((inside, ""));
    format!("<details>\n<summary>{heading}</summary>\n{rest}{figures}</details>\n")
}

/// The timeline, and in its place the evidence that a button asks for.
fn drawn(capture: &Capture, (i, pictures): (usize, &Pictures), contents: &mut Contents, lang: Lang) -> String {
    let Some(whole) = pictures.whole.as_ref().filter(|whole| !whole.lanes.is_empty()) else { return String::new() };
    let id = contents.entry(2, TIMELINE.get(lang));
    let all = i.to_string();
    let mut out = format!("<section class=\"pictures\">\n<h2 id=\"{id}\">{}</h2>\n", TIMELINE.get(lang));
    let button = |name: &str, pressed: bool, label: &str| {
        format!(
            "<button type=\"button\" class=\"chip\" data-shows=\"{name}\" aria-pressed=\"{pressed}\">{label}</button>\n"
        )
    };
    if !pictures.evidence.is_empty() {
        out.push_str("<p class=\"chips\">");
        out.push_str(&button(&all, true, Text::new("steps", "步").get(lang)));
        for (finding, _) in &pictures.evidence {
            let rule = capture.findings.get(*finding).map_or("", |finding| finding.rule);
            out.push_str(&button(&first::picture(i, *finding), false, rule));
        }
        out.push_str("</p>\n");
    }
    out.push_str(&figure(whole, &all, TIMELINE.get(lang), "", lang));
    for (finding, timeline) in &pictures.evidence {
        let name = first::picture(i, *finding);
        out.push_str(&figure(timeline, &name, TIMELINE.get(lang), " hidden", lang));
    }
    out.push_str("</section>\n");
    out
}

/// What the section with a timeline is called.
const TIMELINE: Text = Text::new("Timeline", "时间线");

/// The timeline: its data, and where the script draws it. Those of a comparison move together.
fn canvas(timeline: &Timeline, name: &str, contents: &mut Contents, lang: Lang) -> String {
    if timeline.lanes.is_empty() {
        return String::new();
    }
    let id = contents.entry(2, name);
    let drawn = figure(timeline, "", name, " data-linked", lang);
    format!("<section>\n<h2 id=\"{id}\">{}</h2>\n{drawn}</section>\n", escape(name))
}

/// The timeline in a frame that has a name; `more` are attributes.
fn figure(timeline: &Timeline, picture: &str, name: &str, more: &str, lang: Lang) -> String {
    let get = |text: Text| text.get(lang);
    let mut out = String::new();
    let name = escape(name);
    let legend: String = timeline.kinds.iter().enumerate().fold(String::new(), |mut out, (i, kind)| {
        let _ = write!(out, "<li data-kind=\"{i}\"><i></i>{}</li>", escape(kind.name));
        out
    });
    let button = |key: &str, sign: &str, title: Text| {
        format!(
            "<button type=\"button\" data-key=\"{key}\" title=\"{0}\" aria-label=\"{0}\">{sign}</button>",
            get(title)
        )
    };
    let buttons = [
        button("+", "+", Text::new("zoom in (+)", "放大（+）")),
        button("-", "−", Text::new("zoom out (-)", "缩小（-）")),
        button("f", "◻", Text::new("fit the selected slice (f)", "适配所选切片（f）")),
        button("0", "⟷", Text::new("all that is held (0)", "显示全部（0）")),
    ]
    .concat();
    let keys = KEYS.iter().fold(String::new(), |mut out, (keys, what)| {
        let keys: String = keys.iter().map(|key| format!("<kbd>{}</kbd>", get(*key))).collect();
        let _ = write!(out, "<span>{keys} {}</span> ", get(*what));
        out
    });
    let told = get(Text::new("arrow keys move, plus and minus zoom", "方向键移动，加减号缩放"));
    let none = get(Text::new("This needs a browser that runs scripts.", "需要能运行脚本的浏览器。"));
    let _ = write!(
        out,
        "<figure class=\"timeline\" data-picture=\"{picture}\"{more} data-lanes=\"{lanes}\" data-marks=\"{marks}\">\n\
         <p class=\"note\">{about}</p>\n\
         <div class=\"tools\"><ul class=\"legend\">{legend}</ul><div>{buttons}</div></div>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"application\" aria-label=\"{name}: {told}\"><div class=\"tall\">\
         <canvas aria-hidden=\"true\"></canvas></div></div>\n\
         <output aria-live=\"polite\"></output>\n<figcaption>{keys}</figcaption>\n\
         <noscript><p>{none}</p></noscript>\n\
         <script type=\"application/json\">{data}</script>\n</figure>\n",
        about = escape(&timeline.about(lang)),
        lanes = timeline.lanes.len(),
        marks = timeline.marks(),
        data = data::of(timeline, lang),
    );
    out
}

/// A script or style as a Content Security Policy names it.
fn digest(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())))
}
