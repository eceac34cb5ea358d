//! Random numbers addressed by what they are for. A number depends only on the seed, its purpose and its key, never on
//! how many were drawn before, so a run with a fault and its twin without share every number they both need. Integers
//! only: the same seed gives the same bytes on every machine.

/// What a number is for.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub(crate) enum Of {
    Config = 1,
    Duration,
    Launch,
    Latency,
    Gap,
    Host,
    SyncTail,
    Wait,
    Drift,
    Stall,
    Bytes,
    Culprit,
    ClockOffset,
    ClockDrift,
    Dropped,
    HostNoise,
    BadLink,
    Tokens,
    Skew,
    Contention,
    Gil,
    Noise,
    Arrival,
    Accepted,
    Cache,
    Serving,
    Leave,
    Join,
    Prompt,
    Context,
    Hiccup,
}

/// The source of all numbers of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dice {
    seed: u64,
}

/// Finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed: mix(seed) }
    }

    /// The numbers that rank `rank` has for itself; rank 0 has those of a run of one rank.
    pub(crate) fn of_rank(self, rank: usize) -> Self {
        if rank == 0 { self } else { Self { seed: mix(self.seed ^ mix(rank as u64)) } }
    }

    fn word(self, of: Of, key: [i64; 3]) -> u64 {
        key.iter().fold(mix(self.seed ^ of as u64), |word, part| mix(word ^ part.cast_unsigned()))
    }

    /// Uniform in `lo..=hi`; `lo` if the range is empty.
    pub(crate) fn uniform(self, of: Of, key: [i64; 3], lo: i64, hi: i64) -> i64 {
        let span = hi.saturating_sub(lo).max(0).cast_unsigned() + 1;
        lo + (self.word(of, key) % span).cast_signed()
    }

    /// True in `permille` of a thousand.
    pub(crate) fn chance(self, of: Of, key: [i64; 3], permille: i64) -> bool {
        self.uniform(of, key, 0, 999) < permille
    }

    /// `value` changed by at most ±`permille`, near values likelier than far ones; at least 1.
    pub(crate) fn around(self, of: Of, key: [i64; 3], value: i64, permille: i64) -> i64 {
        let word = self.word(of, key);
        let spread = |bits: u64| (bits & 0xffff).cast_signed() - 0x8000;
        let swing = spread(word) + spread(word >> 16);
        (value + value.saturating_mul(permille) / 1000 * swing / 0x1_0000).max(1)
    }

    /// `value` times a lognormal factor whose logarithm has the standard deviation `permille`; at least 1.
    pub(crate) fn lognormal(self, of: Of, key: [i64; 3], value: i64, permille: i64) -> i64 {
        let word = self.word(of, key);
        // The sum of four uniform numbers is near enough to a normal one; its deviation is the root of a third.
        let sum: i64 = (0..4).map(|part| ((word >> (16 * part)) & 0xffff).cast_signed() - 0x8000).sum();
        let s = permille * sum * 1_732 / 1000 / 0x1_0000;
        let factor = 1_000_000 + 1000 * s + s * s / 2 + s * s * s / 6000;
        (value.saturating_mul(factor) / 1_000_000).max(1)
    }

    /// A long-tailed value of mean `mean` that lies in `0..4 * mean`.
    pub(crate) fn tail(self, of: Of, key: [i64; 3], mean: i64) -> i64 {
        let word = self.word(of, key);
        let unit = |bits: u64| (bits & 0x3ff).cast_signed();
        mean.saturating_mul(4) * unit(word) / 1024 * unit(word >> 10) / 1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lognormal_values_keep_their_middle_and_scatter_as_asked() {
        let dice = Dice::new(9);
        let mut values: Vec<i64> = (0..4096).map(|k| dice.lognormal(Of::Duration, [k, 0, 0], 100_000, 40)).collect();
        values.sort_unstable();
        assert!((99_000..101_000).contains(&values[2048]), "{}", values[2048]);
        // One standard deviation below and above.
        assert!((95_000..97_000).contains(&values[650]), "{}", values[650]);
        assert!((103_000..105_200).contains(&values[3446]), "{}", values[3446]);
    }

    #[test]
    fn numbers_depend_on_purpose_and_key_only_and_stay_in_range() {
        let dice = Dice::new(7);
        let draw = |of, k| dice.uniform(of, [k, 2, 3], 10, 1_000_000);
        assert_eq!(draw(Of::Gap, 1), draw(Of::Gap, 1));
        assert_ne!(draw(Of::Gap, 1), draw(Of::Gap, 2));
        assert_ne!(draw(Of::Gap, 1), draw(Of::Host, 1));
        let mut sum = 0;
        for k in 0..4096 {
            assert!((900..=1100).contains(&dice.around(Of::Gap, [k, 0, 0], 1000, 100)));
            let tail = dice.tail(Of::Wait, [k, 0, 0], 1000);
            assert!((0..4000).contains(&tail));
            sum += tail;
        }
        assert!((900..1100).contains(&(sum / 4096)), "{}", sum / 4096);
    }
}
