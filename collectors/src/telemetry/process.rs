//! This process: memory, page faults, context switches of its first thread, which is the one that launches. proc(5).

use model::{Ns, Reading};

use super::{Collector, Counter, Growth, read};

const RESIDENT: Counter = Counter { name: "memory_resident", unit: "B", device: None };
const MINOR: Counter = Counter { name: "page_faults_minor", unit: "1/s", device: None };
const MAJOR: Counter = Counter { name: "page_faults_major", unit: "1/s", device: None };
const VOLUNTARY: Counter = Counter { name: "host_switches_voluntary", unit: "1/s", device: None };
const INVOLUNTARY: Counter = Counter { name: "host_switches_involuntary", unit: "1/s", device: None };

/// Memory and switches of this process.
#[derive(Debug, Default)]
pub struct Process {
    faults: [Growth; 2],
    switches: [Growth; 2],
}

impl Collector for Process {
    fn look(&mut self, at: Ns, give: &mut dyn FnMut(Counter, Reading<f64>)) {
        let rates = |growth: &mut [Growth; 2], counts: [u64; 2]| {
            let [first, second] = growth;
            [first.per_second(at, counts[0]), second.per_second(at, counts[1])]
        };
        let mut tell = |counters: [Counter; 2], rates: Result<[Option<f64>; 2], String>| match rates {
            Ok(rates) => counters.into_iter().zip(rates).for_each(|(counter, rate)| {
                if let Some(rate) = rate {
                    give(counter, Reading::Value(rate));
                }
            }),
            Err(reason) => counters.into_iter().for_each(|c| give(c, Reading::Unavailable(reason.clone()))),
        };
        let said = |path: &str| format!("{path} does not say it");
        let faulted = read("/proc/self/stat").and_then(|text| faults(&text).ok_or_else(|| said("/proc/self/stat")));
        tell([MINOR, MAJOR], faulted.map(|counts| rates(&mut self.faults, counts)));
        let status = read("/proc/self/status");
        let switched = status
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|text| switches(text).ok_or_else(|| said("/proc/self/status")));
        tell([VOLUNTARY, INVOLUNTARY], switched.map(|counts| rates(&mut self.switches, counts)));
        let bytes = status.and_then(|text| resident(&text).ok_or_else(|| said("/proc/self/status")));
        give(RESIDENT, bytes.map_or_else(Reading::Unavailable, |bytes| Reading::Value(bytes as f64)));
    }
}

/// Minor and major page faults of all threads: the 8th and 10th field after the name.
fn faults(stat: &str) -> Option<[u64; 2]> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(7);
    let minor = fields.next()?.parse().ok()?;
    Some([minor, fields.nth(1)?.parse().ok()?])
}

/// Voluntary and involuntary context switches.
fn switches(status: &str) -> Option<[u64; 2]> {
    let count = |key| field(status, key)?.parse().ok();
    Some([count("voluntary_ctxt_switches")?, count("nonvoluntary_ctxt_switches")?])
}

/// Memory that is resident, bytes.
fn resident(status: &str) -> Option<u64> {
    let kilobytes: u64 = field(status, "VmRSS")?.strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

fn field<'t>(status: &'t str, key: &str) -> Option<&'t str> {
    status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 writes them.
    const STAT: &str =
        "7145 (cargo (a) b) S 7101 7145 7101 34816 7145 4194304 45161 1293 17 2 1029 201 3 1 20 0 5 0 9134 1";
    const STATUS: &str = "Name:\tstrato\nVmHWM:\t 1224 kB\nVmRSS:\t    1012 kB\nThreads:\t4\nvoluntary_ctxt_switches:\t42\nnonvoluntary_ctxt_switches:\t7\n";

    #[test]
    fn what_the_kernel_writes_is_understood() {
        assert_eq!(faults(STAT), Some([45_161, 17]));
        assert_eq!((faults("7145 (cargo) S 1"), faults("")), (None, None));
        assert_eq!(switches(STATUS), Some([42, 7]));
        assert_eq!(resident(STATUS), Some(1012 << 10));
        assert_eq!((switches("Name:\tx\n"), resident("VmRSS:\tmany kB\n")), (None, None));
    }
}
