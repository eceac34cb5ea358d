//! Operators that look up or choose.

#![allow(unsafe_code)]

use super::{axis, operator, shaped};
use crate::{
    error::{self, Outcome, fault},
    executor::Plan,
    state::Handle,
    tensor::{Type, View},
};

/// Refuses indices of another type.
fn indices(view: &View, name: &str) -> Outcome {
    match view.tensor.dtype {
        Type::I32 | Type::I64 => Ok(()),
        other => fault(error::INVALID, format!("'{name}' is of type {other:?} where INT32 or INT64 is meant")),
    }
}

/// A row number that is one, or a fault of the kernel.
fn row(index: i64, rows: usize) -> Outcome<usize> {
    let found = usize::try_from(index).ok().filter(|index| *index < rows);
    found.map_or_else(|| fault(error::KERNEL, format!("index {index} is beyond {rows} rows")), Ok)
}

/// out = the rows of a matrix that are named.
fn rows(table: View, index: View, out: View) -> Outcome<Plan> {
    indices(&index, "index")?;
    let (&[count, width], &[wanted]) = (table.tensor.dims.as_slice(), index.tensor.dims.as_slice()) else {
        return fault(error::INVALID, "only rows of a matrix are looked up here");
    };
    shaped(&out, "out", &[wanted, width])?;
    if out.tensor.dtype != table.tensor.dtype {
        return fault(error::INVALID, "table and result are of two types");
    }
    // Only the rows are read, not the table.
    Ok(Plan::new(&[&out.clone(), &out.clone(), &index.clone()], 0.0, move || {
        table.alive()?;
        for (to, at) in index.offsets().enumerate() {
            let from = row(index.int(at), count)?;
            for column in 0..width {
                out.set(out.offset(&[to, column]), table.get(table.offset(&[from, column])));
            }
        }
        Ok(())
    }))
}

operator!(aclnnEmbeddingGetWorkspaceSize, aclnnEmbedding [table, index, out]
(table: Handle, index: Handle, out: Handle), |state| {
    rows(state.view(table, "weight")?, state.view(index, "indices")?, state.view(out, "out")?)
});

operator!(aclnnIndexSelectGetWorkspaceSize, aclnnIndexSelect [own, index, out]
(own: Handle, dim: i64, index: Handle, out: Handle), |state| {
    let own = state.view(own, "self")?;
    if axis(&own, dim)? != 0 {
        return fault(error::INVALID, format!("dimension {dim} is not the first, the only one that is simulated"));
    }
    rows(own, state.view(index, "index")?, state.view(out, "out")?)
});

operator!(aclnnInplaceIndexCopyGetWorkspaceSize, aclnnInplaceIndexCopy [own, index, source]
(own: Handle, dim: i64, index: Handle, source: Handle), |state| {
    let (own, index, source) =
        (state.view(own, "selfRef")?, state.view(index, "index")?, state.view(source, "source")?);
    indices(&index, "index")?;
    if axis(&own, dim)? != 0 || own.tensor.dtype != source.tensor.dtype {
        return fault(error::INVALID, format!("dimension {dim} is not the first, or two types"));
    }
    let (&[count, width], &[given]) = (own.tensor.dims.as_slice(), index.tensor.dims.as_slice()) else {
        return fault(error::INVALID, "only rows of a matrix are copied here");
    };
    shaped(&source, "source", &[given, width])?;
    Ok(Plan::new(&[&source.clone(), &source.clone(), &index.clone()], 0.0, move || {
        own.alive()?;
        for (from, at) in index.offsets().enumerate() {
            let to = row(index.int(at), count)?;
            for column in 0..width {
                own.set(own.offset(&[to, column]), source.get(source.offset(&[from, column])));
            }
        }
        Ok(())
    }))
});

operator!(aclnnArgMaxGetWorkspaceSize, aclnnArgMax [own, out] (own: Handle, dim: i64, keep: bool, out: Handle), |state| {
    let (own, out) = (state.view(own, "self")?, state.view(out, "out")?);
    indices(&out, "out")?;
    let &[count, width] = own.tensor.dims.as_slice() else {
        return fault(error::INVALID, "the greatest of what is no matrix is not simulated");
    };
    if axis(&own, dim)? != 1 || width == 0 {
        return fault(error::INVALID, format!("dimension {dim} is not the last, the only one that is simulated"));
    }
    let dims = [count, 1];
    shaped(&out, "out", if keep { &dims } else { &dims[..1] })?;
    Ok(Plan::new(&[&own.clone(), &out.clone()], own.tensor.count() as f64, move || {
        let values = own.load();
        for (at, row) in out.offsets().zip(values.chunks_exact(width)) {
            let mut best = 0;
            for (column, value) in row.iter().enumerate() {
                if *value > row[best] {
                    best = column;
                }
            }
            out.set_int(at, best as i64);
        }
        Ok(())
    }))
});
