//! Why a pack could not be used.

use std::path::PathBuf;

/// An error in a pack.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A pack or its directory could not be read.
    #[error("cannot read platform pack {}: {error}; check the path and its permissions", path.display())]
    Read {
        /// File or directory.
        path: PathBuf,
        /// Reason.
        error: std::io::Error,
    },
    /// The text is not a pack.
    #[error("platform pack {name}, line {line}: {message}{}", hint(suggestion.as_deref()))]
    Syntax {
        /// File, or name of an embedded pack.
        name: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong, with the key.
        message: String,
        /// A key that was probably meant.
        suggestion: Option<String>,
    },
    /// A value is not allowed.
    #[error("platform pack {name}, {place}: {message}")]
    Value {
        /// File, or name of an embedded pack.
        name: String,
        /// Entry, such as `[[op]] 3`.
        place: String,
        /// What is wrong and what is allowed.
        message: String,
    },
    /// No pack holds a card for unknown sources.
    #[error("no platform pack holds a semantics card without formats; restore the card `unknown` of the generic pack")]
    NoFallbackCard,
}

fn hint(suggestion: Option<&str>) -> String {
    suggestion.map(|key| format!("; did you mean `{key}`?")).unwrap_or_default()
}

impl PackError {
    /// The error of a text that does not parse. The parser's message lists the keys it expected; the nearest of them is
    /// the suggestion.
    pub(super) fn syntax(name: &str, text: &str, error: &toml::de::Error) -> Self {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.bytes().take(at).filter(|b| *b == b'\n').count() + 1;
        let message = error.message().to_owned();
        let mut quoted = message.split('`').skip(1).step_by(2);
        let suggestion = quoted.next().and_then(|key| {
            let nearest = quoted.min_by_key(|known| distance(key, known))?;
            (distance(key, nearest) <= 1 + key.len() / 3).then(|| nearest.to_owned())
        });
        Self::Syntax { name: name.to_owned(), line, message, suggestion }
    }
}

/// Number of single-character edits between two keys (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut left = i + 1;
        let mut diagonal = i;
        for (cell, y) in row.iter_mut().skip(1).zip(&b) {
            let edited = diagonal + usize::from(x != *y);
            diagonal = *cell;
            left = edited.min(left + 1).min(*cell + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}
