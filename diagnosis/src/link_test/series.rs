//! The sizes of one collective.

use std::collections::BTreeMap;

use model::{Detail, Ns, Trace};

use crate::platform::bus_factor;

/// Tracks of what is done in place are called so.
const IN_PLACE: &str = "in place";
/// How much more the largest size moves than the one before it where the curve still rises; own value.
const RISES: f64 = 1.05;
/// Share of the plateau at the knee.
const KNEE: f64 = 0.5;
/// Share of the plateau up to which the bytes are next to none of a call's time: a tenth of it is a tenth of that. Own value.
const IDLE: f64 = 0.1;

/// Where the result of a collective goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Into a buffer of its own, or the test does not tell.
    Out,
    /// Over the input.
    In,
}

/// What was measured of one size: the middle one of its repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Mean time of one call, ns.
    pub time: Ns,
    /// Size over time, GB/s, as the test prints it.
    pub algbw: Option<f64>,
    /// Bus bandwidth, GB/s: as the test prints it, else size over time by the factor of nccl-tests.
    pub busbw: Option<f64>,
}

/// One size.
#[derive(Clone, Debug, PartialEq)]
pub struct Size {
    /// Bytes as the test counts them.
    pub bytes: i64,
    /// What was measured out of place or, where the test does not tell, at all.
    pub out: Option<Measured>,
    /// What was measured in place.
    pub in_place: Option<Measured>,
    /// How often it was measured.
    pub repeats: usize,
}

impl Size {
    /// What stands for the size: out of place, where that was measured.
    pub fn main(&self) -> Option<Measured> {
        self.out.or(self.in_place)
    }

    fn busbw(&self) -> Option<f64> {
        self.main()?.busbw
    }
}

/// The highest bus bandwidth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plateau {
    /// GB/s.
    pub gb_per_s: f64,
    /// Size at which it was measured.
    pub bytes: i64,
    /// Whether it was measured at the largest size and the curve still rises there: larger messages are faster yet.
    pub rises: bool,
}

/// What was measured of one collective.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Collective such as `all_reduce`, if the test names it.
    pub op: Option<String>,
    /// Ranks that took part, if the test says it.
    pub ranks: Option<u32>,
    /// Element type, if the test says it.
    pub dtype: Option<String>,
    /// Sizes, the smallest first.
    pub sizes: Vec<Size>,
    /// Whether bus bandwidths were computed, because the test prints none.
    pub computed: bool,
}

impl Series {
    /// The highest bus bandwidth.
    pub fn plateau(&self) -> Option<Plateau> {
        let known: Vec<(i64, f64)> =
            self.sizes.iter().filter_map(|size| Some((size.bytes, size.busbw().filter(|rate| *rate > 0.0)?))).collect();
        let (bytes, gb_per_s) = known.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let before = known.iter().rev().nth(1);
        let largest = known.last().is_some_and(|(last, _)| *last == bytes);
        let rises = largest && before.is_none_or(|(_, rate)| gb_per_s > RISES * rate);
        Some(Plateau { gb_per_s, bytes, rises })
    }

    /// The smallest size that reaches half of the plateau.
    pub fn knee(&self) -> Option<&Size> {
        let half = KNEE * self.plateau()?.gb_per_s;
        self.sizes.iter().find(|size| size.busbw().is_some_and(|rate| rate >= half))
    }

    /// The smallest size, whose time is what a call takes at least, unless the bandwidth binds already.
    pub fn smallest(&self) -> Option<(i64, Ns)> {
        let size = self.sizes.first()?;
        Some((size.bytes, size.main()?.time))
    }

    /// Whether the sizes begin below the knee, so that it was met and not passed.
    pub fn starts_below_the_knee(&self) -> bool {
        self.knee().zip(self.sizes.first()).is_some_and(|(knee, first)| first.bytes < knee.bytes)
    }

    /// What a call takes that moves next to nothing: the time of the smallest size, where moving its bytes at the plateau's rate
    /// would be next to none of it.
    pub fn latency(&self) -> Option<(i64, Ns)> {
        let rate = self.sizes.first()?.busbw()?;
        self.smallest().filter(|_| self.plateau().is_some_and(|plateau| rate <= IDLE * plateau.gb_per_s))
    }

    /// What tells one series from another: collective, ranks, element type.
    pub fn key(&self) -> (Option<&str>, Option<u32>, Option<&str>) {
        (self.op.as_deref(), self.ranks, self.dtype.as_deref())
    }
}

type Key = (Option<String>, Option<u32>, Option<String>);

/// The series of one or more captures; what was measured again is a repeat.
pub fn of(traces: &[&Trace]) -> Vec<Series> {
    let mut found: BTreeMap<Key, BTreeMap<i64, BTreeMap<Place, Vec<Measured>>>> = BTreeMap::new();
    let mut computed: BTreeMap<Key, bool> = BTreeMap::new();
    for trace in traces {
        let sampled = |name: &str| {
            let id = trace.strings.find(name);
            let counters = trace.counters.iter().filter(move |counter| Some(counter.name) == id);
            counters.flat_map(|counter| counter.t.iter().copied().zip(counter.value.iter().copied())).collect()
        };
        let rates: [BTreeMap<Ns, f64>; 2] = ["algbw", "busbw"].map(sampled);
        for (track, lane) in trace.tracks.iter().zip(trace.lanes.iter()) {
            let named = track.name.is_some_and(|name| trace.strings.get(name).ends_with(IN_PLACE));
            let place = if named { Place::In } else { Place::Out };
            for row in 0..lane.len() {
                let Some(Detail::Collective(call)) = trace.detail(lane, row) else { continue };
                let Some(bytes) = call.bytes else { continue };
                let text = |id: Option<model::StringId>| id.map(|id| trace.strings.get(id).to_owned());
                let key = (text(call.op), call.group_size, text(call.dtype));
                let (start, time) = (lane.start[row], lane.dur[row]);
                let [algbw, printed] = rates.each_ref().map(|rates| rates.get(&start).copied());
                let factor = key.0.as_deref().zip(key.1).and_then(|(op, ranks)| bus_factor(op, ranks));
                let rate = factor.filter(|_| time > 0).map(|factor| factor * bytes as f64 / time as f64);
                *computed.entry(key.clone()).or_insert(false) |= printed.is_none() && rate.is_some();
                let measured = Measured { time, algbw, busbw: printed.or(rate) };
                found.entry(key).or_default().entry(bytes).or_default().entry(place).or_default().push(measured);
            }
        }
    }
    let series = |(key, sizes): (Key, BTreeMap<i64, BTreeMap<Place, Vec<Measured>>>)| {
        let size = |(bytes, mut places): (i64, BTreeMap<Place, Vec<Measured>>)| {
            let repeats = places.values().map(Vec::len).max().unwrap_or_default();
            let [out, in_place] =
                [Place::Out, Place::In].map(|place| places.get_mut(&place).and_then(|repeats| middle(repeats)));
            Size { bytes, out, in_place, repeats }
        };
        let computed = computed.get(&key).copied().unwrap_or_default();
        let (op, ranks, dtype) = key;
        Series { op, ranks, dtype, sizes: sizes.into_iter().map(size).collect(), computed }
    };
    found.into_iter().map(series).collect()
}

/// The repeat with the middle time, the faster one of two.
fn middle(repeats: &mut [Measured]) -> Option<Measured> {
    repeats.sort_by_key(|measured| measured.time);
    repeats.get(repeats.len().saturating_sub(1) / 2).copied()
}
