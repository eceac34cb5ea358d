//! The decision for people.

use super::{Check, Decision, From};
use crate::{
    cells,
    document::{Align, Document, Inlines, Table},
    inlines,
    sections::Page,
    serving::{level, ms, tokens},
    text, units,
};
use diagnosis::{
    compare::waterfall::Cause,
    decide::{Number, Origin},
    i18n::{Lang, Text, Value},
    serving::Metric,
};

type DecisionPage<'a> = Page<'a, Decision>;

const SIDES: [&str; 2] = ["A", "B"];

/// The whole page.
pub(super) fn report(decision: &Decision, lang: Lang) -> Document {
    let mut page = Page { lang, capture: decision, out: Document::new() };
    page.out.heading(1, page.get(Text::new("A or B", "选 A 还是 B")));
    let line = |(letter, head): (&str, &crate::diff::Head)| {
        let device = head.device.as_deref().map(|name| page.aside(Inlines::name(name)));
        inlines![
            Inlines::strong(letter),
            page.colon(),
            Inlines::quoted(&head.name, text::PHRASE),
            device.unwrap_or_default()
        ]
    };
    let lines: Vec<Inlines> = SIDES.into_iter().zip(&decision.heads).map(line).collect();
    page.list(lines);
    for banner in &decision.banners {
        let banner = page.message(banner);
        page.out.notice(Inlines::strong(banner));
    }
    answer(&mut page);
    worth(&mut page);
    gap(&mut page);
    fleet(&mut page);
    declared(&mut page);
    page.out
}

/// What would have to change for the other to win.
fn answer(page: &mut DecisionPage<'_>) {
    let decision = page.capture;
    page.heading(Text::new("The answer", "结论"));
    if !decision.refused.is_empty() {
        page.title(page.get(Text::new(
            "The two may not be weighed against each other: each stands by itself below.",
            "两者不可相互权衡：以下各自单独列出。",
        )));
        let why: Vec<Inlines> = decision.refused.iter().map(|message| page.message(message)).collect();
        page.list(why);
        return;
    }
    let Some(balance) = &decision.balance else {
        page.title(page.get(Text::new(
            "Tokens per second are not known of both sides; give a serving result or a capture with decode steps of each.",
            "两侧的每秒 token 数未全部已知；请各给出一个服务压测结果或含解码步的采集。",
        )));
        return;
    };
    let letter = |n: usize| Value::Raw(SIDES.get(n).copied().unwrap_or("?").to_owned());
    let (loser, winner) = (letter(balance.loser), letter(1 - balance.loser));
    let fails = |n: usize| matches!(decision.from.get(n), Some(Some(From::Load(_, Some(false)))));
    // Who does not hold the targets does not win, however cheap its tokens are.
    let only = match (fails(0), fails(1)) {
        (false, true) => Some(0),
        (true, false) => Some(1),
        _ => None,
    };
    if let Some(holds) = only {
        page.title(page.tell(
            Text::new(
                "At this service level {other} is out: no load that was measured holds the targets on it. What follows is without them.",
                "在此服务水平下 {other} 出局：其所测负载均不达标。以下为不计目标的结果。",
            ),
            [("other", letter(1 - holds))],
        ));
    }
    let head = match balance.cost {
        Some(cost) => page.tell(
            Text::new(
                "{winner} is the cheaper one: a token on B costs {cost} of one on A (speed of a device B/A {speed}).",
                "{winner} 更便宜：B 上每 token 的成本为 A 的 {cost}（单设备速度 B/A 为 {speed}）。",
            ),
            [("winner", winner.clone()), ("cost", Value::Ratio(cost)), ("speed", Value::Ratio(balance.speed))],
        ),
        None => page.tell(
            Text::new(
                "{winner} gives more tokens a second of a device (B/A {speed}); which one is cheaper nobody can say without prices.",
                "{winner} 的单设备每秒 token 更多（B/A 为 {speed}）；没有价格则无法判断哪个更便宜。",
            ),
            [("winner", winner.clone()), ("speed", Value::Ratio(balance.speed))],
        ),
    };
    page.title(head);
    let mut lines = vec![page.tell(
        Text::new(
            "For {loser} to win, it would have to give {share} more tokens a second of a device",
            "{loser} 要胜出，单设备每秒 token 须提高 {share}",
        ),
        [("loser", loser), ("share", Value::Share(balance.faster))],
    )];
    let currency = currency(decision);
    if let Some(hour) = balance.break_even_hour {
        lines.push(page.tell(
            Text::new(
                "Break-even: a device of B may cost {hour} an hour (it costs {own})",
                "盈亏平衡：B 的设备每小时可为 {hour}（现为 {own}）",
            ),
            [
                ("hour", Value::Raw(money(hour, currency))),
                (
                    "own",
                    Value::Raw(decision.worth[1].hour.map_or_else(|| "?".to_owned(), |own| money(own.value, currency))),
                ),
            ],
        ));
    }
    if let Some(purchase) = balance.break_even_purchase {
        lines.push(page.tell(
            Text::new("The same as a price of buying a device of B: {price}", "折合 B 设备的购买价：{price}"),
            [("price", Value::Raw(money(purchase, currency)))],
        ));
    }
    if let Some(tokens) = balance.repaid_after {
        lines.push(page.tell(
            Text::new(
                "The declared cost of moving to B is repaid after {n} million tokens",
                "迁移到 B 的申报成本在输出 {n} 百万 token 后收回",
            ),
            [("n", Value::Number((tokens / 1e6).ceil()))],
        ));
    }
    lines.extend(slower_first_token(page));
    for (n, worth) in decision.worth.iter().enumerate() {
        if let Some(missing) = worth.missing {
            lines.push(page.tell(
                Text::new(
                    "The cost of {side} is not known: declare `price.{key}` of it (`--declare FILE`, table [price])",
                    "{side} 的成本未知：请申报其 `price.{key}`（`--declare FILE`，表 [price]）",
                ),
                [("side", letter(n)), ("key", Value::Raw(format!("{}.{missing}", if n == 0 { "a" } else { "b" })))],
            ));
        }
    }
    page.list(lines);
}

/// What the time to the first token would have to become, where targets fail by it.
fn slower_first_token(page: &DecisionPage<'_>) -> Vec<Inlines> {
    let decision = page.capture;
    let Some(slo) = &decision.slo else {
        return vec![page.get(Text::new(
            "No targets were given, so nothing here is at a service level: `--slo ttft=200ms,tpot=50ms`",
            "未给出目标，因此以上均不针对服务水平：`--slo ttft=200ms,tpot=50ms`",
        ))];
    };
    let mut lines = Vec::new();
    for (letter, from) in SIDES.into_iter().zip(&decision.from) {
        let Some(From::Load(load, holds)) = from else { continue };
        if *holds == Some(true) {
            continue;
        }
        for metric in [Metric::Ttft, Metric::Tpot] {
            let most = slo.most(metric);
            let now = load.percentile(metric, slo.percentile).or_else(|| load.mean(metric));
            let Some(now) = now.filter(|now| *now > most) else { continue };
            lines.push(page.tell(
                Text::new(
                    "{side} holds the targets under no load that was measured: its {metric} would have to fall from {now} to {most}",
                    "{side} 在所测负载下均不达标：其 {metric} 须从 {now} 降至 {most}",
                ),
                [
                    ("side", Value::Raw(letter.to_owned())),
                    ("metric", Value::Raw(metric.name().to_owned())),
                    ("now", Value::Raw(ms(now))),
                    ("most", Value::Raw(ms(most))),
                ],
            ));
        }
        if holds.is_none() {
            lines.push(page.tell(
                Text::new(
                    "Whether {side} holds the targets cannot be told: that percentile was not recorded",
                    "无法判断 {side} 是否达标：未记录该百分位",
                ),
                [("side", Value::Raw(letter.to_owned()))],
            ));
        }
    }
    lines
}

fn currency(decision: &Decision) -> &str {
    decision.prices.as_ref().map_or("", |prices| prices.currency.as_str())
}

fn money(value: f64, currency: &str) -> String {
    let digits = if value.abs() >= 100.0 {
        0
    } else if value.abs() >= 0.01 {
        3
    } else {
        6
    };
    format!("{value:.digits$} {}", text::plain(currency, 16)).trim_end().to_owned()
}

fn origin(origin: Origin) -> Text {
    match origin {
        Origin::Measured => Text::new("measured", "实测"),
        Origin::Modelled => Text::new("modelled", "模型"),
        Origin::Declared => Text::new("declared", "申报"),
    }
}

/// Tokens for what they cost.
fn worth(page: &mut DecisionPage<'_>) {
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
    let plain = |n: f64| units::number((n * 1e4).round() / 1e4);
    let cash = |n: f64| money(n, &currency);
    let rows: [(Text, Option<Number>, Option<Number>, &dyn Fn(f64) -> String, &'static str); 7] = [
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
        let cell = |side: Option<Number>| match side {
            Some(number) => inlines![show(number.value), page.aside(page.get(origin(number.origin)))],
            None if key.is_empty() => "–".into(),
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
        table.row(cells![page.get(name), cell(a), cell(b), ratio]);
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
        Some(Some(From::Load(load, holds))) => {
            let held = match holds {
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

/// What the gap comes from.
fn gap(page: &mut DecisionPage<'_>) {
    let decision = page.capture;
    page.heading(Text::new("What the gap comes from", "差距来自何处"));
    let Some(gap) = &decision.gap else {
        page.paragraph(page.get(Text::new(
            "Not known: serving results hold no steps. Give a capture of a decode step of each side too (`strato decide A.json,A.trace B.json,B.trace`).",
            "未知：服务压测结果中没有步。请再各给出一个含解码步的采集（`strato decide A.json,A.trace B.json,B.trace`）。",
        )));
        return;
    };
    let of = |causes: &[Cause]| {
        gap.causes.iter().filter(|(cause, _)| causes.contains(cause)).map(|(_, ns)| *ns).sum::<i64>()
    };
    let groups = [
        (Text::new("hardware (environment)", "硬件（环境）"), of(&[Cause::Environment])),
        (
            Text::new(
                "maturity (software that is less good, the same code slower)",
                "成熟度（软件效率、同一代码更慢）",
            ),
            of(&[Cause::Maturity, Cause::Slower]),
        ),
        (
            Text::new("configuration (settings, another path)", "配置（设置、路径）"),
            of(&[Cause::Configuration, Cause::Mechanism]),
        ),
        (Text::new("unexplained", "未解释"), of(&[Cause::Unexplained])),
    ];
    let all: i64 = groups.iter().map(|(_, ns)| ns.abs()).sum();
    let mut table = Table::new([
        (page.get(Text::new("cause", "原因")), Align::Left),
        (page.get(Text::new("of a step, B − A", "每步，B − A")), Align::Right),
        (page.get(Text::new("share of all that differs", "占全部差异")), Align::Right),
    ]);
    for (name, ns) in groups {
        table.row(cells![page.get(name), units::signed_ns(ns), units::share_of(ns.abs(), all)]);
    }
    page.table(page.get(Text::new("Causes of the difference of a step", "步差异的原因")), table);
    for (letter, winnable) in SIDES.into_iter().zip(&decision.winnable) {
        let Some((rule, before, after)) = winnable else { continue };
        page.paragraph(page.tell(
            Text::new(
                "What the diagnosis of {side} expects to vanish: at most from {before} to {after} of a step by {rule} (the largest single gain; gains are not summed).",
                "{side} 的诊断预期可消除的部分：按 {rule}，每步至多由 {before} 降至 {after}（最大的单项收益；收益不相加）。",
            ),
            [
                ("side", Value::Raw(letter.to_owned())),
                ("before", Value::Ns(*before)),
                ("after", Value::Ns(*after)),
                ("rule", Value::Raw((*rule).to_owned())),
            ],
        ));
    }
}

/// Prefill and decode.
fn fleet(page: &mut DecisionPage<'_>) {
    let decision = page.capture;
    page.heading(Text::new("Prefill and decode", "预填充与解码"));
    let lines: Vec<Inlines> = (0..2).map(|n| cost(page, n)).collect();
    page.list(lines);
    let Some(work) = &decision.work else {
        page.paragraph(page.get(Text::new(
            "Targets and the length of prompts and answers say how a fleet is shared: give `--slo ttft=200ms,tpot=50ms`.",
            "划分集群需要目标与提示、输出长度：请给出 `--slo ttft=200ms,tpot=50ms`。",
        )));
        checks(page);
        return;
    };
    page.paragraph(page.tell(
        Text::new(
            "Simulated (modelled) for prompts of {input} and answers of {output} tokens, {slo}: requests come at random with a fixed seed; a step takes the time of its prompts and that of its sequences; moving the cache between workers costs nothing here; batches go no further than was measured.",
            "对 {input} token 的提示与 {output} token 的输出、{slo} 的模拟（模型）：请求按固定种子随机到达；一步的时间为提示与序列时间之和；未计 KV 缓存传输；批大小不超过实测范围。",
        ),
        [
            ("input", Value::Number(work.input.round())),
            ("output", Value::Number(work.output.round())),
            ("slo", Value::Raw(work.slo.text())),
        ],
    ));
    let mut table = Table::new([
        (page.get(Text::new("fleet", "集群")), Align::Left),
        (page.get(Text::new("prefill : decode workers", "预填充 : 解码 实例")), Align::Right),
        (page.get(Text::new("chunk", "分块")), Align::Right),
        (page.get(Text::new("batch", "批大小")), Align::Right),
        (page.get(Text::new("requests/s of a worker", "每实例请求/秒")), Align::Right),
        (page.get(Text::new("a million tokens", "每百万 token 成本")), Align::Right),
    ]);
    let none = || page.get(Text::new("no rate holds the targets", "无法达标"));
    for (n, best) in decision.together.iter().enumerate() {
        if decision.costs.get(n).is_none_or(Option::is_none) {
            continue;
        }
        let name = page.tell(
            Text::new("{side}, both on every worker", "{side}，每实例兼做两者"),
            [("side", Value::Raw(SIDES.get(n).copied().unwrap_or("?").to_owned()))],
        );
        match best {
            Some(best) => {
                let hour = decision.worth.get(n).and_then(|own| own.hour);
                let cost = hour.map_or_else(
                    || "–".to_owned(),
                    |hour| money(hour.value / (best.rate * work.output * 3600.0) * 1e6, currency(decision)),
                );
                table.row(cells![
                    name,
                    "–",
                    units::number(best.chunk),
                    best.batch.to_string(),
                    format!("{:.2}", best.rate),
                    cost
                ]);
            }
            None => table.row(cells![name, none(), "", "", "", ""]),
        }
    }
    for (pair, found, cost) in &decision.fleets {
        let letters = pair.map(|side| Value::Raw(SIDES.get(side).copied().unwrap_or("?").to_owned()));
        let [prefill, decode] = letters;
        let name = page
            .tell(Text::new("prefill on {a}, decode on {b}", "{a} 预填充，{b} 解码"), [("a", prefill), ("b", decode)]);
        match found {
            Some(fleet) => {
                let [p, d] = fleet.workers;
                let cost = cost.map_or_else(|| "–".to_owned(), |cost| money(cost, currency(decision)));
                let each = fleet.rate / f64::from(p + d);
                table.row(cells![name, format!("{p} : {d}"), "–", fleet.batch.to_string(), format!("{each:.2}"), cost]);
            }
            None => table.row(cells![name, none(), "", "", "", ""]),
        }
    }
    if !table.is_empty() {
        page.table(page.get(Text::new("Fleets that hold the targets", "达标的集群")), table);
    }
    checks(page);
}

/// How long prefill and decode take on a side.
fn cost(page: &DecisionPage<'_>, n: usize) -> Inlines {
    let side = Value::Raw(SIDES.get(n).copied().unwrap_or("?").to_owned());
    let Some(Some(costs)) = page.capture.costs.get(n) else {
        return page.tell(
            Text::new(
                "{side}: times of prefill and decode are not known of it; give results of several concurrencies, or a capture with both kinds of steps",
                "{side}：预填充与解码时间未知；请给出多个并发的结果，或含两类步的采集",
            ),
            [("side", side)],
        );
    };
    let steps: Vec<String> = costs
        .steps
        .iter()
        .map(|(n, time)| format!("{} × {}", units::number((n * 10.0).round() / 10.0), ms(*time)))
        .collect();
    let alone = match costs.prompts.len() {
        1 => page.get(Text::new(
            "; one length was measured, so all of it is taken for time of the tokens",
            "；仅测得一种长度，故全部视为与 token 数成正比",
        )),
        _ => Inlines::new(),
    };
    inlines![
        page.tell(
            Text::new(
                "{side}: a prefill takes {fixed} and {each} for a thousand tokens; decode steps by sequences: {steps}",
                "{side}：预填充需 {fixed}，每千 token 另需 {each}；各序列数的解码步：{steps}",
            ),
            [
                ("side", side),
                ("fixed", Value::Raw(ms(costs.fixed))),
                ("each", Value::Raw(ms(costs.per_token * 1e3))),
                ("steps", Value::Raw(steps.join(", "))),
            ],
        ),
        alone
    ]
}

/// The simulation beside what was measured.
fn checks(page: &mut DecisionPage<'_>) {
    let checks = &page.capture.checks;
    if checks.is_empty() {
        return;
    }
    let mut table = Table::new([
        (page.get(Text::new("load", "负载")), Align::Left),
        ("TTFT".into(), Align::Right),
        ("TPOT".into(), Align::Right),
        (page.get(Text::new("requests/s", "请求/秒")), Align::Right),
    ]);
    for Check { side, level: at, tokens, values } in checks {
        let name = format!("{} {}, {tokens}", SIDES.get(*side).copied().unwrap_or("?"), level(*at, page.lang));
        let cell = |(measured, simulated): &(Option<f64>, f64), is_time: bool| {
            let show = |n: f64| if is_time { ms(n) } else { format!("{n:.2}") };
            match measured {
                Some(own) => {
                    format!("{} / {} ({:+.0} %)", show(*own), show(*simulated), 100.0 * (simulated / own - 1.0))
                }
                None => format!("– / {}", show(*simulated)),
            }
        };
        table.row(cells![name, cell(&values[0], true), cell(&values[1], true), cell(&values[2], false)]);
    }
    page.table(
        page.get(Text::new(
            "Simulated beside measured: measured / simulated (error)",
            "模拟与实测：实测 / 模拟（误差）",
        )),
        table,
    );
    page.paragraph(page.get(Text::new(
        "Each load is simulated from the others where they say enough of it, else from all.",
        "若其余负载足以说明，则每个负载由其余负载推算，否则由全部负载推算。",
    )));
}

/// What only a person can say.
fn declared(page: &mut DecisionPage<'_>) {
    let decision = page.capture;
    page.heading(Text::new("Supply and risk", "供应与风险"));
    let mut lines = Vec::new();
    for (letter, side) in SIDES.into_iter().zip(&decision.sides) {
        for (word, said) in
            [(Text::new("supply", "供应"), &side.price.supply), (Text::new("risk", "风险"), &side.price.risk)]
        {
            let said = match said {
                Some(said) => {
                    inlines![Inlines::quoted(said, text::PHRASE), page.aside(page.get(origin(Origin::Declared)))]
                }
                None => page.get(Text::new("not declared", "未申报")),
            };
            lines.push(inlines![letter, ", ", page.get(word), page.colon(), said]);
        }
    }
    page.list(lines);
}
