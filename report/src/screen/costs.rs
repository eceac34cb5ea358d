//! The costs: what each takes from a step, what the step becomes without it, and what to do.

use super::{
    Screen,
    canvas::{Line, Style, fit, left, right, wrap_at_most},
    say,
};
use crate::{sections::words, units};
use diagnosis::{
    analysis::Layer,
    cause::statement::REST,
    diagnose::{Finding, Method, Severity, costs::STATED, rules},
    i18n::{Lang, Message, Text, Value},
};

/// Costs on the screen.
const MOST: usize = 5;
/// Columns before the words of a cost: its number.
const INDENT: usize = 3;
/// Columns of the bar of what a fix saves.
const BAR: usize = 8;

/// A line, and where it begins a cost the position of the finding.
pub(super) type Told = (Option<usize>, Line);

/// What costs most, in the order of the findings, with their positions: what promises a gain, and what is as large and has no known
/// change.
pub(super) fn costs<'a>(screen: &Screen<'a>) -> impl Iterator<Item = (usize, &'a Finding)> + use<'a> {
    let of_run = |(_, f): &(usize, &Finding)| f.layer != Layer::Measurement;
    let worth = |f: &Finding| f.severity > Severity::Info;
    let large = |f: &Finding| f.rule != REST && f.cost as f64 >= STATED * f.estimate.from as f64;
    screen.capture.findings.iter().enumerate().filter(of_run).filter(move |(_, f)| worth(f) || large(f)).take(MOST)
}

/// How many costs, and lines of what the first, the second and the others rest on and of what to do: the first keeps its words longest.
const DETAIL: [(usize, [(usize, usize); 3]); 10] = [
    (MOST, [(3, 2), (3, 2), (2, 1)]),
    (MOST, [(3, 2), (2, 1), (1, 1)]),
    (MOST, [(3, 1), (2, 1), (1, 0)]),
    (MOST, [(3, 1), (2, 0), (0, 0)]),
    (4, [(3, 1), (2, 0), (0, 0)]),
    (3, [(3, 1), (2, 0), (0, 0)]),
    (3, [(2, 1), (0, 0), (0, 0)]),
    (2, [(1, 0), (0, 0), (0, 0)]),
    (2, [(0, 0), (0, 0), (0, 0)]),
    (1, [(0, 0), (0, 0), (0, 0)]),
];

/// Whether there are any.
pub(super) fn any(screen: &Screen<'_>) -> bool {
    costs(screen).next().is_some()
}

/// The rule of the first cost.
pub(super) fn first(screen: &Screen<'_>) -> Option<&'static str> {
    costs(screen).next().map(|(_, finding)| finding.rule)
}

/// The sentence for a capture without costs.
pub(super) const NONE: Text = Text::new("No cost of 5 % or more has a known cause.", "没有 5% 以上且原因已知的成本。");

/// The unit of all their times.
pub(super) fn scale(all: &[&Finding]) -> units::Scale {
    units::Scale::of(all.iter().flat_map(|f| [amount(f), f.estimate.to_low, f.estimate.to_high]))
}

/// The table in at most `room` lines: of every cost its title, of the first ones what it rests on and what to do as well.
pub(super) fn lines(screen: &Screen<'_>, room: usize) -> Vec<Told> {
    let (places, all): (Vec<usize>, Vec<&Finding>) = costs(screen).unzip();
    if all.is_empty() {
        return vec![(None, Line::of(Style::Plain, screen.get(NONE)))];
    }
    let scale = scale(&all);
    // Most words first; fewer until they fit.
    let fits = DETAIL.iter().find_map(|(costs, [first, second, others])| {
        let each = |(n, f): (usize, &&Finding)| {
            let lines = match n {
                0 => first,
                1 => second,
                _ => others,
            };
            // The same advice once.
            let said =
                |other: &&Finding| other.remedy.first().map(|r| &r.text_en) == f.remedy.first().map(|r| &r.text_en);
            let again = all.iter().take(n).any(said);
            cost(screen, n, f, scale, if again { (lines.0, 0) } else { *lines })
        };
        let first = |n: usize| places.get(n).copied();
        let marked = |own: (usize, &&Finding)| {
            let begins = first(own.0);
            each(own).into_iter().enumerate().map(move |(at, line)| (begins.filter(|_| at == 0), line))
        };
        let lines: Vec<Told> = all.iter().take(*costs).enumerate().flat_map(marked).collect();
        (lines.len() < room).then_some(lines)
    });
    let mut out = vec![(None, header(screen, scale))];
    out.extend(fits.unwrap_or_default());
    out
}

/// Columns of the numbers after a cost's title.
struct Numbers {
    after: usize,
    saves: usize,
    sure: usize,
}

const NUMBERS: Numbers = Numbers { after: 12, saves: 9, sure: 7 };

/// Columns below which the numbers of a cost stand on a line of their own.
const NARROW: usize = 72;

fn is_narrow(screen: &Screen<'_>) -> bool {
    screen.width() < NARROW
}

/// Columns of what stands before them.
fn words_width(screen: &Screen<'_>) -> usize {
    if is_narrow(screen) {
        return screen.width();
    }
    let own = NUMBERS.after + 1 + BAR + 1 + NUMBERS.saves + 2 + NUMBERS.sure + 1;
    screen.width().saturating_sub(own)
}

/// Titles of the columns: the cost, what is left after the fix, what that saves, and how sure that is.
pub(super) fn titles(screen: &Screen<'_>) -> [&'static str; 4] {
    let [cost, after] = match screen.is_window() {
        true => [Text::new("cost", "开销"), Text::new("after the fix", "修复后")],
        false => [Text::new("cost per step", "每步开销"), Text::new("step after the fix", "修复后步时")],
    };
    [cost, after, Text::new("saves", "节省"), Text::new("sure", "置信度")].map(|text| screen.get(text))
}

fn header(screen: &Screen<'_>, scale: units::Scale) -> Line {
    let [cost, after, saves, sure] = titles(screen);
    let unit = format!("{cost}, {}", scale.name());
    let title = format!("{}{unit}", " ".repeat(INDENT));
    if is_narrow(screen) {
        return Line::of(Style::Dim, fit(&title, screen.width()));
    }
    let numbers = format!(
        "{}  {}  {}",
        right(after, NUMBERS.after + 1 + BAR),
        right(saves, NUMBERS.saves - 1),
        left(sure, NUMBERS.sure),
    );
    Line::of(Style::Dim, format!("{}{numbers}", left(&fit(&title, words_width(screen)), words_width(screen))))
}

/// What a finding takes from a step, ns: the cost that it names or the time that its change removes, else what that brings.
pub(super) fn amount(finding: &Finding) -> i64 {
    let most = finding.estimate.from - finding.estimate.to_low;
    Some(finding.cost.max(finding.claimed)).filter(|ns| *ns > 0).unwrap_or(most)
}

/// Part of a cost that the claim of the rule which names it may miss before the cost speaks for itself; heuristic.
const MISSED: f64 = 0.25;

/// The sentence of a finding: that of the cost that it names if the cost is much larger than what the rule itself claims.
fn claim_of(finding: &Finding) -> &Message {
    let own = finding.evidence.first().filter(|fact| fact.value == Value::Ns(finding.cost) && finding.cost > 0);
    let larger = finding.cost as f64 > (1.0 + MISSED) * finding.claimed as f64;
    own.filter(|_| larger && finding.claimed > 0).map_or(&finding.claim, |fact| &fact.what)
}

/// Part of a cost by which a fix saves more before that needs a word; heuristic.
const BEYOND: f64 = 0.10;

/// What else the fix saves, where that is more than the cost; or the finding that is about the same time.
fn beside(screen: &Screen<'_>, finding: &Finding) -> String {
    const LAUNCHES: Text = Text::new(" The gain includes their launches.", "收益含其下发。");
    const AROUND: Text = Text::new(" The gain includes idle time around it.", "收益含其前后的空闲。");
    const SAME: Text = Text::new(" It is the same time as that of {rule}.", "与 {rule} 为同一段时间。");
    let most = finding.estimate.from - finding.estimate.to_low;
    let beyond = finding.estimate.method != Method::None && most as f64 > (1.0 + BEYOND) * amount(finding) as f64;
    match (beyond, finding.layer, finding.same_time_as) {
        (true, Layer::Operator, _) => screen.get(LAUNCHES).to_owned(),
        (true, ..) => screen.get(AROUND).to_owned(),
        (false, _, Some(rule)) => {
            say::message(&Message::new(SAME, [("rule", Value::Raw(rule.to_owned()))]), "", screen.lang)
        }
        _ => String::new(),
    }
}

/// Which rank a finding is about, where it is another than that of the screen.
fn elsewhere(screen: &Screen<'_>, finding: &Finding) -> String {
    let Some(place) = screen.capture.verdict.place.as_ref() else { return String::new() };
    let other = match finding.ranks.as_slice() {
        [rank] => *rank,
        // Of several ranks, the one whose step the figures are of.
        _ if finding.estimate.from != place.mean => finding.selected_on,
        _ => place.rank,
    };
    match screen.lang {
        _ if other == place.rank => String::new(),
        Lang::En => format!("On rank {other}: "),
        Lang::Zh => format!("rank {other}："),
    }
}

/// What it rests on, in words.
pub(super) fn claimed(screen: &Screen<'_>, finding: &Finding) -> String {
    let claimed = say::message(claim_of(finding), &finding.class, screen.lang);
    let stop = if claimed.ends_with(['.', '。']) { "" } else { screen.get(Text::new(".", "。")) };
    let also = beside(screen, finding);
    let stop = if also.is_empty() { "" } else { stop };
    format!("{}{claimed}{stop}{also}", elsewhere(screen, finding))
}

fn cost(
    screen: &Screen<'_>,
    n: usize,
    finding: &Finding,
    scale: units::Scale,
    (claim, remedy): (usize, usize),
) -> Vec<Line> {
    let width = screen.width();
    let title = rules::find(finding.rule).map_or("", |rule| screen.get(rule.doc().title));
    let claimed = claimed(screen, finding);
    let title = if title.is_empty() { claimed.clone() } else { title.to_owned() };
    let name = match screen.lang {
        Lang::En => format!(" ({})", finding.rule),
        Lang::Zh => format!("（{}）", finding.rule),
    };
    let size = format!("{} ", right(&scale.digits(amount(finding)), 6));
    let room = words_width(screen).saturating_sub(INDENT + size.len() + name.len());
    let words = format!("{}{name}", fit(&title, room));
    let mut line = Line::of(Style::Strong, left(&format!("{}", n + 1), INDENT));
    line.push(Style::Strong, size);
    line.push(Style::Strong, left(&words, words_width(screen).saturating_sub(line.width())));
    let mut out = Vec::new();
    if is_narrow(screen) {
        out.push(line);
        out.extend(below(screen, finding, scale));
    } else {
        numbers(screen, &mut line, finding, scale);
        out.push(line);
    }
    let indent = " ".repeat(INDENT);
    let inside = width.saturating_sub(INDENT);
    out.extend(
        wrap_at_most(&claimed, inside, claim).into_iter().map(|l| Line::of(Style::Plain, format!("{indent}{l}"))),
    );
    if let Some(advice) = finding.remedy.first().filter(|_| remedy > 0) {
        let advice = if screen.lang == Lang::En { &advice.text_en } else { &advice.text_zh };
        let advice = say::plain(&format!("→ {advice}"));
        out.extend(
            wrap_at_most(&advice, inside, remedy).into_iter().map(|l| Line::of(Style::Plain, format!("{indent}{l}"))),
        );
    }
    out
}

/// The step after the fix, and the share that it saves; `None` where nothing is promised.
pub(super) fn promised(finding: &Finding, scale: units::Scale) -> Option<(String, String)> {
    let estimate = &finding.estimate;
    if estimate.method == Method::None {
        return None;
    }
    let range = |low: String, high: String| if low == high { low } else { format!("{low}–{high}") };
    let after = range(scale.digits(estimate.to_low), scale.digits(estimate.to_high));
    let (least, most) = (estimate.least_gain_share().max(0.0), estimate.max_gain_share().max(0.0));
    let percent =
        |share: f64| if most >= 0.0995 { format!("{:.0}", share * 100.0) } else { format!("{:.1}", share * 100.0) };
    let saves = match least > 0.0 {
        true => range(percent(least), percent(most)),
        false => format!("≤{}", percent(most)),
    };
    Some((after, saves))
}

/// The same in words on a line of its own.
fn below(screen: &Screen<'_>, finding: &Finding, scale: units::Scale) -> Option<Line> {
    let (after, saves) = promised(finding, scale)?;
    let sure = screen.get(words::confidence(finding.confidence));
    let said = match screen.lang {
        Lang::En => format!("{after} {} after, saves {saves} %, {sure}", scale.name()),
        Lang::Zh => format!("修复后 {after} {}，节省 {saves} %，{sure}", scale.name()),
    };
    let room = screen.width().saturating_sub(INDENT);
    Some(Line::of(Style::Tone(0), format!("{}{}", " ".repeat(INDENT), fit(&said, room))))
}

/// The step after the fix, a bar of what it saves, and how sure that is.
fn numbers(screen: &Screen<'_>, line: &mut Line, finding: &Finding, scale: units::Scale) {
    let Some((after, saves)) = promised(finding, scale) else { return };
    let most = finding.estimate.max_gain_share().max(0.0);
    let cells = (most * BAR as f64 * 2.0).round() as usize;
    let bar = format!("{}{}", "█".repeat(cells / 2), if cells % 2 == 1 { "▌" } else { "" });
    line.push(Style::Plain, format!("{} ", right(&after, NUMBERS.after)));
    line.push(Style::Tone(0), left(&bar, BAR + 1));
    line.push(Style::Plain, right(&format!("{saves} %"), NUMBERS.saves));
    line.push(Style::Plain, format!("  {}", screen.get(words::confidence(finding.confidence))));
}
