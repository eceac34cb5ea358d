//! The lines of a text file, plain or compressed, one at a time: logs, line-wise JSON, printed tables.

use std::{borrow::Cow, path::Path};

use crate::{ReadError, container::Source};

/// Lines of a file. Memory is bounded by a block and the longest line allowed.
pub struct Lines {
    source: Source,
    bytes: Vec<u8>,
    /// Where the next line begins, and how far its end was looked for.
    at: usize,
    scanned: usize,
    ended: bool,
    /// The last line ended with a carriage return: a line feed that follows belongs to the same end.
    returned: bool,
    /// The rest of a line that was too long is passed over.
    skipping: bool,
    limit: usize,
    /// Lines that were longer than allowed and lost their end.
    pub cut: u64,
}

impl Lines {
    /// Opens `path`; a line longer than `limit` bytes is cut to that.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn open(path: &Path, limit: usize) -> Result<Self, ReadError> {
        let source = Source::open(path)?;
        let (bytes, at, scanned) = (Vec::new(), 0, 0);
        Ok(Self { source, bytes, at, scanned, ended: false, returned: false, skipping: false, limit, cut: 0 })
    }

    /// The next line without its end. Progress bars redraw a line with a carriage return: that ends a line too, and a line feed
    /// after it, as Windows writes them, ends no second one.
    ///
    /// # Errors
    /// When the operating system fails to read.
    pub fn next(&mut self) -> Result<Option<&[u8]>, ReadError> {
        loop {
            if self.returned
                && let Some(byte) = self.bytes.get(self.at)
            {
                self.returned = false;
                if *byte == b'\n' {
                    (self.at, self.scanned) = (self.at + 1, self.scanned.max(self.at + 1));
                }
            }
            let rest = self.bytes.get(self.scanned..).unwrap_or_default();
            if let Some(found) = memchr::memchr2(b'\n', b'\r', rest) {
                let (from, to) = (self.at, self.scanned + found);
                (self.at, self.scanned) = (to + 1, to + 1);
                self.returned = self.bytes.get(to) == Some(&b'\r');
                if !std::mem::take(&mut self.skipping) {
                    return Ok(self.bytes.get(from..to));
                }
                continue;
            }
            self.scanned = self.bytes.len();
            if self.skipping {
                self.at = self.scanned;
            } else if self.scanned - self.at > self.limit {
                (self.skipping, self.cut) = (true, self.cut + 1);
                let from = std::mem::replace(&mut self.at, self.scanned);
                return Ok(self.bytes.get(from..from + self.limit));
            }
            if self.ended {
                let from = std::mem::replace(&mut self.at, self.scanned);
                return Ok(self.bytes.get(from..).filter(|line| !line.is_empty()));
            }
            self.bytes.drain(..self.at);
            (self.scanned, self.at) = (self.scanned - self.at, 0);
            self.ended = !self.source.append_to(&mut self.bytes)?;
        }
    }

    /// What was wrong with the compressed content, once the lines have ended.
    pub fn damage(&self) -> Option<&str> {
        self.source.damage()
    }

    /// Bytes of the file read so far, and its size.
    pub fn progress(&self) -> (u64, u64) {
        self.source.progress()
    }
}

/// A line as text without terminal colours (`ESC [ … letter`); bytes that are not UTF-8 are replaced.
pub fn plain(line: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(line);
    if !text.contains('\u{1b}') {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' if chars.peek() == Some(&'[') => {
                chars.by_ref().skip(1).find(char::is_ascii_alphabetic);
            }
            '\u{1b}' => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A line of the output of a notebook (`.ipynb`), which is a string of JSON on a line of its own, without its quotes.
pub fn unquoted(line: Cow<'_, str>) -> Cow<'_, str> {
    let text = line.trim().trim_end_matches(',');
    if text.len() < 2 || !text.starts_with('"') || !text.ends_with('"') {
        return line;
    }
    match serde_json::from_str::<String>(text) {
        Ok(text) => Cow::Owned(text.trim_end_matches('\n').to_owned()),
        Err(_) => line,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::io::Write;

    fn lines(content: &[u8], limit: usize) -> (Vec<String>, u64) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content).unwrap();
        let mut lines = Lines::open(file.path(), limit).unwrap();
        let mut out = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            out.push(plain(line).into_owned());
        }
        (out, lines.cut)
    }

    #[test]
    fn returns_and_missing_ends_make_lines() {
        let (found, cut) = lines(b"a\r\nb\rc\n\nlast\r\n", 10);
        assert_eq!(found, ["a", "b", "c", "", "last"]);
        assert_eq!(cut, 0);
    }

    #[test]
    fn a_line_without_end_is_cut_and_counted_and_the_next_one_is_whole() {
        let mut content = vec![b'x'; 9 << 20];
        content.extend_from_slice(b"\nnext\n");
        let (found, cut) = lines(&content, 100);
        assert_eq!((found.len(), found[0].len(), found[1].as_str(), cut), (2, 100, "next", 1));
    }

    #[test]
    fn colours_are_taken_off() {
        assert_eq!(plain(b"\x1b[2m2026-04-27\x1b[0m x\x1b"), "2026-04-27 x");
    }
}
