//! Reads tables page by page, fast and in a fixed order.
//!
//! sqlx hands over about one million rows a second, because every cell of every row is copied and boxed on its way
//! through a channel. So SQLite packs a page of some thousand rows into one JSON array per column and hands that over.
//! Measured on 4.5 million rows of 4 integers, SQLite packs 3.0 million rows per second of processor time so, 2.7 million
//! as one JSON array per row, 2.4 to 3.0 million with `group_concat` per column and 1.5 million with `format`. JSON also
//! keeps the storage class of every cell, so that text in an integer column cannot be mistaken for a number.
//!
//! Pages are ranges of rowids, so that two connections can read one table at the same time and damage in one range
//! cannot hide another. The pages come back in order, which keeps imports deterministic.

use std::{
    iter::Peekable,
    path::{Path, PathBuf},
    sync::mpsc::{IntoIter, SyncSender, sync_channel},
};

use sqlx::{AssertSqlSafe, Row, SqliteConnection};

use super::{
    page::{Column, Lane, Page, lane},
    source::{self, TableInfo, quote},
};

/// Connections that read at the same time; the sink, which takes what both give, is one thread.
const CONNECTIONS: u64 = 2;
/// Pages that each connection may be ahead, which bounds memory.
const AHEAD: usize = 2;
/// Rowids of a page.
const ROWS: u64 = 4096;
/// Rowids of a page with text, whose cells may be [`MAX_CHARACTERS`] long.
const TEXT_ROWS: u64 = 2048;
/// Longest text that is read, in characters: one more than the bytes that the sink keeps, so that it cuts and counts.
const MAX_CHARACTERS: usize = model::strings::MAX_TEXT + 1;
/// Queries spent per table on finding the rows around damage; beyond, whole pages are given up.
const SEARCHES: u32 = 1024;
/// Pages per table that may give neither a row nor a hint where the next one is; beyond, the rest is given up. A damaged
/// table can claim rowids up to 2^63, and no one lives to see their last page.
const FRUITLESS: u32 = 4096;

/// A table to be read.
#[derive(Debug)]
pub(super) struct Job {
    columns: Vec<Option<Column>>,
    page_sql: String,
    next_sql: String,
    wrong_sql: Option<String>,
    first: i64,
    last: i64,
    rows: u64,
}

/// What reading a range of rowids gave.
#[derive(Debug)]
pub(super) enum Item {
    /// Rows.
    Page(Page),
    /// Cells of a wrong type in the page before, and the rowid of the first.
    WrongTypes(u64, i64),
    /// Rowids from the first to the last that could not be read, and why.
    Lost(i64, i64, String),
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
        let present = |name: &str| table.columns.iter().any(|column| column.eq_ignore_ascii_case(name));
        let expressions: Vec<Option<String>> = columns.iter().map(|column| expression(*column, &present)).collect();
        let arrays: Vec<String> = expressions.iter().flatten().map(|e| format!("json_group_array({e})")).collect();
        let not_integer = |name: &&str| format!("typeof({}) NOT IN ('integer', 'null')", quote(name));
        let wrong: Vec<String> = columns
            .iter()
            .flat_map(|column| match column {
                Column::Int(name, others) => [name].into_iter().chain(*others).filter(|n| present(n)).collect(),
                Column::Real(_) | Column::Text(..) => Vec::new(),
            })
            .map(not_integer)
            .collect();
        let name = quote(&table.name);
        let range = format!("FROM {name} WHERE {rowid} BETWEEN ?1 AND ?2");
        let list = arrays.iter().fold(String::from("count(*)"), |list, array| list + ", " + array);
        Some(Self {
            columns: columns.iter().zip(&expressions).map(|(column, e)| e.as_ref().map(|_| *column)).collect(),
            page_sql: format!("SELECT {list} {range}"),
            next_sql: format!("SELECT min({rowid}) FROM {name} WHERE {rowid} > ?1"),
            wrong_sql: (!wrong.is_empty())
                .then(|| format!("SELECT {rowid} {range} AND ({}) ORDER BY {rowid} LIMIT 1", wrong.join(" OR "))),
            first,
            last,
            rows: if columns.iter().any(|c| matches!(c, Column::Text(..))) { TEXT_ROWS } else { ROWS },
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

/// The SQL of a cell. `+x >= ''` is true for text and blobs and for nothing else: SQLite orders numbers before text.
/// Without the plus SQLite would try to make a number of `''` for every cell, which is measurable. What has the wrong
/// type becomes `'?'`, so that it can neither be long nor be taken for a value. Text is mostly short, and then it is
/// not copied before it is packed: between `''` and `x''` lies what is text and nothing else.
fn expression(column: Column, present: &dyn Fn(&str) -> bool) -> Option<String> {
    let number = |name: &str| format!("CASE WHEN +{0} >= '' THEN '?' ELSE {0} END", quote(name));
    let cells: Vec<String> = match column {
        Column::Int(name, others) => {
            [name].iter().chain(others).filter(|name| present(name)).map(|name| number(name)).collect()
        }
        Column::Real(name) => present(name).then(|| number(name)).into_iter().collect(),
        Column::Text(name, id) => {
            let id = id.filter(|id| present(id)).map(|id| format!("CASE WHEN +{0} < '' THEN {0} END", quote(id)));
            let text = present(name).then(|| {
                format!(
                    "CASE WHEN {0} IS NULL THEN {1} WHEN {0} < '' OR {0} >= x'' OR length({0}) > {MAX_CHARACTERS} \
                     THEN CAST(substr({0}, 1, {MAX_CHARACTERS}) AS TEXT) ELSE {0} END",
                    quote(name),
                    id.as_deref().unwrap_or("NULL")
                )
            });
            text.or(id).into_iter().collect()
        }
    };
    match cells.as_slice() {
        [] => None,
        [cell] => Some(cell.clone()),
        cells => Some(format!("coalesce({})", cells.join(", "))),
    }
}

/// Reads the jobs and hands over what they give: job by job, each from its first rowid to its last.
pub(super) fn scan(path: &Path, jobs: &[Job], mut each: impl FnMut(usize, Item)) {
    std::thread::scope(|scope| {
        let mut streams: Vec<Peekable<IntoIter<Sent>>> = (0..CONNECTIONS)
            .map(|connection| {
                let (send, receive) = sync_channel(AHEAD);
                let path = path.to_owned();
                scope.spawn(move || read(path, jobs, connection, &send));
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

fn read(path: PathBuf, jobs: &[Job], connection: u64, send: &SyncSender<Sent>) {
    let fail = |why: String| {
        for (job, Job { first, last, .. }) in jobs.iter().enumerate() {
            let item = Item::Lost(*first, *last, why.clone());
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
        let mut db = match source::connect(&path).await {
            Ok(db) => db,
            Err(error) => return fail(error.to_string()),
        };
        for (index, job) in jobs.iter().enumerate() {
            let mut reader = Reader { db: &mut db, job, searches: SEARCHES, named_wrong_type: false };
            if reader.pages(connection, |page, item| send.send(Sent { job: index, page, item }).is_ok()).await.is_none()
            {
                return;
            }
        }
    });
}

struct Reader<'a> {
    db: &'a mut SqliteConnection,
    job: &'a Job,
    searches: u32,
    named_wrong_type: bool,
}

impl Reader<'_> {
    /// Reads every page of this connection; `None` when nobody listens any more.
    async fn pages(&mut self, connection: u64, mut send: impl FnMut(u64, Item) -> bool) -> Option<()> {
        let (mut number, mut fruitless) = (connection, 0);
        while let Some((first, last)) = self.job.range(number) {
            if fruitless > FRUITLESS {
                let why = format!("{FRUITLESS} pages gave no row");
                return send(number, Item::Lost(first, self.job.last, why)).then_some(());
            }
            let mut found = false;
            let mut ranges = vec![(first, last)];
            while let Some((first, last)) = ranges.pop() {
                match self.page(first, last).await {
                    Ok((page, _)) if page.rows == 0 => {}
                    Ok((page, wrong)) => {
                        found = true;
                        send(number, Item::Page(page)).then_some(())?;
                        if wrong > 0 {
                            let rowid = self.wrong_type(first, last).await;
                            send(number, Item::WrongTypes(wrong, rowid)).then_some(())?;
                        }
                    }
                    Err(_) if first < last && self.searches > 0 => {
                        self.searches -= 1;
                        let middle = first.midpoint(last);
                        ranges.extend([(middle + 1, last), (first, middle)]);
                    }
                    Err(why) => {
                        (found, fruitless) = (true, fruitless + 1);
                        send(number, Item::Lost(first, last, why)).then_some(())?;
                    }
                }
            }
            number += CONNECTIONS;
            if !found {
                match self.skip(last, connection).await {
                    Some(next) => number = number.max(next),
                    None => fruitless += 1,
                }
            }
        }
        Some(())
    }

    async fn page(&mut self, first: i64, last: i64) -> Result<(Page, u64), String> {
        let query = sqlx::query(AssertSqlSafe(self.job.page_sql.clone())).bind(first).bind(last);
        let row = query.fetch_one(&mut *self.db).await.map_err(|error| error.to_string())?;
        let count: i64 = row.try_get_unchecked(0).map_err(|error| error.to_string())?;
        let rows = usize::try_from(count).map_err(|error| error.to_string())?;
        // A damaged tree can lead in circles.
        if count.cast_unsigned() > last.abs_diff(first).saturating_add(1) {
            return Err("the table's tree is damaged".to_owned());
        }
        let (mut lanes, mut wrong, mut cell) = (Vec::with_capacity(self.job.columns.len()), 0, 0);
        for column in &self.job.columns {
            let Some(column) = column else {
                lanes.push(Lane::Missing);
                continue;
            };
            cell += 1;
            let json: &[u8] = row.try_get_unchecked(cell).map_err(|error| error.to_string())?;
            let (cells, bad) = lane(*column, json);
            wrong += bad;
            lanes.push(cells);
        }
        Ok((Page { rows, lanes }, wrong))
    }

    /// The rowid of the first cell of a wrong type; asked once per table, afterwards the page's first rowid must do.
    async fn wrong_type(&mut self, first: i64, last: i64) -> i64 {
        let Some(sql) = self.job.wrong_sql.clone().filter(|_| !self.named_wrong_type) else { return first };
        self.named_wrong_type = true;
        let found = sqlx::query(AssertSqlSafe(sql)).bind(first).bind(last).fetch_optional(&mut *self.db).await;
        found.ok().flatten().and_then(|row| row.try_get_unchecked(0).ok()).unwrap_or(first)
    }

    /// The next page of this connection that may hold rows, after a page without any: tables that were trimmed have wide
    /// gaps between their rowids. `None` where damage hides it.
    async fn skip(&mut self, after: i64, connection: u64) -> Option<u64> {
        let query = sqlx::query(AssertSqlSafe(self.job.next_sql.clone())).bind(after);
        match query.fetch_one(&mut *self.db).await.map(|row| row.try_get_unchecked::<Option<i64>, _>(0)) {
            Ok(Ok(Some(rowid))) if rowid > after => {
                let page = self.job.page_of(rowid);
                Some(page.saturating_add((connection + CONNECTIONS - page % CONNECTIONS) % CONNECTIONS))
            }
            Ok(Ok(None)) => Some(u64::MAX),
            _ => None,
        }
    }
}
