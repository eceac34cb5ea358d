//! What a frame of the timeline costs: 10 million slices in 40 lanes at 240 columns, zoomed from all of them to a ten
//! thousandth, median and slowest of many frames each.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use model::Span;
use stratoscope::tui::lane::{Column, Item, Kind, LaneIndex};

const LANES: u64 = 40;
const SLICES: u64 = 10_000_000 / LANES;
const COLUMNS: u16 = 240;
const FRAMES: usize = 41;

/// Slices of some microseconds with gaps between them, different on every lane.
fn lane(seed: u64) -> LaneIndex {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut at = 0;
    LaneIndex::new((0..SLICES).map(|row| {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let start = at + (state % 900) as i64;
        at = start + 100 + (state >> 20) as i64 % 8_000;
        let kind = Kind::ALL[(state >> 40) as usize % Kind::ALL.len()];
        Item { span: Span::new(start, at), kind, row: row as u32 }
    }))
}

fn main() {
    let start = Instant::now();
    let lanes: Vec<LaneIndex> = (0..LANES).map(|i| lane(i + 1)).collect();
    println!("build: {} slices in {LANES} lanes, {:?} (one thread)", SLICES * LANES, start.elapsed());
    let extent =
        lanes.iter().filter_map(LaneIndex::extent).reduce(|a, b| Span::new(a.start, a.end.max(b.end))).unwrap();
    let mut columns: Vec<Column> = Vec::new();
    println!("{:>10} {:>12} {:>12}", "window", "median", "slowest");
    for part in [1, 10, 100, 1_000, 10_000] {
        let len = extent.len() / part;
        let mut times: Vec<Duration> = (0..FRAMES)
            .map(|i| {
                let from = extent.start + (extent.len() - len) / FRAMES as i64 * i as i64;
                let window = Span::new(from, from + len);
                let frame = Instant::now();
                for lane in &lanes {
                    lane.columns(window, COLUMNS, &mut columns);
                    std::hint::black_box(&columns);
                }
                frame.elapsed()
            })
            .collect();
        times.sort_unstable();
        println!("{:>10} {:>12?} {:>12?}", format!("1/{part}"), times[FRAMES / 2], times[FRAMES - 1]);
    }
}
