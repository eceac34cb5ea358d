//! Memory: what a zeroed buffer of the engine costs by size from the asking to the giving back, where the engine's device
//! computes, and what the first use of memory of this machine costs that the system has only promised.

use std::hint::black_box;

use engine::{Buffer, Target};
use model::{ProbeRow, ProbeUnit, Setting, Statistic};

use crate::{
    Of, Probe, Setup,
    device::Device,
    repeat::{per_second, repeat, time},
    row,
};

pub const PROBE: Probe = Probe {
    name: "allocation",
    about: ["allocate, zero and free by size; first use of memory", "按大小分配、清零与释放；首次使用内存"],
    of: Of::Engine,
    run,
};

const SIZES: [usize; 4] = [4 << 10, 256 << 10, 2 << 20, 64 << 20];
/// Bytes whose first use is measured.
const TOUCHED: usize = 64 << 20;
/// Every page that a machine may have is at least so large, bytes.
const PAGE: usize = 4096;

fn run(setup: &Setup) -> Vec<ProbeRow> {
    if setup.target != Target::Cpu { of_device(setup) } else { of_machine(setup) }
}

/// Memory of a device, through its driver.
fn of_device(setup: &Setup) -> Vec<ProbeRow> {
    let part = setup.part(SIZES.len());
    let device = std::cell::RefCell::new(Device::empty(setup, 1));
    let measured = |bytes: usize| -> Result<Statistic, String> {
        let mut device = device.borrow_mut();
        let device = device.as_mut().map_err(|why| why.clone())?;
        repeat(part, || {
            let mut made = Ok(());
            let ns = time(|| made = device.allocate(bytes));
            made.map(|()| ns)
        })
    };
    let of = |bytes: usize| {
        let setting = setup.setting(setup.threads).with(Setting::BYTES, bytes);
        row(PROBE.name, "time", ProbeUnit::Ns, setting, measured(bytes))
    };
    SIZES.into_iter().map(of).collect()
}

fn of_machine(setup: &Setup) -> Vec<ProbeRow> {
    let part = setup.part(SIZES.len() + 1);
    let allocate = |bytes: usize| {
        let value = repeat(part, || {
            let mut made = Ok(());
            let ns = time(|| made = Buffer::zeroed(bytes).map(|buffer| drop(black_box(buffer))));
            made.map(|()| ns).map_err(|error| error.to_string())
        });
        row(PROBE.name, "time", ProbeUnit::Ns, Setting::new().with(Setting::BYTES, bytes), value)
    };
    let first = repeat(part, || {
        // Zeros of so many pages come from the system without being written.
        let mut memory = black_box(vec![0u8; TOUCHED]);
        let ns = time(|| memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1));
        black_box(memory);
        Ok(ns)
    });
    let mut rows: Vec<ProbeRow> = SIZES.into_iter().map(allocate).collect();
    let setting = Setting::new().with(Setting::BYTES, TOUCHED);
    let value = first.map(|ns| per_second(TOUCHED as f64, &ns));
    rows.push(row(PROBE.name, "first_use", ProbeUnit::BytesPerSecond, setting, value));
    rows
}
