//! The content of a table whose cells hold no line breaks, with every quote closed on the line that opened it: a quote that
//! was lost costs its row and no more, and a line without end is cut.

use std::{
    cell::Cell,
    io::{self, BufRead, BufReader, Read},
    rc::Rc,
};

use crate::content::{Content, Meter};

/// Longest line, bytes. Real ones, whose kernel names are their longest part, have some 20 KiB.
pub(super) const MAX_LINE: usize = 1 << 20;

/// Content, line by line.
pub(super) struct Closed {
    source: BufReader<Content>,
    meter: Meter,
    /// The line being given, and how much of it was.
    line: Vec<u8>,
    given: usize,
    cut: Rc<Cell<u64>>,
}

impl Closed {
    /// `cut` counts the lines that were longer than lines are.
    pub fn new(content: Content, meter: Meter, cut: Rc<Cell<u64>>) -> Self {
        Self { source: BufReader::new(content), meter, line: Vec::new(), given: 0, cut }
    }

    fn next_line(&mut self) -> io::Result<()> {
        self.given = 0;
        self.line.clear();
        self.meter.next_piece();
        (&mut self.source).take(MAX_LINE as u64).read_until(b'\n', &mut self.line)?;
        if self.line.len() == MAX_LINE && self.line.last() != Some(&b'\n') {
            self.cut.set(self.cut.get() + 1);
            self.skip_line()?;
            self.line.push(b'\n');
        }
        let quotes = self.line.iter().filter(|b| **b == b'"').count();
        if quotes % 2 == 1 {
            while self.line.last().is_some_and(u8::is_ascii_whitespace) {
                self.line.pop();
            }
            self.line.extend_from_slice(b"\"\n");
        }
        Ok(())
    }

    /// Passes over the rest of a line of any length.
    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            self.meter.next_piece();
            let block = self.source.fill_buf()?;
            let (end, length) = (memchr::memchr(b'\n', block), block.len());
            self.source.consume(end.map_or(length, |end| end + 1));
            if end.is_some() || length == 0 {
                return Ok(());
            }
        }
    }
}

impl Read for Closed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.line.len() {
            self.next_line()?;
        }
        let mut rest = self.line.get(self.given..).unwrap_or_default();
        let read = rest.read(buffer)?;
        self.given += read;
        Ok(read)
    }
}
