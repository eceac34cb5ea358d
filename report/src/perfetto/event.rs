//! How one event is written: JSON made piece by piece, because a capture has millions of them.

use std::{
    io::{self, Write},
    rc::Rc,
};

use model::{Ns, Span, StringId, Strings};
use rustc_hash::FxHashMap;

use crate::text;

/// Characters of a name that are kept; names of generated kernels reach some thousand.
const NAME: usize = 4096;

/// Which process and thread of the file an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
}

/// Arguments of an event, as the inside of a JSON object.
#[derive(Clone, Debug, Default)]
pub struct Args(String);

impl Args {
    /// Forgets them; the memory is kept for the next event.
    pub fn clear(&mut self) -> &mut Self {
        self.0.clear();
        self
    }

    /// An integer, if it is known. Above 2^53 it is written as text, which no reader rounds.
    pub fn number(&mut self, key: &str, value: impl Into<Option<i64>>) -> &mut Self {
        match value.into() {
            Some(value) if value.unsigned_abs() < 1 << 53 => self.json(key, &value.to_string()),
            Some(value) => self.json(key, &format!("\"{value}\"")),
            None => self,
        }
    }

    /// Text, possibly from the capture, if it is known.
    pub fn text<'a>(&mut self, key: &str, value: impl Into<Option<&'a str>>) -> &mut Self {
        match value.into() {
            Some(value) => self.json(key, &quoted(value)),
            None => self,
        }
    }

    /// An integer under a name from the capture.
    pub fn named(&mut self, name: &str, value: i64) -> &mut Self {
        let name = quoted(name);
        self.comma();
        self.0.extend([&name, ":", &value.to_string()]);
        self
    }

    /// JSON that is known to be sound; `key` needs no escape.
    pub fn json(&mut self, key: &str, value: &str) -> &mut Self {
        self.comma();
        self.0.extend(["\"", key, "\":", value]);
        self
    }

    fn comma(&mut self) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
    }

    /// The object.
    pub fn object(&self) -> String {
        format!("{{{}}}", self.0)
    }
}

/// Text as a JSON string: cut where it is endless, and without characters that act on whoever looks at it.
pub fn quoted(value: &str) -> String {
    serde_json::Value::from(text::plain(value, NAME)).to_string()
}

/// Names of a capture as JSON strings; each is escaped once.
pub struct Names<'a> {
    strings: &'a Strings,
    quoted: FxHashMap<StringId, Rc<str>>,
}

impl<'a> Names<'a> {
    /// Those of a capture.
    pub fn of(strings: &'a Strings) -> Self {
        Self { strings, quoted: FxHashMap::default() }
    }

    /// One of them.
    pub fn get(&mut self, id: StringId) -> Rc<str> {
        self.quoted.entry(id).or_insert_with(|| quoted(self.strings.get(id)).into()).clone()
    }
}

/// Which end of a link an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It starts here.
    From,
    /// It ends here.
    To,
}

/// One slice.
pub struct Slice<'a> {
    /// From when to when.
    pub span: Span,
    /// Name as a JSON string.
    pub name: &'a str,
    /// Category.
    pub category: &'static str,
    /// Link that starts or ends here.
    pub link: Option<(u64, End)>,
    /// Arguments.
    pub args: &'a Args,
}

/// The file as far as it is written.
pub struct Events<'a> {
    out: &'a mut dyn Write,
    first: bool,
    /// Asynchronous slices so far, for their ids.
    asynchronous: u64,
}

impl<'a> Events<'a> {
    /// Begins the file. Whoever reads it back finds the mark of simulated traces where our other writers put it.
    pub fn begin(out: &'a mut dyn Write, about: &serde_json::Value, simulated: bool) -> io::Result<Self> {
        let mark = if simulated { "\"stratoSimulated\":true," } else { "" };
        write!(out, "{{\"displayTimeUnit\":\"ns\",{mark}\"otherData\":{about},\"traceEvents\":[")?;
        Ok(Self { out, first: true, asynchronous: 0 })
    }

    /// Ends the file.
    pub fn end(self) -> io::Result<()> {
        self.out.write_all(b"\n]}\n")
    }

    fn event(&mut self) -> io::Result<&mut dyn Write> {
        self.out.write_all(if self.first { b"\n" } else { b",\n" })?;
        self.first = false;
        Ok(self.out)
    }

    /// Names a process and gives it a place in the order.
    pub fn process(&mut self, pid: u32, name: &str) -> io::Result<()> {
        let name = quoted(name);
        let out = self.event()?;
        write!(out, r#"{{"ph":"M","pid":{pid},"name":"process_name","args":{{"name":{name}}}}}"#)?;
        let out = self.event()?;
        write!(out, r#"{{"ph":"M","pid":{pid},"name":"process_sort_index","args":{{"sort_index":{pid}}}}}"#)
    }

    /// Names a thread and gives it a place in the order.
    pub fn thread(&mut self, Place { pid, tid }: Place, name: &str, order: u32) -> io::Result<()> {
        let name = quoted(name);
        let out = self.event()?;
        write!(out, r#"{{"ph":"M","pid":{pid},"tid":{tid},"name":"thread_name","args":{{"name":{name}}}}}"#)?;
        let out = self.event()?;
        write!(
            out,
            r#"{{"ph":"M","pid":{pid},"tid":{tid},"name":"thread_sort_index","args":{{"sort_index":{order}}}}}"#
        )
    }

    /// A slice of a thread, which must nest with the others there.
    pub fn slice(&mut self, Place { pid, tid }: Place, slice: &Slice<'_>) -> io::Result<()> {
        let out = self.event()?;
        let (name, category, args) = (slice.name, slice.category, &slice.args.0);
        write!(out, r#"{{"ph":"X","pid":{pid},"tid":{tid},"ts":"#)?;
        micros(out, slice.span.start)?;
        out.write_all(br#","dur":"#)?;
        micros(out, slice.span.len())?;
        if let Some((link, end)) = slice.link {
            let end = if end == End::From { "flow_out" } else { "flow_in" };
            write!(out, r#","bind_id":"{link:#x}","{end}":true"#)?;
        }
        write!(out, r#","cat":"{category}","name":{name},"args":{{{args}}}}}"#)
    }

    /// A slice that has a track of its own, beside the threads of its process.
    pub fn asynchronous(&mut self, Place { pid, tid }: Place, slice: &Slice<'_>) -> io::Result<()> {
        self.asynchronous += 1;
        let id = self.asynchronous;
        let (name, category, args) = (slice.name, slice.category, &slice.args.0);
        for (phase, at) in [("b", slice.span.start), ("e", slice.span.end)] {
            let out = self.event()?;
            write!(out, r#"{{"ph":"{phase}","pid":{pid},"tid":{tid},"id2":{{"local":"{id:#x}"}},"ts":"#)?;
            micros(out, at)?;
            write!(out, r#","cat":"{category}","name":{name},"args":{{{args}}}}}"#)?;
        }
        Ok(())
    }

    /// One end of a link that the source recorded; it belongs to the innermost slice of the thread at that time.
    pub fn link(&mut self, Place { pid, tid }: Place, id: u64, end: End, at: Ns, kind: &str) -> io::Result<()> {
        let phase = if end == End::From { r#""s""# } else { r#""f","bp":"e""# };
        let out = self.event()?;
        write!(out, r#"{{"ph":{phase},"pid":{pid},"tid":{tid},"id":{id},"cat":"flow","name":{kind},"ts":"#)?;
        micros(out, at)?;
        out.write_all(b"}")
    }

    /// A sample of a counter; `name` and `unit` are JSON strings.
    pub fn sample(&mut self, pid: u32, name: &str, unit: &str, at: Ns, value: f64) -> io::Result<()> {
        let out = self.event()?;
        write!(out, r#"{{"ph":"C","pid":{pid},"name":{name},"ts":"#)?;
        micros(out, at)?;
        write!(out, r#","args":{{{unit}:{}}}}}"#, serde_json::Value::from(value))
    }
}

/// A time in µs with three decimals; the nanoseconds never pass through floating point.
fn micros(out: &mut dyn Write, ns: Ns) -> io::Result<()> {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    write!(out, "{sign}{}.{:03}", ns / 1000, ns % 1000)
}
