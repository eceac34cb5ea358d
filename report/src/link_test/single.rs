//! A link test as a part of its report.

use super::{LinkTest, SLOW, name, rate, slow_args};
use crate::{
    cells,
    document::{Align, Inlines, Table},
    inlines,
    sections::Page,
    units,
};
use diagnosis::{
    i18n::{Text, Value},
    link_test::{Measured, Series},
};

/// Sizes listed of a collective; all are in the JSON report.
const LISTED: usize = 64;

/// The test in a sentence; `None` of a capture that is no link test.
pub(crate) fn headline(page: &Page<'_>) -> Option<Inlines> {
    let test = &page.capture.link_test;
    let best = |series: &&Series| series.plateau().map_or(0.0, |plateau| plateau.gb_per_s);
    let series = test.series.iter().max_by(|a, b| best(a).total_cmp(&best(b)))?;
    let Some(plateau) = series.plateau() else {
        return Some(page.tell(
            Text::new(
                "{what}: times were measured and no bus bandwidth can be told of them.",
                "{what}：测得了时间，但无法给出总线带宽。",
            ),
            [("what", Value::Raw(name(series, page.lang)))],
        ));
    };
    let said = page.tell(
        Text::new(
            "{what}: {rate} GB/s of bus bandwidth at most, at {size}{share}.",
            "{what}：总线带宽最高 {rate} GB/s（{size}）{share}。",
        ),
        [
            ("what", Value::Raw(name(series, page.lang))),
            ("rate", Value::Raw(rate(Some(plateau.gb_per_s)))),
            ("size", Value::Raw(units::bytes(plateau.bytes))),
            ("share", Value::Raw(of_published(page, plateau.gb_per_s))),
        ],
    );
    let slow = test.links.slowest.as_ref().map(|slow| {
        inlines![" ", page.get(Text::new("Slowest: ", "最慢：")), page.fill(SLOW, slow_args(slow)), page.stop()]
    });
    Some(inlines![said, slow.unwrap_or_default()])
}

/// Ratio to a published bandwidth up to which the two are of one link; heuristic.
const BELIEVED: f64 = 1.05;

/// How much of what is published that is, in words behind a bandwidth.
fn of_published(page: &Page<'_>, gb_per_s: f64) -> String {
    // What is far above a peak is that of another device or another link.
    let believed = |gb_per_s: f64, of: f64| gb_per_s <= BELIEVED * of;
    let bound = page.capture.link_test.bound().filter(|link| believed(gb_per_s, link.gb_per_s));
    let Some(link) = bound else { return String::new() };
    let text = Text::new(", {share} of the published {link} GB/s", "，为公开值 {link} GB/s 的 {share}");
    text.get(page.lang)
        .replace("{share}", &units::share(gb_per_s / link.gb_per_s))
        .replace("{link}", &units::number(link.gb_per_s))
}

/// Writes the sizes of a link test.
pub(crate) fn write(page: &mut Page<'_>) {
    let test = page.capture.link_test.clone();
    if test.is_empty() {
        return;
    }
    page.heading(Text::new("Links under test", "链路测试"));
    page.paragraph(page.get(Text::new(
        "A link test moves messages and nothing else. Algorithm bandwidth is size over time; bus bandwidth is what the links carry, and does not depend on the number of ranks. No step of a model is in it.",
        "链路测试只传输消息。算法带宽为消息大小除以时间；总线带宽为链路实际承载量，与 rank 数无关。其中没有模型的步。",
    )));
    for series in &test.series {
        facts(page, series);
        sizes(page, series);
    }
    links(page, &test);
}

/// Plateau, knee and start of a collective.
fn facts(page: &mut Page<'_>, series: &Series) {
    page.title(name(series, page.lang));
    let mut lines = Vec::new();
    if let Some(plateau) = series.plateau() {
        let rises = page.get(match plateau.rises {
            true => Text::new(
                "; it still rises at the largest size, so larger messages are faster yet",
                "；在最大消息处仍在上升，更大的消息会更快",
            ),
            false => Text::new("", ""),
        });
        let said = page.tell(
            Text::new("{rate} GB/s at {size}{share}", "{rate} GB/s（{size}）{share}"),
            [
                ("rate", Value::Raw(rate(Some(plateau.gb_per_s)))),
                ("size", Value::Raw(units::bytes(plateau.bytes))),
                ("share", Value::Raw(of_published(page, plateau.gb_per_s))),
            ],
        );
        lines.push(page.labelled(Text::new("Plateau", "平台"), inlines![said, rises]));
    }
    if let Some(knee) = series.knee() {
        let text = match series.starts_below_the_knee() {
            true => Text::new("{size}, the smallest size that reaches half of it", "{size}，达到平台一半的最小消息"),
            false => Text::new(
                "at or below {size}, the smallest size measured, which reaches half of it already",
                "不大于 {size}：已测的最小消息就达到平台的一半",
            ),
        };
        let said = page.tell(text, [("size", Value::Raw(units::bytes(knee.bytes)))]);
        lines.push(page.labelled(Text::new("Knee", "拐点"), said));
    }
    if let Some((bytes, time)) = series.smallest() {
        let text = match series.latency() {
            Some(_) => Text::new("{time}, a call of {size}", "{time}（一次 {size} 的调用）"),
            None => Text::new(
                "not measured: much of the {time} of the smallest call ({size}) goes into moving its bytes; begin with smaller messages (-b 8)",
                "未测得：最小的一次调用（{size}）所用的 {time} 中，很大一部分用于传输数据；请从更小的消息开始（-b 8）",
            ),
        };
        let said =
            page.tell(text, [("time", Value::Raw(units::time(time))), ("size", Value::Raw(units::bytes(bytes)))]);
        lines.push(page.labelled(Text::new("Latency", "延迟"), said));
    }
    page.list(lines);
}

fn sizes(page: &mut Page<'_>, series: &Series) {
    let both = series.sizes.iter().any(|size| size.out.is_some() && size.in_place.is_some());
    let repeated = series.sizes.iter().any(|size| size.repeats > 1);
    let mut titles = vec![(page.get(Text::new("size", "大小")), Align::Right)];
    let columns = [
        Text::new("time", "时间"),
        Text::new("algorithm, GB/s", "算法带宽，GB/s"),
        Text::new("bus, GB/s", "总线带宽，GB/s"),
    ];
    titles.extend(columns.iter().map(|text| (page.get(*text), Align::Right)));
    if both {
        let in_place = [Text::new("in place: time", "原地：时间"), Text::new("bus, GB/s", "总线带宽，GB/s")];
        titles.extend(in_place.iter().map(|text| (page.get(*text), Align::Right)));
    }
    if repeated {
        titles.push((page.get(Text::new("repeats", "重复次数")), Align::Right));
    }
    let mut table = Table::new(titles);
    let time = |measured: Option<Measured>| measured.map_or_else(|| "–".to_owned(), |own| units::micros(own.time));
    let bus = |measured: Option<Measured>| rate(measured.and_then(|own| own.busbw));
    for size in series.sizes.iter().take(LISTED) {
        let main = size.main();
        let mut row: Vec<Inlines> =
            cells![units::bytes(size.bytes), time(main), rate(main.and_then(|own| own.algbw)), bus(main)].into();
        if both {
            row.extend(cells![time(size.in_place), bus(size.in_place)]);
        }
        if repeated {
            row.push(size.repeats.to_string().into());
        }
        table.row(row);
    }
    page.table(page.get(Text::new("By size", "按消息大小")), table);
    if let Some(more) = series.sizes.len().checked_sub(LISTED).filter(|more| *more > 0) {
        page.paragraph(page.fill(
            Text::new("{n} further sizes are in the JSON report.", "另有 {n} 个大小，见 JSON 报告。"),
            [("n", Value::Count(more as u64))],
        ));
    }
    if series.computed {
        page.paragraph(page.get(Text::new(
            "The test prints no bus bandwidth; it is the size over the time by the factor of nccl-tests.",
            "测试未打印总线带宽；此处由大小除以时间再乘以 nccl-tests 的系数得出。",
        )));
    }
}

/// The links themselves.
fn links(page: &mut Page<'_>, test: &LinkTest) {
    let mut lines = Vec::new();
    if let Some(slow) = &test.links.slowest {
        let said = page.fill(SLOW, slow_args(slow));
        lines.push(page.labelled(
            Text::new("Slowest link", "最慢链路"),
            inlines![
                said,
                page.get(Text::new("; every collective over it is as slow as that", "；经过它的集合通信都受其限制"))
            ],
        ));
    }
    if let Some(link) = &test.published {
        let said = page.fill(
            Text::new("{rate} GB/s in one direction over all links of {chip}", "{chip} 全部链路单向 {rate} GB/s"),
            [("rate", Value::Number(link.gb_per_s)), ("chip", Value::Raw(link.chip.clone()))],
        );
        lines.push(page.labelled(Text::new("Published", "公开规格"), said));
    }
    if !test.links.channels.is_empty() {
        let channels = test.links.channels.iter().map(|(via, n)| format!("{via} {}", units::count(*n)));
        let channels = page.join(channels);
        lines.push(page.labelled(Text::new("Channels", "通道"), channels));
    }
    page.list(lines);
}
