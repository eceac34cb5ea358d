//! The seal of a capture file: a digest of every page, behind the last one, where SQLite does not look.
//!
//! Whoever reads a page holds it against its digest, so that a byte that changed after the file was written is never
//! believed, whatever is asked of the file, and what is not read costs nothing. A digest stands for the place of its
//! page too: pages that changed places are seen. The seal is of accidents, not of forgers: its digests are no secret.
//!
//! From the last page on, little-endian: a digest of 8 bytes for each page; then [`TAIL`] bytes: the size of a page
//! (4 bytes), the form of the seal (4), the number of pages (8), the digest of all that (8), [`MARK`] (8).

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom, Write},
    path::Path,
};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::Error;

/// First schema version whose files are sealed.
pub(super) const SINCE: u32 = 6;
/// Ends a sealed file.
const MARK: [u8; 8] = *b"STROSEAL";
/// The only form of seal there is yet.
const FORM: u32 = 1;
/// Bytes of the seal behind the digests.
const TAIL: usize = 32;
/// Smallest page of SQLite: <https://www.sqlite.org/fileformat.html#page_size>.
const SMALLEST_PAGE: u32 = 512;
/// Most bytes of digests that are believed: those of a capture of 128 GiB, with the pages of 16 KiB that captures have. Our own
/// value.
const MOST: u64 = 64 << 20;
/// Bytes of a digest.
const DIGEST: usize = 8;

/// Digests of the pages of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seal {
    /// Bytes of a page.
    pub(super) page: usize,
    digests: Vec<u64>,
}

impl Seal {
    /// Pages of the file.
    pub(super) fn pages(&self) -> usize {
        self.digests.len()
    }

    /// Bytes of all pages.
    pub(super) fn length(&self) -> u64 {
        self.digests.len() as u64 * self.page as u64
    }

    /// Whether these are the bytes that page `number`, from 0, had when the file was sealed.
    pub(super) fn holds(&self, number: usize, page: &[u8]) -> bool {
        self.digests.get(number).is_some_and(|digest| *digest == xxh3_64(page))
    }

    /// Whether a file ends with the mark of a seal.
    pub(super) fn is_on(mut file: &File) -> io::Result<bool> {
        let length = file.metadata()?.len();
        let Some(at) = length.checked_sub(MARK.len() as u64) else { return Ok(false) };
        let mut mark = [0; MARK.len()];
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut mark)?;
        Ok(mark == MARK)
    }

    /// The seal of a file that [`Seal::is_on`]; in words what is wrong with it where it cannot be used.
    pub(super) fn read(mut file: &File) -> io::Result<Result<Self, String>> {
        let length = file.metadata()?.len();
        let wrong = || Ok(Err("its seal, the last bytes of the file, is damaged".to_owned()));
        let mut tail = [0; TAIL];
        let Some(at) = length.checked_sub(TAIL as u64) else { return wrong() };
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut tail)?;
        let [page, form] = [0, 4].map(|at| u32::from_le_bytes(cut(&tail, at)));
        let [pages, digest] = [8, 16].map(|at| u64::from_le_bytes(cut(&tail, at)));
        let body = pages.checked_mul(u64::from(page));
        let expected = body.zip(pages.checked_mul(DIGEST as u64)).and_then(|(a, b)| a.checked_add(b)?.checked_add(32));
        let (Some(body), Some(expected)) = (body, expected) else { return wrong() };
        if expected != length {
            return if form == FORM && page.is_power_of_two() {
                Ok(Err(format!("it was sealed with {expected} bytes and has {length}")))
            } else {
                wrong()
            };
        }
        // Before anything is made of it: a file of holes has as many bytes as somebody cared to write.
        let kept = length - body - TAIL as u64;
        if !page.is_power_of_two() || page < SMALLEST_PAGE || kept > MOST {
            return wrong();
        }
        let mut digests = vec![0; kept as usize];
        file.seek(SeekFrom::Start(body))?;
        file.read_exact(&mut digests)?;
        if digest != of_seal(&digests, &tail) || form != FORM {
            return wrong();
        }
        let digests = digests.chunks_exact(DIGEST).map(|bytes| u64::from_le_bytes(cut(bytes, 0))).collect();
        Ok(Ok(Self { page: page as usize, digests }))
    }

    /// Seals a database that is whole and closed: reads it and writes the seal behind its last page, in place of one that
    /// it has.
    pub(super) fn put_on(path: &Path) -> Result<(), Error> {
        let file = File::options().read(true).write(true).open(path).map_err(Error::io(path, "write"))?;
        Self::put(&file).map_err(Error::io(path, "write"))
    }

    fn put(mut file: &File) -> io::Result<()> {
        let mut header = [0; 100];
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(&mut header)?;
        let page = page_size(&header);
        // SQLite says how many pages there are; what lies behind them is a seal that holds no more.
        let pages = u32::from_be_bytes(cut(&header, 28));
        let mut seal = Vec::with_capacity(pages as usize * DIGEST + TAIL);
        let mut bytes = vec![0; page];
        file.seek(SeekFrom::Start(0))?;
        let mut pages_in = BufReader::with_capacity(1 << 20, file);
        for _ in 0..pages {
            pages_in.read_exact(&mut bytes)?;
            seal.extend(xxh3_64(&bytes).to_le_bytes());
        }
        let mut tail = [0; TAIL];
        tail[..4].copy_from_slice(&(page as u32).to_le_bytes());
        tail[4..8].copy_from_slice(&FORM.to_le_bytes());
        tail[8..16].copy_from_slice(&u64::from(pages).to_le_bytes());
        let digest = of_seal(&seal, &tail);
        tail[16..24].copy_from_slice(&digest.to_le_bytes());
        tail[24..].copy_from_slice(&MARK);
        seal.extend(tail);
        let body = u64::from(pages) * page as u64;
        file.set_len(body)?;
        file.seek(SeekFrom::Start(body))?;
        file.write_all(&seal)
    }
}

/// The digest of the digests and of what stands before it in the tail.
fn of_seal(digests: &[u8], tail: &[u8; TAIL]) -> u64 {
    let mut state = Xxh3::new();
    state.update(digests);
    state.update(&tail[..16]);
    state.digest()
}

/// Bytes of a page, of the header of a database: <https://www.sqlite.org/fileformat.html#page_size>.
pub(super) fn page_size(header: &[u8]) -> usize {
    match header.get(16..18) {
        Some(&[0, 1]) => 1 << 16,
        Some(&[high, low]) => usize::from(u16::from_be_bytes([high, low])),
        _ => 0,
    }
}

/// `N` bytes from `at` on; zeros where there are none.
fn cut<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// A header that says two pages of 512 bytes, and those.
    fn database() -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..1024u32).map(|i| (i * 7 % 251) as u8).collect();
        bytes[16..18].copy_from_slice(&512u16.to_be_bytes());
        bytes[28..32].copy_from_slice(&2u32.to_be_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Result<Seal, String>> {
        let file = tempfile::tempfile().unwrap();
        (&file).write_all(bytes).unwrap();
        Seal::is_on(&file).unwrap().then(|| Seal::read(&file).unwrap())
    }

    #[test]
    fn a_seal_knows_every_page_by_its_place_and_can_be_put_on_anew() {
        let bytes = database();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        assert_eq!(read(&bytes), None);
        Seal::put_on(file.path()).unwrap();
        let sealed = std::fs::read(file.path()).unwrap();
        assert_eq!(sealed.len(), 1024 + 2 * DIGEST + TAIL);
        assert_eq!(sealed[..1024], bytes);
        let seal = read(&sealed).unwrap().unwrap();
        assert_eq!((seal.pages(), seal.page, seal.length()), (2, 512, 1024));
        let (first, second) = bytes.split_at(512);
        assert!(seal.holds(0, first) && seal.holds(1, second));
        assert!(!seal.holds(0, second) && !seal.holds(1, first) && !seal.holds(2, first));
        Seal::put_on(file.path()).unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), sealed);
    }

    #[test]
    fn l5_a_forged_seal_on_a_file_of_holes_takes_no_memory() {
        for (page, pages) in
            [(1u32, 1u64 << 40), (1, 6 << 30), (3, 1 << 30), (256, 1 << 28), (512, 1 << 27), (16 << 10, 1 << 27)]
        {
            let mut file = tempfile::tempfile().unwrap();
            let mut tail = [0; TAIL];
            tail[..4].copy_from_slice(&page.to_le_bytes());
            tail[4..8].copy_from_slice(&FORM.to_le_bytes());
            tail[8..16].copy_from_slice(&pages.to_le_bytes());
            tail[24..].copy_from_slice(&MARK);
            if file.seek(SeekFrom::Start(pages * (u64::from(page) + DIGEST as u64))).is_err()
                || file.write_all(&tail).is_err()
            {
                continue;
            }
            // To make room for the digests of the largest of these ends the process.
            assert!(Seal::read(&file).unwrap().is_err(), "{page} {pages}");
        }
    }

    #[test]
    fn no_bit_of_a_seal_can_change_unseen() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), database()).unwrap();
        Seal::put_on(file.path()).unwrap();
        let sealed = std::fs::read(file.path()).unwrap();
        for bit in 1024 * 8..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(read(&changed), Some(Ok(_))), "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert!(!matches!(read(&sealed[..length]), Some(Ok(_))), "{length} bytes");
        }
        let longer = [&sealed[..], &sealed[1024..]].concat();
        assert!(read(&longer).unwrap().is_err());
    }
}
