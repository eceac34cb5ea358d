//! Tables that programs print as text: the names of the columns, a line of dashes that says how wide each column is, and the rows.

/// Most columns of a table; real ones have a dozen.
const MAX_COLUMNS: usize = 64;

/// The characters from which to which each column reaches, where a line is the dashes that say so.
pub(crate) fn dashes(line: &str) -> Option<Vec<(usize, usize)>> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for (at, character) in line.chars().enumerate() {
        let room = spans.len() < MAX_COLUMNS;
        match (character, spans.last_mut().filter(|(_, end)| *end == at)) {
            ('-', Some((_, end))) => *end = at + 1,
            ('-', None) if room => spans.push((at, at + 1)),
            (' ', _) => {}
            _ => return None,
        }
    }
    (spans.len() > 2).then_some(spans)
}

/// What stands between two characters of a line; of the last column what the line has left.
pub(crate) fn cell(line: &str, (from, to): (usize, usize), last: bool) -> String {
    let width = if last { usize::MAX } else { to - from };
    line.chars().skip(from).take(width).collect::<String>().trim().to_owned()
}
