#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::{random::Random, *};

/// No A/A run.
const NONE: [Option<Floor>; 2] = [None; 2];

/// A number of the standard normal distribution.
fn gauss(random: &mut Random) -> f64 {
    let mut unit = || (random.next() >> 11) as f64 / (1u64 << 53) as f64;
    let (a, b) = (unit().max(1e-12), unit());
    (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}

/// Launches that differ by 2 % among themselves (standard deviation), and steps of each by as much.
fn side(random: &mut Random, step: f64, repeats: usize, steps: u32) -> Vec<Repeat> {
    let noise = 0.02;
    let repeat = |_| {
        let own = step * (1.0 + noise * gauss(random));
        let steps: Vec<f64> = (0..steps).map(|_| own * (1.0 + noise * gauss(random))).collect();
        let gemm = steps.iter().sum::<f64>() / steps.len() as f64 * 0.6;
        let buckets = BTreeMap::from([("compute.gemm".to_owned(), gemm), ("rt.dispatch".to_owned(), own * 0.4)]);
        Repeat { steps, buckets }
    };
    (0..repeats).map(repeat).collect()
}

/// How launches of a side come to differ, natural logarithms with a standard deviation of 2 % on average over both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// By a share that is normal.
    Lognormal,
    /// The same, and the median of so many steps that differ by 2 % on top.
    Steps(usize),
    /// Student's distribution with three degrees of freedom.
    Heavy,
    /// One launch in ten is slower.
    Slow,
    /// An exponential distribution: never much faster, now and then much slower.
    Skewed,
    /// Two placements, one or the other by chance.
    Modes,
    /// The second side's launches differ by this many times as much as the first one's.
    Unequal(f64),
    /// The machine slows down by 5 % while the launches are made in turn, A B B A.
    Drift,
    /// The same while all of A are launched first, then all of B.
    DriftInARow,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Lognormal,
        Self::Steps(15),
        Self::Steps(200),
        Self::Heavy,
        Self::Slow,
        Self::Skewed,
        Self::Modes,
        Self::Unequal(2.65),
        Self::Unequal(28.0),
        Self::Drift,
        Self::DriftInARow,
    ];

    /// Time of launch `i` of `count` of a side, as a share of the step.
    fn time(self, random: &mut Random, side: usize, i: usize, count: usize) -> f64 {
        let chance = |random: &mut Random| (random.next() >> 11) as f64 / (1u64 << 53) as f64;
        let place = |random: &mut Random, at: usize| 0.01 * gauss(random) + 0.05 * at as f64 / (2 * count - 1) as f64;
        let logarithm = match self {
            Self::Lognormal => 0.02 * gauss(random),
            Self::Steps(steps) => {
                let own = 0.02 * gauss(random);
                bootstrap::median(&mut (0..steps).map(|_| own + 0.02 * gauss(random)).collect::<Vec<f64>>())
            }
            Self::Heavy => {
                let (value, squares) = (gauss(random), (0..3).map(|_| gauss(random).powi(2)).sum::<f64>());
                0.02 * value / squares.sqrt()
            }
            Self::Slow => {
                let slow = if chance(random) < 0.1 { 4.0 } else { 0.0 };
                0.02 * (gauss(random) + slow) / (1.0f64 + 16.0 * 0.09).sqrt()
            }
            Self::Skewed => 0.02 * -(1.0 - chance(random)).ln(),
            Self::Modes => 0.02 * (if chance(random) < 0.5 { 0.9 } else { -0.9 } + 0.436 * gauss(random)),
            Self::Unequal(times) => {
                let both = (2.0 / (1.0 + times * times)).sqrt();
                0.02 * gauss(random) * if side == 0 { both } else { both * times }
            }
            Self::Drift => place(random, 2 * i + if i.is_multiple_of(2) { side } else { 1 - side }),
            Self::DriftInARow => place(random, side * count + i),
        };
        logarithm.exp()
    }

    /// Shares of pairs that are shown a difference: by the noise of their own launches, and by that of an A/A run of ten a side.
    fn shown(self, seed: u64, pairs: u32, effect: f64, count: usize) -> [f64; 2] {
        let mut random = Random::new(seed);
        let mut repeats = |side: usize, count: usize| -> Vec<f64> {
            let step = if side == 0 { 1e6 } else { 1e6 * effect };
            (0..count).map(|i| step * self.time(&mut random, side, i, count)).collect()
        };
        let mut shown = [0u32; 2];
        for _ in 0..pairs {
            let [a, b] = [0, 1].map(|side| repeats(side, count));
            let floors = [0, 1].map(|side| Floor::of(&repeats(side, 10)));
            for (number, floors) in shown.iter_mut().zip([NONE, floors]) {
                let noise = Noise::of([&a, &b], floors).unwrap();
                *number += u32::from(noise.interval(center(&b).ln() - center(&a).ln()).has_sign());
            }
        }
        shown.map(|number| f64::from(number) / f64::from(pairs))
    }
}

#[test]
fn noise_is_not_shown_and_a_difference_of_five_percent_is() {
    for seed in [17, 29] {
        let [none, five] = [1.0, 1.05].map(|effect| Kind::Lognormal.shown(seed, 4_000, effect, 5)[0]);
        println!("{:.2} % of nothing shown, {:.2} % of 5 %", 100.0 * none, 100.0 * five);
        assert!(none <= 0.045 && five >= 0.91, "{none} {five}");
    }
}

#[test]
fn no_kind_of_noise_is_shown_more_often_than_one_time_in_twenty() {
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::DriftInARow) {
        for count in [3, 5, 10] {
            // Of 600 pairs the share is off by a percent itself; a rule that fails shows 8 % and more.
            let [none, _] = kind.shown(7, 600, 1.0, count);
            assert!(none <= 0.07, "{kind:?}, {count} launches: {none}");
        }
    }
    // What no rule on the times can tell: why a plan asks for launches in turn.
    assert!(Kind::DriftInARow.shown(7, 200, 1.0, 5)[0] > 0.5);
}

#[test]
fn an_earlier_run_against_itself_finds_more() {
    for kind in [Kind::Lognormal, Kind::Steps(15)] {
        let [[own, known], [_, none]] = [1.05, 1.0].map(|effect| kind.shown(29, 2_000, effect, 5));
        assert!(known > own && known >= 0.92 && none <= 0.06, "{kind:?}: {own} {known} {none}");
    }
}

#[test]
fn launches_that_agree_by_chance_do_not_make_a_difference() {
    let of = |times: [f64; 3]| times.map(|t| Repeat { steps: vec![t; 9], ..Repeat::default() }).to_vec();
    let sides = [of([100.0, 100.01, 100.02]), of([101.0, 101.01, 101.02])];
    let judged = |floors| Statistics::of_repeats(sides.clone(), floors);
    let alone = judged(NONE);
    assert_eq!((alone.outcome(), alone.repeated.unwrap().noise.assumed), (Outcome::NotSignificant, true));
    // An A/A run says that they always do.
    let known = judged([Floor::read("0.0100 % between 10 launches"); 2]);
    assert_eq!((known.outcome(), known.repeated.unwrap().noise.assumed), (Outcome::Significant, false));
}

#[test]
fn noise_of_one_side_alone_is_known_by_its_launches_alone() {
    let [quiet, noisy] = [[100.0, 100.1, 99.9], [100.0, 110.0, 91.0]];
    let noise = Noise::of([&quiet, &noisy], NONE).unwrap();
    let equal = Noise::of([&[95.0, 100.0, 105.0], &noisy], NONE).unwrap();
    // Student's factor for two degrees of freedom is 4.3, for four 2.8.
    assert!(noise.floor > 4.2 * noise.spread && equal.floor < 2.8 * equal.spread, "{noise:?} {equal:?}");
}

/// A minute in a build that is optimised: `STRATO_FIGURES=1 cargo test --release power_and_false_alarms -- --ignored --nocapture`.
#[test]
#[ignore = "a simulation that prints figures where STRATO_FIGURES is set"]
fn power_and_false_alarms() {
    if std::env::var_os("STRATO_FIGURES").is_none() {
        return;
    }
    for kind in Kind::ALL {
        for count in [3, 5, 10] {
            let [none, five] =
                [1.0, 1.05].map(|effect| kind.shown(41, 20_000, effect, count).map(|share| 100.0 * share));
            println!(
                "{kind:?}, {count} launches: shown of nothing {:.1} %, of 5 % {:.1} %; with an A/A run {:.1} %, {:.1} %",
                none[0], five[0], none[1], five[1]
            );
        }
    }
}

/// How often launches that are drawn again keep back what the floor would show; minutes in any build.
#[test]
#[ignore = "a simulation that prints figures where STRATO_FIGURES is set"]
fn whole_statistics_find_as_much_as_their_floors() {
    if std::env::var_os("STRATO_FIGURES").is_none() {
        return;
    }
    for count in [3, 5, 10] {
        for effect in [1.0, 1.05] {
            let mut random = Random::new(53);
            let (mut shown, mut floor) = (0, 0);
            for _ in 0..1000 {
                let [a, b] = [1e6, 1e6 * effect].map(|step| {
                    let repeat = |i| step * Kind::Lognormal.time(&mut random, 0, i, count);
                    let times: Vec<f64> = (0..count).map(repeat).collect();
                    times.into_iter().map(|t| Repeat { steps: vec![t; 5], ..Repeat::default() }).collect()
                });
                let statistics = Statistics::of_repeats([a, b], NONE);
                shown += u32::from(statistics.outcome() == Outcome::Significant);
                let repeated = statistics.repeated.unwrap();
                floor += u32::from(repeated.noise.interval(repeated.logarithm.value).has_sign());
            }
            println!("{count} launches, B = {effect} A: {shown} of 1000 shown, {floor} by the floor");
        }
    }
}

#[test]
fn one_launch_a_side_is_judged_by_an_earlier_run_against_itself() {
    let of = |time: f64| vec![Repeat { steps: vec![time; 9], ..Repeat::default() }];
    let floor = Floor::read("1.0000 % between 5 launches");
    let judged = |b: f64| Statistics::of_repeats([of(100.0), of(b)], [floor; 2]);
    assert_eq!((judged(103.0).outcome(), judged(105.0).outcome()), (Outcome::NotSignificant, Outcome::Significant));
    let repeated = judged(105.0).repeated.unwrap();
    assert_eq!(repeated.noise.earlier, [floor; 2]);
    assert!(repeated.difference.low > 0.0 && repeated.difference.high < 10.0, "{:?}", repeated.difference);
    assert_eq!(Statistics::of_repeats([of(100.0), of(200.0)], [floor, None]).outcome(), Outcome::Unknown);
}

#[test]
fn the_noise_of_repeats_is_kept_as_text_and_read_again() {
    let floor = Floor::of(&[100.0, 102.0, 99.0]).unwrap();
    let read = Floor::read(&floor.text()).unwrap();
    assert!(read.repeats == 3 && (read.deviation - floor.deviation).abs() < 1e-6, "{}", floor.text());
    for odd in [
        "",
        "1 %",
        "1 % between 1 launches",
        "x % between 3 launches",
        "-1 % between 3 launches",
        "inf % between 9 launches",
    ] {
        assert_eq!(Floor::read(odd), None, "{odd}");
    }
    assert_eq!(Floor::of(&[100.0]), None);
}

#[test]
fn whole_statistics_of_pairs_agree_with_their_floors() {
    let mut random = Random::new(3);
    let [a, b, c] = [1e6, 1e6, 1.2e6].map(|step| side(&mut random, step, 5, 15));
    let same = Statistics::of_repeats([a.clone(), b], NONE);
    assert_eq!(same.outcome(), Outcome::NotSignificant);
    let apart = Statistics::of_repeats([a, c], NONE);
    assert_eq!((apart.outcome(), apart.steps), (Outcome::Significant, [75, 75]));
    let repeated = apart.repeated.unwrap();
    assert!(repeated.difference.low > 100_000.0 && repeated.difference.high < 300_000.0, "{:?}", repeated.difference);
    assert_eq!(repeated.test.delta, 1.0);
    assert!(repeated.buckets.iter().all(Bucket::differs), "{:?}", repeated.buckets);
    assert!(repeated.noise.detectable > repeated.noise.floor && repeated.noise.floor >= 2.0 * repeated.noise.spread);
}

#[test]
fn one_launch_says_nothing_of_others() {
    let mut random = Random::new(5);
    let [a, b] = [side(&mut random, 1e6, 1, 15), side(&mut random, 2e6, 5, 15)];
    let statistics = Statistics::of_repeats([a, b], NONE);
    assert_eq!((statistics.outcome(), statistics.repeated.is_none()), (Outcome::Unknown, true));
    assert_eq!(statistics.repeats.each_ref().map(Vec::len), [1, 5]);
}

#[test]
fn two_launches_tell_only_of_large_differences() {
    let of = |times: [f64; 2]| times.map(|t| Repeat { steps: vec![t; 3], ..Repeat::default() }).to_vec();
    let outcome = |a, b| Statistics::of_repeats([of(a), of(b)], NONE).outcome();
    assert_eq!(outcome([100.0, 102.0], [110.0, 112.0]), Outcome::Significant);
    assert_eq!(outcome([100.0, 102.0], [104.0, 106.0]), Outcome::NotSignificant);
    assert_eq!(outcome([100.0, 102.0], [100.0, 102.0]), Outcome::NotSignificant);
}

#[test]
fn smaller_effects_need_more_launches_until_none_suffice() {
    let needed = [0.10, 0.05, 0.02, 0.001].map(|effect| repeats_for(effect, 0.02));
    assert_eq!(needed[0], Some(5));
    assert!(needed[1] < needed[2] && needed[2].is_some_and(|n| (20..40).contains(&n)), "{needed:?}");
    // However quiet the launches are said to be: that is what an A/A run tells.
    assert!(repeats_for(0.01, 0.0) > Some(5));
    assert_eq!((needed[3], repeats_for(0.0, 0.01), repeats_for(0.05, 0.0)), (None, None, Some(5)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn exchanging_the_sides_changes_signs_and_nothing_else(
        seed in any::<u64>(), counts in [2usize..7, 2usize..7], effect in 0.9f64..1.1,
    ) {
        let mut random = Random::new(seed);
        let a = side(&mut random, 1e6, counts[0], 15);
        let b = side(&mut random, 1e6 * effect, counts[1], 15);
        let there = Statistics::of_repeats([a.clone(), b.clone()], NONE);
        // The order in which launches are named means nothing.
        let turned = Statistics::of_repeats([a.iter().rev().cloned().collect(), b.clone()], NONE);
        prop_assert_eq!(&there, &turned);
        let back = Statistics::of_repeats([b, a], NONE);
        prop_assert_eq!(there.outcome(), back.outcome());
        let (there, back) = (there.repeated.unwrap(), back.repeated.unwrap());
        for (own, other) in [(there.difference, back.difference), (there.logarithm, back.logarithm)] {
            prop_assert_eq!((own.value, own.low, own.high), (-other.value, -other.high, -other.low));
            prop_assert!(own.low <= own.value && own.value <= own.high);
        }
        prop_assert_eq!(there.noise, back.noise);
        prop_assert_eq!((there.test.p, there.test.delta), (back.test.p, -back.test.delta));
    }
}
