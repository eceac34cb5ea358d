//! The label of captures that no device was measured for. Simulators write it where a format has room for what its own
//! tools leave alone, and a capture that has it says so wherever its numbers are shown.

use model::{Provenance, TraceSink};

/// What the label is called where names are written with underscores.
pub(crate) const LABEL: &str = "strato_simulated";

/// Tells that the capture is simulated.
pub(crate) fn tell(sink: &mut dyn TraceSink) {
    sink.manifest("simulated", "true", Provenance::Simulated);
}
