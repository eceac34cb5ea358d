//! What holds of every probe on every machine, however fast it is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

/// Enough for three repeats of everything and no more.
fn hasty() -> Setup {
    Setup { budget: Duration::from_millis(1), threads: 2, ..Setup::default() }
}

#[test]
fn every_probe_has_rows_with_units_settings_of_their_own_and_positive_values() {
    let mut told = Vec::new();
    let run = run(&hasty(), |_| true, |probe, rows| told.push((probe.name, rows.len())));
    assert_eq!(told.len(), REGISTRY.len());
    assert!(told.iter().all(|(_, rows)| *rows > 0), "{told:?}");
    let mut seen = std::collections::BTreeSet::new();
    for row in &run.rows {
        let what = format!("{} {} {}", row.probe, row.metric, row.setting);
        assert!(seen.insert(what.clone()), "{what} twice");
        assert!(REGISTRY.iter().any(|probe| probe.name == row.probe), "{what}");
        let Reading::Value(s) = &row.value else { panic!("{what}: {:?}", row.value) };
        // A difference of two runs may come out as nothing on a busy machine.
        let difference = matches!((&*row.probe, &*row.metric), ("replay", _) | ("sync", "time") | ("launch", "gap"));
        assert!(s.median > 0.0 || difference, "{what}: {s:?}");
        assert!(s.min >= 0.0 && s.min <= s.median && s.median <= s.max && s.max.is_finite(), "{what}: {s:?}");
        assert!(s.mad >= 0.0 && s.repeats >= 3, "{what}: {s:?}");
    }
}

#[test]
fn the_provenance_says_when_with_what_and_under_what_load() {
    let run = run(&hasty(), |probe| probe.name == "timer", |_, _| ());
    assert_eq!((run.fact("threads"), run.fact("isa")), (Some("2"), Some(hasty().isa.name())));
    assert!(run.fact("taken_unix_ns").unwrap().parse::<i64>().unwrap() > 1_700_000_000_000_000_000);
    for key in ["seconds", "load", "others", "steal", "noise"] {
        assert!(run.provenance.iter().any(|(known, _)| known == key), "{key}");
    }
    assert!(run.rows.iter().all(|row| row.probe == "timer"));
}

/// Work that is twice as much takes longer by far more than any clock's error: what is timed is really done.
#[test]
fn work_that_grows_takes_time_that_grows() {
    let product = |rows| Product { rows, outputs: 512, inputs: 512, dtype: Dtype::F32 };
    let least = |rows| product::time(&hasty(), &product(rows), 1, Duration::from_millis(30)).unwrap().min;
    // Least times of several tries: others may have had the processors all through one.
    let grows = |times: &dyn Fn() -> (f64, f64), factor: f64| {
        let (mut few, mut many) = (f64::MAX, f64::MAX);
        (0..10).any(|_| {
            let (less, more) = times();
            (few, many) = (few.min(less), many.min(more));
            many > factor * few
        })
    };
    assert!(grows(&|| (least(8), least(512)), 4.0));
    let ends = || {
        let run = run(&hasty(), |probe| probe.name == "collective", |_, _| ());
        let least: Vec<f64> = run.rows.iter().map(|row| row.statistic().unwrap().min).collect();
        (least[0], least[least.len() - 1])
    };
    assert!(grows(&ends, 1.0));
}

#[test]
fn one_core_says_why_it_has_nobody_to_wait_for() {
    let alone = Setup { threads: 1, ..hasty() };
    let run = run(&alone, |probe| ["sync", "collective"].contains(&probe.name), |_, _| ());
    assert!(run.rows.iter().all(|row| matches!(&row.value, Reading::Unavailable(why) if !why.is_empty())));
}

#[test]
fn products_of_a_run_take_the_place_of_the_usual_ones() {
    let own = Product { rows: 3, outputs: 33, inputs: 10, dtype: Dtype::Q8 };
    let none = Product { inputs: 0, ..own };
    let run = run(&Setup { products: vec![own, none], ..hasty() }, |probe| probe.name == "product", |_, _| ());
    let kernel = hasty().isa.name();
    assert_eq!(run.rows[0].setting.to_string(), format!("threads=2 dtype=q8 m=3 n=33 k=10 kernel={kernel}"));
    assert!(run.rows[0].statistic().is_some() && run.rows[1].statistic().is_none());
    assert_eq!(run.rows.len(), 2);
}

#[test]
#[ignore = "needs an OpenCL device"]
fn an_opencl_device_is_measured_by_the_probes_of_the_engine() {
    let target = Target::OpenCl(engine::opencl::OpenClOptions::default());
    target.check().unwrap();
    let run = run(
        &Setup { target: target.clone(), ..hasty() },
        |probe| ["launch", "copy", "timer", "allocation", "cast"].contains(&probe.name),
        |_, _| (),
    );
    assert!(run.rows.iter().all(|row| row.probe != "timer"), "the clock of the host is none of the device");
    assert_eq!(run.rows.iter().filter(|row| row.probe == "copy").count(), 8);
    assert_eq!(run.rows.iter().filter(|row| row.probe == "launch").count(), 4);
    assert_eq!(run.rows.iter().filter(|row| row.probe == "allocation").count(), 4);
    assert_eq!(run.rows.iter().filter(|row| row.probe == "cast").count(), 4, "three types, and a layout");
    for row in &run.rows {
        let what = format!("{} {} {}", row.probe, row.metric, row.setting);
        assert!(row.statistic().is_some_and(|s| s.median > 0.0), "{what}: {:?}", row.value);
        assert_eq!((row.setting.get("backend"), row.setting.get(Setting::THREADS)), (Some("opencl"), None), "{what}");
    }
    assert_eq!((run.fact("backend"), run.fact("threads")), (Some("opencl"), None));
}

/// The simulated NPU, which Cargo builds beside the tests of its own crate.
fn simulated_npu() -> Option<Target> {
    let directory = std::env::current_exe().ok()?.parent()?.to_owned();
    let name = format!("{}sim_npu{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let found = [directory.join(&name), directory.parent()?.join(&name)].into_iter().find(|path| path.is_file())?;
    Some(Target::Ascend(engine::ascend::AscendOptions { library: Some(found), ..Default::default() }))
}

/// Through the same code as any other device; products take this simulator too long.
#[test]
fn a_simulated_npu_is_measured_by_the_probes_of_the_engine() {
    let Some(target) = simulated_npu() else {
        panic!("the simulated NPU is not built: it is a dependency of the tests")
    };
    let names = ["launch", "sync", "replay", "copy", "collective", "dispatch", "allocation", "cast"];
    let run = run(&Setup { target, ..hasty() }, |probe| names.contains(&probe.name), |_, _| ());
    for name in names {
        assert!(run.rows.iter().any(|row| row.probe == name), "{name}");
    }
    for row in &run.rows {
        let what = format!("{} {} {}", row.probe, row.metric, row.setting);
        assert_eq!((row.setting.get("backend"), row.setting.get(Setting::THREADS)), (Some("ascend"), None), "{what}");
        assert!(row.statistic().is_some(), "{what}: {:?}", row.value);
    }
    let ranks = run.rows.iter().filter(|row| row.setting.get("ranks") == Some("2")).count();
    assert_eq!(ranks, 5);
}
