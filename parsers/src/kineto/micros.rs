//! Timestamps as the writer spells them: microseconds with three decimals.

use model::Ns;

/// Nanoseconds of whole microseconds with up to three decimals, which is what the writer emits; anything else takes the long way.
pub(super) fn micros(raw: &[u8]) -> Option<Ns> {
    if raw.is_empty() || raw.len() > 18 {
        return None;
    }
    let (mut value, mut decimals) = (0i64, None);
    for &b in raw {
        match (b, &mut decimals) {
            (b'0'..=b'9', None) => {}
            (b'0'..=b'9', Some(n)) if *n < 3 => *n += 1,
            (b'.', None) => {
                decimals = Some(0);
                continue;
            }
            _ => return None,
        }
        value = value * 10 + i64::from(b - b'0');
    }
    match decimals {
        Some(0) => None,
        Some(1) => value.checked_mul(100),
        Some(2) => value.checked_mul(10),
        Some(_) => Some(value),
        None => value.checked_mul(1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn the_short_way_agrees_with_the_long_one(text in "[0-9]{0,19}(\\.[0-9]{0,4})?") {
            if let Some(ns) = micros(text.as_bytes()) {
                proptest::prop_assert_eq!(model::time::parse_decimal(text.as_bytes(), 3), Ok((ns, false)));
            }
        }
    }

    #[test]
    fn the_short_way_is_taken_for_what_the_writer_emits() {
        for (text, ns) in [("1428625731896.179", 1_428_625_731_896_179), ("22.25", 22_250), ("7", 7_000)] {
            assert_eq!(micros(text.as_bytes()), Some(ns));
        }
    }
}
