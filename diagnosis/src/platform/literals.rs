//! Which patterns of a table can match a name at all, found in one way through the name: almost every pattern needs a text to
//! occur in it. The patterns are hundreds, and a capture may have a million names.

use aho_corasick::AhoCorasick;

use super::name::Name;

/// What must occur for a pattern to match.
pub(super) enum Needed<'p> {
    /// A text in the name as written, in whatever letter case.
    Written(&'p str),
    /// A text in the words of one of its shorter forms.
    Worded(&'p str),
    /// Nothing that is known.
    Nothing,
}

/// Finds the patterns of a table whose needs a name meets.
#[derive(Clone, Debug)]
pub(super) struct Literals {
    written: Finder,
    worded: Finder,
    /// Of each pattern, whether it needs nothing.
    always: Vec<bool>,
}

#[derive(Clone, Debug)]
struct Finder {
    texts: AhoCorasick,
    /// The pattern that needs each text.
    patterns: Vec<usize>,
}

impl Finder {
    fn new(needed: Vec<(usize, &str)>, ignore_case: bool) -> Option<Self> {
        let (patterns, texts): (Vec<usize>, Vec<&str>) = needed.into_iter().unzip();
        let texts = AhoCorasick::builder().ascii_case_insensitive(ignore_case).build(texts).ok()?;
        Some(Self { texts, patterns })
    }

    fn mark(&self, text: &str, found: &mut [bool]) {
        for hit in self.texts.find_overlapping_iter(text) {
            let pattern = self.patterns.get(hit.pattern().as_usize());
            if let Some(found) = pattern.and_then(|pattern| found.get_mut(*pattern)) {
                *found = true;
            }
        }
    }
}

impl Literals {
    /// The needs of patterns in their order; `None` where they are more than the search can hold, so that every pattern must be
    /// asked.
    pub fn new<'p>(needs: impl Iterator<Item = Needed<'p>>) -> Option<Self> {
        let (mut written, mut worded, mut always) = (Vec::new(), Vec::new(), Vec::new());
        for (pattern, needed) in needs.enumerate() {
            always.push(match needed {
                Needed::Written(text) if !text.is_empty() => {
                    written.push((pattern, text));
                    false
                }
                Needed::Worded(text) if !text.is_empty() => {
                    worded.push((pattern, text));
                    false
                }
                _ => true,
            });
        }
        Some(Self { written: Finder::new(written, true)?, worded: Finder::new(worded, false)?, always })
    }

    /// Of each pattern, whether it can match the name.
    pub fn possible(&self, name: &Name<'_>) -> Vec<bool> {
        let mut found = self.always.clone();
        self.written.mark(name.full(), &mut found);
        name.words().iter().for_each(|words| self.worded.mark(words, &mut found));
        found
    }
}
