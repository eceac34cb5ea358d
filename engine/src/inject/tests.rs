#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::{
    Synthetic,
    hook::HostHook,
    preset,
    record::{Kind, Log},
    run::{Engine, Mode, Sampling},
};

fn options() -> RunOptions {
    RunOptions { prompt: 5, steps: 6, threads: 2, ..RunOptions::default() }
}

fn injected(text: &str) -> RunOptions {
    // Only operators that are replayed can be launched one by one instead.
    let mode = if text == "no_graph" { Mode::Graph } else { Mode::Eager };
    let mut options = RunOptions { mode, ..options() };
    inject(text, &mut options).unwrap();
    options
}

/// Tokens of a run, its log, and the logits after its last step.
fn run(options: RunOptions) -> (Vec<Vec<u32>>, Log, Vec<f32>) {
    let mut log = Log::with_capacity(1 << 14, options.threads);
    let mut engine = Engine::new(preset("tiny").unwrap(), &mut Synthetic, options, &mut log).unwrap();
    let mut all = Vec::new();
    engine
        .run(&mut log, |step| {
            all.push(step.tokens.clone());
            true
        })
        .unwrap();
    let logits = engine.logits().unwrap().into_owned();
    (all, log, logits)
}

fn count(log: &Log, which: impl Fn(Kind) -> bool) -> usize {
    log.records().iter().filter(|record| which(record.kind)).count()
}

#[test]
fn names_and_arguments_are_unique_and_what_is_not_understood_is_refused() {
    for injection in REGISTRY {
        assert_eq!(REGISTRY.iter().filter(|other| other.name == injection.name).count(), 1);
        assert_eq!(injected(injection.name).faults.asked, [injection.name]);
    }
    for (text, words) in [
        ("warp_drive", "host_delay, extra_sync"),
        ("host_delay:us=many", "'us=many'"),
        ("host_delay:op=warp", "'op=warp'"),
        ("host_delay:ms=1", "'ms=1'"),
        ("no_graph:now", "arguments are none"),
        ("slow_rank:factor=0.5", "slower by 0.5"),
        ("padding:to=0", "cannot be padded"),
    ] {
        let refused = inject(text, &mut options()).unwrap_err().to_string();
        assert!(refused.contains(words), "{text}: {refused}");
    }
}

#[test]
fn bottlenecks_change_no_token() {
    let (expected, ..) = run(options());
    for injection in REGISTRY.iter().filter(|i| !numeric(i.name) && i.name != "low_precision_off") {
        // What depends on the mode is whether the host launches every operator.
        let modes = match injection.name {
            "cpu_fallback" => &[Mode::Eager, Mode::Graph][..],
            "no_graph" => &[Mode::Graph],
            _ => &[Mode::Eager],
        };
        for mode in modes.iter().copied() {
            let mut options = RunOptions { mode, ..options() };
            inject(injection.name, &mut options).unwrap();
            assert_eq!(run(options).0, expected, "{} {mode:?}", injection.name);
        }
    }
    assert_eq!(run(RunOptions { sampling: Sampling::Host, ..options() }).0, expected);
    let composite = RunOptions { level: crate::program::Level::Composite, ..options() };
    assert_eq!(run(composite).0, expected);
}

fn numeric(name: &str) -> bool {
    ["rope_base_wrong", "bf16_accum", "stale_kv", "nan_at"].contains(&name)
}

#[test]
fn wrong_numbers_are_wrong() {
    let (_, _, right) = run(options());
    for injection in REGISTRY.iter().filter(|i| numeric(i.name)) {
        let (_, _, logits) = run(injected(injection.name));
        let worst = right.iter().zip(&logits).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let is_nan = logits.iter().any(|logit| logit.is_nan());
        assert_eq!(is_nan, injection.name == "nan_at", "{}", injection.name);
        assert!(is_nan || worst > 1e-5, "{}: {worst}", injection.name);
    }
}

#[test]
fn memory_that_no_launch_can_have_is_refused_before_the_run() {
    // The largest that the option can ask for is 4 TiB; a number beyond the address space cannot be had on any machine.
    let faults = HostFaults { alloc: Some(usize::MAX), ..HostFaults::default() };
    assert!(HostHook::new(&faults).err().unwrap().to_string().contains("no memory"));
    assert!(HostHook::new(&HostFaults { alloc: Some(4096), ..faults }).unwrap().is_some());
}

#[test]
fn the_host_does_what_was_asked_for_and_says_so() {
    let ops = 2 * 15 + 5;
    let (_, log, _) = run(injected("extra_sync"));
    assert_eq!(count(&log, |kind| kind == Kind::Sync), 7 * ops);
    let (_, log, _) = run(injected("extra_sync:every=layer"));
    assert_eq!(count(&log, |kind| kind == Kind::Sync), 7 * 4, "embedding, two layers, the rest");
    let (_, log, _) = run(injected("alloc_per_op:kib=64"));
    assert_eq!(count(&log, |kind| matches!(kind, Kind::Alloc | Kind::Free)), 2 * 7 * ops);
    let (_, log, _) = run(injected("blocking_copy:mib=1"));
    assert_eq!(count(&log, |kind| kind == Kind::Copy(1 << 20)), 7);
    let (_, log, _) = run(injected("cpu_fallback:op=rope"));
    assert_eq!(count(&log, |kind| matches!(kind, Kind::Fallback(_))), 7 * 2);
    assert_eq!(count(&log, |kind| matches!(kind, Kind::Op(_))), 7 * (ops - 2));
}

#[test]
fn delays_and_slow_ranks_take_the_time_they_should() {
    let step = |log: &Log| {
        let mut steps: Vec<i64> = log
            .records()
            .iter()
            .filter(|r| r.kind == Kind::Step && r.step > 0)
            .map(|r| r.host.end - r.host.start)
            .collect();
        steps.sort_unstable();
        steps[steps.len() / 2]
    };
    let (_, log, _) = run(injected("host_delay:us=300"));
    assert!(step(&log) >= 35 * 300_000, "{}", step(&log));
    let busy = |log: &Log| -> i64 {
        let ops = log.records().iter().filter(|r| r.step > 0 && matches!(r.kind, Kind::Op(_)));
        let mut each: Vec<i64> = ops.map(|r| log.shares(r)[0]).map(|share| share.end - share.start).collect();
        each.sort_unstable();
        each[each.len() / 2..each.len() * 3 / 4].iter().sum()
    };
    let (usual, slow) = (busy(&run(options()).1), busy(&run(injected("slow_rank:rank=0,factor=50")).1));
    assert!(slow > 10 * usual, "{slow} for {usual}");
}

#[test]
fn l8_a_stall_meets_the_first_decode_step_whatever_its_period() {
    let (_, log, _) = run(injected("gil_like_stall:period_ms=3600000,hold_ms=200"));
    let steps: Vec<_> =
        log.records().iter().filter(|r| r.kind == Kind::Step).map(|r| (r.step, r.host.end - r.host.start)).collect();
    let longest = steps.iter().max_by_key(|(_, time)| *time).unwrap();
    assert!(longest.0 == 1 && longest.1 > 150_000_000, "{steps:?}");
}

#[test]
fn what_changes_nothing_is_refused() {
    let config = crate::preset("tiny").unwrap();
    let refused = |text: &str, ranks: usize| {
        let mut asked = RunOptions { steps: 3, ..options() };
        inject(text, &mut asked)
            .and_then(|()| asked.check_injections(&config, ranks))
            .err()
            .map(|error| error.to_string())
    };
    for (text, ranks, why) in [
        ("nan_at:layer=99", 1, "2 layers"),
        ("stale_kv:layer=2", 1, "2 layers"),
        ("slow_rank", 1, "0 to 0"),
        ("slow_rank:rank=2", 2, "0 to 1"),
        ("slow_rank:factor=1", 2, "no slower"),
        ("slow_rank:factor=1.0000001", 2, "no slower"),
        ("gil_like_stall:hold_ms=100000", 1, "at most 1000"),
        ("rope_base_wrong:factor=1", 1, "as it is"),
        ("no_graph", 1, "--mode graph"),
        ("padding:to=1", 1, "cannot be padded"),
        ("host_delay:us=0", 1, "amount of 0"),
        ("alloc_per_op:kib=0", 1, "amount of 0"),
        ("blocking_copy:mib=0", 1, "amount of 0"),
        ("gil_like_stall:hold_ms=0", 1, "amount of 0"),
        ("bandwidth_thief:threads=0", 1, "amount of 0"),
        ("cpu_fallback:op=qkv_proj", 1, "no operator qkv_proj"),
        ("host_delay:op=qkv_proj", 1, "no operator qkv_proj"),
        ("layout_cast:op=qkv_proj", 1, "none of those operators"),
    ] {
        let said = refused(text, ranks).unwrap_or_else(|| panic!("{text} is taken"));
        assert!(said.contains(why), "{text}: {said}");
    }
    let of = |text: &str, options: RunOptions| {
        let mut asked = options;
        let checked = inject(text, &mut asked).and_then(|()| asked.check_injections(&config, 1));
        checked.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let graph = || RunOptions { steps: 3, mode: Mode::Graph, ..options() };
    assert!(of("extra_sync", graph()).contains("replayed whole"));
    assert!(of("host_delay:op=rope", graph()).contains("rope is not launched"));
    assert_eq!((of("host_delay", graph()), of("alloc_per_op", graph())), (String::new(), String::new()));
    let one = || RunOptions { prompt: 1, steps: 0, ids: Vec::new(), ..options() };
    assert!(of("rope_base_wrong", one()).contains("position 0"));
    assert!(of("gil_like_stall", one()).contains("no decode steps"));
    for (text, ranks) in [
        ("nan_at:layer=1", 1),
        ("stale_kv", 1),
        ("slow_rank", 2),
        ("slow_rank:rank=0", 1),
        ("host_delay:us=0,jitter_us=5", 1),
        ("layout_cast", 1),
        ("cpu_fallback", 1),
        ("padding", 1),
        ("extra_sync", 1),
        ("bandwidth_thief", 1),
    ] {
        assert_eq!(refused(text, ranks), None, "{text}");
    }
}
