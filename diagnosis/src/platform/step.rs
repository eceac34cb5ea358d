//! Step annotations that serving engines and profilers draw: what a range says of the step it spans.

use regex::{Captures, Regex};

/// Stage mix of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Prompts only.
    Prefill,
    /// One token (or a few speculated ones) per sequence.
    Decode,
    /// Both in one step.
    Mixed,
    /// A training step.
    Train,
    /// The annotation does not say.
    #[default]
    Unknown,
}

impl Stage {
    /// Name in class keys and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Mixed => "mixed",
            Self::Train => "train",
            Self::Unknown => "unknown",
        }
    }
}

/// What an annotation says of its step. A count that the text does not hold is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepLabel {
    /// Who draws it: `vllm`, `sglang`, `tensorrt_llm`, `torch`, `generic`, …
    pub engine: String,
    /// Stage mix.
    pub stage: Stage,
    /// Requests in prefill.
    pub prefill_requests: Option<u32>,
    /// New tokens of the requests in prefill.
    pub prefill_tokens: Option<u32>,
    /// Requests in decode.
    pub decode_requests: Option<u32>,
    /// Tokens of KV cache attended to, summed over the requests of the step.
    pub context_tokens: Option<u64>,
    /// Number of the step.
    pub index: Option<u64>,
    /// Graph mode, in the words of the minimal log: `eager`, `piecewise`, `full`.
    pub graph: Option<String>,
    /// Whether compiled code was found.
    pub compile_hit: Option<bool>,
    /// How closely such ranges follow the engine's step; where several kinds overlap the highest wins.
    pub specificity: u8,
}

/// One kind of annotation.
#[derive(Clone, Debug)]
pub(super) struct StepPattern {
    pub regex: Regex,
    pub engine: String,
    /// Absent where the counts decide.
    pub stage: Option<Stage>,
    pub specificity: u8,
}

impl StepPattern {
    /// The label of `text` if it is of this kind.
    pub fn label(&self, text: &str) -> Option<StepLabel> {
        let found = self.regex.captures(text)?;
        let prefill_requests = number(&found, "prefill_requests");
        let prefill_tokens = number(&found, "prefill_tokens");
        let decode_requests = number(&found, "decode_requests");
        let prefill = prefill_requests.or(prefill_tokens).map(|n: u32| n > 0);
        let decode = decode_requests.map(|n: u32| n > 0);
        let counted = match (prefill, decode) {
            (Some(true), Some(true)) => Stage::Mixed,
            (Some(true), _) => Stage::Prefill,
            (_, Some(true)) => Stage::Decode,
            _ => Stage::Unknown,
        };
        let context = [number(&found, "context_tokens"), number(&found, "more_context_tokens")];
        Some(StepLabel {
            engine: self.engine.clone(),
            stage: self.stage.unwrap_or(counted),
            prefill_requests,
            prefill_tokens,
            decode_requests,
            context_tokens: context.into_iter().flatten().reduce(u64::saturating_add),
            index: number(&found, "index"),
            graph: found.name("graph").map(|mode| mode.as_str().to_owned()),
            compile_hit: found.name("compile").map(|said| said.as_str() == "hit"),
            specificity: self.specificity,
        })
    }
}

/// A captured count; absent when the group is missing or the digits do not fit.
fn number<T: std::str::FromStr>(found: &Captures<'_>, group: &str) -> Option<T> {
    found.name(group)?.as_str().parse().ok()
}
