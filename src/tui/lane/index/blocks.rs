//! When the slices of a lane are, in blocks: what a column needs of its edges lies together in memory. A frame of a whole
//! capture looks at thousands of places far apart and waits for memory at each, not for arithmetic.

use model::{Ns, Span};

use super::BLOCK;

/// Blocks in which a place is looked for around where it is expected: a line of the cache.
const NEAR: usize = 8;

/// Some slices beside each other.
#[derive(Clone, Copy, Debug)]
struct Block {
    start: [Ns; BLOCK],
    end: [Ns; BLOCK],
    row: [u32; BLOCK],
}

/// When slices are, and which, in order of time.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// Start of the first slice of each block.
    first: Vec<Ns>,
    blocks: Vec<Block>,
    len: usize,
}

impl Times {
    /// Room for `count` slices.
    pub fn of(count: usize) -> Self {
        let blocks = count.div_ceil(BLOCK);
        Self { first: Vec::with_capacity(blocks), blocks: Vec::with_capacity(blocks), len: 0 }
    }

    /// Puts one in that starts no earlier than the last.
    pub fn push(&mut self, span: Span, row: u32) {
        let at = self.len % BLOCK;
        if at == 0 {
            self.first.push(span.start);
            self.blocks.push(Block { start: [Ns::MAX; BLOCK], end: [Ns::MAX; BLOCK], row: [u32::MAX; BLOCK] });
        }
        if let Some(block) = self.blocks.last_mut() {
            (block.start[at], block.end[at], block.row[at]) = (span.start, span.end, row);
        }
        self.len += 1;
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes that it allocates.
    pub fn bytes(&self) -> usize {
        size_of::<Ns>() * self.first.capacity() + size_of::<Block>() * self.blocks.capacity()
    }

    pub fn span(&self, slot: usize) -> Option<Span> {
        let block = self.blocks.get(slot / BLOCK).filter(|_| slot < self.len)?;
        Some(Span::new(block.start[slot % BLOCK], block.end[slot % BLOCK]))
    }

    pub fn row(&self, slot: usize) -> Option<u32> {
        let block = self.blocks.get(slot / BLOCK).filter(|_| slot < self.len)?;
        Some(block.row[slot % BLOCK])
    }

    /// All rows in order.
    pub fn rows(&self) -> impl Iterator<Item = u32> {
        self.blocks.iter().flat_map(|block| block.row).take(self.len)
    }

    /// Number of slices whose start satisfies `before`, which none does after one that does not.
    pub fn before(&self, before: impl Fn(Ns) -> bool) -> usize {
        self.within(self.first.partition_point(|start| before(*start)), before)
    }

    /// The same, looked for around `expected`, from which it should not be far.
    pub fn before_near(&self, expected: usize, before: impl Fn(Ns) -> bool) -> usize {
        let block = partition_near(&self.first, expected / BLOCK, |start| before(*start));
        self.within(block, before)
    }

    /// The same, where so many blocks begin with a slice that satisfies it.
    fn within(&self, blocks: usize, before: impl Fn(Ns) -> bool) -> usize {
        let Some(last) = blocks.checked_sub(1) else { return 0 };
        let inside =
            self.blocks.get(last).map_or(0, |block| block.start.iter().filter(|start| before(**start)).count());
        // What fills up the last block is not there.
        (last * BLOCK + inside).min(self.len)
    }
}

/// The first position whose value does not satisfy `before`, looked for around `guess`.
fn partition_near(values: &[Ns], guess: usize, before: impl Fn(&Ns) -> bool) -> usize {
    let is_before = |at: usize| values.get(at).is_some_and(&before);
    let guess = guess.min(values.len());
    let (mut from, mut to, mut step) = (0, guess, NEAR);
    if guess == 0 || is_before(guess - 1) {
        from = guess;
        while is_before(from + step - 1) {
            from += step;
            step *= 2;
        }
        to = (from + step - 1).min(values.len());
    } else {
        while to > step && !is_before(to - step) {
            to -= step;
            step *= 2;
        }
        from = from.max(to.saturating_sub(step));
    }
    from + values.get(from..to).map_or(0, |part| part.partition_point(before))
}
