//! The normal distribution and Student's, as far as intervals and floors need them.

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

/// Below what `t` the share `p` of Student's distribution lies; exact for two degrees of freedom, else to 0.2 % for shares up
/// to 0.99 (Abramowitz and Stegun 26.7.5).
pub fn student(p: f64, freedom: usize) -> f64 {
    if freedom <= 2 {
        return (2.0 * p - 1.0) / (2.0 * p * (1.0 - p)).sqrt();
    }
    let (z, n) = (normal(p), freedom as f64);
    let x = z * z;
    let terms = [
        z * (x + 1.0) / 4.0,
        z * ((5.0 * x + 16.0) * x + 3.0) / 96.0,
        z * (((3.0 * x + 19.0) * x + 17.0) * x - 15.0) / 384.0,
        z * ((((79.0 * x + 776.0) * x + 1482.0) * x - 1920.0) * x - 945.0) / 92_160.0,
    ];
    z + terms.iter().rev().fold(0.0, |sum, term| (sum + term) / n)
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
        for (freedom, t) in [(2, 4.302_653), (3, 3.182_446), (4, 2.776_445), (8, 2.306_004), (30, 2.042_272)] {
            let own = student(0.975, freedom);
            assert!((own - t).abs() < 0.002 * t, "{freedom}: {own}");
        }
    }
}
