//! A [`Detail`] as a row of the table `detail` and back. One wide table: the file is for queries, and SQLite stores a
//! NULL in one byte.

use model::{CollectiveCall, CopyDetail, Detail, KernelDetail, OpDetail, StringId, SyncKind};

use super::{
    batch::{Cells, Table},
    source::Source,
    statement::Refused,
};

/// The table, with the number of its columns.
pub(super) fn table() -> Table<'static> {
    Table::new("detail", 25)
}

/// Reads what [`encode`] wrote.
pub(super) const SELECT: &str = "SELECT * FROM detail ORDER BY id";

const SYNCS: [(SyncKind, &str); 4] = [
    (SyncKind::Event, "event"),
    (SyncKind::StreamWaitEvent, "stream_wait_event"),
    (SyncKind::Stream, "stream"),
    (SyncKind::Context, "context"),
];

/// The collective that a detail describes.
pub(super) fn collective(detail: &Detail) -> Option<&CollectiveCall> {
    match detail {
        Detail::Collective(call) => Some(call),
        Detail::Kernel(kernel) => kernel.collective.as_deref(),
        _ => None,
    }
}

/// Adds the row of a detail; `strings` is the row of the capture's first string.
pub(super) fn encode(
    cells: &mut Cells<'_, '_>,
    id: i64,
    capture: i64,
    strings: i64,
    detail: &Detail,
) -> Result<(), Refused> {
    let text = |id: Option<StringId>| id.map(|id| strings + i64::from(id.0));
    let none = KernelDetail::default();
    let (kind, kernel) = match detail {
        Detail::Kernel(kernel) => ("kernel", kernel),
        Detail::Copy(_) => ("copy", &none),
        Detail::Op(_) => ("op", &none),
        Detail::Collective(_) => ("collective", &none),
        Detail::Sync(_) => ("sync", &none),
        Detail::Peer(_) => ("peer", &none),
        Detail::Failed(_) => ("failed", &none),
        Detail::Launch(_) => ("launch", &none),
    };
    let copy = if let Detail::Copy(copy) = detail { copy.clone() } else { CopyDetail::default() };
    let op = if let Detail::Op(op) = detail { op.clone() } else { OpDetail::default() };
    let call = collective(detail);
    let sync = if let Detail::Sync(kind) = detail { SYNCS.iter().find(|s| s.0 == *kind).map(|s| s.1) } else { None };
    let peer = if let Detail::Peer(rank) = detail { Some(i64::from(*rank)) } else { None };
    let launched = if let Detail::Launch(kernel) = detail { Some(*kernel) } else { None };
    let error = if let Detail::Failed(code) = detail { Some(*code) } else { None };

    cells.put(id)?.put(capture)?.put(kind)?.put(kernel.graph)?.put(kernel.graph_node.or(copy.graph_node))?;
    for shape in [kernel.grid, kernel.block] {
        for axis in 0..3 {
            cells.put(shape.map(|shape| i64::from(shape[axis])))?;
        }
    }
    cells.put(text(copy.direction))?.put(text(copy.src))?.put(text(copy.dst))?;
    cells.put(copy.bytes.or(call.and_then(|c| c.bytes)))?.put(text(op.shapes))?.put(text(op.dtypes))?;
    cells
        .put(call.is_some())?
        .put(text(call.and_then(|c| c.op).or(launched)))?
        .put(text(call.and_then(|c| c.group)))?;
    cells.put(call.and_then(|c| c.group_size).map(i64::from))?.put(call.and_then(|c| c.seq).or(peer))?;
    cells.put(text(call.and_then(|c| c.dtype)))?.put(sync)?.put(error)?;
    Ok(())
}

/// Reads a row of [`SELECT`].
pub(super) fn decode(row: &Source<'_>) -> Result<Detail, super::Error> {
    let text = |column| row.string(column);
    let shape = |first: usize| -> Result<Option<[u32; 3]>, super::Error> {
        let axes = (row.narrow(first)?, row.narrow(first + 1)?, row.narrow(first + 2)?);
        Ok(if let (Some(x), Some(y), Some(z)) = axes { Some([x, y, z]) } else { None })
    };
    let call = || -> Result<Box<CollectiveCall>, super::Error> {
        Ok(Box::new(CollectiveCall {
            op: text(18)?,
            group: text(19)?,
            group_size: row.narrow(20)?,
            seq: row.integer(21)?,
            bytes: row.integer(14)?,
            dtype: text(22)?,
        }))
    };
    Ok(match row.text(2)? {
        "kernel" => Detail::Kernel(KernelDetail {
            graph: row.integer(3)?,
            graph_node: row.integer(4)?,
            grid: shape(5)?,
            block: shape(8)?,
            collective: if row.need(17)? != 0 { Some(call()?) } else { None },
        }),
        "copy" => Detail::Copy(CopyDetail {
            direction: text(11)?,
            src: text(12)?,
            dst: text(13)?,
            bytes: row.integer(14)?,
            graph_node: row.integer(4)?,
        }),
        "op" => Detail::Op(OpDetail { shapes: text(15)?, dtypes: text(16)? }),
        "collective" => Detail::Collective(call()?),
        "sync" => {
            let name = row.text(23)?;
            let known = SYNCS.iter().find(|s| s.1 == name);
            Detail::Sync(known.ok_or_else(|| row.damaged(format!("unknown kind of wait '{name}'")))?.0)
        }
        "peer" => match row.narrow(21)? {
            Some(rank) => Detail::Peer(rank),
            None => return Err(row.damaged("a wait for no rank".to_owned())),
        },
        "launch" => Detail::Launch(text(18)?.ok_or_else(|| row.damaged("a launch of nothing".to_owned()))?),
        "failed" => Detail::Failed(row.need(24)?),
        other => return Err(row.damaged(format!("unknown kind '{other}'"))),
    })
}
