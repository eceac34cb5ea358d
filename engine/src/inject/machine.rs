//! What goes on beside the run on the same machine.

use super::Injection;

pub(super) const BANDWIDTH_THIEF: Injection = Injection {
    name: "bandwidth_thief",
    arguments: "threads=1",
    what: "other threads read memory while the run does",
    is_timing: true,
    apply: |options, arguments| {
        let threads: u8 = arguments.take("threads")?.unwrap_or(1);
        options.faults.machine.thieves = usize::from(threads);
        Ok(())
    },
};
