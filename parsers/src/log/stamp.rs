//! The time at which a log line says it was written.

use model::{Ns, time::parse_decimal};

/// A time of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Unix nanoseconds where the zone is known; else nanoseconds of an unknown zone, and of the year 2000 where the line
    /// has no year.
    pub ns: Ns,
    /// Whether the zone is known.
    pub zoned: bool,
}

/// Bytes of a line in which its stamp is looked for: what stands later belongs to the message.
const PREFIX: usize = 96;
/// The year of stamps that have none; a leap year, so that every day exists.
const NO_YEAR: i64 = 2000;
const SECOND: Ns = 1_000_000_000;

/// The first stamp in the beginning of a line: `2025-08-07T19:13:37.585339+02:00`, `2025-01-02 10:11:12,345`,
/// `08-07 17:13:40`.
pub fn find(line: &str) -> Option<Stamp> {
    let bytes = line.as_bytes();
    let prefix = bytes.get(..PREFIX.min(bytes.len()))?;
    (6..prefix.len()).find_map(|at| at_time(bytes, at))
}

/// The stamp whose `HH:MM:SS` begins at `at`.
fn at_time(bytes: &[u8], at: usize) -> Option<Stamp> {
    let number = |from: usize, len: usize| -> Option<i64> {
        let digits = bytes.get(from..from + len)?;
        digits.iter().all(u8::is_ascii_digit).then(|| digits.iter().fold(0, |n, d| n * 10 + i64::from(d - b'0')))
    };
    let is = |from: usize, byte: u8| bytes.get(from) == Some(&byte);
    let (hour, minute, second) = (number(at, 2)?, number(at + 3, 2)?, number(at + 6, 2)?);
    let separated = is(at + 2, b':') && is(at + 5, b':') && (is(at - 1, b' ') || is(at - 1, b'T'));
    if !separated || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let date = at - 6;
    let dash = |from: usize| is(from, b'-') || is(from, b'/');
    let (month, day) = (number(date, 2)?, number(date + 3, 2)?);
    if !dash(date + 2) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = date.checked_sub(5).filter(|from| dash(from + 4)).and_then(|from| number(from, 4));
    let rest = bytes.get(at + 8..).unwrap_or_default();
    let (fraction, rest) = fraction(rest);
    let offset = zone(rest);
    let seconds = days(year.unwrap_or(NO_YEAR), month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    let ns = (seconds - offset.unwrap_or(0)).checked_mul(SECOND)?.checked_add(fraction)?;
    Some(Stamp { ns, zoned: offset.is_some() && year.is_some() })
}

/// Nanoseconds after the second, and what follows them.
fn fraction(rest: &[u8]) -> (Ns, &[u8]) {
    let Some(digits) = rest.strip_prefix(b".").or(rest.strip_prefix(b",")) else { return (0, rest) };
    let len = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    let (digits, after) = digits.split_at(len);
    let ns = digits.iter().chain(std::iter::repeat(&b'0')).take(9).fold(0, |n, d| n * 10 + i64::from(d - b'0'));
    (ns, after)
}

/// Seconds east of UTC: `Z`, `+02:00`, `-0800`.
fn zone(rest: &[u8]) -> Option<i64> {
    let (sign, digits) = match rest {
        [b'Z', ..] => return Some(0),
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let digits: Vec<u8> = digits.iter().take(5).copied().filter(u8::is_ascii_digit).collect();
    let [a, b, c, d] = digits.as_slice() else { return None };
    let n = |x: &u8| i64::from(x - b'0');
    Some(sign * ((n(a) * 10 + n(b)) * 3600 + (n(c) * 10 + n(d)) * 60))
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years from March on, so that the leap day is the last of its year.
    let y = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (y.div_euclid(400), y.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// A time in a field of its own: seconds since the epoch as a decimal, or a date and time.
pub fn parse(text: &str) -> Option<Stamp> {
    match parse_decimal(text.as_bytes(), 9) {
        Ok((ns, _)) => Some(Stamp { ns, zoned: true }),
        Err(_) => find(text),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn stamps_of_real_loggers() {
        // date -u -d '2025-08-07 17:13:37 UTC' +%s
        let unix = 1_754_586_817 * SECOND;
        for (line, ns, zoned) in [
            (r#"time="2025-08-07T19:13:37+02:00" level=warning"#, unix, true),
            ("Start time: 2025-08-07T17:13:37.585339", unix + 585_339_000, false),
            ("[2025-08-07 17:13:37 TP0] Decode batch.", unix, false),
            ("2025-08-07 17:13:37,667 - INFO - start", unix + 667_000_000, false),
            ("p0 2025-08-07T17:13:37.250907Z x", unix + 250_907_000, true),
        ] {
            assert_eq!(find(line), Some(Stamp { ns, zoned }), "{line}");
        }
        let a = find("(EngineCore_DP0 pid=269) INFO 10-14 22:48:36 [backends.py:559] x").unwrap();
        let b = find("INFO 10-14 22:49:05 [backends.py:218] x").unwrap();
        assert_eq!((b.ns - a.ns, a.zoned), (29 * SECOND, false));
        assert_eq!(parse("1754586817.5").unwrap(), Stamp { ns: unix + 500_000_000, zoned: true });
    }

    #[test]
    fn what_is_no_stamp_is_none() {
        for line in ["", "12:00:00", "99-99 12:00:00", "08-07 25:00:00", "2025-08-07", "a 08-07 1", "é08-07 12:00"] {
            assert_eq!(find(line), None, "{line}");
        }
    }
}
