//! Memory of this machine that a run may take.

use std::fs;

/// Memory that a process may still take, bytes: what is available, and what the limit of its group leaves; `None` where the
/// system does not say.
pub fn available() -> Option<u64> {
    let free = kibibytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")? * 1024.0;
    let number = |path| fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<f64>().ok());
    let group = number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"));
    let left = group.map_or(f64::INFINITY, |(most, used)| (most - used).max(0.0));
    Some(free.min(left) as u64)
}

/// A line of `/proc/meminfo`, in KiB.
pub fn kibibytes(meminfo: &str, key: &str) -> Option<f64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
