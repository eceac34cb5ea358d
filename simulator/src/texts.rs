//! Texts: names of variants, and the table of texts of a database, each once, and its number wherever it is meant.

use std::collections::BTreeMap;

/// A name of a variant as it is serialised.
pub(crate) fn snake(variant: &str) -> String {
    let mut out = String::new();
    for c in variant.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Texts and their numbers.
#[derive(Default)]
pub(crate) struct Texts(BTreeMap<String, i64>);

impl Texts {
    /// The number of a text.
    pub(crate) fn id(&mut self, text: &str) -> i64 {
        let next = i64::try_from(self.0.len()).unwrap_or(i64::MAX);
        match self.0.get(text) {
            Some(id) => *id,
            None => *self.0.entry(text.to_owned()).or_insert(next),
        }
    }

    /// All texts with their numbers.
    pub(crate) fn rows(self) -> impl Iterator<Item = (String, i64)> {
        self.0.into_iter()
    }
}
