//! Wrong numbers, as faults of ports to a new platform make them.

use super::Injection;

pub(super) const ROPE_BASE_WRONG: Injection = Injection {
    name: "rope_base_wrong",
    arguments: "factor=0.1",
    what: "rotary frequencies have a wrong base",
    is_timing: false,
    apply: |options, arguments| {
        let factor: f64 = arguments.take("factor")?.unwrap_or(0.1);
        if !(factor.is_finite() && factor > 0.0) {
            return Err(arguments.refuse(&format!("factor={factor}")));
        }
        options.faults.numeric.rope_base = Some(factor);
        Ok(())
    },
};

pub(super) const BF16_ACCUM: Injection = Injection {
    name: "bf16_accum",
    arguments: "",
    what: "matrix products add up in bf16",
    is_timing: false,
    apply: |options, _| {
        options.faults.numeric.bf16_accum = true;
        Ok(())
    },
};

pub(super) const STALE_KV: Injection = Injection {
    name: "stale_kv",
    arguments: "layer=0",
    what: "the cache of a layer keeps what it held before each decode step",
    is_timing: false,
    apply: |options, arguments| {
        options.faults.numeric.stale_kv = Some(arguments.take("layer")?.unwrap_or(0));
        Ok(())
    },
};

pub(super) const NAN_AT: Injection = Injection {
    name: "nan_at",
    arguments: "layer=0",
    what: "the feed-forward block of a layer gives a NaN",
    is_timing: false,
    apply: |options, arguments| {
        options.faults.numeric.nan_at = Some(arguments.take("layer")?.unwrap_or(0));
        Ok(())
    },
};
