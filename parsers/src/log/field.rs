//! The words of a log: what a column, key or named group holds, whoever wrote it.

use model::{Ns, time::parse_decimal};

use super::stamp::{self, Stamp};

/// What a field tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// When the line was written, in a unit of `10^n` ns.
    Time(i32),
    /// The same as seconds since the epoch or as a date.
    Stamp,
    /// Rank of the job.
    Rank,
    /// Number of the step.
    Step,
    /// Platform, for people.
    Platform,
    /// Sequences of the step.
    Batch,
    /// Prompt length, tokens.
    PromptLen,
    /// Mean length of the contexts attended to, tokens.
    Context,
    /// Stage of the step, or part of it.
    Stage,
    /// How long it took, in a unit of `10^n` ns.
    Latency(i32),
    /// `eager`, `piecewise`, `full`, or whether a graph was replayed.
    GraphMode,
    /// Whether compiled code was found.
    CompileHit,
    /// How long a compilation took, in a unit of `10^n` ns.
    Compile(i32),
    /// How long capturing graphs took, in a unit of `10^n` ns.
    Capture(i32),
    /// A number sampled over time.
    Counter(&'static Counter),
    /// A fact about the run.
    Fact(&'static str),
}

/// A sampled number.
#[derive(Debug, PartialEq, Eq)]
pub struct Counter {
    /// Field name.
    field: &'static str,
    /// Counter name in the capture, as engines publish it.
    pub name: &'static str,
    /// Unit in the capture.
    pub unit: &'static str,
    /// The field divided by this is the counter.
    divisor: u32,
}

const fn counter(field: &'static str, name: &'static str, unit: &'static str, divisor: u32) -> Counter {
    Counter { field, name, unit, divisor }
}

/// Numbers that logs sample. The names in the capture are those of the metrics of vLLM and SGLang where those have one.
const COUNTERS: &[Counter] = &[
    counter("memory_allocated", "memory_allocated", "B", 1),
    counter("memory_reserved", "memory_reserved", "B", 1),
    counter("kv_blocks_used", "kv_blocks_used", "", 1),
    counter("graph_size", "graph_size", "", 1),
    counter("padded_tokens", "num_padded_tokens", "", 1),
    counter("num_requests_running", "num_requests_running", "", 1),
    counter("num_requests_waiting", "num_requests_waiting", "", 1),
    counter("num_requests_swapped", "num_requests_swapped", "", 1),
    counter("num_preemptions", "num_preemptions", "", 1),
    counter("num_retracted_reqs", "num_retracted_reqs", "", 1),
    counter("kv_cache_usage", "kv_cache_usage", "", 1),
    counter("kv_cache_usage_percent", "kv_cache_usage", "", 100),
    counter("prefix_cache_hit_percent", "prefix_cache_hit_rate", "", 100),
    counter("prompt_tokens_per_second", "prompt_throughput", "token/s", 1),
    counter("generation_tokens_per_second", "generation_throughput", "token/s", 1),
    counter("accepted_length", "spec_accept_length", "token", 1),
    // What a request says of itself when it is over, and what a batch of prompts says.
    counter("prompt_tokens", "prompt_tokens", "token", 1),
    counter("cached_tokens", "cached_prompt_tokens", "token", 1),
    counter("prompt_ms", "prompt_time", "ms", 1),
    counter("generated_tokens", "generated_tokens", "token", 1),
    counter("generation_ms", "generation_time", "ms", 1),
    counter("graph_replayed", "graph_replayed", "", 1),
    // What the start of an engine took.
    counter("load_s", "startup_load", "s", 1),
    counter("init_s", "startup_init", "s", 1),
    counter("compile_total_s", "startup_compile", "s", 1),
];

/// Facts that logs state, with their manifest field.
const FACTS: &[(&str, &str)] = &[
    ("model", "model.name"),
    ("engine_version", "software.engine"),
    ("enforce_eager", "software.enforce_eager"),
    ("engine_graph_mode", "software.graph_mode"),
    ("graph_sizes_supported", "caps.graph_sizes_supported"),
    ("tensor_parallel_size", "parallel.tp"),
    ("kv_blocks", "caps.kv_blocks"),
    ("weights_dtype", "precision.weights"),
    // That the engine ended by itself, and the first error that it reported.
    ("failure", "log.failure"),
    ("error", "log.error"),
    // That requests may come.
    ("ready", "log.ready"),
    ("layers_on_device", "log.layers_on_device"),
];

impl Field {
    /// The field with this name, in any letter case.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase();
        Some(match name.as_str() {
            "ts_ns" => Self::Time(0),
            "ts_us" => Self::Time(3),
            "ts_ms" => Self::Time(6),
            "ts" | "timestamp" | "time" => Self::Stamp,
            "rank" => Self::Rank,
            "step" => Self::Step,
            "platform" => Self::Platform,
            "batch_size" | "batch" => Self::Batch,
            "prompt_len" => Self::PromptLen,
            "ctx_len_mean" => Self::Context,
            "stage" => Self::Stage,
            "latency_s" => Self::Latency(9),
            "latency_ms" => Self::Latency(6),
            "latency_us" => Self::Latency(3),
            "latency_ns" => Self::Latency(0),
            "graph_mode" => Self::GraphMode,
            "compile_hit" => Self::CompileHit,
            "compile_s" => Self::Compile(9),
            "compile_ms" => Self::Compile(6),
            "capture_s" => Self::Capture(9),
            "capture_ms" => Self::Capture(6),
            name => {
                let fact = FACTS.iter().find(|(field, _)| *field == name).map(|(_, key)| Self::Fact(key));
                return fact.or(COUNTERS.iter().find(|c| c.field == name).map(Self::Counter));
            }
        })
    }
}

/// Stage of a logged line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// A step of prompts.
    Prefill,
    /// A step that adds a token to each sequence.
    Decode,
    /// A whole step of a kind that the log does not say.
    Whole,
    /// Part of a step, such as `schedule` or `sample`.
    Part,
}

/// How a logged step ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GraphMode {
    /// Operation by operation.
    Eager,
    /// In several graphs.
    Piecewise,
    /// In one graph.
    Full,
}

impl GraphMode {
    /// Name in the name of a step.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eager => "eager",
            Self::Piecewise => "piecewise",
            Self::Full => "full",
        }
    }

    /// Words that engines use, `CUDAGraphMode.FULL_DECODE_ONLY` included.
    fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let word = text.rsplit('.').next()?;
        Some(match word {
            "eager" | "none" | "false" | "0" | "off" => Self::Eager,
            "piecewise" => Self::Piecewise,
            "full" | "graph" | "true" | "1" | "on" | "full_decode_only" | "aclgraph" | "cudagraph" => Self::Full,
            _ => return None,
        })
    }
}

/// What one line says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    pub time: Option<Stamp>,
    pub rank: Option<u32>,
    pub step: Option<i64>,
    pub platform: Option<String>,
    pub batch: Option<u32>,
    pub prompt_len: Option<u64>,
    pub context: Option<u64>,
    pub stage: Option<Stage>,
    /// The stage as it is written, where it is a part of a step.
    pub part: Option<String>,
    pub latency: Option<Ns>,
    /// The line has a place for a latency, read or not.
    pub times: bool,
    pub graph: Option<GraphMode>,
    pub compile_hit: Option<bool>,
    pub compile: Option<Ns>,
    pub capture: Option<Ns>,
    pub counters: Vec<(&'static Counter, f64)>,
    pub facts: Vec<(&'static str, String)>,
}

/// Ranks that one log may name; each gets tracks of its own, and no report has room for more.
const RANKS: u32 = 4096;
/// Words for a value that is not there.
const ABSENT: [&str; 7] = ["", "null", "none", "nan", "n/a", "na", "-"];

impl Record {
    /// Takes a field; `false` when the value cannot be read as what the field holds. A value that says it is absent leaves
    /// the field absent.
    pub fn set(&mut self, field: Field, text: &str) -> bool {
        let text = text.trim().trim_matches(['"', '\'']).trim();
        self.times |= matches!(field, Field::Latency(_));
        // `graph_mode = none` is a value.
        if field != Field::GraphMode && ABSENT.iter().any(|word| text.eq_ignore_ascii_case(word)) {
            return true;
        }
        let time = |unit| parse_decimal(text.as_bytes(), unit).ok().map(|(ns, _)| ns);
        let span = |unit| time(unit).filter(|ns| *ns >= 0);
        match field {
            Field::Time(unit) => take(&mut self.time, time(unit).map(|ns| Stamp { ns, zoned: true })),
            Field::Stamp => take(&mut self.time, stamp::parse(text)),
            Field::Rank => take(&mut self.rank, text.parse().ok().filter(|rank| *rank < RANKS)),
            Field::Step => take(&mut self.step, text.parse().ok()),
            Field::Platform => take(&mut self.platform, Some(text.to_owned())),
            Field::Batch => take(&mut self.batch, text.parse().ok()),
            Field::PromptLen => take(&mut self.prompt_len, text.parse().ok()),
            // Tokens are whole; a mean of them is taken to the token.
            Field::Context => take(&mut self.context, time(0).and_then(|n| u64::try_from(n).ok())),
            Field::Stage => {
                let (stage, part) = match text.to_ascii_lowercase().as_str() {
                    "prefill" | "extend" => (Stage::Prefill, None),
                    "decode" => (Stage::Decode, None),
                    "step_total" | "step" | "total" => (Stage::Whole, None),
                    other => (Stage::Part, Some(other.to_owned())),
                };
                self.part = part;
                take(&mut self.stage, Some(stage))
            }
            Field::Latency(unit) => take(&mut self.latency, span(unit)),
            Field::GraphMode if matches!(text, "" | "unknown" | "null") => true,
            Field::GraphMode => take(&mut self.graph, GraphMode::parse(text)),
            Field::CompileHit => take(&mut self.compile_hit, truth(text)),
            Field::Compile(unit) => take(&mut self.compile, span(unit)),
            Field::Capture(unit) => take(&mut self.capture, span(unit)),
            Field::Fact(key) => {
                self.facts.push((key, text.to_owned()));
                true
            }
            Field::Counter(counter) => {
                let number =
                    truth(text).map(|yes| f64::from(u8::from(yes))).filter(|_| counter.name == "graph_replayed");
                let Some(value) = number.or_else(|| text.parse().ok()).filter(|v: &f64| v.is_finite()) else {
                    return false;
                };
                self.counters.push((counter, value / f64::from(counter.divisor)));
                true
            }
        }
    }

    /// Whether the line is about how a step ran, which another line times.
    pub fn is_runtime(&self) -> bool {
        !self.times && (self.graph.is_some() || self.compile_hit.is_some())
    }
}

fn take<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    let read = value.is_some();
    *place = value;
    read
}

fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "hit" => Some(true),
        "false" | "0" | "no" | "miss" => Some(false),
        _ => None,
    }
}
