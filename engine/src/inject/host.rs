//! What holds up the host thread: delays, waits, allocations, copies, work that belongs to the device.

use std::time::Duration;

use super::{Arguments, Injection};
use crate::{
    Error,
    faults::{Delay, Stall},
    program::OpName,
    run::{RunOptions, Sync},
};

/// Longest time for which a lock may be held, ms: whoever ends the run waits for it. Our own value.
const LONGEST_HOLD_MS: u64 = 1000;

pub(super) const HOST_DELAY: Injection = Injection {
    name: "host_delay",
    arguments: "op=all,us=50,jitter_us=0",
    what: "the host is busy before it launches an operator",
    is_timing: true,
    apply: |options, arguments| {
        let op = arguments.op()?;
        let time = Duration::from_micros(arguments.take("us")?.unwrap_or(50));
        let jitter = Duration::from_micros(arguments.take("jitter_us")?.unwrap_or(0));
        options.faults.host.delay = Some(Delay { op, time, jitter });
        Ok(())
    },
};

pub(super) const EXTRA_SYNC: Injection = Injection {
    name: "extra_sync",
    arguments: "every=op|layer",
    what: "the host waits for the device after every operator or layer",
    is_timing: true,
    apply: |options, arguments| {
        let sync = match arguments.take::<String>("every")?.as_deref() {
            None | Some("op") => Sync::PerOp,
            Some("layer") => Sync::PerLayer,
            Some(other) => return Err(arguments.refuse(&format!("every={other}"))),
        };
        if options.sync == sync || options.sync == Sync::PerOp {
            return Err(Error::Request(
                "injection 'extra_sync' changes nothing in this run: the host waits as often already; leave --sync out"
                    .to_owned(),
            ));
        }
        options.sync = sync;
        Ok(())
    },
};

pub(super) const ALLOC_PER_OP: Injection = Injection {
    name: "alloc_per_op",
    arguments: "kib=1024",
    what: "the host allocates, touches and frees memory before every launch",
    is_timing: true,
    apply: |options, arguments| {
        let kib: u32 = arguments.take("kib")?.unwrap_or(1024);
        options.faults.host.alloc = Some((kib as usize) << 10);
        Ok(())
    },
};

pub(super) const BLOCKING_COPY: Injection = Injection {
    name: "blocking_copy",
    arguments: "mib=16",
    what: "the host copies memory before every step and waits for it",
    is_timing: true,
    apply: |options: &mut RunOptions, arguments: &mut Arguments| {
        let mib: u16 = arguments.take("mib")?.unwrap_or(16);
        options.faults.host.copy = Some(usize::from(mib) << 20);
        Ok(())
    },
};

pub(super) const CPU_FALLBACK: Injection = Injection {
    name: "cpu_fallback",
    arguments: "op=silu_mul",
    what: "the host waits for the device and computes an operator itself",
    is_timing: false,
    apply: |options, arguments| {
        options.faults.host.fallback = Some(arguments.op()?.unwrap_or(OpName::SiluMul));
        Ok(())
    },
};

pub(super) const GIL_LIKE_STALL: Injection = Injection {
    name: "gil_like_stall",
    arguments: "period_ms=20,hold_ms=5",
    what: "another thread holds a lock that every launch needs",
    is_timing: true,
    apply: |options, arguments| {
        let period = Duration::from_millis(arguments.take("period_ms")?.unwrap_or(20));
        let hold = arguments.take("hold_ms")?.unwrap_or(5);
        if hold > LONGEST_HOLD_MS {
            return Err(arguments.refuse(&format!("hold_ms={hold} (at most {LONGEST_HOLD_MS})")));
        }
        let hold = Duration::from_millis(hold);
        options.faults.host.stall = Some(Stall { period, hold });
        Ok(())
    },
};
