//! A simulated management library, built for the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{collections::BTreeMap, process::Command};

use super::*;

/// Builds the library; the directory holds it as long as it is there.
fn built(flags: &[&str]) -> (tempfile::TempDir, OsString) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("libdcmi.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_dcmi.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-w", "-o"]).arg(&file).arg(&source).args(flags);
    assert!(compiler.status().expect("a C compiler").success());
    (directory, file.into_os_string())
}

fn npu(file: &OsString, number: i32, visible: Option<&str>) -> Npu {
    Npu(Npu::find(number, &|name| match name {
        "STRATO_DCMI" => Some(file.clone()),
        "ASCEND_RT_VISIBLE_DEVICES" => visible.map(OsString::from),
        _ => None,
    }))
}

/// What a look gives, by the counter's name.
fn look(npu: &mut Npu) -> BTreeMap<&'static str, Reading<f64>> {
    let mut seen = BTreeMap::new();
    npu.look(0, &mut |counter, value| {
        assert!(seen.insert(counter.name, value).is_none(), "{} is told twice", counter.name);
    });
    seen
}

#[test]
fn every_quantity_is_told_in_its_unit_and_what_is_not_supported_has_its_reason() {
    let (_directory, file) = built(&[]);
    let seen = look(&mut npu(&file, 3, None));
    for (name, value) in [
        ("utilisation", 79.0),
        ("memory_utilisation", 51.0),
        ("memory_bandwidth", 64.0),
        ("memory_used", 3.0 * 1024.0 * MEBI),
        ("memory_total", 64.0 * 1024.0 * MEBI),
        ("memory_temperature", 47.0),
        ("power", 95.3),
        ("temperature", 44.0),
        ("clock", 1500.0),
        ("clock_most", 1850.0),
        ("health", 1.0),
        ("error_codes", 2.0),
    ] {
        assert_eq!(seen.get(name), Some(&Reading::Value(value)), "{name}");
    }
    assert_eq!(seen["vector_active"], Reading::Unavailable("the device does not support it".to_owned()));
    assert_eq!(seen.len(), 13);
}

#[test]
fn the_device_is_the_one_that_the_process_sees_under_its_number() {
    let (_directory, file) = built(&[]);
    let utilisation = |number, visible| look(&mut npu(&file, number, visible))["utilisation"].clone();
    assert_eq!(utilisation(0, None), Reading::Value(76.0));
    assert_eq!(utilisation(0, Some("3,1")), Reading::Value(79.0));
    assert_eq!(utilisation(1, Some("3, 1")), Reading::Value(77.0));
    for (number, visible, why) in [(9, None, "knows no device 9"), (1, Some("0"), "VISIBLE"), (-1, None, "VISIBLE")] {
        assert!(npu(&file, number, visible).absent().unwrap().contains(why));
    }
}

#[test]
fn an_older_library_counts_its_cards_and_says_what_it_lacks() {
    let (_directory, file) = built(&["-DOLD"]);
    let seen = look(&mut npu(&file, 2, None));
    assert_eq!(seen["utilisation"], Reading::Value(78.0));
    assert_eq!(seen["error_codes"], Reading::Unavailable("the driver is too old for it".to_owned()));
    assert!(npu(&file, 4, None).absent().unwrap().contains("knows no device 4"));
}

#[test]
fn a_library_that_is_missing_or_does_not_begin_is_unavailable_with_the_reason() {
    let (_directory, file) = built(&["-DBROKEN"]);
    assert!(npu(&file, 0, None).absent().unwrap().contains("status -8005"));
    let mut none = npu(&OsString::from("/nonexistent/libdcmi.so"), 0, None);
    let seen = look(&mut none);
    assert!(matches!(&seen["utilisation"], Reading::Unavailable(why) if why.contains("/nonexistent/libdcmi.so")));
    let simulated = |name: &str| (name == "STRATO_ASCEND_LIB").then(|| OsString::from("/x/libsim_npu.so"));
    assert!(Npu::find(0, &simulated).unwrap_err().contains("stands for CANN"));
}
