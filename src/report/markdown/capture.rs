//! Facts about the capture: device, format, ranks, software, and what its rows mean.

use model::EvidenceClass;

use super::{Page, job, words};
use crate::{
    i18n::{Lang, Text, Value},
    report::{
        grade,
        table::{Align, Table},
        text, units,
    },
};

/// Facts of the manifest that are shown; the rest is counted.
const FACTS: usize = 40;

/// Writes the facts.
pub(super) fn write(page: &mut Page<'_>) {
    let capture = page.capture;
    page.heading(Text::new("The capture", "采集信息"));
    let unknown = page.get(Text::new("unknown", "未知"));
    let device = |d: &crate::report::model::DeviceGroup| {
        let name = d.name.as_deref().map_or(unknown.to_owned(), |n| page.name(n));
        let vendor = d.vendor.as_deref().map_or(unknown.to_owned(), |v| text::prose(v, 24));
        format!("{} × {name}{}", d.count, page.aside(&vendor))
    };
    let devices = if capture.devices.is_empty() {
        page.get(Text::new("not recorded", "未记录")).to_owned()
    } else {
        page.join(capture.devices.iter().map(device))
    };
    let ranks = job::present(page);
    let mut rows = vec![
        page.labelled(Text::new("Device", "设备"), &devices),
        page.labelled(Text::new("Format", "格式"), &text::prose(&capture.format, 40)),
        page.labelled(Text::new("Ranks", "rank"), &ranks),
        page.labelled(Text::new("Time recorded", "采集时长"), &capture.window.map_or(unknown.to_owned(), units::time)),
        page.labelled(
            Text::new("Started", "开始时间"),
            &capture
                .start_unix_ns
                .map_or(page.get(Text::new("the source does not say", "数据源未提供")).to_owned(), units::utc),
        ),
    ];
    rows.push(page.labelled(Text::new("Holds", "包含"), &classes(page, true)));
    rows.push(page.labelled(Text::new("Does not hold", "不包含"), &classes(page, false)));
    page.list(rows);
    job::groups(page);
    let [en, zh] = &capture.caveat;
    let caveat = match page.lang {
        Lang::En => en,
        Lang::Zh => zh,
    };
    if !caveat.is_empty() {
        page.paragraph(&page.labelled(Text::new("How to read this source", "如何理解该数据源"), caveat));
    }
    facts(page);
}

fn classes(page: &Page<'_>, held: bool) -> String {
    let all = EvidenceClass::ALL.into_iter().filter(|class| page.capture.evidence.has(*class) == held);
    let names: Vec<&str> = all.map(|class| page.get(grade::name(class))).collect();
    if names.is_empty() { page.get(Text::new("nothing", "无")).to_owned() } else { page.join_long(&names) }
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
    for (key, value, provenance) in capture.facts.iter().take(FACTS) {
        table.row([text::code(key, text::NAME), page.name(value), page.get(words::provenance(*provenance)).to_owned()]);
    }
    page.table(page.get(Text::new("What the run says of itself", "运行自述")), &table);
    if let Some(more) = capture.facts.len().checked_sub(FACTS).filter(|n| *n > 0) {
        page.paragraph(&page.fill(
            Text::new("{n} further facts are in the JSON report.", "另有 {n} 项见 JSON 报告。"),
            [("n", Value::Count(more as u64))],
        ));
    }
}
