//! One event of a Chrome trace as programs write it that put numbers in quotes and add arguments of their own: the fields of
//! the Trace Event Format, each in whatever type it comes. Kineto's events, which come by the million, are read elsewhere.

use model::Ns;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// The fields of an event; what is absent is empty.
#[derive(Debug, Deserialize)]
pub(crate) struct Event<'a> {
    #[serde(default)]
    pub ph: String,
    #[serde(default)]
    pub cat: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub pid: Value,
    #[serde(default)]
    pub tid: Value,
    #[serde(borrow)]
    pub ts: Option<&'a RawValue>,
    #[serde(borrow)]
    pub dur: Option<&'a RawValue>,
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    #[serde(default)]
    pub args: FxHashMap<String, Value>,
}

/// A number that is written as one or as text.
pub(crate) fn int(value: Option<&Value>) -> Option<i64> {
    match value? {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_i64(),
    }
}

/// A number, or that at the end of a name such as `Thread77`.
pub(crate) fn ordinal(value: &Value) -> Option<i64> {
    int(Some(value)).or_else(|| {
        let text = value.as_str()?;
        text.get(text.trim_end_matches(|c: char| c.is_ascii_digit()).len()..)?.parse().ok()
    })
}

/// A time in µs, with whatever decimals it has and possibly as text, as ns.
pub(crate) fn micros(value: Option<&RawValue>) -> Option<Ns> {
    let text = value?.get().trim_matches('"');
    model::time::parse_decimal(text.as_bytes(), 3).ok().map(|(ns, _)| ns)
}

impl Event<'_> {
    /// The event's lane and row, as their numbers.
    pub fn place(&self) -> (i64, i64) {
        (int(Some(&self.pid)).unwrap_or(-1), int(Some(&self.tid)).unwrap_or(-1))
    }

    /// An argument that is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.args.get(name).and_then(Value::as_str)
    }

    /// Start and end: exact ns where the arguments have them, as in rocprof.
    pub fn times(&self) -> Option<(Ns, Ns)> {
        let exact = int(self.args.get("BeginNs")).zip(int(self.args.get("EndNs")));
        exact.or_else(|| {
            let start = micros(self.ts)?;
            Some((start, start.saturating_add(micros(self.dur)?)))
        })
    }

    /// The first of these arguments that is a number.
    pub fn arg(&self, names: &[&str]) -> Option<i64> {
        names.iter().find_map(|name| int(self.args.get(*name)))
    }
}
