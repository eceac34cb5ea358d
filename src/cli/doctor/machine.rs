//! What this machine can do for the CPU engine: instruction sets, cores, caches, memory, huge pages, governor, NUMA. What
//! cannot be read has the reason in its place.

use std::{fs, path::Path, time::Duration};

use collectors::{host::Host, telemetry};
use engine::cpu::Isa;
use model::Reading;

use super::Finding;
use crate::cli::memory::kibibytes;

/// Flags of `/proc/cpuinfo` that kernels for matrix products ask for, from the least to the most.
const FLAGS: [&str; 14] = [
    "avx2",
    "fma",
    "f16c",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "amx_bf16",
    "asimd",
    "bf16",
];
/// Bytes of a gibibyte.
const GIB: f64 = (1u64 << 30) as f64;

fn read(path: impl AsRef<Path>) -> Result<String, String> {
    let path = path.as_ref();
    fs::read_to_string(path).map(|text| text.trim().to_owned()).map_err(|error| format!("{}: {error}", path.display()))
}

/// A state that was read, or why it was not.
fn of(state: Result<Finding, String>) -> Finding {
    state.unwrap_or_else(Finding::unknown)
}

fn reading<T>(reading: Reading<T>) -> Result<T, String> {
    match reading {
        Reading::Value(value) => Ok(value),
        Reading::Unavailable(reason) => Err(reason),
    }
}

/// Kernels of the engine that this processor runs, best first, and what it has beside them.
pub fn instructions() -> Finding {
    let kernels: Vec<&str> = Isa::available().into_iter().map(Isa::name).collect();
    let kernels = format!("engine kernels: {}", kernels.join(", "));
    let flags = read("/proc/cpuinfo").map(|text| flags(&text));
    let state = match flags {
        Ok(flags) if flags.is_empty() => format!("{kernels}; the processor names none of the wide instruction sets"),
        Ok(flags) => format!("{kernels}; processor: {}", flags.join(" ")),
        Err(reason) => format!("{kernels}; flags unreadable: {reason}"),
    };
    if Isa::available().first() == Some(&Isa::Portable) {
        return Finding::lacking(
            state,
            "only portable kernels: ceilings and runs are far below what wider vectors give",
        );
    }
    Finding::good(state)
}

fn flags(cpuinfo: &str) -> Vec<&'static str> {
    let line = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let line = line.into_iter().find(|(key, _)| matches!(key.trim(), "flags" | "Features"));
    let has: Vec<&str> = line.map(|(_, flags)| flags.split_whitespace().collect()).unwrap_or_default();
    FLAGS.into_iter().filter(|flag| has.contains(flag)).collect()
}

/// Cores that the process may use against those of the machine, and the share that its group may take.
pub fn cores() -> Finding {
    of(reading(Host::read().cores).map(|usable| {
        let online = read("/sys/devices/system/cpu/online")
            .map_or_else(|reason| format!("online cores unreadable: {reason}"), |range| format!("online: {range}"));
        let quota = read("/sys/fs/cgroup/cpu.max").map(|text| quota(&text));
        match quota {
            Ok(Some(cores)) if cores < f64::from(usable) => Finding::lacking(
                format!("{usable} usable, but a quota of {cores:.1} cores ({online})"),
                "the group's quota stalls threads: run with as many threads as the quota has cores",
            ),
            Ok(_) => Finding::good(format!("{usable} usable, no quota below that ({online})")),
            Err(reason) => Finding::good(format!("{usable} usable ({online}; quota unreadable: {reason})")),
        }
    }))
}

/// Cores that `cpu.max` of a control group allows: a quota and a period in µs, or `max`.
fn quota(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.trim().parse().ok()?);
    (period > 0.0).then(|| quota / period)
}

/// Main memory, what of it is free now, and the limit of the group.
pub fn memory() -> Finding {
    of(reading(Host::read().memory_bytes).map(|total| {
        let free = read("/proc/meminfo").and_then(|text| {
            kibibytes(&text, "MemAvailable").ok_or_else(|| "/proc/meminfo does not say it".to_owned())
        });
        let limit = match read("/sys/fs/cgroup/memory.max") {
            Ok(text) => text.parse::<f64>().map_or_else(
                |_| "no limit of the group".to_owned(),
                |bytes| format!("limit of the group {:.1} GiB", bytes / GIB),
            ),
            Err(reason) => format!("limit of the group unreadable: {reason}"),
        };
        let free = match free {
            Ok(kibibytes) => format!("{:.1} GiB available", kibibytes / (1 << 20) as f64),
            Err(reason) => format!("available part unreadable: {reason}"),
        };
        Finding::good(format!("{:.1} GiB, {free}, {limit}", total as f64 / GIB))
    }))
}

/// Counters that can be sampled beside a run, and why the others cannot.
pub fn counters() -> Finding {
    let mut told = std::collections::BTreeMap::new();
    for mut collector in telemetry::collectors() {
        collector.look(0, &mut |counter, value| drop(told.insert(counter.name, value)));
        // What is a rate needs two looks, and the kernel's clock ticks every ten milliseconds.
        std::thread::sleep(Duration::from_millis(25));
        collector.look(25_000_000, &mut |counter, value| drop(told.insert(counter.name, value)));
    }
    let read = told.iter().filter(|(_, value)| value.value().is_some()).map(|(name, _)| *name).collect::<Vec<_>>();
    let lacking: Vec<String> = told
        .iter()
        .filter_map(|(name, value)| match value {
            Reading::Unavailable(reason) => Some(format!("no {name} ({reason})")),
            Reading::Value(_) => None,
        })
        .collect();
    if lacking.is_empty() {
        return Finding::good(read.join(", "));
    }
    Finding::lacking(
        format!("{}; {}", read.join(", "), lacking.join("; ")),
        "the clock needs a frequency driver, power the right to read /sys/class/powercap (root): virtual machines have neither",
    )
}

/// Sizes of the data caches of the first core.
pub fn caches() -> Finding {
    let found = probes::cache_sizes();
    if found.is_empty() {
        return Finding::unknown("/sys/devices/system/cpu/cpu0/cache names no data cache".to_owned());
    }
    let name = |(level, bytes): &(u8, usize)| format!("L{level} {} KiB", bytes >> 10);
    Finding::good(found.iter().map(name).collect::<Vec<_>>().join(", "))
}

/// Whether memory that asks for huge pages gets them.
pub fn huge_pages() -> Finding {
    of(read("/sys/kernel/mm/transparent_hugepage/enabled").map(|text| match chosen(&text) {
        Some(mode @ ("always" | "madvise")) => Finding::good(format!("{mode}: weights lie in pages of 2 MiB")),
        Some(mode) => Finding::lacking(
            format!("{mode}: weights lie in pages of 4 KiB"),
            "a fifth to a third of the bandwidth: write 'madvise' to /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        None => Finding::unknown(format!("no choice is marked in '{text}'")),
    }))
}

/// `always [madvise] never`.
fn chosen(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

/// The governor of the first core's clock.
pub fn governor() -> Finding {
    of(read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").map(|governor| {
        if governor == "performance" {
            return Finding::good(governor);
        }
        Finding::lacking(
            governor,
            "clocks follow the load, and short probes with them: choose 'performance' to measure",
        )
    }))
}

/// Nodes of memory.
pub fn numa() -> Finding {
    of(read("/sys/devices/system/node/online").map(|nodes| {
        if nodes == "0" {
            Finding::good("one node")
        } else {
            Finding::lacking(
                format!("nodes {nodes}"),
                "memory of another node is slower: bind a run to one with numactl --cpunodebind=0 --membind=0",
            )
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_is_understood() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("always"), None);
        assert_eq!((quota("max 100000"), quota("150000 100000"), quota("1 0")), (None, Some(1.5), None));
        assert_eq!(kibibytes("MemTotal: 9 kB\nMemAvailable:    2048 kB\n", "MemAvailable"), Some(2048.0));
        assert_eq!(kibibytes("MemAvailable: many\n", "MemAvailable"), None);
        assert_eq!(flags("processor : 0\nflags : fpu avx2 fma avx2x\n"), ["avx2", "fma"]);
        assert_eq!(flags("Features : asimd bf16"), ["asimd", "bf16"]);
        assert!(flags("").is_empty());
    }
}
