//! The run beside what probes measured the device to be able to do.

use super::Page;
use crate::{
    cells,
    document::{Align, Table},
    phrase, text, units,
};
use diagnosis::i18n::{Text, Value};

/// Writes the table, where anything was measured.
pub(super) fn write(page: &mut Page<'_>) {
    let Some(held) = &page.capture.held else { return };
    page.heading(Text::new("Against what this device was measured to do", "与本设备实测上限对比"));
    page.paragraph(page.fill(
        Text::new(
            "Class {class} of rank {rank}, per step, median of the probes.",
            "rank {rank} 的 {class}，每步；上限取探针中位数。",
        ),
        [("class", Value::Raw(held.class.clone())), ("rank", Value::Count(held.rank.into()))],
    ));
    let mut table = Table::new([
        (page.get(Text::new("what", "项目")), Align::Left),
        (page.get(Text::new("in the run", "本次运行")), Align::Right),
        (page.get(Text::new("at best", "上限")), Align::Right),
        (page.get(Text::new("reached", "达到")), Align::Right),
    ]);
    for row in &held.rows {
        let show = |value| phrase::shown(value, page.lang);
        table.row(cells![page.get(row.what), show(&row.run), show(&row.ceiling), units::share(row.reached)]);
    }
    page.table(page.get(Text::new("Measured ceilings", "实测上限")), table);
    if held.rows.iter().any(|row| row.reached > 1.0) {
        page.paragraph(page.get(Text::new(
            "The run reached more than what a probe found to be the most: that ceiling is too low, because something held the \
             probe up or because what the run read was in a cache. Measure again with `strato probe`.",
            "本次运行超过了探针测得的上限：该上限偏低，可能是探针受到干扰，也可能是所读数据在缓存中。请用 `strato probe` 重新测量。",
        )));
    }
    if let Some(noise) = &held.noise {
        let said = Text::new(
            "The probes were disturbed, so what is possible may be more: {noise}.",
            "探针运行受到干扰，真实上限可能更高：{noise}。",
        );
        page.paragraph(page.fill(said, [("noise", Value::Raw(text::plain(noise, text::PHRASE)))]));
    }
}
