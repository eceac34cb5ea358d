//! Title and answer: what takes how much longer, where, and why.

use super::{
    super::{Head, Mover, What, is_large, movers::movers, words},
    DiffPage,
};
use crate::{
    document::Inlines,
    inlines,
    sections::{Shown, words as common},
    text, units,
};
use diagnosis::{
    compare::{
        Difference,
        statistics::Outcome,
        waterfall::{Basis, Cause},
    },
    i18n::{Text, Value},
};

/// Title and names of the two.
pub(super) fn title(page: &mut DiffPage<'_>) {
    page.out.heading(1, page.get(Text::new("B beside A", "B 与 A 的对比")));
    let line = |(letter, head): (&str, &Head)| {
        let device = head.device.as_deref().map(|name| page.aside(Inlines::name(name)));
        let name = Inlines::quoted(&head.name, text::PHRASE);
        inlines![Inlines::strong(letter), page.colon(), name, device.unwrap_or_default()]
    };
    let lines: Vec<Inlines> = ["A", "B"].into_iter().zip(&page.capture.heads).map(line).collect();
    page.list(lines);
    if page.capture.is_simulated() {
        page.out.notice(page.get(Text::new(
            "**simulated**: at least one of the two was written by a simulator and not measured on a device.",
            "**simulated（模拟数据）**：两者中至少一个由模拟器生成，而非在设备上测得。",
        )));
    }
}

/// The answer.
pub(super) fn write(page: &mut DiffPage<'_>, difference: &Difference) {
    page.heading(Text::new("The answer", "结论"));
    let waterfall = &difference.waterfall;
    let (from, to, delta) = (waterfall.from, waterfall.to, waterfall.delta());
    let work = match waterfall.basis {
        Basis::Step => Text::new("a step", "一步"),
        Basis::Token => Text::new("a token of a sequence", "每序列一个 token"),
    };
    let noise = page.capture.outcome() == Outcome::NotSignificant;
    let ratio = match is_large(delta, from, to) && !noise {
        true => page.aside(units::ratio(to as f64 / from.max(1) as f64)),
        false => Inlines::new(),
    };
    let head = if delta == 0 {
        page.fill(
            Text::new("A and B take the same time for {work}: {to}.", "A 与 B 完成{work}的时间相同：{to}。"),
            [("work", Value::Text(work)), ("to", Value::Ns(to))],
        )
    } else {
        let text = match delta > 0 {
            true => Text::new(
                "For {work} B takes {to} where A takes {from}: {by} more",
                "{work}：A 需 {from}，B 需 {to}，多 {by}",
            ),
            false => Text::new(
                "For {work} B takes {to} where A takes {from}: {by} less",
                "{work}：A 需 {from}，B 需 {to}，少 {by}",
            ),
        };
        let args = [
            ("work", Value::Text(work)),
            ("to", Value::Ns(to)),
            ("from", Value::Ns(from)),
            ("by", Value::Ns(delta.abs())),
        ];
        page.fill(text, args) + ratio + page.get(Text::new(".", "。"))
    };
    let mut sentence = head;
    let movers = movers(difference);
    let same_way = |m: &&Mover| m.delta() != 0 && delta != 0 && (m.delta() > 0) == (delta > 0);
    if let Some(first) = movers.iter().find(same_way) {
        sentence += page.get(Text::new(" Most of it: ", "其中最大的一项："));
        sentence += told(page, first);
    }
    if let Some(first) = movers.iter().find(|m| m.delta() != 0 && !same_way(m)) {
        sentence += page.get(match delta {
            0 => Text::new(" The largest change inside: ", "内部最大的变化："),
            _ => Text::new(" Against it: ", "方向相反的最大一项："),
        });
        sentence += told(page, first);
    }
    page.title(sentence);
    if noise {
        page.paragraph(page.get(Text::new(
            "Launches of one side differ among themselves by as much: no difference is shown, and no ratio.",
            "同一侧各次启动之间的波动与之相当：不足以说明存在差异，不给出比值。",
        )));
    } else if delta != 0 && !is_large(delta, from, to) {
        page.paragraph(page.get(Text::new(
            "The difference is below 1 % of the step: no ratio is shown, and one run of each does not show that there is any.",
            "差异低于步时间的 1 %：不给出比值；两侧各一次运行也不足以说明存在差异。",
        )));
    }
    let caveats = page.capture.caveats();
    if !caveats.is_empty() {
        page.paragraph(page.labelled(
            Text::new("With every number on this page go these caveats", "本页所有数字均附带以下保留"),
            caveats.join(", "),
        ));
    }
}

/// A sentence on a mover.
fn told(page: &DiffPage<'_>, mover: &Mover) -> Inlines {
    let by = match mover.delta() > 0 {
        true => Text::new("{what} ({layer} layer), {by} more, {cause}.", "{what}（{layer}层），多 {by}，{cause}。"),
        false => Text::new("{what} ({layer} layer), {by} less, {cause}.", "{what}（{layer}层），少 {by}，{cause}。"),
    };
    let cause = match mover.causes.first() {
        Some((cause, _)) if *cause != Cause::Unexplained => page
            .fill(Text::new("which comes from {cause}", "来自{cause}"), [("cause", Value::Text(words::cause(*cause)))]),
        _ => page.get(Text::new("and what that comes from was not measured", "其来源没有实测依据")),
    };
    let layer = page.get(common::layer(mover.layer));
    let time = units::time(mover.delta().abs()).into();
    page.compose(by, [("what", name(page, mover)), ("cause", cause), ("layer", layer), ("by", time)])
}

/// What a mover is called.
pub(super) fn name(page: &DiffPage<'_>, mover: &Mover) -> Inlines {
    let name = match &mover.what {
        What::Operator(part, operator) => inlines![Inlines::name(operator), " ", page.get(words::part(*part))],
        What::Bucket(bucket) => Inlines::name(bucket),
        What::Replayed => page.get(words::REPLAYED),
    };
    match mover.waited {
        true => page.get(Text::new("waiting for a late rank: ", "等待较慢的 rank：")) + name,
        false => name,
    }
}
