//! Clock of the cores as the frequency driver of the kernel tells it. `/proc/cpuinfo` is no substitute: on a virtual machine
//! it repeats the nominal clock, whatever the cores run at.

use std::path::Path;

use model::{Ns, Reading};

use super::{Collector, Counter, read};

const CLOCK: Counter = Counter { name: "cpu_frequency", unit: "MHz", device: Some(0) };
/// Cores that are looked at; a look at each wakes it.
const CORES: usize = 8;

/// The mean clock of the first cores.
#[derive(Debug, Default)]
pub struct Frequency;

impl Collector for Frequency {
    fn look(&mut self, _: Ns, give: &mut dyn FnMut(Counter, Reading<f64>)) {
        give(CLOCK, below(Path::new("/sys/devices/system/cpu")));
    }
}

/// Mean of `cpu*/cpufreq/scaling_cur_freq` below a directory, MHz.
fn below(directory: &Path) -> Reading<f64> {
    let of = |core: usize| read(directory.join(format!("cpu{core}/cpufreq/scaling_cur_freq")));
    let first = match of(0) {
        Ok(first) => first,
        Err(reason) => return Reading::Unavailable(format!("{reason}; the kernel has no frequency driver for it")),
    };
    let others = (1..CORES).map_while(|core| of(core).ok());
    let clocks: Vec<f64> = std::iter::once(first).chain(others).filter_map(|text| megahertz(&text)).collect();
    if clocks.is_empty() {
        return Reading::Unavailable("scaling_cur_freq holds no number".to_owned());
    }
    Reading::Value(clocks.iter().sum::<f64>() / clocks.len() as f64)
}

/// From kHz.
fn megahertz(text: &str) -> Option<f64> {
    Some(text.trim().parse::<u32>().ok()? as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_clock_is_the_mean_of_the_cores_and_absent_without_a_driver() {
        let directory = tempfile::tempdir().unwrap();
        assert!(below(directory.path()).value().is_none());
        for (core, khz) in ["2600000\n", "3400000\n"].iter().enumerate() {
            let at = directory.path().join(format!("cpu{core}/cpufreq"));
            std::fs::create_dir_all(&at).unwrap();
            std::fs::write(at.join("scaling_cur_freq"), khz).unwrap();
        }
        assert_eq!(below(directory.path()), Reading::Value(3000.0));
        assert_eq!(megahertz("<unknown>"), None);
    }
}
