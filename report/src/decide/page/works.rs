//! Every work that both sides measured, with the best load of each.

use super::{DecisionPage, SIDES};
use crate::{
    cells,
    decide::At,
    document::{Align, Inlines, Table},
    serving::{level, tokens},
    units,
};
use diagnosis::{
    decide::choice::Pick,
    i18n::{Text, Value},
};

/// The rule, and the table where there is more than one work.
pub(super) fn show(page: &mut DecisionPage<'_>) {
    let decision = page.capture;
    if decision.kinds.is_empty() {
        return;
    }
    page.heading(Text::new("Work by work", "按工作负载"));
    page.paragraph(page.get(Text::new(
        "Loads are set against each other where their prompts are as long to 2 % and their answers to 10 %. Of each such work that both measured, a side is stood for by the load that holds the targets with most tokens a second of a device, else by the one with most tokens; how many requests come at a time may differ.",
        "提示长度相差不超过 2 %、输出长度相差不超过 10 % 的负载才相互比较。双方都测过的每种工作负载中，各侧取达标且单设备每秒 token 最多的负载；均不达标则取 token 最多者；并发数可以不同。",
    )));
    let mut table = Table::new([
        (page.get(Text::new("tokens", "token")), Align::Left),
        ("A".into(), Align::Right),
        ("B".into(), Align::Right),
        ("B/A".into(), Align::Right),
        (page.get(Text::new("wins", "胜者")), Align::Left),
    ]);
    for at in &decision.kinds {
        let [a, b] = at.kind.picks.each_ref().map(|pick| cell(page, pick));
        let ratio = at.balance.as_ref().map_or_else(|| "–".to_owned(), |own| units::ratio(own.speed));
        table.row(cells![tokens(&at.kind.picks[0].load), a, b, ratio, wins(page, at)]);
    }
    page.table(
        page.get(Text::new(
            "Output tokens per second of a device, best load of each",
            "单设备每秒输出 token，各侧最佳负载",
        )),
        table,
    );
}

fn cell(page: &DecisionPage<'_>, pick: &Pick) -> Inlines {
    let holds = match (page.capture.slo.is_some(), pick.holds) {
        (false, _) => None,
        (true, Some(true)) => Some(Text::new("holds", "达标")),
        (true, Some(false)) => Some(Text::new("does not hold", "不达标")),
        (true, None) => Some(Text::new("not known whether it holds", "是否达标未知")),
    };
    let rate = units::number((pick.rate() * 10.0).round() / 10.0);
    let at = level(pick.load.level(), page.lang);
    match holds {
        Some(holds) => page.tell(
            Text::new("{rate}, {at}, {holds}", "{rate}，{at}，{holds}"),
            [("rate", Value::Raw(rate)), ("at", Value::Raw(at)), ("holds", Value::Text(holds))],
        ),
        None => {
            page.tell(Text::new("{rate}, {at}", "{rate}，{at}"), [("rate", Value::Raw(rate)), ("at", Value::Raw(at))])
        }
    }
}

fn wins(page: &DecisionPage<'_>, at: &At) -> Inlines {
    let asked = page.capture.slo.is_some();
    match (at.winner.and_then(|n| SIDES.get(n)), at.kind.picks.each_ref().map(|pick| pick.holds)) {
        _ if !page.capture.refused.is_empty() => "–".into(),
        (Some(letter), _) => (*letter).into(),
        (None, [Some(false), Some(false)]) if asked => page.get(Text::new("neither holds", "均不达标")),
        (None, holds) if asked && holds.contains(&None) => page.get(Text::new("cannot be told", "无法判断")),
        (None, _) => page.get(Text::new("no difference shown", "未见差异")),
    }
}
