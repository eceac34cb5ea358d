//! Measured ceilings of this machine with what they were measured on.

use collectors::host::Host;
use model::{ProbeRow, ProbeRun, Reading};
use probes::{Probe, Setup};

use super::backend::device_name;

/// Runs the probes that `picks` takes and says what machine they are of; `told` gets each with its rows as it ends.
pub(super) fn measured(
    setup: &Setup,
    host: &Host,
    picks: impl Fn(&Probe) -> bool,
    told: impl FnMut(&Probe, &[ProbeRow]),
) -> ProbeRun {
    let mut run = probes::run(setup, picks, told);
    let mut facts = vec![
        (ProbeRun::DEVICE.to_owned(), device_name(&setup.target).unwrap_or_else(|| host.cpu.clone())),
        ("system".to_owned(), host.system.clone()),
        ("cores".to_owned(), shown(&host.cores)),
        ("memory_bytes".to_owned(), shown(&host.memory_bytes)),
    ];
    facts.append(&mut run.provenance);
    ProbeRun { provenance: facts, ..run }
}

fn shown<T: std::fmt::Display>(reading: &Reading<T>) -> Reading<String> {
    match reading {
        Reading::Value(value) => Reading::Value(value.to_string()),
        Reading::Unavailable(reason) => Reading::Unavailable(reason.clone()),
    }
}
