//! What a link test measured: times and bandwidths of a collective, size by size. There are no steps in it: nothing of it says
//! where the time of a run went, only how fast its links are.
//!
//! | module | owns |
//! | --- | --- |
//! | `series` | the sizes of one collective, its plateau, its knee and its start |
//! | [`beside`] | two tests size by size, and which link is the slower one |

pub mod beside;
mod series;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::Trace;

pub use series::{Measured, Place, Plateau, Series, Size, of};

/// Id of the format of link tests and debug logs of a communication library.
const FORMAT: &str = "link-test";

/// Whether a capture is a link test, or a debug log of what it runs on.
pub fn is_test(trace: &Trace) -> bool {
    trace.format == FORMAT
}

/// A link that is slower than others of its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowLink {
    /// Kind such as `NVL`.
    pub kind: String,
    /// Where it comes from.
    pub from: String,
    /// Where it goes to.
    pub to: String,
    /// Its rate, GB/s.
    pub gb_per_s: f64,
    /// Rate of the fastest link of its kind, GB/s.
    pub of_gb_per_s: f64,
}

/// What is known of the links of a test beside what it measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Links {
    /// The slowest link, where links of one kind are uneven.
    pub slowest: Option<SlowLink>,
    /// Rate of the fastest link of each kind that the communication library found, GB/s.
    pub fastest: BTreeMap<String, f64>,
    /// Channels by transport.
    pub channels: BTreeMap<String, u64>,
}

impl Links {
    /// Of a capture.
    pub fn of(trace: &Trace) -> Self {
        let fact = |key: &str| trace.manifest.value(&format!("link.slowest.{key}")).map(str::to_owned);
        let rate = |key: &str| fact(key)?.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
        let slowest = || {
            Some(SlowLink {
                kind: fact("kind")?,
                from: fact("from")?,
                to: fact("to")?,
                gb_per_s: rate("gb_per_s")?,
                of_gb_per_s: rate("of_gb_per_s")?,
            })
        };
        let facts =
            || trace.manifest.iter().filter_map(|(key, entry)| Some((key.strip_prefix("link.")?, &entry.value)));
        let fastest = facts().filter_map(|(key, value)| {
            let greatest = value.strip_suffix(" GB/s")?.rsplit(' ').next()?.parse().ok()?;
            Some((key.strip_prefix("topology.")?.to_owned(), greatest))
        });
        let channels = facts().filter(|(key, _)| !key.contains('.'));
        let channels = channels.filter_map(|(key, value)| Some((key.to_owned(), value.parse().ok()?)));
        Self { slowest: slowest(), fastest: fastest.collect(), channels: channels.collect() }
    }
}
