//! The decision for people.

mod answer;
mod fleet;
mod works;
mod worth;

use super::{Decision, From};
use crate::{
    cells,
    document::{Align, Document, Inlines, Table},
    inlines,
    sections::Page,
    text, units,
};
use diagnosis::{
    compare::waterfall::Cause,
    decide::Origin,
    i18n::{Lang, Text, Value},
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
    answer::show(&mut page);
    works::show(&mut page);
    worth::show(&mut page);
    gap(&mut page);
    fleet::show(&mut page);
    declared(&mut page);
    page.out
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
            Text::new("another path (other operations, other waits)", "路径不同（操作、等待不同）"),
            of(&[Cause::Mechanism]),
        ),
        (Text::new("configuration (settings that differ)", "配置（设置不同）"), of(&[Cause::Configuration])),
        (Text::new("another amount of work", "工作量不同"), of(&[Cause::Work])),
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
