//! Semantics cards: what the durations, gaps and links of a source mean, so that two sources are not compared as if they
//! meant the same.

use serde::Deserialize;

/// How a source shows the replay of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// Every node is a row.
    Node,
    /// One row for the whole replay.
    Whole,
    /// Nodes or whole, depending on how the source was recorded.
    Varies,
    /// The source does not show graphs.
    None,
}

/// How far a layer's numbers can be trusted when they come from a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// The source says nothing about the layer.
    None,
    /// Indications only.
    Low,
    /// Usable with the caveats of the card.
    Medium,
    /// Direct evidence.
    High,
}

/// What a source's rows mean.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SemanticsCard {
    /// Name of the card.
    pub id: String,
    /// Formats it describes; empty for the card of last resort.
    pub formats: Vec<String>,
    /// Vendors it is limited to; empty for all.
    #[serde(default)]
    pub vendors: Vec<String>,
    /// Unit of the source's own times: `ns`, `us`, `ms`, `mixed`.
    pub unit: String,
    /// Clock of the source's own times.
    pub clock: String,
    /// Whether the duration of a queued kernel includes the gap before it.
    pub duration_includes_dispatch: bool,
    /// Whether the wait for late ranks lies inside the collective's row.
    pub wait_inside_collective: bool,
    /// How graph replays appear.
    pub graph_granularity: Granularity,
    /// Whether launch calls and device work are linked by an id.
    pub has_correlation: bool,
    /// Whether calls of the runtime appear.
    pub has_host_api: bool,
    /// Duration shown for an empty kernel behind other work, ns; absent where nobody measured it.
    #[serde(default)]
    pub empty_kernel_ns_queued: Option<i64>,
    /// Duration shown for an empty kernel on an idle device, ns.
    #[serde(default)]
    pub empty_kernel_ns_isolated: Option<i64>,
    /// Host time of one launch while the source records, ns.
    #[serde(default)]
    pub launch_cost_ns_traced: Option<i64>,
    /// Host time of one launch without the source, ns.
    #[serde(default)]
    pub launch_cost_ns_untraced: Option<i64>,
    /// Trust in the operator layer.
    pub operator: Trust,
    /// Trust in the runtime layer.
    pub runtime: Trust,
    /// Trust in the communication layer.
    pub communication: Trust,
    /// Where the card's facts come from.
    pub source: String,
    /// Caveat for people, in English.
    pub note_en: String,
    /// Caveat for people, in Chinese.
    pub note_zh: String,
}

impl SemanticsCard {
    /// How well the card fits, higher is better; `None` when it does not. A format `msprof-db` is also served by a card
    /// for its family `msprof`.
    pub(super) fn fit(&self, format: &str, vendor: Option<&str>) -> Option<u8> {
        let family = format.split('-').next().unwrap_or(format);
        let by_format = match () {
            () if self.formats.iter().any(|f| f == format) => 4,
            () if self.formats.iter().any(|f| f == family) => 2,
            () if self.formats.is_empty() => 0,
            () => return None,
        };
        match vendor {
            _ if self.vendors.is_empty() => Some(by_format),
            Some(vendor) if self.vendors.iter().any(|v| v == vendor) => Some(by_format + 1),
            _ => None,
        }
    }
}
