//! CUPTI beside a run: what a capture says of it, whether it recorded the device or not.

use model::{Severity, TraceSink};

use crate::cupti::{Observed, cost::Cost};

/// What CUPTI has to do with a run.
#[derive(Clone, Copy, Debug, Default)]
pub enum Cupti<'f> {
    /// Nothing: nobody asked for it.
    #[default]
    NotAsked,
    /// It was asked for and records nothing, for this reason; the engine's own events stand for it.
    Absent(&'f str),
    /// It recorded the device.
    Saw {
        /// What.
        observed: &'f Observed,
        /// By how much that made a step longer, or why that is not known.
        cost: Result<&'f Cost, &'f str>,
    },
}

impl<'f> Cupti<'f> {
    /// What it saw.
    pub(super) fn seen(self) -> Option<&'f Observed> {
        match self {
            Self::Saw { observed, .. } => Some(observed),
            Self::NotAsked | Self::Absent(_) => None,
        }
    }

    /// What the manifest says of the device's times, `events` being what the engine says of its own: fields and their values.
    pub(super) fn fields(self, events: &str) -> Vec<(&'static str, String)> {
        /// Which source the evidence of the class `device` is from.
        const SOURCE: &str = "evidence.device";
        match self {
            Self::NotAsked => Vec::new(),
            Self::Absent(why) => vec![(SOURCE, format!("{events}; CUPTI was asked for: {why}"))],
            Self::Saw { observed, cost } => {
                let mut fields = vec![
                    (SOURCE, observed.said()),
                    ("measurement.timer", observed.clock()),
                    ("cuda.stamps", "no events: CUPTI recorded the commands".to_owned()),
                ];
                match cost {
                    Ok(cost) => {
                        fields.push(("measurement.inflation", format!("{:.3}", cost.ratio())));
                        fields.push(("cupti.cost", cost.said()));
                    }
                    Err(why) => fields.push(("cupti.cost", format!("not known: {why}"))),
                }
                fields
            }
        }
    }

    /// Counts that it records nothing.
    pub(super) fn stat(self, sink: &mut dyn TraceSink) {
        if let Self::Absent(why) = self {
            sink.stat("cupti.absent", Severity::Notice, 1, Some(why));
        }
    }
}

/// The calling thread, by the system's number.
pub(super) fn thread() -> u32 {
    u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap_or(0)
}
