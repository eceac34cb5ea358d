//! A piece of a track as a blob: its columns one after the other, little-endian, widest first.
//!
//! Details, names and links are indices within the capture, not rows of the file, so that a blob is read without a look
//! at any table.

use model::{
    Category, Columns, Ns, StringId,
    time::{LONGEST, RANGE},
};

/// Version of this layout; a chunk of another version is ignored and rebuilt from the rows.
pub(super) const VERSION: i64 = 1;
/// Slices of a chunk.
pub(super) const SLICES: usize = 64 * 1024;
/// Bytes of a slice: start, dur, correlation (8 each), name, link, detail (4 each), depth (2), category (1).
const WIDTH: usize = 3 * 8 + 3 * 4 + 2 + 1;
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
    for column in [&lane.start, &lane.dur, &lane.correlation] {
        blob.extend(column[range.clone()].iter().flat_map(|v| v.to_le_bytes()));
    }
    blob.extend(lane.name[range.clone()].iter().flat_map(|v| v.0.to_le_bytes()));
    for column in [&lane.link, &lane.detail] {
        blob.extend(column[range.clone()].iter().flat_map(|v| v.to_le_bytes()));
    }
    blob.extend(lane.depth[range.clone()].iter().flat_map(|v| v.to_le_bytes()));
    blob.extend(lane.category[range].iter().map(|v| *v as u8));
    blob
}

/// Adds the slices of a blob to a lane.
pub(super) fn decode(blob: &[u8], n: i64, lane: &mut Columns) -> Result<(), String> {
    let n = usize::try_from(n).ok().filter(|n| (1..=SLICES).contains(n)).ok_or("a chunk has 1 to 65536 slices")?;
    if blob.len() != n * WIDTH {
        return Err(format!("expected {} bytes for {n} slices, found {}", n * WIDTH, blob.len()));
    }
    let mut rest = blob;
    let mut column = |width: usize| {
        let (head, tail) = rest.split_at(n * width);
        rest = tail;
        head
    };
    for target in [&mut lane.start, &mut lane.dur, &mut lane.correlation] {
        target.extend(words::<8>(column(8)).map(i64::from_le_bytes));
    }
    lane.name.extend(words::<4>(column(4)).map(|b| StringId(u32::from_le_bytes(b))));
    for target in [&mut lane.link, &mut lane.detail] {
        target.extend(words::<4>(column(4)).map(u32::from_le_bytes));
    }
    lane.depth.extend(words::<2>(column(2)).map(u16::from_le_bytes));
    let known: [Option<Category>; 256] = std::array::from_fn(|code| Category::from_code(code as u8));
    for code in column(1) {
        lane.category.push(known[usize::from(*code)].ok_or_else(|| format!("unknown category {code}"))?);
    }
    Ok(())
}

fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> {
    bytes.as_chunks::<N>().0.iter().copied()
}
