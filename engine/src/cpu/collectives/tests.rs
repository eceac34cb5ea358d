#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::*;
use crate::comm::{PATIENCE, Region, World};

const WORLD: World = World { ranks: 3, workers: 2, slot: 200 };

fn rows(memory: &mut [f32], width: usize) -> Rows {
    Rows::new(memory, width)
}

/// Runs `each` for every worker of every rank at once, on threads.
fn everywhere(region: Region, each: impl Fn(&Communicator, Part) + Sync) {
    let region = Arc::new(region);
    let ranks: Vec<Communicator> =
        (0..WORLD.ranks).map(|rank| Communicator::new(Arc::clone(&region), rank, PATIENCE).unwrap()).collect();
    std::thread::scope(|scope| {
        for rank in &ranks {
            for number in 0..WORLD.workers {
                let part = Part { number, of: WORLD.workers };
                let each = &each;
                scope.spawn(move || each(rank, part));
            }
        }
    });
}

fn sums_and_pieces(region: Region) {
    let kernels = Kernels::best();
    let mut sums = vec![[0.0f32; 200]; 3];
    let mut pieces = [vec![0.0f32; 2 * 16], vec![0.0; 2 * 17], vec![0.0; 2 * 17]];
    let mut wholes = vec![[0.0f32; 100]; 3];
    let sums: Vec<Rows> = sums.iter_mut().map(|x| rows(x, 100)).collect();
    let pieces: Vec<Rows> = pieces.iter_mut().zip([16, 17, 17]).map(|(x, width)| rows(x, width)).collect();
    let wholes: Vec<Rows> = wholes.iter_mut().map(|x| rows(x, 50)).collect();
    everywhere(region, |rank, part| {
        let number = rank.shard().rank;
        for round in 0..300u32 {
            let seq = 2 * round + 1;
            let x = sums[number];
            // SAFETY: this worker's share.
            let mine = unsafe { x.elements_mut(part.of(200, 16)) };
            let first = part.of(200, 16).start;
            mine.iter_mut().enumerate().for_each(|(i, x)| *x = (first + i) as f32 + (number * 1000) as f32);
            assert!(rank.all_reduce(seq, part, &kernels, x).is_ok());
            // SAFETY: this worker's share, which it wrote.
            let mine = unsafe { x.elements_mut(part.of(200, 16)) };
            assert!(mine.iter().enumerate().all(|(i, x)| *x == 3.0 * (first + i) as f32 + 3000.0), "round {round}");

            let (piece, whole) = (pieces[number], wholes[number]);
            let own = part.of(piece.width, 16);
            for row in 0..2 {
                // SAFETY: this worker's share.
                unsafe { piece.part_mut(row, own.clone()) }.fill((round + row as u32 * 7 + number as u32) as f32);
            }
            assert!(rank.all_gather(seq + 1, part, piece, whole).is_ok());
            for other in rank.shard().ranks() {
                let columns = other.range(50);
                let share = share(columns.len(), 16, part.number, part.of);
                for row in 0..2 {
                    // SAFETY: this worker's share, which it wrote.
                    let got = unsafe { whole.part(row, columns.start + share.start..columns.start + share.end) };
                    assert!(got.iter().all(|x| *x == (round + row as u32 * 7 + other.rank as u32) as f32));
                }
            }
        }
    });
}

#[test]
fn sums_and_pieces_are_right_on_every_rank_round_after_round() {
    sums_and_pieces(Region::of_threads(WORLD).unwrap());
}

#[test]
#[cfg(target_os = "linux")]
fn memory_behind_a_descriptor_serves_as_well_and_another_is_refused() {
    use std::os::fd::AsRawFd;
    let (region, fd) = Region::of_processes(WORLD).unwrap();
    assert!(Region::inherited(WORLD, fd.as_raw_fd()).is_ok());
    let larger = World { slot: 1000, ..WORLD };
    assert!(Region::inherited(larger, fd.as_raw_fd()).err().unwrap().to_string().contains("bytes, not"));
    assert!(Region::inherited(WORLD, -1).is_err());
    sums_and_pieces(region);
}

#[test]
fn a_rank_that_never_comes_or_leaves_early_is_an_error_on_every_other() {
    let pair = World { ranks: 2, workers: 1, slot: 16 };
    let region = Arc::new(Region::of_threads(pair).unwrap());
    let patience = Duration::from_millis(50);
    let mut first = Communicator::new(Arc::clone(&region), 0, patience).unwrap();
    let error = first.meet(patience).unwrap_err().to_string();
    assert!(error.contains("rank 1"), "{error}");

    let region = Arc::new(Region::of_threads(pair).unwrap());
    let mut first = Communicator::new(Arc::clone(&region), 0, PATIENCE).unwrap();
    let began = Instant::now();
    let gone = std::thread::spawn(move || drop(Communicator::new(region, 1, PATIENCE).unwrap()));
    assert!(first.meet(PATIENCE).is_err());
    assert!(began.elapsed() < PATIENCE / 2);
    gone.join().unwrap();
}
