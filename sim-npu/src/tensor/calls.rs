//! The calls that make and destroy the arguments of operators.

#![allow(unsafe_code)]

use std::{ffi::c_void, sync::Arc};

use super::{Format, Tensor, Type, squares};
use crate::{
    error::{self, Outcome, answer, fault, keep},
    state::{Handle, State, state},
};

/// As many numbers as are said, or why not.
fn numbers(from: *const i64, count: u64) -> Outcome<Vec<i64>> {
    if count > 0 && from.is_null() {
        return fault(error::NULL, "an array of numbers is a null pointer");
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > 64 * 1024 {
        return fault(error::INVALID, format!("an array of {count} numbers"));
    }
    // SAFETY: not null, and as long as the caller says.
    Ok((0..count).map(|i| unsafe { *from.add(i) }).collect())
}

/// A handle of what `make` makes, null with a text where it makes nothing.
fn made(make: impl FnOnce(&mut State) -> Outcome<usize>) -> Handle {
    match make(&mut state()) {
        Ok(handle) => std::ptr::without_provenance_mut(handle),
        Err(fault) => {
            keep(fault.code, &fault.text);
            std::ptr::null_mut()
        }
    }
}

fn gone(was_there: bool, what: &str) -> Outcome {
    if was_there { Ok(()) } else { fault(error::INVALID, format!("{what} was destroyed or never created")) }
}

/// Refuses a tensor in NZ that is no whole matrix of 16 bits, as it lies or the other way round, in a memory of its squares.
fn in_squares(dims: &[usize], strides: &[i64], offset: i64, storage: &[i64], dtype: Type) -> Outcome {
    let ([first, second], [down, right]) = (dims, strides) else {
        return fault(error::INVALID, format!("a tensor of dimensions {dims:?} in NZ; only matrices are taken"));
    };
    let expected = match (*down, *right) {
        (1, stride) if stride == *first as i64 => squares(*second, *first),
        (stride, 1) if stride == *second as i64 => squares(*first, *second),
        _ => return fault(error::INVALID, format!("a matrix {dims:?} in NZ with strides {strides:?}")),
    };
    if storage != expected || offset != 0 || dtype.size() != 2 {
        let text =
            format!("a matrix {dims:?} of {dtype:?} in NZ lies in {expected:?} and has 16 bits, not in {storage:?}");
        return fault(error::INVALID, text);
    }
    Ok(())
}

// SAFETY (all below): the names are aclnn's, which this library stands in for.

#[unsafe(no_mangle)]
extern "C" fn aclCreateTensor(
    dims: *const i64,
    count: u64,
    dtype: i32,
    strides: *const i64,
    offset: i64,
    format: i32,
    storage: *const i64,
    storage_count: u64,
    at: *mut c_void,
) -> Handle {
    made(|state| {
        let (dims, storage) = (numbers(dims, count)?, numbers(storage, storage_count)?);
        let strides = if strides.is_null() {
            (0..dims.len()).map(|i| dims.iter().skip(i + 1).product()).collect()
        } else {
            numbers(strides, count)?
        };
        let Some(dtype) = Type::of(dtype) else {
            return fault(error::INVALID, format!("there is no type of elements {dtype}"));
        };
        let Some(format) = [Format::Nd, Format::Nz].into_iter().find(|own| *own as i32 == format) else {
            return fault(error::INVALID, format!("format {format}; only ND (2) and NZ (29) are taken"));
        };
        if dims.iter().chain(&storage).any(|dim| *dim < 0) || at.is_null() {
            return fault(error::INVALID, "a tensor with a negative size, or of a null pointer");
        }
        let reach = dims.iter().zip(&strides).map(|(dim, stride)| (dim - 1).max(0) * stride.max(&0)).sum::<i64>();
        let whole = storage.iter().product::<i64>();
        if offset < 0 || offset.saturating_add(reach) >= whole.max(1) {
            return fault(
                error::INVALID,
                format!("a tensor reaches element {} of a storage of {whole}", offset + reach),
            );
        }
        let dims: Vec<usize> = dims.iter().map(|dim| *dim as usize).collect();
        if format == Format::Nz {
            in_squares(&dims, &strides, offset, &storage, dtype)?;
        }
        let bytes = isize::try_from(offset).unwrap_or(0).saturating_mul(dtype.size() as isize);
        let at = at.expose_provenance().wrapping_add_signed(bytes);
        let handle = state.handle();
        let tensor = Tensor { dims, strides, dtype, format, at };
        state.tensors.insert(handle, Arc::new(tensor));
        Ok(handle)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclDestroyTensor(tensor: Handle) -> i32 {
    answer(|| gone(state().tensors.remove(&tensor.addr()).is_some(), "the tensor"))
}

#[unsafe(no_mangle)]
extern "C" fn aclCreateScalar(value: *mut c_void, dtype: i32) -> Handle {
    made(|state| {
        if value.is_null() {
            return fault(error::NULL, "the value of a scalar is a null pointer");
        }
        // SAFETY: not null, and of the type that the caller says.
        let value = unsafe {
            match Type::of(dtype) {
                Some(Type::F32) => f64::from(value.cast::<f32>().read_unaligned()),
                Some(Type::F64) => value.cast::<f64>().read_unaligned(),
                Some(Type::I32) => f64::from(value.cast::<i32>().read_unaligned()),
                Some(Type::I64) => value.cast::<i64>().read_unaligned() as f64,
                _ => return fault(error::INVALID, format!("a scalar of type {dtype}")),
            }
        };
        let handle = state.handle();
        state.scalars.insert(handle, value);
        Ok(handle)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclDestroyScalar(scalar: Handle) -> i32 {
    answer(|| gone(state().scalars.remove(&scalar.addr()).is_some(), "the scalar"))
}

#[unsafe(no_mangle)]
extern "C" fn aclCreateIntArray(values: *const i64, count: u64) -> Handle {
    made(|state| {
        let values = numbers(values, count)?;
        let handle = state.handle();
        state.int_arrays.insert(handle, Arc::new(values));
        Ok(handle)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclDestroyIntArray(array: Handle) -> i32 {
    answer(|| gone(state().int_arrays.remove(&array.addr()).is_some(), "the array of numbers"))
}

#[unsafe(no_mangle)]
extern "C" fn aclCreateTensorList(tensors: *const Handle, count: u64) -> Handle {
    made(|state| {
        if tensors.is_null() || count == 0 || count > 1024 {
            return fault(error::NULL, format!("a list of {count} tensors"));
        }
        // SAFETY: not null, and as long as the caller says.
        let own: Vec<usize> = (0..count as usize).map(|i| unsafe { *tensors.add(i) }.addr()).collect();
        if own.iter().any(|tensor| !state.tensors.contains_key(tensor)) {
            return fault(error::INVALID, "a list of something that is no tensor, or was destroyed");
        }
        let handle = state.handle();
        state.lists.insert(handle, own);
        Ok(handle)
    })
}

/// The tensors of a list go with it.
#[unsafe(no_mangle)]
extern "C" fn aclDestroyTensorList(list: Handle) -> i32 {
    answer(|| {
        let mut state = state();
        let own = state.lists.remove(&list.addr());
        gone(own.is_some(), "the list")?;
        own.into_iter()
            .flatten()
            .try_for_each(|tensor| gone(state.tensors.remove(&tensor).is_some(), "a tensor of the list"))
    })
}
