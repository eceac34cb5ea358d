//! All-reduce between threads by size: one shot, every rank reads what every other has and adds it up. It is the probe's own,
//! and named so: what shared memory between the cores allows at least, not what a communication library makes of it.

use std::{
    hint::black_box,
    sync::{PoisonError, RwLock},
};

use model::{ProbeRow, ProbeUnit, Setting, Statistic};

use crate::{
    Of, Probe, Setup,
    gather::{Meeting, together},
    repeat::repeat,
    row,
};

pub const PROBE: Probe = Probe {
    name: "collective",
    about: ["one-shot all-reduce between threads, by size", "线程间单次 all-reduce（按大小）"],
    of: Of::Machine,
    run,
};

/// Bytes of each rank's part: the sums of a decode step of small and large models, and of prompts.
const SIZES: [usize; 5] = [1792, 8 << 10, 64 << 10, 512 << 10, 4 << 20];
/// Most ranks: those of a machine of accelerators.
const RANKS: usize = 8;
/// All-reduces of a repeat.
const ROUNDS: usize = 50;

fn run(setup: &Setup) -> Vec<ProbeRow> {
    let ranks = setup.threads.min(RANKS);
    let row = |bytes: usize| {
        let setting =
            Setting::new().with(Setting::THREADS, ranks).with(Setting::BYTES, bytes).with("algorithm", "one_shot");
        let value = if ranks < 2 {
            Err("an all-reduce takes two cores".to_owned())
        } else {
            measure(setup, ranks, bytes / size_of::<f32>())
        };
        row(PROBE.name, "time", ProbeUnit::Ns, setting, value)
    };
    SIZES.into_iter().map(row).collect()
}

fn measure(setup: &Setup, ranks: usize, numbers: usize) -> Result<Statistic, String> {
    let parts: Vec<RwLock<Vec<f32>>> = (0..ranks).map(|_| RwLock::new(vec![1.0; numbers])).collect();
    repeat(setup.part(SIZES.len()), || {
        let meeting = Meeting::new(ranks);
        let ns = together(ranks, |rank| {
            let mut sum = vec![0.0; numbers];
            for round in 0..ROUNDS {
                reduce(&parts, rank, &mut sum, |passed| meeting.wait(2 * round + passed));
            }
            black_box(sum);
        });
        Ok(ns / ROUNDS as f64)
    })
}

/// The sum of all parts, once all are written; nobody goes on before all have read.
fn reduce(parts: &[RwLock<Vec<f32>>], rank: usize, sum: &mut [f32], meet: impl Fn(usize)) {
    // The part that this step made; one number stands for it, since writing it is no part of the collective.
    if let Some(own) = parts.get(rank) {
        let mut own = own.write().unwrap_or_else(PoisonError::into_inner);
        own.iter_mut().take(1).for_each(|first| *first = 1.0);
    }
    meet(1);
    sum.fill(0.0);
    for part in parts {
        let part = part.read().unwrap_or_else(PoisonError::into_inner);
        sum.iter_mut().zip(part.iter()).for_each(|(sum, value)| *sum += value);
    }
    meet(2);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn every_rank_gets_the_sum_of_all() {
        let parts: Vec<RwLock<Vec<f32>>> = (0..3).map(|_| RwLock::new(vec![1.0; 5])).collect();
        let (meeting, right) = (Meeting::new(3), AtomicUsize::new(0));
        together(3, |rank| {
            let mut sum = vec![0.0; 5];
            for round in 0..20 {
                reduce(&parts, rank, &mut sum, |passed| meeting.wait(2 * round + passed));
                right.fetch_add(usize::from(sum == [3.0; 5]), Ordering::Relaxed);
            }
        });
        assert_eq!(right.into_inner(), 60);
    }
}
