//! Quantities inside a cell: `97W / NA`, `858/65536 MiB`, `2MiB(49152MiB)`, `30.0c`, `0%`.

use model::Reading;

/// Bytes in a mebibyte: the tools write MB and mean this (a 64 GiB card shows 65536).
const MIB: f64 = 1_048_576.0;

/// A number with whatever unit is glued to it; what is none is unavailable.
pub fn number(text: &str) -> Reading<f64> {
    match quantities(text).into_iter().next() {
        Some((value, _)) => Reading::Value(value),
        None => unavailable(text),
    }
}

/// Why a cell gives no number.
pub fn unavailable(text: &str) -> Reading<f64> {
    let shown: String = text.trim().chars().take(40).collect();
    Reading::Unavailable(if shown.is_empty() {
        "the cell is empty".to_owned()
    } else {
        format!("the tool shows '{shown}'")
    })
}

/// The first number of a cell that carries one of `units`.
pub fn with_unit(text: &str, units: &[&str]) -> Reading<f64> {
    let found = quantities(text).into_iter().find(|(_, unit)| units.iter().any(|u| unit.eq_ignore_ascii_case(u)));
    found.map_or_else(|| unavailable(text), |(value, _)| Reading::Value(value))
}

/// Use and limit around a slash, an opening bracket or nothing but a space, in the unit of the cell.
pub fn pair(text: &str) -> [Reading<f64>; 2] {
    let (used, limit) = text.split_once(['/', '(']).unwrap_or((text, ""));
    let one = |text: &str| match quantities(text).as_slice() {
        [(value, _)] => Reading::Value(*value),
        _ => unavailable(text),
    };
    if limit.is_empty() {
        return match quantities(text).as_slice() {
            [(used, _), (limit, _)] => [Reading::Value(*used), Reading::Value(*limit)],
            [(used, _)] => [Reading::Value(*used), unavailable("")],
            _ => [unavailable(text), unavailable(text)],
        };
    }
    [one(used), one(limit)]
}

/// The same in bytes, of mebibytes. A limit of 0 says that there is no such memory.
pub fn memory(text: &str) -> [Reading<f64>; 2] {
    let [used, total] = pair(text);
    if total.value() == Some(&0.0) {
        return [unavailable("0 of 0: no such memory"), unavailable("0 of 0: no such memory")];
    }
    [bytes(used), bytes(total)]
}

/// Mebibytes in bytes.
pub fn bytes(mebibytes: Reading<f64>) -> Reading<f64> {
    match mebibytes {
        Reading::Value(n) => Reading::Value(n * MIB),
        absent => absent,
    }
}

/// Every number of a text with the unit behind it; a number inside a word such as `P0` or a bus address is none.
pub fn quantities(text: &str) -> Vec<(f64, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut before = None;
    while let Some(c) = rest.chars().next() {
        let len = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let (digits, after) = rest.split_at(len);
        if len == 0 {
            before = Some(c);
            rest = rest.get(c.len_utf8()..).unwrap_or("");
            continue;
        }
        let begins = before.is_none_or(|c: char| !(c.is_alphanumeric() || matches!(c, ':' | '-' | '_' | '.')));
        let spaced = after.trim_start_matches(' ');
        let unit_len = spaced.find(|c: char| !(c.is_alphabetic() || matches!(c, '%' | '°'))).unwrap_or(spaced.len());
        let (unit, behind) = spaced.split_at(unit_len);
        let ends = !behind.starts_with(|c: char| c.is_ascii_digit() || c == ':');
        if let Some(value) = digits.parse::<f64>().ok().filter(|v| begins && ends && v.is_finite()) {
            found.push((value, unit));
        }
        before = digits.chars().last();
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn values(pair: [Reading<f64>; 2]) -> [Option<f64>; 2] {
        pair.map(|reading| reading.value().copied())
    }

    #[test]
    fn pairs_of_every_spelling() {
        for (text, used, limit) in [
            ("29W / 225W", Some(29.0), Some(225.0)),
            ("97W / NA", Some(97.0), None),
            ("106 W/ 250 W", Some(106.0), Some(250.0)),
            ("105W  300W", Some(105.0), Some(300.0)),
            ("71W", Some(71.0), None),
            ("N/A", None, None),
            ("", None, None),
        ] {
            assert_eq!(values(pair(text)), [used, limit], "{text}");
        }
        assert_eq!(values(memory("57895/ 65536")), [Some(57_895.0 * MIB), Some(65_536.0 * MIB)]);
        assert_eq!(values(memory("2MiB(49152MiB)")), [Some(2.0 * MIB), Some(49_152.0 * MIB)]);
        assert_eq!(values(memory("0 MiB/ xxxxx MiB")), [Some(0.0), None]);
        assert_eq!(values(memory("0    / 0")), [None, None]);
    }

    #[test]
    fn a_number_inside_a_word_is_none() {
        assert_eq!(quantities("P0 0000:39:00.0 v1.1.6 36C"), [(36.0, "C")]);
        assert_eq!(quantities("30.0c 1.2.3 5"), [(30.0, "c"), (5.0, "")]);
        assert_eq!(number("-"), Reading::Unavailable("the tool shows '-'".to_owned()));
        assert_eq!(quantities(&"9".repeat(5000)), []);
    }
}
