//! PTX of every kernel, for devices on whose machine there is no NVRTC. The files are made from the kernels' own text by
//! NVRTC 12.1, whose PTX 8.1 every driver of CUDA 12.1 and later takes: `engine/src/cuda/ptx/make.sh` makes them anew.

use super::source::Family;
use crate::Dtype;

/// Compute capability that they are for; later devices run them too.
pub(super) const CAPABILITY: (u32, u32) = (8, 0);

macro_rules! texts {
    ($($name:literal),* $(,)?) => {
        /// Every file by its name.
        const TEXTS: &[(&str, &str)] = &[$(($name, include_str!(concat!("ptx/", $name, ".ptx")))),*];
    };
}

texts![
    "rows.f32",
    "rows.f16",
    "rows.bf16",
    "rows.q8",
    "linear.f32",
    "linear.f16",
    "linear.bf16",
    "linear.q8",
    "norm",
    "attention",
    "elementwise",
    "sample",
    "synthetic",
    "cast",
];

/// What the file of a family is called.
fn name(family: &Family, dtype: Dtype) -> String {
    if family.is_weighted { format!("{}.{}", family.name, dtype.name()) } else { family.name.to_owned() }
}

/// The PTX of a family; empty of one that has none, which the driver then refuses.
pub(super) fn of(family: &Family, dtype: Dtype) -> &'static str {
    let name = name(family, dtype);
    TEXTS.iter().find(|(of, _)| *of == name).map_or("", |(_, text)| text)
}

#[cfg(test)]
mod tests;
