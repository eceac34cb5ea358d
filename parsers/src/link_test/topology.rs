//! The tree of the machine that NCCL and RCCL print before they search it: which link goes from where to where, and how fast it
//! is.
//!
//! ```text
//! === System : maxBw 240.0 totalBw 240.0 ===
//! CPU/0-0 (1/1/2)
//! + PCI[24.0] - GPU/0-17000 (0)
//!               + NVL[20.0] - GPU/0-65000
//! ```
//!
//! A link goes from the node that its line is indented below. Every rank prints the tree, and their lines may mix.

use std::collections::BTreeMap;

/// Most kinds of links; there are a handful.
const MAX_KINDS: usize = 32;
/// Most links, and most writers, that are kept.
const MAX_LINKS: usize = 1 << 12;
/// Deepest nesting of the tree that is followed.
const MAX_DEPTH: usize = 32;
/// How many times faster the fastest link of a kind is than the slowest one where they are called uneven: links of a kind that
/// differ in their number of lanes differ by two.
const UNEVEN: f64 = 2.0;
/// Mark of the library's lines.
const MARK: &str = "NCCL INFO ";
/// Names of devices begin so.
const GPU: &str = "GPU/";

/// A link that is slower than others of its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Slow {
    /// Kind such as `NVL`.
    pub kind: String,
    /// The two ends, with their ranks where the tree tells them.
    pub ends: [String; 2],
    /// Its rate, GB/s.
    pub rate: f64,
    /// Rate of the fastest link of its kind, GB/s.
    pub of: f64,
}

/// The links of a machine, as the library found or was told them.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// Least and greatest rate of the links of each kind (`NVL`, `PCI`), GB/s.
    pub kinds: BTreeMap<String, (f64, f64)>,
    /// Rate of each link, GB/s, by kind and ends.
    links: BTreeMap<(String, String, String), f64>,
    /// Rank of a device by its name in the tree.
    ranks: BTreeMap<String, u32>,
    /// By writer, the nodes above the line that comes next, with how far their lines are indented.
    above: BTreeMap<String, Vec<(usize, String)>>,
    /// Links beyond what is kept.
    pub dropped: u64,
}

impl Topology {
    /// Whether the links of a kind are uneven.
    pub fn is_uneven((least, greatest): (f64, f64)) -> bool {
        least * UNEVEN <= greatest
    }

    /// The link to a device that is furthest below the fastest one of its kind, where links of that kind are uneven.
    pub fn slowest(&self) -> Option<Slow> {
        let to_device = || self.links.iter().filter(|((_, _, to), _)| to.starts_with(GPU));
        let mut fastest: BTreeMap<&str, f64> = BTreeMap::new();
        for ((kind, ..), rate) in to_device() {
            let known = fastest.entry(kind).or_insert(*rate);
            *known = known.max(*rate);
        }
        let below = to_device().filter_map(|((kind, from, to), rate)| {
            let of = *fastest.get(kind.as_str())?;
            Self::is_uneven((*rate, of)).then_some((kind, [from, to], *rate, of))
        });
        let (kind, ends, rate, of) = below.max_by(|a, b| (a.3 / a.2).total_cmp(&(b.3 / b.2)))?;
        let ends = ends.map(|end| match self.ranks.get(end) {
            Some(rank) => format!("{end} (rank {rank})"),
            None => end.clone(),
        });
        Some(Slow { kind: kind.clone(), ends, rate, of })
    }

    fn link(&mut self, writer: &str, indent: usize, (kind, rate, to): (&str, f64, &str)) {
        if self.kinds.len() < MAX_KINDS || self.kinds.contains_key(kind) {
            let known = self.kinds.entry(kind.to_owned()).or_insert((rate, rate));
            *known = (known.0.min(rate), known.1.max(rate));
        }
        let (name, rank) = named(to);
        if let Some(rank) = rank.filter(|_| self.ranks.len() < MAX_LINKS) {
            self.ranks.insert(name.to_owned(), rank);
        }
        let Some(above) = self.above.get_mut(writer) else { return };
        above.retain(|(at, _)| *at < indent);
        if let Some((_, from)) = above.last() {
            let link = (kind.to_owned(), from.clone(), name.to_owned());
            if self.links.len() < MAX_LINKS || self.links.contains_key(&link) {
                let known = self.links.entry(link).or_insert(rate);
                *known = known.min(rate);
            } else {
                self.dropped += 1;
            }
        }
        if above.len() < MAX_DEPTH {
            above.push((indent, name.to_owned()));
        }
    }
}

/// Takes a line, if it is one of the tree.
pub fn take(topology: &mut Topology, line: &str) -> bool {
    let Some((writer, text)) = line.split_once(MARK) else { return false };
    if text.starts_with("CPU/") && !text.contains(" :") {
        // A node of its own begins anew what the lines below it are indented under.
        if topology.above.len() < MAX_LINKS || topology.above.contains_key(writer) {
            let root = (0, named(text).0.to_owned());
            topology.above.insert(writer.to_owned(), vec![root]);
        }
        return true;
    }
    let indent = text.len() - text.trim_start().len();
    let Some(link) = link(text.trim()) else { return false };
    // The lines directly below a node are not indented.
    topology.link(writer, indent + 1, link);
    true
}

/// `GPU/0-17000 (0)`: name of a node, and its rank where it has one.
fn named(text: &str) -> (&str, Option<u32>) {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let rank = words.next().and_then(|word| word.strip_prefix('(')?.strip_suffix(')')?.parse().ok());
    (name, rank.filter(|_| name.starts_with(GPU)))
}

/// `+ NVL[240.0] - GPU/0-65000`: kind, rate and end of a link.
fn link(message: &str) -> Option<(&str, f64, &str)> {
    let (kind, rest) = message.strip_prefix("+ ")?.trim_start().split_once('[')?;
    let (rate, to) = rest.split_once(']')?;
    let rate = rate.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0)?;
    let known = !kind.is_empty() && kind.chars().all(|c| c.is_ascii_uppercase());
    known.then_some((kind, rate, to.strip_prefix(" - ")?))
}
