//! How far two tensors are from each other, added up element by element, so that nothing has to be kept of the tensors.

use serde::Serialize;

/// Numbers beyond this are on their way to overflow.
const HUGE: f32 = 1e10;
/// Elements whose size is below this share of the root mean square have no relative error that means anything.
const SMALL: f64 = 1.0 / 1024.0;
/// Upper ends, in units in the last place of single precision, of all classes of [`Measure::ulps`] but the last.
pub const ULPS: [u32; 6] = [0, 1, 4, 64, 1024, 65_536];

/// What one side's values are like.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Least finite value; infinite where there is none.
    pub min: f64,
    /// Greatest finite value.
    pub max: f64,
    sum: f64,
    squares: f64,
    finite: u64,
    /// Values that are not a number.
    pub nan: u64,
    /// Infinite values.
    pub inf: u64,
    /// Finite values beyond 1e10.
    pub huge: u64,
}

impl Default for Summary {
    fn default() -> Self {
        let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
        Self { min, max, sum: 0.0, squares: 0.0, finite: 0, nan: 0, inf: 0, huge: 0 }
    }
}

impl Summary {
    fn add(&mut self, value: f32) {
        if !value.is_finite() {
            *(if value.is_nan() { &mut self.nan } else { &mut self.inf }) += 1;
            return;
        }
        let wide = f64::from(value);
        (self.min, self.max) = (self.min.min(wide), self.max.max(wide));
        self.sum += wide;
        self.squares += wide * wide;
        self.finite += 1;
        self.huge += u64::from(value.abs() > HUGE);
    }

    fn merge(&mut self, other: &Self) {
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
        self.sum += other.sum;
        self.squares += other.squares;
        self.finite += other.finite;
        self.nan += other.nan;
        self.inf += other.inf;
        self.huge += other.huge;
    }

    /// Mean of the finite values; `None` without any.
    pub fn mean(&self) -> Option<f64> {
        (self.finite > 0).then(|| self.sum / self.finite as f64)
    }

    /// Variance of the finite values.
    pub fn variance(&self) -> Option<f64> {
        self.mean().map(|mean| (self.squares / self.finite as f64 - mean * mean).max(0.0))
    }

    /// Euclidean norm of the finite values.
    pub fn l2(&self) -> f64 {
        self.squares.sqrt()
    }
}

/// How far the values of side B are from those of side A. Errors are over elements that are finite on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Measure {
    /// Elements.
    pub count: u64,
    /// Elements whose bits differ.
    pub different: u64,
    /// Greatest absolute difference.
    pub max_abs: f64,
    /// Greatest difference relative to A, over elements of A that are not small beside the rest.
    pub max_rel: f64,
    /// Elements of A that are not small, and of those the ones within 1e-3 and within 5e-3 of A.
    pub judged: [u64; 3],
    /// Elements by distance in units in the last place; the ends of the classes are [`ULPS`].
    pub ulps: [u64; 7],
    /// Elements that are finite on one side only, or infinite of different sign: A's and B's.
    pub lost: [u64; 2],
    /// Elements that are not finite on either side, whether alike or not.
    pub not_finite: u64,
    /// Values of A.
    pub a: Summary,
    /// Values of B.
    pub b: Summary,
    errors: f64,
    products: f64,
    /// Of the elements that are finite on both sides.
    squares: [f64; 2],
}

/// Where a number stands in the order of all single-precision numbers.
fn order(value: f32) -> i64 {
    let bits = i64::from(value.to_bits() & 0x7fff_ffff);
    if value.is_sign_negative() { -bits } else { bits }
}

impl Measure {
    /// Compares two tensors of one shape.
    pub fn of(a: &[f32], b: &[f32]) -> Self {
        let mut measure = Self::default();
        let squares: f64 = a.iter().filter(|a| a.is_finite()).map(|a| f64::from(*a).powi(2)).sum();
        let small = SMALL * (squares / a.len().max(1) as f64).sqrt();
        for (a, b) in a.iter().zip(b) {
            measure.add(*a, *b, small);
        }
        measure
    }

    fn add(&mut self, a: f32, b: f32, small: f64) {
        self.count += 1;
        self.different += u64::from(a.to_bits() != b.to_bits());
        self.a.add(a);
        self.b.add(b);
        if !(a.is_finite() && b.is_finite()) {
            self.not_finite += 1;
            if !(a == b || a.is_nan() && b.is_nan()) {
                self.lost[0] += u64::from(!a.is_finite());
                self.lost[1] += u64::from(!b.is_finite());
            }
            return;
        }
        let distance = order(a).abs_diff(order(b));
        let class = ULPS.iter().position(|end| distance <= u64::from(*end)).unwrap_or(ULPS.len());
        if let Some(count) = self.ulps.get_mut(class) {
            *count += 1;
        }
        let (a, b) = (f64::from(a), f64::from(b));
        let error = (a - b).abs();
        self.max_abs = self.max_abs.max(error);
        if a.abs() > small {
            let relative = error / a.abs();
            self.max_rel = self.max_rel.max(relative);
            let [judged, thousandth, five] = &mut self.judged;
            *judged += 1;
            *thousandth += u64::from(relative < 1e-3);
            *five += u64::from(relative < 5e-3);
        }
        self.errors += error * error;
        self.products += a * b;
        self.squares[0] += a * a;
        self.squares[1] += b * b;
    }

    /// Adds what another comparison of the same tensor in another step gave.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.different += other.different;
        self.not_finite += other.not_finite;
        self.max_abs = self.max_abs.max(other.max_abs);
        self.max_rel = self.max_rel.max(other.max_rel);
        let add = |to: &mut [u64], from: &[u64]| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        add(&mut self.judged, &other.judged);
        add(&mut self.ulps, &other.ulps);
        add(&mut self.lost, &other.lost);
        self.a.merge(&other.a);
        self.b.merge(&other.b);
        self.errors += other.errors;
        self.products += other.products;
        self.squares[0] += other.squares[0];
        self.squares[1] += other.squares[1];
    }

    /// Norm of the difference over the greater of the two norms, which makes it at most 2 whichever side is nearly 0; not a
    /// number where there are elements and none is finite on both sides.
    pub fn relative_l2(&self) -> f64 {
        if self.count > 0 && self.not_finite == self.count {
            return f64::NAN;
        }
        let norm = self.squares[0].max(self.squares[1]);
        if self.errors == 0.0 { 0.0 } else { (self.errors / norm).sqrt() }
    }

    /// Cosine of the angle between the two; `None` where one of them is 0.
    pub fn cosine(&self) -> Option<f64> {
        let norms = self.squares[0].sqrt() * self.squares[1].sqrt();
        (norms > 0.0).then(|| (self.products / norms).clamp(-1.0, 1.0))
    }

    /// Shares of the elements of A that are not small within 1e-3 and within 5e-3 of A; `None` where there are none.
    pub fn close(&self) -> Option<[f64; 2]> {
        let [judged, thousandth, five] = self.judged.map(|count| count as f64);
        (judged > 0.0).then(|| [thousandth / judged, five / judged])
    }

    /// Whether all elements are numbers, and equal bit for bit: a NaN is equal to nothing.
    pub fn is_equal(&self) -> bool {
        self.different == 0 && self.not_finite == 0
    }

    /// Elements that one side has lost to NaN or infinity and the other has not.
    pub fn is_lost(&self) -> bool {
        self.lost != [0, 0]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn equal_tensors_have_no_error_and_are_not_equal_where_they_are_no_numbers() {
        let values = [0.0, -1.5, f32::NAN, f32::INFINITY, 2e10];
        let measure = Measure::of(&values, &values);
        assert!(Measure::of(&values[..2], &values[..2]).is_equal());
        assert!(!measure.is_equal() && !measure.is_lost() && measure.not_finite == 2);
        assert!(Measure::of(&values[2..3], &values[2..3]).relative_l2().is_nan());
        assert_eq!((measure.relative_l2(), measure.max_abs, measure.ulps[0]), (0.0, 0.0, 3));
        assert_eq!((measure.a.nan, measure.a.inf, measure.a.huge), (1, 1, 1));
        assert!((measure.cosine().unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(Measure::of(&[], &[]).cosine(), None);
    }

    #[test]
    fn errors_are_what_their_definitions_say() {
        let next = f32::from_bits(1f32.to_bits() + 1);
        let measure = Measure::of(&[1.0, -2.0, 1e-9, 1.0], &[next, -2.02, 3e-9, 1.0]);
        assert_eq!(measure.different, 3);
        assert!((measure.max_abs - 0.02).abs() < 1e-6);
        // The third element is small beside the others, and has no relative error.
        assert!((measure.max_rel - 0.01).abs() < 1e-6);
        assert_eq!(measure.judged, [3, 2, 2]);
        assert_eq!((measure.ulps[0], measure.ulps[1], measure.ulps[6]), (1, 1, 2));
        let expected = 0.02 / (1.0f64 + 2.02 * 2.02 + 1.0).sqrt();
        assert!((measure.relative_l2() - expected).abs() < 1e-5);
        // Numbers around 0 are near to each other.
        assert_eq!(Measure::of(&[0.0], &[-0.0]).ulps[0], 1);
    }

    #[test]
    fn what_one_side_has_lost_is_counted_and_spoils_no_error() {
        let measure = Measure::of(&[1.0, 2.0, f32::INFINITY], &[1.0, f32::NAN, f32::NEG_INFINITY]);
        assert_eq!((measure.lost, measure.relative_l2()), ([1, 2], 0.0));
        assert!(measure.is_lost() && !measure.is_equal());
    }

    #[test]
    fn steps_add_up_to_the_measure_of_all_of_them() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [1.0, 2.5, 3.0, 3.0]);
        let mut merged = Measure::of(&a[..2], &b[..2]);
        merged.merge(&Measure::of(&a[2..], &b[2..]));
        assert_eq!(merged, Measure::of(&a, &b));
        assert_eq!((merged.a.mean(), merged.a.variance()), (Some(2.5), Some(1.25)));
        assert!((merged.a.l2() - 30f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_side_of_zeros_is_as_wrong_as_can_be_and_finite() {
        assert_eq!(Measure::of(&[0.0, 0.0], &[1.0, 2.0]).relative_l2(), 1.0);
        assert_eq!(Measure::of(&[1.0, 2.0], &[0.0, 0.0]).relative_l2(), 1.0);
        assert_eq!(Measure::of(&[0.0], &[0.0]).relative_l2(), 0.0);
    }
}
