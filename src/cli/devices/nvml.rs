//! NVIDIA devices by their driver's library: no process per look, so that it is asked as often as the machine itself.

use std::time::Instant;

use collectors::telemetry::{
    Collector,
    nvml::{self, Gpu},
};
use model::{Ns, Reading};

use super::ANSWER;
use crate::tui::live::{Gauge, Group};

/// What it is called where tools are named.
pub(super) const NAME: &str = "nvml";

/// Devices that the driver tells of.
pub(in crate::cli) struct Nvml {
    /// Or why there are none.
    gpus: Result<Vec<Gpu>, String>,
    /// Why it does not show others.
    hidden: Vec<String>,
    began: Instant,
}

impl Nvml {
    /// Asks the driver which devices there are.
    pub fn find() -> Self {
        let (gpus, hidden) = match nvml::library().and_then(nvml::devices) {
            Ok((gpus, hidden)) => (Ok(gpus), hidden),
            Err(reason) => (Err(reason), Vec::new()),
        };
        Self { gpus, hidden, began: Instant::now() }
    }

    /// Whether the driver answers.
    pub fn is_there(&self) -> bool {
        self.gpus.is_ok()
    }

    /// Gives every reading of every device.
    pub fn look(&mut self) -> Vec<Gauge> {
        let at = Ns::try_from(self.began.elapsed().as_nanos()).unwrap_or(Ns::MAX);
        let own = Group::Device(NAME.to_owned());
        let absent = |name: &str, reason: &str| Gauge {
            group: own.clone(),
            name: name.to_owned(),
            unit: "ns".to_owned(),
            value: Reading::Unavailable(reason.to_owned()),
        };
        let mut out: Vec<Gauge> = self.hidden.iter().map(|reason| absent("device", reason)).collect();
        match &mut self.gpus {
            Ok(gpus) => {
                for gpu in gpus {
                    let group = Group::Device(gpu.title());
                    gpu.look(at, &mut |counter, value| {
                        let (name, unit) = (counter.name.to_owned(), counter.unit.to_owned());
                        out.push(Gauge { group: group.clone(), name, unit, value });
                    });
                }
            }
            Err(reason) => out.push(absent(ANSWER, reason)),
        }
        out
    }
}
