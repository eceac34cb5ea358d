//! Link tests: one test as a part of its report, and two of them size by size.

pub mod json;
mod page;
mod single;

use model::Trace;

use super::{
    diff::{Compared, Head, ci::Asked},
    document::Document,
    sections::Shown,
    text, units,
};
use diagnosis::{
    diagnose::limits::PublishedLink,
    i18n::{Lang, Text, Value},
    link_test::{
        self, Links, Series, SlowLink,
        beside::{Beside, Pair, Row},
    },
};

pub(crate) use single::{headline, write};

/// Transports over a network: the links of a device bound nothing there.
const NETWORK: &str = "NET";

/// What a capture says of the links that it tested.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkTest {
    /// Collectives that were measured.
    pub series: Vec<Series>,
    /// What is known of the links.
    pub links: Links,
    /// What is published of them, where the device is known.
    pub published: Option<PublishedLink>,
}

impl LinkTest {
    /// Of a capture: nothing of one that is no link test.
    pub fn of(trace: &Trace, published: Option<&PublishedLink>) -> Self {
        if !link_test::is_test(trace) {
            return Self::default();
        }
        Self { series: link_test::of(&[trace]), links: Links::of(trace), published: published.cloned() }
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// What is published of the links, where they are all that binds.
    fn bound(&self) -> Option<&PublishedLink> {
        self.published.as_ref().filter(|_| !self.links.channels.contains_key(NETWORK))
    }
}

impl serde::Serialize for LinkTest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json::single(self).serialize(serializer)
    }
}

/// A report on two link tests.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkReport {
    /// The two sides.
    pub heads: [Head; 2],
    /// What is published of the links of each side, where its device is known.
    pub published: [Option<PublishedLink>; 2],
    /// What is said of them.
    pub beside: Beside,
}

impl Compared for LinkReport {
    fn heads(&self) -> &[Head; 2] {
        &self.heads
    }

    fn document(&self, lang: Lang) -> Document {
        page::report(self, lang)
    }

    fn json(&self, gate: Option<Asked>) -> Result<String, serde_json::Error> {
        json::render(self, gate)
    }

    fn slower(&self) -> Option<Vec<(String, f64)>> {
        let rows = self.beside.pairs.iter().flat_map(|pair| pair.rows.iter().map(move |row| (pair, row)));
        let slower = rows.filter(|(_, row)| row.differs() && row.ratio() > 1.0);
        let named = |(pair, row): (&Pair, &Row)| {
            (format!("{} at {}", name(&pair.series[0], Lang::En), units::bytes(row.bytes)), row.ratio() - 1.0)
        };
        let mut slower: Vec<_> = slower.map(named).collect();
        slower.sort_by(|a, b| b.1.total_cmp(&a.1));
        (!self.beside.pairs.is_empty()).then_some(slower)
    }
}

impl Shown for LinkReport {
    fn is_simulated(&self) -> bool {
        self.heads.iter().any(|head| head.simulated)
    }
}

/// A bandwidth in a cell.
pub(crate) fn rate(gb_per_s: Option<f64>) -> String {
    gb_per_s
        .map_or_else(|| "–".to_owned(), |rate| if rate >= 100.0 { format!("{rate:.1}") } else { format!("{rate:.2}") })
}

/// A collective with its ranks and element type.
pub(crate) fn name(series: &Series, lang: Lang) -> String {
    let shown = |name: &str| text::plain(name, text::PHRASE);
    let op = series.op.as_deref().map_or_else(|| Text::new("collective", "集合通信").get(lang).to_owned(), shown);
    let ranks = series.ranks.map(|n| format!(", {n} {}", Text::new("ranks", "个 rank").get(lang))).unwrap_or_default();
    let dtype = series.dtype.as_deref().map(|dtype| format!(", {}", shown(dtype))).unwrap_or_default();
    format!("{op}{ranks}{dtype}")
}

/// A slow link in words: its two ends and how fast it is of what others of its kind are.
pub(crate) const SLOW: Text = Text::new(
    "link {from} to {to} ({kind}) {rate} of {of} GB/s",
    "链路 {from} 至 {to}（{kind}）仅 {rate} GB/s，同类最快 {of} GB/s",
);

/// What [`SLOW`] is filled with.
pub(crate) fn slow_args(slow: &SlowLink) -> [(&'static str, Value); 5] {
    [
        ("from", Value::Raw(slow.from.clone())),
        ("to", Value::Raw(slow.to.clone())),
        ("kind", Value::Raw(slow.kind.clone())),
        ("rate", Value::Number(slow.gb_per_s)),
        ("of", Value::Number(slow.of_gb_per_s)),
    ]
}
