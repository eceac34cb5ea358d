//! A page of a table as columns, read from the JSON arrays that SQLite packs it into.

use model::time::parse_decimal;

/// What a column of the page is read from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Column {
    /// An integer: the first of these columns that the table has and that is not NULL.
    Int(&'static str, &'static [&'static str]),
    /// A number that may have a fraction.
    Real(&'static str),
    /// Text, or where the text is NULL the string id in the second column.
    Text(&'static str, Option<&'static str>),
}

/// The cells of one column of a page.
#[derive(Debug)]
pub(super) enum Lane {
    /// Integers; what is NULL or no integer is absent.
    Ints(Vec<Option<i64>>),
    /// Numbers.
    Reals(Vec<Option<f64>>),
    /// Text: the characters of all cells, and where each cell lies in them.
    Texts(String, Vec<TextCell>),
    /// The table has no such column.
    Missing,
}

/// One cell of a text column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextCell {
    Null,
    Id(i64),
    Range(usize, usize),
}

/// Text of a cell, or the id of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text<'a> {
    /// The text itself.
    Inline(&'a str),
    /// Its id in `StringIds`.
    Id(i64),
}

/// Some rows of a table.
#[derive(Debug)]
pub(super) struct Page {
    pub rows: usize,
    pub lanes: Vec<Lane>,
}

impl Page {
    /// The first `N` columns of a row, which are integers.
    pub fn ints<const N: usize>(&self, row: usize) -> [Option<i64>; N] {
        std::array::from_fn(|lane| self.int(lane, row))
    }

    /// An integer.
    pub fn int(&self, lane: usize, row: usize) -> Option<i64> {
        match self.lanes.get(lane) {
            Some(Lane::Ints(cells)) => cells.get(row).copied().flatten(),
            _ => None,
        }
    }

    /// A number.
    pub fn real(&self, lane: usize, row: usize) -> Option<f64> {
        match self.lanes.get(lane) {
            Some(Lane::Reals(cells)) => cells.get(row).copied().flatten(),
            _ => None,
        }
    }

    /// Text or its id.
    pub fn text(&self, lane: usize, row: usize) -> Option<Text<'_>> {
        let Some(Lane::Texts(characters, cells)) = self.lanes.get(lane) else { return None };
        match cells.get(row)? {
            TextCell::Null => None,
            TextCell::Id(id) => Some(Text::Id(*id)),
            TextCell::Range(start, end) => characters.get(*start..*end).map(Text::Inline),
        }
    }

    /// Text of a column that has no ids.
    pub fn inline(&self, lane: usize, row: usize) -> Option<&str> {
        match self.text(lane, row)? {
            Text::Inline(text) => Some(text),
            Text::Id(_) => None,
        }
    }
}

/// Reads a JSON array as the lane of this column. The second value counts the cells of a wrong type, which become absent.
pub(super) fn lane(column: Column, json: &[u8]) -> (Lane, u64) {
    let mut wrong = 0;
    let lane = match column {
        Column::Int(..) => {
            let (cells, bad) = ints(json);
            wrong += bad;
            Lane::Ints(cells)
        }
        Column::Real(_) => {
            let mut cells = Vec::new();
            each_token(json, |token| {
                let number = std::str::from_utf8(token).ok().and_then(|text| text.parse::<f64>().ok());
                let cell = number.filter(|number| number.is_finite());
                wrong += u64::from(cell.is_none() && token != b"null");
                cells.push(cell);
            });
            Lane::Reals(cells)
        }
        Column::Text(..) => {
            let mut characters = String::new();
            let mut cells = Vec::new();
            each_token(json, |token| {
                let start = characters.len();
                match token {
                    [b'"', escaped @ .., b'"'] => {
                        unescape(escaped, &mut characters);
                        cells.push(TextCell::Range(start, characters.len()));
                    }
                    _ => {
                        let id = int(token);
                        wrong += u64::from(id.is_none() && token != b"null");
                        cells.push(id.map_or(TextCell::Null, TextCell::Id));
                    }
                }
            });
            Lane::Texts(characters, cells)
        }
    };
    (lane, wrong)
}

/// Reads an array of integers. Most of an export is integers of at most 18 digits, which one pass over the bytes reads;
/// everything else takes the way of the other columns.
fn ints(json: &[u8]) -> (Vec<Option<i64>>, u64) {
    let (mut cells, mut wrong) = (Vec::new(), 0);
    let mut rest = json.strip_prefix(b"[").unwrap_or(json);
    loop {
        let sign = usize::from(rest.first() == Some(&b'-'));
        let (mut value, mut at) = (0i64, sign);
        while let Some(digit @ b'0'..=b'9') = rest.get(at)
            && at < sign + 18
        {
            value = value * 10 + i64::from(digit - b'0');
            at += 1;
        }
        if let Some([b',' | b']', after @ ..]) = rest.get(at..).filter(|_| at > sign) {
            cells.push(Some(if sign == 1 { -value } else { value }));
            rest = after;
        } else if let Some((token, after)) = next_token(rest) {
            let cell = int(token);
            wrong += u64::from(cell.is_none() && token != b"null");
            cells.push(cell);
            rest = after;
        } else {
            return (cells, wrong);
        }
    }
}

/// Calls `each` with every element of a flat JSON array as SQLite writes it, without blanks.
fn each_token(json: &[u8], mut each: impl FnMut(&[u8])) {
    let mut rest = json.strip_prefix(b"[").unwrap_or(json);
    while let Some((token, after)) = next_token(rest) {
        each(token);
        rest = after;
    }
}

/// The next element and what follows its comma, `None` at the end of the array.
fn next_token(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = match rest.first()? {
        b']' => return None,
        b'"' => quoted_length(rest).min(rest.len()),
        _ => rest.iter().position(|b| matches!(b, b',' | b']')).unwrap_or(rest.len()),
    };
    let (token, after) = rest.split_at(length);
    Some((token, after.strip_prefix(b",").unwrap_or(after)))
}

fn quoted_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// An integer of any length, also where SQLite stored it as a float without a fraction.
fn int(token: &[u8]) -> Option<i64> {
    parse_decimal(token, 0).ok().filter(|(_, lost)| !lost).map(|(value, _)| value)
}

/// Appends a JSON string's content. Bytes that are no UTF-8 become replacement characters.
fn unescape(escaped: &[u8], out: &mut String) {
    if !escaped.contains(&b'\\') {
        out.push_str(&String::from_utf8_lossy(escaped));
        return;
    }
    let quoted = [b"\"", escaped, b"\""].concat();
    let quoted = String::from_utf8_lossy(&quoted);
    match serde_json::from_str::<String>(&quoted) {
        Ok(text) => out.push_str(&text),
        Err(_) => out.push_str(quoted.trim_matches('"')),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn integers_keep_every_digit_and_wrong_types_are_counted() {
        let (Lane::Ints(cells), wrong) =
            lane(Column::Int("x", &[]), b"[1,-2,null,\"?\",9223372036854775807,-9223372036854775808,5.0,5.5,1e400]")
        else {
            panic!("not integers");
        };
        let expected = [Some(1), Some(-2), None, None, Some(i64::MAX), Some(i64::MIN), Some(5), None, None];
        assert_eq!(cells, expected);
        assert_eq!(wrong, 3);
    }

    #[test]
    fn text_keeps_commas_quotes_and_escapes() {
        let (lane, wrong) = lane(Column::Text("x", None), b"[\"a,]b\",17,null,\"\\\"\\u0001\\\\\",\"\xff\"]");
        let page = Page { rows: 5, lanes: vec![lane] };
        assert_eq!(wrong, 0);
        assert_eq!(page.text(0, 0), Some(Text::Inline("a,]b")));
        assert_eq!(page.text(0, 1), Some(Text::Id(17)));
        assert_eq!(page.text(0, 2), None);
        assert_eq!(page.text(0, 3), Some(Text::Inline("\"\u{1}\\")));
        assert_eq!(page.text(0, 4), Some(Text::Inline("\u{fffd}")));
        assert_eq!(page.text(0, 5), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(json in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            for column in [Column::Int("x", &[]), Column::Real("x"), Column::Text("x", None)] {
                lane(column, &json);
            }
        }

        #[test]
        fn every_integer_survives(values in proptest::collection::vec(proptest::num::i64::ANY, 0..50)) {
            let json = serde_json::to_vec(&values).unwrap();
            let (Lane::Ints(cells), wrong) = lane(Column::Int("x", &[]), &json) else { panic!("not integers") };
            proptest::prop_assert_eq!(wrong, 0);
            proptest::prop_assert_eq!(cells.into_iter().flatten().collect::<Vec<_>>(), values);
        }
    }
}
