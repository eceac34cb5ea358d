//! Which one wins, and what would have to change for the other one.

use super::{DecisionPage, SIDES, currency, money};
use crate::{
    decide::{From, Standing},
    document::Inlines,
    serving::{least, ms},
};
use diagnosis::{
    decide::money::Balance,
    i18n::{Message, Text, Value},
    serving::Metric,
};

fn letter(n: usize) -> Value {
    Value::Raw(SIDES.get(n).copied().unwrap_or("?").to_owned())
}

/// The first screen.
pub(super) fn show(page: &mut DecisionPage<'_>) {
    let decision = page.capture;
    page.heading(Text::new("The answer", "结论"));
    if !decision.refused.is_empty() {
        page.title(page.get(Text::new(
            "There is no winner: the two may not be weighed against each other. Each stands by itself below.",
            "没有胜者：两者不可相互权衡。以下各自单独列出。",
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
    title(page, balance);
    let mut lines = Vec::new();
    if matches!(decision.standing, Standing::Weighed | Standing::Untold) {
        lines.push(page.tell(
            Text::new(
                "For {loser} to win, it would have to give {share} more tokens a second of a device",
                "{loser} 要胜出，单设备每秒 token 须提高 {share}",
            ),
            [("loser", letter(balance.loser)), ("share", Value::Share(balance.faster))],
        ));
        lines.extend(finding(page, balance));
    }
    lines.extend(noise(page, balance));
    lines.extend(break_even(page, balance));
    if let Some(tokens) = balance.repaid_after {
        lines.push(page.tell(
            Text::new(
                "The declared cost of moving to B is repaid after {n} million tokens",
                "迁移到 B 的申报成本在输出 {n} 百万 token 后收回",
            ),
            [("n", Value::Number((tokens / 1e6).ceil()))],
        ));
    }
    lines.extend(targets(page));
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

/// Who wins, in a line or two.
fn title(page: &mut DecisionPage<'_>, balance: &Balance) {
    let decision = page.capture;
    let plain = match decision.standing {
        Standing::Neither => Some(Text::new(
            "There is no winner: neither holds the targets under a load that both measured. What follows is without them.",
            "没有胜者：在双方都测过的负载下两侧均不达标。以下为不计目标的结果。",
        )),
        Standing::Untold => Some(Text::new(
            "Whether the targets hold cannot be told of both sides, so there is no winner at this service level. What follows is without them.",
            "无法判断两侧是否达标，因此在此服务水平下没有胜者。以下为不计目标的结果。",
        )),
        Standing::Split => Some(Text::new(
            "Which one wins depends on the work: see the table below.",
            "哪一侧胜出取决于工作负载：见下表。",
        )),
        _ => None,
    };
    if let Some(text) = plain {
        page.title(page.get(text));
    }
    let (cost, speed) = (balance.cost, ("speed", Value::Ratio(balance.speed)));
    let head = match (decision.standing, decision.winner) {
        (Standing::Split, _) => return,
        (Standing::Only, Some(holds)) => page.tell(
            Text::new(
                "{winner} wins: of this work it alone holds the targets, and {other} is out, however cheap its tokens are.",
                "{winner} 胜出：此工作负载仅它达标；{other} 出局，无论其 token 多便宜。",
            ),
            [("winner", letter(holds)), ("other", letter(1 - holds))],
        ),
        (Standing::Equal, _) => page.tell(
            Text::new(
                "No difference is shown, so there is no winner (speed of a device B/A {speed}{cost}).",
                "未见差异，因此没有胜者（单设备速度 B/A 为 {speed}{cost}）。",
            ),
            [speed, ("cost", of_cost(cost))],
        ),
        (Standing::Weighed, Some(winner)) if cost.is_some() => page.tell(
            Text::new(
                "{winner} is the cheaper one: a token on B costs {cost} of one on A (speed of a device B/A {speed}).",
                "{winner} 更便宜：B 上每 token 的成本为 A 的 {cost}（单设备速度 B/A 为 {speed}）。",
            ),
            [("winner", letter(winner)), ("cost", Value::Ratio(cost.unwrap_or(1.0))), speed],
        ),
        (Standing::Weighed, Some(winner)) => page.tell(
            Text::new(
                "{winner} gives more tokens a second of a device (B/A {speed}); which one is cheaper nobody can say without prices.",
                "{winner} 的单设备每秒 token 更多（B/A 为 {speed}）；没有价格则无法判断哪个更便宜。",
            ),
            [("winner", letter(winner)), speed],
        ),
        _ => page.tell(
            Text::new("Speed of a device B/A {speed}{cost}.", "单设备速度 B/A 为 {speed}{cost}。"),
            [speed, ("cost", of_cost(cost))],
        ),
    };
    page.title(head);
}

fn of_cost(cost: Option<f64>) -> Value {
    let Some(cost) = cost else { return Value::Text(Text::new("", "")) };
    let text = Text::new("; a token on B costs {cost} of one on A", "；B 上每 token 的成本为 A 的 {cost}");
    Value::Message(Box::new(Message::new(text, [("cost", Value::Ratio(cost))])))
}

/// Whether the largest gain that the diagnosis of the slower side knows would do.
fn finding(page: &DecisionPage<'_>, balance: &Balance) -> Option<Inlines> {
    let side = balance.loser;
    let (rule, before, after) = (*page.capture.winnable.get(side)?)?;
    let gain = before as f64 / after.max(1) as f64;
    let text = if gain - 1.0 > balance.faster {
        Text::new(
            "{rule} is what the diagnosis of {side} would mend first: a step from {before} to {after} at best ({gain}). That would do, and {side} would win",
            "{rule} 是 {side} 的诊断首先会改的：每步至多由 {before} 降至 {after}（{gain}）。这已足够，{side} 将胜出",
        )
    } else {
        Text::new(
            "{rule} is what the diagnosis of {side} would mend first: a step from {before} to {after} at best ({gain}). That alone would not do",
            "{rule} 是 {side} 的诊断首先会改的：每步至多由 {before} 降至 {after}（{gain}）。仅此尚不足够",
        )
    };
    Some(page.tell(
        text,
        [
            ("rule", Value::Raw(rule.to_owned())),
            ("side", letter(side)),
            ("before", Value::Ns(before)),
            ("after", Value::Ns(after)),
            ("gain", Value::Ratio(gain)),
        ],
    ))
}

/// How far the ratio is known.
fn noise(page: &DecisionPage<'_>, balance: &Balance) -> Option<Inlines> {
    if page.capture.standing == Standing::Split {
        return None;
    }
    Some(match balance.interval {
        Some((low, high)) => page.tell(
            Text::new(
                "The speed B/A lies between {low} and {high} (95 % interval, from the spread of requests or of runs); where the interval of what is weighed holds 1, or the ratio is nearer to 1 than {least}, no difference is shown",
                "速度 B/A 介于 {low} 与 {high} 之间（95 % 区间，由请求或多次运行的离散得出）；若所比之量的区间含 1，或与 1 之差小于 {least}，则视为未见差异",
            ),
            [("low", Value::Raw(format!("{low:.3}×"))), ("high", Value::Raw(format!("{high:.3}×"))), ("least", Value::Raw(least()))],
        ),
        None => page.tell(
            Text::new(
                "What runs of one side differ by is not known, so only what is nearer to 1 than {least} is no difference: give several runs of each side",
                "单侧多次运行间的差异未知，因此仅将与 1 之差小于 {least} 者视为无差异：请给出每侧的多次运行",
            ),
            [("least", Value::Raw(least()))],
        ),
    })
}

/// What a device of either side may cost.
fn break_even<'a>(page: &DecisionPage<'a>, balance: &Balance) -> Vec<Inlines> {
    let decision = page.capture;
    let currency = currency(decision);
    let mut lines = Vec::new();
    if decision.standing == Standing::Split {
        return lines;
    }
    for n in 0..2 {
        let hour = balance.break_even_hours.get(n).copied().flatten();
        let own = decision.worth.get(n).and_then(|own| own.hour);
        let Some(hour) = hour else { continue };
        lines.push(page.tell(
            Text::new(
                "Break-even: a device of {side} may cost {hour} an hour (it costs {own})",
                "盈亏平衡：{side} 的设备每小时可为 {hour}（现为 {own}）",
            ),
            [
                ("side", letter(n)),
                ("hour", Value::Raw(money(hour, currency))),
                ("own", Value::Raw(own.map_or_else(|| "?".to_owned(), |own| money(own.value, currency)))),
            ],
        ));
        if let Some(purchase) = balance.break_even_purchases.get(n).copied().flatten() {
            lines.push(page.tell(
                Text::new(
                    "The same as a price of buying a device of {side}: {price}",
                    "折合 {side} 设备的购买价：{price}",
                ),
                [("side", letter(n)), ("price", Value::Raw(money(purchase, currency)))],
            ));
        }
    }
    lines
}

/// What times would have to become, where targets fail by them.
fn targets(page: &DecisionPage<'_>) -> Vec<Inlines> {
    let decision = page.capture;
    let Some(slo) = &decision.slo else {
        return vec![page.get(Text::new(
            "No targets were given, so nothing here is at a service level: `--slo ttft=200ms,tpot=50ms`",
            "未给出目标，因此以上均不针对服务水平：`--slo ttft=200ms,tpot=50ms`",
        ))];
    };
    let mut lines = Vec::new();
    for n in 0..2 {
        let (Some(Some(from)), Some(holds)) = (decision.from.get(n), decision.holds.get(n)) else { continue };
        if *holds == Some(true) {
            continue;
        }
        // A side may hold the targets at another work than that which both are weighed at.
        let nowhere = decision.anywhere.get(n) == Some(&Some(false));
        for metric in [Metric::Ttft, Metric::Tpot, Metric::Itl, Metric::E2e] {
            let most = slo.most(metric);
            let now = match from {
                From::Load(load) => load.percentile(metric, slo.percentile).or_else(|| load.mean(metric)),
                From::Step(_, ns) => (metric == Metric::Tpot).then_some(*ns as f64 / 1e6),
            };
            let Some(now) = now.filter(|now| *now > most && *holds == Some(false)) else { continue };
            let text = if nowhere {
                Text::new(
                    "{side} holds the targets under no load that was measured: its {metric} would have to fall from {now} to {most}",
                    "{side} 在所测负载下均不达标：其 {metric} 须从 {now} 降至 {most}",
                )
            } else {
                Text::new(
                    "{side} does not hold the targets at this work: its {metric} would have to fall from {now} to {most}",
                    "{side} 在此工作负载下不达标：其 {metric} 须从 {now} 降至 {most}",
                )
            };
            lines.push(page.tell(
                text,
                [
                    ("side", letter(n)),
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
                [("side", letter(n))],
            ));
        }
    }
    lines
}
