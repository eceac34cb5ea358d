//! Two link tests for people.

use super::{LinkReport, SLOW, name, rate, slow_args};
use crate::{
    cells,
    document::{Align, Document, Inlines, Table},
    inlines,
    sections::Page,
    text, units,
};
use diagnosis::{
    i18n::{Lang, Text, Value},
    link_test::{
        Series,
        beside::{EQUAL, Pair, Row},
    },
};

type LinkPage<'a> = Page<'a, LinkReport>;

/// Sizes listed of a collective; all are in the JSON report.
const LISTED: usize = 64;
/// Names of the sides.
const SIDES: [&str; 2] = ["A", "B"];

/// The whole comparison.
pub(super) fn report(report: &LinkReport, lang: Lang) -> Document {
    let mut page = Page { lang, capture: report, out: Document::new() };
    page.out.heading(1, page.get(Text::new("B beside A: links under test", "B 与 A 的对比：链路测试")));
    let line = |(letter, head): (&str, &crate::diff::Head)| {
        let device = head.device.as_deref().map(|device| page.aside(Inlines::name(device))).unwrap_or_default();
        inlines![Inlines::strong(letter), page.colon(), Inlines::quoted(&head.name, text::PHRASE), device]
    };
    let lines: Vec<Inlines> = SIDES.into_iter().zip(&report.heads).map(line).collect();
    page.list(lines);
    page.heading(Text::new("The answer", "结论"));
    if report.beside.pairs.is_empty() {
        page.title(page.get(Text::new(
            "No collective was measured on both sides with as many ranks, the same element type and a size in common: test one side again as the other was.",
            "两侧没有相同 rank 数、元素类型且大小重合的集合通信：请按另一侧的设置重测一侧。",
        )));
    }
    report.beside.pairs.iter().for_each(|pair| answer(&mut page, pair));
    report.beside.pairs.iter().for_each(|pair| table(&mut page, pair));
    if !report.beside.pairs.is_empty() {
        page.paragraph(page.tell(
            Text::new(
                "Times count as equal below {least} of difference. Of repeats the middle one stands; what single runs differ by is not known.",
                "时间相差不足 {least} 视为相同。重复测量取居中的一次；单次运行之间的波动未知。",
            ),
            [("least", Value::Raw(units::share(EQUAL)))],
        ));
    }
    links(&mut page);
    alone(&mut page);
    page.out
}

/// What is said of one collective.
fn answer(page: &mut LinkPage<'_>, pair: &Pair) {
    let what = name(&pair.series[0], page.lang);
    let said = match pair.most() {
        Some(row) => differs(page, row),
        None => page.get(Text::new("no difference is shown at any size", "各大小均未见差异")),
    };
    let slower = page.capture.beside.slower_link().map(|(side, slow)| {
        let side = SIDES.get(side).copied().unwrap_or_default();
        inlines!["; ", side, page.colon(), page.fill(SLOW, slow_args(slow))]
    });
    page.title(inlines![what, page.colon(), said, slower.unwrap_or_default(), page.stop()]);
    let mut lines = Vec::new();
    for ((letter, series), published) in SIDES.into_iter().zip(&pair.series).zip(&page.capture.published) {
        lines.push(inlines![letter, page.colon(), curve(page, series, published.as_ref().map(|link| link.gb_per_s))]);
    }
    page.list(lines);
}

/// `B is 7.6 times slower at 8 GiB: 39 657 µs, 300 866 µs`.
fn differs(page: &LinkPage<'_>, row: &Row) -> Inlines {
    let ratio = row.ratio();
    let text = match ratio > 1.0 {
        true => Text::new(
            "B is {times} times slower at {size} ({a}, {b})",
            "在 {size} 处，B 的耗时为 A 的 {times} 倍（{a}、{b}）",
        ),
        false => Text::new(
            "B is {times} times faster at {size} ({a}, {b})",
            "在 {size} 处，A 的耗时为 B 的 {times} 倍（{a}、{b}）",
        ),
    };
    let [a, b] = row.sides.map(|side| Value::Raw(units::time(side.time)));
    let times = ratio.max(1.0 / ratio);
    let digits = if times < 2.0 { format!("{times:.2}") } else { format!("{times:.1}") };
    page.tell(text, [("times", Value::Raw(digits)), ("size", Value::Raw(units::bytes(row.bytes))), ("a", a), ("b", b)])
}

/// Plateau, knee and start of a side.
fn curve(page: &LinkPage<'_>, series: &Series, published: Option<f64>) -> Inlines {
    let mut parts = Vec::new();
    if let Some(plateau) = series.plateau() {
        let of = published.filter(|_| plateau.gb_per_s > 0.0).map(|link| {
            page.aside(page.tell(
                Text::new("{share} of the published {link} GB/s", "公开值 {link} GB/s 的 {share}"),
                [
                    ("share", Value::Raw(units::share(plateau.gb_per_s / link))),
                    ("link", Value::Raw(units::number(link))),
                ],
            ))
        });
        let said = page.tell(
            Text::new("plateau {rate} GB/s at {size}", "平台 {rate} GB/s（{size}）"),
            [("rate", Value::Raw(rate(Some(plateau.gb_per_s)))), ("size", Value::Raw(units::bytes(plateau.bytes)))],
        );
        parts.push(inlines![said, of.unwrap_or_default()]);
    }
    if let Some(knee) = series.knee() {
        let text = match series.starts_below_the_knee() {
            true => Text::new("knee {size}", "拐点 {size}"),
            false => Text::new("knee at or below {size}", "拐点不大于 {size}"),
        };
        parts.push(page.tell(text, [("size", Value::Raw(units::bytes(knee.bytes)))]));
    }
    if let Some((bytes, time)) = series.smallest() {
        parts.push(page.tell(
            Text::new("smallest size {size} {time}", "最小消息 {size} {time}"),
            [("size", Value::Raw(units::bytes(bytes))), ("time", Value::Raw(units::time(time)))],
        ));
    }
    page.join(parts)
}

fn table(page: &mut LinkPage<'_>, pair: &Pair) {
    let place = pair.rows.iter().any(|row| row.in_place);
    let mut titles = vec![(page.get(Text::new("size", "大小")), Align::Right)];
    if place {
        titles.push((page.get(Text::new("in place", "原地")), Align::Left));
    }
    titles.extend([
        ("A".into(), Align::Right),
        ("B".into(), Align::Right),
        ("B/A".into(), Align::Right),
        (page.get(Text::new("A bus, GB/s", "A 总线，GB/s")), Align::Right),
        (page.get(Text::new("B bus, GB/s", "B 总线，GB/s")), Align::Right),
        (page.get(Text::new("reading", "判断")), Align::Left),
    ]);
    let mut table = Table::new(titles);
    for row in pair.rows.iter().take(LISTED) {
        let [a, b] = row.sides;
        let reading = match (row.differs(), row.ratio() > 1.0) {
            (false, _) => Text::new("equal", "相同"),
            (true, true) => Text::new("B is slower", "B 更慢"),
            (true, false) => Text::new("B is faster", "B 更快"),
        };
        let mut cells: Vec<Inlines> = cells![units::bytes(row.bytes)].into();
        if place {
            cells.push(page.get(if row.in_place { Text::new("yes", "是") } else { Text::new("no", "否") }));
        }
        cells.extend(cells![
            units::micros(a.time),
            units::micros(b.time),
            units::ratio(row.ratio()),
            rate(a.busbw),
            rate(b.busbw),
            page.get(reading)
        ]);
        table.row(cells);
    }
    page.table(name(&pair.series[0], page.lang), table);
    if let Some(more) = pair.rows.len().checked_sub(LISTED).filter(|more| *more > 0) {
        page.paragraph(page.fill(
            Text::new("{n} further rows are in the JSON report.", "另有 {n} 行，见 JSON 报告。"),
            [("n", Value::Count(more as u64))],
        ));
    }
}

/// The links of both.
fn links(page: &mut LinkPage<'_>) {
    let [a, b] = &page.capture.beside.links;
    let mut table = Table::new([
        (page.get(Text::new("links", "链路")), Align::Left),
        ("A".into(), Align::Right),
        ("B".into(), Align::Right),
    ]);
    let mut any = false;
    let kinds: std::collections::BTreeSet<&String> = a.fastest.keys().chain(b.fastest.keys()).collect();
    for kind in kinds {
        let of = |links: &diagnosis::link_test::Links| {
            let fastest = links.fastest.get(kind).copied()?;
            let slow = links.slowest.as_ref().filter(|slow| slow.kind == *kind).map(|slow| slow.gb_per_s);
            Some(match slow {
                Some(slow) => format!("{}–{} GB/s", units::number(slow), units::number(fastest)),
                None => format!("{} GB/s", units::number(fastest)),
            })
        };
        let [a, b] = [of(a), of(b)].map(|cell| cell.unwrap_or_else(|| "–".to_owned()));
        table.row(cells![Inlines::name(kind), a, b]);
        any = true;
    }
    let transports: std::collections::BTreeSet<&String> = a.channels.keys().chain(b.channels.keys()).collect();
    for via in transports {
        let of = |n: Option<&u64>| n.map_or_else(|| "–".to_owned(), |n| units::count(*n));
        let title = page.fill(Text::new("channels by {via}", "{via} 通道数"), [("via", Value::Raw(via.clone()))]);
        table.row(cells![title, of(a.channels.get(via)), of(b.channels.get(via))]);
        any = true;
    }
    if any {
        page.table(page.get(Text::new("What the communication library found", "通信库的探测结果")), table);
    }
}

/// Collectives that only one side measured.
fn alone(page: &mut LinkPage<'_>) {
    let lang = page.lang;
    let [a, b] = &page.capture.beside.alone;
    let sides = SIDES.into_iter().zip([a, b]);
    let lines =
        sides.flat_map(|(letter, all)| all.iter().map(move |series| inlines![letter, ": ", name(series, lang)]));
    let lines: Vec<Inlines> = lines.collect();
    if !lines.is_empty() {
        page.heading(Text::new("Collectives that only one side measured", "仅一侧测量的集合通信"));
        page.list(lines);
    }
}
