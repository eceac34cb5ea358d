//! How long things take. Nothing here is measured on a device: the defaults are round figures of the size that published
//! traces of an Atlas A2 show, and every one can be set.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

/// The model of the device, from `STRATO_SIM_NPU_…`.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// `DEVICES`: how many there are.
    pub devices: i32,
    /// `MEMORY_MIB`: memory of each, bytes.
    pub memory: u64,
    /// `PLAN_NS`: host time of an operator's first phase.
    plan: u64,
    /// `LAUNCH_NS`: host time of an operator's second phase, of a replay, or of the update of a task.
    launch: u64,
    /// `KERNEL_NS`: device time that every kernel takes at least.
    kernel: u64,
    /// `NODE_NS`: the same of a kernel in a replay.
    node: u64,
    /// `BANDWIDTH_GBS`: memory.
    bandwidth: f64,
    /// `TFLOPS`: products.
    flops: f64,
    /// `LINK_NS`: a collective takes at least.
    link: u64,
    /// `LINK_GBS`: between devices, and between device and host.
    link_bandwidth: f64,
}

/// The model in force.
pub fn cost() -> &'static Cost {
    static COST: OnceLock<Cost> = OnceLock::new();
    COST.get_or_init(|| {
        let number = |name: &str, default: u64| -> u64 {
            let set = std::env::var(format!("STRATO_SIM_NPU_{name}")).ok();
            set.and_then(|text| text.parse().ok()).unwrap_or(default)
        };
        Cost {
            devices: i32::try_from(number("DEVICES", 2)).unwrap_or(2),
            memory: number("MEMORY_MIB", 16 << 10) << 20,
            plan: number("PLAN_NS", 2_000),
            launch: number("LAUNCH_NS", 2_000),
            kernel: number("KERNEL_NS", 3_000),
            node: number("NODE_NS", 1_500),
            bandwidth: number("BANDWIDTH_GBS", 1_200) as f64,
            flops: number("TFLOPS", 300) as f64 * 1e3,
            link: number("LINK_NS", 10_000),
            link_bandwidth: number("LINK_GBS", 25) as f64,
        }
    })
}

impl Cost {
    /// What moving and computing so much takes on the device, without what every kernel takes.
    pub fn work(&self, bytes: usize, flops: f64) -> Duration {
        let ns = (bytes as f64 / self.bandwidth.max(1e-3)).max(flops / self.flops.max(1e-3));
        Duration::from_nanos(ns as u64)
    }

    /// What every kernel takes on the device.
    pub fn kernel(&self, replayed: bool) -> Duration {
        Duration::from_nanos(if replayed { self.node } else { self.kernel })
    }

    /// A transfer between devices or to the host.
    pub fn transfer(&self, bytes: usize) -> Duration {
        Duration::from_nanos((bytes as f64 / self.link_bandwidth.max(1e-3)) as u64)
    }

    /// A collective.
    pub fn collective(&self, bytes: usize) -> Duration {
        Duration::from_nanos(self.link) + self.transfer(bytes)
    }

    /// Spends the host time of a first phase.
    pub fn planned(&self) {
        wait_until(Instant::now() + Duration::from_nanos(self.plan));
    }

    /// Spends the host time of a launch.
    pub fn launched(&self) {
        wait_until(Instant::now() + Duration::from_nanos(self.launch));
    }
}

/// Longest wait that is no sleep: sleeps of the system are later than asked by about as much.
const SPIN: Duration = Duration::from_micros(100);

/// Waits until then.
pub fn wait_until(end: Instant) {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        if left > SPIN { std::thread::sleep(left - SPIN) } else { std::hint::spin_loop() }
    }
}
