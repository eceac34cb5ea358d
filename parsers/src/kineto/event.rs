//! One event as it stands in the file: its own fields and the few arguments that mean something to us. Everything else
//! is skipped unread.

use crate::json::{Cursor, Fault, Text, Value};

/// Whose an event is: process or thread ids are numbers, numbers in quotes, or words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Owner<'a> {
    /// The event names none.
    #[default]
    None,
    /// A number.
    Int(i64),
    /// Words such as `Spans`.
    Text(Text<'a>),
}

impl<'a> Owner<'a> {
    fn of(value: Value<'a>) -> Self {
        match (value.int(), value) {
            (Some(id), _) => Self::Int(id),
            (None, Value::Text(text)) => {
                // The 2021 files write `"tid": "stream 7"`.
                let stream = text.raw.strip_prefix(b"stream ").and_then(crate::json::integer);
                stream.map_or(Self::Text(text), Self::Int)
            }
            // A number beyond those that we count with still tells its thread from others.
            (None, Value::Scalar(raw)) if !raw.is_empty() && raw.iter().all(u8::is_ascii_digit) => {
                Self::Text(Text { raw, escaped: false })
            }
            _ => Self::None,
        }
    }

    /// The words, if it has any.
    pub fn words(self) -> Option<&'a [u8]> {
        if let Self::Text(text) = self { Some(text.raw) } else { None }
    }

    /// The number, if it is one.
    pub fn int(self) -> Option<i64> {
        match self {
            Self::Int(id) => Some(id),
            _ => None,
        }
    }
}

/// The fields of one event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Event<'a> {
    /// First letter of the phase, 0 when there is none.
    pub phase: u8,
    /// Category.
    pub cat: Option<Text<'a>>,
    /// Name.
    pub name: Option<Text<'a>>,
    /// Process, or device ordinal of device events.
    pub pid: Owner<'a>,
    /// Thread, or stream of device events.
    pub tid: Owner<'a>,
    /// Timestamp, µs.
    pub ts: Option<Value<'a>>,
    /// Duration, µs.
    pub dur: Option<Value<'a>>,
    /// Id of a flow.
    pub id: Option<i64>,
    /// Arguments.
    pub args: Args<'a>,
}

/// The arguments that are read. Names in the source stand beside them in [`Args::read`].
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // the fields are the source's own
pub(super) struct Args<'a> {
    /// The object as a whole.
    pub raw: Option<&'a [u8]>,
    pub correlation: Option<i64>,
    pub external: Option<i64>,
    pub device: Option<i64>,
    pub context: Option<i64>,
    pub stream: Option<i64>,
    pub bytes: Option<i64>,
    pub direction: Option<Text<'a>>,
    pub copy_kind: Option<i64>,
    pub launched: Option<Text<'a>>,
    pub graph: Option<i64>,
    pub graph_node: Option<i64>,
    pub grid: Option<[u32; 3]>,
    pub block: Option<[u32; 3]>,
    pub dims: Option<&'a [u8]>,
    pub types: Option<&'a [u8]>,
    pub sync_kind: Option<Text<'a>>,
    pub label: Option<Text<'a>>,
    pub device_type: Option<i64>,
    pub device_id: Option<i64>,
    pub total_allocated: Option<i64>,
    pub collective: Option<Text<'a>>,
    pub dtype: Option<Text<'a>>,
    pub in_elements: Option<i64>,
    pub out_elements: Option<i64>,
    pub group: Option<Text<'a>>,
    pub group_size: Option<i64>,
    pub seq: Option<i64>,
    /// A value that had another type than the writers give it.
    pub odd: Option<Text<'a>>,
}

impl<'a> Event<'a> {
    /// Reads the event that the cursor stands on.
    pub fn read(cursor: &mut Cursor<'a>) -> Result<Self, Fault> {
        let mut event = Self::default();
        cursor.object(|key, cursor| {
            if key.raw == b"args" {
                return event.args.read(cursor);
            }
            let value = cursor.value()?;
            match key.raw {
                b"ph" => event.phase = value.text().and_then(|t| t.raw.first().copied()).unwrap_or(0),
                b"cat" => event.cat = value.text(),
                b"name" => event.name = value.text(),
                b"pid" => event.pid = Owner::of(value),
                b"tid" => event.tid = Owner::of(value),
                b"ts" => event.ts = Some(value),
                b"dur" => event.dur = Some(value),
                b"id" => event.id = value.int(),
                _ => {}
            }
            Ok(())
        })?;
        Ok(event)
    }
}

impl<'a> Args<'a> {
    fn read(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Fault> {
        if cursor.peek()? != b'{' {
            if !cursor.value()?.is_absent() {
                self.odd = Some(Text { raw: b"args", escaped: false });
            }
            return Ok(());
        }
        let start = cursor.clone();
        cursor.object(|key, cursor| {
            let value = cursor.value()?;
            self.member(key, value);
            Ok(())
        })?;
        self.raw = Some(start.until(cursor));
        Ok(())
    }

    fn member(&mut self, key: Text<'a>, value: Value<'a>) {
        let field = match key.raw {
            b"correlation" | b"correlationId" => &mut self.correlation,
            b"External id" => &mut self.external,
            b"device" => &mut self.device,
            b"context" | b"Context" => &mut self.context,
            b"stream" => &mut self.stream,
            b"bytes" | b"size" => &mut self.bytes,
            b"graph id" | b"tasktopo" | b"graph" => &mut self.graph,
            b"graph node id" | b"tasktopo_node" | b"graph node" => &mut self.graph_node,
            b"Device Type" => &mut self.device_type,
            b"Device Id" => &mut self.device_id,
            b"Total Allocated" => &mut self.total_allocated,
            b"In msg nelems" => &mut self.in_elements,
            b"Out msg nelems" => &mut self.out_elements,
            b"Group size" => &mut self.group_size,
            b"Seq" => &mut self.seq,
            _ => return self.other_member(key, value),
        };
        *field = value.int();
        // A context may be a handle in hexadecimal; that is its spelling, not an oddity.
        if field.is_none() && !value.is_absent() && !matches!(key.raw, b"context" | b"Context") {
            self.odd = Some(key);
        }
    }

    fn other_member(&mut self, key: Text<'a>, value: Value<'a>) {
        match key.raw {
            b"grid" => self.grid = triple(value),
            b"block" => self.block = triple(value),
            b"dimx" | b"dimy" | b"dimz" => {
                let axis = usize::from(key.raw.last().map_or(0, |b| b.saturating_sub(b'x')));
                let size = value.int().and_then(|size| u32::try_from(size).ok());
                if let (Some(size), Some(slot)) = (size, self.grid.get_or_insert([1; 3]).get_mut(axis)) {
                    *slot = size;
                }
            }
            b"Input Dims" | b"Input dims" => self.dims = container(value),
            b"Input type" => self.types = container(value),
            b"cuda_sync_kind" | b"musa_sync_kind" => self.sync_kind = value.text(),
            b"direction" => self.direction = value.text(),
            b"kind" => self.copy_kind = value.int(),
            b"kernel" => self.launched = value.text(),
            b"name" | b"labels" => self.label = value.text(),
            b"Collective name" => self.collective = value.text(),
            b"dtype" => self.dtype = value.text(),
            b"Process Group Name" => self.group = value.text(),
            _ => {}
        }
    }
}

fn container(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::Container(raw) => Some(raw),
        _ => None,
    }
}

/// Three sizes of an array `[x, y, z]`.
fn triple(value: Value<'_>) -> Option<[u32; 3]> {
    let inside = container(value)?.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let mut sizes =
        inside.split(|b| *b == b',').map(|part| u32::try_from(crate::json::integer(part.trim_ascii())?).ok());
    let triple = [sizes.next()??, sizes.next()??, sizes.next()??];
    sizes.next().is_none().then_some(triple)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn event(text: &str) -> Event<'_> {
        Event::read(&mut Cursor::new(text.as_bytes(), 0)).unwrap()
    }

    #[test]
    fn a_2021_kernel() {
        let e = event(
            r#"{"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 1623142623531625, "dur": 2,
            "args": {"queued": 0, "device": 0, "stream": 7, "correlation": 34441, "external id": 544, "blocks per SM": "inf",
            "grid": [50, 1, 1], "block": [256, 1, 1]}}"#,
        );
        assert_eq!((e.phase, e.tid, e.args.correlation), (b'X', Owner::Int(7), Some(34441)));
        assert_eq!((e.args.grid, e.args.block), (Some([50, 1, 1]), Some([256, 1, 1])));
        assert!(e.args.odd.is_none());
    }

    #[test]
    fn wrong_types_are_absent_and_told() {
        let e = event(
            r#"{"ph": 5, "name": null, "pid": "Spans", "tid": {}, "args": {"correlation": "abc", "grid": [1, 2]}}"#,
        );
        assert_eq!((e.phase, e.name, e.args.correlation, e.args.grid), (0, None, None, None));
        assert_eq!((e.pid, e.tid), (Owner::Text(Text { raw: b"Spans", escaped: false }), Owner::None));
        assert_eq!(e.args.odd.unwrap().raw, b"correlation");
        assert_eq!(event(r#"{"args": 7}"#).args.odd.unwrap().raw, b"args");
    }
}
