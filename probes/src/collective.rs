//! All-reduce by size. Between the threads of a CPU one shot: every rank reads what every other has and adds it up; it is the
//! probe's own, and named so: what shared memory between the cores allows at least, not what a communication library makes of
//! it. Between two devices it is what the engine does there.

use std::{
    hint::black_box,
    sync::{Arc, PoisonError, RwLock},
    time::Instant,
};

use engine::{
    Dtype, Target,
    cpu::{Communicator, PATIENCE, Region, World},
    program::{BufId, OpKind, OpName},
    record::Log,
};
use model::{ProbeRow, ProbeUnit, Setting, Statistic};

use crate::{
    Of, Probe, Setup,
    device::{self, Device},
    gather::{Meeting, together},
    repeat::repeat,
    row,
};

pub const PROBE: Probe = Probe {
    name: "collective",
    about: ["all-reduce between ranks, by size", "各 rank 间的 all-reduce（按大小）"],
    of: Of::Engine,
    run,
};

/// Bytes of each rank's part: the sums of a decode step of small and large models, and of prompts.
const SIZES: [usize; 5] = [1792, 8 << 10, 64 << 10, 512 << 10, 4 << 20];
/// Most ranks: those of a machine of accelerators.
const RANKS: usize = 8;
/// All-reduces of a repeat.
const ROUNDS: usize = 50;

/// All-reduces of a step of two devices, and steps: the same number on both, who wait for each other.
const OPS: usize = 16;
const STEPS: usize = 8;

fn run(setup: &Setup) -> Vec<ProbeRow> {
    if setup.target != Target::Cpu {
        return of_devices(setup);
    }
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

/// Between two devices of the kind.
fn of_devices(setup: &Setup) -> Vec<ProbeRow> {
    let row = |bytes: usize| {
        let setting = setup.setting(1).with("ranks", 2).with(Setting::BYTES, bytes);
        row(PROBE.name, "time", ProbeUnit::Ns, setting, between(setup, bytes / size_of::<f32>()))
    };
    SIZES.into_iter().map(row).collect()
}

/// Time of an all-reduce of so many numbers between two ranks, ns, as the first sees it.
fn between(setup: &Setup, numbers: usize) -> Result<Statistic, String> {
    let world = World { ranks: 2, workers: 1, slot: numbers };
    let region = Arc::new(Region::of_threads(world).map_err(|error| error.to_string())?);
    let rank = |number: usize| -> Result<Vec<f64>, String> {
        let way = Communicator::new(Arc::clone(&region), number, PATIENCE).map_err(|error| error.to_string())?;
        let config = device::model(|config| {
            (config.vocab, config.hidden, config.intermediate) = (4, 4, 4);
            (config.heads, config.kv_heads) = (2, 2);
        })?;
        let ops = vec![(OpName::AllReduce, OpKind::AllReduce { x: BufId(0) }); OPS];
        let mut own = Device::of_rank(setup, config, Dtype::F32, (1, 0), &[(1, numbers)], ops, Some(way))?;
        let mut times = Vec::new();
        for step in 0..=STEPS {
            let began = Instant::now();
            own.run(&mut Log::off())?;
            // The first warms up.
            times.extend((step > 0).then(|| began.elapsed().as_nanos() as f64 / OPS as f64));
        }
        Ok(times)
    };
    let lost = |_| Err("a rank of the probe panicked".to_owned());
    let [first, second] = std::thread::scope(|scope| {
        let second = scope.spawn(|| rank(1));
        [rank(0), second.join().unwrap_or_else(lost)]
    });
    second?;
    Statistic::of(first?).ok_or_else(|| "no repeat gave a number".to_owned())
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
