//! What a profiler's own table says of each kernel: the type of its operator, shapes and types of its inputs. `Cast190` is an
//! operator of a graph; that it casts stands in the column `Type`.

use model::{Detail, OpDetail, StringId, TraceSink};

use super::import::words_json;

/// Columns of [`Told::of`]: operator type, then shapes, types and formats of the inputs.
pub(super) const COLUMNS: [&str; 4] = ["op type|type", "input shapes", "input data types", "input formats"];
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

/// Shapes as JSON: `32,3;1` become `[[32,3],[1]]`. A shape that is no list of numbers, or lies in blocks of a kind that is not
/// known here, is an empty list.
fn json(shapes: &str, formats: &str) -> String {
    let mut formats = formats.split(';');
    let lists = shapes.split(';').map(|shape| {
        let format = formats.next().unwrap_or_default().trim();
        let sizes = shape.split(',').map(|size| size.trim().parse::<i64>().ok()).collect::<Option<Vec<_>>>();
        let sizes = sizes.and_then(|sizes| unfolded(&sizes, format)).unwrap_or_default();
        format!("[{}]", sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(","))
    });
    format!("[{}]", lists.collect::<Vec<_>>().join(","))
}

/// Sizes of a tensor that lies in blocks, up to 31 elements of padding in each of the two that are cut; CANN's description of its
/// formats (2026-11) gives the order. `None` for blocks of another kind, such as those of a convolution's weights.
fn unfolded(sizes: &[i64], format: &str) -> Option<Vec<i64>> {
    let format = format.trim_start_matches("FORMAT_");
    match (format, sizes) {
        // Columns and rows of blocks, then rows and columns of one.
        ("FRACTAL_NZ", [batch @ .., columns, rows, row, column]) => {
            let matrix = [rows.checked_mul(*row)?, columns.checked_mul(*column)?];
            Some(batch.iter().copied().chain(matrix).collect())
        }
        ("NC1HWC0", [n, blocks, h, w, channels]) => Some(vec![*n, blocks.checked_mul(*channels)?, *h, *w]),
        ("NDC1HWC0", [n, d, blocks, h, w, channels]) => Some(vec![*n, blocks.checked_mul(*channels)?, *d, *h, *w]),
        _ if format.starts_with("FRACTAL") || format.ends_with("C0") => None,
        _ => Some(sizes.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weights of torch_npu and MindIE lie in blocks: their products had no shapes.
    #[test]
    fn shapes_in_blocks_are_unfolded_where_their_order_is_known() {
        assert_eq!(json("32,3;1", "ND;ND"), "[[32,3],[1]]");
        assert_eq!(json("2,4;64,192,16,16;;x", "ND;FRACTAL_NZ;ND"), "[[2,4],[3072,1024],[],[]]");
        assert_eq!(json("8,64,192,16,32", "FORMAT_FRACTAL_NZ"), "[[8,3072,2048]]");
        assert_eq!(json("3840,1,14,14,16;196,72,16,16", "NC1HWC0;FRACTAL_Z"), "[[3840,16,14,14],[]]");
        assert_eq!(json("4,2,1,14,14,16", "NDC1HWC0"), "[[4,16,2,14,14]]");
        let huge = i64::MAX;
        assert_eq!(json(&format!("{huge},{huge},16,16;16,16"), "FRACTAL_NZ;FRACTAL_NZ"), "[[],[]]");
        assert_eq!(json("1,2,3,4,5,6,7", "NC1HWC0"), "[[]]");
    }
}
