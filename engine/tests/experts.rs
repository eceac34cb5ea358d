//! Mixtures of experts, held against models that must give the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use engine::{
    Config, Dtype, Error, Experts, Source, Synthetic,
    cpu::{Communicator, Isa, PATIENCE, Region, World},
    preset,
    program::Level,
    record::Log,
    run::{Engine, Mode, RunOptions},
};

fn mixture() -> Config {
    preset("tiny-moe").unwrap()
}

/// Weights in which all experts of a layer are one, which a model without experts calls its feed-forward block.
struct OneExpert;

impl Source for OneExpert {
    fn rows(
        &mut self,
        name: &str,
        rows: usize,
        width: usize,
        each: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<(), Error> {
        let name = match name.split_once(".experts.") {
            Some((before, after)) => format!("{before}.{}", after.split_once('.').unwrap().1),
            None => name.to_owned(),
        };
        Synthetic.rows(&name, rows, width, each)
    }
}

fn options() -> RunOptions {
    RunOptions { prompt: 9, steps: 5, batch: 3, threads: 2, dtype: Dtype::F32, ..RunOptions::default() }
}

/// Logits of every step and the tokens.
fn run(mut engine: Engine) -> (Vec<f32>, Vec<Vec<u32>>) {
    let (mut logits, mut tokens) = (Vec::new(), Vec::new());
    engine
        .run_with_logits(&mut Log::off(), true, |step, values| {
            logits.extend_from_slice(values);
            tokens.push(step.tokens.clone());
            true
        })
        .unwrap();
    (logits, tokens)
}

fn of(config: &Config, source: &mut dyn Source, options: RunOptions) -> (Vec<f32>, Vec<Vec<u32>>) {
    run(Engine::new(config.clone(), source, options, &mut Log::off()).unwrap())
}

fn greatest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(0.0, |most, (a, b)| most.max((a - b).abs()))
}

#[test]
fn experts_that_are_all_the_same_are_the_feed_forward_block() {
    let dense = of(&Config { experts: None, ..mixture() }, &mut OneExpert, options());
    for (count, active) in [(1, 1), (8, 1), (8, 3)] {
        let config = Config { experts: Some(Experts { count, active, normed: true }), ..mixture() };
        let given = of(&config, &mut OneExpert, options());
        let difference = greatest_difference(&given.0, &dense.0);
        assert!(difference <= 1e-5 && given.1 == dense.1, "{active} of {count}: {difference}");
    }
    // Shares among all experts add up to less than 1.
    let config = Config { experts: Some(Experts { count: 8, active: 3, normed: false }), ..mixture() };
    assert!(greatest_difference(&of(&config, &mut OneExpert, options()).0, &dense.0) > 1e-3);
}

#[test]
fn every_way_to_run_a_mixture_gives_the_same() {
    let expected = of(&mixture(), &mut Synthetic, options());
    assert!(greatest_difference(&expected.0, &of(&mixture(), &mut OneExpert, options()).0) > 1e-3, "experts differ");
    for isa in Isa::available() {
        for (level, mode) in
            [(Level::Composite, Mode::Eager), (Level::Canonical, Mode::Graph), (Level::Fused, Mode::Graph)]
        {
            let given = of(&mixture(), &mut Synthetic, RunOptions { isa, level, mode, ..options() });
            let difference = greatest_difference(&given.0, &expected.0);
            assert!(difference <= 1e-4 && given.1 == expected.1, "{isa:?} {level:?}: {difference}");
        }
    }
}

#[test]
fn two_ranks_of_a_mixture_give_what_one_does() {
    let expected = of(&mixture(), &mut Synthetic, options());
    let slot = Engine::largest_exchange(&mixture(), &options(), 2).unwrap();
    let region = Arc::new(Region::of_threads(World { ranks: 2, workers: 2, slot }).unwrap());
    let given = std::thread::scope(|scope| {
        let rank = |number| {
            let way = Communicator::new(Arc::clone(&region), number, PATIENCE).unwrap();
            let made =
                move || Engine::of_rank(mixture(), &mut Synthetic, options(), Some(way), &mut Log::off()).unwrap();
            scope.spawn(move || run(made()))
        };
        [0, 1].map(rank).map(|thread| thread.join().unwrap())
    });
    for (logits, tokens) in &given {
        let difference = greatest_difference(logits, &expected.0);
        assert!(difference <= 1e-4 && *tokens == expected.1, "{difference}");
    }
}

#[test]
fn narrower_weights_of_experts_stay_near() {
    let expected = of(&mixture(), &mut Synthetic, options()).0;
    let most = expected.iter().fold(0f32, |most, logit| most.max(logit.abs()));
    for dtype in [Dtype::F16, Dtype::Bf16, Dtype::Q8] {
        // Other tokens may be chosen, so the prompt alone is compared; where two experts score alike another may be taken.
        let one = |dtype| of(&mixture(), &mut Synthetic, RunOptions { steps: 0, dtype, ..options() }).0;
        let difference = greatest_difference(&one(dtype), &one(Dtype::F32)) / most;
        println!("{dtype:?}: {difference}");
        assert!(difference > 0.0 && difference < 0.2, "{dtype:?}: {difference}");
    }
}
