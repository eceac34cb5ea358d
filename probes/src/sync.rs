//! Waiting for the workers: while they are awake, and after they have gone to sleep, when the system has to wake them.

use std::time::{Duration, Instant};

use engine::{Target, record::Log};
use model::{ProbeRow, ProbeUnit, Statistic};

use crate::{Of, Probe, Setup, device::Device, launch, repeat::repeat, row};

pub const PROBE: Probe = Probe {
    name: "sync",
    about: ["start an operator and wait for it, device awake and asleep", "启动一个算子并等待（设备醒着与睡眠时）"],
    of: Of::Engine,
    run,
};

/// Long enough for workers to go to sleep: the engine's spin for a tenth of a millisecond before they do.
const PAUSE: Duration = Duration::from_millis(2);

fn run(setup: &Setup) -> Vec<ProbeRow> {
    let is_cpu = setup.target == Target::Cpu;
    let awake = if is_cpu { awake } else { round_trip };
    let setting = |state| setup.setting(setup.threads).with(if is_cpu { "workers" } else { "device" }, state);
    let alone = is_cpu && setup.threads < 2;
    let of_several = |measure: fn(&Setup, Duration) -> Result<Statistic, String>| {
        if alone { Err("one thread has nobody to wait for".to_owned()) } else { measure(setup, setup.part(2)) }
    };
    vec![
        row(PROBE.name, "time", ProbeUnit::Ns, setting("awake"), of_several(awake)),
        row(PROBE.name, "time", ProbeUnit::Ns, setting("asleep"), of_several(asleep)),
    ]
}

/// One operator on all threads less one on a single thread.
fn awake(setup: &Setup, part: Duration) -> Result<Statistic, String> {
    let mut all = Device::empty(setup, launch::OPS)?;
    let mut single = Device::empty(&Setup { threads: 1, ..setup.clone() }, launch::OPS)?;
    // Whatever the caller does by itself is no waiting; interleaved, both see the same machine.
    repeat(part, || Ok((launch::whole(&mut all)? - launch::whole(&mut single)?).max(0.0)))
}

/// A program of one operator, again and again.
fn round_trip(setup: &Setup, part: Duration) -> Result<Statistic, String> {
    let mut device = Device::empty(setup, 1)?;
    repeat(part, || launch::whole(&mut device))
}

/// A program of one operator after a pause.
fn asleep(setup: &Setup, part: Duration) -> Result<Statistic, String> {
    let mut device = Device::empty(setup, 1)?;
    repeat(part, || {
        std::thread::sleep(PAUSE);
        let began = Instant::now();
        device.run(&mut Log::off())?;
        Ok(began.elapsed().as_nanos() as f64)
    })
}
