//! Interned text. Kernel names repeat millions of times; everything else refers to them by a 32-bit id.

use rustc_hash::FxHashMap;

/// An interned string of one [`Strings`] table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StringId(pub u32);

/// Longest text kept, in bytes; a longer one is cut at a character boundary and marked with its full length, so that a
/// hostile name cannot fill memory through its copies.
pub const MAX_TEXT: usize = 16 * 1024;

/// The string table of one capture. Id 0 is always the empty string.
#[derive(Clone, Debug)]
pub struct Strings {
    texts: Vec<Box<str>>,
    ids: FxHashMap<Box<str>, StringId>,
    /// How many distinct texts were cut to [`MAX_TEXT`].
    pub cut: u64,
}

impl Default for Strings {
    fn default() -> Self {
        let mut strings = Self { texts: Vec::new(), ids: FxHashMap::default(), cut: 0 };
        strings.insert("");
        strings
    }
}

impl Strings {
    /// The id of `text`, which is added if new.
    pub fn intern(&mut self, text: &str) -> StringId {
        if text.len() <= MAX_TEXT {
            return self.ids.get(text).copied().unwrap_or_else(|| self.insert(text));
        }
        let shortened = format!("{}… [{} bytes]", &text[..text.floor_char_boundary(MAX_TEXT - 64)], text.len());
        if let Some(id) = self.ids.get(shortened.as_str()) {
            return *id;
        }
        self.cut += 1;
        self.insert(&shortened)
    }

    fn insert(&mut self, text: &str) -> StringId {
        let id = StringId(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        self.texts.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }

    /// The text behind `id`; empty for an id of another table.
    pub fn get(&self, id: StringId) -> &str {
        self.texts.get(id.0 as usize).map_or("", |text| text)
    }

    /// The id of `text` if it is known.
    pub fn find(&self, text: &str) -> Option<StringId> {
        self.ids.get(text).copied()
    }

    /// Number of distinct texts, the empty one included.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Never true: the empty string is always present.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// All texts in id order.
    pub fn iter(&self) -> impl Iterator<Item = (StringId, &str)> {
        self.texts.iter().enumerate().map(|(i, text)| (StringId(i as u32), &**text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_stable_and_zero_is_empty() {
        let mut s = Strings::default();
        let a = s.intern("gemm");
        assert_eq!(s.intern("gemm"), a);
        assert_eq!(s.get(a), "gemm");
        assert_eq!(s.intern(""), StringId(0));
        assert_eq!(s.get(StringId(999)), "");
    }

    #[test]
    fn a_megabyte_name_is_cut_once_and_says_so() {
        let mut s = Strings::default();
        let long = "é".repeat(1 << 20);
        let a = s.intern(&long);
        assert_eq!(s.intern(&long), a);
        assert!(s.get(a).len() <= MAX_TEXT);
        assert!(s.get(a).ends_with("[2097152 bytes]"));
        assert_eq!(s.cut, 1);
    }
}
