//! A driver's library that is made for the test, with one device.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{collections::BTreeMap, path::Path, process::Command, time::Duration};

use engine::record::Clock as RunClock;
use model::{TraceBuilder, TraceSink};

use super::*;
use crate::telemetry::Sampler;

/// Builds the library; the directory holds it as long as it is there.
fn built(flags: &[&str]) -> (tempfile::TempDir, &'static Nvml) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("libnvidia-ml.so.1");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_nvml.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-w", "-o"]).arg(&file).arg(&source).args(flags);
    assert!(compiler.status().expect("a C compiler").success());
    let nvml = library_at(file.as_os_str()).unwrap();
    (directory, nvml)
}

fn only(nvml: &'static Nvml) -> Gpu {
    let (mut found, hidden) = devices(nvml).unwrap();
    assert_eq!((found.len(), hidden), (1, Vec::new()));
    found.remove(0)
}

/// What a look gives, by the counter's name.
fn look(gpu: &mut Gpu, at: Ns) -> BTreeMap<&'static str, Reading<f64>> {
    let mut seen = BTreeMap::new();
    gpu.look(at, &mut |counter, value| {
        assert_eq!(counter.device, Some(0));
        assert!(seen.insert(counter.name, value).is_none(), "{} is told twice", counter.name);
    });
    seen
}

const NOT_SUPPORTED: &str = "the device does not support it";

#[test]
fn every_quantity_is_told_in_its_unit() {
    let (_directory, nvml) = built(&["-DHOPPER"]);
    assert_eq!(versions(nvml), Reading::Value("driver 580.65.06, NVML 13.580.65.06".to_owned()));
    let mut gpu = only(nvml);
    assert_eq!((gpu.title().as_str(), gpu.number), ("nvml  0  NVIDIA Pretended 1", 0));
    let first = look(&mut gpu, 0);
    for (name, value) in [
        ("utilisation", 87.0),
        ("memory_busy", 42.0),
        ("memory_used", (9u64 << 30) as f64),
        ("memory_total", (80u64 << 30) as f64),
        ("power", 312.5),
        ("power_cap", 700.0),
        ("energy", 1040.0),
        ("temperature", 61.0),
        ("clock", 1755.0),
        ("clock_most", 1980.0),
        ("memory_clock", 2619.0),
        ("throttle_power", 1.0),
        ("throttle_thermal", 1.0),
        ("throttle_hardware", 0.0),
        ("throttle_settings", 0.0),
        ("pcie_sent", 2e6),
        ("pcie_received", 3e6),
        ("pcie_generation", 5.0),
        ("pcie_width", 16.0),
        ("nvlinks", 5.0),
        ("processes", 2.0),
        ("memory_own", f64::from(7 << 20)),
    ] {
        assert_eq!(first.get(name), Some(&Reading::Value(value)), "{name}");
    }
    assert_eq!(first.get("pcie_replays"), Some(&Reading::Unavailable("the driver is too old for it".to_owned())));
    assert!(!first.contains_key("power_mean") && !first.contains_key("sm_active"), "these need two looks");
    // 40 J in a tenth of a second, and what the units counted meanwhile.
    let second = look(&mut gpu, 100_000_000);
    assert_eq!(second.get("power_mean"), Some(&Reading::Value(400.0)));
    assert_eq!(second.get("memory_bandwidth"), Some(&Reading::Value(63.5)));
    assert_eq!(second.get("sm_occupancy"), Some(&Reading::Value(3.0)));
    assert_eq!(second.get("pcie_unit_sent"), Some(&Reading::Value(20.0 * MEBI)));
    assert_eq!(second.get("fp32_active"), Some(&Reading::Unavailable(NOT_SUPPORTED.to_owned())));
    let no_number = Reading::Unavailable("the value is no number".to_owned());
    assert_eq!(second.get("nvlink_received"), Some(&no_number));
    assert!(!second.contains_key("temperature") && second.contains_key("utilisation"), "slow ones are not asked again");
    let mut at = 100_000_000;
    let asked = (2..=10).filter(|_| {
        at += 100_000_000;
        look(&mut gpu, at).contains_key("temperature")
    });
    assert_eq!(asked.collect::<Vec<_>>(), [10]);
}

#[test]
fn what_a_device_does_not_tell_is_absent_and_never_nothing() {
    for (flag, reason) in [
        ("-DDEVICE_STATUS=3", NOT_SUPPORTED),
        ("-DDEVICE_STATUS=15", "the device is lost: it fell off the bus, or its driver failed"),
        ("-DDEVICE_STATUS=4", "the driver denies it to this user"),
        ("-DDEVICE_STATUS=999", "NVML: an internal driver error occurred"),
    ] {
        let (_directory, nvml) = built(&[flag]);
        let mut gpu = only(nvml);
        for (number, at) in [(0, 0), (1, 100_000_000)] {
            let seen = look(&mut gpu, at);
            assert!(seen.len() > 15, "{seen:?}");
            for (name, value) in seen.iter().filter(|(name, _)| **name != "pcie_replays") {
                assert_eq!(*value, Reading::Unavailable(reason.to_owned()), "{flag} {name}, look {number}");
            }
        }
    }
    // A device before Hopper has everything but the counters of its units.
    let (_directory, nvml) = built(&[]);
    let mut gpu = only(nvml);
    look(&mut gpu, 0);
    let seen = look(&mut gpu, 100_000_000);
    assert_eq!(seen.get("memory_bandwidth"), Some(&Reading::Unavailable(NOT_SUPPORTED.to_owned())));
    assert_eq!(seen.get("power"), Some(&Reading::Value(312.5)));
}

#[test]
fn samples_become_counters_of_the_device_beside_the_reasons_for_those_that_are_absent() {
    let (_directory, nvml) = built(&["-DHOPPER"]);
    let gpu = named(nvml, "NVIDIA Pretended 1", None).unwrap();
    assert!(named(nvml, "NVIDIA H200", None).is_none());
    let sampler = Sampler::start(RunClock::start(), Duration::from_millis(2), vec![Box::new(gpu)]).unwrap();
    std::thread::sleep(Duration::from_millis(40));
    let mut builder = TraceBuilder::new("run", "strato");
    let process = builder.process(0);
    sampler.finish().unwrap().write(process, &mut builder);
    let trace = builder.finish();
    let counter = |name: &str| trace.counters.iter().find(|counter| trace.strings.get(counter.name) == name).unwrap();
    let power = counter("power");
    assert_eq!((power.device, power.unit.as_str()), (Some(0), "W"));
    assert!(power.value.len() >= 2 && power.value.iter().all(|value| *value == 312.5));
    let stat =
        |name: &str| trace.stats.iter().find(|stat| stat.name == format!("telemetry.{name}_unavailable")).unwrap();
    assert_eq!(stat("fp32_active").example.as_deref(), Some(NOT_SUPPORTED));
    assert_eq!(stat("pcie_replays").example.as_deref(), Some("the driver is too old for it"));
}

#[test]
fn of_several_devices_of_one_name_none_is_taken_for_the_runs() {
    let (_directory, nvml) = built(&["-DDEVICES=2"]);
    let seen = look(&mut named(nvml, "NVIDIA Pretended 1", None).unwrap(), 0);
    let reason = "2 devices are named NVIDIA Pretended 1, and the run does not say which is its own";
    assert_eq!(seen, BTreeMap::from([("utilisation", Reading::Unavailable(reason.to_owned()))]));
}

#[test]
fn without_a_library_the_reason_is_what_the_system_said() {
    let error = library_at(OsStr::new("/nowhere/libnvidia-ml.so.1")).unwrap_err();
    assert!(error.starts_with("no NVML: ") && error.contains("/nowhere/libnvidia-ml.so.1"), "{error}");
}

#[test]
fn two_devices_of_one_name_are_told_apart_by_their_places_on_the_bus() {
    let (_directory, nvml) = built(&["-DDEVICES=2", "-DBUS"]);
    let of = |bus| named(nvml, "NVIDIA Pretended 1", bus).unwrap();
    // As CUDA writes it: a shorter domain, and letters of either case.
    for (bus, number) in [("0000:c1:00.0", 0), ("0000:C2:00.0", 1)] {
        let mut gpu = of(Some(bus));
        assert_eq!((gpu.number, gpu.unclear.clone()), (number, None));
        assert!(matches!(look(&mut gpu, 0)["power"], Reading::Value(_)));
    }
    for unknown in [None, Some("0000:D1:00.0"), Some("nonsense")] {
        let unclear = of(unknown).unclear.unwrap_or_default();
        assert!(unclear.contains("2 devices are named NVIDIA Pretended 1"), "{unclear}");
    }
    assert_eq!(place("00000001:0a:1f.7"), Some([1, 10, 31]));
    assert_eq!([place(""), place("1:2"), place("x:1:2.0")], [None; 3]);
}
