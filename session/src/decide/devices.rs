//! On how many devices a run ran.

use model::Trace;
use report::decide::Given;

use crate::Error;

/// Devices of a run, where it says so: its world size, else the product of its parallel dimensions, and no
/// fewer than the ranks that were seen. A file of one
/// rank that names no world is no proof of one device, so that a person may say more.
pub(super) fn of(trace: &Trace, ranks: usize) -> Option<f64> {
    let count = |key: &str| trace.manifest.count(key).filter(|n| *n > 0);
    let parts = [count("parallel.tp"), count("parallel.pp"), count("parallel.dp")];
    let said: Option<f64> = parts.iter().flatten().map(|n| *n as f64).reduce(|all, n| all * n);
    let seen = (ranks as u64).max(count("hardware.count").unwrap_or(0)) as f64;
    let world = count("parallel.world_size").map(|n| n as f64);
    world.or(said).or((seen > 1.0).then_some(seen)).map(|n| n.max(seen))
}

/// Takes what is declared of the devices of a side, where the run does not say otherwise.
///
/// # Errors
/// A number that the run contradicts.
pub(super) fn declare(own: &Given, side: &str, declared: Option<f64>) -> Result<(), Error> {
    let Some(declared) = declared else { return Ok(()) };
    let loads = own.loads.iter().filter_map(|load| Some((load.source.as_str(), load.devices()?)));
    let all = own.devices.map(|devices| (own.head.name.as_str(), devices)).into_iter().chain(loads);
    match all.into_iter().find(|(_, devices)| (devices - declared).abs() > 1e-6) {
        Some((source, devices)) => Err(Error::Request(format!(
            "price.{side}.devices = {declared}, but '{source}' ran on {devices}; take the line out"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn trace(facts: &[(&str, &str)]) -> Trace {
        let mut trace = Trace::default();
        for (key, value) in facts {
            trace.manifest.set(key, *value, model::manifest::Provenance::Observed);
        }
        trace
    }

    /// The file of one rank of four was taken for the whole.
    #[test]
    fn one_rank_of_a_world_is_not_the_whole() {
        let world = [("hardware.count", "1"), ("parallel.world_size", "4")];
        assert_eq!(of(&trace(&world), 1), Some(4.0));
        assert_eq!(of(&trace(&[("parallel.tp", "4"), ("parallel.pp", "2")]), 1), Some(8.0));
        assert_eq!((of(&trace(&[("hardware.count", "1")]), 1), of(&trace(&[]), 2)), (None, Some(2.0)));
    }

    #[test]
    fn devices_that_a_run_contradicts_are_refused() {
        let own = Given { devices: Some(4.0), ..Given::default() };
        assert!(declare(&own, "a", Some(4.0)).is_ok() && declare(&own, "a", None).is_ok());
        assert!(declare(&own, "a", Some(2.0)).unwrap_err().to_string().contains("price.a.devices = 2"));
        assert!(declare(&Given::default(), "b", Some(2.0)).is_ok());
    }
}
