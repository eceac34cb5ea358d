//! When two values of a field say the same. Every rule is named, so that a report can say by which one.

use model::manifest::{Field, Group, Manifest, PRECISE, SETTLED};

/// How far the lengths of prompts may be apart, percent.
const PROMPT: u8 = 2;
/// How far accuracies may be apart, percent (MLPerf Inference: 99 % of the reference).
const ACCURACY: u8 = 1;
/// How far lengths of answers may be apart, percent (MLPerf Inference: 90–110 % of the reference).
const OUTPUT: u8 = 10;

/// Why two values that are not the same text, or of which one is unknown, say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Two names of one number format.
    SameFormat,
    /// Two spellings of one name, or two paths to it.
    SameName,
    /// Numbers at most so many percent apart.
    Within(u8),
    /// Each was traced, by the profiler of its platform.
    BothTraced,
    /// Both step times are known to have settled.
    BothSettled,
    /// The same time of steps, whose stage one side does not tell.
    SameSteps,
    /// Neither run's numbers diverge from those of its reference.
    BothExact,
    /// Unknown, and another field that is equal leaves no choice.
    Proved(&'static str),
    /// Unknown, and the work of both sides shows that it is the same.
    SameWork,
    /// Unknown, and without meaning for work of this kind.
    Meaningless,
    /// Unknown in two readings of one capture.
    SameCapture,
}

/// What is known of a field on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The same value.
    Equal,
    /// Values that say the same.
    Equivalent(Rule),
    /// Values that do not.
    Different,
    /// A side says nothing.
    Unknown,
}

impl Status {
    /// Key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Equivalent(_) => "equivalent",
            Self::Different => "different",
            Self::Unknown => "unknown",
        }
    }
}

/// The status of a field from its two values.
pub fn status(field: &Field, a: Option<&str>, b: Option<&str>) -> Status {
    let (Some(a), Some(b)) = (a.map(str::trim), b.map(str::trim)) else { return Status::Unknown };
    if a.eq_ignore_ascii_case(b) {
        return Status::Equal;
    }
    let holds = |rule: Rule, it: bool| it.then_some(Status::Equivalent(rule));
    let precise = |text: &str| PRECISE.iter().any(|begins| text.starts_with(begins));
    let found = match (field.key, field.group) {
        ("model.name", _) => holds(Rule::SameName, last_part(a).eq_ignore_ascii_case(last_part(b))),
        ("precision.deviation", _) => holds(Rule::BothExact, precise(a) && precise(b)),
        (_, Group::Precision) => holds(Rule::SameFormat, number_format(a) == number_format(b)),
        ("workload.prompt_len", _) => holds(Rule::Within(PROMPT), within(PROMPT, a, b)),
        ("workload.output_len" | "quality.generated_tokens", _) => holds(Rule::Within(OUTPUT), within(OUTPUT, a, b)),
        ("quality.accuracy" | "quality.token_agreement", _) => holds(Rule::Within(ACCURACY), within(ACCURACY, a, b)),
        ("measurement.metric", _) => holds(Rule::SameSteps, same_steps(a, b)),
        ("measurement.traced", _) => holds(Rule::BothTraced, traced(a) && traced(b)),
        ("warmup.change_point", _) => holds(Rule::BothSettled, a.starts_with(SETTLED) && b.starts_with(SETTLED)),
        _ => None,
    };
    found.unwrap_or(Status::Different)
}

/// A field that says so much that these leave no choice where it is equal.
const PROOFS: &[(&str, &[&str])] = &[
    (
        "model.weight_hash",
        &[
            "model.name",
            "model.revision",
            "model.config_hash",
            "model.layers",
            "model.hidden",
            "model.heads",
            "model.conversion",
        ],
    ),
    ("model.config_hash", &["model.name", "model.layers", "model.hidden", "model.heads"]),
];

/// The field whose equal values prove this one, which is unknown on a side.
pub fn proof(field: &Field, a: &Manifest, b: &Manifest) -> Option<&'static str> {
    let equal = |key: &str| a.value(key).is_some_and(|value| b.value(key) == Some(value));
    PROOFS.iter().find(|(by, proved)| proved.contains(&field.key) && equal(by)).map(|(by, _)| *by)
}

/// The fields that a field proves.
#[cfg(test)]
pub fn proved_by(key: &str) -> &'static [&'static str] {
    PROOFS.iter().find(|(by, _)| *by == key).map_or(&[], |(_, proved)| proved)
}

/// Whether two definitions are of the same time, of steps whose stage one of them does not name.
fn same_steps(a: &str, b: &str) -> bool {
    let parts = |text: &'_ str| text.split_once(' ').map(|(stage, rest)| (stage.to_owned(), rest.to_owned()));
    let open = |stage: &str| matches!(stage, "step" | "mixed");
    parts(a).zip(parts(b)).is_some_and(|((x, of_a), (y, of_b))| of_a == of_b && (open(&x) || open(&y)))
}

/// Whether a value of `measurement.traced` says that a profiler ran.
fn traced(value: &str) -> bool {
    !matches!(value.to_ascii_lowercase().as_str(), "" | "no" | "none" | "untraced" | "false" | "0")
}

fn last_part(name: &str) -> &str {
    name.trim_end_matches('/').rsplit('/').next().unwrap_or(name)
}

/// One spelling for each number format; other words as they are, in small letters.
fn number_format(name: &str) -> String {
    let name = name.trim_start_matches("torch.").to_ascii_lowercase();
    let one = match name.as_str() {
        "bfloat16" | "dt_bf16" | "__nv_bfloat16" => "bf16",
        "float16" | "fp16" | "half" | "dt_float16" => "f16",
        "float32" | "fp32" | "float" | "dt_float" => "f32",
        "fp8_e4m3" | "float8_e4m3fn" | "fp8_e4m3fn" | "e4m3" => "fp8 e4m3",
        "fp8_e5m2" | "float8_e5m2" | "e5m2" => "fp8 e5m2",
        "int8" | "i8" | "dt_int8" => "int8",
        other => other,
    };
    one.to_owned()
}

/// Whether two values begin with numbers of one unit that are at most `percent` apart, measured by the larger one.
fn within(percent: u8, a: &str, b: &str) -> bool {
    let (Some((a, unit)), Some((b, other))) = (number(a), number(b)) else { return false };
    unit == other && (a - b).abs() * 100.0 <= f64::from(percent) * a.abs().max(b.abs())
}

/// A value that is one number, and its unit.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.')).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    Some((digits.parse::<f64>().ok()?, unit.trim()))
}
