//! What takes the most time, by name: the tables that are read first.

use super::Page;
use crate::{
    cells,
    document::{Align, Inlines, Table},
    inlines, kernel_name, largest, units,
};
use diagnosis::{
    i18n::{Text, Value},
    largest::{Kind, Over, Row, Tables},
};

/// Counters that are listed.
const SAMPLES: usize = 8;

/// Writes the tables of the leading rank, and those of no rank.
pub(super) fn write(page: &mut Page<'_>) {
    let all: Vec<&Tables> =
        page.capture.tables().filter(|own| !own.rows.is_empty() || own.exposed_communication.is_some()).collect();
    if all.is_empty() && page.capture.largest.samples.is_empty() {
        return;
    }
    page.heading(Text::new("What takes the most time", "耗时最多的内容"));
    for own in all {
        tables(page, own);
    }
    samples(page);
}

fn tables(page: &mut Page<'_>, own: &Tables) {
    let over = largest::over(own, page.lang);
    let of = match own.rank.filter(|_| page.capture.largest.tables.len() > 1) {
        Some(rank) => inlines![format!("rank {rank}, "), over],
        None => over,
    };
    if !own.rows.is_empty() {
        let scales = [Row::mean as fn(&Row) -> i64, |row| row.max.unwrap_or(0)];
        let [mean, max] = scales.map(|pick| units::Scale::of(own.rows.iter().map(pick)));
        let total = units::Scale::of(own.rows.iter().map(|row| row.total));
        let unit = |text: Text, unit: units::Scale| inlines![page.get(text), " ", unit.name()];
        let mut table = Table::new([
            ("".into(), Align::Left),
            (page.get(Text::new("share", "占比")), Align::Right),
            (unit(Text::new("total", "合计"), total), Align::Right),
            ("n".into(), Align::Right),
            (unit(Text::new("mean", "均值"), mean), Align::Right),
            (unit(Text::new("max", "最大"), max), Align::Right),
            (page.get(Text::new("name", "名称")), Align::Left),
            (page.get(Text::new("notes", "备注")), Align::Left),
        ]);
        for kind in Kind::ALL {
            for (n, row) in own.of(kind).enumerate() {
                let first = if n == 0 { page.get(largest::kind(kind)) } else { Inlines::new() };
                table.row(cells![
                    first,
                    units::share(own.share(row.total)),
                    total.digits(row.total),
                    units::count(row.count),
                    mean.digits(row.mean()),
                    row.max.map_or_else(|| "–".to_owned(), |ns| max.digits(ns)),
                    largest::name(row, page.lang),
                    page.join(largest::notes(own, row, page.lang)),
                ]);
            }
        }
        let title = page.get(Text::new("Largest by name: ", "按名称："));
        page.table(inlines![title, of], table);
    }
    exposed(page, own);
    let sentences = own.unnamed().into_iter().map(|row| largest::unnamed(own, row, page.lang));
    let sentences: Vec<Inlines> = largest::outside(own, page.lang).into_iter().chain(sentences).collect();
    page.list(sentences);
}

/// What no kernel hides, as shares of all time.
fn exposed(page: &mut Page<'_>, own: &Tables) {
    let part = |what: Text, ns: i64| page.fill(what, [("share", Value::Share(own.share(ns)))]);
    let communication = Text::new("exposed communication {share}", "未掩盖的通信 {share}");
    let copies = Text::new("exposed copies {share}", "未掩盖的拷贝 {share}");
    let parts = [(communication, own.exposed_communication), (copies, own.exposed_copies)];
    let parts: Vec<Inlines> = parts.into_iter().filter_map(|(what, ns)| Some(part(what, ns?))).collect();
    if parts.is_empty() {
        return;
    }
    let base = page.get(match own.over {
        Over::Steps | Over::Window | Over::Host => Text::new("Of all time: ", "占全部时间："),
        Over::Sums | Over::Alone => Text::new("Of the time that was summed: ", "占合计时间："),
    });
    let line = inlines![base, page.join(parts), page.stop()];
    page.paragraph(line);
}

/// Writes the longest pauses of the leading rank's device.
pub(super) fn write_gaps(page: &mut Page<'_>) {
    let Some(own) = page.capture.tables().find(|own| !own.gaps.is_empty()) else { return };
    let scale = units::Scale::of(own.gaps.iter().map(|gap| gap.ns));
    let mut table = Table::new([
        (inlines![page.get(Text::new("length", "时长")), " ", scale.name()], Align::Right),
        (page.get(Text::new("share", "占比")), Align::Right),
        (page.get(Text::new("begins at, ms", "开始于，ms")), Align::Right),
        (page.per(Text::new("step", "步"), Text::new("window", "窗口")), Align::Right),
        (page.get(Text::new("meanwhile on the host", "其间主机")), Align::Left),
        (page.get(Text::new("ends with", "结束于")), Align::Left),
    ]);
    for gap in &own.gaps {
        table.row(cells![
            scale.digits(gap.ns),
            units::share(own.share(gap.ns)),
            format!("{:.3}", gap.start as f64 / 1e6),
            gap.step.to_string(),
            largest::gap_owner(gap, page.lang),
            gap.ended_by.as_deref().map(|name| Inlines::name(&kernel_name::short(name))).unwrap_or_default(),
        ]);
    }
    page.table(page.get(Text::new("The longest pauses of the device", "设备最长的停顿")), table);
}

/// Clocks, power and other counters of devices.
fn samples(page: &mut Page<'_>) {
    let all = &page.capture.largest.samples;
    let lines: Vec<Inlines> = all.iter().take(SAMPLES).map(|own| largest::sampled(own, page.lang)).collect();
    if lines.is_empty() {
        return;
    }
    page.paragraph(page.get(Text::new("Sampled meanwhile:", "期间采样：")));
    page.list(lines);
    if all.len() > SAMPLES {
        let more = Text::new("{n} further counters are in the JSON.", "另有 {n} 个计数器见 JSON。");
        let more = page.fill(more, [("n", Value::Count((all.len() - SAMPLES) as u64))]);
        page.paragraph(more);
    }
}
