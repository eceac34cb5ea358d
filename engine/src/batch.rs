//! What a step computes on.

use crate::{Config, Error, kv::KvPlan, program::Program};

/// What a step computes on: tokens of one or more sequences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Token ids.
    pub tokens: Vec<u32>,
    /// Position of each token in its sequence.
    pub positions: Vec<u32>,
    /// Sequence of each token.
    pub sequences: Vec<u32>,
}

impl Batch {
    /// The tokens of one sequence from position `first` on.
    pub fn prefill(tokens: &[u32], first: u32) -> Self {
        Self {
            tokens: tokens.to_vec(),
            positions: (first..).take(tokens.len()).collect(),
            sequences: vec![0; tokens.len()],
        }
    }

    /// Row of the last token of each sequence, in the order of the sequences.
    pub(crate) fn last_rows(&self) -> Vec<usize> {
        let mut last = std::collections::BTreeMap::new();
        for (row, (sequence, position)) in self.sequences.iter().zip(&self.positions).enumerate() {
            let entry = last.entry(*sequence).or_insert((*position, row));
            *entry = (*entry).max((*position, row));
        }
        last.into_values().map(|(_, row)| row).collect()
    }

    /// Makes sure that the tokens are as many as a program is for, and that a model and its cache have a place for each.
    pub(crate) fn check(&self, program: &Program, config: &Config, plan: &KvPlan) -> Result<(), Error> {
        let refuse = |what: String| Err(Error::Request(what));
        let tokens = self.tokens.len();
        if tokens != program.shape.tokens || self.positions.len() != tokens || self.sequences.len() != tokens {
            return refuse(format!("the program is for {} tokens and got {tokens}", program.shape.tokens));
        }
        if self.last_rows().len() != program.shape.sequences {
            return refuse(format!("the program is for {} sequences", program.shape.sequences));
        }
        // Two tokens of one place would be written to one slot of the cache by two threads.
        let mut places: Vec<(u32, u32)> = self.sequences.iter().copied().zip(self.positions.iter().copied()).collect();
        places.sort_unstable();
        if let Some([(sequence, position), _]) = places.array_windows().find(|[a, b]| a == b) {
            return refuse(format!("two tokens are at position {position} of sequence {sequence}"));
        }
        if let Some(token) = self.tokens.iter().find(|token| **token as usize >= config.vocab) {
            return refuse(format!("token {token} is not in the vocabulary of {}", config.vocab));
        }
        if let Some(position) = self.positions.iter().find(|position| **position as usize >= plan.context) {
            return refuse(format!("position {position} is beyond the context of {}", plan.context));
        }
        if let Some(sequence) = self.sequences.iter().find(|sequence| **sequence as usize >= plan.sequences) {
            return refuse(format!("sequence {sequence} is not one of {}", plan.sequences));
        }
        Ok(())
    }
}
