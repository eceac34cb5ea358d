//! Whether the two may be compared, and why not.

use std::collections::BTreeMap;

use model::manifest::{Field, Provenance};

use super::{super::words, DiffPage};
use crate::{
    cells,
    document::{Align, Inlines, Table},
    inlines, units,
};
use diagnosis::{
    compare::{
        Side,
        contract::{About, Change, Claim, Code, Control, MAIN, Reason, Rule, Status, Verdict},
    },
    i18n::{Text, Value},
};

/// Characters of a value.
const VALUE: usize = 48;
/// Fields named in one line; the rest is counted.
const NAMED: usize = 12;

/// The verdict in a sentence.
pub(super) fn verdict(page: &mut DiffPage<'_>) {
    let contract = &page.capture.contract;
    page.heading(Text::new("May the two be compared?", "两者可比吗？"));
    let verdict = contract.verdict();
    let of_itself = |control: &Control| control.status == Status::Equivalent(Rule::SameCapture);
    let sentence = match verdict {
        Verdict::Comparable if contract.controls.iter().any(of_itself) => Text::new(
            "Yes: A and B are the same capture, so that every difference is zero.",
            "可以：A 与 B 是同一次采集，因此所有差值为零。",
        ),
        Verdict::Comparable => Text::new(
            "Yes: the controls are equal and known, repeats, noise and probes are at hand.",
            "可以：各项控制条件已知且一致，重复次数、波动与探针齐备。",
        ),
        Verdict::Caveats => Text::new(
            "Yes, with caveats: what must be equal is, and what else differs or is unknown goes with every number.",
            "有保留地可以：必须一致的条件一致，其余不同或未知之处随每个数字给出。",
        ),
        Verdict::NotComparable if page.capture.forced => Text::new(
            "No. The numbers on this page were asked for all the same; the reason and the smallest change follow.",
            "不可以。本页数字是按要求强制给出的；下面给出原因与最小改动。",
        ),
        Verdict::NotComparable => Text::new(
            "No. Nothing on this page sets one beside the other; the reason and the smallest change follow, then the report on each side by itself.",
            "不可以。本页不把两者并列；下面给出原因与最小改动，随后是两侧各自的报告。",
        ),
    };
    page.title(page.get(sentence));
    let work = contract.work.as_ref();
    if let Some((work, grade)) = work.and_then(|work| Some((work, work.comparability()?))) {
        let shown = work.parts.iter().filter(|own| own.distance.is_some());
        page.paragraph(page.fill(
            Text::new(
                "Comparability of the work, as both traces show it: {grade} of 1 ({n} parts compared, {other} of them other work).",
                "两侧采集所示工作的可比度：{grade}（满分 1；比较了 {n} 项，其中 {other} 项工作不同）。",
            ),
            [
                ("grade", Value::Raw(units::number(grade))),
                ("n", Value::Count(shown.count() as u64)),
                ("other", Value::Count(work.differing().count() as u64)),
            ],
        ));
    }
}

/// The verdict claim by claim.
pub(super) fn claims(page: &mut DiffPage<'_>) {
    let contract = &page.capture.contract;
    let claims = Claim::ALL.map(|claim| {
        inlines![page.get(words::claim(claim)), page.colon(), page.get(words::verdict(contract.of(claim)))]
    });
    page.list(claims);
}

/// Why they may not be compared, or what goes with every number.
pub(super) fn reasons(page: &mut DiffPage<'_>) {
    let contract = &page.capture.contract;
    let refusals: Vec<&Reason> = contract.refusals(MAIN).collect();
    listed(page, Text::new("Why not", "不可比的原因"), &refusals);
    if contract.verdict() != Verdict::NotComparable {
        let caveats: Vec<&Reason> = contract.caveats(MAIN).collect();
        listed(page, Text::new("Caveats", "保留事项"), &caveats);
    }
}

/// What remains where no declaration and no setting helps.
const OTHER_WORK: Text = Text::new(
    "run both sides on the same work and record them again; `--work-differs` compares them by unit of work instead, and `--force` shows the numbers of both under a banner",
    "让两侧执行相同的工作后重新采集；也可用 `--work-differs` 按单位工作量比较，或用 `--force` 在醒目提示下显示两侧数字",
);

/// What would make the pair comparable; nothing where it is.
pub(super) fn changes(page: &mut DiffPage<'_>) {
    let contract = &page.capture.contract;
    if contract.verdict() == Verdict::NotComparable {
        let mut changes: Vec<Inlines> = contract.changes(MAIN).iter().map(|change| changed(page, change)).collect();
        if changes.is_empty() {
            changes.push(page.get(OTHER_WORK));
        }
        page.title(page.get(Text::new("The smallest change", "最小改动")));
        page.list(changes);
        let open = page.capture.contract.open(MAIN);
        if !open.is_empty() {
            page.paragraph(page.get(Text::new(
                "A file to fill in: `strato diff A B --format toml > pair.toml`; then `strato diff A B --declare pair.toml`. What is open:",
                "可填写的文件：`strato diff A B --format toml > pair.toml`，再运行 `strato diff A B --declare pair.toml`。待填：",
            )));
            let lines = open.iter().map(|field| format!("\"{}\" = \"\"  # {}", field.key, field.what));
            page.out.listing(std::iter::once("[both]".to_owned()).chain(lines).collect::<Vec<_>>().join("\n"));
        }
    }
}

/// Reasons, one line each; fields that are only unknown share one.
fn listed(page: &mut DiffPage<'_>, title: Text, reasons: &[&Reason]) {
    if reasons.is_empty() {
        return;
    }
    let mut unknown: BTreeMap<Option<Side>, Vec<&str>> = BTreeMap::new();
    let mut lines = Vec::new();
    for reason in reasons {
        let twin =
            |other: &&&Reason| (other.code, other.about) == (reason.code, reason.about) && other.side != reason.side;
        match (reason.code, reason.about, reasons.iter().find(twin)) {
            (Code::Unknown, About::Field(field), _) => unknown.entry(reason.side).or_default().push(field.key),
            // What holds of both sides is said once.
            (.., Some(_)) if reason.side == Some(Side::B) => {}
            (.., Some(_)) => lines.push(line(page, &Reason { side: None, ..(*reason).clone() })),
            (.., None) => lines.push(line(page, reason)),
        }
    }
    for (side, fields) in unknown {
        let shown = page.join(fields.iter().take(NAMED).map(|key| Inlines::name(key)));
        let more = fields.len().saturating_sub(NAMED);
        let more = match more {
            0 => Inlines::new(),
            n => page.fill(Text::new(" and {n} more", " 及另外 {n} 项"), [("n", Value::Count(n as u64))]),
        };
        let of = side.map_or(Text::new("either", "两侧"), words::side);
        let told = page.fill(
            Text::new("`UNKNOWN`: not known of {side}: ", "`UNKNOWN`：{side}未知："),
            [("side", Value::Text(of))],
        );
        lines.push(told + shown + more);
    }
    page.title(page.get(title));
    page.list(lines);
}

fn line(page: &DiffPage<'_>, reason: &Reason) -> Inlines {
    let told = words::reason(&page.capture.contract, reason);
    inlines![Inlines::code(reason.text()), page.colon(), page.message(&told)]
}

fn changed(page: &DiffPage<'_>, change: &Change) -> Inlines {
    let both = Text::new("both sides", "两侧");
    let fields = |fields: &[&Field]| page.join(fields.iter().map(|field| Inlines::name(field.key)));
    match change {
        Change::Declare { side, fields: list } => {
            let side = Value::Text(side.map_or(both, words::side));
            let told = page.fill(
                Text::new(
                    "say in a declaration file (`--declare FILE.toml`) what these were of {side}: ",
                    "在声明文件（`--declare FILE.toml`）中给出{side}的：",
                ),
                [("side", side)],
            );
            told + fields(list)
        }
        Change::Rerun { side, settings } => {
            let told = page.fill(
                Text::new("run {side} again with ", "让 {side} 以如下设置重新运行："),
                [("side", Value::Text(words::side(*side)))],
            );
            let setting =
                |(field, value): &(&Field, String)| inlines![Inlines::name(field.key), " = ", Inlines::name(value)];
            told + page.join(settings.iter().map(setting))
        }
        Change::Study { fields: list } => {
            let told = page.get(Text::new(
                "or, if that is what the pair was made to find out, name with `--study`: ",
                "若这正是要研究的差异，用 `--study` 指明：",
            ));
            told + fields(list)
        }
        Change::Record { side, about } => {
            let told = page.fill(
                Text::new(
                    "record {side} again, so that this no longer holds: ",
                    "重新采集 {side}，使以下情况不再成立：",
                ),
                [("side", Value::Text(words::side(*side)))],
            );
            told + page.compose(words::plain(*about), [("side", side.letter().into())])
        }
    }
}

/// Every field that a side states, with both values; those that are equal by their names.
pub(super) fn controls(page: &mut DiffPage<'_>) {
    let controls = &page.capture.contract.controls;
    let mut table = Table::new([
        (page.get(Text::new("field", "字段")), Align::Left),
        ("A".into(), Align::Left),
        ("B".into(), Align::Left),
        (page.get(Text::new("which comes to", "判断")), Align::Left),
    ]);
    let known = |control: &&Control| control.a.is_some() || control.b.is_some();
    for control in controls.iter().filter(known).filter(|control| control.status != Status::Equal) {
        let status = match control.status {
            Status::Equal => Text::new("equal", "相同"),
            Status::Equivalent(_) => Text::new("equivalent", "等价"),
            Status::Different if control.studied => Text::new("different, on purpose", "不同（有意）"),
            Status::Different => Text::new("different", "不同"),
            Status::Unknown => Text::new("unknown", "未知"),
        };
        let value = |side| value(page, control, side).unwrap_or_else(|| "–".into());
        table.row(cells![Inlines::name(control.field.key), value(Side::A), value(Side::B), page.get(status),]);
    }
    page.heading(Text::new("The contract", "可比性契约"));
    if !table.is_empty() {
        page.table(page.get(Text::new("What is not equal", "不相同的项目")), table);
    }
    let equal = || controls.iter().filter(|control| control.status == Status::Equal);
    for (said, title) in [
        (false, Text::new("Equal on both sides, as both captures show", "两侧相同，由采集显示")),
        (
            true,
            Text::new("Equal on both sides, as a person declared of one or both", "两侧相同，由人工声明（一侧或两侧）"),
        ),
    ] {
        let own = equal().filter(|control| is_declared(control) == said);
        let own: Vec<Inlines> = own
            .filter_map(|control| {
                let entry = control.entry(Side::A)?;
                Some(inlines![Inlines::name(control.field.key), " = ", Inlines::quoted(&entry.value, VALUE)])
            })
            .collect();
        if !own.is_empty() {
            page.paragraph(page.labelled(title, page.join(own)));
        }
    }
    let silent = controls.iter().filter(|control| !known(control)).count();
    page.paragraph(page.fill(
        Text::new("{n} further fields are known of neither.", "另有 {n} 个字段两侧均未知。"),
        [("n", Value::Count(silent as u64))],
    ));
}

/// Whether a person said what a side states.
fn is_declared(control: &Control) -> bool {
    Side::BOTH.into_iter().filter_map(|side| control.entry(side)).any(|e| e.provenance == Provenance::Declared)
}

/// What a side states, and whether a person said so.
fn value(page: &DiffPage<'_>, control: &Control, side: Side) -> Option<Inlines> {
    let entry = control.entry(side)?;
    let declared = entry.provenance == Provenance::Declared;
    let mark = if declared { page.aside(page.get(Text::new("declared", "声明"))) } else { Inlines::new() };
    Some(Inlines::quoted(&entry.value, VALUE) + mark)
}
