//! Reads tables page by page, fast and in a fixed order.
//!
//! Pages are ranges of rowids, so that two connections can read one table at the same time and damage in one range
//! cannot hide another. The pages come back in order, which keeps imports deterministic.

use std::{
    iter::Peekable,
    path::{Path, PathBuf},
    sync::mpsc::{IntoIter, SyncSender, sync_channel},
};

use sqlx::sqlite::LockedSqliteHandle;

use super::{
    cursor::{Cell, Cursor},
    page::{Column, Origin, Page},
    source::{self, TableInfo, quote},
};

/// Connections that read at the same time; the sink, which takes what both give, is one thread.
const CONNECTIONS: u64 = 2;
/// Pages that each connection may be ahead, which bounds memory.
const AHEAD: usize = 2;
/// Rowids of a page.
const ROWS: u64 = 4096;
/// Rowids of a page with text, whose cells may be [`MAX_BYTES`] long.
const TEXT_ROWS: u64 = 2048;
/// Bytes of text that are read: more than the sink keeps, so that it cuts and counts.
const MAX_BYTES: usize = model::strings::MAX_TEXT + 1;
/// Queries spent per table on finding the rows around damage; beyond, whole pages are given up.
const SEARCHES: u32 = 1024;
/// Pages per table that may give neither a row nor a hint where the next one is; beyond, the rest is given up. A damaged
/// table can claim rowids up to 2^63, and no one lives to see their last page.
const FRUITLESS: u32 = 4096;

/// Fewest bytes that a row takes: its length, its rowid, the length of its header and its place in the page
/// (https://www.sqlite.org/fileformat.html#b_tree_pages). A table that gives more rows than the file has room for, or says so
/// often that there is one further on, leads in circles.
const LEAST_ROW: u64 = 5;

/// Most rows per row that is there for which the absent numbers of a table tell that they were taken out. Own value.
const MOST_TAKEN_OUT: u64 = 4;

/// A table to be read.
#[derive(Debug)]
pub(crate) struct Job {
    origins: Vec<Origin>,
    page_sql: String,
    next_sql: String,
    first: i64,
    last: i64,
    rows: u64,
    numbered: bool,
}

/// What reading a range of rowids gave.
#[derive(Debug)]
pub(crate) enum Item {
    /// Rows.
    Page(Page),
    /// What could not be taken.
    Loss(Loss),
}

/// What a range of rowids lost.
#[derive(Debug)]
pub(crate) enum Loss {
    /// Cells of a wrong type in the page before, and the rowid of the first.
    WrongTypes(u64, i64),
    /// Rowids from the first to the last that could not be read, why, and the most rows that they may have been.
    Rows(i64, i64, String, u64),
    /// Rows that were taken out of the table between its first and its last, by the numbers that no row has.
    TakenOut(u64),
}

impl Loss {
    /// Rowids that could not be read, in a file that has room for `most` rows: damage makes tables claim any number of them.
    fn rows((first, last): (i64, i64), why: String, most: u64) -> Self {
        Self::Rows(first, last, why, last.abs_diff(first).saturating_add(1).min(most.max(1)))
    }
}

struct Sent {
    job: usize,
    page: u64,
    item: Item,
}

impl Job {
    /// The job of reading these columns of the table; `None` when it has no rows or no rowid.
    pub fn new(table: &TableInfo, columns: &[Column]) -> Option<Self> {
        let ((first, last), rowid) = (table.rows?, table.rowid?);
        let mut asked = vec![rowid.to_owned()];
        let mut place = |name: &str| {
            let column = table.column(name)?;
            asked.push(quote(column));
            Some(asked.len() - 1)
        };
        let mut origin = |column: &Column| match column {
            Column::Int(name, others) | Column::Decimal(name, others) => {
                let columns: Vec<usize> = [name].into_iter().chain(*others).filter_map(|name| place(name)).collect();
                match column {
                    _ if columns.is_empty() => Origin::Missing,
                    Column::Decimal(..) => Origin::Decimal(columns),
                    _ => Origin::Int(columns),
                }
            }
            Column::Real(name) => place(name).map_or(Origin::Missing, Origin::Real),
            Column::Text(name, id) => match (place(name), id.and_then(&mut place)) {
                (None, None) => Origin::Missing,
                (text, id) => Origin::Text(text, id),
            },
        };
        let origins = columns.iter().map(&mut origin).collect();
        let name = quote(&table.name);
        Some(Self {
            origins,
            page_sql: format!("SELECT {} FROM {name} WHERE {rowid} BETWEEN ?1 AND ?2", asked.join(", ")),
            next_sql: format!("SELECT min({rowid}) FROM {name} WHERE {rowid} > ?1"),
            first,
            last,
            rows: if columns.iter().any(|c| matches!(c, Column::Text(..))) { TEXT_ROWS } else { ROWS },
            numbered: table.numbered,
        })
    }

    /// Rowids between the first and the last, an upper bound of the rows.
    pub fn extent(&self) -> u64 {
        self.last.abs_diff(self.first).saturating_add(1)
    }

    /// The range of page number `page`, `None` after the last.
    fn range(&self, page: u64) -> Option<(i64, i64)> {
        let offset = page.checked_mul(self.rows).filter(|offset| *offset <= self.last.abs_diff(self.first))?;
        let first = self.first.checked_add_unsigned(offset)?;
        Some((first, first.saturating_add_unsigned(self.rows - 1).min(self.last)))
    }

    fn page_of(&self, rowid: i64) -> u64 {
        rowid.abs_diff(self.first) / self.rows
    }
}

/// Reads the jobs and hands over what they give: job by job, each from its first rowid to its last, and then what their tables
/// lack.
pub(crate) fn scan(path: &Path, jobs: &[Job], mut each: impl FnMut(usize, Item)) {
    let mut given: Vec<Option<u64>> = jobs.iter().map(|job| job.numbered.then_some(0)).collect();
    read_all(path, jobs, |job, item| {
        if let Some(given) = given.get_mut(job) {
            // What damage hides is told as such.
            *given = match &item {
                Item::Page(page) => given.map(|given| given.saturating_add(page.rows as u64)),
                Item::Loss(Loss::Rows(..)) => None,
                Item::Loss(_) => *given,
            };
        }
        each(job, item);
    });
    for (number, (job, given)) in jobs.iter().zip(given).enumerate() {
        let Some(given) = given else { continue };
        let absent = job.extent().saturating_sub(given);
        // Numbers far apart are somebody's own.
        if absent > 0 && absent <= given.saturating_mul(MOST_TAKEN_OUT) {
            each(number, Item::Loss(Loss::TakenOut(absent)));
        }
    }
}

fn read_all(path: &Path, jobs: &[Job], mut each: impl FnMut(usize, Item)) {
    // Where every table is one page long, a second connection would find nothing to do.
    let connections = if jobs.iter().all(|job| job.range(1).is_none()) { 1 } else { CONNECTIONS };
    std::thread::scope(|scope| {
        let mut streams: Vec<Peekable<IntoIter<Sent>>> = (0..connections)
            .map(|number| {
                let (send, receive) = sync_channel(AHEAD);
                let path = path.to_owned();
                scope.spawn(move || read(path, jobs, Share { number, of: connections }, &send));
                receive.into_iter().peekable()
            })
            .collect();
        loop {
            let order = |stream: &mut Peekable<IntoIter<Sent>>| stream.peek().map(|sent| (sent.job, sent.page));
            let next = streams.iter_mut().filter_map(|stream| order(stream).map(|key| (key, stream)));
            let Some((_, stream)) = next.min_by_key(|(key, _)| *key) else { return };
            if let Some(sent) = stream.next() {
                each(sent.job, sent.item);
            }
        }
    });
}

/// The pages that a connection reads: its own number, and every so many after it.
#[derive(Clone, Copy)]
struct Share {
    number: u64,
    of: u64,
}

fn read(path: PathBuf, jobs: &[Job], share: Share, send: &SyncSender<Sent>) {
    let most = std::fs::metadata(&path).map_or(0, |file| file.len()) / LEAST_ROW;
    let fail = |why: String| {
        for (job, Job { first, last, .. }) in jobs.iter().enumerate() {
            let item = Item::Loss(Loss::rows((*first, *last), why.clone(), most));
            if send.send(Sent { job, page: 0, item }).is_err() {
                return;
            }
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(error.to_string()),
    };
    runtime.block_on(async {
        let mut connection = match source::connect(&path).await {
            Ok(connection) => connection,
            Err(error) => return fail(error.to_string()),
        };
        let mut db = match connection.lock_handle().await {
            Ok(db) => db,
            Err(error) => return fail(error.to_string()),
        };
        for (index, job) in jobs.iter().enumerate() {
            let mut reader = Reader { db: &mut db, job, searches: SEARCHES, most };
            if reader.pages(share, |page, item| send.send(Sent { job: index, page, item }).is_ok()).is_none() {
                return;
            }
        }
    });
}

struct Reader<'a, 'l> {
    db: &'a mut LockedSqliteHandle<'l>,
    job: &'a Job,
    searches: u32,
    /// Rows for which the file has room.
    most: u64,
}

impl Reader<'_, '_> {
    /// Reads every page of this connection; `None` when nobody listens any more.
    fn pages(&mut self, share: Share, mut send: impl FnMut(u64, Item) -> bool) -> Option<()> {
        let (mut number, mut fruitless) = (share.number, 0);
        let (mut rows, mut hints) = (0u64, 0u64);
        while let Some((first, last)) = self.job.range(number) {
            if fruitless > FRUITLESS {
                let why = format!("{FRUITLESS} pages gave no row");
                return send(number, Item::Loss(Loss::rows((first, self.job.last), why, self.most))).then_some(());
            }
            if rows.max(hints) > self.most {
                let why = format!("the table says that it has more than the {} rows that fit", self.most);
                return send(number, Item::Loss(Loss::rows((first, self.job.last), why, self.most))).then_some(());
            }
            let mut found = false;
            let mut ranges = vec![(first, last)];
            while let Some((first, last)) = ranges.pop() {
                match self.page(first, last) {
                    Ok((page, _)) if page.rows == 0 => {}
                    Ok((page, wrong)) => {
                        found = true;
                        rows = rows.saturating_add(page.rows as u64);
                        send(number, Item::Page(page)).then_some(())?;
                        if let Some((cells, rowid)) = wrong {
                            send(number, Item::Loss(Loss::WrongTypes(cells, rowid))).then_some(())?;
                        }
                    }
                    Err(_) if first < last && self.searches > 0 => {
                        self.searches -= 1;
                        let middle = first.midpoint(last);
                        ranges.extend([(middle + 1, last), (first, middle)]);
                    }
                    Err(why) => {
                        (found, fruitless) = (true, fruitless + 1);
                        send(number, Item::Loss(Loss::rows((first, last), why, self.most))).then_some(())?;
                    }
                }
            }
            number += share.of;
            if !found {
                match self.skip(last, share) {
                    // A hint speaks of a row, be it one of the other connection's.
                    Some(next) => (number, hints) = (number.max(next), hints + 1),
                    None => fruitless += 1,
                }
            }
        }
        Some(())
    }

    /// The rows of a range, and how many of their cells have a wrong type with the rowid of the first.
    fn page(&mut self, first: i64, last: i64) -> Result<(Page, Option<(u64, i64)>), String> {
        let mut cursor = Cursor::open(self.db, &self.job.page_sql, &[first, last])?;
        let mut page = Page { rows: 0, lanes: self.job.origins.iter().map(Origin::lane).collect() };
        let mut wrong = None;
        let most = last.abs_diff(first).saturating_add(1);
        while cursor.next()? {
            page.rows += 1;
            // A damaged tree can lead in circles.
            if page.rows as u64 > most {
                return Err("the table's tree is damaged".to_owned());
            }
            for (lane, origin) in page.lanes.iter_mut().zip(&self.job.origins) {
                if lane.push(origin, |column| cursor.cell(column, MAX_BYTES)).is_err() {
                    let Cell::Int(rowid) = cursor.cell(0, 0) else { continue };
                    wrong.get_or_insert((0, rowid)).0 += 1;
                }
            }
        }
        Ok((page, wrong))
    }

    /// The next page of this connection that may hold rows, after a page without any: tables that were trimmed have wide
    /// gaps between their rowids. `None` where damage hides it.
    fn skip(&mut self, after: i64, share: Share) -> Option<u64> {
        match self.next(after) {
            Ok(Some(rowid)) if rowid > after => {
                let page = self.job.page_of(rowid);
                Some(page.saturating_add((share.number + share.of - page % share.of) % share.of))
            }
            Ok(None) => Some(u64::MAX),
            _ => None,
        }
    }

    /// The first rowid after `after`.
    fn next(&mut self, after: i64) -> Result<Option<i64>, String> {
        let mut cursor = Cursor::open(self.db, &self.job.next_sql, &[after])?;
        cursor.next()?;
        Ok(match cursor.cell(0, 0) {
            Cell::Int(rowid) => Some(rowid),
            _ => None,
        })
    }
}
