//! Reading: decode steps read weights far more than they write, so this and not a copy is their ceiling. By threads and by
//! size, through the cache levels to main memory.

use std::hint::black_box;

use engine::{Buffer, Dtype, Target};
use model::{ProbeRow, ProbeUnit, Setting, Statistic};

use crate::{
    Of, Probe, Product, Setup, caches,
    gather::together,
    product,
    repeat::{per_second, repeat},
    row,
};

pub const PROBE: Probe = Probe {
    name: "read",
    about: ["read bandwidth by threads and size", "按线程数与大小的读取带宽"],
    of: Of::Engine,
    run,
};

/// Bytes that a thread reads in a repeat at least: the start of the threads must not count.
const REPEAT: usize = 32 << 20;
/// Sums that are added up side by side: as many as hide the latency of an addition.
const LANES: usize = 64;

fn run(setup: &Setup) -> Vec<ProbeRow> {
    if setup.target != Target::Cpu {
        return vec![of_device(setup)];
    }
    let whole = caches::beyond();
    // Half of a cache is surely in it; what is shared is shared by all threads.
    let caches = caches::sizes();
    let last = caches.last().map(|(level, _)| *level);
    let mut cases = Vec::new();
    for threads in setup.thread_counts() {
        for (level, bytes) in &caches {
            let each = if Some(*level) == last { bytes / 2 / threads } else { bytes / 2 };
            cases.push((threads, each, format!("L{level}")));
        }
        cases.push((threads, whole / threads, "memory".to_owned()));
    }
    let part = setup.part(cases.len());
    let memory = Buffer::zeroed(whole).map(|mut buffer| {
        // Written once, or every page would be the same page of zeros.
        buffer.bytes_mut().fill(1);
        buffer
    });
    let row = |(threads, each, place): (usize, usize, String)| {
        let setting =
            Setting::new().with(Setting::THREADS, threads).with(Setting::BYTES, each * threads).with("in", place);
        let value = match &memory {
            Ok(memory) => measure(memory.as_slice(), threads, each / size_of::<u32>(), part),
            Err(error) => Err(error.to_string()),
        };
        row(PROBE.name, "bandwidth", ProbeUnit::BytesPerSecond, setting, value)
    };
    cases.into_iter().map(row).collect()
}

/// A device that is no processor of ours reads by its own kernels: a product of one row with a matrix in single precision
/// does next to nothing else.
fn of_device(setup: &Setup) -> ProbeRow {
    const INPUTS: usize = 4096;
    let outputs = caches::beyond_of(&setup.target) / Dtype::F32.row_bytes(INPUTS);
    let product = Product { rows: 1, outputs, inputs: INPUTS, dtype: Dtype::F32 };
    let bytes = product::bytes(&product);
    let setting = setup.setting(setup.threads).with(Setting::BYTES, bytes).with("in", "memory");
    let time = product::time(setup, &product, 1, setup.budget);
    let value = time.map(|ns| per_second(bytes as f64, &ns));
    row(PROBE.name, "bandwidth", ProbeUnit::BytesPerSecond, setting, value)
}

/// Each of `threads` reads its own `each` numbers over and over.
fn measure(memory: &[u32], threads: usize, each: usize, part: std::time::Duration) -> Result<Statistic, String> {
    let each = each / LANES * LANES;
    if each == 0 || memory.len() < each * threads {
        return Err("there is less to read than a thread takes at once".to_owned());
    }
    let rounds = (REPEAT / (each * size_of::<u32>())).max(1);
    let of = |number: usize| memory.get(number * each..(number + 1) * each).unwrap_or_default();
    let read = |number: usize| {
        for _ in 0..rounds {
            black_box(sum(black_box(of(number))));
        }
    };
    let bytes = (each * size_of::<u32>() * threads * rounds) as f64;
    Ok(per_second(bytes, &repeat(part, || Ok(together(threads, read)))?))
}

fn sum(numbers: &[u32]) -> u32 {
    let mut sums = [0u32; LANES];
    for block in numbers.chunks_exact(LANES) {
        for (sum, number) in sums.iter_mut().zip(block) {
            *sum = sum.wrapping_add(*number);
        }
    }
    sums.into_iter().fold(0, u32::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_read() {
        let numbers: Vec<u32> = (0..10 * LANES as u32).collect();
        assert_eq!(sum(&numbers), numbers.iter().copied().fold(0, u32::wrapping_add));
    }
}
