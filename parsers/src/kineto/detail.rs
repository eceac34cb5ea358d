//! The details of slices: launch shapes, copies, waits, operator shapes and collectives.

use model::{Category, CollectiveCall, CopyDetail, Detail, KernelDetail, OpDetail, SyncKind};

use super::{builder::BatchBuilder, event::Event};
use crate::json::{Cursor, Text};

/// The detail of an event of `category`, its texts numbered by `texts`.
pub(super) fn of<'a>(category: Category, event: &Event<'a>, texts: &mut BatchBuilder<'a>) -> Option<Detail> {
    match category {
        Category::Kernel | Category::GraphExec => kernel(event, texts).map(Detail::Kernel),
        Category::Memcpy => Some(Detail::Copy(copy(event, texts))),
        Category::Memset => {
            let graph_node = node(event);
            (event.args.bytes.is_some() || graph_node.is_some())
                .then(|| Detail::Copy(CopyDetail { bytes: event.args.bytes, graph_node, ..CopyDetail::default() }))
        }
        Category::HostApi => called(event, texts).map(Detail::Copy).or_else(|| {
            // roctracer's launch calls name their kernel; those of CUPTI do not.
            let kernel = event.args.launched.filter(|name| !name.raw.is_empty())?;
            Some(Detail::Launch(texts.string(kernel)))
        }),
        Category::DeviceSync => sync(event).map(Detail::Sync),
        Category::FrameworkOp | Category::UserRange | Category::CollectiveCall => match collective(event, texts) {
            Some(call) => Some(Detail::Collective(Box::new(call))),
            None => op(event, texts).map(Detail::Op),
        },
        _ => None,
    }
}

/// Names and values of a counter event. One value carries the counter's own name; several add theirs.
pub(super) fn series(event: &Event<'_>) -> Vec<(String, f64)> {
    let mut values = Vec::new();
    let read = Cursor::new(event.args.raw.unwrap_or_default(), 0).object(|key, cursor| {
        let number = cursor.value()?.number().and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<f64>().ok());
        if let Some(number) = number.filter(|number| number.is_finite()) {
            values.push((key, number));
        }
        Ok(())
    });
    if read.is_err() {
        return Vec::new();
    }
    let name = event.name.map(|name| name.decode().0.into_owned()).unwrap_or_default();
    let alone = values.len() == 1;
    let full =
        |key: Text<'_>| if alone && !name.is_empty() { name.clone() } else { format!("{name}.{}", key.decode().0) };
    values.into_iter().map(|(key, value)| (full(key), value)).collect()
}

/// Graph of a graph node; 0 is how the profilers say that there is none.
fn graph(event: &Event<'_>) -> Option<i64> {
    event.args.graph.filter(|id| *id != 0)
}

fn node(event: &Event<'_>) -> Option<i64> {
    event.args.graph_node.filter(|id| *id != 0 || graph(event).is_some())
}

fn kernel<'a>(event: &Event<'a>, texts: &mut BatchBuilder<'a>) -> Option<KernelDetail> {
    let detail = KernelDetail {
        graph: graph(event),
        graph_node: node(event),
        grid: event.args.grid,
        block: event.args.block,
        collective: collective(event, texts).map(Box::new),
    };
    (detail != KernelDetail::default()).then_some(detail)
}

/// `Memcpy HtoD (Pinned -> Device)`; MUSA writes `Memcpy1 HtoD (…)`, XPU `Memcpy M2D`, MTIA an argument.
fn copy<'a>(event: &Event<'a>, texts: &mut BatchBuilder<'a>) -> CopyDetail {
    let name = event.name.map(|name| name.raw).unwrap_or_default();
    let words = std::str::from_utf8(name).unwrap_or_default();
    let direction = match event.args.direction.map(|direction| direction.raw) {
        Some(b"DEVICE_TO_HOST") => Some("DtoH"),
        Some(b"HOST_TO_DEVICE") => Some("HtoD"),
        Some(b"DEVICE_TO_DEVICE") => Some("DtoD"),
        _ => words.split(' ').nth(1).and_then(direction),
    };
    let (src, dst) = words
        .split_once('(')
        .and_then(|(_, kinds)| kinds.trim_end_matches(')').split_once("->"))
        .map_or((None, None), |(src, dst)| (memory(src), memory(dst)));
    let mut string = |text: Option<&'static str>| text.map(|text| model::StringId(texts.constant(text)));
    CopyDetail {
        direction: string(direction),
        src: string(src),
        dst: string(dst),
        bytes: event.args.bytes,
        graph_node: node(event),
    }
}

/// What a copy call was asked to do, where it says so: `hipMemcpyKind`, whose value 4 leaves the direction to the addresses.
fn called<'a>(event: &Event<'a>, texts: &mut BatchBuilder<'a>) -> Option<CopyDetail> {
    let direction = match event.args.copy_kind? {
        0 => "HtoH",
        1 => "HtoD",
        2 => "DtoH",
        3 => "DtoD",
        _ => return None,
    };
    let is_copy = event.name.is_some_and(|name| name.raw.windows(6).any(|word| word == b"Memcpy"));
    let direction = is_copy.then(|| model::StringId(texts.constant(direction)))?;
    Some(CopyDetail { direction: Some(direction), bytes: event.args.bytes, ..CopyDetail::default() })
}

fn direction(word: &str) -> Option<&'static str> {
    Some(match word {
        "HtoD" | "M2D" | "HtoA" => "HtoD",
        "DtoH" | "D2M" | "AtoH" => "DtoH",
        "DtoD" | "D2D" => "DtoD",
        "PtoP" => "PtoP",
        "HtoH" | "M2M" => "HtoH",
        _ => return None,
    })
}

fn memory(word: &str) -> Option<&'static str> {
    Some(match word.trim() {
        "Pageable" => "pageable",
        "Pinned" => "pinned",
        "Device" => "device",
        "Host" => "host",
        "Array" => "array",
        "Managed" => "managed",
        "Device Static" => "device static",
        "Managed Static" => "managed static",
        _ => return None,
    })
}

fn sync(event: &Event<'_>) -> Option<SyncKind> {
    let kind = event.args.sync_kind.or(event.name)?;
    Some(match kind.raw {
        b"Event Sync" => SyncKind::Event,
        b"Stream Wait Event" => SyncKind::StreamWaitEvent,
        b"Stream Sync" => SyncKind::Stream,
        b"Context Sync" => SyncKind::Context,
        _ => return None,
    })
}

fn op<'a>(event: &Event<'a>, texts: &mut BatchBuilder<'a>) -> Option<OpDetail> {
    let shapes = event.args.dims.and_then(|raw| texts.json_text(raw));
    let dtypes = event.args.types.and_then(|raw| texts.json_text(raw));
    (shapes.is_some() || dtypes.is_some()).then_some(OpDetail { shapes, dtypes })
}

fn collective<'a>(event: &Event<'a>, texts: &mut BatchBuilder<'a>) -> Option<CollectiveCall> {
    let args = &event.args;
    let op = args.collective.filter(|op| !op.raw.is_empty())?;
    let elements = args.in_elements.max(args.out_elements);
    let size = args.dtype.and_then(|dtype| element_size(dtype.raw));
    Some(CollectiveCall {
        op: Some(texts.string(op)),
        group: args.group.filter(|group| !group.raw.is_empty()).map(|group| texts.string(group)),
        group_size: args.group_size.and_then(|size| u32::try_from(size).ok()),
        seq: args.seq,
        bytes: elements.zip(size).and_then(|(elements, size)| elements.checked_mul(size)),
        dtype: args.dtype.filter(|dtype| !dtype.raw.is_empty()).map(|dtype| texts.string(dtype)),
    })
}

/// Bytes of an element, by the names of `c10::ScalarType`.
fn element_size(dtype: &[u8]) -> Option<i64> {
    Some(match dtype {
        b"Byte" | b"Char" | b"Bool" => 1,
        other if other.starts_with(b"Float8") => 1,
        b"Short" | b"Half" | b"BFloat16" | b"UInt16" => 2,
        b"Int" | b"Float" | b"UInt32" => 4,
        b"Long" | b"Double" | b"UInt64" | b"ComplexFloat" => 8,
        b"ComplexDouble" => 16,
        _ => return None,
    })
}

/// JSON text without the white space between its tokens.
pub(super) fn compact(raw: &[u8]) -> String {
    let mut text = Vec::with_capacity(raw.len());
    let (mut quoted, mut escaped) = (false, false);
    for &b in raw {
        if quoted || !b.is_ascii_whitespace() {
            text.push(b);
        }
        quoted ^= b == b'"' && !escaped;
        escaped = b == b'\\' && !escaped;
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_lose_only_the_space_between_tokens() {
        assert_eq!(compact(b"[\n  [1, 2],\n  [\"a \\\" b\"]\n]"), "[[1,2],[\"a \\\" b\"]]");
    }
}
