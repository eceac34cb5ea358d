//! The decision for people.

mod fleet;
mod worth;

use super::{Decision, From};
use crate::{
    cells,
    document::{Align, Document, Inlines, Table},
    inlines,
    sections::Page,
    serving::ms,
    text, units,
};
use diagnosis::{
    compare::waterfall::Cause,
    decide::Origin,
    i18n::{Lang, Text, Value},
    serving::Metric,
};

type DecisionPage<'a> = Page<'a, Decision>;

const SIDES: [&str; 2] = ["A", "B"];
/// Why no gap is shown of results.
const NO_STEPS: Text = Text::new(
    "Not known: serving results hold no steps. Give a capture of a decode step of each side too (`strato decide A.json,A.trace B.json,B.trace`).",
    "未知：服务压测结果中没有步。请再各给出一个含解码步的采集（`strato decide A.json,A.trace B.json,B.trace`）。",
);
/// Why no gap is shown of two that may not be weighed.
const NOT_WEIGHED: Text = Text::new(
    "Not said: the two may not be weighed against each other, see above.",
    "不作说明：两者不可相互权衡，见上。",
);

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
    worth::show(&mut page);
    gap(&mut page);
    fleet::show(&mut page);
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

/// What the gap comes from.
fn gap(page: &mut DecisionPage<'_>) {
    let decision = page.capture;
    page.heading(Text::new("What the gap comes from", "差距来自何处"));
    let Some(gap) = &decision.gap else {
        let why = if decision.refused.is_empty() { NO_STEPS } else { NOT_WEIGHED };
        page.paragraph(page.get(why));
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
