//! What the step would become: bounds first, an interval by counterfactual replay where the replay reproduces the run.

use model::Ns;

use crate::analysis::{Bucket, Class, Edit, Layer, Workload};

/// Least gain that is reported, as a share of the step (diagnosis method, common gate).
pub const LEAST_GAIN: f64 = 0.01;

/// A change to the run whose effect is asked for. Times are ns per step, means over the steps that count of the class or of the
/// workload that the finding speaks of.
#[derive(Clone, Debug)]
pub struct Intervention {
    /// Time that the change takes away from the step if nothing else takes its place.
    pub removes: Ns,
    /// Layer in which the change is made: a runtime change cannot go below the device's own work.
    pub layer: Layer,
    /// The change in terms of the rank's own operations and calls, all steps that count; none where only a bound can be
    /// given.
    pub edits: Vec<Edit>,
}

impl Intervention {
    /// A change that gains nothing by itself: the finding is a fact.
    pub fn none(layer: Layer) -> Self {
        Self { removes: 0, layer, edits: Vec::new() }
    }
}

/// How an estimate was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Counterfactual replay of the step.
    Replay,
    /// Bounds that no change of this kind can beat.
    Bound,
    /// No estimate.
    None,
}

impl Method {
    /// Key in JSON and SQL.
    pub fn key(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Bound => "bound",
            Self::None => "none",
        }
    }
}

/// One part in so many of a gain is the replay's own error (dPRO reports below 5 % for most jobs).
const ERROR: Ns = 20;

/// Two runs of the same thing differ by one part in so many of the step: a gain is not known better than the least that is
/// reported (1 %, common gate).
const APART: Ns = 100;

/// From X to Y: ns per step, mean over the steps that count of the workload.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// Mean step time now.
    pub from: Ns,
    /// Least step time that the change can reach.
    pub to_low: Ns,
    /// Step time if the change brings only what is certain.
    pub to_high: Ns,
    /// How it was made.
    pub method: Method,
}

impl Estimate {
    /// No estimate for a step of `from` ns.
    pub fn none(from: Ns) -> Self {
        Self { from, to_low: from, to_high: from, method: Method::None }
    }

    /// The same gain of a step that is longer by so much, ns.
    pub fn shifted(self, by: Ns) -> Self {
        let to = |ns: Ns| (ns + by).max(0);
        Self { from: to(self.from), to_low: to(self.to_low), to_high: to(self.to_high), ..self }
    }

    /// A step of `from` ns becomes shorter by what lies between `least` and `most`, as far as that is known: the method is
    /// wrong by its own error, and two runs of the same thing differ. A gain below what counts is not lifted above it by not
    /// being known better.
    pub fn gaining(from: Ns, (least, most): (Ns, Ns), method: Method) -> Self {
        let apart = if most as f64 >= LEAST_GAIN * from as f64 { from / APART } else { 0 };
        let (least, most) = ((least - least / ERROR - apart).max(0), (most + most / ERROR + apart).min(from));
        Self { from, to_low: from - most, to_high: from - least, method }
    }

    /// Middle of the gain interval as a share of the step time.
    pub fn mid_gain_share(&self) -> f64 {
        if self.from <= 0 {
            return 0.0;
        }
        (self.from as f64 - (self.to_low as f64 + self.to_high as f64) / 2.0) / self.from as f64
    }

    /// The gain that is sure, as a share of the step time: the lower end of the interval.
    pub fn least_gain_share(&self) -> f64 {
        if self.from <= 0 { 0.0 } else { ((self.from - self.to_high) as f64 / self.from as f64).max(0.0) }
    }

    /// The same estimate for a mean over more steps, of which only `part` of `all` gain.
    #[must_use]
    pub fn spread(self, from: Ns, part: usize, all: usize) -> Self {
        let share = |to: Ns| {
            let gain = i128::from(self.from - to) * part as i128 / all.max(1) as i128;
            (from - Ns::try_from(gain).unwrap_or(0)).clamp(0, from.max(0))
        };
        Self { from, to_low: share(self.to_low), to_high: share(self.to_high), method: self.method }
    }

    /// Largest gain as a share of the step time.
    pub fn max_gain_share(&self) -> f64 {
        if self.from <= 0 { 0.0 } else { (self.from - self.to_low) as f64 / self.from as f64 }
    }
}

/// Bounds of the mean step of `classes` after `change`: no change gains more than the time it removes (Amdahl), no runtime change
/// makes the step shorter than the device's own work, and nothing is promised from below.
pub fn bound(classes: &[&Class], change: &Intervention) -> Estimate {
    let steady = classes.iter().map(|class| class.steady).sum::<usize>().max(1) as Ns;
    let from = classes.iter().map(|class| class.total).sum::<Ns>() / steady;
    let per_step = |pick: &dyn Fn(Bucket) -> bool| classes.iter().map(|class| class.sum(pick)).sum::<Ns>() / steady;
    // Of a logged step nobody knows the device's own part.
    let busy = per_step(&|b| !b.is_idle() && b != Bucket::Unseen);
    let floor = match change.layer {
        Layer::Runtime => busy.min(from) - per_step(&|b| matches!(b, Bucket::Copy(_))).min(busy),
        _ => 0,
    };
    let to_low = (from - change.removes.clamp(0, from)).max(floor).min(from);
    Estimate { from, to_low, to_high: from, method: Method::Bound }
}

/// What a change of one class of a workload brings to its mean step.
pub fn of_class(workload: &Workload<'_>, class: &Class, change: &Intervention) -> Estimate {
    let own = bound(&[class], change);
    if workload.classes.len() < 2 { own } else { own.spread(workload.mean(), class.steady, workload.steady()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_the_interval_is_the_gain() {
        let e = Estimate { from: 1000, to_low: 600, to_high: 1000, method: Method::Bound };
        assert!((e.mid_gain_share() - 0.2).abs() < 1e-12);
        assert!((e.max_gain_share() - 0.4).abs() < 1e-12);
        assert_eq!(Estimate::none(0).mid_gain_share(), 0.0);
    }
}
