//! Values and units as Nsight Compute prints them. Units are scaled row by row or column by column, so a value means nothing
//! without its own; prefixes are decimal.

use model::Ns;

/// Units of time and their power of ten in ns.
const TIMES: &[(&str, i32)] =
    &[("ns", 0), ("nsecond", 0), ("us", 3), ("usecond", 3), ("ms", 6), ("msecond", 6), ("s", 9), ("second", 9)];

/// Decimal prefixes of units that count, as powers of ten; `m` is no prefix of those.
const PREFIXES: &[(char, i32)] = &[('K', 3), ('M', 6), ('G', 9), ('T', 12), ('P', 15)];

/// What units of counts begin with after their prefix.
const BASES: &[&str] = &["byte", "bit", "hz", "inst", "cycle", "sector", "request", "warp", "block", "thread"];

/// The digits of a value, without the separators of thousands that some versions print and without the list of instances
/// that may follow in brackets.
fn digits(text: &str) -> String {
    let first = text.split(" (").next().unwrap_or(text).trim();
    let groups: Vec<&str> = first.split(',').collect();
    let grouped = |group: &&str| group.split('.').next().is_some_and(|whole| whole.len() == 3);
    match groups.as_slice() {
        [_, rest @ ..] if !rest.is_empty() && rest.iter().all(grouped) => groups.concat(),
        _ => first.to_owned(),
    }
}

/// A value in the base of its unit; `None` for words, `n/a`, `inf` and `nan`, and for units that are not known.
pub(super) fn number(text: &str, unit: &str) -> Option<f64> {
    let (digits, scale) = (digits(text), scale(unit.trim())?);
    // Scaled as text, so that the nearest float to the scaled value comes out and not a product of two roundings.
    let scaled = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => format!("{mantissa}e{}", exponent.parse::<i32>().ok()?.checked_add(scale)?),
        None => format!("{digits}e{scale}"),
    };
    scaled.parse().ok().filter(|value: &f64| value.is_finite())
}

/// The power of ten that a unit is of its base.
fn scale(unit: &str) -> Option<i32> {
    if unit.is_empty() || unit == "%" || unit == "register/thread" {
        return Some(0);
    }
    // What older versions call GHz.
    if unit == "cycle/nsecond" || unit == "cycle/ns" {
        return Some(9);
    }
    let is_base = |text: &str| BASES.iter().any(|base| text.to_ascii_lowercase().starts_with(base));
    if is_base(unit) {
        return Some(0);
    }
    let first = unit.chars().next()?;
    let power = PREFIXES.iter().find(|(prefix, _)| *prefix == first).map(|(_, power)| *power)?;
    is_base(unit.get(first.len_utf8()..)?).then_some(power)
}

/// A duration.
pub(super) fn time(text: &str, unit: &str) -> Option<Ns> {
    let (_, exponent) = TIMES.iter().find(|(name, _)| *name == unit.trim())?;
    model::time::parse_decimal(digits(text).as_bytes(), *exponent).ok().map(|(ns, _)| ns)
}

/// The sides in `(128, 1, 1)`.
pub(super) fn shape(text: &str) -> Option<[u32; 3]> {
    let mut sides = text.trim().strip_prefix('(')?.strip_suffix(')')?.split(',').map(|side| side.trim().parse().ok());
    let shape = [sides.next()??, sides.next()??, sides.next()??];
    sides.next().is_none().then_some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_scaled_by_their_unit() {
        for (text, unit, value) in [
            ("513.62", "Mbyte/s", Some(513.62e6)),
            ("0.513619", "Gbyte/s", Some(0.513_619e9)),
            ("9,357", "inst", Some(9357.0)),
            ("1,234,567.5", "cycle", Some(1_234_567.5)),
            ("1.56", "Ghz", Some(1.56e9)),
            ("1.56", "cycle/nsecond", Some(1.56e9)),
            ("158 (0: 158; 1: 3)", "", Some(158.0)),
            ("65,77", "%", None),
            ("1.5e-3", "Kbyte", Some(1.5)),
            ("inf", "%", None),
            ("(!) nan", "%", None),
            ("n/a", "", None),
            ("PolicySpread", "", None),
            ("1", "furlong", None),
        ] {
            assert_eq!(number(text, unit), value, "{text} {unit}");
        }
    }

    #[test]
    fn times_are_decimal_and_keep_every_nanosecond() {
        assert_eq!(time("16.448000", "us"), Some(16_448));
        assert_eq!(time("1,234.5", "nsecond"), Some(1_235));
        assert_eq!(time("2", "msecond"), Some(2_000_000));
        assert_eq!(time("2", "Mbyte"), None);
    }

    #[test]
    fn shapes_have_three_sides() {
        assert_eq!(shape("(128, 1, 1)"), Some([128, 1, 1]));
        assert_eq!(shape("(128, 1)"), None);
        assert_eq!(shape("(1, 2, 3, 4)"), None);
    }
}
