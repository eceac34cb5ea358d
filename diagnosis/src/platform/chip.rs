//! Facts of chips as their makers publish them, so that a reader knows what device a capture is of. Nothing of them is
//! measured, and no finding rests on them: a ceiling comes from a probe.

use serde::Deserialize;

/// What is published of a chip.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
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
    /// Where this is published.
    pub source: String,
    /// When it was last checked, `YYYY-MM`.
    pub date: String,
}

impl Chip {
    /// Length of the longest of its words that the name of a device holds, given in lower case.
    pub(super) fn fit(&self, device: &str) -> Option<usize> {
        let fits = |word: &&String| holds(device, &word.to_ascii_lowercase());
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
