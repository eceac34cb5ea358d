//! Exports walked span by span: the collector's batch processor sends 8 192 spans at once by default, which is a line of some
//! 10 MB, and a whole file of them may be one document. Only the span at hand is kept.

use std::{
    fmt,
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Import, Resource, Span};
use crate::{
    Progress, ReadError,
    content::{Content, Meter},
};

/// Reads all exports of a file into `import`; with `lines` there is one on each line, so that a torn one costs itself. Gives what
/// ended the file early, if anything did.
///
/// # Errors
/// [`ReadError`] when the file cannot be opened.
pub(super) fn read(
    path: &Path,
    lines: bool,
    import: &mut Import<'_>,
    progress: Progress<'_>,
) -> Result<Option<String>, ReadError> {
    let (content, meter) = Content::open(path)?;
    let mut content = BufReader::new(content);
    let mut stream = Stream { import, meter: &meter, progress, service: 0 };
    loop {
        let mut document = Document { content: &mut content, lines, over: false };
        let end = stream.exports(&mut document);
        if end.is_err() {
            stream.import.unreadable += 1;
        }
        let read_on = lines && !meter.exceeded() && document.skip(&meter).is_ok();
        if !read_on || content.fill_buf().is_ok_and(<[u8]>::is_empty) {
            let damage = end.err().filter(|_| !lines).map(|error| error.to_string());
            return Ok(meter.damage().or(damage));
        }
    }
}

/// One line of the content, or all of it.
struct Document<'c> {
    content: &'c mut BufReader<Content>,
    lines: bool,
    over: bool,
}

impl Document<'_> {
    /// Passes over what is left of it.
    fn skip(&mut self, meter: &Meter) -> io::Result<()> {
        let mut rest = [0; 4096];
        loop {
            meter.next_piece();
            if self.read(&mut rest)? == 0 {
                return Ok(());
            }
        }
    }
}

impl Read for Document<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.over {
            return Ok(0);
        }
        let rest = self.content.fill_buf()?;
        let rest = rest.get(..buf.len()).unwrap_or(rest);
        let end = memchr::memchr(b'\n', rest).filter(|_| self.lines);
        let taken = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        buf.iter_mut().zip(taken).for_each(|(to, from)| *to = *from);
        let n = taken.len();
        self.over = end.is_some() || rest.is_empty();
        self.content.consume(n + usize::from(end.is_some()));
        // A line that ends where the buffer began is no end of the content.
        Ok(n)
    }
}

struct Stream<'s, 'i> {
    import: &'s mut Import<'i>,
    meter: &'s Meter,
    progress: Progress<'s>,
    /// Number of the service whose spans are read.
    service: u64,
}

impl Stream<'_, '_> {
    /// Reads exports until their text ends.
    fn exports(&mut self, text: &mut Document<'_>) -> Result<(), serde_json::Error> {
        self.meter.next_piece();
        let mut json = serde_json::Deserializer::from_reader(BufReader::new(text));
        while json.end().is_err() {
            Node { stream: self, level: Level::Export }.deserialize(&mut json)?;
        }
        Ok(())
    }
}

/// A level of `ExportTraceServiceRequest`: objects, and the lists between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Export,
    Resources,
    Resource,
    Scopes,
    Scope,
    Spans,
}

struct Node<'n, 's, 'i> {
    stream: &'n mut Stream<'s, 'i>,
    level: Level,
}

impl<'de> DeserializeSeed<'de> for Node<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {:?} of an OTLP export", self.level)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { stream, level } = self;
        if level == Level::Resource {
            stream.service = stream.import.service("");
        }
        stream.meter.next_piece();
        while let Some(key) = map.next_key::<String>()? {
            let below = match (level, key.as_str()) {
                (Level::Export, "resourceSpans") => Some(Level::Resources),
                (Level::Resource, "scopeSpans" | "instrumentationLibrarySpans") => Some(Level::Scopes),
                (Level::Scope, "spans") => Some(Level::Spans),
                _ => None,
            };
            match below {
                Some(level) => map.next_value_seed(Node { stream: &mut *stream, level })?,
                None if level == Level::Resource && key == "resource" => {
                    let raw = map.next_value::<Box<RawValue>>()?;
                    let resource = serde_json::from_str::<Resource>(raw.get()).unwrap_or_default();
                    stream.service = stream.import.service(&resource.service());
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
            stream.meter.next_piece();
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { stream, level } = self;
        let below = match level {
            Level::Resources => Level::Resource,
            Level::Scopes => Level::Scope,
            Level::Spans => return spans(stream, list),
            _ => return Err(A::Error::custom("a list in the place of an object")),
        };
        while list.next_element_seed(Node { stream: &mut *stream, level: below })?.is_some() {
            stream.meter.next_piece();
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

fn spans<'de, A: SeqAccess<'de>>(stream: &mut Stream<'_, '_>, mut list: A) -> Result<(), A::Error> {
    loop {
        stream.meter.next_piece();
        stream.meter.report(stream.progress);
        let Some(raw) = list.next_element::<Box<RawValue>>()? else { return Ok(()) };
        let span = Span::deserialize(&mut serde_json::Deserializer::from_str(raw.get())).unwrap_or_default();
        stream.import.take(stream.service, &span);
    }
}
