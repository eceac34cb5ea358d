//! The tokens that a run begins with: those that were given, or made ones that are the same in every run.

use super::RunOptions;
use crate::{Batch, Error, weights::split_mix};

/// Most tokens that a prompt of one pass may have, all sequences together.
const MAX_PREFILL: usize = 1 << 16;

impl RunOptions {
    /// Whether there is a prompt, and one that a pass can read.
    pub(crate) fn check_prompt(&self) -> Result<(), Error> {
        if self.batch == 0 || self.prompt == 0 || self.sequences().saturating_mul(self.prompt) > MAX_PREFILL {
            return Err(Error::Request(format!(
                "cannot read {} prompts of {} tokens at once; choose at least one of each and at most {MAX_PREFILL} tokens",
                self.batch, self.prompt
            )));
        }
        if let Some(ids) = self.ids.iter().find(|ids| ids.len() != self.prompt) {
            return Err(Error::Request(format!(
                "a prompt has {} tokens and another {}; give prompts of one length",
                ids.len(),
                self.prompt
            )));
        }
        Ok(())
    }

    /// The tokens that the first step reads, sequence by sequence.
    pub(crate) fn first_batch(&self, vocab: usize) -> Batch {
        let mut batch = Batch::default();
        for sequence in 0..self.sequences() {
            for position in 0..self.prompt {
                batch.tokens.push(self.token(sequence, position, vocab));
                batch.positions.push(position as u32);
                batch.sequences.push(sequence as u32);
            }
        }
        batch
    }

    fn token(&self, sequence: usize, position: usize, vocab: usize) -> u32 {
        let given = self.ids.get(sequence % self.ids.len().max(1)).and_then(|ids| ids.get(position));
        let vocab = vocab.max(1) as u64;
        // Prompts of seed 0 are those of the first captures that were ever made with the engine.
        let made = || match self.seed {
            0 => (sequence as u64 * 7919 + position as u64 * 104_729 + 1) % vocab,
            seed => split_mix(seed, (sequence as u64) << 32 | position as u64) % vocab,
        };
        given.copied().unwrap_or_else(|| u32::try_from(made()).unwrap_or(0))
    }
}

/// The step after one that ended with these tokens at position `position` of their sequences.
pub(crate) fn next_batch(tokens: Vec<u32>, position: usize) -> Batch {
    let sequences = tokens.len() as u32;
    Batch { positions: vec![position as u32; tokens.len()], sequences: (0..sequences).collect(), tokens }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn prompts_are_those_given_or_those_of_the_seed() {
        let options = RunOptions { batch: 3, prompt: 2, ids: vec![vec![5, 6], vec![7, 8]], ..RunOptions::default() };
        options.check_prompt().unwrap();
        let batch = options.first_batch(512);
        assert_eq!((batch.tokens, batch.sequences), (vec![5, 6, 7, 8, 5, 6], vec![0, 0, 1, 1, 2, 2]));
        let made = |seed| RunOptions { ids: Vec::new(), seed, ..options.clone() }.first_batch(512).tokens;
        assert_eq!(made(0), [1, (104_729 + 1) % 512, 7920 % 512, (7919 + 104_730) % 512, 15_839 % 512, 120_568 % 512]);
        assert!(made(1) != made(0) && made(1) != made(2) && made(1).iter().all(|token| *token < 512));
        let uneven = RunOptions { ids: vec![vec![5, 6], vec![7]], ..options };
        assert!(uneven.check_prompt().unwrap_err().to_string().contains("1 tokens and another 2"));
    }
}
