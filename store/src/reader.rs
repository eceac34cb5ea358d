//! The bytes of a capture file as SQLite gets them: each page held against the seal when it is read for the first time.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use super::{
    APPLICATION_ID, Error, SCHEMA_VERSION,
    seal::{self, Seal},
};

/// Length of the header of an SQLite file, which holds the numbers that we look at.
const HEADER: usize = 100;

/// What checking cost, and what it found.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// Pages that were held against the seal.
    pub(super) pages: AtomicU64,
    /// Time that this took, ns.
    pub(super) time: AtomicU64,
    /// Pages of the file.
    pub(super) of: usize,
}

/// What a read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All bytes asked for.
    Whole,
    /// The file ends before; zeros stand for what is missing.
    Short,
    /// Bytes that are not those that were sealed.
    Altered,
    /// The operating system refused.
    Failed,
}

/// An open capture file.
#[derive(Debug)]
pub(super) struct Reader {
    file: File,
    /// Schema version.
    pub(super) version: u32,
    /// None of a file from before there were seals.
    pub(super) seal: Option<Seal>,
    /// Bytes of the database, without the seal.
    pub(super) length: u64,
    /// Whether a page was found to be what was sealed.
    sound: Vec<bool>,
    page: Vec<u8>,
    pub(super) checked: Arc<Checked>,
}

/// Opens a file and reads its header; nothing where it is no regular file: to open a pipe waits for its writer.
fn open(path: &Path) -> Result<Option<(File, Vec<u8>)>, Error> {
    if !std::fs::metadata(path).map_err(Error::io(path, "read"))?.is_file() {
        return Ok(None);
    }
    let mut header = Vec::with_capacity(HEADER);
    let file = input::open(path).map_err(Error::io(path, "read"))?;
    (&file).take(HEADER as u64).read_to_end(&mut header).map_err(Error::io(path, "read"))?;
    Ok(Some((file, header)))
}

/// A number of the header: <https://www.sqlite.org/fileformat.html#the_database_header>.
fn number(header: &[u8], at: usize) -> Option<u32> {
    header.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes)
}

/// The schema version that a header says; `None` where it is not that of a capture file.
fn version(header: &[u8]) -> Option<u32> {
    let ours = header.starts_with(b"SQLite format 3\0") && number(header, 68) == Some(APPLICATION_ID);
    if ours { number(header, 60) } else { None }
}

/// Whether the content of the file is that of a capture file, of whatever schema version, whole or damaged: either end of
/// it tells.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read.
pub fn is_capture(path: &Path) -> Result<bool, Error> {
    let Some((file, header)) = open(path)? else { return Ok(false) };
    Ok(version(&header).is_some() || Seal::is_on(&file).map_err(Error::io(path, "read"))?)
}

/// What other programs leave beside a database that they write to. Nothing of it is part of a capture file.
pub(super) fn beside(path: &Path) -> Vec<PathBuf> {
    let with = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let holds = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0);
    ["-wal", "-journal"].map(with).into_iter().filter(holds).collect()
}

impl Reader {
    /// Opens a capture file whose ends are sound.
    ///
    /// # Errors
    /// [`Error::NotACapture`], [`Error::Version`], [`Error::Altered`] of one whose seal, first page or length is not as
    /// it was written, [`Error::Io`].
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let not_ours = || Error::NotACapture { path: path.to_owned() };
        let altered = |what: String| Error::Altered { path: path.to_owned(), what };
        let (file, header) = open(path)?.ok_or_else(not_ours)?;
        let length = file.metadata().map_err(Error::io(path, "read"))?.len();
        let version = version(&header);
        // A seal speaks for the whole file, also where the version is among what changed.
        if Seal::is_on(&file).map_err(Error::io(path, "read"))? {
            let seal = Seal::read(&file).map_err(Error::io(path, "read"))?.map_err(altered)?;
            let (sound, page, length) = (vec![false; seal.pages()], vec![0; seal.page], seal.length());
            let checked = Arc::new(Checked { of: seal.pages(), ..Checked::default() });
            let mut reader = Self { file, version: 0, seal: Some(seal), length, sound, page, checked };
            return match (reader.check(0), version) {
                (Outcome::Whole, Some(version @ 1..=SCHEMA_VERSION)) => Ok(Self { version, ..reader }),
                (Outcome::Whole, Some(found)) => {
                    Err(Error::Version { path: path.to_owned(), found, known: SCHEMA_VERSION })
                }
                (Outcome::Whole, None) => Err(not_ours()),
                _ => Err(altered("its first page is not what was written".to_owned())),
            };
        }
        match version.ok_or_else(not_ours)? {
            version @ 1..seal::SINCE => {
                let said = u64::from(number(&header, 28).unwrap_or(0)) * seal::page_size(&header) as u64;
                if said != length {
                    return Err(altered(format!("it says that it has {said} bytes and has {length}")));
                }
                let (sound, page, checked) = (Vec::new(), Vec::new(), Arc::default());
                Ok(Self { file, version, seal: None, length, sound, page, checked })
            }
            seal::SINCE..=SCHEMA_VERSION => Err(altered("its end, where its seal should be, is missing".to_owned())),
            found => Err(Error::Version { path: path.to_owned(), found, known: SCHEMA_VERSION }),
        }
    }

    /// Fills `out` with the bytes from `at` on.
    pub(super) fn read(&mut self, out: &mut [u8], at: u64) -> Outcome {
        let there = usize::try_from(self.length.saturating_sub(at)).unwrap_or(usize::MAX).min(out.len());
        let (within, beyond) = out.split_at_mut(there);
        beyond.fill(0);
        let short = if beyond.is_empty() { Outcome::Whole } else { Outcome::Short };
        let size = self.page.len() as u64;
        if within.is_empty() || size == 0 {
            return if self.fetch(within, at).is_ok() { short } else { Outcome::Failed };
        }
        let first = at / size;
        if at == first * size && within.len() as u64 == size {
            // The usual way: a page, into its place.
            if self.fetch(within, at).is_err() {
                return Outcome::Failed;
            }
            return if self.judge(first as usize, within) { short } else { Outcome::Altered };
        }
        for number in first..=(at + within.len() as u64 - 1) / size {
            match self.check(number as usize) {
                Outcome::Whole => {}
                other => return other,
            }
        }
        if self.fetch(within, at).is_ok() { short } else { Outcome::Failed }
    }

    /// Writes the database, without its seal, to another file.
    ///
    /// # Errors
    /// [`Error::Altered`] where it is not what was sealed; [`Error::Io`].
    pub(super) fn copy_to(&mut self, mut out: &File, path: &Path) -> Result<(), Error> {
        let mut page = vec![0; if self.page.is_empty() { 1 << 14 } else { self.page.len() }];
        let mut at = 0;
        while at < self.length {
            let rest = usize::try_from(self.length - at).unwrap_or(usize::MAX);
            let length = page.len().min(rest);
            let Some(page) = page.get_mut(..length) else { break };
            match self.read(page, at) {
                Outcome::Whole => out.write_all(page).map_err(Error::io(path, "copy"))?,
                Outcome::Altered => return Err(Error::altered(path)),
                Outcome::Short | Outcome::Failed => {
                    return Err(Error::io(path, "read")(io::ErrorKind::UnexpectedEof.into()));
                }
            }
            at += length as u64;
        }
        Ok(())
    }

    /// Holds page `number`, from 0, against the seal.
    pub(super) fn check(&mut self, number: usize) -> Outcome {
        if self.sound.get(number).copied().unwrap_or(false) {
            return Outcome::Whole;
        }
        let mut page = std::mem::take(&mut self.page);
        let at = number as u64 * page.len() as u64;
        let read = self.fetch(&mut page, at);
        let sound = read.is_ok() && self.judge(number, &page);
        self.page = page;
        match (read, sound) {
            (Err(_), _) => Outcome::Failed,
            (Ok(()), true) => Outcome::Whole,
            (Ok(()), false) => Outcome::Altered,
        }
    }

    fn judge(&mut self, number: usize, page: &[u8]) -> bool {
        let (Some(seal), Some(sound)) = (&self.seal, self.sound.get_mut(number)) else { return self.seal.is_none() };
        if !*sound {
            let began = Instant::now();
            *sound = seal.holds(number, page);
            let time = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.checked.time.fetch_add(time, Ordering::Relaxed);
            self.checked.pages.fetch_add(1, Ordering::Relaxed);
        }
        *sound
    }

    fn fetch(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(out)
    }
}
