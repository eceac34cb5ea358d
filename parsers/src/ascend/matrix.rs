//! What moved between a rank and its peers: `communication_matrix.json`, or `CommAnalyzerMatrix` of `analysis.db`, by step,
//! kind, operation and pair of ranks. MB are 10⁶ bytes. The ranks of a pair are numbers within the group that communicates;
//! which ranks of the job these are is told by the process groups in `profiler_metadata.json`, which do not name the group as
//! the matrix does: what fits is told by the rank's own number in it. Source: torch_npu's and CANN's analysis, 2023 to 2025.

use std::{borrow::Cow, collections::BTreeMap, path::Path};

use model::{Severity, TraceSink};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    cluster::{Entry, Gathered},
    facts::{Groups, ProcessGroup},
    layout::{Layout, name},
};
#[cfg(feature = "sqlite")]
use crate::sqlite::{
    database::{Database, tell_loss},
    page::Column::{self, Decimal, Real, Text},
    scan::Item,
};
use crate::{json_walk, lanes::Account};

/// Keys above an entry: step, kind, operation and pair of ranks.
const DEPTH: usize = 4;
/// Most pairs that are kept in mind; a step of a large job has some thousand.
const MOST: usize = 1 << 18;
const BECOMES: &str = "sums over the transfers of each pair of ranks; a group's own sum counts once";
#[cfg(feature = "sqlite")]
const TABLE: &str = "CommAnalyzerMatrix";

/// What moved over a link.
#[derive(Deserialize)]
struct Link<'a> {
    #[serde(rename = "Transport Type", borrow)]
    transport: Cow<'a, str>,
    #[serde(rename = "Transit Size(MB)", borrow)]
    size: &'a RawValue,
    #[serde(rename = "Transit Time(ms)", borrow)]
    time: &'a RawValue,
}

/// A row of the matrix; ranks as it numbers them.
struct Pair {
    step: String,
    /// `p2p` or `collective`.
    kind: String,
    operation: String,
    group: String,
    from: u32,
    to: u32,
    transport: String,
    bytes: i64,
    ns: i64,
}

/// Reads what a capture has of its rank's links, if it has any.
pub(super) fn read(layout: &Layout, sink: &mut dyn TraceSink) {
    let mut matrix = Matrix::default();
    match (layout.matrix.as_deref(), layout.analysis()) {
        (Some(path), _) => matrix.json(path, sink),
        #[cfg(feature = "sqlite")]
        (None, Some(path)) => matrix.database(path, sink),
        _ => return,
    }
    matrix.settle(layout, sink);
}

#[derive(Default)]
struct Matrix {
    pairs: Vec<Pair>,
    beyond: u64,
    file: String,
    account: Account,
}

impl Matrix {
    fn add(&mut self, pair: Option<Pair>) {
        self.account.read += 1;
        match pair {
            Some(pair) if self.pairs.len() < MOST => self.pairs.push(pair),
            Some(_) => self.beyond += 1,
            None => self.account.incomplete += 1,
        }
    }

    fn json(&mut self, path: &Path, sink: &mut dyn TraceSink) {
        self.file = name(path);
        let read = json_walk::leaves(path, DEPTH, &|_, _| {}, &mut |keys, text| {
            let [step, kind, operation, ranks] = keys else { return };
            let pair = || {
                let (from, to) = ranks.split_once('-')?;
                let link: Link<'_> = serde_json::from_str(text).ok()?;
                Some(Pair {
                    step: step.clone(),
                    kind: kind.clone(),
                    operation: operation.clone(),
                    group: operation.split_once('@').map(|(_, group)| group.to_owned()).unwrap_or_default(),
                    from: from.parse().ok()?,
                    to: to.parse().ok()?,
                    transport: link.transport.into_owned(),
                    bytes: million(link.size)?,
                    ns: million(link.time)?,
                })
            };
            self.add(pair());
        });
        let damage = match read {
            Ok(damage) => damage.map(|damage| format!("{}: {damage}", self.file)),
            Err(error) => Some(error.to_string()),
        };
        if let Some(damage) = damage {
            sink.stat("ascend.damaged_file", Severity::DataLoss, 1, Some(&damage));
        }
    }

    #[cfg(feature = "sqlite")]
    fn database(&mut self, path: &Path, sink: &mut dyn TraceSink) {
        self.file = TABLE.to_owned();
        // A database that does not open was told of when its times were read.
        let Ok(database) = Database::open(path, super::database::malformed) else { return };
        if !database.tables.has(TABLE) {
            return;
        }
        let plan = database.plan([(&TABLE, TABLE.to_owned(), COLUMNS)], "ascend", sink);
        plan.read(&|_, _| {}, |table, item| match item {
            Item::Page(page) => {
                for row in 0..page.rows {
                    let text = |lane| page.inline(lane, row).unwrap_or_default().to_owned();
                    let rank = |lane| u32::try_from(page.int(lane, row)?).ok();
                    let million = |lane| {
                        let value = (page.real(lane, row)? * 1e6).round();
                        (0.0..9e18).contains(&value).then_some(value as i64)
                    };
                    let pair = || {
                        Some(Pair {
                            step: text(0),
                            kind: text(1),
                            operation: text(2),
                            group: text(3),
                            from: rank(4)?,
                            to: rank(5)?,
                            transport: text(6),
                            bytes: million(7)?,
                            ns: million(8)?,
                        })
                    };
                    self.add(pair());
                }
                page.rows as u64
            }
            Item::Loss(loss) => tell_loss(&loss, "ascend", table, sink),
        });
    }

    /// Hands on the links between ranks of the job.
    fn settle(mut self, layout: &Layout, sink: &mut dyn TraceSink) {
        if self.account.read == 0 {
            return;
        }
        let groups = Groups::of(layout);
        let mut highest: BTreeMap<String, u32> = BTreeMap::new();
        for pair in &self.pairs {
            let known = highest.entry(pair.group.clone()).or_default();
            *known = (*known).max(pair.from).max(pair.to);
        }
        let (mut gathered, mut unknown) = (Gathered::default(), 0u64);
        for pair in std::mem::take(&mut self.pairs) {
            let highest = highest.get(&pair.group).copied().unwrap_or_default();
            // Where nothing tells of groups, numbers by which the rank calls itself are those of the job.
            let ranks = match groups.groups.is_empty() {
                true => (groups.rank == Some(pair.from)).then_some((pair.from, pair.to)),
                false => groups.rank.zip(peer(&groups.groups, &pair, highest)),
            };
            let Some((from, to)) = ranks else {
                unknown += 1;
                continue;
            };
            let entry = Entry { step: &pair.step, set: &pair.kind, operation: &pair.operation };
            gathered.link(entry, from, to, &pair.transport, [pair.bytes, pair.ns]);
            self.account.keep(0, pair.ns);
        }
        gathered.tell(sink);
        let file = self.file;
        if unknown > 0 {
            let why =
                format!("{file}: pairs of a group whose ranks in the job do not follow from the files of this rank");
            sink.stat("ascend.links_of_unknown_ranks", Severity::Notice, unknown, Some(&why));
        }
        if self.beyond > 0 {
            sink.stat("ascend.too_many_links", Severity::DataLoss, self.beyond, Some(&file));
        }
        self.account.tell(sink, "ascend", &file, BECOMES);
    }
}

/// The rank of the job that a rank sends to: that of the groups in which it has the number that it has here and which are
/// large enough, if they agree; of several what sends from stage to stage is the group of the pipeline.
fn peer(groups: &[ProcessGroup], pair: &Pair, highest: u32) -> Option<u32> {
    let fits = |group: &&ProcessGroup| group.own == pair.from && group.ranks.len() > highest as usize;
    let to = |group: &ProcessGroup| group.ranks.get(pair.to as usize).copied();
    let mut peers = groups.iter().filter(fits).map(to);
    let first = peers.next()??;
    if peers.all(|peer| peer == Some(first)) {
        return Some(first);
    }
    let stages = |group: &&ProcessGroup| pair.kind == "p2p" && group.name == "pp";
    groups.iter().filter(fits).find(stages).and_then(to)
}

/// A decimal number times 10⁶ that is not negative: ms as ns, MB as bytes.
fn million(number: &RawValue) -> Option<i64> {
    model::time::parse_decimal(number.get().as_bytes(), 6).ok().map(|(n, _)| n).filter(|n| *n >= 0)
}

/// `CommAnalyzerMatrix`: MB and ms; ranks are text.
#[cfg(feature = "sqlite")]
const COLUMNS: &[Column] = &[
    Text("step", None),
    Text("type", None),
    Text("hccl_op_name", None),
    Text("group_name", None),
    Decimal("src_rank", &[]),
    Decimal("dst_rank", &[]),
    Text("transport_type", None),
    Real("transit_size"),
    Real("transit_time"),
];

#[cfg(all(test, feature = "sqlite"))]
#[path = "tests/matrix.rs"]
mod tests;
