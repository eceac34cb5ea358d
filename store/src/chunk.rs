//! A piece of a track as a blob: its columns one after the other, each cell as few bytes as it needs.
//!
//! A cell is a LEB128 number. Starts, correlations, links and details are written as the difference to the one before,
//! its sign in the lowest bit: most of them count up. A third of the bytes of the plain columns remain, and writing the
//! file is what an import waits for.
//!
//! Details, names and links are indices within the capture, not rows of the file, so that a blob is read without a look
//! at any table.

use model::{
    Category, Columns, Ns, StringId,
    time::{LONGEST, RANGE},
};

/// Version of this layout; a chunk of another version is ignored and rebuilt from the rows.
pub(super) const VERSION: i64 = 2;
/// Slices of a chunk.
pub(super) const SLICES: usize = 64 * 1024;
/// Usual bytes of a slice.
const WIDTH: usize = 16;
/// Most bytes of a cell: 64 bits, seven at a time.
const CELL: usize = 10;
/// No detail or link, in memory as in a blob.
pub(super) const NONE: u32 = u32::MAX;

/// What the indices of a slice may be.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) strings: usize,
    pub(super) details: usize,
    pub(super) slices: usize,
}

impl Bounds {
    /// Whether slices `from..` of the lane are such as a builder makes: analysis relies on it without checking.
    pub(super) fn check(self, lane: &Columns, from: usize) -> Result<(), String> {
        let wrong = |i: usize, what: &str| Err(format!("slice {i} of the track has {what}"));
        let mut before = from.checked_sub(1).map_or(Ns::MIN, |i| lane.start[i]);
        for i in from..lane.len() {
            if lane.start[i] < before {
                return wrong(i, "an earlier start than the one before it");
            }
            if lane.dur[i] < 0 {
                return wrong(i, "a negative duration");
            }
            // Times are kept from the capture's zero, which itself lies in the range.
            if lane.dur[i] > LONGEST || lane.start[i] < RANGE.start || lane.end(i) > RANGE.end - RANGE.start {
                return wrong(i, "a time out of range");
            }
            if lane.name[i].0 as usize >= self.strings {
                return wrong(i, "an unknown name");
            }
            if lane.detail[i] != NONE && lane.detail[i] as usize >= self.details {
                return wrong(i, "an unknown detail");
            }
            if lane.link[i] != NONE && lane.link[i] as usize >= self.slices {
                return wrong(i, "an unknown launch");
            }
            before = lane.start[i];
        }
        Ok(())
    }
}

/// The blob of slices `range` of a lane.
pub(super) fn encode(lane: &Columns, range: std::ops::Range<usize>) -> Vec<u8> {
    let mut blob = Vec::with_capacity(range.len() * WIDTH);
    differences(&mut blob, lane.start[range.clone()].iter().copied());
    lane.dur[range.clone()].iter().for_each(|dur| put(&mut blob, signed(*dur)));
    differences(&mut blob, lane.correlation[range.clone()].iter().copied());
    lane.name[range.clone()].iter().for_each(|name| put(&mut blob, u64::from(name.0)));
    for column in [&lane.link, &lane.detail] {
        // None becomes -1, next to the first index.
        differences(&mut blob, column[range.clone()].iter().map(|index| i64::from(index.wrapping_add(1)) - 1));
    }
    lane.depth[range.clone()].iter().for_each(|depth| put(&mut blob, u64::from(*depth)));
    blob.extend(lane.category[range].iter().map(|v| *v as u8));
    blob
}

fn differences(blob: &mut Vec<u8>, cells: impl Iterator<Item = i64>) {
    let mut before = 0i64;
    for cell in cells {
        put(blob, signed(cell.wrapping_sub(before)));
        before = cell;
    }
}

/// The sign moved to the lowest bit.
fn signed(value: i64) -> u64 {
    (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned()
}

fn unsigned(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}

fn put(blob: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        blob.push(value as u8 | 0x80);
        value >>= 7;
    }
    blob.push(value as u8);
}

/// Adds the slices of a blob to a lane.
pub(super) fn decode(blob: &[u8], n: i64, lane: &mut Columns) -> Result<(), String> {
    let n = usize::try_from(n).ok().filter(|n| (1..=SLICES).contains(n)).ok_or("a chunk has 1 to 65536 slices")?;
    let mut cells = Cells { rest: blob, n };
    cells.differences(&mut lane.start, Some)?;
    cells.each(&mut lane.dur, |dur| Some(unsigned(dur)))?;
    cells.differences(&mut lane.correlation, Some)?;
    cells.each(&mut lane.name, |name| u32::try_from(name).ok().map(StringId))?;
    for column in [&mut lane.link, &mut lane.detail] {
        cells.differences(column, |index| if index == -1 { Some(NONE) } else { u32::try_from(index).ok() })?;
    }
    cells.each(&mut lane.depth, |depth| u16::try_from(depth).ok())?;
    if cells.rest.len() != n {
        return Err(format!("expected {n} categories at the end of the chunk, found {} bytes", cells.rest.len()));
    }
    let known: [Option<Category>; 256] = std::array::from_fn(|code| Category::from_code(code as u8));
    for code in cells.rest {
        lane.category.push(known[usize::from(*code)].ok_or_else(|| format!("unknown category {code}"))?);
    }
    Ok(())
}

/// What of a blob is still to be read, and how many cells a column has.
struct Cells<'b> {
    rest: &'b [u8],
    n: usize,
}

impl Cells<'_> {
    fn next(&mut self) -> Option<u64> {
        let mut value = 0;
        for (at, byte) in self.rest.iter().take(CELL).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                self.rest = self.rest.get(at + 1..)?;
                return Some(value);
            }
        }
        None
    }

    fn each<T>(&mut self, column: &mut Vec<T>, mut read: impl FnMut(u64) -> Option<T>) -> Result<(), String> {
        for i in 0..self.n {
            let cell = self.next().and_then(&mut read);
            column.push(cell.ok_or_else(|| format!("slice {i} of the chunk cannot be read"))?);
        }
        Ok(())
    }

    fn differences<T>(&mut self, column: &mut Vec<T>, mut read: impl FnMut(i64) -> Option<T>) -> Result<(), String> {
        let mut before = 0i64;
        self.each(column, |cell| {
            before = before.wrapping_add(unsigned(cell));
            read(before)
        })
    }
}
