//! What takes the most time by name, shortened to the room that is left.

use super::{
    Screen,
    canvas::{Line, Style, fit, left, middle, right, wrap_at_most},
    say,
};
use crate::{document::Inlines, largest, units};
use diagnosis::{
    i18n::Text,
    largest::{Kind, Row, Tables},
};

/// Share of all time below which a row is not shown while another kind has a larger one.
const LEAST: f64 = 0.005;
/// Lines of samples.
const SAMPLES: usize = 1;
/// Columns that a name has at least.
const NAME: usize = 16;
/// Numbers of a row that are shown, the most that leave room for its name.
const KEPT: [&[usize]; 4] = [&[0, 1, 2, 3, 4], &[0, 1, 2, 3], &[0, 1, 3], &[0, 1]];
/// Rows at least, if there are so many.
pub(super) const FEWEST: usize = 7;

/// The tables in at most `room` lines.
pub(super) fn lines(screen: &Screen<'_>, room: usize) -> Vec<Line> {
    let mut out = Vec::new();
    let mut notes = Vec::new();
    let tables: Vec<&Tables> = screen.capture.tables().filter(|own| !own.rows.is_empty()).collect();
    for own in screen.capture.tables().take(1) {
        notes.extend(exposed(screen, own));
        notes.extend(largest::outside(own, screen.lang).map(|line| say::plain(&line.words())));
        let told =
            own.unnamed().into_iter().find(|row| row.kind != Kind::Idle || !screen.capture.loss.forbids_shares());
        notes.extend(told.map(|row| say::plain(&largest::unnamed(own, row, screen.lang).words())));
    }
    notes.extend(
        screen
            .capture
            .largest
            .samples
            .iter()
            .take(SAMPLES)
            .map(|own| say::plain(&largest::sampled(own, screen.lang).words())),
    );
    let width = screen.width();
    let notes: Vec<Line> =
        notes.iter().flat_map(|note| wrap_at_most(note, width, 1)).map(|note| Line::of(Style::Plain, note)).collect();
    let mut left = room.saturating_sub(notes.len());
    for own in tables {
        if left < 3 {
            break;
        }
        let lines = one(screen, own, left);
        left = left.saturating_sub(lines.len());
        out.extend(lines);
    }
    out.extend(notes);
    out
}

/// What no kernel hides.
fn exposed(screen: &Screen<'_>, own: &Tables) -> Option<String> {
    let told = |what: Text, ns: Option<i64>| {
        let share = own.share(ns?);
        (share >= LEAST).then(|| format!("{} {}", screen.get(what), units::whole_share(share)))
    };
    let parts = [
        told(Text::new("exposed communication", "未掩盖的通信"), own.exposed_communication),
        told(Text::new("exposed copies", "未掩盖的拷贝"), own.exposed_copies),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty())
        .then(|| format!("{} {}", screen.get(Text::new("Of all time:", "占全部时间：")), parts.join(" · ")))
}

/// The rows that are shown: the largest of each kind first, then the next ones, as far as there is room.
fn chosen(own: &Tables, hides_idle: bool, room: usize) -> Vec<&Row> {
    let mut ranked: Vec<(usize, bool, &Row)> = Kind::ALL
        .into_iter()
        .filter(|kind| *kind != Kind::Idle || !hides_idle)
        .flat_map(|kind| own.of(kind).enumerate())
        .map(|(n, row)| (n, own.share(row.total) < LEAST, row))
        .collect();
    // Small ones come last, whatever kind they are of; of a kernel three rows are worth one of the others.
    let place = |row: &Row, n: usize| if row.kind == Kind::Kernel { n / 3 } else { n };
    ranked.sort_by_key(|(n, small, row)| (*small, place(row, *n), row.kind));
    ranked.truncate(room);
    let mut rows: Vec<(Kind, usize, &Row)> = ranked.into_iter().map(|(n, _, row)| (row.kind, n, row)).collect();
    rows.sort_by_key(|(kind, n, _)| (*kind, *n));
    rows.into_iter().map(|(_, _, row)| row).collect()
}

fn one(screen: &Screen<'_>, own: &Tables, room: usize) -> Vec<Line> {
    // What looks idle may be work that is lost.
    let hides_idle = screen.capture.loss.forbids_shares();
    let rows = chosen(own, hides_idle, room.saturating_sub(1));
    let scale = |pick: &dyn Fn(&&Row) -> i64| units::Scale::of(rows.iter().map(pick));
    let (total, mean, max) = (scale(&|row| row.total), scale(&|row| row.mean()), scale(&|row| row.max.unwrap_or(0)));
    let get = |text: Text| screen.get(text);
    let titled = |text: Text, unit: units::Scale| format!("{} {}", get(text), unit.name());
    let cells = |row: &Row| {
        [
            units::whole_share(own.share(row.total)),
            total.digits(row.total),
            units::count(row.count),
            mean.digits(row.mean()),
            row.max.map_or_else(|| "–".to_owned(), |ns| max.digits(ns)),
        ]
    };
    let titles = [
        get(Text::new("share", "占比")).to_owned(),
        titled(Text::new("total", "合计"), total),
        "n".to_owned(),
        titled(Text::new("mean", "均值"), mean),
        titled(Text::new("max", "最大"), max),
    ];
    let shown: Vec<[String; 5]> = rows.iter().map(|row| cells(row)).collect();
    let columns = |n: usize| {
        let of =
            |cells: &[String; 5]| cells.get(n).map_or(0, |cell| unicode_width::UnicodeWidthStr::width(cell.as_str()));
        shown.iter().chain([&titles]).map(of).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..titles.len()).map(columns).collect();
    let kinds = [Text::new("Largest", "最大")].into_iter().chain(Kind::ALL.map(largest::kind));
    let first = kinds.map(|text| unicode_width::UnicodeWidthStr::width(get(text))).max().unwrap_or(0);
    // A narrow terminal shows a name before it shows every number.
    let room = |kept: &[usize]| {
        let taken = kept.iter().filter_map(|n| widths.get(*n)).map(|width| width + 2).sum::<usize>();
        screen.width().saturating_sub(first + 2 + taken)
    };
    let kept = KEPT.into_iter().find(|kept| room(kept) >= NAME).unwrap_or(&[0]);
    let names = room(kept);
    let numbers = |cells: &[String; 5]| {
        let cells = kept.iter().filter_map(|n| Some(right(cells.get(*n)?, *widths.get(*n)?)));
        cells.collect::<Vec<_>>().join("  ")
    };
    let over = largest::over(own, screen.lang).words();
    let over = fit(&format!("{} ({over})", get(Text::new("name", "名称"))), names);
    let head = format!("{}  {}  {over}", left(get(Text::new("Largest", "最大")), first), numbers(&titles));
    let mut out = vec![Line::of(Style::Dim, head)];
    let mut before = None;
    for (row, cells) in rows.iter().zip(&shown) {
        let kind = if before == Some(row.kind) { "" } else { get(largest::kind(row.kind)) };
        before = Some(row.kind);
        let mut line = Line::of(Style::Plain, format!("{}  {}  ", left(kind, first), numbers(cells)));
        named(screen, own, row, names, &mut line);
        out.push(line);
    }
    out
}

/// The name of a row, with as many of its notes as fit.
fn named(screen: &Screen<'_>, own: &Tables, row: &Row, room: usize, line: &mut Line) {
    let words = |inlines: Inlines| say::plain(&inlines.words());
    let name = words(largest::name(row, screen.lang));
    let notes: Vec<String> = largest::notes(own, row, screen.lang).into_iter().map(words).collect();
    let notes = notes.join(", ");
    let width = unicode_width::UnicodeWidthStr::width;
    // Words may lose their end, names lose their middle.
    let cut = |most: usize| if row.name.is_empty() { fit(&name, most) } else { middle(&name, most) };
    let wanted = width(notes.as_str()) + 3;
    match notes.is_empty() || room < wanted + width(name.as_str()).min(24) {
        true => line.push(Style::Plain, cut(room)),
        false => {
            line.push(Style::Plain, cut(room - wanted));
            line.push(Style::Dim, format!(" ({notes})"));
        }
    }
}
