//! The classes and ranks beside the main one: a row each, or of a large job a row for each group of them and the ones that
//! differ.

use std::collections::BTreeMap;

use super::{Page, words};
use crate::{
    cells,
    document::{Align, Inlines, Table},
    model::{ClassPart, RankPart},
    split::Split,
    units,
};
use diagnosis::{
    analysis::Layer,
    i18n::{Text, Value},
};

/// Rows up to which each has its own on the first pages; a node has eight devices, and four nodes fit a screen.
const MANY: usize = 32;
/// Groups and ranks of a group that differ which are shown of a large job.
const SHOWN: usize = 8;
/// Share by which the step of a rank differs from the median of its group where it is shown; own value, above the noise between
/// equal ranks.
const DIFFERS: f64 = 0.05;

/// A class of a rank and how its time divides.
struct Other<'r> {
    rank: &'r RankPart,
    class: &'r ClassPart,
    split: Split,
}

impl Other<'_> {
    /// Mean step, ns.
    fn mean(&self) -> f64 {
        self.split.total as f64 / self.split.steps.max(1) as f64
    }
}

/// Writes one row for every other class and rank.
pub(super) fn write(page: &mut Page<'_>) {
    let rest = rest(page);
    let rows = rest.iter().map(|other| (other.rank.rank.to_string(), other)).collect();
    table(page, Text::new("rank", "rank"), rows);
}

/// Writes the same of a small job; of a large one the median rank of each class and those that differ from it.
pub(super) fn write_groups(page: &mut Page<'_>) {
    if rest(page).len() <= MANY {
        return write(page);
    }
    let rest = rest(page);
    let mut groups: BTreeMap<&str, Vec<&Other<'_>>> = BTreeMap::new();
    rest.iter().for_each(|other| groups.entry(other.class.key.as_str()).or_default().push(other));
    let mut groups: Vec<Vec<&Other<'_>>> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    let mut rows = Vec::new();
    for group in groups.iter_mut().take(SHOWN) {
        group.sort_by(|a, b| a.mean().total_cmp(&b.mean()));
        let Some(median) = group.get(group.len() / 2) else { continue };
        rows.push((format!("{} ({}×)", median.rank.rank, group.len()), *median));
        let differs = |other: &&&Other<'_>| (other.mean() - median.mean()).abs() > DIFFERS * median.mean();
        let mut outliers: Vec<&Other<'_>> = group.iter().filter(differs).copied().collect();
        outliers.sort_by(|a, b| (b.mean() - median.mean()).abs().total_cmp(&(a.mean() - median.mean()).abs()));
        rows.extend(outliers.into_iter().take(SHOWN).map(|other| (other.rank.rank.to_string(), other)));
    }
    table(page, Text::new("rank", "rank"), rows);
    page.paragraph(page.fill(
        Text::new(
            "{n} classes and ranks: of each class the median rank, with how many have that class, and the ranks whose step differs from it by more than {by}. `--full` lists all.",
            "共 {n} 个类别与 rank：每类给出中位 rank 及该类的数量，以及步时与其相差超过 {by} 的 rank。`--full` 列出全部。",
        ),
        [("n", Value::Count(rest.len() as u64)), ("by", Value::Share(DIFFERS))],
    ));
}

/// Every other class that counts.
fn rest<'r>(page: &Page<'r>) -> Vec<Other<'r>> {
    let capture = page.capture;
    let leading = capture.leading_rank();
    let is_told = leading.and_then(RankPart::main_class).is_some_and(|class| class.used > 0 && class.total > 0);
    if !is_told || capture.loss.forbids_shares() {
        return Vec::new();
    }
    let leading = leading.map(|rank| (rank.rank, rank.main));
    let classes =
        capture.ranks.iter().flat_map(|rank| rank.classes.iter().enumerate().map(move |(i, class)| (rank, i, class)));
    let others = classes.filter(|(rank, i, class)| class.used > 0 && leading != Some((rank.rank, Some(*i))));
    others.map(|(rank, _, class)| Other { rank, class, split: Split::of(capture, rank, class) }).collect()
}

fn table(page: &mut Page<'_>, first: Text, rows: Vec<(String, &Other<'_>)>) {
    if rows.is_empty() {
        return;
    }
    let mut table = Table::new([
        (page.get(first), Align::Right),
        (page.get(Text::new("class", "类别")), Align::Left),
        (page.get(Text::new("steps used", "采用步数")), Align::Right),
        (page.get(words::layer(Layer::Operator)), Align::Right),
        (page.get(words::layer(Layer::Runtime)), Align::Right),
        (page.get(words::layer(Layer::Communication)), Align::Right),
        (page.get(words::layer(Layer::Measurement)), Align::Right),
        (page.get(Text::new("sum", "合计")), Align::Right),
    ]);
    let summed = rows.iter().any(|(_, other)| other.rank.only_collectives);
    for (name, Other { class, split, .. }) in rows {
        let head = cells![name, Inlines::name(&class.key), units::count(class.used as u64)];
        table.row(head.into_iter().chain(split.means().map(Inlines::from)).chain(cells![split.whole()]));
    }
    page.table(page.get(Text::new("Other classes and ranks, µs per step", "其他类别与 rank，µs/步")), table);
    if summed {
        page.paragraph(page.get(Text::new(
            "Where only the collectives of a rank were kept, its row is what the profiler summed of its steps: computing, exposed communication and free time; without such sums it is the time from its first collective to its last one. – was not recorded.",
            "只保留了集合通信的 rank：其行为剖析器对各步的合计（计算、未掩盖通信与空闲）；没有此类合计时，为首个到最后一个集合通信之间的时间。– 表示未记录。",
        )));
    }
}
