//! Which operators of two programs of one model compute the same values.
//!
//! A fused operator is the operators that it could be taken apart into, in the order of the step, and two programs of one
//! model are the same sequence of those, however they are divided. Where both have come to the same place in it they have
//! computed the same values. A conversion of layout is no place of its own: it belongs to the operator after it.

use std::ops::Range;

use crate::{
    Config, Error,
    program::{BufId, Change, OpCall, OpKind, Program, Written},
};

/// Operators of both programs between two places at which both have computed the same.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Indices of the operators of A and of B.
    pub ops: [Range<usize>; 2],
    /// What they have written that both programs have.
    pub values: Vec<Value>,
}

/// A value that both programs compute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Columns of every row of a buffer of A and of B.
    Columns([BufId; 2], Range<usize>),
    /// Slots of the step's tokens in the cache of a layer.
    Cache(u16),
}

/// Operators that one could be taken apart into.
fn parts(program: &Program, op: &OpCall, config: &Config) -> usize {
    if matches!(op.kind, OpKind::Transpose { .. }) {
        return 0;
    }
    let mut single = Program { ops: vec![op.clone()], ..program.clone() };
    Change::UNFUSABLE.into_iter().for_each(|name| single.change(Change::Unfuse(name), config));
    single.ops.len()
}

/// Parts up to and with each operator.
fn ends(program: &Program, config: &Config) -> Vec<usize> {
    let mut sum = 0;
    let counted = program.ops.iter().map(|op| {
        sum += parts(program, op, config);
        sum
    });
    counted.collect()
}

/// The groups of two programs, in the order of the step.
///
/// # Errors
/// [`Error::Request`] when they compute other sequences, or other rows of logits.
pub(super) fn align(programs: [&Program; 2], config: &Config) -> Result<Vec<Group>, Error> {
    let [a, b] = programs;
    let same = |x: &Program, y: &Program| {
        (x.shape.tokens, x.shape.sequences, x.shape.logits) == (y.shape.tokens, y.shape.sequences, y.shape.logits)
    };
    if !same(a, b) {
        return Err(Error::Request(
            "the two sides compute other tokens; compare runs of the same prompts without padding".to_owned(),
        ));
    }
    let ends = programs.map(|program| ends(program, config));
    let mut groups = Vec::new();
    let mut from = [0, 0];
    loop {
        // The next place that both come to; one that has no operators left takes what the other has.
        let mut to = from.map(|at| at + 1);
        let place =
            |to: [usize; 2], side: usize| to[side].checked_sub(1).and_then(|last| ends[side].get(last)).copied();
        while let (Some(x), Some(y)) = (place(to, 0), place(to, 1)) {
            match x.cmp(&y) {
                std::cmp::Ordering::Equal if !is_cast(a, to[0] - 1) && !is_cast(b, to[1] - 1) => break,
                std::cmp::Ordering::Less => to[0] += 1,
                std::cmp::Ordering::Greater => to[1] += 1,
                std::cmp::Ordering::Equal if is_cast(a, to[0] - 1) => to[0] += 1,
                std::cmp::Ordering::Equal => to[1] += 1,
            }
        }
        if place(to, 0).is_none() || place(to, 1).is_none() {
            to = [a.ops.len(), b.ops.len()];
        }
        let ops = [from[0]..to[0].min(a.ops.len()), from[1]..to[1].min(b.ops.len())];
        if ops.iter().all(Range::is_empty) {
            return Ok(groups);
        }
        from = [ops[0].end, ops[1].end];
        let values = values(programs, &ops, config);
        groups.push(Group { ops, values });
    }
}

fn is_cast(program: &Program, op: usize) -> bool {
    program.ops.get(op).is_some_and(|op| matches!(op.kind, OpKind::Transpose { .. }))
}

/// What the operators have written that both programs have, by the names of the buffers.
fn values(programs: [&Program; 2], ops: &[Range<usize>; 2], config: &Config) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::new();
    for (program, ops) in programs.into_iter().zip(ops) {
        let calls = program.ops.get(ops.clone()).unwrap_or_default();
        for written in calls.iter().flat_map(|op| program.writes(op, config)) {
            let value = match written {
                Written::Cache(layer) => Value::Cache(layer),
                Written::Columns(id, columns) => {
                    let Some(desc) = program.buffer(id) else { continue };
                    let of = |program: &Program| {
                        let at = program.buffers.iter().position(|buffer| buffer == desc)?;
                        u16::try_from(at).ok().map(BufId)
                    };
                    let (Some(a), Some(b)) = (of(programs[0]), of(programs[1])) else { continue };
                    Value::Columns([a, b], columns)
                }
            };
            let same = |known: &Value| match (known, &value) {
                (Value::Columns(ids, _), Value::Columns(other, _)) => ids == other,
                _ => *known == value,
            };
            match (values.iter().position(same).and_then(|at| values.get_mut(at)), value) {
                // Columns of one buffer that one group writes lie side by side.
                (Some(Value::Columns(_, columns)), Value::Columns(_, more)) => {
                    *columns = columns.start.min(more.start)..columns.end.max(more.end);
                }
                (Some(_), _) => {}
                (None, value) => values.push(value),
            }
        }
    }
    values
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::{
        preset,
        program::{Level, Logits, OpName, Shape},
    };

    fn program(level: Level) -> Program {
        let shape = Shape { tokens: 3, sequences: 3, logits: Logits::Last, level };
        Program::plan(&preset("tiny").unwrap(), shape)
    }

    fn names(program: &Program, ops: &Range<usize>) -> Vec<&'static str> {
        program.ops[ops.clone()].iter().map(|op| op.name.text()).collect()
    }

    #[test]
    fn a_program_aligns_with_itself_operator_by_operator() {
        let config = preset("tiny").unwrap();
        for level in [Level::Composite, Level::Canonical, Level::Fused] {
            let program = program(level);
            let groups = align([&program, &program], &config).unwrap();
            assert_eq!(groups.len(), program.ops.len());
            assert!(groups.iter().all(|group| group.ops[0].len() == 1 && group.ops[0] == group.ops[1]));
            // All but the choice of tokens leave something to compare.
            assert_eq!(groups.iter().filter(|group| group.values.is_empty()).count(), 1);
        }
    }

    #[test]
    fn fused_operators_stand_beside_those_that_they_are_made_of() {
        let config = preset("tiny").unwrap();
        let [mut canonical, fused] = [program(Level::Canonical), program(Level::Fused)];
        canonical.change(Change::CastBefore(OpName::DownProj), &config);
        let groups = align([&canonical, &fused], &config).unwrap();
        let pairs: Vec<_> = groups.iter().map(|g| (names(&canonical, &g.ops[0]), names(&fused, &g.ops[1]))).collect();
        assert_eq!(pairs[2], (vec!["q_proj", "k_proj", "v_proj"], vec!["qkv_proj"]));
        assert_eq!(pairs[10], (vec!["layout_cast", "layout_cast", "down_proj"], vec!["down_proj"]));
        // The addition after the feed-forward block is the next layer's in the fused program.
        assert_eq!(pairs[11], (vec!["residual_add", "rms_norm"], vec!["add_rms_norm"]));
        let last = groups.last().unwrap();
        assert_eq!((last.ops[0].end, last.ops[1].end), (canonical.ops.len(), fused.ops.len()));
        let covered: usize = groups.iter().map(|group| group.ops[0].len()).sum();
        assert_eq!(covered, canonical.ops.len());
        let of_qkv = &groups[2].values;
        assert_eq!(of_qkv.len(), 1);
        assert!(matches!(&of_qkv[0], Value::Columns(_, columns) if *columns == (0..64 + 2 * 32)));
    }

    #[test]
    fn operators_of_both_sides_are_all_in_a_group_when_one_chooses_no_token() {
        let config = preset("tiny").unwrap();
        let (whole, mut without) = (program(Level::Composite), program(Level::Fused));
        without.ops.retain(|op| op.name != OpName::Argmax);
        for pair in [[&whole, &without], [&without, &whole]] {
            let groups = align(pair, &config).unwrap();
            for (side, program) in pair.into_iter().enumerate() {
                assert_eq!(groups.iter().map(|g| g.ops[side].len()).sum::<usize>(), program.ops.len());
            }
        }
    }

    #[test]
    fn other_tokens_are_refused() {
        let config = preset("tiny").unwrap();
        let shape = Shape { tokens: 4, sequences: 4, logits: Logits::Last, level: Level::Fused };
        let other = Program::plan(&config, shape);
        assert!(align([&program(Level::Fused), &other], &config).is_err());
    }
}
