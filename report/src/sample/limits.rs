//! How far the sample's operators are from what its device can do.

use crate::model::Chip;
use diagnosis::{
    diagnose::limits::{Basis, Bound, Floor, Limits, PeakSource, Rate, RateUnit},
    i18n::{Message, Text, Value},
};

/// Rates of a product and of a copy, and the floor of a step.
pub(super) fn limits() -> Limits {
    let rate = |operator, kernel: &str, shape: &str, (flops, bytes): (f64, f64), bound_by| Rate {
        operator,
        slot: None,
        kernel: kernel.into(),
        shape: shape.into(),
        dtype: (flops > 0.0).then_some("bf16"),
        count: 96,
        ns: 50_000.0,
        per_step: 1_600_000,
        flops,
        bytes,
        operands: bytes,
        bound_by,
        achieved: bytes / 50_000.0 * 1e9,
        unit: RateUnit::Bytes,
        peak: bound_by.map(|_| 3.35e12),
        peak_source: bound_by.map(|_| PeakSource::Published),
        why: vec![Message::new(
            Text::new("tile padding: {share}", "分块填充：{share}"),
            [("share", Value::Share(0.25))],
        )],
    };
    Limits {
        rates: vec![
            rate("gemm", "nvjet|<b>\u{1b}[2J", "8×4096×4096", (2.7e8, 3.4e7), Some(Bound::Memory)),
            rate("copy", "Memcpy DtoD", "1048576 B", (0.0, 2.1e6), None),
        ],
        class: Some((0, "decode b=8 graph=eager".into())),
        floor: Some(Floor {
            decodes: true,
            rank: 0,
            class: "decode b=8 graph=eager".into(),
            step: 10_000_000,
            ns: Some(2_000_000),
            weights: 6.7e9,
            cache: None,
            flops: 1e11,
            bound_by: Some(Bound::Memory),
            peak: Some(3.35e12),
            unit: RateUnit::Bytes,
            peak_source: Some(PeakSource::Published),
            basis: Basis::Shapes(0.98),
        }),
        link: None,
    }
}

pub(super) fn chip() -> Chip {
    Chip {
        name: "NVIDIA H100 SXM".into(),
        cores: Some(132),
        memory_gb: Some(80),
        memory_gb_per_s: None,
        source: "vendor guide".into(),
        date: "2026-11".into(),
    }
}
