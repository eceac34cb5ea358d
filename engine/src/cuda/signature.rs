//! What a kernel takes, read off its own text: the driver copies as many arguments as the kernel has, whatever it is given, so
//! nothing is launched that does not have them all.

use std::collections::BTreeMap;

use crate::Dtype;

/// Kind of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An address of the device.
    Memory,
    /// `u64`.
    Size,
    /// `float`.
    Real,
    /// `u32`.
    Flags,
}

impl Kind {
    fn of(parameter: &str) -> Option<Self> {
        if parameter.contains('*') {
            return Some(Self::Memory);
        }
        match parameter.split_whitespace().next()? {
            "u64" => Some(Self::Size),
            "float" => Some(Self::Real),
            "u32" => Some(Self::Flags),
            _ => None,
        }
    }
}

#[cfg(test)]
impl Kind {
    /// The type of such a parameter in PTX.
    pub(super) fn in_ptx(self) -> &'static str {
        match self {
            Self::Memory | Self::Size => ".u64",
            Self::Real => ".f32",
            Self::Flags => ".u32",
        }
    }
}

/// The kernels of a text by name, each with what it takes. A kernel that takes something else is left out, and is then found
/// by nobody.
pub(super) fn of(text: &str, dtype: Dtype) -> BTreeMap<String, Vec<Kind>> {
    let kernel = |declared: &str| {
        let (name, rest) = match declared.strip_prefix("WEIGHTED(") {
            Some(inner) => {
                let (name, rest) = inner.split_once(')')?;
                (format!("{name}_{}", dtype.name()), rest.strip_prefix('(')?)
            }
            None => declared.split_once('(').map(|(name, rest)| (name.to_owned(), rest))?,
        };
        let (parameters, _) = rest.split_once(')')?;
        Some((name, parameters.split(',').map(Kind::of).collect::<Option<_>>()?))
    };
    text.split("\nKERNEL ").skip(1).filter_map(kernel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_arguments_are_read_off_a_text() {
        let text = "\n// KERNEL of no kind\nKERNEL a(float *x, const u32 *inputs, u64 width, float eps) {\n}\n\
                    KERNEL WEIGHTED(b)(\n    const u8 *w,\n    u32 flags) {\n}\nKERNEL odd(int n) {}\n";
        let found = of(text, Dtype::Bf16);
        assert_eq!(found.len(), 2);
        assert_eq!(found["a"], [Kind::Memory, Kind::Memory, Kind::Size, Kind::Real]);
        assert_eq!(found["b_bf16"], [Kind::Memory, Kind::Flags]);
    }
}
