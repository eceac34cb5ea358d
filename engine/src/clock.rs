//! The clock of a device on the host's time: what both sides have seen says from where to where the difference can be.

use crate::record::Ns;

/// What is to be added to the device's clock to have the host's, ns: between these two.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offset {
    bounds: Option<(Ns, Ns)>,
}

impl Offset {
    /// What the device stamped cannot have been before `host`.
    pub(crate) fn not_before(&mut self, host: Ns, device: Ns) {
        self.narrow(host.saturating_sub(device), Ns::MAX);
    }

    /// What the device stamped had been by `host`.
    pub(crate) fn not_after(&mut self, host: Ns, device: Ns) {
        self.narrow(Ns::MIN, host.saturating_sub(device));
    }

    fn narrow(&mut self, low: Ns, high: Ns) {
        let (least, most) = self.bounds.unwrap_or((Ns::MIN, Ns::MAX));
        self.bounds = Some((least.max(low), most.min(high)));
    }

    /// The middle of what is possible, and how far it may be off. Bounds that contradict each other, because a driver's
    /// stamps are not what they should be, are as uncertain as they are apart.
    pub(crate) fn middle(&self) -> Option<(Ns, Ns)> {
        let (low, high) = self.bounds.filter(|(low, high)| *low > Ns::MIN && *high < Ns::MAX)?;
        let half = high.checked_sub(low)? / 2;
        Some((low + half, half.abs()))
    }
}
