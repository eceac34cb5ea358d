//! What the tables of one capture say of those that refer to them.

use model::Severity;
use rustc_hash::FxHashMap;

use super::super::import::Import;

/// What is known of an event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Event {
    /// String with the name of its category.
    pub category: Option<i64>,
    /// What ties a call to the work it caused.
    pub correlation: Option<i64>,
}

/// What a row leaves to its track, from schema 4.1 on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Track {
    pub pid: Option<i64>,
    pub tid: Option<i64>,
    pub agent: Option<i64>,
    pub queue: Option<i64>,
    pub stream: Option<i64>,
}

/// Names and ids of one capture.
pub(super) struct State<'s, 'a> {
    pub import: &'s mut Import<'a>,
    pub strings: FxHashMap<i64, Box<str>>,
    pub processes: FxHashMap<i64, i64>,
    pub threads: FxHashMap<i64, i64>,
    /// Device number of each agent.
    pub agents: FxHashMap<i64, i32>,
    pub kernels: FxHashMap<i64, Box<str>>,
    pub tracks: FxHashMap<i64, Track>,
    pub events: FxHashMap<i64, Event>,
    /// Text of markers, by event.
    pub messages: FxHashMap<i64, Box<str>>,
    /// Direction and bytes that calls ask for, by event.
    pub asked: FxHashMap<i64, (Option<&'static str>, Option<i64>)>,
    pub unnamed: u64,
    text_left: u64,
    refused: u64,
}

impl<'s, 'a> State<'s, 'a> {
    pub fn new(import: &'s mut Import<'a>, bytes: u64) -> Self {
        Self {
            import,
            strings: FxHashMap::default(),
            processes: FxHashMap::default(),
            threads: FxHashMap::default(),
            agents: FxHashMap::default(),
            kernels: FxHashMap::default(),
            tracks: FxHashMap::default(),
            events: FxHashMap::default(),
            messages: FxHashMap::default(),
            asked: FxHashMap::default(),
            unnamed: 0,
            text_left: bytes.saturating_mul(2),
            refused: 0,
        }
    }

    /// The text, unless more has been kept than the file can honestly hold: a damaged file can let many rows share one
    /// long text.
    pub fn kept(&mut self, text: &str) -> Option<Box<str>> {
        match self.text_left.checked_sub(text.len() as u64) {
            Some(left) => {
                self.text_left = left;
                Some(text.into())
            }
            None => {
                self.refused += 1;
                None
            }
        }
    }

    /// Tells what could not be kept or named.
    pub fn settle(self) {
        for (name, severity, count) in [
            ("rocprofv3.text_beyond_file", Severity::DataLoss, self.refused),
            ("rocprofv3.missing_name", Severity::Notice, self.unnamed),
        ] {
            if count > 0 {
                self.import.sink.stat(name, severity, count, None);
            }
        }
    }
}
