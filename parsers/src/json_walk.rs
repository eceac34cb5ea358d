//! A JSON file walked as it is read: files are single lines of up to gigabytes, so the elements of its long lists come one
//! by one and nothing of them is kept.

use std::{
    fmt,
    io::{BufRead, BufReader},
    path::Path,
};

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    Progress, ReadError,
    content::{Content, Meter},
};

/// Objects and lists below each other that are walked; what lies deeper is part of an element.
const DEPTH: u32 = 4;

/// What becomes of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// Its elements are passed over.
    Skip,
    /// Its elements are given as text.
    Give,
    /// Its elements are walked, each with a number of its own and as if it were the whole file.
    Enter,
}

/// Takes a scalar or an element of a list: the number of the entered element it is in, the keys that lead to it joined by
/// dots, and its text.
pub(crate) type Take<'a> = &'a mut dyn FnMut(usize, &str, &str);

/// Walks the whole file; gives what ended it early, if anything did.
///
/// # Errors
/// [`ReadError`] when the file cannot be opened.
pub(crate) fn walk(
    path: &Path,
    progress: Progress<'_>,
    list: &dyn Fn(&str) -> List,
    take: Take<'_>,
) -> Result<Option<String>, ReadError> {
    let (content, meter) = Content::open(path)?;
    let mut walk = Walk { entered: 0, meter: &meter, progress, list, take };
    Ok(documents(BufReader::new(content), &meter, |json| {
        Node { walk: &mut walk, place: String::new(), depth: 0 }.deserialize(json)
    }))
}

/// A deserializer of one document of a file.
type Json<'r> = serde_json::Deserializer<serde_json::de::IoRead<&'r mut BufReader<Content>>>;

/// Gives every document of a file to `read`, one after the other as `cat` joins them; gives what ended it early: an error within
/// a document, or anything else that follows one, with its size.
fn documents(
    mut reader: BufReader<Content>,
    meter: &Meter,
    mut read: impl FnMut(&mut Json<'_>) -> Result<(), serde_json::Error>,
) -> Option<String> {
    loop {
        let end = read(&mut serde_json::Deserializer::from_reader(&mut reader));
        if let Some(damage) = meter.damage().or(end.err().map(|error| error.to_string())) {
            return Some(damage);
        }
        match follows(&mut reader, meter) {
            Some(b'{' | b'[') => {}
            Some(_) => return Some(format!("{} bytes after the end of the document", rest(&mut reader, meter))),
            None => return meter.damage(),
        }
    }
}

/// The first byte that is no blank, which stays unread; `None` at the end.
fn follows(reader: &mut BufReader<Content>, meter: &Meter) -> Option<u8> {
    loop {
        meter.next_piece();
        let bytes = reader.fill_buf().ok().filter(|bytes| !bytes.is_empty())?;
        let blank = bytes.iter().take_while(|b| b.is_ascii_whitespace() || **b == 0).count();
        let next = bytes.get(blank).copied();
        reader.consume(blank);
        if next.is_some() {
            return next;
        }
    }
}

/// Bytes to the end.
fn rest(reader: &mut BufReader<Content>, meter: &Meter) -> u64 {
    let mut count = 0;
    loop {
        meter.next_piece();
        let Some(left) = reader.fill_buf().ok().map(<[u8]>::len).filter(|left| *left > 0) else { return count };
        reader.consume(left);
        count += left as u64;
    }
}

/// Takes the text of each value that lies under `depth` keys of a file of nested objects, with those keys; gives what ended the
/// file early, if anything did.
///
/// # Errors
/// [`ReadError`] when the file cannot be opened.
pub(crate) fn leaves(
    path: &Path,
    depth: usize,
    progress: Progress<'_>,
    take: &mut dyn FnMut(&[String], &str),
) -> Result<Option<String>, ReadError> {
    let (content, meter) = Content::open(path)?;
    let mut keys = Vec::with_capacity(depth);
    let mut leaf = |keys: &[String], text: &str| {
        take(keys, text);
        meter.next_piece();
        meter.report(progress);
    };
    Ok(documents(BufReader::new(content), &meter, |json| {
        keys.clear();
        Nested { keys: &mut keys, depth, take: &mut leaf }.deserialize(json)
    }))
}

/// Objects within objects, down to `depth` keys.
struct Nested<'n> {
    keys: &'n mut Vec<String>,
    depth: usize,
    take: &'n mut dyn FnMut(&[String], &str),
}

impl<'de> DeserializeSeed<'de> for Nested<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        if self.keys.len() < self.depth {
            return value.deserialize_map(self);
        }
        let raw = Box::<RawValue>::deserialize(value)?;
        (self.take)(self.keys, raw.get());
        Ok(())
    }
}

impl<'de> Visitor<'de> for Nested<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.keys.push(key);
            map.next_value_seed(Nested { keys: &mut *self.keys, depth: self.depth, take: &mut *self.take })?;
            self.keys.pop();
        }
        Ok(())
    }
}

struct Walk<'w> {
    entered: usize,
    meter: &'w Meter,
    progress: Progress<'w>,
    list: &'w dyn Fn(&str) -> List,
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
        (self.walk.take)(self.walk.entered, &self.place, text);
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
            let place = if self.place.is_empty() { key } else { format!("{}.{key}", self.place) };
            map.next_value_seed(Node { walk: &mut *self.walk, place, depth: self.depth + 1 })?;
            self.walk.meter.next_piece();
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let kind = (self.walk.list)(&self.place);
        loop {
            self.walk.meter.next_piece();
            self.walk.meter.report(self.walk.progress);
            let next = match kind {
                List::Enter => {
                    let node = Node { walk: &mut *self.walk, place: String::new(), depth: self.depth + 1 };
                    let next = list.next_element_seed(node)?;
                    self.walk.entered += 1;
                    next
                }
                List::Give => {
                    let raw = list.next_element::<Box<RawValue>>()?;
                    raw.map(|raw| (self.walk.take)(self.walk.entered, &self.place, raw.get()))
                }
                List::Skip => list.next_element::<IgnoredAny>()?.map(|_| ()),
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn walked(content: &str) -> (Vec<String>, Option<String>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.json");
        std::fs::write(&path, content).unwrap();
        let mut taken = Vec::new();
        let end = walk(&path, &|_, _| {}, &|_| List::Give, &mut |_, place, text| taken.push(format!("{place}={text}")));
        (taken, end.unwrap())
    }

    #[test]
    fn every_document_is_walked_and_what_else_follows_is_told_with_its_size() {
        assert_eq!(walked("{\"a\":[1]}\n{\"a\":[2]} [3]\n"), (["a=1", "a=2", "=3"].map(str::to_owned).to_vec(), None));
        let (taken, end) = walked("{\"a\":[1]}\nwhat else\n");
        assert_eq!((taken.len(), end.as_deref()), (1, Some("10 bytes after the end of the document")));
        assert!(walked("{\"a\":[1]}{\"a\":[2]").1.unwrap().contains("EOF"));
    }
}
