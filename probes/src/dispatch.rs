//! The host's path to an operator: operators per second where the device has nothing to do and there are no workers.

use model::{ProbeRow, ProbeUnit, Statistic};

use crate::{
    Of, Probe, Setup,
    device::Device,
    launch,
    repeat::{per_second, repeat},
    row,
};

pub const PROBE: Probe = Probe {
    name: "dispatch",
    about: ["operators per second through the whole engine", "经由整个引擎每秒可下发的算子数"],
    of: Of::Engine,
    run,
};

fn run(setup: &Setup) -> Vec<ProbeRow> {
    let measure = || -> Result<Statistic, String> {
        let mut device = Device::empty(&Setup { threads: 1, ..setup.clone() }, launch::OPS)?;
        Ok(per_second(1.0, &repeat(setup.part(4), || launch::whole(&mut device))?))
    };
    let setting = setup.setting(1);
    vec![row(PROBE.name, "rate", ProbeUnit::PerSecond, setting, measure())]
}
