//! The file from its first byte to its last: metadata before, between and after the events, and the events in blocks that
//! are parsed side by side while the blocks before them are merged.
//!
//! A block is cut where an event seems to begin. Whether it does is known once the block before it has been parsed to its
//! end; where the guess was wrong, the two are joined and parsed again, so a wrong guess costs time and nothing else.

use std::{collections::VecDeque, path::Path};

use model::{Severity, TraceSink};

use super::{again::again, batch::Batch, builder::BatchBuilder, event::Event, facts::Facts, merge::Merger};
use crate::{
    Place, ReadError, ReadOptions,
    container::{BLOCK, Source},
    json::{
        Cursor, Fault,
        boundary::{self, Boundary},
    },
};

/// Longest event or metadata value that is read, bytes; a longer one is counted as lost.
const LONGEST: usize = 4 * BLOCK;

/// Where parsing a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// At its last byte, between events.
    Complete,
    /// Inside the event that begins at this offset.
    Inside(usize),
    /// Behind the bracket that closes the array of events.
    Closed(usize),
    /// Between events, at this offset, because as much was parsed as was asked for.
    Enough(usize),
}

/// Bytes of the content from `offset` on.
#[derive(Default)]
struct Block {
    offset: u64,
    bytes: Vec<u8>,
}

/// Content that was read and not parsed. What is parsed of it is passed by and not moved, so that a member costs its own bytes,
/// however much lies behind it.
#[derive(Default)]
struct Unparsed {
    block: Block,
    /// Bytes of the block that were passed by.
    at: usize,
}

impl Unparsed {
    fn bytes(&self) -> &[u8] {
        self.block.bytes.get(self.at..).unwrap_or_default()
    }

    fn offset(&self) -> u64 {
        self.block.offset + self.at as u64
    }

    fn pass(&mut self, n: usize) {
        self.at += n;
        // Moving the rest costs no more than passing by what was before it did.
        if self.at > self.block.bytes.len() / 2 {
            self.settle();
        }
    }

    /// Drops what was passed by.
    fn settle(&mut self) -> &mut Block {
        self.block.bytes.drain(..self.at);
        self.block.offset += std::mem::take(&mut self.at) as u64;
        &mut self.block
    }
}

/// Reads the file at `path` into `sink`.
pub(super) fn read(path: &Path, sink: &mut dyn TraceSink, options: &ReadOptions<'_>) -> Result<(), ReadError> {
    let mut reader = Reader {
        source: Source::open(path)?,
        rest: Unparsed::default(),
        ended: false,
        facts: Facts::default(),
        merger: Merger::new(sink),
        options: *options,
        first_fault: None,
        found_events: false,
        open_object: false,
        truncated: false,
        earlier: None,
    };
    reader.run(path)?;
    reader.finish(path)
}

/// What follows the last document is a loss from one part of so many on that the file has before it.
const MATTERS: u64 = 100;

struct Reader<'s, 'p> {
    source: Source,
    rest: Unparsed,
    ended: bool,
    facts: Facts,
    merger: Merger<'s>,
    options: ReadOptions<'p>,
    first_fault: Option<u64>,
    found_events: bool,
    open_object: bool,
    truncated: bool,
    /// What the document before says of itself, until the events of this one begin.
    earlier: Option<Facts>,
}

impl Reader<'_, '_> {
    /// Reads every document of the file: `cat` joins traces of a run, or of its ranks, into one file.
    fn run(&mut self, path: &Path) -> Result<(), ReadError> {
        self.pull()?;
        // A copy begins where the document begins, not where blanks precede it.
        let blank = self.rest.bytes().iter().take_while(|b| b.is_ascii_whitespace()).count();
        self.consume(blank);
        let begin = self.rest.offset();
        self.document()?;
        let first = (begin, self.rest.offset().saturating_sub(begin));
        let rows = self.merger.kept;
        let mut copies = 0;
        while self.follows()? {
            if copies < MAX_COPIES && again(path, first, self.rest.offset())? {
                copies += 1;
                self.skip(first.1)?;
                let what = format!("the first {} bytes once more, counted once", first.1);
                self.merger.doubled(rows, &what);
                continue;
            }
            copies = MAX_COPIES;
            if self.merger.documents() == 0 && !self.found_events {
                self.without_events(begin);
            }
            let next = self.rest.offset();
            self.earlier = self.earlier.take().or(Some(std::mem::take(&mut self.facts)));
            self.open_object = false;
            self.merger.next_document();
            self.document()?;
            if self.earlier.is_some() {
                self.without_events(next);
            }
        }
        // A document without events says nothing of those before it.
        if let Some(earlier) = self.earlier.take() {
            self.facts = earlier;
        }
        Ok(())
    }

    /// Notes that the document from this byte to here holds no events of a run: somebody else's.
    fn without_events(&mut self, from: u64) {
        let what = format!("{} bytes from byte {from} on", self.rest.offset().saturating_sub(from));
        self.merger.odd("kineto.document_without_events", Severity::Notice, &what);
    }

    /// Passes by so many bytes.
    fn skip(&mut self, mut bytes: u64) -> Result<(), ReadError> {
        loop {
            let step = usize::try_from(bytes).unwrap_or(usize::MAX).min(self.rest.bytes().len());
            self.consume(step);
            bytes -= step as u64;
            if bytes == 0 || !self.pull()? {
                return Ok(());
            }
        }
    }

    /// Whether another document follows the one that was read; what else follows is counted as lost, with its size.
    fn follows(&mut self) -> Result<bool, ReadError> {
        loop {
            let blank = self.rest.bytes().iter().take_while(|b| b.is_ascii_whitespace() || **b == 0).count();
            self.consume(blank);
            match self.rest.bytes().first().copied() {
                Some(b'{' | b'[' | b'\xef') => return Ok(true),
                Some(_) => break,
                None if !self.pull()? => return Ok(false),
                None => {}
            }
        }
        let from = self.rest.offset();
        let mut lost = 0;
        loop {
            let left = self.rest.bytes().len();
            self.consume(left);
            lost += left;
            if !self.pull()? {
                break;
            }
        }
        self.first_fault = self.first_fault.or(Some(from));
        let what = format!("{lost} bytes from byte {from} on");
        // A line of a log changes no answer; half a file that cannot be read does.
        let name = if lost as u64 > from / MATTERS { "kineto.unreadable_rest" } else { "kineto.bytes_after_the_end" };
        self.merger.odd(name, Severity::DataLoss, &what);
        Ok(false)
    }

    /// Notes that the events of a document begin, of which the document says so much before them.
    fn events_begin(&mut self) {
        self.found_events = true;
        if let Some(earlier) = self.earlier.take() {
            let other = self.facts.rank.zip(earlier.rank).is_some_and(|(a, b)| a != b);
            self.merger.begin_document(&earlier, &self.facts, other, &self.options);
            if !other {
                self.facts = earlier;
            }
        }
    }

    /// Reads one document.
    fn document(&mut self) -> Result<(), ReadError> {
        if self.rest.bytes().starts_with(b"\xef\xbb\xbf") {
            self.consume(3);
        }
        let mut cursor = Cursor::new(self.rest.bytes(), 0);
        let first = cursor.peek();
        let at = cursor.at;
        match first {
            // What looks like an event at the start of a further document is the rest of a damaged one.
            Ok(b'{') if self.merger.documents() > 0 && boundary::first_event(self.rest.bytes(), 0) == Some(at) => {
                self.events_begin();
                self.events()?;
            }
            Ok(b'{') => {
                self.consume(at + 1);
                self.open_object = true;
            }
            Ok(b'[') => {
                self.consume(at + 1);
                self.events_begin();
                self.events()?;
                if self.ends_here() {
                    return Ok(());
                }
            }
            _ if self.leave_damage()? => self.events()?,
            _ => return Ok(()),
        }
        while self.metadata()? {
            self.events()?;
        }
        Ok(())
    }

    /// Whether the array of events that closed is followed by another document.
    fn ends_here(&self) -> bool {
        matches!(self.rest.bytes().trim_ascii_start().first(), Some(b'[' | b'{'))
    }

    /// Reads the next block of the content behind what is still unparsed.
    fn pull(&mut self) -> Result<bool, ReadError> {
        if !self.ended {
            self.ended = !self.source.append_to(&mut self.rest.block.bytes)?;
            let (done, total) = self.source.progress();
            (self.options.progress)(done, total);
        }
        Ok(!self.ended)
    }

    /// Drops the first `n` bytes that are left.
    fn consume(&mut self, n: usize) {
        self.rest.pass(n);
    }

    /// Reads members of the top-level object; `true` when an array of events begins.
    fn metadata(&mut self) -> Result<bool, ReadError> {
        loop {
            let mut cursor = Cursor::new(self.rest.bytes(), 0);
            let step = member(&mut cursor, &mut self.facts);
            let at = cursor.at;
            match step {
                Ok(Member::Fact) => self.consume(at),
                Ok(Member::Events) => {
                    self.consume(at);
                    self.events_begin();
                    return Ok(true);
                }
                Ok(Member::Close) => {
                    self.consume(at + 1);
                    self.open_object = false;
                    return Ok(false);
                }
                Err(Fault::End) if self.rest.bytes().len() < LONGEST => {
                    if !self.pull()? {
                        let blank = self.rest.bytes().iter().all(u8::is_ascii_whitespace);
                        if self.open_object || !blank {
                            self.truncated_at(self.rest.offset());
                        }
                        return Ok(false);
                    }
                }
                Err(_) => {
                    let offset = self.rest.offset();
                    self.fault("kineto.broken_metadata", offset);
                    return self.leave_damage();
                }
            }
        }
    }

    /// Counts a loss at a byte of the content.
    fn fault(&mut self, what: &str, offset: u64) {
        self.first_fault = self.first_fault.or(Some(offset));
        self.merger.odd(what, Severity::DataLoss, &format!("byte {offset}"));
    }

    /// Counts once that the content ends too early.
    fn truncated_at(&mut self, offset: u64) {
        if !std::mem::replace(&mut self.truncated, true) {
            self.fault("kineto.truncated", offset);
        }
    }

    /// Skips to the next place that looks like an event; `false` when there is none to the end.
    fn leave_damage(&mut self) -> Result<bool, ReadError> {
        self.first_fault = self.first_fault.or(Some(self.rest.offset()));
        loop {
            if let Some(at) = boundary::first_event(self.rest.bytes(), 0) {
                self.consume(at);
                return Ok(true);
            }
            // An event may begin across two blocks.
            let keep = self.rest.bytes().len().min(256);
            self.consume(self.rest.bytes().len() - keep);
            if !self.pull()? {
                return Ok(false);
            }
        }
    }

    /// Reads a block's worth of events where they lie; `true` when their array closed. Only what comes after that is read ahead
    /// and side by side, so that an array costs a multiple of its own bytes, however many arrays there are: damage can make
    /// many of one.
    fn first_events(&mut self) -> Result<bool, ReadError> {
        let mut left = BLOCK;
        loop {
            let (batch, end) = parse(self.rest.bytes(), self.rest.offset(), left);
            self.merger.add(batch);
            let (at, is_over) = match end {
                End::Closed(at) => (at, Some(true)),
                End::Enough(at) => (at, Some(false)),
                End::Inside(at) => (at, None),
                End::Complete => (self.rest.bytes().len(), None),
            };
            self.consume(at);
            left = left.saturating_sub(at);
            if let Some(closed) = is_over {
                return Ok(closed);
            }
            if left == 0 || self.rest.bytes().len() >= LONGEST || !self.pull()? {
                return Ok(false);
            }
        }
    }

    /// Reads events until their array closes or the content ends.
    fn events(&mut self) -> Result<(), ReadError> {
        if self.first_events()? {
            return Ok(());
        }
        let workers = rayon::current_num_threads().clamp(1, 8);
        let mut settled: Vec<Batch> = Vec::new();
        loop {
            let mut blocks = Vec::with_capacity(workers);
            while blocks.len() < workers {
                match self.cut()? {
                    Some(block) => blocks.push(block),
                    None => break,
                }
            }
            let mut parsed: Vec<(Batch, End)> = Vec::new();
            parsed.resize_with(blocks.len(), || (Batch::default(), End::Complete));
            let merger = &mut self.merger;
            rayon::in_place_scope(|scope| {
                for (block, slot) in blocks.iter().zip(&mut parsed) {
                    scope.spawn(move |_| *slot = parse(&block.bytes, block.offset, usize::MAX));
                }
                // The sink belongs to this thread; it takes in the blocks before while these are parsed.
                settled.drain(..).for_each(|batch| merger.add(batch));
            });
            if blocks.is_empty() {
                self.truncated_at(self.rest.offset());
                return Ok(());
            }
            if self.settle(blocks, parsed, &mut settled) {
                settled.drain(..).for_each(|batch| self.merger.add(batch));
                return Ok(());
            }
        }
    }

    /// The next block, which ends where an event seems to begin; `None` at the end.
    fn cut(&mut self) -> Result<Option<Block>, ReadError> {
        let mut searched = 0;
        self.rest.settle();
        loop {
            let more = self.rest.bytes().len() >= LONGEST || self.pull()?;
            let rest = &mut self.rest.block;
            if !more {
                let block = std::mem::take(rest);
                rest.offset = block.offset + block.bytes.len() as u64;
                return Ok((!block.bytes.is_empty()).then_some(block));
            }
            let at = match boundary::last_event(&rest.bytes, searched) {
                Some(at) => at,
                None if rest.bytes.len() >= LONGEST => rest.bytes.len(),
                None => {
                    searched = rest.bytes.len().saturating_sub(256);
                    continue;
                }
            };
            let mut tail = Vec::with_capacity(BLOCK + BLOCK / 4);
            tail.extend_from_slice(rest.bytes.get(at..).unwrap_or_default());
            rest.bytes.truncate(at);
            let tail = Block { offset: rest.offset + at as u64, bytes: tail };
            return Ok(Some(std::mem::replace(rest, tail)));
        }
    }

    /// Checks that each block ended where the next begins, and mends where it did not. `true` when the array closed; what
    /// follows it is then unparsed again.
    fn settle(&mut self, blocks: Vec<Block>, parsed: Vec<(Batch, End)>, settled: &mut Vec<Batch>) -> bool {
        let mut queue: VecDeque<_> = blocks.into_iter().zip(parsed).collect();
        while let Some((block, (batch, end))) = queue.pop_front() {
            settled.push(batch);
            let (at, closed) = match end {
                End::Complete | End::Enough(_) => continue,
                End::Inside(at) => (at, false),
                End::Closed(at) => (at, true),
            };
            let offset = block.offset + at as u64;
            let mut bytes = block.bytes.get(at..).unwrap_or_default().to_vec();
            if closed {
                queue.iter().for_each(|(later, _)| bytes.extend_from_slice(&later.bytes));
                self.put_back(offset, bytes);
                return true;
            }
            let at_end = queue.is_empty() && self.ended && self.rest.bytes().is_empty();
            if at_end || bytes.len() >= LONGEST {
                if let Some(block) = self.lose(offset, &bytes) {
                    let parsed = parse(&block.bytes, block.offset, usize::MAX);
                    queue.push_front((block, parsed));
                }
            } else if let Some((next, _)) = queue.pop_front() {
                bytes.extend_from_slice(&next.bytes);
                let parsed = parse(&bytes, offset, usize::MAX);
                queue.push_front((Block { offset, bytes }, parsed));
            } else {
                self.put_back(offset, bytes);
            }
        }
        false
    }

    fn put_back(&mut self, offset: u64, mut bytes: Vec<u8>) {
        bytes.append(&mut self.rest.settle().bytes);
        self.rest.block = Block { offset, bytes };
    }

    /// Gives up the event at the start of `bytes`; the rest from the next event on, if there is one.
    fn lose(&mut self, offset: u64, bytes: &[u8]) -> Option<Block> {
        let next = match boundary::next(bytes, 1) {
            Some(Boundary::Event(at) | Boundary::Close(at)) => Some(at),
            None => None,
        };
        match next {
            Some(_) => self.fault("kineto.broken_events", offset),
            None if bytes.len() >= LONGEST => self.fault("kineto.oversized_events", offset),
            None => self.truncated_at(offset),
        }
        next.map(|at| Block { offset: offset + at as u64, bytes: bytes.get(at..).unwrap_or_default().to_vec() })
    }

    fn finish(mut self, path: &Path) -> Result<(), ReadError> {
        if !self.found_events && !self.facts.recognised && self.merger.kept == 0 {
            return Err(ReadError::Malformed {
                path: path.into(),
                place: Place::Byte(self.first_fault.unwrap_or(self.rest.offset())),
                expected: "the JSON of a PyTorch profiler trace".into(),
                next: "export it again with prof.export_chrome_trace, or name its format with --as".into(),
            });
        }
        if let Some(damage) = self.source.damage() {
            let damage = damage.to_owned();
            self.merger.odd("kineto.damaged_compression", Severity::DataLoss, &damage);
        }
        self.merger.finish(&self.facts, path, &self.options);
        Ok(())
    }
}

/// Documents at the begin of a file that are looked at for being the first once more: each look reads the file from its start.
const MAX_COPIES: u32 = 8;

/// What a member of the top-level object is.
enum Member {
    Fact,
    Events,
    Close,
}

fn member(cursor: &mut Cursor<'_>, facts: &mut Facts) -> Result<Member, Fault> {
    match cursor.separators()? {
        b'"' => {}
        b'}' => return Ok(Member::Close),
        _ => return Err(Fault::Broken),
    }
    let key = cursor.key()?;
    if cursor.peek()? == b'[' {
        let mut inside = cursor.clone();
        inside.at += 1;
        // A damaged key must not cost the events below it.
        let mut by_look = || Ok(inside.peek()? == b'{' && inside.phase_comes_first()?);
        if key.raw == b"traceEvents" || by_look()? {
            cursor.at += 1;
            return Ok(Member::Events);
        }
    }
    let value = cursor.value()?;
    facts.note(key, value);
    Ok(Member::Fact)
}

/// Parses the events of a block, which begins between events, up to the first that begins `enough` bytes on. A block that is
/// parsed to such a place need not end where an event begins.
fn parse(bytes: &[u8], offset: u64, enough: usize) -> (Batch, End) {
    let mut builder = BatchBuilder::new(offset);
    let mut at = 0;
    let end = loop {
        if at >= enough {
            break End::Enough(at);
        }
        let mut cursor = Cursor::new(bytes, at);
        let Ok(next) = cursor.separators() else { break End::Complete };
        let start = cursor.at;
        let read = match next {
            b']' if closes(bytes, start + 1) => break End::Closed(start + 1),
            b']' => Err(Fault::Broken),
            b'{' => Event::read(&mut cursor).map(|event| builder.add(&event, start)),
            _ => cursor.value().map(|_| builder.odd("kineto.elements_that_are_no_event", Severity::Notice, start)),
        };
        at = match read {
            Ok(()) => cursor.at,
            Err(Fault::End) => break End::Inside(start),
            Err(Fault::Broken) => {
                let next = boundary::next(bytes, start + 1);
                // What ends elsewhere than before an event may end inside this damage.
                if next.is_none() && enough < usize::MAX {
                    break End::Inside(start);
                }
                let end = match next {
                    Some(Boundary::Event(at) | Boundary::Close(at)) => at,
                    None => bytes.len(),
                };
                builder.broken(bytes.get(start..end).unwrap_or_default(), start);
                match next {
                    Some(Boundary::Event(at) | Boundary::Close(at)) => at,
                    // The block after this one begins with an event.
                    None => break End::Complete,
                }
            }
        };
    };
    (builder.finish(), end)
}

/// Whether what follows a bracket can follow the array of events.
fn closes(bytes: &[u8], at: usize) -> bool {
    let mut cursor = Cursor::new(bytes, at);
    match cursor.peek() {
        // Another document may follow.
        Err(_) | Ok(b'}' | b'[' | b'{') => true,
        Ok(b',') => !matches!(cursor.separators(), Ok(b'{' | b'[')),
        Ok(_) => false,
    }
}
