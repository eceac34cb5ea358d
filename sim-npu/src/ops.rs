//! What operators compute: plain loops over single precision, rounded once to the type of the result. Signatures are those
//! of aclnn's documentation; what it says an operator does not take is refused.

use crate::{
    error::{self, Outcome, fault},
    tensor::{Type, View},
};

mod attention;
mod elementwise;
mod index;
mod matmul;
mod norm;

/// The two calls of an operator: the first with these arguments, of which those in brackets are handles.
macro_rules! operator {
    ($size:ident, $run:ident [$($handle:ident),*] ($($argument:ident: $type:ty),* $(,)?), |$state:ident| $plan:expr) => {
        // SAFETY (both): the names are aclnn's, which this library stands in for.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "the documentation fixes the arguments")]
        extern "C" fn $size($($argument: $type,)* workspace: *mut u64, executor: *mut crate::state::Handle) -> i32 {
            crate::executor::plan(stringify!($run), &[$($handle),*], workspace, executor, |$state| $plan)
        }

        #[unsafe(no_mangle)]
        extern "C" fn $run(
            workspace: *mut std::ffi::c_void,
            size: u64,
            executor: crate::state::Handle,
            stream: crate::state::Handle,
        ) -> i32 {
            crate::executor::run(stringify!($run), workspace, size, executor, stream)
        }
    };
}
use operator;

/// The type that all of these have, one of floating point.
fn floats(views: &[(&View, &str)]) -> Outcome<Type> {
    let Some(((first, _), rest)) = views.split_first() else { return fault(error::INVALID, "no tensors") };
    let dtype = first.tensor.dtype;
    if !dtype.is_float() {
        return fault(error::INVALID, format!("{dtype:?} is no type of floating point that is taken"));
    }
    match rest.iter().find(|(view, _)| view.tensor.dtype != dtype) {
        Some((view, name)) => {
            fault(error::INVALID, format!("'{name}' is of type {:?}, the first tensor of {dtype:?}", view.tensor.dtype))
        }
        None => Ok(dtype),
    }
}

/// Refuses a tensor of other dimensions.
fn shaped(view: &View, name: &str, dims: &[usize]) -> Outcome {
    if view.tensor.dims == dims {
        return Ok(());
    }
    fault(error::INVALID, format!("'{name}' has dimensions {:?} where {dims:?} are meant", view.tensor.dims))
}

/// Refuses a tensor that cannot be spread to these dimensions.
fn spreads(view: &View, name: &str, to: &[usize]) -> Outcome {
    let own = &view.tensor.dims;
    let fits = own.len() <= to.len() && own.iter().rev().zip(to.iter().rev()).all(|(own, to)| own == to || *own == 1);
    if fits {
        return Ok(());
    }
    fault(error::INVALID, format!("'{name}' of dimensions {own:?} cannot be spread to {to:?}"))
}

/// Refuses a tensor whose elements do not lie one after the other.
fn contiguous(view: &View, name: &str) -> Outcome {
    if view.tensor.is_contiguous() {
        return Ok(());
    }
    fault(error::INVALID, format!("'{name}' is not contiguous, which this operator needs"))
}

/// The number of a dimension, counted from the end where it is negative.
fn axis(view: &View, dim: i64) -> Outcome<usize> {
    let rank = view.tensor.dims.len() as i64;
    let own = if dim < 0 { dim + rank } else { dim };
    if (0..rank).contains(&own) {
        Ok(own as usize)
    } else {
        fault(error::INVALID, format!("no dimension {dim} of {rank}"))
    }
}
