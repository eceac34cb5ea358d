//! Tables of aligned columns without bars, and `key : value` lines.

/// Titles of an aligned table with the character at which each begins.
pub struct Columns<'a> {
    titles: Vec<(usize, &'a str)>,
}

impl<'a> Columns<'a> {
    /// Titles are separated by two spaces or more: a title may hold single ones.
    pub fn new(header: &'a str) -> Self {
        let mut titles = Vec::new();
        let mut at = 0;
        for part in header.split("  ") {
            let lead = part.len() - part.trim_start().len();
            if !part.trim().is_empty() {
                titles.push((header.get(..at + lead).map_or(0, |before| before.chars().count()), part.trim()));
            }
            at += part.len() + 2;
        }
        Self { titles }
    }

    /// The titles.
    pub fn titles(&self) -> impl Iterator<Item = &'a str> {
        self.titles.iter().map(|(_, title)| *title)
    }

    /// Title and cell of a row: one to one where there are as many parts, else by where they stand.
    pub fn cells(&self, row: &str) -> Vec<(&'a str, String)> {
        for parts in [
            row.split("  ").map(str::trim).filter(|p| !p.is_empty()).collect::<Vec<_>>(),
            row.split_whitespace().collect(),
        ] {
            if parts.len() == self.titles.len() {
                return self.titles().zip(parts.into_iter().map(str::to_owned)).collect();
            }
        }
        let chars: Vec<char> = row.chars().collect();
        let ends = self.titles.iter().skip(1).map(|(at, _)| *at).chain([usize::MAX]);
        let cell = |((from, title), to): (&(usize, &'a str), usize)| {
            let cell: String = chars.get(*from..to.min(chars.len())).unwrap_or_default().iter().collect();
            (*title, cell.trim().to_owned())
        };
        self.titles.iter().zip(ends).map(cell).collect()
    }
}

/// `key : value` of a line.
pub fn key_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let (key, value) = (key.trim(), value.trim());
    (!key.is_empty() && !key.contains('|')).then_some((key, value))
}
