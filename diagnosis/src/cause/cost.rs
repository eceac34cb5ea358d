//! A cost: what takes the time, how much of the counted steps it is, and the change that would remove it.

use model::{Ns, Span, StringId};

use crate::{
    analysis::{CopyDir, Edit, Layer},
    platform::CanonicalOp,
};

/// Where in the host's program a cost arises.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Site {
    /// The record that holds the time; `None` where no record covers it.
    pub record: Option<StringId>,
    /// Where the time is between two records inside it: the one that ended and the one that begins.
    pub between: Option<(Option<StringId>, Option<StringId>)>,
    /// The records around it, innermost first.
    pub path: Vec<StringId>,
    /// Whether the record's name stands for several that differ in what counts.
    pub several: bool,
    /// Where no one record stands for all of the time: those that hold most of it, each with its share; without a record of its own
    /// they lie in the first of the path.
    pub among: Vec<(StringId, f64)>,
}

/// In what way a cost shows. Each kind has one generator.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// The host does one thing while the device waits.
    Owner(Site),
    /// The host comes back from a synchronization and only then goes on.
    Turnaround {
        /// The synchronizing call.
        sync: StringId,
        /// What it does then.
        then: Site,
    },
    /// The device waits for launches that follow one another.
    Chain(Site),
    /// The device pauses between nodes of replayed graphs.
    Nodes,
    /// The device goes from one queued operation to the next, or waits for another queue; a size.
    Queue,
    /// The device does not begin what was launched; a size.
    Unstarted,
    /// Idle time that the host explains, at many places of which none is a cost of its own; a size.
    Scattered,
    /// Copies that nothing runs beside.
    Copies {
        /// Direction of the largest part.
        direction: CopyDir,
        /// What is recorded of the memory on the host: `pageable`, `pinned`, …
        memory: Option<StringId>,
        /// Share of the exposed time that copies of this direction and memory take.
        part: f64,
        /// Of these copies whose size is recorded the bytes, and the time that they took, hidden or not, ns.
        moved: Option<(i64, Ns)>,
    },
    /// Kernels of one class, or of several that belong together, which compute nothing a fused run would not.
    Class {
        /// The classes, the largest first.
        ops: Vec<CanonicalOp>,
        /// The kernels with the most time.
        kernels: Vec<StringId>,
    },
    /// Large elementwise kernels and reductions; a size.
    Plain {
        /// The classes, the largest first.
        ops: Vec<CanonicalOp>,
        /// The kernels with the most time.
        kernels: Vec<StringId>,
    },
    /// Kernels that a name shows to unpack quantized weights.
    Unpacking(StringId),
    /// Operators on the processors of the host or on the AI CPU.
    OnCpu(StringId),
    /// A kernel with too few blocks for the device.
    Underfilled {
        /// The kernel.
        kernel: StringId,
        /// Its blocks.
        blocks: u64,
        /// Cores of the device.
        cores: u64,
        /// Whether it is a matrix multiplication.
        gemm: bool,
    },
    /// A kernel whose blocks have fewer threads than a warp has lanes.
    SmallBlocks {
        /// The kernel.
        kernel: StringId,
        /// Threads of a block.
        threads: u64,
        /// Lanes of a warp.
        warp: u64,
    },
    /// A kernel that takes many times as long per thread as its neighbours.
    PerThread {
        /// The kernel.
        kernel: StringId,
        /// Its time per thread over that of the others.
        ratio: f64,
    },
    /// Kernels became slower during the run, all alike.
    Drift {
        /// Late over early.
        ratio: f64,
    },
    /// All kernels of one rank take longer than the same kernels of the others.
    SlowRank {
        /// Its time over that of the others.
        ratio: f64,
    },
    /// Kernels that now and then take far longer than the same kernel at the same position.
    Sporadic {
        /// The kernel with the most excess.
        kernel: StringId,
        /// Kinds of kernels that it happens to.
        kinds: usize,
    },
    /// Collectives that take longer than the latency of their kind.
    Collective {
        /// The operation with the most time.
        kernel: StringId,
        /// What the collective is called.
        called: &'static str,
        /// Median of its transfers, ns.
        median: Ns,
        /// Latency of its kind, ns.
        usual: Ns,
    },
    /// A link between two pipeline stages that is slower than the best one.
    Link {
        /// Ranks at its ends.
        ends: (u32, u32),
        /// Bytes per second that it reaches.
        reaches: f64,
        /// Bytes per second of the best link, or what a slow one reaches at least.
        best: f64,
    },
    /// Others wait for one rank.
    Waiting {
        /// Part of all waiting that is for it.
        part: f64,
    },
    /// Stages of a pipeline wait for one of them: partly the nature of a pipeline, so it is told only where a rule knows more.
    Bubble,
    /// Rows that are computed and not needed.
    Padding {
        /// Rows computed.
        rows: u64,
        /// Rows needed.
        needed: u64,
    },
    /// Experts of a mixture that are computed one by one.
    Experts {
        /// Turns between a GEMM and a gather.
        turns: usize,
    },
    /// Logits for all rows of a prompt.
    Logits {
        /// The GEMM.
        kernel: StringId,
        /// What it takes in a step that only decodes, ns.
        usual: Ns,
    },
    /// Prompts in steps that also decode; a size, without a change that would remove it.
    Prompts {
        /// Steps with prompts.
        steps: usize,
        /// Most prompt tokens of a step, if known.
        tokens: Option<u64>,
        /// The step that only decodes, ns (median).
        usual: Ns,
    },
    /// Communication that nothing runs beside; a size, without a change that would remove it.
    Exposed {
        /// The collective with the most time.
        kernel: StringId,
    },
}

/// How a cost lies in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurs {
    /// Throughout.
    Throughout,
    /// Two instances carry most of it.
    Once,
    /// All instances lie in the first quarter.
    AtStart,
}

/// A cost, counted over the steps of [`super::Population`].
#[derive(Clone, Debug)]
pub struct Cost {
    /// In what way it shows.
    pub kind: Kind,
    /// Layer of the change.
    pub layer: Layer,
    /// Ranks that have it, as positions in the analysis; the one that it was measured on first.
    pub ranks: Vec<usize>,
    /// Number of the first of them in the job.
    pub rank: u32,
    /// Its size on that rank, ns over all counted steps.
    pub total: Ns,
    /// Length of the counted steps of that rank, without what happens once, ns.
    pub of: Ns,
    /// What happens once and is left out of that, ns.
    pub apart: Ns,
    /// Counted steps of that rank.
    pub steps: usize,
    /// Gaps, operations or calls that it is made of.
    pub count: usize,
    /// The longest of them, ns.
    pub longest: Ns,
    /// The two that follow it, ns.
    pub next: Vec<Ns>,
    /// The device's idle time that it selects on that rank, in order.
    pub idle: Vec<Span>,
    /// The device operations that it selects on that rank.
    pub ops: Vec<u32>,
    /// The change, rank by rank.
    pub edits: Vec<(usize, Edit)>,
    /// The least and the most that the change brings, ns over all counted steps, as far as the ledger shows it.
    pub bounds: (Ns, Ns),
    /// How it lies in the run.
    pub occurs: Occurs,
    /// Whether it belongs to a healthy run: an empty request queue.
    pub inherent: bool,
}

impl Cost {
    /// Its share of the counted steps.
    pub fn share(&self) -> f64 {
        if self.of <= 0 { 0.0 } else { self.total as f64 / self.of as f64 }
    }

    /// Whether the change is one of the device's own work or of the host's: of both the replay knows how ranks that wait for each
    /// other share the gain.
    pub fn is_of_one_rank(&self) -> bool {
        self.layer != Layer::Communication
    }

    /// Whether it is idle time that the host explains.
    pub fn is_idle(&self) -> bool {
        matches!(self.kind, Kind::Owner(_) | Kind::Turnaround { .. } | Kind::Chain(_))
    }

    /// Whether it is a size without a change that would remove it.
    pub fn is_size(&self) -> bool {
        self.weight() < 1.0
    }

    /// Its weight among costs of which a change is known: exposed communication leads where no change brings a third of it, what is
    /// part of every run only where nothing else does.
    pub fn weight(&self) -> f64 {
        match self.kind {
            Kind::Exposed { .. } | Kind::Plain { .. } | Kind::Bubble | Kind::Unstarted => 0.3,
            Kind::Prompts { .. } | Kind::Queue | Kind::Scattered => 0.01,
            _ => 1.0,
        }
    }

    /// Its size, ns per counted step.
    pub fn per_step(&self) -> Ns {
        self.total / self.steps.max(1) as Ns
    }
}
