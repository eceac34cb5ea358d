//! Power of the processor packages, from the energy counters that the kernel's powercap driver publishes (RAPL). Kernels
//! since 5.10 let only root read them.

use std::path::Path;

use model::{Ns, Reading};

use super::{Collector, Counter, read};

const POWER: Counter = Counter { name: "cpu_power", unit: "W", device: Some(0) };
/// Packages of a machine that are looked at.
const PACKAGES: usize = 16;

/// Mean power of all packages since the last look.
#[derive(Debug, Default)]
pub struct Power(Option<(Ns, Vec<Energy>)>);

impl Collector for Power {
    fn look(&mut self, at: Ns, give: &mut dyn FnMut(Counter, Reading<f64>)) {
        match below(Path::new("/sys/class/powercap")) {
            Ok(now) => {
                let watts = self.0.as_ref().and_then(|(since, before)| watts(before, &now, at - since));
                self.0 = Some((at, now));
                if let Some(watts) = watts {
                    give(POWER, Reading::Value(watts));
                }
            }
            Err(reason) => give(POWER, Reading::Unavailable(reason)),
        }
    }
}

/// The energy counter of a package, µJ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Energy {
    used: u64,
    /// Where it starts again from 0.
    range: u64,
}

/// The counters of the packages `intel-rapl:0`, `intel-rapl:1`, …, which AMD processors have by the same name.
fn below(directory: &Path) -> Result<Vec<Energy>, String> {
    let of = |package: usize| -> Result<Energy, String> {
        let number = |name: &str| -> Result<u64, String> {
            let text = read(directory.join(format!("intel-rapl:{package}/{name}")))?;
            text.trim().parse().map_err(|_| format!("{name} of package {package} is no number"))
        };
        Ok(Energy { used: number("energy_uj")?, range: number("max_energy_range_uj")? })
    };
    let first = of(0)?;
    Ok(std::iter::once(first).chain((1..PACKAGES).map_while(|package| of(package).ok())).collect())
}

/// Power over `ns`; a µJ per ns is a kW.
fn watts(before: &[Energy], now: &[Energy], ns: Ns) -> Option<f64> {
    if ns <= 0 || before.len() != now.len() {
        return None;
    }
    let used = before.iter().zip(now).map(|(before, now)| match now.used.checked_sub(before.used) {
        Some(used) => used,
        None => now.range.saturating_sub(before.used).saturating_add(now.used),
    });
    let used = used.fold(0u64, u64::saturating_add);
    Some(used as f64 * 1000.0 / ns as f64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn energy_of_all_packages_becomes_power_also_where_a_counter_starts_again() {
        let energy = |used| Energy { used, range: 1000 };
        // 50 J in a second and a half over two packages.
        let joules = [Energy { used: 0, range: 1 << 40 }; 2];
        let later = [Energy { used: 30_000_000, ..joules[0] }, Energy { used: 20_000_000, ..joules[1] }];
        let power = watts(&joules, &later, 1_500_000_000).unwrap();
        assert!((power - 50.0 / 1.5).abs() < 1e-9, "{power}");
        assert_eq!(watts(&[energy(900)], &[energy(100)], 1000), Some(200.0));
        assert_eq!(watts(&[energy(1)], &[energy(2)], 0), None);
        assert_eq!(watts(&[energy(1)], &[], 10), None);
    }

    #[test]
    fn packages_are_found_and_an_unreadable_one_is_told() {
        let directory = tempfile::tempdir().unwrap();
        assert!(below(directory.path()).unwrap_err().contains("energy_uj"));
        let at = directory.path().join("intel-rapl:0");
        std::fs::create_dir_all(&at).unwrap();
        std::fs::write(at.join("energy_uj"), "123456\n").unwrap();
        std::fs::write(at.join("max_energy_range_uj"), "262143328850\n").unwrap();
        assert_eq!(below(directory.path()), Ok(vec![Energy { used: 123_456, range: 262_143_328_850 }]));
    }
}
