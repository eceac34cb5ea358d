//! Products, and the layout of weights in squares.

#![allow(unsafe_code)]

use super::{floats, operator, shaped};
use crate::{
    error::{self, Outcome, answer, fault},
    executor::Plan,
    state::{Handle, state},
    tensor::{Format, SIDE, Type, View, squares},
};

/// Sums that are added up side by side.
const LANES: usize = 8;

/// Where the element (row, column) of a matrix of so many rows and columns lies in NZ. A matrix that was described the other way
/// round lies as the one that is in memory.
fn in_squares(row: usize, column: usize, rows: usize, columns: usize, transposed: bool) -> usize {
    let (inner, outer, outers) = if transposed { (row, column, columns) } else { (column, row, rows) };
    let squares = outers.div_ceil(SIDE);
    ((inner / SIDE) * squares + outer / SIDE) * SIDE * SIDE + (outer % SIDE) * SIDE + inner % SIDE
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0f32; LANES];
    let (a_whole, a_rest) = a.as_chunks::<LANES>();
    let (b_whole, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_whole.iter().zip(b_whole) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}

/// out = x · weight.
fn product(x: View, weight: View, out: View, math: i8) -> Outcome<Plan> {
    floats(&[(&x, "self"), (&weight, "mat2"), (&out, "out")])?;
    let (&[tokens, inputs], &[rows, outputs]) = (x.tensor.dims.as_slice(), weight.tensor.dims.as_slice()) else {
        return fault(error::INVALID, "a product of tensors that are no matrices");
    };
    if inputs != rows || !(0..=4).contains(&math) {
        return fault(error::INVALID, format!("({tokens}, {inputs}) · ({rows}, {outputs}) with cubeMathType {math}"));
    }
    if math == 2 && x.tensor.dtype == Type::Bf16 {
        return fault(error::INVALID, "cubeMathType 2 (USE_FP16) does not take BFLOAT16");
    }
    shaped(&out, "out", &[tokens, outputs])?;
    let squares = weight.tensor.format == Format::Nz;
    let transposed = weight.tensor.is_transposed();
    let flops = 2.0 * (tokens * inputs) as f64 * outputs as f64;
    let views = [&x.clone(), &weight.clone(), &out.clone()];
    Ok(Plan::new(&views, flops, move || {
        let values = x.load();
        let mut column = vec![0f32; inputs];
        for output in 0..outputs {
            for (input, value) in column.iter_mut().enumerate() {
                *value = weight.get(if squares {
                    in_squares(input, output, inputs, outputs, transposed) as i64
                } else {
                    weight.offset(&[input, output])
                });
            }
            for (token, row) in values.chunks_exact(inputs).enumerate() {
                out.set(out.offset(&[token, output]), dot(row, &column));
            }
        }
        Ok(())
    }))
}

operator!(aclnnMatmulGetWorkspaceSize, aclnnMatmul [x, weight, out]
(x: Handle, weight: Handle, out: Handle, math: i8), |state| {
    let plan = product(state.view(x, "self")?, state.view(weight, "mat2")?, state.view(out, "out")?, math)?;
    // Where a real one would put a copy of what is not contiguous.
    Ok(plan.with_workspace(4096))
});

operator!(aclnnMatmulWeightNzGetWorkspaceSize, aclnnMatmulWeightNz [x, weight, out]
(x: Handle, weight: Handle, out: Handle, math: i8), |state| {
    let (x, weight, out) = (state.view(x, "self")?, state.weight(weight, "mat2")?, state.view(out, "out")?);
    if weight.tensor.format != Format::Nz {
        return fault(error::INVALID, "'mat2' is not in NZ; lay it out with aclnnNpuFormatCast first");
    }
    if x.tensor.dtype == Type::F32 {
        return fault(error::INVALID, "FLOAT is not taken, only FLOAT16 and BFLOAT16");
    }
    Ok(product(x, weight, out, math)?.with_workspace(4096))
});

operator!(aclnnNpuFormatCastGetWorkspaceSize, aclnnNpuFormatCast [from, to] (from: Handle, to: Handle), |state| {
    let (from, to) = (state.view(from, "srcTensor")?, state.weight(to, "dstTensor")?);
    if to.tensor.format != Format::Nz || to.tensor.is_transposed() {
        return fault(error::INVALID, "'dstTensor' is not in NZ, or is turned; only ND to NZ is simulated");
    }
    let (rows, columns) = castable(&from)?;
    floats(&[(&from, "srcTensor"), (&to, "dstTensor")])?;
    shaped(&to, "dstTensor", &[rows, columns])?;
    Ok(Plan::new(&[&from.clone(), &to.clone()], 0.0, move || {
        let values = from.load();
        (0..rows.next_multiple_of(SIDE) * columns.next_multiple_of(SIDE)).for_each(|at| to.set(at as i64, 0.0));
        for (row, values) in values.chunks_exact(columns).enumerate() {
            for (column, value) in values.iter().enumerate() {
                to.set(in_squares(row, column, rows, columns, false) as i64, *value);
            }
        }
        Ok(())
    })
    .with_workspace(512))
});

/// Rows and columns of what can be laid out in NZ.
fn castable(from: &View) -> Outcome<(usize, usize)> {
    let &[rows, columns] = from.tensor.dims.as_slice() else {
        return fault(error::INVALID, format!("'srcTensor' has dimensions {:?}, and is no matrix", from.tensor.dims));
    };
    if !matches!(from.tensor.dtype, Type::F16 | Type::Bf16) || !from.tensor.is_contiguous() {
        let text = "'srcTensor' must be contiguous; FLOAT16 and BFLOAT16 are simulated";
        return fault(error::INVALID, text);
    }
    Ok((rows, columns))
}

/// The dimensions stay: whoever asks is to give them back, with a call of C++ that is not this library's.
// SAFETY: the name is aclnn's, which this library stands in for.
#[unsafe(no_mangle)]
extern "C" fn aclnnNpuFormatCastCalculateSizeAndFormat(
    from: Handle,
    format: i32,
    squares_of: i32,
    dims: *mut *mut i64,
    count: *mut u64,
    actual: *mut i32,
) -> i32 {
    answer(|| {
        let from = state().view(from, "srcTensor")?;
        let (rows, columns) = castable(&from)?;
        if dims.is_null() || count.is_null() || actual.is_null() {
            return fault(error::NULL, "the place for dimensions, their count or the format is a null pointer");
        }
        // As an Atlas A2, which is what this stands for.
        if format != Format::Nz as i32 || squares_of != -1 {
            let text =
                format!("no cast to format {format} in squares of type {squares_of}: only to NZ (29), of no type (-1)");
            return fault(error::INVALID, text);
        }
        let own = Box::leak(Box::new(squares(rows, columns)));
        // SAFETY: none is null, and all are the caller's to be written.
        unsafe { (*dims, *count, *actual) = (own.as_mut_ptr(), own.len() as u64, format) };
        Ok(())
    })
}
