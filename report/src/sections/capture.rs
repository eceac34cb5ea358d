//! Facts about the capture: device, format, ranks, software, and what its rows mean.

use model::{Evidence, EvidenceClass};

use super::{Page, job, words};
use crate::{
    cells,
    document::{Align, Inlines, Table, notation},
    grade, inlines,
    model::Chip,
    text, units,
};
use diagnosis::i18n::{Lang, Text, Value};

/// Facts of the manifest that are shown; the rest is counted.
const FACTS: usize = 40;

/// What the maker of a chip publishes.
fn chip(page: &Page<'_>, chip: &Chip) -> Inlines {
    let facts = [
        (chip.cores, Text::new("{n} cores", "{n} 个核心")),
        (chip.memory_gb, Text::new("{n} GB", "{n} GB")),
        (chip.memory_gb_per_s, Text::new("{n} GB/s", "{n} GB/s")),
    ];
    let known = facts.into_iter().filter_map(|(n, text)| Some(page.fill(text, [("n", Value::Count(n?.into()))])));
    let source = text::cut(&format!("{}, {}", chip.source, chip.date), 200);
    inlines![Inlines::name(&chip.name), page.colon(), page.join(known), page.aside(source)]
}

/// Writes the facts.
pub(super) fn write(page: &mut Page<'_>) {
    let capture = page.capture;
    page.heading(Text::new("The capture", "采集信息"));
    let unknown = page.get(Text::new("unknown", "未知"));
    let device = |d: &crate::model::DeviceGroup| {
        let name = d.name.as_deref().map_or_else(|| unknown.clone(), Inlines::name);
        let vendor = d.vendor.as_deref().map_or_else(|| unknown.clone(), |v| text::cut(v, 24).into());
        inlines![format!("{} × ", d.count), name, page.aside(vendor)]
    };
    let devices = if capture.devices.is_empty() {
        page.get(Text::new("not recorded", "未记录"))
    } else {
        let used = page.join(capture.devices.iter().map(device));
        let visible = capture.facts.iter().find(|(key, ..)| key == "hardware.visible");
        let visible: Option<u64> = visible.and_then(|(_, n, _)| n.parse().ok());
        match visible.filter(|n| *n > capture.devices.iter().map(|d| d.count as u64).sum()) {
            Some(n) => {
                page.join([used, page.fill(Text::new("{n} were visible", "可见 {n} 个"), [("n", Value::Count(n))])])
            }
            None => used,
        }
    };
    let ranks = job::present(page);
    let mut rows = vec![
        page.labelled(Text::new("Devices used", "使用的设备"), devices),
        page.labelled(Text::new("Format", "格式"), text::cut(&capture.format, 40)),
        page.labelled(Text::new("Ranks", "rank"), ranks),
        page.labelled(Text::new("Time recorded", "采集时长"), recorded(page, &unknown)),
        page.labelled(Text::new("Of it in the tables below", "其中下文各表覆盖"), covered(page, &unknown)),
        page.labelled(
            Text::new("Started", "开始时间"),
            match capture.start_unix_ns {
                Some(start) => units::utc(start).into(),
                None => page.get(Text::new("the source does not say", "数据源未提供")),
            },
        ),
    ];
    let chips: Vec<Inlines> = capture.devices.iter().filter_map(|d| d.chip.as_ref()).map(|c| chip(page, c)).collect();
    if !chips.is_empty() {
        rows.insert(1, page.labelled(Text::new("Published, not measured", "公开规格（非实测）"), page.join(chips)));
    }
    rows.push(page.labelled(Text::new("Holds", "包含"), classes(page, true)));
    let beyond: Vec<Inlines> = EvidenceClass::ALL.into_iter().filter_map(|class| unread(page, class)).collect();
    if !beyond.is_empty() {
        rows.push(
            page.labelled(
                Text::new("Holds, and this version does not read", "包含，但本版本不读取"),
                page.join(beyond),
            ),
        );
    }
    rows.push(page.labelled(Text::new("Does not hold", "不包含"), classes(page, false)));
    page.list(rows);
    job::groups(page);
    let [en, zh] = &capture.caveat;
    let caveat = match page.lang {
        Lang::En => en,
        Lang::Zh => zh,
    };
    if !caveat.is_empty() {
        page.paragraph(
            page.labelled(Text::new("How to read this source", "如何理解该数据源"), notation::plain(caveat)),
        );
    }
    facts(page);
}

/// The time that the source says it recorded, and the time that its rows span where that is much less.
fn recorded(page: &Page<'_>, unknown: &Inlines) -> Inlines {
    let capture = page.capture;
    let Some(window) = capture.window else { return unknown.clone() };
    match capture.rows.filter(|rows| *rows < window / 2) {
        None => units::time(window).into(),
        Some(rows) => {
            let text = Text::new("its rows span {ns}", "记录行跨度为 {ns}");
            inlines![units::time(window), page.aside(page.fill(text, [("ns", Value::Ns(rows))]))]
        }
    }
}

/// The time that the steps, or the window in their place, cover.
fn covered(page: &Page<'_>, unknown: &Inlines) -> Inlines {
    let Some(rank) = page.capture.leading_rank() else { return unknown.clone() };
    // A window that ends before the work it launched has is no whole that the steps could be a part of.
    let all = page.capture.window.filter(|all| rank.covered <= *all);
    let share = all.map(|all| page.aside(units::share_of(rank.covered, all)));
    inlines![units::time(rank.covered), share.unwrap_or_default()]
}

/// What of a class the source holds and nobody read, with its columns; `None` where what is held is read.
fn unread(page: &Page<'_>, class: EvidenceClass) -> Option<Inlines> {
    let key = Evidence::unread(class);
    let (_, columns, _) = page.capture.facts.iter().find(|(known, ..)| *known == key)?;
    let named = page.aside(text::cut(columns, 120));
    (!page.capture.evidence.has(class)).then(|| inlines![page.get(grade::name(class)), named])
}

fn classes(page: &Page<'_>, held: bool) -> Inlines {
    let has = |class: &EvidenceClass| page.capture.evidence.has(*class);
    let there = |class: &EvidenceClass| has(class) || !held && unread(page, *class).is_some();
    let all = EvidenceClass::ALL.into_iter().filter(|class| there(class) == held);
    let names: Vec<Inlines> = all.map(|class| page.get(grade::name(class))).collect();
    if names.is_empty() { page.get(Text::new("nothing", "无")) } else { page.join_long(names) }
}

fn facts(page: &mut Page<'_>) {
    let capture = page.capture;
    if capture.facts.is_empty() {
        page.paragraph(page.get(Text::new(
            "The capture says nothing of its software, model or workload.",
            "采集中没有关于软件、模型或负载的信息。",
        )));
        return;
    }
    let mut table = Table::new([
        (page.get(Text::new("fact", "项目")), Align::Left),
        (page.get(Text::new("value", "值")), Align::Left),
        (page.get(Text::new("how known", "来源")), Align::Left),
    ]);
    let mut rows = Vec::new();
    for (key, value, provenance) in &capture.facts {
        // One variable of the environment per row: in one they would be cut.
        let parts = if key == "software.env" { value.split(", ").collect() } else { vec![value.as_str()] };
        rows.extend(parts.into_iter().map(|part| (key, part, *provenance)));
    }
    for (key, value, provenance) in rows.iter().take(FACTS) {
        table.row(cells![Inlines::name(key), Inlines::name(value), page.get(words::provenance(*provenance))]);
    }
    page.table(page.get(Text::new("What the run says of itself", "运行自述")), table);
    if let Some(more) = rows.len().checked_sub(FACTS).filter(|n| *n > 0) {
        page.paragraph(page.fill(
            Text::new("{n} further facts are in the JSON report.", "另有 {n} 项见 JSON 报告。"),
            [("n", Value::Count(more as u64))],
        ));
    }
}
