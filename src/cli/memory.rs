//! Memory of this machine that a run may take.

use std::fs;

/// Memory that captures may take unless it is said otherwise, bytes; `None` where the system does not say what there is.
pub fn for_captures() -> Option<u64> {
    Some(available()? / 5 * 4)
}

/// Reads a size: bytes, or a number of units of 1024 with the letter K, M, G or T.
///
/// # Errors
/// What is no size.
pub fn size(text: &str) -> Result<u64, String> {
    let upper = text.trim().to_ascii_uppercase();
    let upper = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
    let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let unit = units.iter().find_map(|(letter, shift)| Some((upper.strip_suffix(*letter)?, *shift)));
    let (number, shift) = unit.unwrap_or((upper, 0));
    let bytes = number.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| format!("'{text}' is no size; write bytes, or such as 500M or 8G"))
}

/// Memory that a process may still take, bytes: what is available, what the limit of its group leaves, and what its address space
/// has room for; `None` where the system does not say.
pub fn available() -> Option<u64> {
    let free = kibibytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")? * 1024.0;
    let number = |path| fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<f64>().ok());
    let group = number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"));
    let left = group.map_or(f64::INFINITY, |(most, used)| (most - used).max(0.0));
    let space = fs::read_to_string("/proc/self/limits").ok().and_then(|limits| address_space(&limits));
    Some(free.min(left).min(space.unwrap_or(f64::INFINITY)) as u64)
}

/// The soft limit of the address space in `/proc/self/limits`, bytes; `None` where there is none.
fn address_space(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A line of `/proc/meminfo`, in KiB.
pub fn kibibytes(meminfo: &str, key: &str) -> Option<f64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_size_is_bytes_or_has_a_unit() {
        for (text, bytes) in
            [("8G", 8 << 30), ("500M", 500 << 20), ("4096", 4096), ("1 KiB", 1024), ("2gb", 2 << 30), ("1t", 1 << 40)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "G", "-1", "1.5G", "8X", "99999999999T"] {
            assert!(size(text).unwrap_err().contains("no size"), "{text}");
        }
    }

    #[test]
    fn a_limit_of_the_address_space_counts_and_none_does_not() {
        let limits = |soft: &str| {
            format!("Limit   Soft Limit  Hard Limit  Units\nMax address space   {soft}   unlimited  bytes\n")
        };
        assert_eq!(address_space(&limits("2048000000")), Some(2_048_000_000.0));
        assert_eq!(address_space(&limits("unlimited")), None);
    }
}
