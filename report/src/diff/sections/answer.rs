//! Title and answer: what takes how much longer, where, and why.

use super::{
    super::{Head, Mover, What, is_large, words},
    DiffPage, each,
};
use crate::{
    document::Inlines,
    inlines,
    kernel_name::short,
    phrase,
    sections::{Shown, words as common},
    text, units,
};
use diagnosis::{
    compare::{
        Difference,
        statistics::Outcome,
        terms::{Held, Term},
        waterfall::{Basis, Cause, Unit},
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
    banners(page);
    if page.capture.is_simulated() {
        page.out.notice(page.get(Text::new(
            "**simulated**: at least one of the two was written by a simulator and not measured on a device.",
            "**simulated（模拟数据）**：两者中至少一个由模拟器生成，而非在设备上测得。",
        )));
    }
}

/// What no reader may miss.
fn banners(page: &mut DiffPage<'_>) {
    for banner in page.capture.banners() {
        page.out.notice(Inlines::strong(phrase::plain(&banner, page.lang)));
    }
}

/// The answer.
pub(super) fn write(page: &mut DiffPage<'_>, difference: &Difference) {
    page.heading(Text::new("The answer", "结论"));
    banners(page);
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
    page.title(head);
    units_of_work(page, difference);
    let terms: Vec<&Term> = difference.terms.iter().filter(|term| term.delta() != 0).take(FIRST).collect();
    let told: Vec<Inlines> = terms.iter().map(|term| told(page, difference, term)).collect();
    page.list(told);
    sources(page, difference);
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

/// What each side takes for a unit of its work, where the two do unequal amounts of it.
fn units_of_work(page: &mut DiffPage<'_>, difference: &Difference) {
    let units = &difference.waterfall.units;
    let one = |(unit, [a, b]): &(Unit, [f64; 2])| {
        let time = |ns: f64| Value::Ns(ns.round() as i64);
        page.fill(
            Text::new("{unit} A {a}, B {b} ({ratio})", "{unit}：A {a}，B {b}（{ratio}）"),
            [
                ("unit", Value::Text(words::unit(*unit))),
                ("a", time(*a)),
                ("b", time(*b)),
                ("ratio", Value::Raw(units::ratio(b / a))),
            ],
        )
    };
    if !units.is_empty() {
        let listed = page.join(units.iter().map(one));
        page.paragraph(page.labelled(Text::new("For as much work", "按相同工作量"), listed));
    }
}

/// Terms in the answer.
const FIRST: usize = 3;

/// A term in a line: how much, where, how the two differ in it, and by which kernels.
fn told(page: &DiffPage<'_>, difference: &Difference, term: &Term) -> Inlines {
    let [a, b] = &term.sides;
    let more = term.delta() > 0;
    let by = page.fill(
        if more { Text::new("{by} more", "多 {by}") } else { Text::new("{by} less", "少 {by}") },
        [("by", Value::Ns(term.delta().abs()))],
    ) + each(page, difference);
    let layer = page.get(common::layer(term.layer));
    let what = page.compose(
        Text::new("{by}: {what} ({layer} layer), {a} → {b}", "{by}：{what}（{layer}层），{a} → {b}"),
        [
            ("by", by),
            ("what", place(page, term)),
            ("layer", layer),
            ("a", units::time(a.ns).into()),
            ("b", units::time(b.ns).into()),
        ],
    );
    let mut line = what + page.get(Text::new("; ", "；")) + page.get(words::how(term.how));
    let mut add = |part: Inlines| {
        line += page.get(Text::new("; ", "；"));
        line += part;
    };
    if term.operator.is_some() {
        let per = |side: &Held| {
            let per = side.per_call().map(|ns| units::time(ns.round() as i64)).unwrap_or_else(|| "–".to_owned());
            format!("{} × {per}", units::number(side.calls))
        };
        add(page.fill(
            Text::new("calls A {a}, B {b}", "调用 A {a}，B {b}"),
            [("a", Value::Raw(per(a))), ("b", Value::Raw(per(b)))],
        ));
    }
    if a.lasting.is_some() || b.lasting.is_some() {
        let lasting = |side: &Held| {
            let each = side.lasting.or(side.per_call());
            each.map_or_else(|| "–".to_owned(), |ns| units::time(ns.round() as i64))
        };
        add(page.fill(
            Text::new(
                "a call lasts {a} and {b}, of which a part runs beside other work and is not counted here",
                "每次调用持续 {a} 与 {b}，其中与其他工作重叠的部分未计入此处",
            ),
            [("a", Value::Raw(lasting(a))), ("b", Value::Raw(lasting(b)))],
        ));
    }
    let name = |side: &Held| {
        let short = side.name.as_deref().map(|name| if term.operator.is_some() { short(name) } else { owner(name) });
        short.map_or_else(|| Inlines::from("–"), |name| Inlines::name(&name))
    };
    match (&a.name, &b.name) {
        (None, None) => {}
        (Some(one), Some(other)) if one == other => add(name(a)),
        _ => add(inlines!["A ", name(a), ", B ", name(b)]),
    }
    match (&a.shape, &b.shape) {
        (None, None) => {}
        (Some(one), Some(other)) if one == other => add(Inlines::name(one)),
        _ => {
            let shape = |side: &Held| side.shape.as_deref().map_or_else(|| Inlines::from("–"), Inlines::name);
            add(inlines!["A ", shape(a), ", B ", shape(b)]);
        }
    }
    if a.rate().is_some() || b.rate().is_some() {
        let rate = |side: &Held| side.rate().map_or_else(|| "–".to_owned(), units::number);
        let floor = |side: &Held| side.floor.map_or_else(|| "–".to_owned(), |ns| units::time(ns.round() as i64));
        add(page.fill(
            Text::new(
                "reads at {a} and {b} GB/s (by the data sheets it takes at least {fa} and {fb})",
                "读取速率 {a} 与 {b} GB/s（按数据手册至少需 {fa} 与 {fb}）",
            ),
            [
                ("a", Value::Raw(rate(a))),
                ("b", Value::Raw(rate(b))),
                ("fa", Value::Raw(floor(a))),
                ("fb", Value::Raw(floor(b))),
            ],
        ));
    }
    let cause = match term.causes.first() {
        Some((cause, ns)) if *cause != Cause::Unexplained => {
            page.fill(Text::new("from {cause}", "来自{cause}"), [("cause", Value::Text(words::caused(*cause, *ns)))])
        }
        _ => page.get(Text::new("nothing measured says from what", "其来源没有实测依据")),
    };
    add(cause);
    line + page.get(Text::new(".", "。"))
}

/// Where a term lies: its slot, of several the first and how many more there are.
fn place(page: &DiffPage<'_>, term: &Term) -> Inlines {
    let several = term.name.split_once(" and ").zip(term.slots.len().checked_sub(1));
    match several.filter(|((_, rest), more)| *rest == format!("{more} more")) {
        Some(((first, _), more)) => {
            let rest = Text::new(" and {n} more", " 及另外 {n} 处");
            Inlines::name(first) + page.fill(rest, [("n", Value::Count(more as u64))])
        }
        None => Inlines::name(&term.name),
    }
}

fn owner(name: &str) -> String {
    diagnosis::analysis::owners::short(name)
}

/// What the whole difference comes from, and how much of it nobody can say.
fn sources(page: &mut DiffPage<'_>, difference: &Difference) {
    let [all, open] = difference.waterfall.moved();
    if all == 0 {
        return;
    }
    let causes = difference.waterfall.causes().into_iter().filter(|(_, ns)| *ns != 0);
    let listed = page.join(causes.map(|(cause, ns)| {
        inlines![page.get(words::caused(cause, ns)), " ", if ns > 0 { "+" } else { "−" }, units::time(ns.abs())]
    }));
    let open = page.fill(
        Text::new("{share} of what moved is unexplained", "变动中有 {share} 未解释"),
        [("share", Value::Share(open as f64 / all as f64))],
    );
    let line = page.compose(
        Text::new("What it comes from{each}: {causes}; {open}.", "来源{each}：{causes}；{open}。"),
        [("causes", listed), ("open", open), ("each", each(page, difference))],
    );
    page.paragraph(line);
    if difference.waterfall.setup.ceilings.published {
        page.paragraph(page.get(Text::new(
            "What is environment is the ratio of the data sheets of the two devices (published, not measured).",
            "“环境”一项取两种设备数据手册之比（公布值，非实测）。",
        )));
    }
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
