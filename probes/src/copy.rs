//! Copies inside main memory by size, and those between it and a device that has memory of its own: bytes copied per second, so that each counts once although it is read and written.

use std::{hint::black_box, time::Duration};

use engine::{
    Buffer, Dtype, Target,
    cuda::CudaOptions,
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

/// Copies to the device and back, each with the wait for it; of CUDA through either kind of memory of the host.
fn of_device(setup: &Setup) -> Vec<ProbeRow> {
    let Target::Cuda(asked) = &setup.target else { return through(setup, None, setup.part(2 * SIZES)) };
    let kind = |(memory, pageable)| {
        let target = Target::Cuda(CudaOptions { pageable, ..asked.clone() });
        through(&Setup { target, ..setup.clone() }, Some(memory), setup.part(4 * SIZES))
    };
    [("pinned", false), ("pageable", true)].into_iter().flat_map(kind).collect()
}

/// Sizes of copies to and from a device.
const SIZES: usize = 4;

/// Copies through memory of the host of this kind, where there is a choice.
fn through(setup: &Setup, memory: Option<&str>, part: Duration) -> Vec<ProbeRow> {
    let sizes: [usize; SIZES] = [4 << 10, 256 << 10, 4 << 20, 64 << 20];
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
        let setting = memory.iter().fold(setting, |setting, memory| setting.with("memory", *memory));
        row(PROBE.name, "bandwidth", ProbeUnit::BytesPerSecond, setting, measure(bytes, to_device))
    })
    .collect()
}
