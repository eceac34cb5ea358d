//! Facts of chips as their makers publish them: what a device is, and the most that it can do. Nothing of them is measured, so
//! a bound by them says what is possible and never what a kernel reaches.

use serde::Deserialize;

/// What is published of a chip.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chip {
    /// Product.
    pub name: String,
    /// What captures and device tools call it: words of the device's name, in any letter case. The longest one decides.
    devices: Vec<String>,
    /// Cores that take blocks (SM, CU, AI core) of what one device of a capture is; absent where products of one name
    /// differ.
    #[serde(default)]
    pub cores: Option<u32>,
    /// Memory, in the GB or GiB of its maker.
    #[serde(default)]
    pub memory_gb: Option<u32>,
    /// Nominal bandwidth of the memory, 10⁹ B/s.
    #[serde(default)]
    pub memory_gb_per_s: Option<u32>,
    /// Nominal bandwidth of all its links to other devices together, in one direction, 10⁹ B/s.
    #[serde(default)]
    pub link_gb_per_s: Option<u32>,
    /// Bandwidth between the device and its host in one direction, 10⁹ B/s, nominal.
    #[serde(default)]
    pub host_gb_per_s: Option<u32>,
    /// Dense arithmetic.
    #[serde(default)]
    pub peaks: Peaks,
    /// Where this is published.
    pub source: String,
    /// When it was last checked, `YYYY-MM`.
    pub date: String,
}

/// Peaks of dense arithmetic by type, 10¹² operations per second; a multiply-add is two.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)] // the names are the types
pub struct Peaks {
    pub fp64: Option<f64>,
    pub fp32: Option<f64>,
    pub tf32: Option<f64>,
    pub fp16: Option<f64>,
    pub bf16: Option<f64>,
    pub fp8: Option<f64>,
    pub fp4: Option<f64>,
    pub int8: Option<f64>,
}

impl Peaks {
    /// The peak of a type in the words of captures and manifests (`bf16`, `f16`, `fp8 e4m3`, `int8`, …), 10¹² operations per
    /// second. Of 32 bits the larger one of what the units take as such and what they take as TF32.
    pub fn of(&self, dtype: &str) -> Option<f64> {
        match dtype {
            "f64" => self.fp64,
            "f32" => [self.fp32, self.tf32].into_iter().flatten().reduce(f64::max),
            "fp32" => self.fp32,
            "tf32" => self.tf32,
            "f16" => self.fp16,
            "bf16" => self.bf16,
            "int8" => self.int8,
            fp8 if fp8.starts_with("fp8") => self.fp8,
            fp4 if fp4.contains("fp4") => self.fp4,
            _ => None,
        }
    }
}

/// Devices of these words have another chip than the desktop device that their name begins with, and other peaks.
const MOBILE: [&str; 3] = ["laptop", "max-q", "mobile"];

impl Chip {
    /// Length of the longest of its words that the name of a device holds, given in lower case.
    pub(super) fn fit(&self, device: &str) -> Option<usize> {
        let fits = |word: &&String| {
            let word = word.to_ascii_lowercase();
            holds(device, &word) && MOBILE.iter().all(|kind| word.contains(kind) || !device.contains(kind))
        };
        self.devices.iter().filter(fits).map(String::len).max()
    }
}

/// Whether `text` holds `word` with no letter or digit beside it: an `A100` is no `A1000`.
fn holds(text: &str, word: &str) -> bool {
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            let (before, after) = (text.get(..at).unwrap_or(""), text.get(at + word.len()..).unwrap_or(""));
            !part(before.chars().next_back()) && !part(after.chars().next())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_alone() {
        for (text, word, expected) in [
            ("nvidia a100-sxm4-80gb", "a100", true),
            ("nvidia rtx a1000", "a100", false),
            ("ascend910b3", "910b3", false),
            ("910b3", "910b3", true),
            ("xa100 a100", "a100", true),
            ("a100", "", false),
        ] {
            assert_eq!(holds(text, word), expected, "{word} in {text}");
        }
    }
}
