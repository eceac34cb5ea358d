//! What a dashboard is told: plain values, each with the time at which it arrived.

use model::{Ns, Reading};

use diagnosis::{analysis::Layer, i18n::Text};

/// Something to show beside its name.
pub type Fact = (Text, String);

/// What is being run, or watched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// What it is, in a few words.
    pub title: String,
    /// How it is run.
    pub facts: Vec<Fact>,
    /// Ranks of the run; 0 where nothing is run.
    pub ranks: usize,
    /// Decode steps that are asked for.
    pub steps: u32,
    /// Sequences that are decoded together.
    pub batch: usize,
    /// Tokens of each sequence's prompt.
    pub prompt: usize,
    /// Bytes of the KV cache per token of a sequence, all ranks together.
    pub kv_bytes: u64,
    /// File into which the capture is written.
    pub output: Option<String>,
}

/// How far the run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is run.
    #[default]
    Watching,
    /// Weights are made or read.
    Preparing,
    /// The engine runs.
    Running,
    /// Its records become a capture.
    Writing,
    /// The capture is there.
    Over,
    /// There is none, and the last event says why.
    Failed,
}

/// The operators of one name in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Position of its name among those told by [`What::Names`].
    pub name: u16,
    /// How often.
    pub count: u32,
    /// How long, ns.
    pub ns: Ns,
}

/// A step of one rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The rank.
    pub rank: usize,
    /// Number; the prompt is step 0.
    pub number: u32,
    /// From the first launch to the choice of the tokens, ns.
    pub ns: Ns,
    /// Its time by layer, in the order of [`Layer::ALL`]; they add up to `ns`.
    pub layers: Reading<[Ns; 4]>,
    /// Its operators.
    pub ops: Vec<Op>,
}

impl Step {
    /// Time of one layer, where it is known.
    pub fn layer(&self, layer: Layer) -> Option<Ns> {
        let at = Layer::ALL.iter().position(|known| *known == layer)?;
        self.layers.value().and_then(|layers| layers.get(at).copied())
    }
}

/// Whose counter it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// A serving engine's, by its address.
    Server(String),
    /// A device's, by what it is called.
    Device(String),
    /// The machine's.
    Host,
    /// This process'.
    Process,
    /// What watching costs.
    Watching,
}

/// One look at a counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauge {
    /// Whose.
    pub group: Group,
    /// Its name, as captures have it.
    pub name: String,
    /// Its unit, as captures have it.
    pub unit: String,
    /// Its value, or why there is none.
    pub value: Reading<f64>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What, in English.
    pub en: String,
    /// What, in Chinese.
    pub zh: String,
    /// Whether it is something to look at.
    pub warns: bool,
}

/// What is told.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Names of the operators of the run.
    Names(Vec<String>),
    /// A step is over.
    Step(Step),
    /// Counters were looked at.
    Gauges(Vec<Gauge>),
    /// The run has got on.
    Phase(Phase),
    /// Something happened.
    Event(Event),
}

/// What is told, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// When, ns since the dashboard began.
    pub at: Ns,
    /// What.
    pub what: What,
}

/// Where updates come from. It never waits.
pub trait Source {
    /// Gives what has arrived since it was last asked.
    fn poll(&mut self, give: &mut dyn FnMut(Update));

    /// Now, on the clock of the updates.
    fn now(&self) -> Ns;

    /// Updates that found no room, in all.
    fn lost(&self) -> u64;
}
