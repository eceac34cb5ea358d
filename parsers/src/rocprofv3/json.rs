//! The JSON of rocprofv3: an object per process, with tables of names and then the records that refer to them. Files are
//! single lines of up to gigabytes, so they are walked as they are read and records come one by one.

use std::{fmt, io::BufReader, path::Path};

use model::{Severity, TraceSink};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    import::Import,
    records::{Names, Records},
};
use crate::{
    Place, Progress, ReadError,
    content::{Content, Meter},
};

/// The key of the outermost object, whose value is the list of processes.
const ROOT: &str = "rocprofiler-sdk-tool";
/// Objects below each other that are walked; what lies deeper is part of a record.
const DEPTH: u32 = 4;

/// Whether content begins as rocprofv3's JSON does.
pub(super) fn matches(head: &[u8]) -> bool {
    let Some(rest) = head.trim_ascii_start().strip_prefix(b"{") else { return false };
    let Some(rest) = rest.trim_ascii_start().strip_prefix(b"\"") else { return false };
    rest.strip_prefix(ROOT.as_bytes()).is_some_and(|rest| rest.starts_with(b"\""))
}

/// Reads the file twice: the names first, wherever they stand, then the records.
pub(super) fn read(path: &Path, sink: &mut dyn TraceSink, progress: Progress<'_>) -> Result<(), ReadError> {
    let mut names = Names::default();
    let broken = walk(path, &|_, _| {}, &Names::wants, &mut |process, place, raw| names.take(process, place, raw))?;
    if names.is_empty() {
        return Err(ReadError::Malformed {
            path: path.to_owned(),
            place: Place::File,
            expected: format!("the JSON of rocprofv3 ({})", broken.unwrap_or_else(|| "it holds no process".to_owned())),
            next: "record again with 'rocprofv3 --runtime-trace --output-format json -- COMMAND'".to_owned(),
        });
    }
    let mut import = Import::new(sink);
    names.agents(&mut import.agents);
    let mut records = Records::new(&names);
    let take = &mut |process, place: &str, raw: &str| records.take(&mut import, process, place, raw);
    let broken = walk(path, progress, &Records::wants, take)?;
    records.tell(&mut *import.sink);
    if let Some(why) = broken {
        import.sink.stat("rocprofv3.damaged_file", Severity::DataLoss, 1, Some(&why));
    }
    import.settle();
    Ok(())
}

/// Takes a scalar or an element of a list: the number of its process, the keys that lead to it, and its text.
type Take<'a> = &'a mut dyn FnMut(usize, &str, &str);

/// Walks the whole file; gives what ended it early, if anything did.
fn walk(
    path: &Path,
    progress: Progress<'_>,
    wants: &dyn Fn(&str) -> bool,
    take: Take<'_>,
) -> Result<Option<String>, ReadError> {
    let (content, meter) = Content::open(path)?;
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(content));
    let mut walk = Walk { process: 0, meter: &meter, progress, wants, take };
    let end = Node { walk: &mut walk, place: String::new(), depth: 0 }.deserialize(&mut json);
    Ok(meter.damage().or(end.err().map(|error| error.to_string())))
}

struct Walk<'w> {
    process: usize,
    meter: &'w Meter,
    progress: Progress<'w>,
    wants: &'w dyn Fn(&str) -> bool,
    take: Take<'w>,
}

/// A value of the file, and how it is reached.
struct Node<'n, 'w> {
    walk: &'n mut Walk<'w>,
    place: String,
    depth: u32,
}

impl<'de> DeserializeSeed<'de> for Node<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        if self.depth > DEPTH {
            return value.deserialize_ignored_any(IgnoredAny).map(|_| ());
        }
        value.deserialize_any(self)
    }
}

impl Node<'_, '_> {
    fn scalar<E>(self, text: &str) -> Result<(), E> {
        (self.walk.take)(self.walk.process, &self.place, text);
        Ok(())
    }
}

impl<'de> Visitor<'de> for Node<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.walk.meter.next_piece();
        while let Some(key) = map.next_key::<String>()? {
            let place = if self.depth < 2 { key } else { format!("{}.{key}", self.place) };
            map.next_value_seed(Node { walk: &mut *self.walk, place, depth: self.depth + 1 })?;
            self.walk.meter.next_piece();
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let processes = self.depth == 1 && self.place == ROOT;
        let wanted = (self.walk.wants)(&self.place);
        loop {
            self.walk.meter.next_piece();
            self.walk.meter.report(self.walk.progress);
            let next = if processes {
                let node = Node { walk: &mut *self.walk, place: String::new(), depth: 1 };
                let next = list.next_element_seed(node)?;
                self.walk.process += 1;
                next
            } else if wanted {
                let raw = list.next_element::<Box<RawValue>>()?;
                raw.map(|raw| (self.walk.take)(self.walk.process, &self.place, raw.get()))
            } else {
                list.next_element::<IgnoredAny>()?.map(|_| ())
            };
            if next.is_none() {
                return Ok(());
            }
        }
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.scalar(&value.to_string())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.scalar(&value.to_string())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.scalar(text)
    }
}
