//! How many threads a kernel gets, and its arguments as the driver takes them.

#![allow(unsafe_code)]

use std::{
    borrow::Cow,
    ffi::{c_uint, c_void},
    ptr,
};

use super::{
    platform::{Address, Answer, Handle, Start},
    queue::Queue,
    signature::Kind,
    source::Source,
};
use crate::Error;

/// Threads of a warp, on every device so far.
pub(super) const WARP: usize = 32;
/// Threads of a block of operators that go element by element, and most blocks of a row.
const ELEMENTS: usize = 256;
const MOST_PIECES: usize = 4096;
/// Most threads of a block that has a row, or a head of one.
const MOST_OF_ROW: usize = 256;
/// Rows of a matrix for a block, each with a warp.
const ROWS: usize = 4;
/// Tokens that `strato_gemv_batch` takes, and both sides of a tile of `strato_gemm` with its threads.
pub(super) const MOST_TOKENS: usize = 8;
const TILE: usize = 64;
const TILE_THREADS: usize = 256;

/// Blocks in two dimensions, and threads of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    pub grid: [usize; 2],
    pub threads: usize,
}

impl Blocks {
    /// Every row with `count` elements of its own.
    pub(super) fn elements(rows: usize, count: usize) -> Self {
        Self { grid: [rows, count.div_ceil(ELEMENTS).min(MOST_PIECES)], threads: ELEMENTS }
    }

    /// A block for each of `grid`, with as many threads as suit a row of `width`.
    pub(super) fn rows(grid: [usize; 2], width: usize) -> Self {
        Self { grid, threads: width.next_multiple_of(WARP).clamp(WARP, MOST_OF_ROW) }
    }

    /// The product of so many rows of a matrix and so many tokens: the kernel, and its blocks.
    pub(super) fn product(rows: usize, tokens: usize) -> (&'static str, Self) {
        match tokens {
            0..=MOST_TOKENS => {
                let name = if tokens > 1 { "strato_gemv_batch" } else { "strato_gemv" };
                (name, Self { grid: [rows.div_ceil(ROWS), 1], threads: ROWS * WARP })
            }
            _ => {
                let grid = [rows.div_ceil(TILE), tokens.div_ceil(TILE)];
                ("strato_gemm", Self { grid, threads: TILE_THREADS })
            }
        }
    }

    /// As the driver takes it. An operator without elements has one block, which finds nothing to do.
    fn checked(self) -> Result<([c_uint; 2], c_uint), Error> {
        /// Most blocks of the two dimensions and threads of a block, of every compute capability since 3.0 (CUDA C++
        /// Programming Guide, technical specifications).
        const MOST: [usize; 3] = [(1 << 31) - 1, 65_535, 1024];
        let [x, y] = self.grid.map(|count| count.max(1));
        let all = [x, y, self.threads];
        if all.iter().zip(MOST).any(|(count, most)| *count > most) {
            return Err(Error::Request(format!(
                "an operator would need {x} × {y} blocks of {} threads, a CUDA device starts {} × {} of {}; run fewer tokens",
                self.threads, MOST[0], MOST[1], MOST[2]
            )));
        }
        let [x, y, threads] = all.map(|count| c_uint::try_from(count).unwrap_or(c_uint::MAX));
        Ok(([x, y], threads))
    }
}

/// An argument as the driver copies it: its own bytes first.
#[repr(C, align(8))]
struct Slot([u8; 8]);

impl Slot {
    fn of<const N: usize>(bytes: [u8; N]) -> Self {
        let mut slot = [0; 8];
        slot.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        Self(slot)
    }
}

/// A kernel with its arguments, ready to be launched.
pub(super) struct Launch {
    function: Handle,
    grid: [c_uint; 2],
    threads: c_uint,
    /// What `pointers` point to.
    _slots: Vec<Slot>,
    pointers: Vec<*mut c_void>,
}

impl Launch {
    /// Enqueues it.
    pub(super) fn enqueue(&mut self, queue: &Queue) -> Answer {
        let Self { function, grid, threads, pointers, .. } = self;
        let start =
            Start { function: *function, grid: *grid, threads: *threads, stream: queue.stream, arguments: pointers };
        // SAFETY: a function of a module that is loaded as long as the plan that has this, whose arguments are as many and of
        // the kinds that its text says; they name memory that lives as long.
        unsafe { queue.context.driver.calls.launch(start) }
    }
}

/// A kernel whose arguments are being set, one after the other.
pub(super) struct Arguments<'l> {
    source: &'l Source,
    kernel: Cow<'l, str>,
    blocks: Blocks,
    slots: Vec<Slot>,
    kinds: Vec<Kind>,
}

impl<'l> Arguments<'l> {
    /// None so far.
    pub(super) fn of(source: &'l Source, kernel: impl Into<Cow<'l, str>>, blocks: Blocks) -> Self {
        Self { source, kernel: kernel.into(), blocks, slots: Vec::new(), kinds: Vec::new() }
    }

    fn set(mut self, kind: Kind, slot: Slot) -> Self {
        self.slots.push(slot);
        self.kinds.push(kind);
        self
    }

    pub(super) fn memory(self, addresses: &[Address]) -> Self {
        addresses.iter().fold(self, |own, address| own.set(Kind::Memory, Slot::of(address.to_ne_bytes())))
    }

    pub(super) fn sizes(self, sizes: &[usize]) -> Self {
        sizes.iter().fold(self, |own, size| own.number(*size as u64))
    }

    pub(super) fn number(self, number: u64) -> Self {
        self.set(Kind::Size, Slot::of(number.to_ne_bytes()))
    }

    pub(super) fn real(self, value: f32) -> Self {
        self.set(Kind::Real, Slot::of(value.to_ne_bytes()))
    }

    pub(super) fn flags(self, flags: u32) -> Self {
        self.set(Kind::Flags, Slot::of(flags.to_ne_bytes()))
    }

    /// The kernel with all it takes.
    ///
    /// # Errors
    /// [`Error::Device`] when the kernel takes something else, which no program can bring about.
    pub(super) fn launch(self) -> Result<Launch, Error> {
        let kernel = self.source.kernel(&self.kernel)?;
        if kernel.takes != self.kinds {
            return Err(Error::Device {
                doing: format!("launch the CUDA kernel '{}'", self.kernel),
                what: format!("it takes {:?} and would get {:?}", kernel.takes, self.kinds),
            });
        }
        let (grid, threads) = self.blocks.checked()?;
        let mut slots = self.slots;
        let pointers = slots.iter_mut().map(|slot| ptr::from_mut(slot).cast()).collect();
        Ok(Launch { function: kernel.function, grid, threads, _slots: slots, pointers })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::{
        super::lower::{ARGMAX, ATTENTION, BIAS, MOST_HEAD, SPOIL},
        *,
    };

    #[test]
    fn every_element_has_a_thread_and_no_grid_is_beyond_a_device() {
        for (rows, count) in [(1, 1), (1, 255), (3, 256), (3, 257), (70_000, 151_936), (1, 1 << 30)] {
            let blocks = Blocks::elements(rows, count);
            blocks.checked().unwrap();
            // Threads of a row go on where they end, so that fewer than elements are enough.
            assert!(blocks.grid[1] * blocks.threads >= count.min(MOST_PIECES * ELEMENTS), "{count}");
        }
        for width in [1, 31, 32, 33, 64, 255, 256, 8192] {
            let blocks = Blocks::rows([5, 7], width);
            assert!(blocks.threads.is_multiple_of(WARP) && blocks.threads >= width.min(MOST_OF_ROW), "{width}");
        }
        for rows in [0, 1, 4, 5, 63, 64, 65, 151_936] {
            for tokens in [1, 2, 8, 9, 64, 65, 4096] {
                let (name, blocks) = Blocks::product(rows, tokens);
                let ([x, y], threads) = blocks.checked().unwrap();
                let (x, y, warps) = (x as usize, y as usize, threads as usize / WARP);
                match name {
                    "strato_gemm" => assert!(tokens > MOST_TOKENS && x * TILE >= rows && y * TILE >= tokens),
                    _ => assert!(tokens <= MOST_TOKENS && y == 1 && x * warps >= rows),
                }
                assert_eq!(name == "strato_gemv", tokens == 1);
            }
        }
        let far = Blocks::product(64, 64 * 65_536).1.checked().unwrap_err().to_string();
        assert!(far.contains("1 × 65536 blocks of 256 threads") && far.contains("fewer tokens"), "{far}");
    }

    #[test]
    fn arguments_lie_at_the_beginning_of_their_slots() {
        assert_eq!(Slot::of(1.5f32.to_ne_bytes()).0[..4], 1.5f32.to_ne_bytes());
        assert_eq!(Slot::of(0x0102_0304_0506_0708u64.to_ne_bytes()).0, 0x0102_0304_0506_0708u64.to_ne_bytes());
        assert_eq!((size_of::<Slot>(), align_of::<Slot>()), (8, 8));
    }

    /// What both sides must say alike.
    #[test]
    fn numbers_of_the_kernels_are_those_of_their_launches() {
        let [prelude, linear, attention] = [
            include_str!("kernels/prelude.cu"),
            include_str!("kernels/linear.cu"),
            include_str!("kernels/attention.cu"),
        ];
        for (text, name, value) in [
            (prelude, "WARP_LANES", WARP),
            (linear, "MOST_TOKENS", MOST_TOKENS),
            (linear, "TILE", TILE),
            (attention, "ATTENTION_WARPS", ATTENTION / WARP),
            (attention, "MOST_OF_LANE", MOST_HEAD / WARP),
        ] {
            assert!(text.contains(&format!("#define {name} {value}\n")), "{name} is not {value}");
        }
        let share = |name: &str| linear.split_once(&format!("#define {name} ")).unwrap().1.lines().next().unwrap();
        let share: usize = share("SHARE").parse().unwrap();
        assert_eq!((TILE / share) * (TILE / share), TILE_THREADS, "every thread has a place in the tile");
        for most in [MOST_OF_ROW, ARGMAX, ELEMENTS, TILE_THREADS, ATTENTION] {
            assert!(most / WARP <= 32 && most.is_multiple_of(WARP), "as many sums as MOST_WARPS has room for");
        }
        assert!(linear.contains("#define BIAS 1u") && linear.contains("#define SPOIL 2u"));
        assert_eq!((BIAS, SPOIL), (1, 2));
    }
}
