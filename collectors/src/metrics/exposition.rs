//! Prometheus' text format, version 0.0.4 (<https://prometheus.io/docs/instrumenting/exposition_formats/>), as far as it is
//! needed: names, values and the `le` of buckets. Series that differ in other labels are added up, or the largest taken.
//!
//! A line that is not of the format is counted and passed over; so the page of a newer engine is read as far as it can be.
//! `NaN` and infinities are of the format: a client library writes them for what it does not know.

use std::collections::{BTreeMap, HashMap};

/// Samples of wanted metrics that are kept, and distinct metrics and buckets: far above any page, far below memory.
const MOST: usize = 100_000;

/// Upper bound of a bucket; ordered as numbers are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound(pub f64);

impl Eq for Bound {}

impl PartialOrd for Bound {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bound {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Counts up to each bound, of all series together.
pub type Histogram = BTreeMap<Bound, f64>;

#[derive(Clone, Copy, Debug, Default)]
struct Gauge {
    sum: f64,
    most: f64,
    /// A value that is not finite, which makes neither of them known.
    odd: Option<f64>,
}

/// What a page holds of the wanted metrics.
#[derive(Clone, Debug, Default)]
pub struct Page {
    gauges: HashMap<String, Gauge>,
    histograms: HashMap<String, Histogram>,
    /// Samples on the page, wanted or not.
    pub samples: u64,
    /// Lines that are not of the format.
    pub bad_lines: u64,
    /// Whether its end is missing.
    pub cut: bool,
}

impl Page {
    /// The value of a gauge or counter: the sum of its series, or the largest of them; not finite where one of them is not.
    pub fn gauge(&self, name: &str, largest: bool) -> Option<f64> {
        self.gauges.get(name).map(|gauge| gauge.odd.unwrap_or(if largest { gauge.most } else { gauge.sum }))
    }

    /// The buckets of a histogram.
    pub fn histogram(&self, name: &str) -> Option<Histogram> {
        self.histograms.get(name).cloned()
    }

    /// Whether it holds a metric.
    pub fn holds(&self, name: &str) -> bool {
        self.gauges.contains_key(name) || self.histograms.contains_key(name)
    }
}

/// Reads a page; of metrics that are not `wanted` only the lines are counted.
pub fn read(page: &[u8], cut: bool, wanted: &dyn Fn(&str) -> bool) -> Page {
    let mut out = Page { cut, ..Page::default() };
    let mut kept = 0;
    let mut lines = page.split(|byte| *byte == b'\n');
    if cut {
        // The last line of a page that was cut may be half a number.
        lines.next_back();
    }
    for line in lines {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let Some((name, le, value)) = std::str::from_utf8(line).ok().and_then(sample) else {
            out.bad_lines += 1;
            continue;
        };
        out.samples += 1;
        let histogram = name.strip_suffix("_bucket").filter(|base| wanted(base)).zip(le);
        if histogram.is_none() && !wanted(name) {
            continue;
        }
        if kept == MOST {
            out.bad_lines += 1;
            continue;
        }
        kept += 1;
        match histogram {
            Some((base, le)) => {
                *out.histograms.entry(base.to_owned()).or_default().entry(Bound(le)).or_default() += value;
            }
            None => {
                let none = Gauge { sum: 0.0, most: f64::NEG_INFINITY, odd: None };
                let gauge = out.gauges.entry(name.to_owned()).or_insert(none);
                let odd = Some(value).filter(|value| !value.is_finite()).or(gauge.odd);
                *gauge = Gauge { sum: gauge.sum + value, most: gauge.most.max(value), odd };
            }
        }
    }
    out
}

/// Name, `le` and value of a sample.
fn sample(line: &str) -> Option<(&str, Option<f64>, f64)> {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    let end = line.find(|c: char| !(letter(c) || c.is_ascii_digit())).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    if !name.starts_with(letter) {
        return None;
    }
    let rest = rest.trim_start();
    let (le, rest) = match rest.strip_prefix('{') {
        Some(labels) => labelled(labels)?,
        None => (None, rest),
    };
    let mut words = rest.split_ascii_whitespace();
    let value = number(words.next()?)?;
    // A time in ms may follow, and nothing else.
    let time = words.next().is_none_or(|time| time.parse::<i64>().is_ok());
    (time && words.next().is_none()).then_some((name, le, value))
}

/// The `le` among labels, and what follows them.
fn labelled(mut rest: &str) -> Option<(Option<f64>, &str)> {
    let mut le = None;
    loop {
        rest = rest.trim_start();
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((le, rest));
        }
        let (key, after) = rest.split_once('=')?;
        let quoted = after.trim_start().strip_prefix('"')?;
        let mut escaped = false;
        let close = quoted.bytes().position(|byte| {
            let closes = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            closes
        })?;
        let (value, after) = quoted.split_at(close);
        if key.trim() == "le" {
            le = Some(number(value)?);
        }
        rest = after.strip_prefix('"')?.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

/// A number as Go writes it.
fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" | "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        text if text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn samples_are_read_with_their_labels_and_times() {
        assert_eq!(sample("a 1"), Some(("a", None, 1.0)));
        assert_eq!(
            sample("vllm:b{x=\"a\\\"}, le=\",le=\"0.5\",} 2e3 1700000000000"),
            Some(("vllm:b", Some(0.5), 2000.0))
        );
        assert_eq!(sample("a_bucket {le=\"+Inf\"} 7"), Some(("a_bucket", Some(f64::INFINITY), 7.0)));
        for bad in
            ["", "1a 2", "a", "a{", "a{x=1} 2", "a{x=\"1} 2", "a one", "a 1 2 3", "a 1 b", "a{le=\"x\"} 1", "<html>"]
        {
            assert_eq!(sample(bad), None, "{bad}");
        }
    }

    #[test]
    fn series_of_one_metric_are_together_and_what_is_bad_is_counted() {
        let text = b"# HELP u x\nu{engine=\"0\"} 0.25\r\nu{engine=\"1\"} 0.5\nother 3\n\xff\xfe\nu{ 1\n\
            t_bucket{le=\"1\",e=\"0\"} 2\nt_bucket{le=\"1\",e=\"1\"} 3\nt_bucket{le=\"+Inf\"} 9\nt_sum 4\n";
        let page = read(text, false, &|name| name == "u" || name == "t");
        assert_eq!((page.gauge("u", false), page.gauge("u", true)), (Some(0.75), Some(0.5)));
        assert_eq!((page.gauge("other", false), page.samples, page.bad_lines), (None, 7, 2));
        let buckets: Vec<(f64, f64)> = page.histogram("t").unwrap().into_iter().map(|(le, n)| (le.0, n)).collect();
        assert_eq!(buckets, [(1.0, 5.0), (f64::INFINITY, 9.0)]);
        let odd = read(b"u 1\nu NaN\nv +Inf\nw 1e308\nw 1e308\nt_bucket{le=\"1\"} NaN\n", false, &|_| true);
        assert!(odd.gauge("u", false).unwrap().is_nan() && odd.gauge("u", true).unwrap().is_nan());
        assert_eq!((odd.gauge("v", true), odd.gauge("w", true)), (Some(f64::INFINITY), Some(1e308)));
        assert_eq!((odd.gauge("w", false), odd.bad_lines, odd.samples), (Some(f64::INFINITY), 0, 6));
        let half = read(b"u 12\nu 3", true, &|_| true);
        assert_eq!((half.gauge("u", false), half.cut), (Some(12.0), true));
    }
}
