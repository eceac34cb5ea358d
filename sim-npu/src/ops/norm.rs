//! Norms and the rotary embedding.

#![allow(unsafe_code)]

use super::{floats, operator, shaped};
use crate::{
    error::{self, Outcome, fault},
    executor::Plan,
    state::Handle,
    tensor::{Type, View},
};

/// Makes sure that a norm goes over the last dimension, and gives its width.
fn normed(x: &View, gamma: &View, y: &View, rstd: &View) -> Outcome<usize> {
    let mut dims = x.tensor.dims.clone();
    shaped(y, "yOut", &dims)?;
    let width = dims.last().copied().unwrap_or(0);
    shaped(gamma, "gamma", &[width])?;
    if let Some(last) = dims.last_mut() {
        *last = 1;
    }
    shaped(rstd, "rstdOut", &dims)?;
    if rstd.tensor.dtype != Type::F32 || width == 0 {
        return fault(error::INVALID, format!("'rstdOut' of type {:?}, or a norm of nothing", rstd.tensor.dtype));
    }
    Ok(width)
}

/// Writes the norm of `values` and what it was divided by.
fn norm(values: &[f32], width: usize, gamma: &View, eps: f64, y: &View, rstd: &View) {
    let gamma = gamma.load();
    let (mut out, mut roots) = (Vec::with_capacity(values.len()), Vec::new());
    for row in values.chunks_exact(width) {
        let mean = row.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>() / width as f64;
        let root = (1.0 / (mean + eps).sqrt()) as f32;
        out.extend(row.iter().zip(&gamma).map(|(x, gamma)| x * root * gamma));
        roots.push(root);
    }
    y.store(&out);
    rstd.store(&roots);
}

operator!(aclnnRmsNormGetWorkspaceSize, aclnnRmsNorm [x, gamma, y, rstd]
(x: Handle, gamma: Handle, eps: f64, y: Handle, rstd: Handle), |state| {
    let (x, gamma) = (state.view(x, "x")?, state.view(gamma, "gamma")?);
    let (y, rstd) = (state.view(y, "yOut")?, state.view(rstd, "rstdOut")?);
    floats(&[(&x, "x"), (&gamma, "gamma"), (&y, "yOut")])?;
    let width = normed(&x, &gamma, &y, &rstd)?;
    let views = [&x.clone(), &gamma.clone(), &y.clone()];
    Ok(Plan::new(&views, 4.0 * x.tensor.count() as f64, move || {
        norm(&x.load(), width, &gamma, eps, &y, &rstd);
        Ok(())
    }))
});

operator!(aclnnAddRmsNormGetWorkspaceSize, aclnnAddRmsNorm [a, b, gamma, y, rstd, sum]
(a: Handle, b: Handle, gamma: Handle, eps: f64, y: Handle, rstd: Handle, sum: Handle), |state| {
    let (a, b, gamma) = (state.view(a, "x1")?, state.view(b, "x2")?, state.view(gamma, "gamma")?);
    let (y, rstd, sum) = (state.view(y, "yOut")?, state.view(rstd, "rstdOut")?, state.view(sum, "xOut")?);
    floats(&[(&a, "x1"), (&b, "x2"), (&gamma, "gamma"), (&y, "yOut"), (&sum, "xOut")])?;
    shaped(&b, "x2", &a.tensor.dims)?;
    shaped(&sum, "xOut", &a.tensor.dims)?;
    let width = normed(&a, &gamma, &y, &rstd)?;
    let views = [&a.clone(), &b.clone(), &gamma.clone(), &y.clone(), &sum.clone()];
    Ok(Plan::new(&views, 5.0 * a.tensor.count() as f64, move || {
        let sums: Vec<f32> = a.load().iter().zip(b.load()).map(|(a, b)| a + b).collect();
        sum.store(&sums);
        norm(&sums, width, &gamma, eps, &y, &rstd);
        Ok(())
    }))
});

operator!(aclnnRotaryPositionEmbeddingGetWorkspaceSize, aclnnRotaryPositionEmbedding [x, cos, sin, out]
(x: Handle, cos: Handle, sin: Handle, mode: i64, out: Handle), |state| {
    let (x, cos) = (state.view(x, "x")?, state.view(cos, "cos")?);
    let (sin, out) = (state.view(sin, "sin")?, state.view(out, "out")?);
    floats(&[(&x, "x"), (&cos, "cos"), (&sin, "sin"), (&out, "out")])?;
    let dims = x.tensor.dims.clone();
    let &[batch, length, _, width] = dims.as_slice() else {
        return fault(error::INVALID, format!("'x' has dimensions {dims:?} where four are meant"));
    };
    if mode != 0 || !width.is_multiple_of(2) || width > 1024 {
        return fault(error::INVALID, format!("mode {mode} with heads of {width}; only halves (0) are simulated"));
    }
    shaped(&out, "out", &dims)?;
    for (view, name) in [(&cos, "cos"), (&sin, "sin")] {
        super::spreads(view, name, &[batch, length, 1, width])?;
    }
    let views = [&x.clone(), &cos.clone(), &sin.clone(), &out.clone()];
    Ok(Plan::new(&views, 4.0 * x.tensor.count() as f64, move || {
        let (values, half) = (x.load(), width / 2);
        let turns: Vec<(f32, f32)> =
            cos.spread(&dims).zip(sin.spread(&dims)).map(|(c, s)| (cos.get(c), sin.get(s))).collect();
        let mut turned = Vec::with_capacity(values.len());
        for (row, turns) in values.chunks_exact(width).zip(turns.chunks_exact(width)) {
            let other = row[half..].iter().map(|x| -x).chain(row[..half].iter().copied());
            turned.extend(row.iter().zip(other).zip(turns).map(|((x, other), (cos, sin))| x * cos + other * sin));
        }
        out.store(&turned);
        Ok(())
    }))
});
