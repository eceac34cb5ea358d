//! What micro-benchmarks found a machine to be able to do: the ceilings that a run on it is held against.
//!
//! A row is one quantity under one setting, with the spread of its repeats; what could not be measured has a reason in
//! place of a value. The provenance says on what machine and under what load the rows came to be.

use std::fmt;

use crate::track::Reading;

/// What a value is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum ProbeUnit {
    /// Nanoseconds; less is better.
    #[serde(rename = "ns")]
    Ns,
    /// Bytes per second.
    #[serde(rename = "B/s")]
    BytesPerSecond,
    /// Floating-point operations per second; a multiplication with its addition is two.
    #[serde(rename = "flop/s")]
    FlopsPerSecond,
    /// Operations per second.
    #[serde(rename = "1/s")]
    PerSecond,
}

impl ProbeUnit {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ns, Self::BytesPerSecond, Self::FlopsPerSecond, Self::PerSecond];

    /// Name in capture files and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::BytesPerSecond => "B/s",
            Self::FlopsPerSecond => "flop/s",
            Self::PerSecond => "1/s",
        }
    }

    /// Whether a smaller value is the better one.
    pub fn less_is_better(self) -> bool {
        self == Self::Ns
    }
}

/// Repeats of a measurement in the order statistics that resist outliers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistic {
    /// Median.
    pub median: f64,
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
    /// Median distance from the median (MAD).
    pub mad: f64,
    /// Number of repeats.
    pub repeats: u32,
}

impl Statistic {
    /// Of values of any order; `None` without a finite one.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let median = middle(&values)?;
        let mut distances: Vec<f64> = values.iter().map(|v| (v - median).abs()).collect();
        distances.sort_by(f64::total_cmp);
        let repeats = u32::try_from(values.len()).unwrap_or(u32::MAX);
        Some(Self { median, min, max, mad: middle(&distances)?, repeats })
    }

    /// Median distance from the median over the median: 0 where all repeats agree.
    pub fn relative_spread(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { self.mad / self.median.abs() }
    }

    /// Every value through a function that keeps or turns their order, such as a time into a rate.
    #[must_use]
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        let (a, b) = (f(self.min), f(self.max));
        let median = f(self.median);
        let mad = (f(self.median + self.mad) - f(self.median - self.mad)).abs() / 2.0;
        Self { median, min: a.min(b), max: a.max(b), mad, repeats: self.repeats }
    }
}

/// Middle of ascending values; of an even number the mean of the two.
fn middle(values: &[f64]) -> Option<f64> {
    let at = values.len() / 2;
    let upper = *values.get(at)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(*values.get(at.checked_sub(1)?)?, upper))
}

/// Under what a quantity was measured: names and values such as `threads=2 bytes=4096`, in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Setting(Vec<(String, String)>);

impl Setting {
    /// Threads that took part.
    pub const THREADS: &str = "threads";
    /// Size of what was moved or read over and over, bytes.
    pub const BYTES: &str = "bytes";
    /// Type of the weights.
    pub const DTYPE: &str = "dtype";
    /// Rows of activations of a product: tokens of the step.
    pub const ROWS: &str = "m";
    /// Outputs of a product.
    pub const OUTPUTS: &str = "n";
    /// Inputs of a product.
    pub const INPUTS: &str = "k";
    /// Kernel that was measured, as the names of a run's kernels end after the type of the weights.
    pub const KERNEL: &str = "kernel";
    /// Tokens that attention reads.
    pub const CONTEXT: &str = "context";

    /// No condition yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more condition; blanks and `=` of the value become `_`.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        let value = value.to_string().replace(|c: char| c.is_whitespace() || c == '=', "_");
        self.0.push((name.to_owned(), value));
        self
    }

    /// The value of a condition.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a condition that is a whole number.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.parse().ok()
    }

    /// From the text that [`fmt::Display`] gives; words that are no condition are left out.
    pub fn parse(text: &str) -> Self {
        let pairs = text.split_whitespace().filter_map(|word| word.split_once('='));
        Self(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.iter().enumerate() {
            write!(f, "{}{name}={value}", if i > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

/// One quantity under one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeRow {
    /// Probe such as `read`.
    pub probe: String,
    /// Quantity such as `bandwidth`.
    pub metric: String,
    /// What it is counted in.
    pub unit: ProbeUnit,
    /// Under what.
    pub setting: Setting,
    /// What came out.
    pub value: Reading<Statistic>,
}

impl ProbeRow {
    /// The repeats, if there are any.
    pub fn statistic(&self) -> Option<&Statistic> {
        self.value.value()
    }
}

/// A run of probes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProbeRun {
    /// On what machine, when and under what load, by name: `cpu`, `system`, `threads`, `isa`, `taken_unix_ns`, `load`,
    /// `steal`, `noise`. A run that was disturbed says by what under `noise`.
    pub provenance: Vec<(String, Reading<String>)>,
    /// What was measured.
    pub rows: Vec<ProbeRow>,
}

impl ProbeRun {
    /// Key of the processor's or device's name in the provenance.
    pub const DEVICE: &str = "device";
    /// Key of what disturbed the run; absent or unavailable where nothing is known to.
    pub const NOISE: &str = "noise";

    /// A fact of the provenance.
    pub fn fact(&self, key: &str) -> Option<&str> {
        self.provenance.iter().find(|(known, _)| known == key)?.1.value().map(String::as_str)
    }

    /// Rows of a quantity of a probe that were measured.
    pub fn measured<'a>(
        &'a self,
        probe: &'a str,
        metric: &'a str,
    ) -> impl Iterator<Item = (&'a Setting, &'a Statistic)> {
        let of = move |row: &&ProbeRow| row.probe == probe && row.metric == metric;
        self.rows.iter().filter(of).filter_map(|row| Some((&row.setting, row.statistic()?)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_median_and_the_spread_resist_an_outlier() {
        let s = Statistic::of([3.0, 1.0, 2.0, 1000.0, f64::NAN]).unwrap();
        assert_eq!((s.median, s.min, s.max, s.mad, s.repeats), (2.5, 1.0, 1000.0, 1.0, 4));
        assert!(Statistic::of([f64::NAN]).is_none());
        let rate = Statistic::of([1.0, 2.0, 4.0]).unwrap().map(|ns| 8.0 / ns);
        assert_eq!((rate.min, rate.median, rate.max), (2.0, 4.0, 8.0));
    }

    #[test]
    fn a_setting_comes_back_from_its_text() {
        let setting = Setting::new().with(Setting::THREADS, 2).with("isa", "avx 2=x");
        assert_eq!(setting.to_string(), "threads=2 isa=avx_2_x");
        assert_eq!(Setting::parse(&setting.to_string()), setting);
        assert_eq!((setting.number("threads"), setting.number("isa")), (Some(2), None));
        assert_eq!(Setting::parse("junk = ="), Setting::parse("= ="));
    }
}
