//! Which requests are in each step: a scheduler that admits, computes prompts and lets go, replayed from the start. What
//! it does depends on the seed alone, so that a run and its twin without the fault serve the same requests.

use super::{Churn, Prompts};
use crate::{
    config::Config,
    random::{Dice, Of},
};

/// Tokens of a prompt that one step computes beside decode.
const CHUNK: i64 = 512;

/// What is in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scheduled {
    /// Sequences that decode.
    pub(crate) batch: i64,
    /// Tokens in the cache of all of them.
    pub(crate) context: i64,
    /// Tokens of prompts that are computed.
    pub(crate) prompt: i64,
    /// Whether nothing decodes beside the prompts.
    pub(crate) alone: bool,
}

/// The scheduler's state.
struct Queue {
    dice: Dice,
    /// Contexts of the sequences that decode, with the numbers of their requests.
    running: Vec<(i64, i64)>,
    /// Requests that wait: number, tokens of the prompt still to be computed, those of the whole prompt.
    waiting: Vec<(i64, i64, i64)>,
    requests: i64,
}

impl Queue {
    fn new(config: &Config) -> Self {
        let dice = Dice::new(config.seed);
        let context = |request| dice.around(Of::Context, [request, 0, 0], config.context_tokens, 600);
        let running = (0..config.batch.max(1)).map(|request| (request, context(request))).collect();
        Self { dice, running, waiting: Vec::new(), requests: config.batch.max(1) }
    }

    /// Requests leave and others come.
    fn change(&mut self, index: i64, target: i64, churn: Churn) {
        let (dice, stay) = (self.dice, churn.output_tokens.max(1));
        let leaves = |request: i64| dice.uniform(Of::Leave, [index, request, 0], 0, stay - 1) == 0;
        let keep = self.running.len() > 1;
        self.running.retain(|(request, _)| !(keep && leaves(*request)));
        // As many come as leave on average, fewer where the batch has grown and more where it has shrunk.
        let here = i64::try_from(self.running.len() + self.waiting.len()).unwrap_or(i64::MAX);
        let rate = (target * 1000 / stay + (target - here) * 120).max(0);
        let joined = rate / 1000 + i64::from(dice.chance(Of::Join, [index, 0, 0], rate % 1000));
        for _ in 0..joined.min(target.max(1)) {
            let prompt = dice.around(Of::Prompt, [self.requests, 0, 0], churn.prompt_tokens, 700).max(16);
            match churn.prompts {
                Prompts::Elsewhere => self.running.push((self.requests, prompt)),
                Prompts::OwnStep | Prompts::Chunked => self.waiting.push((self.requests, prompt, prompt)),
            }
            self.requests += 1;
        }
    }

    /// Computes up to `most` tokens of prompts; requests whose prompt is done decode from the next step on.
    fn compute(&mut self, most: i64) -> i64 {
        let mut left = most;
        for (_, rest, _) in &mut self.waiting {
            let now = left.min(*rest);
            (*rest, left) = (*rest - now, left - now);
        }
        let running = &mut self.running;
        self.waiting.retain(|(request, rest, whole)| {
            if *rest == 0 {
                running.push((*request, *whole));
            }
            *rest > 0
        });
        most - left
    }

    fn step(&mut self, index: i64, config: &Config, churn: Option<Churn>) -> Scheduled {
        if let Some(churn) = churn.filter(|_| index > 0) {
            self.change(index, config.batch.max(1), churn);
        }
        let decoding = |running: &[(i64, i64)]| Scheduled {
            batch: i64::try_from(running.len()).unwrap_or(i64::MAX),
            context: running.iter().map(|(_, context)| context).sum(),
            ..Scheduled::default()
        };
        let now = decoding(&self.running);
        let alone = churn.is_some_and(|churn| churn.prompts == Prompts::OwnStep) && !self.waiting.is_empty();
        let prompt = self.compute(if alone { 4 * CHUNK } else { CHUNK });
        if alone {
            return Scheduled { prompt, alone, ..now };
        }
        let before = usize::try_from(now.batch).unwrap_or(0);
        self.running.iter_mut().take(before).for_each(|(_, context)| *context += 1);
        Scheduled { prompt, ..now }
    }
}

/// What is in step `index` of a run that serves.
pub(crate) fn at(config: &Config, index: i64) -> Scheduled {
    let churn = config.serving.and_then(|serving| serving.churn);
    let mut queue = Queue::new(config);
    (0..=index).map(|step| queue.step(step, config, churn)).last().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving::Load;

    fn scheduled(load: Load, churn: bool) -> Vec<Scheduled> {
        let config = Config::serve(3, load, churn, &[]);
        (0..80).map(|index| at(&config, index)).collect()
    }

    #[test]
    fn churn_changes_the_batch_and_keeps_its_level() {
        let steps = scheduled(Load::Dozens, true);
        let changes = steps.windows(2).filter(|pair| pair[0].batch != pair[1].batch).count();
        assert!(changes > 8, "{changes}");
        let (first, last) = (steps[0].batch, steps[79].batch);
        assert!(last * 2 > first && last < first * 2, "{first} {last}");
        let fixed = scheduled(Load::Dozens, false);
        assert!(fixed.windows(2).all(|pair| pair[0].batch == pair[1].batch && pair[0].context < pair[1].context));
    }

    #[test]
    fn prompts_are_computed_where_they_should_be() {
        let own = scheduled(Load::PrefillSteps, true);
        assert!(own.iter().any(|step| step.alone && step.prompt > 0));
        assert!(own.iter().all(|step| step.alone == (step.prompt > 0)));
        let chunked = scheduled(Load::ChunkedPrefill, true);
        assert!(chunked.iter().any(|step| step.prompt > 0) && chunked.iter().all(|step| !step.alone));
        let decode = chunked.iter().filter(|step| step.prompt == 0).count();
        assert!(decode > chunked.len() / 2, "{decode}");
    }
}
