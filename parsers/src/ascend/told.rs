//! What a profiler's own table says of each kernel: the type of its operator, shapes and types of its inputs. `Cast190` is an
//! operator of a graph; that it casts stands in the column `Type`.

use model::{Detail, OpDetail, StringId, TraceSink};

use super::import::words_json;

/// Columns of [`Told::of`]: operator type, then shapes, types and formats of the inputs.
pub(super) const COLUMNS: [&str; 4] = ["op type|type", "input shapes", "input data types", "input formats"];
/// Formats in which a tensor lies in blocks: its sizes are those of the blocks, padding included, and no product of them is
/// that of the operator.
const BLOCKED: [&str; 4] = ["FRACTAL", "FORMAT_FRACTAL", "NC1HWC0", "NDC1HWC0"];
/// What stands where nothing is known.
const NOTHING: [&str; 2] = ["", "N/A"];

/// What is told of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Type of the operator.
    pub op: StringId,
    shapes: Option<StringId>,
    dtypes: Option<StringId>,
}

impl Told {
    /// From the cells of a row; `None` where they say no type.
    pub fn of(
        sink: &mut dyn TraceSink,
        op: Option<&str>,
        [shapes, dtypes, formats]: [Option<&str>; 3],
    ) -> Option<Self> {
        let said = |text: Option<&str>| {
            let text = text?.trim_matches('"').trim();
            (!NOTHING.contains(&text)).then(|| text.to_owned())
        };
        let op = sink.intern(&said(op)?);
        let shapes = said(shapes).map(|shapes| sink.intern(&json(&shapes, &said(formats).unwrap_or_default())));
        let dtypes = said(dtypes).filter(|_| shapes.is_some()).map(|dtypes| sink.intern(&words_json(&dtypes)));
        Some(Self { op, shapes, dtypes })
    }

    /// Whether shapes are told.
    pub fn has_shapes(&self) -> bool {
        self.shapes.is_some()
    }

    /// The detail of the operator.
    pub fn detail(&self) -> Option<Detail> {
        self.has_shapes().then_some(Detail::Op(OpDetail { shapes: self.shapes, dtypes: self.dtypes }))
    }
}

/// Shapes as JSON: `32,3;1` become `[[32,3],[1]]`. A shape in blocks, or one that is no list of numbers, is an empty list.
fn json(shapes: &str, formats: &str) -> String {
    let mut formats = formats.split(';');
    let lists = shapes.split(';').map(|shape| {
        let format = formats.next().unwrap_or_default().trim();
        let plain = shape.bytes().all(|b| b.is_ascii_digit() || matches!(b, b',' | b' ' | b'-'));
        let whole = shape.split(',').all(|size| size.trim().parse::<i64>().is_ok());
        let blocked = BLOCKED.iter().any(|blocked| format.starts_with(blocked));
        if plain && whole && !blocked { format!("[{}]", shape.trim()) } else { "[]".to_owned() }
    });
    format!("[{}]", lists.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_in_blocks_are_no_shapes() {
        assert_eq!(json("32,3;1", "ND;ND"), "[[32,3],[1]]");
        assert_eq!(json("2,4;64,64,16,16;;x", "ND;FRACTAL_NZ;ND"), "[[2,4],[],[],[]]");
    }
}
