//! Copies inside main memory by size: bytes copied per second, so that each counts once although it is read and written.

use std::hint::black_box;

use engine::Buffer;
use model::{ProbeRow, ProbeUnit, Setting, Statistic};

use crate::{
    Probe, Setup, caches,
    repeat::{per_second, repeat, time_each},
    row,
};

pub const PROBE: Probe =
    Probe {
        name: "copy", about: ["copies in memory by size, one thread", "按大小的内存拷贝（单线程）"], run
    };

/// Bytes of a repeat: small copies are made as often as it takes.
const REPEAT: usize = 4 << 20;

fn run(setup: &Setup) -> Vec<ProbeRow> {
    let sizes = [4 << 10, 256 << 10, 4 << 20, caches::beyond() / 2];
    let measure = |bytes: usize| -> Result<Statistic, String> {
        let make = || Buffer::zeroed(bytes).map_err(|error| error.to_string());
        let (mut from, mut to) = (make()?, make()?);
        from.bytes_mut().fill(1);
        let times = u32::try_from(REPEAT / bytes).unwrap_or(1).max(1);
        let copy = || {
            to.bytes_mut().copy_from_slice(black_box(from.bytes()));
            black_box(to.bytes());
        };
        let mut copy = copy;
        Ok(per_second(bytes as f64, &repeat(setup.part(sizes.len()), || Ok(time_each(times, &mut copy)))?))
    };
    let row = |bytes: usize| {
        let setting = Setting::new().with(Setting::THREADS, 1).with(Setting::BYTES, bytes);
        row(PROBE.name, "bandwidth", ProbeUnit::BytesPerSecond, setting, measure(bytes))
    };
    sizes.into_iter().map(row).collect()
}
