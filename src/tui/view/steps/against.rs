//! A step against the median one of its class, bucket by bucket; what the two differ by adds up exactly.

use std::collections::BTreeMap;

use model::Ns;
use ratatui::{buffer::Buffer, layout::Rect};

use crate::tui::{
    text,
    theme::Role,
    view::{Scene, initial},
    widget::table::{self, Cell, Column},
};
use diagnosis::{
    analysis::{Bucket, Rank, Selection, Step},
    i18n::{Lang, Text},
};
use report::{document::Align, units};

/// Cells of a time to the nanosecond.
const TIME: u16 = 15;

/// A step and the one that it is held against.
pub struct Against<'a> {
    step: &'a Step,
    median: &'a Step,
    /// ns of each bucket in the step and in the median one, the largest difference first.
    rows: Vec<(Bucket, [Ns; 2])>,
}

/// The median step of a class: of the steps that count, of all where none does.
pub fn median(rank: &Rank, class: usize) -> Option<&Step> {
    let of_class = || rank.steps.iter().filter(|step| step.class == class);
    let class = rank.classes.get(class)?;
    let far = |step: &&Step| (step.window.len().abs_diff(class.p50), step.index);
    let told = class.jitter.as_ref().map(|jitter| jitter.median);
    of_class()
        .find(|step| Some(step.index) == told)
        .or_else(|| of_class().filter(|step| step.selection == Selection::Steady).min_by_key(far))
        .or_else(|| of_class().min_by_key(far))
}

impl<'a> Against<'a> {
    /// Holds a step against the median one of its class.
    pub fn of(rank: &'a Rank, step: &'a Step) -> Option<Self> {
        let median = median(rank, step.class)?;
        let mut both: BTreeMap<Bucket, [Ns; 2]> = BTreeMap::new();
        for (side, of) in [step, median].into_iter().enumerate() {
            for (bucket, ns) in &of.buckets {
                if let Some(sum) = both.entry(*bucket).or_default().get_mut(side) {
                    *sum += ns;
                }
            }
        }
        let mut rows: Vec<(Bucket, [Ns; 2])> = both.into_iter().filter(|(_, sides)| *sides != [0; 2]).collect();
        rows.sort_by_key(|(_, [own, median])| std::cmp::Reverse(((own - median).abs(), own + median)));
        Some(Self { step, median, rows })
    }

    fn title(&self, scene: &Scene<'_>) -> String {
        let (own, median) = (self.step.index, self.median.index);
        match (own == median, scene.lang) {
            (true, Lang::En) => format!("step {own} is the median step of its class"),
            (true, Lang::Zh) => format!("步 {own} 即其类别的中位步"),
            (false, Lang::En) => format!("step {own} against step {median}, the median one of its class"),
            (false, Lang::Zh) => format!("步 {own} 与其类别的中位步 {median} 对比"),
        }
    }

    /// Names of the buckets with both times and their difference, in ns, and the sum of all.
    pub fn text(&self, labels: &[String]) -> String {
        let line = |name: &str, [own, median]: [Ns; 2]| format!("{name}\t{own}\t{median}\t{}", own - median);
        let head = format!("\tstep {} ns\tmedian step {} ns\tdifference ns", self.step.index, self.median.index);
        let rows = self.rows.iter().map(|(bucket, sides)| line(&bucket.name(labels), *sides));
        let all = line("step", self.whole());
        std::iter::once(head).chain(rows).chain([all]).collect::<Vec<_>>().join("\n")
    }

    fn whole(&self) -> [Ns; 2] {
        [self.step, self.median].map(|step| step.window.len())
    }

    /// Lines that it takes to show all of it.
    pub fn height(&self) -> u16 {
        u16::try_from(self.rows.len()).unwrap_or(u16::MAX).saturating_add(3)
    }

    /// Draws it; what has no room is one row.
    pub fn draw(&self, scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
        let Some(room) = usize::from(area.height).checked_sub(3).filter(|room| *room > 0) else { return };
        text::put(buf, (area.x + 2, area.y), &self.title(scene), area.width, scene.theme.style(Role::Title));
        let column = |title: Text, align, width| Column { title: scene.get(title).to_owned(), align, width };
        let columns = [
            column(Text::new("", ""), Align::Left, 1),
            column(Text::new("bucket", "归因"), Align::Left, 0),
            column(Text::new("this step", "此步"), Align::Right, TIME),
            column(Text::new("median step", "中位步"), Align::Right, TIME),
            column(Text::new("difference", "差值"), Align::Right, TIME + 1),
        ];
        let labels = scene.look.analysis().map_or(&[][..], |analysis| &analysis.host_labels);
        let cells = |mark: Cell, name: Cell, [own, median]: [Ns; 2]| -> Vec<Cell> {
            let role = if own > median { Role::Warn } else { Role::Text };
            let times = [own, median].map(|ns| (units::exact_ns(ns), Role::Text));
            let [own_cell, median_cell] = times;
            vec![mark, name, own_cell, median_cell, (units::signed_ns(own - median), role)]
        };
        let row = |(bucket, sides): &(Bucket, [Ns; 2])| {
            let layer = bucket.layer();
            let name = (text::safe(&bucket.name(labels)), Role::Name);
            cells((initial(layer).to_string(), Role::Layer(layer)), name, *sides)
        };
        let shown = if self.rows.len() > room { room - 1 } else { self.rows.len() };
        let (first, rest) = self.rows.split_at(shown);
        let mut lines: Vec<Vec<Cell>> = first.iter().map(row).collect();
        if !rest.is_empty() {
            let sum = rest.iter().fold([0; 2], |sum: [Ns; 2], (_, sides)| [sum[0] + sides[0], sum[1] + sides[1]]);
            let name = match scene.lang {
                Lang::En => format!("{} others", rest.len()),
                Lang::Zh => format!("其余 {} 项", rest.len()),
            };
            lines.push(cells((String::new(), Role::Dim), (name, Role::Dim), sum));
        }
        let all = scene.get(Text::new("the step", "整步")).to_owned();
        lines.push(cells((String::new(), Role::Dim), (all, Role::Strong), self.whole()));
        let below = Rect { y: area.y + 1, height: area.height - 1, ..area };
        table::still(&columns, &lines, scene.theme, below, buf);
    }
}
