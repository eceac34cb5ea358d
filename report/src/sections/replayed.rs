//! What the replayed kernels are part of, where the capture of their graph was given.

use model::Beside;

use super::Page;
use crate::{
    cells,
    document::{Align, Inlines, Table},
    text, units,
};
use diagnosis::i18n::{Text, Value};

/// Longest text of shapes that is shown.
const SHAPES: usize = 80;

/// Writes the match rate and the table.
pub(super) fn write(page: &mut Page<'_>) {
    let said = page.capture.facts.iter().find(|(key, ..)| key == Beside::MATCH).map(|(_, value, _)| value.clone());
    let Some(said) = said else { return };
    page.heading(Text::new("What the replayed kernels are", "被回放的内核是什么"));
    page.paragraph(page.fill(
        Text::new(
            "A replay runs its kernels under one call that says of none what it is part of. What was captured into the graph does: {said}. \
             The times are those of the replay; operators, shapes and modules are those of the capture.",
            "回放在一次调用下执行全部内核，该调用不说明它们是什么；图中捕获的内容则说明了：{said}。\
             时间取自回放，算子、形状与模块取自捕获阶段。",
        ),
        [("said", Value::Raw(said))],
    ));
    let Some((rank, class)) = page.capture.leading_rank().and_then(|rank| Some((rank, rank.main_class()?))) else {
        return;
    };
    let mut table = Table::new([
        (page.get(Text::new("operator", "算子")), Align::Left),
        (page.get(Text::new("input shapes", "输入形状")), Align::Left),
        (page.get(Text::new("module", "模块")), Align::Left),
        (page.per(Text::new("kernels per step", "每步内核数"), Text::new("kernels", "内核数")), Align::Right),
        (
            page.per(Text::new("exclusive µs per step", "独占 µs/步"), Text::new("exclusive µs", "独占 µs")),
            Align::Right,
        ),
        (page.per(Text::new("share of step", "占步时间"), Text::new("share", "占比")), Align::Right),
    ]);
    let steps = class.used.max(1) as f64;
    let shown = |name: &str, most| if name.is_empty() { Inlines::new() } else { Inlines::quoted(name, most) };
    for row in &rank.replayed {
        let rest = row.operator.is_empty() && row.module.is_empty();
        table.row(cells![
            if rest { page.get(Text::new("all others", "其余")) } else { shown(&row.operator, text::NAME) },
            shown(&row.shapes, SHAPES),
            shown(&row.module, text::NAME),
            units::number((row.count as f64 / steps * 10.0).round() / 10.0),
            units::tenths(units::mean_tenths(row.busy, class.used)),
            units::share_of(row.busy, class.total),
        ]);
    }
    if !table.is_empty() {
        let title = page.get(Text::new("Replayed kernels by what launched them", "按发起者汇总的被回放内核"));
        page.table(title, table);
    }
}
