//! What the device of a rank can do at best: as probes measured it, else as its maker publishes it, which is said wherever
//! it is used, because no kernel reaches a data sheet.

use model::{Ns, ProbeRun, Setting, Statistic};

use crate::analysis::op_shapes::{Gemm, MEMORY_BOUND_ROWS};
use crate::{
    analysis::Rank,
    diagnose::{Evidence, rule::Context},
    i18n::{Message, Text, Value},
    platform::Chip,
};

/// The probes whose rows any rule reads.
pub const PROBES: [&str; 5] = ["launch", "replay", "read", "gemm", "product"];
/// Share of a ceiling that a good kernel reaches (limits of the Ascend advisor, near-limit mark of Nsight Compute).
pub const NEAR: f64 = 0.8;
/// Share of the published bandwidth of a memory that good kernels reach (BabelStream on A100, H100 and H200: 90 to 93 %).
const REACHED: f64 = 0.92;
/// Share of the published arithmetic that good kernels of large products reach (cuBLAS and hipBLASLt on H100 and MI300X: 65 to
/// 80 %; the clock falls under load).
const COMPUTED: f64 = 0.75;

/// What names of kernels tell of the device that they were built for, and the word by which packs know its chips. Older
/// architectures are left out: newer devices run their kernels too.
const BUILT_FOR: [(&str, &str); 8] = [
    ("ISA942", "gfx942"),
    ("gfx942", "gfx942"),
    ("ISA950", "gfx950"),
    ("gfx950", "gfx950"),
    ("ISA90a", "gfx90a"),
    ("gfx928", "gfx928"),
    ("gfx936", "gfx936"),
    ("sm90_", "sm_90"),
];

/// Where a ceiling comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From probes of this device.
    Measured,
    /// From its maker.
    Published,
}

/// A rate per nanosecond that the device reaches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    /// As a rule: what headroom is judged by.
    pub usual: f64,
    /// At best: what a gain is bounded by.
    pub best: f64,
    /// Where it comes from.
    pub origin: Origin,
}

/// The ceilings of one device.
#[derive(Clone, Copy)]
pub struct Ceilings<'a> {
    run: &'a ProbeRun,
    chip: Option<&'a Chip>,
    /// Whether the capture, or somebody, says which device it is.
    named: bool,
    /// Threads of a CPU that the run had; probes of another number of them say nothing of it.
    threads: Option<i64>,
    /// Type of the weights, where the run says it.
    dtype: Option<&'a str>,
}

impl<'a> Ceilings<'a> {
    /// Those of the device of a rank.
    pub fn of(cx: &Context<'a>, rank: &Rank) -> Self {
        let own = cx.trace.devices.iter().find(|d| d.process == rank.process && d.ordinal == rank.device);
        let device = own.or(cx.trace.devices.first());
        let is_cpu = device.and_then(|d| d.vendor).is_some_and(|vendor| cx.trace.strings.get(vendor) == "cpu");
        // What the capture does not name, somebody may have declared.
        let named = device.and_then(|d| d.name).map(|name| cx.trace.strings.get(name));
        let name = named.or(cx.trace.manifest.value("hardware.device"));
        Self {
            run: &cx.trace.probes,
            named: name.is_some(),
            chip: name.and_then(|name| cx.packs.chip(name)).or_else(|| built_for(cx)),
            threads: device.and_then(|d| d.cores).filter(|_| is_cpu).map(i64::from),
            dtype: cx.trace.manifest.value("precision.weights"),
        }
    }

    /// Whether it is known which device it is.
    pub fn names_device(&self) -> bool {
        self.named
    }

    /// What is published of the device.
    pub fn chip(&self) -> Option<&'a Chip> {
        self.chip
    }

    /// What disturbed the probes, if anything did.
    pub fn noise(&self) -> Option<&'a str> {
        self.run.fact(ProbeRun::NOISE)
    }

    /// Whether a row is of as many threads as the run had.
    fn fits(&self, setting: &Setting) -> bool {
        let threads = setting.number(Setting::THREADS);
        self.threads.is_none_or(|own| threads.is_none_or(|probed| probed == own))
    }

    fn rows(&self, probe: &'a str, metric: &'a str) -> impl Iterator<Item = (&'a Setting, &'a Statistic)> {
        self.run.measured(probe, metric).filter(|(setting, _)| self.fits(setting))
    }

    /// The highest of several rates that were measured per second.
    fn highest(rows: impl Iterator<Item = &'a Statistic>) -> Option<Ceiling> {
        let best = rows.max_by(|a, b| a.median.total_cmp(&b.median))?;
        let per_ns = |rate: f64| rate / 1e9;
        let ceiling = Ceiling { usual: per_ns(best.median), best: per_ns(best.max), origin: Origin::Measured };
        (ceiling.usual > 0.0).then_some(ceiling)
    }

    /// Bytes per ns that are read from memory.
    pub fn bandwidth(&self) -> Option<Ceiling> {
        let memory = self.rows("read", "bandwidth").filter(|(setting, _)| setting.get("in") == Some("memory"));
        Self::highest(memory.map(|(_, statistic)| statistic)).or_else(|| {
            // 10⁹ bytes per second are one per nanosecond.
            let nominal = f64::from(self.chip?.memory_gb_per_s?);
            Some(Ceiling { usual: REACHED * nominal, best: nominal, origin: Origin::Published })
        })
    }

    /// Operations per ns of products of a type, or of the run's weights where the operation does not say its own.
    pub fn arithmetic(&self, dtype: Option<&str>) -> Option<Ceiling> {
        let dtype = dtype.or(self.dtype)?;
        let rows = self.rows("gemm", "arithmetic").filter(|(setting, _)| setting.get(Setting::DTYPE) == Some(dtype));
        Self::highest(rows.map(|(_, statistic)| statistic)).or_else(|| {
            // 10¹² operations per second are a thousand per nanosecond.
            let nominal = 1e3 * self.chip?.peaks.of(dtype)?;
            Some(Ceiling { usual: COMPUTED * nominal, best: nominal, origin: Origin::Published })
        })
    }

    /// The least time that any operation takes, ns.
    pub fn floor(&self) -> Option<Ns> {
        let rows = self.rows("launch", "floor").map(|(_, statistic)| statistic.median);
        rows.min_by(f64::total_cmp).map(|ns| ns.round() as Ns)
    }

    /// What an empty node of a replay takes, ns.
    pub fn node(&self) -> Option<Ns> {
        let rows = self.rows("replay", "node").map(|(_, statistic)| statistic.median);
        // Where the run's number of threads is not known, the slowest: nothing is called slow by it.
        rows.max_by(f64::total_cmp).map(|ns| ns.round() as Ns)
    }

    /// The time that a product takes at best and as a rule, ns; `None` where its bytes are unknown, or where arithmetic may
    /// bound it and nobody measured that.
    pub fn time(&self, gemm: Gemm) -> Option<(f64, f64, Origin)> {
        let memory = self.bandwidth()?;
        let bytes = gemm.bytes? as f64;
        let (mut best, mut usual, mut origin) = (bytes / memory.best, bytes / memory.usual, memory.origin);
        match self.arithmetic(gemm.types.map(|[_, weights]| weights)) {
            Some(arithmetic) => {
                let operations = 2.0 * gemm.rows as f64 * gemm.outputs as f64 * gemm.inputs as f64;
                if operations / arithmetic.usual > usual {
                    origin = arithmetic.origin;
                }
                best = best.max(operations / arithmetic.best);
                usual = usual.max(operations / arithmetic.usual);
            }
            None if gemm.rows > i64::from(MEMORY_BOUND_ROWS) => return None,
            None => {}
        }
        Some((best, usual, origin))
    }

    /// What the best kernels at hand take for the very shape of a product, ns, and what they were built for if the probe says so.
    pub fn probed(&self, gemm: Gemm) -> Option<(&'a Statistic, Option<&'a str>)> {
        let dtype = self.dtype?;
        let shape = [(Setting::ROWS, gemm.rows), (Setting::OUTPUTS, gemm.outputs), (Setting::INPUTS, gemm.inputs)];
        let same = |setting: &Setting| {
            setting.get(Setting::DTYPE) == Some(dtype) && shape.iter().all(|(key, n)| setting.number(key) == Some(*n))
        };
        let (setting, statistic) = self.rows("product", "time").find(|(setting, _)| same(setting))?;
        Some((statistic, setting.get(Setting::KERNEL)))
    }

    /// Whether an operation of this name ran with the kernel that a probe measured, built for `kernel`.
    pub fn is_same(&self, name: &str, kernel: &str) -> bool {
        let rest = name.strip_suffix(kernel).and_then(|rest| rest.strip_suffix('_'));
        rest.zip(self.dtype).is_some_and(|(rest, dtype)| rest.ends_with(dtype))
    }

    /// The bandwidth that a finding was judged by, and what disturbed its measurement.
    pub fn evidence(&self) -> Vec<Evidence> {
        let fact = |what: Message, value| Evidence { what, value, rows: Vec::new() };
        let mut facts = Vec::new();
        if let Some(ceiling) = self.bandwidth() {
            let what = match ceiling.origin {
                Origin::Measured => Text::new(
                    "read bandwidth of the memory, measured by a probe, GB/s",
                    "显存/内存读取带宽（探针实测），GB/s",
                ),
                Origin::Published => Text::new(
                    "bandwidth of the memory, published and not measured, taken at 92 %, GB/s",
                    "显存带宽（厂商公布，未实测，按 92% 计），GB/s",
                ),
            };
            facts.push(fact(Message::plain(what), Value::Number(ceiling.usual)));
            if let Some(chip) = self.chip.filter(|_| ceiling.origin == Origin::Published) {
                let what = Text::new("device whose published peaks serve", "所用公布峰值的设备");
                facts.push(fact(Message::plain(what), Value::Raw(chip.name.clone())));
            }
        }
        facts.extend(self.disturbed());
        facts
    }

    /// What disturbed the probes, as a fact.
    pub fn disturbed(&self) -> Option<Evidence> {
        let noise = self.noise()?;
        let what = Text::new(
            "the probes were disturbed, so the ceilings may lie higher",
            "探针运行受到干扰，真实上限可能更高",
        );
        Some(Evidence { what: Message::plain(what), value: Value::Raw(noise.to_owned()), rows: Vec::new() })
    }
}

/// The chip that the kernels of a capture were built for, where no device is named that packs know.
fn built_for<'a>(cx: &Context<'a>) -> Option<&'a Chip> {
    let names = || cx.analysis.ops.keys().map(|name| cx.trace.strings.get(*name));
    let mark = BUILT_FOR.iter().find(|(mark, _)| names().any(|name| name.contains(mark)))?;
    cx.packs.chip(mark.1)
}
