//! Integer nanoseconds. A timestamp never passes through a float: an absolute microsecond stamp with three decimals
//! has more digits than an `f64` holds.

/// A time or duration in nanoseconds.
pub type Ns = i64;

/// A half-open interval `[start, end)` in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Span {
    /// First nanosecond of the interval.
    pub start: Ns,
    /// First nanosecond after the interval.
    pub end: Ns,
}

/// When a slice may lie, ns from the zero of its source's clock: from 36 years before to 146 years after, which is the
/// year 2116 of Unix time. The difference of any two times between fits 64 bits.
pub const RANGE: Span = Span { start: -(1 << 60), end: 1 << 62 };
/// Longest duration of a slice, ns (104 days): one damaged duration shall not use up [`MOST_TIME`].
pub const LONGEST: Ns = 1 << 53;
/// What the durations of the slices of one capture may add up to, ns (146 years of work): any sum of them fits 64 bits.
pub const MOST_TIME: Ns = 1 << 62;

impl Span {
    /// The interval from `start` to `end`; an `end` before `start` gives an empty interval at `start`.
    pub fn new(start: Ns, end: Ns) -> Self {
        Self { start, end: end.max(start) }
    }

    /// Length in nanoseconds, never negative.
    pub fn len(self) -> Ns {
        self.end.saturating_sub(self.start)
    }

    /// Whether the interval holds no nanosecond.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// The part of this interval that lies inside `other`, empty when they do not meet.
    pub fn clip(self, other: Span) -> Span {
        let start = self.start.clamp(other.start, other.end);
        Span::new(start, self.end.clamp(start, other.end))
    }

    /// Whether `t` lies inside.
    pub fn contains(self, t: Ns) -> bool {
        self.start <= t && t < self.end
    }
}

/// Why a decimal number could not be read as nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// The text is not a decimal number.
    #[error("not a decimal number")]
    NotANumber,
    /// The number lies outside what 64-bit nanoseconds hold.
    #[error("outside the range of 64-bit nanoseconds")]
    Range,
}

/// Reads decimal text such as `1711964646000123.456` or `6.5e3` in a unit of `10^unit_exp` nanoseconds (3 for
/// microseconds, 0 for nanoseconds, 6 for milliseconds, 9 for seconds). Digits below one nanosecond are rounded half
/// away from zero; the second value says whether any non-zero digit was lost so.
///
/// # Errors
/// [`DecimalError::NotANumber`] for anything else than a decimal number, [`DecimalError::Range`] when it does not fit.
pub fn parse_decimal(text: &[u8], unit_exp: i32) -> Result<(Ns, bool), DecimalError> {
    let text = text.trim_ascii();
    let (negative, rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let mantissa_len = rest.iter().position(|b| matches!(b, b'e' | b'E')).unwrap_or(rest.len());
    let (mantissa, exponent) = rest.split_at(mantissa_len);
    let exponent = match exponent {
        [] => 0,
        [_, digits @ ..] => parse_exponent(digits)?,
    };
    let mut value: i128 = 0;
    let mut digits = 0usize;
    let mut fraction = 0i32;
    let mut seen_point = false;
    let mut inexact_tail = false;
    for &b in mantissa {
        match b {
            b'0'..=b'9' => {
                digits += 1;
                // 30 significant digits hold every time in range; what follows can only matter for rounding.
                if value < 10i128.pow(30) {
                    value = value * 10 + i128::from(b - b'0');
                    fraction += i32::from(seen_point);
                } else if seen_point {
                    inexact_tail |= b != b'0';
                } else {
                    return Err(DecimalError::Range);
                }
            }
            b'.' if !seen_point => seen_point = true,
            _ => return Err(DecimalError::NotANumber),
        }
    }
    if digits == 0 {
        return Err(DecimalError::NotANumber);
    }
    let scale = unit_exp.saturating_add(exponent).saturating_sub(fraction);
    let (scaled, lost) = rescale(value, scale)?;
    let signed = if negative { -scaled } else { scaled };
    let ns = i64::try_from(signed).map_err(|_| DecimalError::Range)?;
    Ok((ns, lost || inexact_tail))
}

fn parse_exponent(digits: &[u8]) -> Result<i32, DecimalError> {
    let text = std::str::from_utf8(digits).map_err(|_| DecimalError::NotANumber)?;
    let exp: i32 = text.parse().map_err(|_| DecimalError::NotANumber)?;
    Ok(exp.clamp(-400, 400))
}

fn rescale(value: i128, scale: i32) -> Result<(i128, bool), DecimalError> {
    if value == 0 {
        return Ok((0, false));
    }
    if scale >= 0 {
        let factor = 10i128.checked_pow(scale.unsigned_abs()).ok_or(DecimalError::Range)?;
        return value.checked_mul(factor).map(|v| (v, false)).ok_or(DecimalError::Range);
    }
    let Some(divisor) = 10i128.checked_pow(scale.unsigned_abs()) else {
        return Ok((0, true));
    };
    let (quotient, remainder) = (value / divisor, value % divisor);
    Ok((quotient + i128::from(remainder >= divisor - remainder), remainder != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_microseconds_keep_every_nanosecond() {
        assert_eq!(parse_decimal(b"1711964646000123.457", 3), Ok((1_711_964_646_000_123_457, false)));
        assert_eq!(parse_decimal(b"6520618853487.683", 3), Ok((6_520_618_853_487_683, false)));
    }

    #[test]
    fn odd_spellings() {
        assert_eq!(parse_decimal(b" -1.5 ", 3), Ok((-1500, false)));
        assert_eq!(parse_decimal(b"1.7e3", 3), Ok((1_700_000, false)));
        assert_eq!(parse_decimal(b".5", 0), Ok((1, true)));
        assert_eq!(parse_decimal(b"0.0004", 3), Ok((0, true)));
        assert_eq!(parse_decimal(b"1e-999", 3), Ok((0, true)));
        assert_eq!(parse_decimal(b"0e999", 3), Ok((0, false)));
    }

    #[test]
    fn what_is_not_a_time_is_refused() {
        for bad in [&b""[..], b"-", b".", b"NaN", b"Infinity", b"1.2.3", b"1e", b"0x10"] {
            assert_eq!(parse_decimal(bad, 3), Err(DecimalError::NotANumber), "{bad:?}");
        }
        assert_eq!(parse_decimal(b"99999999999999999999", 3), Err(DecimalError::Range));
        assert_eq!(parse_decimal(b"1e300", 3), Err(DecimalError::Range));
        assert_eq!(parse_decimal(&[b'9'; 500], 0), Err(DecimalError::Range));
    }

    proptest::proptest! {
        #[test]
        fn every_nanosecond_survives_as_microseconds(ns in proptest::num::i64::ANY) {
            let text = format!("{}{}.{:03}", if ns < 0 { "-" } else { "" }, ns.unsigned_abs() / 1000, ns.unsigned_abs() % 1000);
            proptest::prop_assert_eq!(parse_decimal(text.as_bytes(), 3), Ok((ns, false)));
        }
    }
}
