//! Link tests among the captures of a session.

use diagnosis::{diagnose::limits::PublishedLink, link_test::beside::Beside, platform::Packs};
use model::Trace;
use report::link_test::LinkReport;

use crate::serving;

/// Two sides of link tests, size by size; several tests of a side are repeats.
pub fn compare(sides: [&[Trace]; 2], packs: &Packs) -> LinkReport {
    let sides = sides.map(|side| side.iter().collect::<Vec<&Trace>>());
    let [a, b] = &sides;
    LinkReport {
        heads: [serving::heads(a), serving::heads(b)],
        published: sides.each_ref().map(|side| side.iter().find_map(|trace| PublishedLink::of(trace, packs))),
        beside: Beside::of([a, b]),
    }
}
