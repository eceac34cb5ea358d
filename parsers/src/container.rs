//! The bytes of a trace file, plain, gzip or zstd, in reusable blocks. A thread of its own reads and inflates, so that
//! decompression overlaps with parsing; nothing is mapped and nothing is held but a few blocks, however much a file
//! inflates to.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use flate2::bufread::GzDecoder;
use ruzstd::decoding::StreamingDecoder;

use crate::{Place, ReadError};

/// Size of a block, bytes.
pub const BLOCK: usize = 4 << 20;
/// Blocks in flight between the reading thread and its consumer.
const QUEUE: usize = 2;
/// Bytes of a hole at the end of a file that are read as zeros; a longer one is not read. Own value.
const HOLE: u64 = 64 << 20;
/// Bytes asked of a decoder at once; what a damaged stream yielded before the damage is lost only within one step.
const STEP: usize = 64 << 10;

/// A trace file being read.
pub struct Source {
    blocks: Receiver<io::Result<Vec<u8>>>,
    spent: SyncSender<Vec<u8>>,
    done: Arc<AtomicU64>,
    path: PathBuf,
    total: u64,
    damage: Option<String>,
}

impl Source {
    /// Opens `path`, whose compression is told by its content.
    ///
    /// # Errors
    /// [`ReadError`] for what is not a readable, non-empty regular file.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let total = regular_file(path)?;
        let file = input::open(path).map_err(|source| ReadError::Io { path: path.into(), source })?;
        let done = Arc::new(AtomicU64::new(0));
        let end = input::hole_to_the_end(&file).filter(|at| total.saturating_sub(*at) > HOLE);
        let counted = Counted { file, done: done.clone(), left: end.unwrap_or(u64::MAX), hole: total };
        let file = BufReader::with_capacity(STEP, counted);
        let (send, blocks) = sync_channel(QUEUE);
        let (spent, empty) = sync_channel(QUEUE);
        let mut stream = Stream::new(file).map_err(|source| ReadError::Io { path: path.into(), source })?;
        thread::spawn(move || {
            loop {
                let mut block: Vec<u8> = empty.try_recv().unwrap_or_default();
                block.clear();
                let filled = stream.fill(&mut block, BLOCK);
                let last = filled.is_err() || block.is_empty();
                // The consumer may have gone; then nobody wants the rest.
                if !block.is_empty() && send.send(Ok(block)).is_err() {
                    return;
                }
                if let Err(e) = filled {
                    let _ = send.send(Err(e));
                }
                if last {
                    return;
                }
            }
        });
        Ok(Self { blocks, spent, done, path: path.into(), total, damage: None })
    }

    /// Appends the next block of content to `bytes`; `false` at the end. Damage of a compressed stream ends the content
    /// and is kept for [`Self::damage`].
    ///
    /// # Errors
    /// [`ReadError::Io`] when the operating system fails to read.
    pub fn append_to(&mut self, bytes: &mut Vec<u8>) -> Result<bool, ReadError> {
        match self.blocks.recv() {
            Err(_) => Ok(false),
            Ok(Ok(block)) => {
                bytes.extend_from_slice(&block);
                let _ = self.spent.try_send(block);
                Ok(true)
            }
            Ok(Err(e)) if e.kind() == io::ErrorKind::InvalidData || e.kind() == io::ErrorKind::UnexpectedEof => {
                self.damage = Some(e.to_string());
                Ok(false)
            }
            Ok(Err(source)) => Err(ReadError::Io { path: self.path.clone(), source }),
        }
    }

    /// What was wrong with the compressed stream, once the content has ended.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// Bytes of the file read so far, and its size.
    pub fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed).min(self.total), self.total)
    }
}

/// Whether the content of `path` is compressed.
///
/// # Errors
/// As [`Source::open`].
pub fn is_packed(path: &Path) -> Result<bool, ReadError> {
    let mut head = [0; ZSTD.len()];
    let read = input::open(path).and_then(|file| file.take(head.len() as u64).read(&mut head));
    read.map_err(|source| ReadError::Io { path: path.into(), source })?;
    Ok(head.starts_with(&GZIP) || head == ZSTD)
}

/// The first `len` bytes of the content of `path`, inflated; fewer when the content is shorter or damaged.
///
/// # Errors
/// As [`Source::open`].
pub fn head(path: &Path, len: usize) -> Result<Vec<u8>, ReadError> {
    regular_file(path)?;
    let io = |source| ReadError::Io { path: path.into(), source };
    let file = BufReader::new(input::open(path).map_err(io)?);
    let mut bytes = Vec::with_capacity(len);
    match Stream::new(file).map_err(io)?.fill(&mut bytes, len) {
        Err(e) if bytes.is_empty() && matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {
            Err(ReadError::Malformed {
                path: path.into(),
                place: Place::Byte(0),
                expected: format!("a compressed trace, but {e}"),
                next: "copy the file again from where it was written".to_owned(),
            })
        }
        Err(source) if bytes.is_empty() => Err(io(source)),
        _ => Ok(bytes),
    }
}

fn regular_file(path: &Path) -> Result<u64, ReadError> {
    let meta = std::fs::metadata(path).map_err(|source| ReadError::Io { path: path.into(), source })?;
    let refuse = |expected: &str, next: &str| {
        Err(ReadError::Malformed {
            path: path.into(),
            place: Place::File,
            expected: expected.to_owned(),
            next: next.to_owned(),
        })
    };
    match &meta {
        m if m.is_dir() => refuse("a file, found a directory", "name the trace files in it"),
        m if !m.is_file() => refuse("a regular file", "copy its content to a file and name that"),
        m if m.len() == 0 => refuse("a trace, found an empty file", "check that the profiler wrote it to the end"),
        m => Ok(m.len()),
    }
}

struct Counted {
    file: File,
    done: Arc<AtomicU64>,
    /// Bytes before a hole that goes to the end, and the size of the file.
    left: u64,
    hole: u64,
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let rest = self.hole.saturating_sub(self.done.load(Ordering::Relaxed));
            let why = format!("nothing was ever written to its last {rest} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        let n = self.file.read(buf.get_mut(..most).unwrap_or_default())?;
        self.left = self.left.saturating_sub(n as u64);
        self.done.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// A stream of members, as gzip and zstd files may hold several.
enum Stream<R: BufRead> {
    Plain(R),
    Gzip(Box<GzDecoder<R>>),
    Zstd(Box<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>),
    End,
}

/// First bytes of a gzip member and of a zstd frame (RFC 1952 §2.3.1, RFC 8878 §3.1.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

impl<R: BufRead> Stream<R> {
    fn new(mut reader: R) -> io::Result<Self> {
        let head = reader.fill_buf()?;
        if head.starts_with(&GZIP) {
            return Ok(Self::Gzip(Box::new(GzDecoder::new(reader))));
        }
        if head.starts_with(&ZSTD) {
            return zstd(reader);
        }
        Ok(Self::Plain(reader))
    }

    /// Adds content to `block` until it holds `len` bytes or the content ends.
    fn fill(&mut self, block: &mut Vec<u8>, len: usize) -> io::Result<()> {
        while block.len() < len {
            let (start, step) = (block.len(), STEP.min(len - block.len()));
            block.resize(start + step, 0);
            let read = self.read(block.get_mut(start..).unwrap_or_default());
            block.truncate(start + *read.as_ref().unwrap_or(&0));
            if read? == 0 && !self.next_member()? {
                break;
            }
        }
        Ok(())
    }

    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match self {
                Self::Plain(reader) => reader.read(buf),
                Self::Gzip(decoder) => decoder.read(buf).map_err(damaged),
                Self::Zstd(decoder) => decoder.read(buf).map_err(damaged),
                Self::End => Ok(0),
            };
            match read {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn next_member(&mut self) -> io::Result<bool> {
        let mut reader = match std::mem::replace(self, Self::End) {
            Self::Gzip(decoder) => decoder.into_inner(),
            Self::Zstd(decoder) => decoder.into_inner(),
            Self::Plain(_) | Self::End => return Ok(false),
        };
        let rest = reader.fill_buf()?;
        if rest.is_empty() {
            return Ok(false);
        }
        if rest.starts_with(&GZIP) || rest.starts_with(&ZSTD) {
            *self = Self::new(reader)?;
            return Ok(true);
        }
        // Padding of zeros is what tape and block devices leave; anything else is told.
        if rest.iter().all(|b| *b == 0) {
            return Ok(false);
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "bytes after the end of the compressed content"))
    }
}

fn zstd<R: BufRead>(reader: R) -> io::Result<Stream<R>> {
    let decoder =
        StreamingDecoder::new(reader).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.to_string()))?;
    Ok(Stream::Zstd(Box::new(decoder)))
}

/// Decoders report damage under several kinds; the disk's own errors keep theirs.
fn damaged(e: io::Error) -> io::Error {
    match e.kind() {
        io::ErrorKind::Interrupted => e,
        _ if e.raw_os_error().is_some() => e,
        io::ErrorKind::UnexpectedEof => io::Error::new(e.kind(), "the compressed content is cut off"),
        _ => io::Error::new(io::ErrorKind::InvalidData, format!("the compressed content is damaged: {e}")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn read(file: &[u8]) -> (Vec<u8>, Option<String>) {
        let mut temp = tempfile::NamedTempFile::new().unwrap();
        temp.write_all(file).unwrap();
        let mut source = Source::open(temp.path()).unwrap();
        let mut bytes = Vec::new();
        while source.append_to(&mut bytes).unwrap() {}
        (bytes, source.damage().map(str::to_owned))
    }

    #[test]
    fn plain_gzip_and_zstd_give_the_same_content() {
        let content: Vec<u8> = (0..1_200_000u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
        assert_eq!(read(&content), (content.clone(), None));
        assert_eq!(read(&gzip(&content)), (content.clone(), None));
        let zstd = ruzstd::encoding::compress_to_vec(&content[..], ruzstd::encoding::CompressionLevel::Fastest);
        assert_eq!(read(&zstd), (content.clone(), None));
        assert_eq!(read(&[zstd.clone(), zstd].concat()).0.len(), 2 * content.len());
    }

    #[test]
    fn members_are_joined_and_what_follows_them_is_told() {
        let two = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(read(&two), (b"one two".to_vec(), None));
        assert_eq!(read(&[two.clone(), vec![0; 512]].concat()), (b"one two".to_vec(), None));
        let (bytes, damage) = read(&[two, b"junk".to_vec()].concat());
        assert_eq!(bytes, b"one two");
        assert!(damage.unwrap().contains("after the end"));
    }

    /// A capture that was made a terabyte long took hours of zeros.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_hole_of_a_terabyte_is_not_read() {
        let temp = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(temp.path(), b"content").unwrap();
        temp.as_file().set_len(1 << 40).unwrap();
        if input::hole_to_the_end(temp.as_file()).is_none() {
            return;
        }
        let mut source = Source::open(temp.path()).unwrap();
        let mut bytes = Vec::new();
        while source.append_to(&mut bytes).unwrap() {}
        assert!(bytes.starts_with(b"content") && bytes.len() < 1 << 20);
        assert!(source.damage().unwrap().contains("nothing was ever written to its last 1099511"));
    }

    #[test]
    fn a_cut_stream_keeps_what_came_before() {
        let content: Vec<u8> = (0..400_000u32).flat_map(|i| (i.wrapping_mul(2_654_435_761)).to_le_bytes()).collect();
        let whole = gzip(&content);
        let (bytes, damage) = read(&whole[..whole.len() / 2]);
        assert!(bytes.len() > content.len() / 3 && content.starts_with(&bytes));
        assert!(damage.unwrap().contains("cut off"));
    }

    #[test]
    fn what_is_no_file_is_refused_with_the_next_step() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Source::open(dir.path()).err().unwrap().to_string().contains("directory; name the trace files"));
        let empty = tempfile::NamedTempFile::new().unwrap();
        assert!(head(empty.path(), 10).unwrap_err().to_string().contains("empty file"));
        assert!(matches!(head(&dir.path().join("absent"), 10), Err(ReadError::Io { .. })));
        assert!(head(Path::new("/dev/null"), 10).unwrap_err().to_string().contains("regular file"));
    }
}
