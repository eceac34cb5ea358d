//! A file that is one array of events, read one event after the other. Memory holds a few blocks and the longest event.

use std::path::Path;

use super::{
    Cursor, Fault,
    boundary::{self, Boundary},
};
use crate::{
    Progress, ReadError,
    container::{BLOCK, Source},
};

/// Longest event that is read, bytes; a longer one is counted as lost.
const LONGEST: usize = 4 * BLOCK;

/// What was wrong with a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Whether the content begins with an array.
    pub is_array: bool,
    /// Stretches between two events that were no event.
    pub broken: u64,
    /// Offset in the content of the first of them.
    pub first_broken: Option<u64>,
    /// Offset of the event inside which the content ends, or of its end where the array was not closed.
    pub cut_at: Option<u64>,
    /// Bytes that follow the end of the last array.
    pub after_end: u64,
    /// What was wrong with the compression.
    pub compression: Option<String>,
}

/// Gives each element of the array to `each`, which must read it; arrays that follow each other, as `cat` joins them, are all read.
///
/// # Errors
/// [`ReadError`] when the operating system fails to read. Damage of the content is what the answer tells.
pub(crate) fn scan(
    path: &Path,
    progress: Progress<'_>,
    each: &mut dyn FnMut(&mut Cursor<'_>) -> Result<(), Fault>,
) -> Result<Damage, ReadError> {
    let mut source = Source::open(path)?;
    let mut damage = Damage::default();
    let (mut bytes, mut offset, mut more, mut started) = (Vec::new(), 0u64, true, false);
    let mut ended = false;
    while more {
        more = source.append_to(&mut bytes)?;
        let (done, total) = source.progress();
        progress(done, total);
        let mut at = 0;
        if !started {
            let mut cursor = Cursor::new(&bytes, usize::from(bytes.starts_with(b"\xef\xbb\xbf")) * 3);
            match cursor.peek() {
                Ok(b'[') => (damage.is_array, started, at) = (true, true, cursor.at + 1),
                Err(_) if more => continue,
                _ => return Ok(damage),
            }
        }
        loop {
            if ended {
                at += bytes
                    .get(at..)
                    .unwrap_or_default()
                    .iter()
                    .take_while(|b| b.is_ascii_whitespace() || **b == 0)
                    .count();
                match bytes.get(at) {
                    Some(b'[') if damage.after_end == 0 => at += 1,
                    _ => {
                        damage.after_end += (bytes.len() - at) as u64;
                        at = bytes.len();
                        break;
                    }
                }
            }
            ended = elements(&bytes, &mut at, offset, more, &mut damage, each);
            if !ended {
                break;
            }
            at += 1;
        }
        offset += at as u64;
        bytes.drain(..at);
    }
    damage.cut_at = Some(offset).filter(|_| !ended);
    damage.compression = source.damage().map(str::to_owned);
    Ok(damage)
}

/// Reads elements from `at` until the bytes end inside one, whose offset `at` then is; `true` when the array closed.
fn elements(
    bytes: &[u8],
    at: &mut usize,
    offset: u64,
    more: bool,
    damage: &mut Damage,
    each: &mut dyn FnMut(&mut Cursor<'_>) -> Result<(), Fault>,
) -> bool {
    loop {
        let mut cursor = Cursor::new(bytes, *at);
        let Ok(next) = cursor.separators() else {
            *at = bytes.len();
            return false;
        };
        *at = cursor.at;
        let read = match next {
            b']' => return true,
            b'{' => each(&mut cursor),
            _ => Err(Fault::Broken),
        };
        match read {
            Ok(()) => *at = cursor.at,
            Err(Fault::End) if more && bytes.len() - *at < LONGEST => return false,
            Err(fault) => {
                let skipped = match boundary::next(bytes, *at + 1) {
                    Some(Boundary::Event(next) | Boundary::Close(next)) => next,
                    // The last event of a file that was cut is told by where the content ends.
                    None if !more && fault == Fault::End => return false,
                    None => bytes.len(),
                };
                damage.broken += 1;
                damage.first_broken.get_or_insert(offset + *at as u64);
                *at = skipped;
            }
        }
    }
}
