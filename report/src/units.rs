//! How numbers are written: one place for every report, so that the same value never appears in two spellings.
//!
//! Times stay integers until the last digit is cut. Every number is rounded by itself, so that one value reads the same
//! wherever it stands; the rows of a table may therefore miss its sum row, which is exact, by a last digit.

use model::{Ns, ProbeUnit};

use diagnosis::analysis::Confidence;

/// Between groups of three digits: a narrow no-break space (ISO 80000-1), so that a number never breaks over two lines.
const GROUP: char = '\u{202f}';

/// A count with its digits in groups of three.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(GROUP);
        }
        out.push(digit);
    }
    out
}

/// `tenths / 10` with one decimal.
pub fn tenths(tenths: i64) -> String {
    let magnitude = tenths.unsigned_abs();
    format!("{}{}.{}", if tenths < 0 { "-" } else { "" }, count(magnitude / 10), magnitude % 10)
}

/// A time in the unit in which decode steps are read: ns below 1 µs, µs below 100 ms, ms below 10 s, then s.
pub fn time(ns: Ns) -> String {
    match ns.unsigned_abs() {
        0..1_000 => format!("{ns} ns"),
        1_000..100_000_000 => micros(ns),
        100_000_000..10_000_000_000 => format!("{} ms", tenths(rounded(ns, 100_000))),
        _ => format!("{} s", tenths(rounded(ns, 100_000_000))),
    }
}

/// A time with three significant digits in the unit that fits: `45.6 ms`, `606 µs`, `1.23 s`.
pub fn brief(ns: Ns) -> String {
    let unit = Scale::of([ns]);
    format!("{} {}", unit.digits(ns), unit.name())
}

/// One unit for several times, so that they can be compared at a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // the names are the units
pub enum Scale {
    Ns,
    Us,
    Ms,
    S,
}

impl Scale {
    /// The unit in which the largest of these times has one to three digits before the point, or the next smaller one while the
    /// largest has five there at most and the least would be less than a tenth.
    pub fn of(times: impl IntoIterator<Item = Ns>) -> Self {
        let (mut least, mut most) = (u64::MAX, 0);
        for ns in times.into_iter().map(Ns::unsigned_abs).filter(|ns| *ns > 0) {
            (least, most) = (least.min(ns), most.max(ns));
        }
        let all = [Self::S, Self::Ms, Self::Us];
        // 999.5 µs are written as 1.00 ms.
        let large = |unit: &Self| most.saturating_mul(2_000) >= unit.ns().saturating_mul(1_999);
        let fits = all.into_iter().find(large).unwrap_or(Self::Ns);
        let smaller = |unit: Self| [Self::Ms, Self::Us, Self::Ns].into_iter().find(|other| *other < unit);
        match smaller(fits) {
            Some(next) if least.saturating_mul(10) < fits.ns() && most / next.ns() < 100_000 => next,
            _ => fits,
        }
    }

    /// Its symbol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "µs",
            Self::Ms => "ms",
            Self::S => "s",
        }
    }

    fn ns(self) -> u64 {
        match self {
            Self::Ns => 1,
            Self::Us => 1_000,
            Self::Ms => 1_000_000,
            Self::S => 1_000_000_000,
        }
    }

    /// A time in this unit with three significant digits, two decimals at most, without the unit.
    pub fn digits(self, ns: Ns) -> String {
        let value = ns as f64 / self.ns() as f64;
        if self == Self::Ns || value.abs() >= 99.95 {
            let whole = value.round();
            return format!("{}{}", if whole < 0.0 { "-" } else { "" }, count(whole.abs() as u64));
        }
        let decimals = if value.abs() >= 9.995 { 1 } else { 2 };
        format!("{value:.decimals$}")
    }
}

/// A time in µs with one decimal.
pub fn micros(ns: Ns) -> String {
    format!("{} µs", tenths(rounded(ns, 100)))
}

/// A time to the nanosecond.
pub fn exact_ns(ns: Ns) -> String {
    format!("{}{} ns", if ns < 0 { "-" } else { "" }, count(ns.unsigned_abs()))
}

/// A difference in whole nanoseconds with its sign.
pub fn signed_ns(ns: Ns) -> String {
    if ns > 0 { format!("+{}", exact_ns(ns)) } else { exact_ns(ns) }
}

/// A share of one in percent with one decimal.
pub fn share(share: f64) -> String {
    if share.is_finite() { format!("{:.1} %", share * 100.0) } else { "? %".into() }
}

/// `part` of `whole` in percent with one decimal; nothing has no shares.
pub fn share_of(part: Ns, whole: Ns) -> String {
    if whole == 0 { "–".into() } else { share(part as f64 / whole as f64) }
}

/// A share of one in percent with three significant digits at most: `42 %`, `4.2 %`, `0.4 %`.
pub fn whole_share(share: f64) -> String {
    if share.abs() >= 0.0995 { format!("{:.0} %", share * 100.0) } else { self::share(share) }
}

/// A ratio with two decimals.
pub fn ratio(ratio: f64) -> String {
    format!("{ratio:.2}×")
}

/// A number without unit: an integer as such, else three decimals at most.
pub fn number(n: f64) -> String {
    let text = format!("{n:.3}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".into() } else { text.into() }
}

/// A measured value of a probe: times to a tenth of a nanosecond while they are short, rates in powers of 1000.
pub fn probed(value: f64, unit: ProbeUnit) -> String {
    const PREFIXES: [&str; 5] = ["", "k", "M", "G", "T"];
    if unit == ProbeUnit::Ns {
        return if value < 1_000.0 { format!("{value:.1} ns") } else { time(value.round() as Ns) };
    }
    let mut value = value;
    let mut prefix = 0;
    while value.abs() >= 999.95 && prefix + 1 < PREFIXES.len() {
        value /= 1_000.0;
        prefix += 1;
    }
    let name = match unit {
        ProbeUnit::PerSecond => "/s",
        other => other.name(),
    };
    format!("{value:.1} {}{name}", PREFIXES.get(prefix).copied().unwrap_or_default())
}

/// Bytes in powers of 1024.
pub fn bytes(n: i64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let magnitude = n.unsigned_abs();
    if magnitude < 1024 {
        return format!("{n} B");
    }
    let power = (magnitude.ilog2() / 10).clamp(1, 5);
    let unit = UNITS.get(power as usize - 1).copied().unwrap_or("PiB");
    format!("{:.1} {unit}", n as f64 / 2f64.powi(10 * power as i32))
}

/// A wall-clock time in UTC, to the second (proleptic Gregorian calendar).
pub fn utc(unix_ns: Ns) -> String {
    let seconds = unix_ns.div_euclid(1_000_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", second / 3600, second / 60 % 60, second % 60)
}

/// Date of a day counted from 1970-01-01, by whole eras of 400 years that begin on 1 March.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let civil_month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(civil_month <= 2), civil_month, day)
}

/// Divides and rounds half away from zero.
fn rounded(value: i64, by: i64) -> i64 {
    let half = if value < 0 { -(by / 2) } else { by / 2 };
    value.saturating_add(half) / by
}

/// Mean per step in tenths of a µs.
pub fn mean_tenths(total: Ns, steps: usize) -> i64 {
    rounded(total, 100i64.saturating_mul(steps.max(1) as i64))
}

/// Key of a confidence in JSON.
pub fn confidence_key(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Low => "low",
        Confidence::Medium => "medium",
        Confidence::High => "high",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probed_values_carry_their_unit() {
        for (value, unit, expected) in [
            (18.64, ProbeUnit::Ns, "18.6 ns"),
            (12_345.6, ProbeUnit::Ns, "12.3 µs"),
            (2.94e10, ProbeUnit::BytesPerSecond, "29.4 GB/s"),
            (999.96e9, ProbeUnit::FlopsPerSecond, "1.0 Tflop/s"),
            (2.5e6, ProbeUnit::PerSecond, "2.5 M/s"),
            (3e15, ProbeUnit::BytesPerSecond, "3000.0 TB/s"),
        ] {
            assert_eq!(probed(value, unit), expected);
        }
    }

    #[test]
    fn a_time_takes_the_unit_that_fits() {
        let plain = |ns| time(ns).replace(GROUP, " ");
        assert_eq!(plain(0), "0 ns");
        assert_eq!(plain(-999), "-999 ns");
        assert_eq!(plain(1_049), "1.0 µs");
        assert_eq!(plain(10_743_249), "10 743.2 µs");
        assert_eq!(plain(-10_743_250), "-10 743.3 µs");
        assert_eq!(plain(234_900_000), "234.9 ms");
        assert_eq!(plain(12_340_000_000), "12.3 s");
        assert!(time(i64::MAX).ends_with(" s") && time(i64::MIN).starts_with('-'));
    }

    #[test]
    fn three_digits_and_one_unit() {
        for (ns, shown) in [
            (0, "0 ns"),
            (606_400, "606 µs"),
            (999_600, "1.00 ms"),
            (45_600_000, "45.6 ms"),
            (1_234_000_000, "1.23 s"),
            (-1_500, "-1.50 µs"),
            (90_061_000_000_000, "90\u{202f}061 s"),
        ] {
            assert_eq!(brief(ns), shown);
        }
        let scale = Scale::of([26_400_000, 18_000_000, 700_000]);
        assert_eq!([26_400_000, 700_000].map(|ns| scale.digits(ns)), ["26.4", "0.70"]);
        // A few µs beside some ms: both are told in µs.
        assert_eq!(Scale::of([25_900_000, 23_500]), Scale::Us);
        assert_eq!(Scale::of([900_000_000_000, 10]), Scale::S);
        assert_eq!(Scale::of([]), Scale::Ns);
    }

    #[test]
    fn other_numbers() {
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(12), "12");
        assert_eq!(number(4.0), "4");
        assert_eq!(number(-0.0001), "0");
        assert_eq!(number(0.125), "0.125");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(-(1 << 30)), "-1.0 GiB");
        assert_eq!(bytes(i64::MAX), "8192.0 PiB");
        assert_eq!(share(0.12345), "12.3 %");
        assert_eq!(share(f64::NAN), "? %");
        assert_eq!(share_of(1, 0), "–");
        assert_eq!(exact_ns(-1234), "-1\u{202f}234 ns");
    }

    #[test]
    fn dates_of_known_days() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_400_000_000_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(-1), "1969-12-31 23:59:59 UTC");
    }

    proptest::proptest! {
        #[test]
        fn no_time_panics(ns in proptest::num::i64::ANY) {
            proptest::prop_assert!(!time(ns).is_empty() && !utc(ns).is_empty() && !micros(ns).is_empty());
        }
    }
}
