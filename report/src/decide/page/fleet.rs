//! How a fleet shares prefill and decode.

use super::{DecisionPage, SIDES, currency, money};
use crate::{
    cells,
    decide::{Check, MISSES},
    document::{Align, Inlines, Table},
    inlines,
    serving::{level, ms},
    units,
};
use diagnosis::i18n::{Text, Value};

/// Prefill and decode.
pub(super) fn show(page: &mut DecisionPage<'_>) {
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
    for (letter, costs) in SIDES.into_iter().zip(&decision.costs) {
        if costs.as_ref().is_some_and(|costs| !costs.knows_batches()) {
            page.paragraph(page.tell(ONE_AT_A_TIME, [("side", Value::Raw(letter.to_owned()))]));
        }
    }
    let mut table = Table::new([
        (page.get(Text::new("fleet", "集群")), Align::Left),
        (page.get(Text::new("prefill : decode workers", "预填充 : 解码 实例")), Align::Right),
        (page.get(Text::new("chunk", "分块")), Align::Right),
        (page.get(Text::new("batch", "批大小")), Align::Right),
        (page.get(Text::new("requests/s of a worker", "每实例请求/秒")), Align::Right),
        (page.get(Text::new("a million tokens", "每百万 token 成本")), Align::Right),
    ]);
    let none = || page.get(Text::new("no rate holds the targets", "无法达标"));
    for n in 0..2 {
        let name = page.tell(
            Text::new("{side}, both on every worker", "{side}，每实例兼做两者"),
            [("side", Value::Raw(SIDES.get(n).copied().unwrap_or("?").to_owned()))],
        );
        let hour = decision.worth.get(n).and_then(|own| own.hour).zip(decision.worker.get(n));
        let cost = |rate: f64| {
            hour.map_or_else(
                || "–".to_owned(),
                |(hour, devices)| money(hour.value * devices / (rate * work.output * 3600.0) * 1e6, currency(decision)),
            )
        };
        // What was measured needs no simulation.
        if let Some(Some((at, rate))) = decision.measured.get(n) {
            let name = inlines![name.clone(), page.aside(page.get(Text::new("measured", "实测")))];
            table.row(cells![name, "–", "–", level(*at, page.lang), format!("{rate:.2}"), cost(*rate)]);
        }
        let Some(Some(costs)) = decision.costs.get(n) else { continue };
        if !costs.knows_batches() {
            continue;
        }
        let name = inlines![name, page.aside(error(page, n))];
        if is_withheld(page, n) {
            table.row(cells![name, page.get(WITHHELD), "", "", "", ""]);
            continue;
        }
        match decision.together.get(n).copied().flatten() {
            Some(best) => {
                let (chunk, batch) = (units::number(best.chunk), best.batch.to_string());
                table.row(cells![name, "–", chunk, batch, format!("{:.2}", best.rate), cost(best.rate)]);
            }
            None => table.row(cells![name, none(), "", "", "", ""]),
        }
    }
    let knows = |n: usize| decision.costs.get(n).is_some_and(|own| own.as_ref().is_some_and(|own| own.knows_batches()));
    let pairs = [[0, 0], [1, 1], [0, 1], [1, 0]].into_iter();
    for pair in pairs.filter(|pair| pair.iter().all(|n| knows(*n)) && pair.iter().any(|n| is_withheld(page, *n))) {
        if pair[0] == pair[1] || decision.refused.is_empty() {
            table.row(cells![apart(page, pair), page.get(WITHHELD), "", "", "", ""]);
        }
    }
    for (pair, found, cost) in &decision.fleets {
        let name = apart(page, *pair);
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
        page.table(page.get(Text::new("Fleets that hold the targets", "达标的集群")), table);
    }
    checks(page);
}

/// Said in place of a fleet whose simulation misses what was measured.
const WITHHELD: Text =
    Text::new("withheld: the simulation misses its own measurements", "不予给出：模拟与自身实测不符");

fn is_withheld(page: &DecisionPage<'_>, n: usize) -> bool {
    page.capture.misses.get(n).copied().flatten().is_some_and(|share| share > MISSES)
}

/// How far the simulation of a side misses what was measured.
fn error(page: &DecisionPage<'_>, n: usize) -> Inlines {
    match page.capture.misses.get(n).copied().flatten() {
        Some(share) => page.tell(
            Text::new("simulated, off by up to {share}", "模拟，误差至多 {share}"),
            [("share", Value::Share(share))],
        ),
        None => page.get(Text::new("simulated, not checked against loads", "模拟，未与负载核对")),
    }
}

fn apart(page: &DecisionPage<'_>, pair: [usize; 2]) -> Inlines {
    let [prefill, decode] = pair.map(|side| Value::Raw(SIDES.get(side).copied().unwrap_or("?").to_owned()));
    page.tell(Text::new("prefill on {a}, decode on {b}", "{a} 预填充，{b} 解码"), [("a", prefill), ("b", decode)])
}

/// Why no fleet is simulated of a side.
const ONE_AT_A_TIME: Text = Text::new(
    "Only one request at a time was measured of {side}, so nothing says what its batches cost and no fleet of it is simulated: give results of several concurrencies.",
    "{side} 仅测得逐个请求，批处理的代价未知，因此不模拟其集群：请给出多个并发的结果。",
);
/// Prefill and decode of a side where prompts of one length were measured.
const ONE_LENGTH: Text = Text::new(
    "{side}: a prefill takes {each} for a thousand tokens (one length was measured, so all of it is taken for time of the tokens); decode steps by sequences: {steps}",
    "{side}：预填充每千 token 需 {each}（仅测得一种长度，故全部视为与 token 数成正比）；各序列数的解码步：{steps}",
);
/// The same where there were several lengths.
const LENGTHS: Text = Text::new(
    "{side}: a prefill takes {fixed} and {each} for a thousand tokens; decode steps by sequences: {steps}",
    "{side}：预填充需 {fixed}，每千 token 另需 {each}；各序列数的解码步：{steps}",
);

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
    let values = [
        ("side", side),
        ("fixed", Value::Raw(ms(costs.fixed))),
        ("each", Value::Raw(ms(costs.per_token * 1e3))),
        ("steps", Value::Raw(steps.join(", "))),
    ];
    page.tell(if costs.prompts.len() == 1 { ONE_LENGTH } else { LENGTHS }, values)
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
