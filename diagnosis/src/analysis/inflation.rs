//! By how much tracing made a step longer, as the run says it, and what that allows.

use model::Manifest;

/// Traced over untraced step up to which everything is trusted.
pub const TRUSTED: f64 = 1.05;
/// From here on only the order of operator buckets is trusted.
pub const DISTRUSTED: f64 = 1.30;
/// From here on there is no verdict; the factor of NVIDIA's triage guide.
pub const REFUSED: f64 = 2.0;

/// Traced over untraced step, if the run says it.
pub fn ratio(manifest: &Manifest) -> Option<f64> {
    let ratio: f64 = manifest.value("measurement.inflation")?.trim().parse().ok()?;
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}
