//! What this machine is: processor, cores, memory. What cannot be read has a reason instead of a value.

use std::fs;

use model::Reading;

/// Facts of the machine.
#[derive(Clone, Debug)]
pub struct Host {
    /// Product name of the processor.
    pub cpu: Reading<String>,
    /// Maker of the processor.
    pub maker: Reading<String>,
    /// Cores that this process may use.
    pub cores: Reading<u32>,
    /// Main memory, bytes.
    pub memory_bytes: Reading<i64>,
    /// Operating system and its version.
    pub system: Reading<String>,
}

impl Host {
    /// Reads the facts of this machine.
    pub fn read() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo");
        let cpu = |keys: &[&str]| match &cpuinfo {
            Ok(text) => keys
                .iter()
                .find_map(|key| field(text, key))
                .map_or_else(|| missing("/proc/cpuinfo does not say it"), |value| Reading::Value(value.to_owned())),
            Err(error) => missing(&format!("/proc/cpuinfo: {error}")),
        };
        Self {
            // Arm kernels name a board or implementer instead of a model.
            cpu: cpu(&["model name", "Hardware", "CPU implementer"]),
            maker: cpu(&["vendor_id", "CPU implementer"]),
            cores: std::thread::available_parallelism().map_or_else(
                |error| missing(&error.to_string()),
                |cores| Reading::Value(u32::try_from(cores.get()).unwrap_or(u32::MAX)),
            ),
            memory_bytes: match fs::read_to_string("/proc/meminfo") {
                Ok(text) => memory(&text).map_or_else(|| missing("/proc/meminfo does not say it"), Reading::Value),
                Err(error) => missing(&format!("/proc/meminfo: {error}")),
            },
            system: match fs::read_to_string("/proc/sys/kernel/osrelease") {
                Ok(release) => Reading::Value(format!("{} {}", std::env::consts::OS, release.trim())),
                Err(_) => Reading::Value(std::env::consts::OS.to_owned()),
            },
        }
    }
}

/// Bytes that the file system of `path` still has room for.
#[cfg(unix)]
pub fn free_bytes(path: &std::path::Path) -> Reading<u64> {
    match rustix::fs::statvfs(path) {
        Ok(room) => Reading::Value(room.f_bavail.saturating_mul(room.f_frsize)),
        Err(error) => missing(&format!("{}: {error}", path.display())),
    }
}

/// Bytes that the file system of `path` still has room for.
#[cfg(not(unix))]
pub fn free_bytes(_: &std::path::Path) -> Reading<u64> {
    missing("this system does not say it")
}

fn missing<T>(reason: &str) -> Reading<T> {
    Reading::Unavailable(reason.to_owned())
}

/// The first value of a key in `key : value` lines.
fn field<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let values = text.lines().filter_map(|line| line.split_once(':')).filter(|(name, _)| name.trim() == key);
    values.map(|(_, value)| value.trim()).find(|value| !value.is_empty())
}

fn memory(text: &str) -> Option<i64> {
    let kilobytes: i64 = field(text, "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_and_absent_ones_are_not_zero() {
        let text = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: \nmodel name\t: Xeon: special\n";
        assert_eq!(field(text, "model name"), Some("Xeon: special"));
        assert_eq!(field(text, "vendor"), None);
        assert_eq!(memory("MemTotal:       24576 kB\n"), Some(24_576 << 10));
        assert_eq!(memory("MemTotal: many kB\n"), None);
        assert!(memory("MemTotal: 9223372036854775807 kB\n").is_none());
    }
}
