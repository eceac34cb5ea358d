//! Who owns the idle time: what the host was doing in the gaps.

use super::Page;
use crate::{
    cells,
    document::{Align, Inlines, Table},
    inlines,
    owners::IdleOwner,
    text, units,
};
use diagnosis::{
    analysis::owners::short,
    i18n::{Text, Value},
};

/// Groups that are shown.
const SHOWN: usize = 5;
/// Most characters of an owner's name.
const NAME: usize = 90;
/// Idle time below this share of the steps is not worth a section.
const WORTH: f64 = 0.01;

/// Writes the first groups of the leading rank.
pub(super) fn write(page: &mut Page<'_>) {
    if page.capture.loss.forbids_shares() {
        return;
    }
    let Some(rank) = page.capture.leading_rank().map(|rank| rank.rank) else { return };
    let rows: Vec<&IdleOwner> = page.capture.owners.iter().filter(|row| row.rank == rank).collect();
    let all: f64 = rows.iter().map(|row| row.share).sum();
    if all < WORTH {
        return;
    }
    page.heading(Text::new("Who owns the idle time", "空闲时间归谁"));
    let said = Text::new(
        "The device is idle for {all} of rank {rank}'s steps that count. A gap belongs to the innermost record of the launching thread that covers at least half of it.",
        "rank {rank} 被采用的步中设备有 {all} 的时间空闲。间隙归于下发线程上覆盖其至少一半的最内层记录。",
    );
    page.paragraph(page.fill(said, [("all", Value::Share(all)), ("rank", Value::Count(u64::from(rank)))]));
    let mut table = Table::new([
        (page.get(Text::new("what the host was doing", "主机在做什么")), Align::Left),
        (page.get(Text::new("bucket", "分类")), Align::Left),
        (page.get(Text::new("ends with", "结束于")), Align::Left),
        (page.per(Text::new("gaps per step", "间隙数/步"), Text::new("gaps", "间隙数")), Align::Right),
        (page.per(Text::new("µs per step", "µs/步"), Text::new("µs in the window", "窗口内 µs")), Align::Right),
        (page.get(Text::new("share", "占比")), Align::Right),
        (page.get(Text::new("longest, µs", "最长 µs")), Align::Right),
    ]);
    let micros = |ns| units::tenths(units::mean_tenths(ns, 1));
    let named = rows.iter().copied().filter(|row| row.bucket.is_some());
    for row in named.clone().take(SHOWN) {
        let bucket = row.bucket.as_deref().map(Inlines::name).unwrap_or_default();
        let ended = row.ended_by.as_deref().map(Inlines::name).unwrap_or_default();
        let numbers = [units::number(row.per_step), micros(row.ns), units::share(row.share), micros(row.longest)];
        let cells = cells![doing(page, row), bucket, ended];
        table.row(cells.into_iter().chain(numbers.map(Inlines::from)));
    }
    let rest: f64 = all - named.take(SHOWN).map(|row| row.share).sum::<f64>();
    page.table(page.get(Text::new("The largest groups of gaps", "最大的间隙组")), table);
    if rest >= WORTH {
        let said = Text::new("All other groups: {rest}.", "其余各组：{rest}。");
        page.paragraph(page.fill(said, [("rest", Value::Share(rest))]));
    }
}

/// Buckets of gaps that ended by themselves: what came next waited on the device.
const LAUNCHED: [&str; 6] =
    ["rt.launch_latency", "rt.unstarted", "rt.dispatch", "rt.graph_launch", "rt.graph_internal", "rt.device_dep"];

/// The owner, what it lies in, and what lies in it.
fn doing(page: &Page<'_>, row: &IdleOwner) -> Inlines {
    let name = |name: &String| Inlines::name(&text::cut(&short(name), NAME));
    let Some(owner) = &row.owner else {
        return page.get(match row.bucket.as_deref() {
            Some(bucket) if LAUNCHED.contains(&bucket) => {
                Text::new("nothing: the work was launched already", "无：工作已下发")
            }
            Some("idle.undecided" | "unattributed") => {
                Text::new("not known: no launch of what came next was recorded", "未知：未记录其后工作的下发")
            }
            _ => Text::new("nothing that was recorded", "无记录"),
        });
    };
    let mut out = Inlines::evidence(row.slices.iter().take(1).copied().collect(), name(owner));
    if row.wraps {
        out.push(page.aside(page.get(if row.children.is_empty() {
            Text::new("nothing narrower recorded", "无更具体的记录")
        } else {
            Text::new("nothing inside it has half of the gap", "其内没有占到间隙一半的记录")
        })));
    }
    if !row.around.is_empty() {
        let around = Inlines::joined(row.around.iter().map(name), " ← ");
        out.push(inlines![" ← ", around]);
    }
    if let Some((child, count)) = row.children.first().filter(|(_, count)| *count > 1) {
        let inside = page.get(Text::new("inside it", "其内"));
        out.push(page.aside(inlines![inside, " ", units::count(*count), " × ", name(child)]));
    }
    out
}
