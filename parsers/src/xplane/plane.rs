//! One plane: its name, the tables of names that its events refer to, its facts, and its lines as they stand in the file.

use rustc_hash::FxHashMap;

use super::wire::{Fields, Value};

/// Fields of `XPlane`.
const NAME: u64 = 2;
const LINES: u64 = 3;
const EVENT_NAMES: u64 = 4;
const STAT_NAMES: u64 = 5;
const STATS: u64 = 6;
/// Fields of an entry of a map.
const KEY: u64 = 1;
const VALUE: u64 = 2;
/// Fields of `XEventMetadata` and `XStatMetadata`.
const METADATA_NAME: u64 = 2;
const DISPLAY_NAME: u64 = 4;
const METADATA_STATS: u64 = 5;

/// A plane of a space.
#[derive(Default)]
pub(super) struct Plane<'a> {
    pub name: &'a str,
    pub lines: Vec<&'a [u8]>,
    /// Names of events by their ids.
    pub events: FxHashMap<i64, &'a str>,
    /// What the table of names says of events, by the same ids.
    about: FxHashMap<i64, &'a [u8]>,
    /// Names of facts by their ids, which are also texts that facts refer to.
    pub texts: FxHashMap<i64, &'a str>,
    stats: Vec<&'a [u8]>,
    /// Whether something of it ended too early.
    pub broken: bool,
}

/// A fact of an event, line or plane.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fact<'a> {
    Number(i64),
    Text(&'a str),
}

impl<'a> Fact<'a> {
    pub fn number(self) -> Option<i64> {
        match self {
            Self::Number(value) => Some(value),
            Self::Text(text) => text.trim().parse().ok(),
        }
    }

    pub fn text(self) -> Option<&'a str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

impl<'a> Plane<'a> {
    /// The plane in these bytes.
    pub fn of(bytes: &'a [u8]) -> Self {
        let mut plane = Self::default();
        let mut fields = Fields::of(bytes);
        for (field, value) in fields.by_ref() {
            match (field, value.bytes()) {
                (NAME, Some(_)) => plane.name = value.text().unwrap_or_default(),
                (LINES, Some(line)) => plane.lines.push(line),
                (STATS, Some(stat)) => plane.stats.push(stat),
                (EVENT_NAMES, Some(entry)) => {
                    plane.events.extend(named(entry));
                    plane.about.extend(described(entry));
                }
                (STAT_NAMES, Some(entry)) => plane.texts.extend(named(entry)),
                _ => {}
            }
        }
        plane.broken = fields.broken;
        plane
    }

    /// The name and value of a fact (`XStat`).
    pub fn fact(&self, stat: &'a [u8]) -> Option<(&'a str, Fact<'a>)> {
        let (mut name, mut fact) = (None, None);
        for (field, value) in Fields::of(stat) {
            match (field, value) {
                (1, Value::Int(_)) => name = self.texts.get(&value.int()?).copied(),
                (3 | 4, Value::Int(_)) => fact = value.int().map(Fact::Number),
                (5, Value::Bytes(_)) => fact = value.text().map(Fact::Text),
                (7, Value::Int(_)) => fact = self.texts.get(&value.int()?).copied().map(Fact::Text),
                _ => {}
            }
        }
        name.zip(fact)
    }

    /// The category of the instruction whose name has this id: `convolution fusion`.
    pub fn category(&self, id: i64) -> Option<&'a str> {
        let facts = Fields::of(self.about.get(&id)?).filter(|(field, _)| *field == METADATA_STATS);
        let mut facts = facts.filter_map(|(_, value)| self.fact(value.bytes()?));
        facts.find(|(name, _)| *name == "hlo_category").and_then(|(_, fact)| fact.text())
    }

    /// The plane's own fact with this name.
    pub fn own(&self, name: &str) -> Option<Fact<'a>> {
        self.stats.iter().filter_map(|stat| self.fact(stat)).find(|(known, _)| *known == name).map(|(_, fact)| fact)
    }
}

/// The id and name in an entry of a table of names.
fn named(entry: &[u8]) -> Option<(i64, &str)> {
    let (mut id, mut name, mut display) = (0, "", "");
    for (field, value) in Fields::of(entry) {
        match (field, value) {
            (KEY, Value::Int(_)) => id = value.int()?,
            (VALUE, Value::Bytes(metadata)) => {
                for (field, value) in Fields::of(metadata) {
                    match field {
                        METADATA_NAME => name = value.text()?,
                        DISPLAY_NAME => display = value.text().unwrap_or_default(),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Some((id, if name.is_empty() { display } else { name }))
}

/// The id and the description in an entry of a table of names.
fn described(entry: &[u8]) -> Option<(i64, &[u8])> {
    let id = Fields::of(entry).find(|(field, _)| *field == KEY).and_then(|(_, value)| value.int());
    let about = Fields::of(entry).find(|(field, _)| *field == VALUE).and_then(|(_, value)| value.bytes())?;
    Some((id.unwrap_or(0), about))
}
