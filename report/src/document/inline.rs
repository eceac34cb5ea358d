//! What stands inside a line.

use std::ops::{Add, AddAssign};

use model::SliceId;

use crate::text;

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inline {
    /// Words.
    Text(String),
    /// A name, a command or another text that is quoted as it is.
    Code(String),
    /// What must not be missed.
    Strong(Inlines),
    /// What is set apart.
    Emphasis(Inlines),
    /// The line ends here, the paragraph does not.
    Break,
    /// Slices that show what is said, for a reader to go to.
    Evidence {
        /// The slices, all of them.
        slices: Vec<SliceId>,
        /// What stands for them on a page, which may be the first of them.
        shown: Inlines,
    },
}

/// Parts of a line one after another. Words beside words are one part, so that equal lines are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inlines(Vec<Inline>);

impl Inlines {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// A text that is quoted as it is.
    pub fn code(text: impl Into<String>) -> Self {
        Inline::Code(text.into()).into()
    }

    /// A name from a capture, cut to what a line holds.
    pub fn name(name: &str) -> Self {
        Self::quoted(name, text::NAME)
    }

    /// A text from a capture, cut to about `most` characters.
    pub fn quoted(text: &str, most: usize) -> Self {
        Self::code(text::cut(text, most))
    }

    /// What must not be missed.
    pub fn strong(text: impl Into<Self>) -> Self {
        Inline::Strong(text.into()).into()
    }

    /// What is set apart.
    pub fn emphasis(text: impl Into<Self>) -> Self {
        Inline::Emphasis(text.into()).into()
    }

    /// Slices that show what is said.
    pub fn evidence(slices: Vec<SliceId>, shown: impl Into<Self>) -> Self {
        Inline::Evidence { slices, shown: shown.into() }.into()
    }

    /// Whether nothing stands in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of it must not be missed.
    pub fn is_strong(&self) -> bool {
        matches!(self.0.as_slice(), [Inline::Strong(_)])
    }

    /// The parts.
    pub fn iter(&self) -> std::slice::Iter<'_, Inline> {
        self.0.iter()
    }

    /// Adds what follows.
    pub fn push(&mut self, more: impl Into<Self>) {
        for part in more.into().0 {
            match (self.0.last_mut(), part) {
                (Some(Inline::Text(last)), Inline::Text(text)) => last.push_str(&text),
                (_, part) => self.0.push(part),
            }
        }
    }

    /// Items with a separator between them.
    pub fn joined<T: Into<Self>>(items: impl IntoIterator<Item = T>, separator: &str) -> Self {
        let mut out = Self::new();
        for (n, item) in items.into_iter().enumerate() {
            if n > 0 {
                out.push(separator);
            }
            out.push(item);
        }
        out
    }

    /// The words alone, as they are: without marks, and with whatever a capture holds.
    pub fn words(&self) -> String {
        let mut out = String::new();
        self.each_word(&mut |word| out.push_str(word));
        out
    }

    fn each_word(&self, take: &mut dyn FnMut(&str)) {
        for part in &self.0 {
            match part {
                Inline::Text(text) | Inline::Code(text) => take(text),
                Inline::Break => take(" "),
                Inline::Strong(inside) | Inline::Emphasis(inside) | Inline::Evidence { shown: inside, .. } => {
                    inside.each_word(take);
                }
            }
        }
    }
}

impl From<Inline> for Inlines {
    fn from(part: Inline) -> Self {
        Self(vec![part])
    }
}

impl From<String> for Inlines {
    fn from(text: String) -> Self {
        if text.is_empty() { Self::new() } else { Inline::Text(text).into() }
    }
}

impl From<&str> for Inlines {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl<T: Into<Inlines>> Add<T> for Inlines {
    type Output = Self;

    fn add(mut self, more: T) -> Self {
        self.push(more);
        self
    }
}

impl<T: Into<Inlines>> AddAssign<T> for Inlines {
    fn add_assign(&mut self, more: T) {
        self.push(more);
    }
}

impl<'a> IntoIterator for &'a Inlines {
    type Item = &'a Inline;
    type IntoIter = std::slice::Iter<'a, Inline>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inlines;

    #[test]
    fn words_beside_words_are_one_part() {
        let line = inlines!["a", "", String::from("b"), Inlines::code("c"), Inlines::strong("d")] + "e";
        assert_eq!(line.iter().count(), 4);
        assert_eq!(line.words(), "abcde");
        assert_eq!(Inlines::joined(["x", "y"], ", "), "x, y".into());
        assert!(Inlines::from("").is_empty());
    }
}
