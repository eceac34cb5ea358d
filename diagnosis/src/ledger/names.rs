//! Names of host records without the numbers that only count, and the call paths that they form. Records of one site get one
//! key, so that their time adds up over steps.

use model::{Category, StringId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// Longest name kept, bytes: what follows tells no two sites apart.
const LONGEST: usize = 160;

/// A site of the host's program: a record name, or the time between two records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub u32);

/// A call path: a key and the path that leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(u32);

/// What a key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Site {
    /// A record, and its category; the name is one of those that the key stands for.
    Record(StringId, Category),
    /// Own time of a record, or of no record, between two records inside it.
    Between {
        /// The record that holds the time.
        inside: Option<Key>,
        /// The record that ended before.
        before: Option<Key>,
        /// The record that begins next.
        next: Option<Key>,
    },
}

/// Interns names, sites and call paths of one capture.
pub struct Names<'a> {
    trace: &'a Trace,
    records: FxHashMap<(StringId, bool), Key>,
    texts: FxHashMap<String, Key>,
    several: FxHashSet<Key>,
    between: FxHashMap<[Option<Key>; 3], Key>,
    sites: Vec<Site>,
    paths: Vec<(Option<Path>, Key)>,
    known: FxHashMap<(Option<Path>, Key), Path>,
}

impl<'a> Names<'a> {
    /// Nothing interned yet.
    pub fn new(trace: &'a Trace) -> Self {
        Self {
            trace,
            records: FxHashMap::default(),
            texts: FxHashMap::default(),
            several: FxHashSet::default(),
            between: FxHashMap::default(),
            sites: Vec::new(),
            paths: Vec::new(),
            known: FxHashMap::default(),
        }
    }

    /// Number of keys.
    pub fn keys(&self) -> usize {
        self.sites.len()
    }

    /// The key of a record.
    pub fn record(&mut self, name: StringId, category: Category) -> Key {
        let frame = category == Category::PythonFrame;
        if let Some(key) = self.records.get(&(name, frame)) {
            return *key;
        }
        let text = general(self.trace.strings.get(name), category);
        let next = Key(self.sites.len() as u32);
        let key = *self.texts.entry(text).or_insert(next);
        if key == next {
            self.sites.push(Site::Record(name, category));
        } else if self.record_of(key) != Some(name) {
            self.several.insert(key);
        }
        self.records.insert((name, frame), key);
        key
    }

    /// The key of own time between two records.
    pub fn between(&mut self, inside: Option<Key>, before: Option<Key>, next: Option<Key>) -> Key {
        let fresh = Key(self.sites.len() as u32);
        let key = *self.between.entry([inside, before, next]).or_insert(fresh);
        if key == fresh {
            self.sites.push(Site::Between { inside, before, next });
        }
        key
    }

    /// The path that goes on from another one to a key.
    pub fn path(&mut self, from: Option<Path>, key: Key) -> Path {
        let fresh = Path(self.paths.len() as u32);
        let path = *self.known.entry((from, key)).or_insert(fresh);
        if path == fresh {
            self.paths.push((from, key));
        }
        path
    }

    /// Whether a key stands for records whose names differ in what counts.
    pub fn is_several(&self, key: Key) -> bool {
        self.several.contains(&key)
    }

    /// What a key stands for.
    pub fn site(&self, key: Key) -> Option<Site> {
        self.sites.get(key.0 as usize).copied()
    }

    /// The keys of a path, innermost first.
    pub fn along(&self, path: Path) -> impl Iterator<Item = Key> + '_ {
        let mut at = Some(path);
        std::iter::from_fn(move || {
            let (from, key) = *self.paths.get(at?.0 as usize)?;
            at = from;
            Some(key)
        })
    }

    /// The path around a path.
    pub fn outer(&self, path: Path) -> Option<Path> {
        self.paths.get(path.0 as usize)?.0
    }

    /// The name and category of the record that a key stands for, or that holds the time between two.
    pub fn told(&self, key: Key) -> Option<(StringId, Category)> {
        match self.site(key)? {
            Site::Record(name, category) => Some((name, category)),
            Site::Between { inside, .. } => self.told(inside?),
        }
    }

    /// Its name.
    pub fn record_of(&self, key: Key) -> Option<StringId> {
        self.told(key).map(|(name, _)| name)
    }

    /// The innermost record of a path.
    pub fn innermost(&self, path: Path) -> Option<(StringId, Category)> {
        self.along(path).next().and_then(|key| self.told(key))
    }
}

/// A name without what counts instances: numbers of ranges and objects, line numbers of Python frames.
pub fn general(name: &str, category: Category) -> String {
    let name: String = if name.len() > LONGEST { name.chars().take(LONGEST).collect() } else { name.to_owned() };
    match category {
        Category::PythonFrame => without_lines(&name),
        Category::UserRange => counted(&without_addresses(&name), true),
        _ if name.starts_with("void ") => name,
        _ => counted(&without_addresses(&name), false),
    }
}

/// `model.py(374): forward` is `model.py: forward`; addresses go as well.
fn without_lines(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(open) = rest.find('(') {
        let (before, tail) = rest.split_at(open);
        out.push_str(before);
        let digits = tail.bytes().skip(1).take_while(u8::is_ascii_digit).count();
        if digits > 0 && tail.as_bytes().get(1 + digits) == Some(&b')') {
            rest = tail.get(digits + 2..).unwrap_or("");
        } else {
            out.push('(');
            rest = tail.get(1..).unwrap_or("");
        }
    }
    out.push_str(rest);
    without_addresses(&out)
}

/// Without the hexadecimal digits behind each `0x`.
fn without_addresses(name: &str) -> String {
    let mut parts = name.split("0x");
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        out.push('#');
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    out
}

/// Runs of digits that no letter precedes become `#`; in ranges, where numbers stand in lists, all of them and what separates them.
fn counted(name: &str, range: bool) -> String {
    let mut out = String::with_capacity(name.len());
    let mut previous = ' ';
    let mut digits = false;
    for c in name.chars() {
        let starts = c.is_ascii_digit() && (range || !(previous.is_ascii_alphabetic() || previous == '_'));
        digits = c.is_ascii_digit() && (digits || starts);
        if !digits {
            let separates = range && out.ends_with('#') && matches!(c, ',' | '.' | '-' | ' ' | '…' | '#');
            if !separates {
                out.push(c);
            }
        } else if !out.ends_with('#') {
            out.push('#');
        }
        previous = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_site_are_one() {
        for (category, name, of) in [
            (Category::PythonFrame, "vllm/llama.py(374): forward", "vllm/llama.py: forward"),
            (Category::PythonFrame, "<built-in method x of object at 0x7f3a>", "<built-in method x of object at #>"),
            (Category::UserRange, "ProfilerStep#12", "ProfilerStep#"),
            (Category::UserRange, "execute_context_0(0)_generation_17(17)", "execute_context_#(#)_generation_#(#)"),
            (Category::UserRange, "batch 1, 2, 3", "batch #"),
            (Category::FrameworkOp, "aten::mm", "aten::mm"),
            (Category::HostApi, "cuLaunchKernel2", "cuLaunchKernel2"),
            (Category::FrameworkOp, "step 17", "step #"),
        ] {
            assert_eq!(general(name, category), of);
        }
    }
}
