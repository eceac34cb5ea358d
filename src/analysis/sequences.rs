//! How long the sequences are that a step attends with, where operator shapes were recorded: what tells a step over whole
//! sequences (prefill, an encoder) from one that adds a token to each.

use model::{Category, Detail, Trace};

use super::{Class, Rank};
use crate::platform::Stage;

/// The public attention operator; its documented layout is (…, length, head size) for queries and keys alike.
const ATTENTION: &str = "aten::scaled_dot_product_attention";

/// Queries and keys per sequence of the longest attention in the first step of `class` that counts, if nothing else tells
/// its stage.
pub fn attended(trace: &Trace, rank: &Rank, class: &Class) -> Option<(u64, u64)> {
    let step = rank.steady_steps(class).next().filter(|_| class.stage == Stage::Unknown)?;
    let span = step.host.unwrap_or(step.window);
    let name = trace.strings.find(ATTENTION)?;
    let lanes = rank.timeline.threads.iter().filter_map(|t| trace.lanes.get(t.0 as usize));
    let lengths = lanes.flat_map(|lane| {
        let from = lane.start.partition_point(|s| *s < span.start);
        let to = lane.start.partition_point(|s| *s < span.end);
        let own = move |i: &usize| lane.name[*i] == name && lane.category[*i] == Category::FrameworkOp;
        (from..to).filter(own).filter_map(move |i| match trace.detail(lane, i)? {
            Detail::Op(op) => lengths(trace.strings.get(op.shapes?)),
            _ => None,
        })
    });
    lengths.max_by_key(|(queries, keys)| (*keys, *queries))
}

/// Second last dimensions of the first two inputs.
fn lengths(shapes: &str) -> Option<(u64, u64)> {
    let inputs: Vec<serde_json::Value> = serde_json::from_str(shapes).ok()?;
    let length = |i: usize| {
        let dims = inputs.get(i)?.as_array()?;
        dims.get(dims.len().checked_sub(2)?)?.as_u64()
    };
    length(0).zip(length(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_from_the_shapes_of_queries_and_keys() {
        assert_eq!(lengths("[[16,16,559,64],[16,16,559,64],[16,16,559,64],[],[]]"), Some((559, 559)));
        assert_eq!(lengths("[[16,16,1,64],[16,2,700,64],[]]"), Some((1, 700)));
        for odd in ["", "[]", "[[],[]]", "[[64],[64]]", "{}", "[[1,\"a\",2],[1,2,3]]"] {
            assert_eq!(lengths(odd), None, "{odd}");
        }
    }
}
