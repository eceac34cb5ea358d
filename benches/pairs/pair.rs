//! Pairs of runs whose difference was made, and where a comparison should find it.

use diagnosis::{
    analysis::Layer::{self, Communication, Operator, Runtime},
    compare::{
        align::{Move, Part, Slot},
        waterfall::{
            Cause::{self, Configuration, Maturity, Mechanism, Unexplained},
            Row,
        },
    },
};
use engine::{
    program::Level,
    run::{Mode, RunOptions},
};

use crate::case::{CASES, Case, Size};

/// Two runs of one model and seed, and what differs between them.
pub struct Pair {
    pub name: String,
    /// Which shape is run.
    pub size: Size,
    pub sides: [RunOptions; 2],
    /// Ranks of each side.
    pub ranks: [usize; 2],
    /// Layers that are right.
    pub layers: Vec<Layer>,
    /// Causes that are right.
    pub causes: &'static [Cause],
    /// Slots that are right, with the row in them.
    pub is_own: fn(&Row, &Slot) -> bool,
}

/// What was injected nobody stated: it is another path, or nothing that was measured covers it.
const INJECTED: &[Cause] = &[Mechanism, Unexplained];

/// The case where what it costs is more than what two runs differ by anyway: a difference that is not there lies nowhere.
fn visible(case: &Case) -> Case {
    match case.inject {
        // Half a percent of a step of wide operators. Casts have to be launched, too.
        "layout_cast:op=down_proj" => Case { size: Size::Deep, layers: &[Operator, Runtime], ..*case },
        // One thief beside one worker leaves it most of what two cores can read: 2 % of a step.
        "bandwidth_thief:threads=1" => Case { inject: "bandwidth_thief:threads=2", ..*case },
        _ => *case,
    }
}

/// A place of the model's own work, whether layers were found or not.
fn is_of_model(_: &Row, slot: &Slot) -> bool {
    matches!(slot.part, Part::Before | Part::Layer | Part::After | Part::Whole)
}

/// Every pair.
pub fn all() -> Vec<Pair> {
    let base = |size, ranks: usize| {
        Case { inject: "", size, mode: Mode::Eager, ranks, layers: &[], rank: None }.options(false)
    };
    let with = |change: &dyn Fn(&mut RunOptions)| {
        let mut options = base(Size::Deep, 1);
        change(&mut options);
        options
    };
    let mut pairs = vec![
        Pair {
            name: "eager against graph".to_owned(),
            size: Size::Deep,
            sides: [base(Size::Deep, 1), with(&|options| options.mode = Mode::Graph)],
            ranks: [1, 1],
            layers: vec![Runtime],
            causes: &[Configuration],
            is_own: |_, _| true,
        },
        Pair {
            name: "composite against fused".to_owned(),
            size: Size::Deep,
            sides: [with(&|options| options.level = Level::Composite), with(&|options| options.level = Level::Fused)],
            ranks: [1, 1],
            // Operators that are not fused also have to be launched, one by one.
            layers: vec![Operator, Runtime],
            causes: &[Configuration],
            is_own: |row, slot| slot.by != Some(Move::Match) || row.layer == Runtime,
        },
        Pair {
            name: "TP=1 against TP=2".to_owned(),
            size: Size::Wide,
            sides: [base(Size::Wide, 1), base(Size::Wide, 2)],
            ranks: [1, 2],
            // Each rank has half of the products and waits for the other.
            layers: vec![Operator, Communication],
            causes: &[Configuration],
            is_own: is_of_model,
        },
    ];
    pairs.extend(CASES.iter().map(visible).map(|case| Pair {
        name: format!("none against {}", case.inject),
        size: case.size,
        sides: [case.options(false), case.options(true)],
        ranks: [case.ranks; 2],
        layers: case.layers.to_vec(),
        causes: match case.inject {
            "no_graph" => &[Configuration, Mechanism],
            // An allocator that is asked for memory in a step is software that could do better.
            inject if inject.starts_with("alloc") => &[Maturity, Mechanism, Unexplained],
            _ => INJECTED,
        },
        // The first rank is compared, which waits for another one that is slow.
        is_own: if case.rank.is_some_and(|rank| rank > 0) { |row, _| row.waited } else { |_, _| true },
    }));
    pairs
}
