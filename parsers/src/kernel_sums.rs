//! A table with a row per kernel or call that says how often it ran and how long in all, as `nsys stats` and `rocprof --stats`
//! write it. No row has a place in time, so rows become summaries and never slices.

use model::{Conditions, KernelSummary, Ns, TraceSink};

use crate::{
    Progress, ReadError,
    csv_table::{Row, Table},
    lanes::Account,
};

/// The columns of such a table by their names in it; one that it does not have is told by a name that no column has.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    pub name: &'a str,
    pub count: &'a str,
    pub total: &'a str,
    pub shortest: &'a str,
    pub longest: &'a str,
    pub grid: &'a str,
    pub block: &'a str,
}

/// What a format says of its tables.
pub(crate) struct Sums<'a> {
    /// Id of the format.
    pub format: &'a str,
    /// What its rows become, for the ledger.
    pub becomes: &'a str,
    /// Exponent of the unit of times, in ns.
    pub unit: i32,
    /// What the row with a name is about, and the name as it is kept.
    pub kind: fn(&str) -> (Conditions, &str),
}

/// Reads the rows of `table` and tells what became of them.
///
/// # Errors
/// [`ReadError::Io`] when the operating system fails to read.
pub(crate) fn read(
    table: &mut Table,
    sums: &Sums<'_>,
    columns: Columns<'_>,
    sink: &mut dyn TraceSink,
    progress: Progress<'_>,
) -> Result<(), ReadError> {
    let Columns { name, count, total, shortest, longest, grid, block } = columns;
    // Some writers put no quotes around the names of C++ functions, whose arguments have commas between them.
    table.open_column(name);
    table.select(&[total, count, name, shortest, longest, grid, block]);
    let mut accounts: [(Conditions, &str, &str, Account); 3] = [
        (Conditions::Run, "kernels", sums.becomes, Account::default()),
        (Conditions::Host, "calls", "sums of host calls", Account::default()),
        (Conditions::Classes, "classes", "sums of whole classes of records", Account::default()),
    ];
    while let Some(row) = table.next(progress)? {
        let name = row.text(2);
        let named = name.as_deref().map(sums.kind);
        let of = named.map_or(Conditions::Run, |(of, _)| of);
        let Some((.., account)) = accounts.iter_mut().find(|(known, ..)| *known == of) else { continue };
        account.read += 1;
        match named.and_then(|(of, name)| summary(sink, of, name, row, sums.unit)) {
            Some(time) => account.keep(0, time),
            None => account.incomplete += 1,
        }
    }
    let empty = accounts.iter().all(|(.., account)| account.read == 0);
    for (of, name, becomes, account) in accounts {
        if account.read > 0 || empty && of == Conditions::Run {
            account.tell(sink, sums.format, name, becomes);
        }
    }
    table.tell_damage(sink, sums.format);
    Ok(())
}

/// Adds the summary of a row; its total time.
fn summary(sink: &mut dyn TraceSink, of: Conditions, kernel: &str, row: Row<'_>, unit: i32) -> Option<Ns> {
    let total = row.decimal(0, unit).filter(|total| *total >= 0)?;
    let count = u64::try_from(row.int(1)?).ok()?;
    let range = row.decimal(3, unit).zip(row.decimal(4, unit));
    let sides = |cell| {
        let text = row.text(cell)?;
        let mut sides = text.split_whitespace().map(|side| side.parse().ok());
        Some([sides.next()??, sides.next()??, sides.next()??])
    };
    let (grid, block) = (sides(5), sides(6));
    let kernel = sink.intern(kernel);
    let known = KernelSummary::of(kernel, of);
    sink.summary(KernelSummary { count, total: Some(total), range, grid, block, ..known });
    Some(total)
}
