//! Copies inside main memory by size, and those between it and a device that has memory of its own: bytes copied per second, so that each counts once although it is read and written.

use std::hint::black_box;

use engine::{
    Buffer, Dtype, Target,
    program::{BufId, OpKind, OpName},
};
use model::{ProbeRow, ProbeUnit, Setting, Statistic};

use crate::{
    Of, Probe, Setup, caches,
    device::{self, Device},
    repeat::{per_second, repeat, time_each},
    row,
};

pub const PROBE: Probe = Probe {
    name: "copy",
    about: ["copies by size, in memory or to and from a device", "按大小的拷贝（内存内，或与设备之间）"],
    of: Of::Engine,
    run,
};

/// Bytes of a repeat: small copies are made as often as it takes.
const REPEAT: usize = 4 << 20;

fn run(setup: &Setup) -> Vec<ProbeRow> {
    if setup.target != Target::Cpu {
        return of_device(setup);
    }
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

/// Copies from pageable memory to the device and back, each with the wait for it.
fn of_device(setup: &Setup) -> Vec<ProbeRow> {
    let sizes = [4 << 10, 256 << 10, 4 << 20, 64 << 20];
    let part = setup.part(2 * sizes.len());
    let measure = |bytes: usize, to_device: bool| -> Result<Statistic, String> {
        let count = bytes / size_of::<f32>();
        let add = (OpName::ResidualAdd, OpKind::Add { x: BufId(0), delta: BufId(1) });
        let buffers = [(1, count), (1, count)];
        let mut device = Device::new(setup, device::model(|_| ())?, Dtype::F32, (1, 0), &buffers, vec![add])?;
        let values = vec![1.0; count];
        let time = repeat(part, || {
            let began = std::time::Instant::now();
            if to_device {
                device.write(&values)?
            } else {
                device.read()?
            };
            Ok(began.elapsed().as_nanos() as f64)
        })?;
        Ok(per_second(bytes as f64, &time))
    };
    let rows = sizes.into_iter().flat_map(|bytes| [("HtoD", true), ("DtoH", false)].map(|way| (bytes, way)));
    rows.map(|(bytes, (direction, to_device))| {
        let setting = setup.setting(setup.threads).with(Setting::BYTES, bytes).with("direction", direction);
        row(PROBE.name, "bandwidth", ProbeUnit::BytesPerSecond, setting, measure(bytes, to_device))
    })
    .collect()
}
