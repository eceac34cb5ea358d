//! Two link tests size by size.

use model::Trace;

use super::{Links, Measured, Plateau, Series, SlowLink, of};

/// How far the times of a size may be apart and count as equal: own value, for what runs of one command differ by.
pub const EQUAL: f64 = 0.05;

/// One size of both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Bytes as the test counts them.
    pub bytes: i64,
    /// Whether it was done in place.
    pub in_place: bool,
    /// What was measured of A and of B.
    pub sides: [Measured; 2],
}

impl Row {
    /// Time of B over that of A.
    pub fn ratio(&self) -> f64 {
        let [a, b] = self.sides.map(|side| side.time.max(1) as f64);
        b / a
    }

    /// Whether the two differ by more than repeats do.
    pub fn differs(&self) -> bool {
        let ratio = self.ratio();
        ratio.max(1.0 / ratio) > 1.0 + EQUAL
    }
}

/// One collective of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The series of A and of B.
    pub series: [Series; 2],
    /// Sizes that both measured, the smallest first.
    pub rows: Vec<Row>,
}

impl Pair {
    fn of(a: &Series, b: &Series) -> Self {
        let mut rows = Vec::new();
        for one in &a.sizes {
            // Both are in the order of their sizes.
            let found = b.sizes.binary_search_by_key(&one.bytes, |size| size.bytes);
            let Some(other) = found.ok().and_then(|at| b.sizes.get(at)) else { continue };
            let places = [(false, one.out.zip(other.out)), (true, one.in_place.zip(other.in_place))];
            rows.extend(places.into_iter().filter_map(|(in_place, both)| {
                let (a, b) = both?;
                Some(Row { bytes: one.bytes, in_place, sides: [a, b] })
            }));
        }
        Self { series: [a.clone(), b.clone()], rows }
    }

    /// The size in which the two differ most, the larger one of equals; `None` where they differ in none.
    pub fn most(&self) -> Option<&Row> {
        let far = |row: &&Row| row.ratio().max(1.0 / row.ratio());
        // To a twentieth: a size is not named because of its last digit.
        let step = |row: &&Row| (far(row).min(1e9) * 20.0) as u64;
        self.rows.iter().filter(|row| row.differs() && !row.in_place).max_by_key(|row| (step(row), row.bytes))
    }

    /// The plateaus of both.
    pub fn plateaus(&self) -> [Option<Plateau>; 2] {
        self.series.each_ref().map(Series::plateau)
    }
}

/// Two link tests beside each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Beside {
    /// Collectives that both measured.
    pub pairs: Vec<Pair>,
    /// Collectives that only one measured, of A and of B.
    pub alone: [Vec<Series>; 2],
    /// What is known of the links of A and of B.
    pub links: [Links; 2],
}

impl Beside {
    /// Of the tests of both sides.
    pub fn of(sides: [&[&Trace]; 2]) -> Self {
        let [a, b] = sides.map(of);
        // Both are in the order of their keys.
        let like = |one: &Series| b.get(b.binary_search_by(|other| other.key().cmp(&one.key())).ok()?);
        let pairs: Vec<Pair> =
            a.iter().filter_map(|one| Some(Pair::of(one, like(one)?))).filter(|pair| !pair.rows.is_empty()).collect();
        let paired = |own: &Series| pairs.binary_search_by(|pair| pair.series[0].key().cmp(&own.key())).is_ok();
        let alone = [a, b].map(|all| all.into_iter().filter(|own| !paired(own)).collect());
        // Of several tests of a side the first one that says something of its links speaks for them.
        let links = sides.map(|traces| {
            let all = traces.iter().map(|trace| Links::of(trace));
            all.reduce(|known, next| if known == Links::default() { next } else { known }).unwrap_or_default()
        });
        Self { pairs, alone, links }
    }

    /// The slower link of one of the sides, 0 or 1: one that the other side has faster.
    pub fn slower_link(&self) -> Option<(usize, &SlowLink)> {
        let of = |side: usize| self.links.get(side)?.slowest.as_ref();
        let slower = |side: usize| {
            let slow = of(side)?;
            // A side that is as uneven itself has no faster one.
            of(1 - side).is_none_or(|other| other.gb_per_s > slow.gb_per_s).then_some((side, slow))
        };
        slower(1).or_else(|| slower(0))
    }
}
