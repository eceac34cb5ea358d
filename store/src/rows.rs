//! The columns of a track from its rows: the slow way, for a file whose chunks are absent or of another version.

use std::path::Path;

use futures_util::TryStreamExt;
use model::{Category, Columns, StringId, trace::NO_CORRELATION};
use sqlx::SqliteConnection;

use super::{Error, chunk, load::Partial, source::Source};

/// Fills every lane of a capture that its chunks left incomplete.
pub(super) async fn fill(connection: &mut SqliteConnection, path: &Path, c: &mut Partial) -> Result<(), Error> {
    for track in 0..c.trace.lanes.len() {
        let (Some(lane), Some(count)) = (c.trace.lanes.get(track), c.counts.get(track)) else { continue };
        if lane.len() != *count {
            let lane = read(connection, path, c, lane.first, *count).await?;
            c.trace.lanes[track] = lane;
        }
    }
    Ok(())
}

async fn read(
    connection: &mut SqliteConnection,
    path: &Path,
    c: &Partial,
    first: u32,
    count: usize,
) -> Result<Columns, Error> {
    let sql = "SELECT id, start_ns, dur_ns, name_id, category, depth, correlation, link_id, detail_id \
               FROM slice WHERE id >= ? AND id < ? ORDER BY id";
    let from = c.first_slice.saturating_add(i64::from(first));
    let to = from.saturating_add_unsigned(count as u64);
    let bounds = c.bounds();
    let mut lane = Columns { first, ..Columns::default() };
    let mut rows = sqlx::query(sql).bind(from).bind(to).fetch(connection);
    while let Some(row) = rows.try_next().await.map_err(Error::sqlite(path, "read"))? {
        let row = Source::of(&row, path, "slice", c.strings());
        let category: Option<u8> = row.narrow(4)?;
        let category = category.and_then(Category::from_code).ok_or_else(|| row.damaged("unknown category"))?;
        let depth: Option<u16> = row.narrow(5)?;
        lane.start.push(row.need(1)?);
        lane.dur.push(row.need(2)?);
        lane.name.push(row.string(3)?.unwrap_or(StringId(0)));
        lane.category.push(category);
        lane.depth.push(depth.unwrap_or(0));
        lane.correlation.push(row.integer(6)?.unwrap_or(NO_CORRELATION));
        lane.link.push(row.index(7, c.first_slice, bounds.slices, "slice")?.unwrap_or(chunk::NONE));
        lane.detail.push(row.index(8, c.first_detail(), bounds.details, "detail")?.unwrap_or(chunk::NONE));
    }
    let damaged = |what| Error::Damaged { path: path.to_owned(), table: "slice", row: from, what };
    if lane.len() != count {
        return Err(damaged(format!("{count} slices of a track are announced, {} are there", lane.len())));
    }
    bounds.check(&lane, 0).map_err(damaged)?;
    Ok(lane)
}
