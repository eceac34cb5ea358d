//! Products, and the layout of weights in squares.

#![allow(unsafe_code)]

use std::sync::PoisonError;

use super::{floats, operator, shaped};
use crate::{
    error::{self, Outcome, answer, fault},
    executor::Plan,
    state::{Handle, state},
    tensor::{Format, Type, View},
};

/// Side of a square of NZ, elements of two bytes.
const SIDE: usize = 16;
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
    let squares = weight.tensor.format() == Format::Nz;
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
    if weight.tensor.format() != Format::Nz {
        return fault(error::INVALID, "'mat2' is not in NZ; lay it out with aclnnTransMatmulWeight first");
    }
    if x.tensor.dtype == Type::F32 {
        return fault(error::INVALID, "FLOAT is not taken, only FLOAT16 and BFLOAT16");
    }
    Ok(product(x, weight, out, math)?.with_workspace(4096))
});

operator!(aclnnTransMatmulWeightGetWorkspaceSize, aclnnTransMatmulWeight [weight] (weight: Handle), |state| {
    let own = state.view(weight, "mmWeightRef")?;
    let &[rows, columns] = own.tensor.dims.as_slice() else {
        return fault(error::INVALID, "a weight that is no matrix");
    };
    let transposed = own.tensor.is_transposed();
    if !matches!(own.tensor.dtype, Type::F16 | Type::Bf16) || !(transposed || own.tensor.is_contiguous()) {
        return fault(error::INVALID, "a weight must be of FLOAT16 or BFLOAT16, contiguous or transposed");
    }
    // As the real one does, it says of the tensor from now on that it lies in squares.
    *own.tensor.format.lock().unwrap_or_else(PoisonError::into_inner) = Format::Nz;
    // Looked up again: squares at the edges are whole.
    let own = match state.weight(weight, "mmWeightRef") {
        Ok(own) => own,
        Err(fault) => {
            *own.tensor.format.lock().unwrap_or_else(PoisonError::into_inner) = Format::Nd;
            return Err(fault);
        }
    };
    Ok(Plan::new(&[&own.clone()], 0.0, move || {
        let values = own.load();
        (0..rows.next_multiple_of(SIDE) * columns.next_multiple_of(SIDE)).for_each(|at| own.set(at as i64, 0.0));
        for (row, values) in values.chunks_exact(columns).enumerate() {
            for (column, value) in values.iter().enumerate() {
                own.set(in_squares(row, column, rows, columns, transposed) as i64, *value);
            }
        }
        Ok(())
    })
    .with_workspace(512))
});

// SAFETY: the name is aclnn's, which this library stands in for.
#[unsafe(no_mangle)]
extern "C" fn aclnnCalculateMatmulWeightSizeV2(dims: Handle, dtype: i32, size: *mut u64) -> i32 {
    answer(|| {
        let dims = state().ints(dims, "tensorShape")?;
        if size.is_null() {
            return fault(error::NULL, "the place for the size is a null pointer");
        }
        if dims.len() != 2
            || dims.iter().any(|dim| *dim <= 0)
            || ![Type::F16 as i32, Type::Bf16 as i32].contains(&dtype)
        {
            return fault(error::INVALID, format!("no weight of dimensions {dims:?} and type {dtype}"));
        }
        let elements: u64 = dims.iter().map(|dim| dim.unsigned_abs().next_multiple_of(SIDE as u64)).product();
        // SAFETY: not null, and the caller's to be written.
        unsafe { *size = elements };
        Ok(())
    })
}
