//! What must hold of every comparison, whatever is compared: it adds up, it changes its sign with its sides, a capture does
//! not differ from itself, and what means nothing moves nothing. What was made to differ is where it was made to.

use crate::common;
use std::collections::BTreeMap;

use crate::common::{Event, analyze, edited};
use diagnosis::{
    analysis::{Layer, Selection},
    compare::{
        Difference,
        align::{Move, Part, Slot, Way},
        waterfall::{Cause, Row},
    },
};
use model::{Category, Ns, Trace, TrackKind};
use simulator::{Config, Fault, FaultKind, kernel::Vendor, simulate, simulate_job};

/// How far sums of means may be apart that are the same before they are rounded to the nanosecond, each at most by one.
const ROUNDED: Ns = 8;

/// A simulated run, read back through the parser.
fn run(config: &Config) -> Trace {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.json");
    simulate(&Config { graph_level_trace: false, ..config.clone() }).write_kineto(&path).unwrap();
    common::read(&path)
}

/// A simulated job of all its ranks, read as one capture.
fn job(config: &Config) -> Trace {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("job.sqlite");
    simulate_job(&Config { graph_level_trace: false, vendor: Vendor::Cuda, ..config.clone() })
        .write_nsys(&path)
        .unwrap();
    common::read(&path)
}

fn difference(a: &Trace, b: &Trace) -> Difference {
    Difference::of((a, &analyze(a)), (b, &analyze(b)), false).expect("steps of one stage")
}

/// Differences by slot, bucket and cause, free of order.
fn terms(d: &Difference) -> BTreeMap<(String, String, bool, Cause), Ns> {
    let rows = d.waterfall.rows.iter();
    rows.flat_map(|row| {
        let slot = d.alignment.slots[row.slot as usize].key();
        row.causes.iter().map(move |(cause, ns)| ((slot.clone(), row.bucket.clone(), row.waited, *cause), *ns))
    })
    .collect()
}

/// What must hold of any difference.
fn adds_up(name: &str, d: &Difference, analyses: [&Trace; 2]) {
    let w = &d.waterfall;
    let sum = |pick: fn(&Row) -> Ns| w.rows.iter().map(pick).sum::<Ns>();
    assert_eq!((sum(|r| r.a.ns), sum(|r| r.b.ns)), (w.from, w.to), "{name}");
    assert_eq!(terms(d).values().sum::<Ns>(), w.to - w.from, "{name}: terms");
    for n in [0, 1] {
        assert_eq!(w.parts.iter().map(|(.., sides)| sides[n]).sum::<Ns>(), [w.from, w.to][n], "{name}: parts");
        assert_eq!(w.ladder().iter().map(|(_, sides)| sides[n]).sum::<Ns>(), [w.from, w.to][n], "{name}: ladder");
        // The mean of the windows, counted from the steps alone.
        let analysis = analyze(analyses[n]);
        let rank = analysis.ranks.iter().find(|rank| rank.rank == d.sides[n].rank).unwrap();
        let class = rank.classes.iter().position(|class| class.key == d.sides[n].class).unwrap();
        let counted = rank.steps.iter().filter(|s| s.class == class && s.selection == Selection::Steady);
        let windows: Vec<Ns> = counted.map(|s| s.window.len()).collect();
        assert_eq!([w.from, w.to][n], windows.iter().sum::<Ns>() / windows.len() as Ns, "{name}: mean of {n}");
    }
}

/// Healthy runs of every kind: vendors, graphs, streams, collectives.
fn runs() -> Vec<(String, Trace)> {
    let single = (0..10).map(|seed| (format!("seed {seed}"), run(&Config::draw(seed))));
    let jobs = (0..3).map(|seed| (format!("job {seed}"), job(&Config { steps: 12, ..Config::draw_job(seed, 2) })));
    single.chain(jobs).collect()
}

#[test]
fn a_capture_does_not_differ_from_itself() {
    for (name, trace) in runs() {
        let d = difference(&trace, &trace);
        adds_up(&name, &d, [&trace, &trace]);
        assert!(d.waterfall.from > 0, "{name}");
        assert_eq!(terms(&d), BTreeMap::new(), "{name}");
        assert!(d.signatures.path.iter().all(|t| t.same != Some(false)), "{name}: {:?}", d.signatures.path);
    }
}

#[test]
fn the_difference_changes_its_sign_with_the_sides() {
    let runs = runs();
    for pair in runs.windows(2) {
        let [(first, a), (second, b)] = pair else { unreachable!() };
        let (a_of, b_of) = (analyze(a), analyze(b));
        let name = format!("{first} against {second}");
        let there = Difference::of((a, &a_of), (b, &b_of), false);
        let back = Difference::of((b, &b_of), (a, &a_of), false);
        assert_eq!(there.is_some(), back.is_some(), "{name}");
        let (Some(there), Some(back)) = (there, back) else { continue };
        adds_up(&name, &there, [a, b]);
        let negated: BTreeMap<_, Ns> = terms(&there).into_iter().map(|(key, ns)| (key, -ns)).collect();
        assert_eq!(negated, terms(&back), "{name}");
        assert_eq!((there.waterfall.from, there.waterfall.to), (back.waterfall.to, back.waterfall.from), "{name}");
        assert_eq!(there.alignment.slots.len(), back.alignment.slots.len(), "{name}");
    }
}

#[test]
fn the_names_of_another_vendor_move_nothing() {
    for seed in [0, 3, 4] {
        let config = Config::draw(seed);
        let of = |vendor| run(&Config { vendor, ..config.clone() });
        let (cuda, rocm) = (of(Vendor::Cuda), of(Vendor::Rocm));
        let d = difference(&cuda, &rocm);
        adds_up("vendors", &d, [&cuda, &rocm]);
        let coverage = d.waterfall.coverage.map(|c| (c.mapped, c.shared));
        assert_eq!(coverage[0], coverage[1], "seed {seed}");
        // Host calls of two vendors differ in what they are known to be, the device's work does not.
        assert_eq!(d.waterfall.delta(), 0);
        for (layer, [a, b]) in d.waterfall.ladder() {
            assert!((a - b).abs() <= ROUNDED, "seed {seed}: {layer:?} {a} {b}");
        }
        let device: Ns = d
            .waterfall
            .rows
            .iter()
            .filter(|r| r.layer == Layer::Operator)
            .map(|r| (r.b.ns - r.a.ns).abs())
            .max()
            .unwrap();
        assert!(device <= 1, "seed {seed}");
    }
}

#[test]
fn a_kernel_in_two_halves_stays_in_its_slot() {
    let whole = run(&Config { jitter_permille: 0, ..Config::draw(3) });
    let analysis = analyze(&whole);
    let gemm =
        |name: &str| analysis.ops.iter().any(|(id, op)| whole.strings.get(*id) == name && op.op.name() == "gemm");
    let halves = edited(&whole, |e| {
        if e.track.kind != TrackKind::DeviceQueue || e.category != Category::Kernel || !gemm(&e.name) {
            return vec![e];
        }
        let first = e.dur / 2;
        let second = Event { start: e.start + first, dur: e.dur - first, ..e.clone() };
        vec![Event { dur: first, ..e }, second]
    });
    let d = difference(&whole, &halves);
    assert_eq!(d.alignment.way, Way::Layers);
    assert_eq!((d.waterfall.delta(), terms(&d)), (0, BTreeMap::new()));
}

#[test]
fn less_evidence_moves_no_time_to_another_layer_of_the_device() {
    for seed in 0..4 {
        let full = run(&Config::draw(seed));
        let poor = edited(&full, |e| if e.track.kind == TrackKind::HostThread { vec![] } else { vec![e] });
        let Some(d) = Difference::of((&full, &analyze(&full)), (&poor, &analyze(&poor)), false) else { continue };
        if d.sides[0].steps != d.sides[1].steps || d.waterfall.delta() != 0 {
            continue;
        }
        for (layer, [a, b]) in d.waterfall.ladder() {
            let device = matches!(layer, Layer::Operator | Layer::Communication);
            assert!(!device || (a - b).abs() <= ROUNDED, "seed {seed}: {layer:?} {a} {b}");
        }
        assert!(!d.sides[1].has_host);
    }
}

/// Share of the difference that lies in the rows that `own` takes.
fn share(d: &Difference, own: impl Fn(&Row, &Slot) -> bool) -> f64 {
    let rows = d.waterfall.rows.iter().filter(|row| own(row, &d.alignment.slots[row.slot as usize]));
    rows.map(Row::delta).sum::<Ns>() as f64 / d.waterfall.delta() as f64
}

#[test]
fn what_was_made_to_differ_is_where_it_was_made_to() {
    type Own = fn(&Row, &Slot) -> bool;
    let cases: [(FaultKind, Own); 6] = [
        (FaultKind::SlowGemm, |row, _| row.bucket == "compute.gemm"),
        (FaultKind::FullSort, |row, slot| row.layer == Layer::Operator && slot.part == Part::After),
        // Kernels that are not fused also have to be launched, one by one.
        (FaultKind::Unfused, |_, slot| slot.part == Part::Layer && slot.by != Some(Move::Match)),
        (FaultKind::Scheduling, |row, slot| row.layer == Layer::Runtime && slot.part != Part::Layer),
        (FaultKind::NodeGap, |row, slot| row.bucket == "rt.graph_internal" && slot.part == Part::Layer),
        (FaultKind::LayerSync, |row, slot| row.layer == Layer::Runtime && slot.part == Part::Layer),
    ];
    let (mut all, mut wrong) = (0, Vec::new());
    for (kind, own) in cases {
        let mut judged = 0;
        for seed in 0..4 {
            let config = Config::draw_with(seed, &[Fault { kind, magnitude_permille: 1000 }]);
            let d = difference(&run(&config.twin()), &run(&config));
            let share = share(&d, own);
            println!("{kind:?} seed {seed}: {} ns of {}, {share:.3}", d.waterfall.delta(), d.waterfall.from);
            if d.waterfall.delta() * 50 > d.waterfall.from {
                judged += 1;
                if share < 0.9 {
                    wrong.push(format!("{kind:?} seed {seed}: {share:.3}"));
                }
            }
        }
        assert!(judged > 0, "{kind:?}");
        all += judged;
    }
    // A host that was already late is later everywhere: a single run may spread.
    assert!(wrong.len() * 10 <= all, "{wrong:?} of {all}");
}

#[test]
fn a_late_rank_is_the_cause_of_the_wait_of_the_others() {
    let config = Config { steps: 16, ..Config::draw_job(1, 2) };
    let fault = Fault { kind: FaultKind::ThrottledRank, magnitude_permille: 1000 };
    let (healthy, faulty) = (job(&config), job(&Config { faults: vec![fault], ..config.clone() }));
    let d = difference(&healthy, &faulty);
    adds_up("throttled", &d, [&healthy, &faulty]);
    let waited = share(&d, |row, _| row.waited && row.layer == Layer::Operator);
    let of_operators = share(&d, |row, _| row.layer == Layer::Operator);
    let unassigned = share(&d, |row, _| row.bucket == "comm.wait");
    println!(
        "{waited:.3} waited for operators, {of_operators:.3} in operators, {unassigned:.3} waited for nobody knows what"
    );
    assert!(of_operators > 0.8 && unassigned.abs() < 0.1);
}

/// Two models that no manifest names would be taken for launches of one run, and their mean for its time.
#[test]
fn runs_of_different_models_with_unknown_fields_are_no_launches_of_one_run() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, layers: i64, seed: u64| {
        let config = Config { layers, seed, steps: 16, graph_level_trace: false, ..Config::draw(1) };
        simulate(&config).write_kineto(&directory.path().join(name)).unwrap();
    };
    write("a.json", 12, 1);
    write("again.json", 12, 2);
    write("other.json", 24, 3);
    let diff = |side: &str| {
        let output = common::strato(&["diff", side, "a.json"], directory.path());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, told) = diff("again.json,other.json");
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("no launches of one run") && told.contains("they differ in model.layers"), "{told}");
    let (code, told) = diff("again.json,a.json");
    assert!(code != Some(2), "{told}");
}
