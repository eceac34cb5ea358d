//! Whether two documents of one file are of one run.

use model::Span;

use super::facts::DeviceProperties;

/// Which run a document is of: its process, its devices, and when it was.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub pid: Option<i64>,
    pub devices: Vec<DeviceProperties>,
    pub span: Option<Span>,
}

impl Run {
    /// Whether this is of another run: another process or other devices, at another time. Ranks of a job run at one time, and the
    /// windows of one process are one run.
    pub fn is_other(&self, before: &Self) -> bool {
        let apart = self.span.zip(before.span).is_some_and(|(a, b)| a.end < b.start || b.end < a.start);
        let process = self.pid.zip(before.pid).is_some_and(|(a, b)| a != b);
        let known = !self.devices.is_empty() && !before.devices.is_empty();
        apart && (process || known && self.devices != before.devices)
    }
}
