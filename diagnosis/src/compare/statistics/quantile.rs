//! The normal distribution, Student's and Fisher's, as far as intervals and floors need them.

/// Share of the normal distribution below `z`, to 1.5e-7 (Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26).
pub fn normal_below(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let poly = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    let erfc = poly.iter().fold(0.0, |sum, c| (sum + c) * t) * (-x * x).exp();
    if z < 0.0 { erfc / 2.0 } else { 1.0 - erfc / 2.0 }
}

/// Below what `z` the share `p` of the normal distribution lies, to 1.2e-9 of its value (P. J. Acklam's rational
/// approximation); `p` is taken from within (0, 1).
pub fn normal(p: f64) -> f64 {
    const A: [f64; 6] = [
        -39.696_830_286_653_76,
        220.946_098_424_520_5,
        -275.928_510_446_968_7,
        138.357_751_867_269,
        -30.664_798_066_147_16,
        2.506_628_277_459_239,
    ];
    const B: [f64; 5] = [
        -54.476_098_798_224_06,
        161.585_836_858_040_9,
        -155.698_979_859_886_6,
        66.801_311_887_719_72,
        -13.280_681_552_885_72,
    ];
    const C: [f64; 6] = [
        -0.007_784_894_002_430_293,
        -0.322_396_458_041_136_5,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 4] =
        [0.007_784_695_709_041_462, 0.322_467_129_070_039_8, 2.445_134_137_142_996, 3.754_408_661_907_416];
    const TAIL: f64 = 0.024_25;
    let horner = |c: &[f64], x: f64| c.iter().fold(0.0, |sum, c| sum * x + c);
    let p = p.clamp(1e-12, 1.0 - 1e-12);
    let tail = |p: f64| {
        let q = (-2.0 * p.ln()).sqrt();
        horner(&C, q) / (horner(&D, q) * q + 1.0)
    };
    if p < TAIL {
        tail(p)
    } else if p > 1.0 - TAIL {
        -tail(1.0 - p)
    } else {
        let q = p - 0.5;
        let r = q * q;
        horner(&A, r) * q / (horner(&B, r) * r + 1.0)
    }
}

/// Below what `t` the share `p` of Student's distribution lies, `p` from one half to less than one; `freedom` need not be whole.
pub fn student(p: f64, freedom: f64) -> f64 {
    // Beyond, the distribution is the normal one to a part in a thousand.
    let freedom = freedom.clamp(1.0, 1000.0);
    let above = |t: f64| beta_below(freedom / (freedom + t * t), freedom / 2.0, 0.5) / 2.0;
    let (mut low, mut high) = (0.0, 1.0);
    while above(high) > 1.0 - p && high < 1e9 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        *(if above(middle) > 1.0 - p { &mut low } else { &mut high }) = middle;
    }
    high
}

/// Share of Fisher's distribution above `ratio`: how often one variance is so many times another where both are equal, by the
/// degrees of freedom of the two.
pub fn fisher_above(ratio: f64, [own, other]: [f64; 2]) -> f64 {
    beta_below(other / (other + own * ratio), other / 2.0, own / 2.0)
}

/// Share of the beta distribution below `x`: the continued fraction 8.17.22 of the NIST Digital Library of Mathematical
/// Functions, on the side where it converges fast.
fn beta_below(x: f64, a: f64, b: f64) -> f64 {
    let near = x <= (a + 1.0) / (a + b + 2.0);
    let (y, a, b) = if near { (x, a, b) } else { (1.0 - x, b, a) };
    // It needs some multiples of the root of the larger parameter.
    let terms = 24 + 3 * a.max(b).sqrt() as i32;
    let term = |k: i32| {
        let (m, even) = (f64::from(k / 2), k % 2 == 0);
        let up = if even { m * (b - m) } else { -(a + m) * (a + b + m) };
        up * y / ((a + f64::from(k) - 1.0) * (a + f64::from(k)))
    };
    let fraction = (1..=terms).rev().fold(1.0, |rest, k| 1.0 + term(k) / rest);
    let front = a * y.ln() + b * (1.0 - y).ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    let share = if y > 0.0 { front.exp() / (a * fraction) } else { 0.0 };
    if near { share } else { 1.0 - share }
}

/// Natural logarithm of the gamma function of what is above 0: Stirling's series (5.11.1 of the same library) from 10 on, below
/// by the recurrence.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut product) = (x, 1.0);
    while x < 10.0 {
        product *= x;
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - product.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959_964), (0.001, -3.090_232), (0.9, 1.281_552)] {
            assert!((normal(p) - z).abs() < 1e-6, "{p}: {}", normal(p));
            assert!((normal_below(z) - p).abs() < 1e-6, "{z}: {}", normal_below(z));
        }
        let tables = [(1.0, 12.706_205), (2.0, 4.302_653), (3.0, 3.182_446), (8.0, 2.306_004), (30.0, 2.042_272)];
        for (freedom, t) in tables {
            let own = student(0.975, freedom);
            assert!((own - t).abs() < 1e-5 * t, "{freedom}: {own}");
        }
        assert!((student(0.9, 4.0) - 1.533_206).abs() < 1e-5);
        assert!((student(0.975, 1e6) - 1.96).abs() < 0.003);
        // Between whole degrees of freedom as between their tables.
        assert!(student(0.975, 3.5) < student(0.975, 3.0) && student(0.975, 3.5) > student(0.975, 4.0));
    }

    #[test]
    fn shares_of_variances_are_those_of_the_tables() {
        for (ratio, freedom, share) in [
            (9.604_53, [4.0, 4.0], 0.025),
            (39.0, [2.0, 2.0], 0.025),
            (5.714_71, [2.0, 9.0], 0.025),
            (1.0, [5.0, 5.0], 0.5),
        ] {
            let own = fisher_above(ratio, freedom);
            assert!((own - share).abs() < 1e-5, "{ratio} {freedom:?}: {own}");
        }
        assert_eq!(fisher_above(f64::INFINITY, [4.0, 4.0]), 0.0);
    }
}
