//! The layer of both sides, slot by slot with the kernels of each.

use super::{
    super::{Kernels, kernels, words},
    A, B, DELTA, DiffPage, head, micros, signed,
};
use crate::{
    cells,
    document::{Align, Inlines, Table},
    inlines, kernel_name, units,
};
use diagnosis::{
    compare::{Difference, align::Part, waterfall::Kernel},
    i18n::{Text, Value},
};

/// Slots listed; all others are one row.
const SLOTS: usize = 64;

/// Writes the aligned slots.
pub(super) fn write(page: &mut DiffPage<'_>, difference: &Difference) {
    let (alignment, waterfall) = (&difference.alignment, &difference.waterfall);
    page.heading(Text::new("The layer, kernel by kernel", "逐内核对照一层"));
    let [a, b] = waterfall.coverage;
    let share = |share: Option<f64>| share.map_or("–".to_owned(), units::share);
    let found =
        |n: usize| alignment.found[n].map_or("–".to_owned(), |layers| format!("{} × {}", layers.repeats, layers.len));
    let facts = [
        page.labelled(
            Text::new("Layers found (number × device operations)", "找到的层（层数 × 设备操作数）"),
            format!("A {}, B {}", found(0), found(1)),
        ),
        page.labelled(
            Text::new("Device time in known operators", "已知算子所占设备时间"),
            format!("A {}, B {}", share(a.share()), share(b.share())),
        ),
        page.labelled(
            Text::new("Device time in slots that both have", "两侧共有槽位所占设备时间"),
            format!("A {}, B {}", units::share_of(a.shared, a.busy), units::share_of(b.shared, b.busy)),
        ),
    ];
    page.list(facts);
    if alignment.callers {
        page.paragraph(page.get(Text::new(
            "Equal kernels are told apart by the framework operators that launched them, which both sides record.",
            "相同的内核由两侧均有记录的框架算子加以区分。",
        )));
    }
    let mut table = Table::new([
        (page.get(Text::new("slot", "槽位")), Align::Left),
        (page.get(Text::new("kernels of A", "A 的内核")), Align::Left),
        (page.get(Text::new("kernels of B", "B 的内核")), Align::Left),
        (page.get(Text::new("how they correspond", "对应方式")), Align::Left),
        (head(page, difference, A), Align::Right),
        (head(page, difference, B), Align::Right),
        (head(page, difference, DELTA), Align::Right),
    ]);
    let layered = alignment.layers > 0;
    let mut shown = 0;
    let mut rest = (0u64, [0, 0]);
    let own = |kernels: &Kernels<'_>| match layered {
        true => kernels.slot.part == Part::Layer,
        false => kernels.slot.part != Part::Step,
    };
    for Kernels { slot, of, ns: sides, .. } in kernels(difference).into_iter().filter(own) {
        if shown == SLOTS {
            rest = (rest.0 + 1, [rest.1[0] + sides[0], rest.1[1] + sides[1]]);
            continue;
        }
        shown += 1;
        let [of_a, of_b] = of.map(|list| name(page, list, if layered { alignment.layers } else { 1 }));
        table.row(cells![
            Inlines::name(&slot.name),
            of_a,
            of_b,
            page.get(words::moved(slot.by)),
            micros(sides[0]),
            micros(sides[1]),
            signed(sides[1] - sides[0]),
        ]);
    }
    if rest.0 > 0 {
        let [a, b] = rest.1;
        let name = page.fill(Text::new("{n} further slots", "另有 {n} 个槽位"), [("n", Value::Count(rest.0))]);
        table.row(cells![name, "", "", "", micros(a), micros(b), signed(b - a)]);
    }
    let title = match layered {
        true => Text::new(
            "Exclusive device time of the slots of a layer, over all layers of a step",
            "一层中各槽位的独占设备时间（全步各层合计）",
        ),
        false => Text::new("Exclusive device time of the slots of a step", "步内各槽位的独占设备时间"),
    };
    page.table(page.get(title), table);
}

/// The longest kernel of a slot, how many there are in a layer, and of how many names.
fn name(page: &DiffPage<'_>, kernels: &[Kernel], layers: usize) -> Inlines {
    let Some(first) = kernels.first() else { return "–".into() };
    let count = kernels.iter().map(|kernel| kernel.count).sum::<f64>() / layers.max(1) as f64;
    let times = if (count - 1.0).abs() < 0.05 {
        String::new()
    } else {
        format!("{} × ", units::number((count * 10.0).round() / 10.0))
    };
    let others = match kernels.len() {
        1 => Inlines::new(),
        n => page.aside(
            page.fill(Text::new("and {n} other names", "及另外 {n} 个名称"), [("n", Value::Count(n as u64 - 1))]),
        ),
    };
    inlines![times, Inlines::name(&kernel_name::short(&first.name)), others]
}
