//! What each side does for what it costs.

use super::{DecisionPage, From, SIDES, currency, money, origin};
use crate::{
    cells,
    document::{Align, Inlines, Table},
    inlines,
    serving::{level, tokens},
    units,
};
use diagnosis::{
    decide::Number,
    i18n::{Text, Value},
};

/// A row: its name, the figure of A and of B, how it is written, and what to declare where it is missing.
type Row<'a> = (Text, Option<Number>, Option<Number>, &'a dyn Fn(f64) -> String, &'static str);

/// Tokens for what they cost.
pub(super) fn show(page: &mut DecisionPage<'_>) {
    let decision = page.capture;
    page.heading(Text::new("What each does for what it costs", "各自的产出与成本"));
    let lines: Vec<Inlines> = (0..2).map(|n| basis(page, n)).collect();
    page.list(lines);
    let currency = currency(decision).to_owned();
    let mut table = Table::new([
        (page.get(Text::new("of", "项目")), Align::Left),
        ("A".into(), Align::Right),
        ("B".into(), Align::Right),
        ("B/A".into(), Align::Right),
    ]);
    let [a, b] = &decision.worth;
    let plain = |n: f64| units::number(if n.abs() >= 100.0 { n.round() } else { (n * 1e4).round() / 1e4 });
    let cash = |n: f64| money(n, &currency);
    let rows: [Row<'_>; 7] = [
        (Text::new("tokens/s of a device", "单设备 token/秒"), a.per_device, b.per_device, &plain, ""),
        (
            Text::new("tokens/s of a rack unit", "每机架单位 token/秒"),
            a.per_rack_unit,
            b.per_rack_unit,
            &plain,
            "rack_units",
        ),
        (Text::new("tokens/s of a watt", "每瓦 token/秒"), a.per_watt, b.per_watt, &plain, "power_w"),
        (Text::new("joules of a token", "每 token 焦耳"), a.joules, b.joules, &plain, "power_w"),
        (Text::new("hour of a device", "设备小时成本"), a.hour, b.hour, &cash, "device_hour"),
        (Text::new("a million tokens", "每百万 token 成本"), a.million, b.million, &cash, "device_hour"),
        (
            Text::new("tokens for one unit of money", "每单位货币的 token"),
            a.per_money,
            b.per_money,
            &plain,
            "device_hour",
        ),
    ];
    for (name, a, b, show, key) in rows {
        let cell = |side: Option<Number>, known: bool| match side {
            Some(number) => inlines![show(number.value), page.aside(page.get(origin(number.origin)))],
            None if key.is_empty() || known => "–".into(),
            None => inlines![
                "– ",
                page.aside(
                    page.tell(Text::new("declare `{key}`", "请申报 `{key}`"), [("key", Value::Raw(key.to_owned()))])
                )
            ],
        };
        let ratio = a
            .zip(b)
            .filter(|_| decision.refused.is_empty())
            .map_or_else(|| "–".to_owned(), |(a, b)| units::ratio(b.value / a.value));
        // Where its cost is known, it is the rate that is missing and nothing is to be declared.
        let [known_a, known_b] =
            decision.worth.each_ref().map(|own| key == "device_hour" && own.hour.is_some() || own.per_device.is_none());
        table.row(cells![page.get(name), cell(a, known_a), cell(b, known_b), ratio]);
    }
    page.table(page.get(Text::new("Output tokens", "输出 token")), table);
    let recorded: Vec<&str> =
        SIDES.into_iter().zip(&decision.sides).filter(|(_, side)| side.power_w.is_none()).map(|(l, _)| l).collect();
    if !recorded.is_empty() {
        page.paragraph(page.tell(
            Text::new(
                "No power was recorded of {sides}: what needs it rests on the declared power, or is not there. A capture with device counters, or a column `power_w` of the result, has it.",
                "{sides} 未记录功耗：相关数值基于申报功耗，否则缺失。带设备计数器的采集，或结果中的 `power_w` 列，可提供功耗。",
            ),
            [("sides", Value::Raw(recorded.join(", ")))],
        ));
    }
}

/// Where the tokens per second of a side come from.
fn basis(page: &DecisionPage<'_>, n: usize) -> Inlines {
    let decision = page.capture;
    let side = Value::Raw(SIDES.get(n).copied().unwrap_or("?").to_owned());
    let one = match decision.one_device.get(n) {
        Some(true) => page.get(Text::new(
            "; how many devices it ran on is not said and taken for one (`price.….devices`)",
            "；未说明设备数，按一台计（`price.….devices`）",
        )),
        _ => Inlines::new(),
    };
    let line = match decision.from.get(n) {
        Some(Some(From::Load(load))) => {
            let held = match decision.holds.get(n).copied().flatten() {
                Some(true) => Text::new("the most of the loads that hold the targets", "达标负载中最高者"),
                Some(false) => Text::new("no load holds the targets; the most of all", "没有达标负载；取全部中最高者"),
                None => Text::new("the most of all loads", "全部负载中最高者"),
            };
            page.tell(
                Text::new("{side}: {level}, tokens {tokens}: {held}", "{side}：{level}，token {tokens}：{held}"),
                [
                    ("side", side),
                    ("level", Value::Raw(level(load.level(), page.lang))),
                    ("tokens", Value::Raw(tokens(load))),
                    ("held", Value::Text(held)),
                ],
            )
        }
        Some(Some(From::Step(batch, ns))) => page.tell(
            Text::new(
                "{side}: a decode step of {batch} sequences in {time} (median of the capture); no time to the first token is in it",
                "{side}：{batch} 条序列的解码步 {time}（采集的中位数）；其中没有首 token 时间",
            ),
            [("side", side), ("batch", Value::Count(u64::from(*batch))), ("time", Value::Ns(*ns))],
        ),
        _ => page.tell(Text::new("{side}: no tokens per second are known", "{side}：每秒 token 数未知"), [("side", side)]),
    };
    inlines![line, one]
}
