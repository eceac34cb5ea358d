//! The answer on one page: the first screen of `strato diagnose`, the other findings in a line each, how long the steps took.

use model::Ns;

use super::{Scene, page::Laid};
use crate::tui::{
    glyph,
    lane::Kind,
    theme::Role,
    widget::{
        board,
        prose::{self, Line, piece},
    },
};
use diagnosis::{
    analysis::{Layer, Selection},
    diagnose::{Severity, rules},
    i18n::Text,
};
use report::{
    model::{Capture, ClassPart, RankPart},
    phrase, readiness,
    screen::{brief, canvas::Style},
    sections::{Part, words},
    split::UNKNOWN,
    units,
};

/// Bars of the histogram.
const BINS: usize = 8;
/// Cells before a bar.
const LABEL: usize = 26;

pub(super) fn lines(scene: &Scene<'_>, width: usize) -> Laid {
    let Some(capture) = scene.look.capture() else { return Laid::default() };
    let (mut out, mut told) = (Vec::new(), Vec::new());
    let tones = brief::tones(capture);
    for (finding, line) in brief::lines(capture, scene.lang, width) {
        told.extend(finding.map(|finding| (out.len(), finding)));
        out.push(line.parts().iter().map(|(style, text)| piece(text.clone(), role(*style, &tones))).collect());
    }
    apart(&mut out);
    let shown: Vec<usize> = told.iter().map(|(_, finding)| *finding).collect();
    for (finding, lines) in findings(scene, capture, &shown, width) {
        told.extend(finding.map(|finding| (out.len(), finding)));
        out.extend(lines);
    }
    if let Some((part, class)) = scene.part().and_then(|part| Some((part, part.main_class()?))) {
        apart(&mut out);
        out.extend(layers(scene, part, class, width));
        out.extend(histogram(scene, width));
    }
    apart(&mut out);
    out.extend(ready(scene, capture, width));
    apart(&mut out);
    for part in [Part::Time, Part::Groups, Part::Owners] {
        out.extend(prose::lines(&part.of(capture, scene.lang), width));
    }
    Laid { lines: out, findings: told }
}

/// The role of a style of the first screen: its tones are the layers.
fn role(style: Style, tones: &[(Layer, f64)]) -> Role {
    match style {
        Style::Plain => Role::Text,
        Style::Strong => Role::Strong,
        Style::Dim => Role::Dim,
        Style::Title => Role::Title,
        Style::Tone(n) => tones.get(n).map_or(Role::Text, |(layer, _)| Role::Layer(*layer)),
    }
}

/// One empty line, and no second one.
fn apart(out: &mut Vec<Line>) {
    if out.last().is_some_and(|last| !last.is_empty()) {
        out.push(Line::new());
    }
}

/// One bar in which each layer has its share, and the shares.
fn layers(scene: &Scene<'_>, part: &RankPart, class: &ClassPart, width: usize) -> Vec<Line> {
    let title = scene.get(Text::new("Where the time of a step goes", "步时间去向"));
    let mut out =
        vec![vec![piece(title, Role::Title), piece(format!("  rank {} · {}", part.rank, class.key), Role::Dim)]];
    let shares = Layer::ALL.into_iter().zip(class.layers());
    let mut bar = Line::new();
    let (mut sum, mut drawn) = (0, 0);
    for (layer, ns) in shares.clone() {
        sum += ns;
        // Ends are rounded, not lengths, so that the bar has its whole width.
        let end = (i128::from(sum) * width as i128 / i128::from(class.total.max(1))) as usize;
        let kind = Kind::of_layer(layer);
        let mark = if scene.theme.is_mono() { initial(layer).to_string() } else { glyph::SOLID.to_owned() };
        bar.push(piece(mark.repeat(end.saturating_sub(drawn)), Role::Kind(kind)));
        drawn = end;
    }
    out.push(bar);
    let mut legend = Line::new();
    for (layer, ns) in shares {
        let name = scene.get(words::layer(layer));
        let mark = if scene.theme.is_mono() { initial(layer).to_string() } else { glyph::SOLID.to_owned() };
        legend.push(piece(mark, Role::Layer(layer)));
        let share = if part.knows(layer) { units::share_of(ns, class.total) } else { UNKNOWN.to_owned() };
        legend.push(piece(format!(" {name} {share}   "), Role::Text));
    }
    out.extend(prose::wrap(&legend, width, ("", "")));
    out
}

/// The letter that stands for a layer where there is no colour.
pub fn initial(layer: Layer) -> char {
    match layer {
        Layer::Operator => 'O',
        Layer::Runtime => 'R',
        Layer::Communication => 'C',
        Layer::Measurement => 'M',
    }
}

/// How many of the steps that count took how long.
fn histogram(scene: &Scene<'_>, width: usize) -> Vec<Line> {
    let Some((rank, class)) = scene.rank().and_then(|rank| Some((rank, rank.main_class()?))) else { return Vec::new() };
    let mut times: Vec<Ns> = rank.steady_steps(class).map(|step| step.window.len()).collect();
    times.sort_unstable();
    let (Some(first), Some(last)) = (times.first().copied(), times.last().copied()) else { return Vec::new() };
    let title = scene.get(Text::new("Steps that count, by their time", "被采用的步的时间分布"));
    let mut out = vec![Line::new(), vec![piece(title, Role::Title)]];
    let bins = if last > first { BINS } else { 1 };
    let edge = |i: usize| first + ((i128::from(last - first) + 1) * i as i128 / bins as i128) as Ns;
    let counts: Vec<usize> = (0..bins)
        .map(|i| times.partition_point(|t| *t < edge(i + 1)) - times.partition_point(|t| *t < edge(i)))
        .collect();
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let room = width.saturating_sub(LABEL + 8);
    for (i, count) in counts.into_iter().enumerate() {
        let [from, to] = [edge(i), edge(i + 1) - 1].map(units::time);
        let range = if from == to { from } else { format!("{from} – {to}") };
        let pad = LABEL.saturating_sub(crate::tui::text::width(&range));
        let eighths = (count * room * 8).div_ceil(most);
        let rest = glyph::EIGHTHS.get(eighths % 8).copied().unwrap_or(" ");
        let bar = format!("{}{}", glyph::SOLID.repeat(eighths / 8), if count == 0 { " " } else { rest });
        out.push(vec![
            piece(format!("{}{range} ", " ".repeat(pad)), Role::Dim),
            piece(bar.trim_end().to_owned(), Role::Kind(Kind::Matrix)),
            piece(format!(" {}", units::count(count as u64)), Role::Text),
        ]);
    }
    let outside = rank.steps.iter().filter(|step| step.selection != Selection::Steady).count();
    if outside > 0 {
        let text = scene.get(if outside == 1 {
            Text::new("step does not count; see the steps", "个步未被采用，见“步”视图")
        } else {
            Text::new("steps do not count; see the steps", "个步未被采用，见“步”视图")
        });
        out.push(vec![piece(format!("{} {text}", units::count(outside as u64)), Role::Dim)]);
    }
    out
}

/// The findings that are not `shown` in a line each, with their positions, under their heading.
fn findings(scene: &Scene<'_>, capture: &Capture, shown: &[usize], width: usize) -> Vec<(Option<usize>, Vec<Line>)> {
    let title = match shown.is_empty() {
        true => Text::new("Findings", "发现"),
        false => Text::new("Further findings", "其他发现"),
    };
    let mut out = vec![(None, vec![vec![piece(scene.get(title), Role::Title)]])];
    for (at, finding) in capture.findings.iter().enumerate().filter(|(at, _)| !shown.contains(at)) {
        let title = rules::find(finding.rule).map_or("", |rule| scene.get(rule.doc().title));
        let line = [
            piece(format!("{} ", mark(finding.severity)), Role::Severity(finding.severity)),
            piece(format!("{} ", finding.rule), Role::Name),
            piece(title, Role::Strong),
            piece(format!(" — {}", phrase::plain(&finding.claim, scene.lang)), Role::Text),
        ];
        out.push((Some(at), prose::wrap(&line, width, ("", "  "))));
    }
    if capture.findings.is_empty() {
        out.push((None, prose::wrap(&[piece(super::findings::none(scene), Role::Dim)], width, ("", ""))));
    }
    if out.len() == 1 { Vec::new() } else { out }
}

/// How ready the platform is: the board and the matrix.
fn ready(scene: &Scene<'_>, capture: &Capture, width: usize) -> Vec<Line> {
    let [board, matrix] = readiness::rows(&capture.readiness);
    let mut out = board::lines(readiness::BOARD, &board, scene.lang, width);
    out.push(Line::new());
    out.extend(board::lines(readiness::MATRIX, &matrix, scene.lang, width));
    out.push(Line::new());
    out
}

/// The letter of a severity.
pub(super) fn mark(severity: Severity) -> char {
    match severity {
        Severity::Critical => 'C',
        Severity::High => 'H',
        Severity::Medium => 'M',
        Severity::Low => 'L',
        Severity::Info => 'i',
    }
}
