//! Operators that go element by element, and changes of layout.

#![allow(unsafe_code)]

use super::{axis, floats, operator, shaped, spreads};
use crate::{
    error::{self, Outcome, fault},
    executor::Plan,
    state::Handle,
    tensor::View,
};

/// own = f(own, other), where the other is spread.
fn inplace(own: View, other: View, f: impl Fn(f32, f32) -> f32 + Send + Sync + 'static) -> Outcome<Plan> {
    floats(&[(&own, "selfRef"), (&other, "other")])?;
    spreads(&other, "other", &own.tensor.dims)?;
    let flops = own.tensor.count() as f64;
    Ok(Plan::new(&[&own.clone(), &other.clone()], flops, move || {
        let values: Vec<f32> = own
            .offsets()
            .zip(other.spread(&own.tensor.dims))
            .map(|(at, with)| f(own.get(at), other.get(with)))
            .collect();
        own.store(&values);
        Ok(())
    }))
}

/// own = f(own).
fn each(own: View, out: View, f: impl Fn(f32) -> f32 + Send + Sync + 'static) -> Outcome<Plan> {
    floats(&[(&own, "self"), (&out, "out")])?;
    shaped(&out, "out", &own.tensor.dims)?;
    let flops = own.tensor.count() as f64;
    Ok(Plan::new(&[&own.clone(), &out.clone()], flops, move || {
        let values: Vec<f32> = own.load().into_iter().map(&f).collect();
        out.store(&values);
        Ok(())
    }))
}

fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}

operator!(aclnnInplaceAddGetWorkspaceSize, aclnnInplaceAdd [own, other, alpha]
(own: Handle, other: Handle, alpha: Handle), |state| {
    let alpha = state.scalar(alpha, "alpha")? as f32;
    inplace(state.view(own, "selfRef")?, state.view(other, "other")?, move |a, b| a + alpha * b)
});

operator!(aclnnInplaceMulGetWorkspaceSize, aclnnInplaceMul [own, other] (own: Handle, other: Handle), |state| {
    inplace(state.view(own, "selfRef")?, state.view(other, "other")?, |a, b| a * b)
});

operator!(aclnnInplaceAddsGetWorkspaceSize, aclnnInplaceAdds [own, other, alpha]
(own: Handle, other: Handle, alpha: Handle), |state| {
    let (other, alpha) = (state.scalar(other, "other")? as f32, state.scalar(alpha, "alpha")? as f32);
    let own = state.view(own, "selfRef")?;
    each(own.clone(), own, move |x| x + alpha * other)
});

operator!(aclnnInplaceRsqrtGetWorkspaceSize, aclnnInplaceRsqrt [own] (own: Handle), |state| {
    let own = state.view(own, "selfRef")?;
    each(own.clone(), own, |x| 1.0 / x.sqrt())
});

operator!(aclnnSiluGetWorkspaceSize, aclnnSilu [own, out] (own: Handle, out: Handle), |state| {
    each(state.view(own, "self")?, state.view(out, "out")?, silu)
});

operator!(aclnnMulGetWorkspaceSize, aclnnMul [own, other, out] (own: Handle, other: Handle, out: Handle), |state| {
    let (own, other, out) = (state.view(own, "self")?, state.view(other, "other")?, state.view(out, "out")?);
    floats(&[(&own, "self"), (&other, "other"), (&out, "out")])?;
    let dims = out.tensor.dims.clone();
    spreads(&own, "self", &dims)?;
    spreads(&other, "other", &dims)?;
    let views = [&own.clone(), &other.clone(), &out.clone()];
    Ok(Plan::new(&views, out.tensor.count() as f64, move || {
        let pairs = own.spread(&dims).zip(other.spread(&dims));
        let values: Vec<f32> = pairs.map(|(a, b)| own.get(a) * other.get(b)).collect();
        out.store(&values);
        Ok(())
    }))
});

operator!(aclnnSwiGluGetWorkspaceSize, aclnnSwiGlu [x, out] (x: Handle, dim: i64, out: Handle), |state| {
    let (x, out) = (state.view(x, "x")?, state.view(out, "out")?);
    floats(&[(&x, "x"), (&out, "out")])?;
    let last = x.tensor.dims.len().saturating_sub(1);
    if axis(&x, dim)? != last {
        return fault(error::INVALID, format!("dimension {dim} is not the last one, the only one that is simulated"));
    }
    let mut dims = x.tensor.dims.clone();
    match dims.last_mut() {
        Some(width) if width.is_multiple_of(2) => *width /= 2,
        _ => return fault(error::INVALID, "the dimension that is halved is odd"),
    }
    shaped(&out, "out", &dims)?;
    let width = dims.last().copied().unwrap_or(1).max(1);
    Ok(Plan::new(&[&x.clone(), &out.clone()], 4.0 * out.tensor.count() as f64, move || {
        let values = x.load();
        let halves = values.chunks_exact(2 * width).map(|row| row.split_at(width));
        let out_values: Vec<f32> =
            halves.flat_map(|(gate, up)| gate.iter().zip(up).map(|(gate, up)| silu(*gate) * up)).collect();
        out.store(&out_values);
        Ok(())
    }))
});

operator!(aclnnInplaceCopyGetWorkspaceSize, aclnnInplaceCopy [own, from] (own: Handle, from: Handle), |state| {
    let (own, from) = (state.view(own, "selfRef")?, state.view(from, "src")?);
    spreads(&from, "src", &own.tensor.dims)?;
    Ok(Plan::new(&[&own.clone(), &from.clone()], 0.0, move || {
        let values: Vec<f32> = from.spread(&own.tensor.dims).map(|at| from.get(at)).collect();
        own.store(&values);
        Ok(())
    }))
});

operator!(aclnnMeanGetWorkspaceSize, aclnnMean [own, dim, out]
(own: Handle, dim: Handle, keep: bool, dtype: i32, out: Handle), |state| {
    let (own, dim, out) = (state.view(own, "self")?, state.ints(dim, "dim")?, state.view(out, "out")?);
    let found = floats(&[(&own, "self"), (&out, "out")])?;
    let mut dims = own.tensor.dims.clone();
    let last = dims.len().saturating_sub(1);
    if dim.as_slice() != [last as i64] && dim.as_slice() != [-1] || found as i32 != dtype {
        return fault(error::INVALID, format!("the mean over {dim:?} as type {dtype} is not simulated"));
    }
    let width = dims.pop().unwrap_or(1).max(1);
    if keep {
        dims.push(1);
    }
    shaped(&out, "out", &dims)?;
    Ok(Plan::new(&[&own.clone(), &out.clone()], own.tensor.count() as f64, move || {
        let means: Vec<f32> =
            own.load().chunks_exact(width).map(|row| row.iter().sum::<f32>() / width as f32).collect();
        out.store(&means);
        Ok(())
    }))
});
