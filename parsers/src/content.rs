//! The content of a trace file for readers that pull bytes, such as those of CSV and JSON: what one row or record of it may
//! take is bounded, so that a quote that is never closed cannot fill memory with the rest of the file.

use std::{
    cell::{Cell, RefCell},
    io::{self, Read},
    path::Path,
    rc::Rc,
};

use crate::{Progress, ReadError, container::Source};

/// Longest row or record, bytes. Real ones, whose kernel names are their longest part, have some 20 KiB.
pub(crate) const MAX_PIECE: usize = 4 << 20;

/// The three bytes with which some programs begin UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Default)]
struct Shared {
    left: Cell<usize>,
    exceeded: Cell<bool>,
    done: Cell<(u64, u64)>,
    damage: RefCell<Option<String>>,
    given: Cell<(u64, Option<u8>)>,
}

/// What the reader's owner knows and allows.
#[derive(Clone)]
pub(crate) struct Meter(Rc<Shared>);

impl Meter {
    /// Allows the next row or record its bytes.
    pub fn next_piece(&self) {
        self.0.left.set(MAX_PIECE);
    }

    /// Whether a row or record was longer than allowed; nothing more is read then.
    pub fn exceeded(&self) -> bool {
        self.0.exceeded.get()
    }

    /// Tells how far reading is.
    pub fn report(&self, progress: Progress<'_>) {
        let (done, total) = self.0.done.get();
        progress(done, total);
    }

    /// How many bytes were given, and the last of them.
    pub fn given(&self) -> (u64, Option<u8>) {
        self.0.given.get()
    }

    /// What was wrong with the content, once reading has ended.
    pub fn damage(&self) -> Option<String> {
        let long = || format!("a row or record is longer than the {} MiB that are read of one", MAX_PIECE >> 20);
        self.0.damage.borrow().clone().or_else(|| self.exceeded().then(long))
    }
}

/// The content of a file, without a byte order mark.
pub(crate) struct Content {
    source: Source,
    block: Vec<u8>,
    at: usize,
    started: bool,
    shared: Rc<Shared>,
}

impl Content {
    /// Opens `path`, whose compression is told by its content.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn open(path: &Path) -> Result<(Self, Meter), ReadError> {
        let (source, shared) = (Source::open(path)?, Rc::new(Shared::default()));
        let meter = Meter(shared.clone());
        meter.next_piece();
        Ok((Self { source, block: Vec::new(), at: 0, started: false, shared }, meter))
    }

    fn next_block(&mut self) -> io::Result<()> {
        self.block.clear();
        self.at = 0;
        self.source.append_to(&mut self.block).map_err(|error| match error {
            ReadError::Io { source, .. } => source,
            other => io::Error::other(other.to_string()),
        })?;
        self.shared.damage.replace(self.source.damage().map(str::to_owned));
        self.shared.done.set(self.source.progress());
        if !std::mem::replace(&mut self.started, true) && self.block.starts_with(BYTE_ORDER_MARK) {
            self.at = BYTE_ORDER_MARK.len();
        }
        Ok(())
    }
}

impl Read for Content {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.block.len() {
            self.next_block()?;
        }
        let rest = self.block.get(self.at..).unwrap_or_default();
        let wanted = rest.len().min(buf.len());
        if wanted > self.shared.left.get() {
            self.shared.exceeded.set(true);
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let (Some(to), Some(from)) = (buf.get_mut(..wanted), rest.get(..wanted)) else { return Ok(0) };
        to.copy_from_slice(from);
        self.at += wanted;
        let (given, last) = self.shared.given.get();
        self.shared.given.set((given + wanted as u64, from.last().copied().or(last)));
        self.shared.left.set(self.shared.left.get() - wanted);
        Ok(wanted)
    }
}
