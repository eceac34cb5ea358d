//! From one side to the other, a bar per difference.

use unicode_width::UnicodeWidthStr;

use super::{
    super::canvas::{Line, Style, fit, left, right},
    Both,
};
use crate::{
    diff::{Mover, What, movers, sections},
    sections::buckets,
    units,
};
use diagnosis::{
    compare::{Difference, waterfall::Basis},
    i18n::Text,
};

/// Movers at most.
const MOST: usize = 12;
/// Part of the longer step below which a difference is one of the others.
const LEAST: i64 = 200;
/// Narrowest bar that shows anything.
const BAR: usize = 10;

/// A bar of a waterfall.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What makes the difference, or a side.
    pub name: String,
    /// How much, with its unit.
    pub said: String,
    /// Where it begins and ends, as parts of the longest.
    pub ends: [f64; 2],
    /// `whole` of a side, `more` or `less` of a difference.
    pub kind: &'static str,
}

impl Both<'_> {
    /// What makes a difference, as words: what the device waits for instead of the name of a bucket.
    fn mover(&self, mover: &Mover, name: String) -> String {
        match &mover.what {
            What::Bucket(bucket) if !mover.waited => {
                let meaning = self.get(buckets::meaning(bucket));
                if meaning.is_empty() { name } else { meaning.to_owned() }
            }
            _ => name,
        }
    }

    /// What makes the difference, the largest first, and one row for all others: its name and what it takes on each side.
    fn rows(&self, difference: &Difference, room: usize) -> Vec<(String, [i64; 2])> {
        let longer = difference.waterfall.from.max(difference.waterfall.to);
        let movers: Vec<_> = movers(difference).into_iter().filter(|mover| mover.delta() != 0).collect();
        let weighty = movers.iter().filter(|mover| mover.delta().abs().saturating_mul(LEAST) >= longer).count();
        let listed = weighty.max(3).min(movers.len()).min(MOST).min(room.saturating_sub(4));
        let (first, rest) = movers.split_at(listed);
        let named = |mover: &Mover| self.mover(mover, sections::mover_name(self.report, mover, self.lang));
        let mut rows: Vec<_> = first.iter().map(|mover| (named(mover), mover.sides)).collect();
        if !rest.is_empty() {
            let sum = |n: usize| rest.iter().map(|mover| mover.sides[n]).sum::<i64>();
            let name = self.fill(Text::new("{n} others", "其余 {n} 项"), &[("n", rest.len().to_string())]);
            rows.push((name, [sum(0), sum(1)]));
        }
        rows
    }

    /// The same as bars between sums, from the first side to the second.
    pub(super) fn bars(&self, difference: &Difference) -> Vec<Bar> {
        let (from, to) = (difference.waterfall.from, difference.waterfall.to);
        let scale = units::Scale::of([from, to]);
        let rows = self.rows(difference, usize::MAX);
        let most = highest(&rows, from).max(to).max(1) as f64;
        let whole = |name: &String, ns: i64| Bar {
            name: name.clone(),
            said: format!("{} {}", scale.digits(ns), scale.name()),
            ends: [0.0, ns as f64 / most],
            kind: "whole",
        };
        let mut out = vec![whole(&self.names[0], from)];
        let mut at = from;
        for (name, [a, b]) in rows {
            let delta = b - a;
            let sign = if delta > 0 { "+" } else { "−" };
            let ends = [at.min(at + delta), at.max(at + delta)].map(|ns| (ns as f64 / most).clamp(0.0, 1.0));
            let kind = if delta > 0 { "more" } else { "less" };
            let said = format!("{sign}{} {}", scale.digits(delta.abs()), scale.name());
            out.push(Bar { name, said, ends, kind });
            at += delta;
        }
        out.push(whole(&self.names[1], to));
        out
    }

    /// From one side to the other, the largest difference first.
    pub(super) fn waterfall(&self, difference: &Difference, room: usize) -> Vec<Line> {
        let waterfall = &difference.waterfall;
        let (from, to) = (waterfall.from, waterfall.to);
        let scale = units::Scale::of([from, to]);
        let rows = self.rows(difference, room);
        let [a, b] = self.names.each_ref().map(|name| fit(name, 12));
        let width = self.width();
        let number = (a.width() + 2).max(b.width() + 2).min(width.saturating_sub(15) / 3).max(8);
        let [a, b] = [a, b].map(|name| fit(&name, number - 1));
        let numbers = 3 * number + 2;
        let names = rows.iter().map(|(name, ..)| name.width()).max().unwrap_or(0);
        let label = names.clamp(12, (width / 3).max(16)).min(width.saturating_sub(numbers).max(8));
        let bar = width.saturating_sub(label + numbers + 1);
        let bar = if bar < BAR { 0 } else { bar };
        let most = highest(&rows, from).max(to).max(1);
        let cell = |ns: i64| (i128::from(ns.clamp(0, most)) * bar as i128 / i128::from(most)) as usize;
        let head = self.fill(
            match waterfall.basis {
                Basis::Step => Text::new("per step, {unit}", "每步，{unit}"),
                Basis::Token => Text::new("per token, {unit}", "每 token，{unit}"),
            },
            &[("unit", scale.name().to_owned())],
        );
        let titles = [&a, &b, &self.get(Text::new("differs", "差")).to_owned()].map(|title| right(title, number));
        let mut out = vec![Line::of(Style::Dim, format!("{}{}", left(&fit(&head, label), label), titles.concat()))];
        let total = |name: &str, ns: i64, cells: [String; 3]| {
            let line = Line::of(Style::Strong, left(&fit(name, label), label)).then(Style::Strong, cells.concat());
            line.then(Style::Plain, "  ").then(Style::Tone(1), "▒".repeat(cell(ns)))
        };
        let blank = || right("", number);
        out.push(total(&self.names[0], from, [right(&scale.digits(from), number), blank(), blank()]));
        let mut at = from;
        for (name, sides) in &rows {
            let delta = &(sides[1] - sides[0]);
            let [own_a, own_b] = sides.map(|ns| right(&scale.digits(ns), number));
            let sign = if *delta > 0 { "+" } else { "−" };
            let differs = right(&format!("{sign}{}", scale.digits(delta.saturating_abs())), number);
            let (low, high) = (at.min(at + delta), at.max(at + delta));
            let (begin, end) = (cell(low), cell(high));
            let marks = match end - begin {
                _ if bar == 0 => String::new(),
                0 => "▌".to_owned(),
                cells => "█".repeat(cells),
            };
            let tone = if *delta > 0 { 0 } else { 2 };
            let line = Line::of(Style::Plain, left(&fit(name, label), label)).then(Style::Plain, own_a);
            let line = line.then(Style::Plain, own_b).then(Style::Strong, differs);
            out.push(
                line.then(Style::Plain, format!("  {}", " ".repeat(begin.min(bar.saturating_sub(1)))))
                    .then(Style::Tone(tone), marks),
            );
            at += delta;
        }
        let whole =
            right(&format!("{}{}", if to >= from { "+" } else { "−" }, scale.digits((to - from).abs())), number);
        out.push(total(&self.names[1], to, [blank(), right(&scale.digits(to), number), whole]));
        out
    }
}

/// The highest of the sums between which bars stand.
fn highest(rows: &[(String, [i64; 2])], from: i64) -> i64 {
    let next = |(at, most): (i64, i64), (_, [a, b]): &(String, [i64; 2])| (at + b - a, most.max(at + b - a));
    rows.iter().fold((from, from), next).1
}
