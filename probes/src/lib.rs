//! Micro-benchmarks: what this machine can do at best, so that a run on it is held against what was measured and not
//! against a data sheet.
//!
//! A probe is one file and one line of [`REGISTRY`]. What the decode engine does is measured through the engine: a probe
//! hands it a program of one kind of operator and times that, so that a ceiling is one of the kernels that really run.
//!
//! | module | owns |
//! | --- | --- |
//! | [`conditions`] | what else the machine did meanwhile |
//! | `repeat` | warm-up, repeats within a budget of time, order statistics |
//! | `device` | programs of one kind of operator on a device of the engine |
//! | `gather` | threads of our own, each on a core, that begin together |
//! | `caches` | sizes of the caches |

mod allocation;
mod attention;
mod caches;
mod cast;
mod collective;
pub mod conditions;
mod copy;
mod device;
mod dispatch;
mod gather;
mod gemm;
mod gemv;
mod launch;
mod product;
mod read;
mod repeat;
mod replay;
mod sync;
mod timer;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use engine::{
    Dtype, Target,
    cpu::Isa,
    program::{OpKind, Program},
    run::RunOptions,
};
use model::{ProbeRow, ProbeRun, ProbeUnit, Reading, Setting, Statistic};

pub use caches::sizes as cache_sizes;
use conditions::Conditions;

/// Most that one probe takes of its own accord, all its settings together; making memory ready is not counted.
pub const BUDGET: Duration = Duration::from_secs(2);

/// A matrix product: `rows` of activations times a matrix of `outputs` × `inputs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    /// Tokens.
    pub rows: usize,
    /// Outputs.
    pub outputs: usize,
    /// Inputs.
    pub inputs: usize,
    /// Type of the matrix.
    pub dtype: Dtype,
}

impl Product {
    /// The distinct matrix products of a run's programs, largest first; where steps are padded, also as their own sequences
    /// alone would have them, so that the price of the padding is known.
    pub fn of_run<'p>(programs: impl IntoIterator<Item = &'p Program>, options: &RunOptions) -> Vec<Self> {
        let dtype = options.dtype;
        let mut found = Vec::new();
        for program in programs {
            for op in &program.ops {
                let OpKind::Linear { x, rows, .. } = &op.kind else { continue };
                let Some(x) = program.buffer(*x) else { continue };
                let product = Self { rows: x.rows, outputs: rows.len(), inputs: x.width, dtype };
                let own = Self { rows: options.batch, ..product };
                let is_padded = options.padded == Some(product.rows);
                for product in [Some(product), is_padded.then_some(own)].into_iter().flatten() {
                    found.extend((!found.contains(&product)).then_some(product));
                }
            }
        }
        Self::sort(&mut found);
        found
    }

    /// Puts the largest first: where there are too many to measure, they are the ones that matter.
    pub fn sort(products: &mut [Self]) {
        products.sort_by_key(|product| std::cmp::Reverse(product.rows * product.outputs * product.inputs));
    }
}

/// How the machine is probed.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Device that the engine runs on.
    pub target: Target,
    /// Threads of the engine, and most threads of a probe with threads of its own.
    pub threads: usize,
    /// Instruction set of the engine's kernels.
    pub isa: Isa,
    /// Time for each probe.
    pub budget: Duration,
    /// Products to measure beside the usual ones: those of a run whose products are to be judged one by one.
    pub products: Vec<Product>,
}

impl Default for Setup {
    /// Every core, the best instruction set, two seconds a probe.
    fn default() -> Self {
        Self {
            target: Target::default(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            isa: Isa::available().first().copied().unwrap_or(Isa::Portable),
            budget: BUDGET,
            products: Vec::new(),
        }
    }
}

impl Setup {
    /// The time for one of `n` settings of a probe.
    fn part(&self, n: usize) -> Duration {
        self.budget / u32::try_from(n.max(1)).unwrap_or(u32::MAX)
    }

    /// Numbers of threads worth a row each: one, and all.
    fn thread_counts(&self) -> Vec<usize> {
        if self.target == Target::Cpu && self.threads > 1 { vec![1, self.threads] } else { vec![1] }
    }

    /// The conditions of a row of the engine's: so many threads of a CPU, or whatever another device has.
    fn setting(&self, threads: usize) -> Setting {
        match self.target {
            Target::Cpu => Setting::new().with(Setting::THREADS, threads),
            Target::OpenCl(_) | Target::Cuda(_) | Target::Ascend(_) => {
                Setting::new().with("backend", self.target.name())
            }
        }
    }
}

/// A micro-benchmark.
pub struct Probe {
    /// Name on the command line and in rows.
    pub name: &'static str,
    /// What it measures, in English and in Chinese.
    pub about: [&'static str; 2],
    of: Of,
    run: fn(&Setup) -> Vec<ProbeRow>,
}

/// What a probe is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// The engine's device, whichever that is.
    Engine,
    /// Cores and main memory of this machine.
    Machine,
}

impl Probe {
    /// Whether it measures a device of that kind.
    pub fn measures(&self, target: &Target) -> bool {
        self.of == Of::Engine || *target == Target::Cpu
    }
}

/// Every probe, cheap ones first.
pub const REGISTRY: &[Probe] = &[
    timer::PROBE,
    launch::PROBE,
    sync::PROBE,
    replay::PROBE,
    dispatch::PROBE,
    copy::PROBE,
    read::PROBE,
    gemv::PROBE,
    gemm::PROBE,
    product::PROBE,
    attention::PROBE,
    collective::PROBE,
    allocation::PROBE,
    cast::PROBE,
];

/// Runs the probes that `picks` takes one after the other; `told` gets each with its rows as it ends. The provenance says
/// how long, with what and under what load; who knows more of the machine adds to it.
pub fn run(setup: &Setup, picks: impl Fn(&Probe) -> bool, mut told: impl FnMut(&Probe, &[ProbeRow])) -> ProbeRun {
    let taken = SystemTime::now().duration_since(UNIX_EPOCH);
    let before = Conditions::now();
    let mut rows = Vec::new();
    for probe in REGISTRY.iter().filter(|probe| probe.measures(&setup.target) && picks(probe)) {
        let found = (probe.run)(setup);
        told(probe, &found);
        rows.extend(found);
    }
    let taken = match taken {
        Ok(taken) => Reading::Value(taken.as_nanos().to_string()),
        Err(_) => Reading::Unavailable("the system's clock is before 1970".to_owned()),
    };
    let mut provenance = vec![
        ("taken_unix_ns".to_owned(), taken),
        ("backend".to_owned(), Reading::Value(setup.target.name().to_owned())),
    ];
    if setup.target == Target::Cpu {
        provenance.extend([
            ("threads".to_owned(), Reading::Value(setup.threads.to_string())),
            ("isa".to_owned(), Reading::Value(setup.isa.name().to_owned())),
        ]);
    }
    provenance.extend(before.until(&Conditions::now()).facts(&rows));
    ProbeRun { provenance, rows }
}

/// A row of a probe.
fn row(probe: &str, metric: &str, unit: ProbeUnit, setting: Setting, value: Result<Statistic, String>) -> ProbeRow {
    ProbeRow {
        probe: probe.to_owned(),
        metric: metric.to_owned(),
        unit,
        setting,
        value: value.map_or_else(Reading::Unavailable, Reading::Value),
    }
}

#[cfg(test)]
mod tests;
