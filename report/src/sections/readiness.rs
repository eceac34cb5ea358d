//! How ready the platform is: the board and the maturity matrix, each cell with its light in a word, what it rests on, and the
//! next step.

use super::Page;
use crate::{
    cells,
    document::{Align, Inlines, Table},
    readiness::{self, Row},
};
use diagnosis::i18n::Text;

/// Writes the section.
pub(super) fn write(page: &mut Page<'_>) {
    let readiness = &page.capture.readiness;
    if readiness.board.is_empty() {
        return;
    }
    page.heading(Text::new("How ready the platform is", "平台就绪度"));
    page.paragraph(page.get(Text::new(
        "As far as this capture shows it: what it shows nothing of is not known, and never green.",
        "仅以本采集所示为限：未显示的一律为未知，绝不默认为绿。",
    )));
    let [board, matrix] = readiness::rows(readiness);
    table(page, readiness::BOARD, Text::new("area", "领域"), &board);
    table(page, readiness::MATRIX, Text::new("area", "领域"), &matrix);
}

fn table(page: &mut Page<'_>, title: Text, of: Text, rows: &[(Text, Row<'_>)]) {
    let mut table = Table::new([
        (page.get(of), Align::Left),
        (page.get(Text::new("light", "灯")), Align::Left),
        (page.get(Text::new("evidence", "证据")), Align::Left),
        (page.get(Text::new("next step", "下一步")), Align::Left),
    ]);
    for (name, row) in rows {
        let facts = row.facts.iter().map(|fact| page.message(&readiness::fact(fact)));
        let next = row.next.map_or_else(|| "–".into(), |next| page.message(&readiness::next(next, row.vendor)));
        table.row(cells![
            page.get(*name),
            Inlines::strong(page.get(readiness::light(row.light))),
            page.join_long(facts),
            next,
        ]);
    }
    page.table(page.get(title), table);
}
