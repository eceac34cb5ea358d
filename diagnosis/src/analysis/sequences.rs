//! How long the sequences are that a step attends with, where operator shapes were recorded: what tells a step over whole
//! sequences (prefill, an encoder) from one that adds a token to each.

use model::{Category, Detail, Trace};
use rustc_hash::FxHashSet;

use super::{Analysis, Class, Rank, Step};
use crate::platform::Stage;

/// The public attention operator; its documented layout is (sequences, heads, length, head size) for queries and keys
/// alike.
const ATTENTION: &str = "aten::scaled_dot_product_attention";

/// One attention, as its operator describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attention {
    /// Sequences.
    pub batch: u64,
    /// Heads of the queries on this rank.
    pub heads: u64,
    /// Heads of the keys.
    pub key_heads: u64,
    /// Queries of a sequence.
    pub queries: u64,
    /// Keys of a sequence.
    pub keys: u64,
    /// Size of a head.
    pub size: u64,
}

/// Every attention of a step whose shapes were recorded with its operator, in its documented layout.
pub fn attention<'a>(trace: &'a Trace, rank: &'a Rank, step: &Step) -> impl Iterator<Item = Attention> + use<'a> {
    shapes(trace, rank, step).filter_map(read)
}

/// Shapes of the inputs of every attention of a step.
fn shapes<'a>(trace: &'a Trace, rank: &'a Rank, step: &Step) -> impl Iterator<Item = &'a str> + use<'a> {
    let span = step.host.unwrap_or(step.window);
    let name = trace.strings.find(ATTENTION);
    let lanes = rank.timeline.threads.iter().filter_map(|t| trace.lanes.get(t.0 as usize));
    lanes.flat_map(move |lane| {
        let from = lane.start.partition_point(|s| *s < span.start);
        let to = lane.start.partition_point(|s| *s < span.end);
        let own = move |i: &usize| Some(lane.name[*i]) == name && lane.category[*i] == Category::FrameworkOp;
        (from..to).filter(own).filter_map(move |i| match trace.detail(lane, i)? {
            Detail::Op(op) => Some(trace.strings.get(op.shapes?)),
            _ => None,
        })
    })
}

/// Queries and keys per sequence of the longest attention in the first step of `class` that counts, if nothing else tells
/// its stage.
pub fn attended(trace: &Trace, rank: &Rank, class: &Class) -> Option<(u64, u64)> {
    let step = rank.steady_steps(class).next().filter(|_| class.stage == Stage::Unknown)?;
    shapes(trace, rank, step).filter_map(lengths).max_by_key(|(queries, keys)| (*keys, *queries))
}

/// What a capture shows of the length of prompts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prompts {
    /// Most new tokens of a sequence in a step that reads prompts, the mean of its sequences: some prompt is as long. How many
    /// these are the step says, else they are taken for as many as are decoded later.
    pub read: Option<u64>,
    /// Most keys that any attention of a sequence has: no prompt is longer.
    pub keys: Option<u64>,
}

/// What all steps of a capture show of the length of prompts.
pub fn prompts(trace: &Trace, analysis: &Analysis) -> Prompts {
    let mut found = Prompts::default();
    for rank in &analysis.ranks {
        let mut seen = FxHashSet::default();
        let decoded = rank.steps.iter().filter_map(|step| step.facts.batch).max();
        for step in &rank.steps {
            let sequences = step.facts.prefill_requests.or(decoded).filter(|n| *n > 0);
            let each = step.facts.prefill_tokens.zip(sequences).map(|(tokens, n)| u64::from(tokens / n));
            found.read = found.read.max(each);
            let new = shapes(trace, rank, step).filter(|text| seen.insert(*text));
            found.keys = found.keys.max(new.filter_map(read).map(|own| own.keys).max());
        }
    }
    found
}

/// Second last sizes of the first two inputs: frameworks also call attention with sequences and heads in one dimension.
fn lengths(shapes: &str) -> Option<(u64, u64)> {
    let inputs: Vec<serde_json::Value> = serde_json::from_str(shapes).ok()?;
    let length = |i: usize| {
        let dims = inputs.get(i)?.as_array()?;
        dims.get(dims.len().checked_sub(2)?)?.as_u64()
    };
    length(0).zip(length(1))
}

/// The first two of an operator's inputs: (sequences, heads, length, size) of queries and of keys.
fn read(shapes: &str) -> Option<Attention> {
    let inputs: Vec<serde_json::Value> = serde_json::from_str(shapes).ok()?;
    let sizes = |i: usize| -> Option<[u64; 4]> {
        let dims: Option<Vec<u64>> = inputs.get(i)?.as_array()?.iter().map(serde_json::Value::as_u64).collect();
        dims?.try_into().ok()
    };
    let ([batch, heads, queries, size], [_, key_heads, keys, _]) = (sizes(0)?, sizes(1)?);
    Some(Attention { batch, heads, key_heads, queries, keys, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_from_the_shapes_of_queries_and_keys() {
        let whole = |shapes| read(shapes).map(|a| (a.queries, a.keys));
        for (shapes, expected) in [
            ("[[16,16,559,64],[16,16,559,64],[16,16,559,64],[],[]]", (559, 559)),
            ("[[16,16,1,64],[16,2,700,64],[]]", (1, 700)),
        ] {
            assert_eq!((lengths(shapes), whole(shapes)), (Some(expected), Some(expected)));
        }
        // Lengths without heads of their own are still lengths.
        let joined = "[[16,1,64],[16,700,64]]";
        assert_eq!((lengths(joined), whole(joined)), (Some((1, 700)), None));
        for odd in ["", "[]", "[[],[]]", "[[64],[64]]", "{}", "[[1,\"a\",2],[1,2,3]]"] {
            assert_eq!(lengths(odd), None, "{odd}");
        }
    }
}
