//! What of the run a capture lacks, as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::plain;
use crate::phrase;
use diagnosis::{
    analysis::{Loss, loss},
    diagnose::lost,
    i18n::Lang,
};

/// What of the run the capture lacks.
#[derive(Serialize, JsonSchema)]
pub(super) struct Lost {
    /// Ranks of the job that are not in the capture; of many the first 64.
    absent_ranks: Vec<u32>,
    /// Where the source ends before its end.
    cut_at: Option<String>,
    /// Device operations.
    device: Part,
    /// Whether no share of busy or idle time is known, so that nothing that rests on one is said.
    forbids_shares: bool,
    /// Calls, operators and ranges of the host.
    host: Part,
    /// Device operations whose launch was lost.
    links: Part,
    /// All of it in sentences.
    notes: Vec<String>,
    /// Ranks of the job.
    ranks: Option<Part>,
    /// Records of which nothing says what they were.
    unknown: Part,
    /// Launches whose work has no record.
    unrecorded: Part,
}

/// How many of how many are lost.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LostPart")]
struct Part {
    all: u64,
    lost: u64,
}

/// `None` where nothing is lost.
pub(super) fn lost(loss: &Loss, lang: Lang) -> Option<Lost> {
    let part = |part: loss::Part| Part { all: part.all, lost: part.lost };
    let ranks = loss.ranks.as_ref();
    (loss.is_any() || ranks.is_some() || loss.doubled > 0).then(|| Lost {
        absent_ranks: ranks.map(|ranks| ranks.absent.clone()).unwrap_or_default(),
        cut_at: loss.cut.as_ref().and_then(|cut| cut.at.as_deref()).map(plain),
        device: part(loss.device),
        forbids_shares: loss.forbids_shares(),
        host: part(loss.host),
        links: part(loss.links),
        notes: lost::notes(loss).iter().map(|note| plain(&phrase::plain(note, lang))).collect(),
        ranks: ranks.map(|ranks| Part { all: ranks.all, lost: ranks.all.saturating_sub(ranks.captured) }),
        unknown: part(loss.unknown),
        unrecorded: part(loss.unrecorded),
    })
}
