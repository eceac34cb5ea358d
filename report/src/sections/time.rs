//! Where the time went: every nanosecond of the steps that count has one bucket and one layer, so both tables add up.

use super::{Page, buckets, job, words};
use crate::{
    cells,
    document::{Align, Inlines, Table},
    idle::Idle,
    inlines, kernel_name,
    model::{ClassPart, RankPart},
    split::UNKNOWN,
    units,
};
use diagnosis::{
    analysis::Layer,
    i18n::{Text, Value},
};

/// Writes the layers and buckets of the main class.
pub(super) fn write(page: &mut Page<'_>) {
    page.heading(Text::new("Where the time went", "时间去向"));
    let leading = page.capture.leading_rank();
    let main = leading.and_then(|rank| rank.main_class().filter(|c| c.used > 0 && c.total > 0).map(|c| (rank, c)));
    let Some((rank, class)) = main else {
        page.paragraph(page.get(Text::new(
            "No step counts, so no time is attributed. The section above says why.",
            "没有可采用的步，因此没有时间归因，原因见上文。",
        )));
        return;
    };
    if page.capture.loss.forbids_shares() {
        page.paragraph(page.get(Text::new(
            "Not shown: what looks idle may be work that could not be read, so no part of a step has a known share.",
            "此处略去：看似空闲的时间可能是未能读取的工作，因此一步中任何部分的占比都未知。",
        )));
        return;
    }
    let about = page.fill(
        match page.is_window() {
            _ if rank.only_collectives => Text::new(
                "Of rank {rank} only collectives were kept: the tables are about the time from its first to its last one, mean over {n}, {ns} in all. What it does between them was not recorded.",
                "rank {rank} 只保留了集合通信：以下各表针对其首个到最后一个集合通信之间的时间，取 {n} 个的平均值，合计 {ns}。其间的活动未被记录。",
            ),
            true if rank.outside[0] > 0 => Text::new(
                "The tables are about {class} of rank {rank}: one window of {ns} from the start of the first device operation after loading and warm-up to the end of the last, because no steps were found.",
                "以下各表针对 rank {rank} 的 {class}：未找到步，取加载与预热之后的首个设备操作开始到最后一个设备操作结束的一个窗口，长 {ns}。",
            ),
            true => Text::new(
                "The tables are about {class} of rank {rank}: one window of {ns} from the start of the first device operation to the end of the last, because no steps were found.",
                "以下各表针对 rank {rank} 的 {class}：未找到步，取首个设备操作开始到最后一个设备操作结束的一个窗口，长 {ns}。",
            ),
            false => Text::new(
                "The tables are about class {class} of rank {rank}: mean over the steps that count ({n}), {ns} in all.",
                "以下各表针对 rank {rank} 的类别 {class}：取 {n} 个被采用的步的平均值，合计 {ns}。",
            ),
        },
        [
            ("class", Value::Raw(class.key.clone())),
            ("rank", Value::Count(u64::from(rank.rank))),
            ("n", Value::Count(class.used as u64)),
            ("ns", Value::Ns(class.total)),
        ],
    );
    page.paragraph(about);
    layers(page, rank, class);
    job::reassigned(page, class);
    by_bucket(page, rank, class);
    untraced(page, rank);
    idle(page, class);
    shadow(page, class);
    if rank.collectives.1 > 0 {
        page.paragraph(page.fill(
            Text::new(
                "{n} of {all} collectives: transfer and wait could only be told apart by comparing with the fast ones of the same kind (modelled, low confidence).",
                "{all} 次集合通信中有 {n} 次：只能通过与同类较快者比较来区分传输与等待（建模值，置信度低）。",
            ),
            [("n", Value::Count(rank.collectives.1)), ("all", Value::Count(rank.collectives.0))],
        ));
    }
}

/// Mean per step and share of the class, each rounded by itself.
fn shown(ns: i64, class: &ClassPart) -> [String; 2] {
    [units::tenths(units::mean_tenths(ns, class.used)), units::share_of(ns, class.total)]
}

fn sum_row(page: &Page<'_>, class: &ClassPart) -> [Inlines; 3] {
    let sum = Inlines::strong(page.get(Text::new("sum", "合计")));
    let steps = match page.is_window() {
        true => Inlines::new(),
        false => page.get(Text::new(" over ", " / ")) + page.steps(class.used as u64),
    };
    let mean = units::tenths(units::mean_tenths(class.total, class.used));
    [inlines![sum, " = ", units::exact_ns(class.total), steps], Inlines::strong(mean), Inlines::strong("100.0 %")]
}

fn layers(page: &mut Page<'_>, rank: &RankPart, class: &ClassPart) {
    let mut table = Table::new([
        (page.get(Text::new("layer", "层")), Align::Left),
        (page.get(Text::new("what it holds", "含义")), Align::Left),
        (page.per(Text::new("µs per step", "µs/步"), Text::new("µs in the window", "窗口内 µs")), Align::Right),
        (page.get(Text::new("share", "占比")), Align::Right),
    ]);
    for (layer, ns) in Layer::ALL.into_iter().zip(class.layers()) {
        let [mean, share] = match rank.knows(layer) {
            true => shown(ns, class),
            false => [UNKNOWN, UNKNOWN].map(str::to_owned),
        };
        table.row(cells![page.get(words::layer(layer)), page.get(words::layer_meaning(layer)), mean, share]);
    }
    let [sum, mean, share] = sum_row(page, class);
    table.row(cells![sum, "", mean, share]);
    page.table(page.get(Text::new("By layer", "按层")), table);
}

fn by_bucket(page: &mut Page<'_>, rank: &RankPart, class: &ClassPart) {
    let mut table = Table::new([
        (page.get(Text::new("bucket", "分类")), Align::Left),
        (page.get(Text::new("meaning", "含义")), Align::Left),
        (page.get(Text::new("layer", "层")), Align::Left),
        (page.per(Text::new("µs per step", "µs/步"), Text::new("µs in the window", "窗口内 µs")), Align::Right),
        (page.get(Text::new("share", "占比")), Align::Right),
    ]);
    let mut rows: Vec<_> = class.buckets.iter().collect();
    rows.sort_by(|a, b| a.layer.cmp(&b.layer).then(b.ns.cmp(&a.ns)).then_with(|| a.name.cmp(&b.name)));
    for row in rows {
        let [mean, share] = shown(row.ns, class);
        let meaning = page.get(match row.name.as_str() {
            "comm.transfer" if page.capture.ranks.len() < 2 => buckets::TRANSFER_OF_ONE_RANK,
            "comm.wait" if page.capture.ranks.len() < 2 => buckets::WAIT_OF_ONE_RANK,
            "unseen" if rank.only_collectives => buckets::UNSEEN_BETWEEN_COLLECTIVES,
            name => buckets::meaning(name),
        });
        table.row(cells![Inlines::name(&row.name), meaning, page.get(words::layer(row.layer)), mean, share]);
    }
    let [sum, mean, share] = sum_row(page, class);
    table.row(cells![sum, "", "", mean, share]);
    page.table(page.get(Text::new("By bucket", "按分类")), table);
}

/// Kinds of copies listed whose calls alone were recorded.
const UNTRACED: usize = 4;

/// Copies of which the capture holds only the calls.
fn untraced(page: &mut Page<'_>, rank: &RankPart) {
    if rank.untraced.is_empty() {
        return;
    }
    let items: Vec<Inlines> = rank
        .untraced
        .iter()
        .take(UNTRACED)
        .map(|copies| {
            let rate = copies.rate().unwrap_or_default();
            let args = [
                ("name", Value::Raw(copies.name.to_owned())),
                ("n", Value::Count(copies.count)),
                ("bytes", Value::Bytes(copies.bytes)),
                ("time", Value::Ns(copies.time)),
                ("rate", Value::BytesPerSecond(rate)),
            ];
            page.fill(
                Text::new("{name}: {n}, {bytes} in {time}, {rate}", "{name}：{n} 次，共 {bytes}，耗时 {time}，{rate}"),
                args,
            )
        })
        .collect();
    page.paragraph(page.get(Text::new(
        "Copies were not traced: what blocking copies take is the time of their calls, and the rate is what a call reaches at least. Pageable memory is copied slowly; a capture with copies tells which part is the transfer.",
        "未采集拷贝：阻塞拷贝的时间取其调用时间，速率为调用所达到的下限。可分页内存拷贝较慢；采集拷贝后可知其中传输所占部分。",
    )));
    page.list(items);
}

fn idle(page: &mut Page<'_>, class: &ClassPart) {
    let text = match &class.idle {
        None => return,
        Some(Idle::Gap { ns, before, preparing }) => {
            let calls = page.join(preparing.iter().map(|call| Inlines::name(call)));
            let args = [
                ("ns", Value::Ns(*ns)),
                ("share", Value::Share(*ns as f64 / class.total.max(1) as f64)),
                ("name", Value::Raw(kernel_name::short(before))),
            ];
            let text = page.fill(
                Text::new(
                    "The longest idle gap, {ns} or {share} of this time, ends with {name}.",
                    "最长的空闲间隙为 {ns}，占该时间的 {share}，结束于 {name}。",
                ),
                args,
            );
            let made = Text::new(" In it the host prepared code or graphs: ", "其间主机在准备代码或图：");
            if calls.is_empty() { text } else { inlines![text, page.get(made), calls, page.get(Text::new(".", "。"))] }
        }
        Some(Idle::Start { early, all }) => page.fill(
            Text::new(
                "Of {all} idle time, {early} lies in the first fifth of the time: the device waits while the host gets ahead, not throughout.",
                "空闲时间共 {all}，其中 {early} 位于前五分之一：设备是在等待主机领先，而不是一直空闲。",
            ),
            [("all", Value::Ns(all / class.used.max(1) as i64)), ("early", Value::Ns(early / class.used.max(1) as i64))],
        ),
    };
    page.paragraph(text);
}

fn shadow(page: &mut Page<'_>, class: &ClassPart) {
    let rows: Vec<_> = class.shadow.iter().filter(|(_, ns)| *ns > 0).collect();
    if rows.is_empty() {
        page.paragraph(page.get(Text::new(
            "Hidden time: none. No two kinds of device work ran at the same time.",
            "被掩盖的时间：无。没有两类设备工作同时执行。",
        )));
        return;
    }
    let mut table = Table::new([
        (page.get(Text::new("what was hidden", "被掩盖的内容")), Align::Left),
        (page.per(Text::new("µs per step", "µs/步"), Text::new("µs in the window", "窗口内 µs")), Align::Right),
    ]);
    for (shadow, ns) in rows {
        table.row(cells![page.get(words::shadow(*shadow)), units::tenths(units::mean_tenths(*ns, class.used))]);
    }
    page.table(
        page.get(Text::new(
            "Hidden time (inside the buckets above, not on top of them)",
            "被掩盖的时间（已包含在上表中，不另计）",
        )),
        table,
    );
}
