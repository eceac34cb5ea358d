//! What the caller of a reader knows and the file need not say. It is a value: nothing of it is kept between two readings, so
//! two readings of one process with different options know nothing of each other.

use crate::{Progress, log::Patterns};

/// What a file is read by. `ReadOptions::default()` detects the format and knows the built-in log patterns; other values take
/// the place of single fields: `ReadOptions { format: Some("nsys"), ..ReadOptions::default() }`.
#[derive(Clone, Copy)]
pub struct ReadOptions<'a> {
    /// Id of the format to read the file as, whatever its content says; `None` detects it.
    pub format: Option<&'a str>,
    /// Expressions that read the lines of logs: [`Patterns::with`] puts those of the caller before the built-in ones.
    pub patterns: &'a Patterns,
    /// What the name of a device betrays of its vendor: a part of the name, in its letter case, and the vendor's id. The first
    /// that fits decides. Readers know no products, so without them only what a file says itself gives a vendor.
    pub device_vendors: &'a [(String, String)],
    /// Told now and then how far reading is.
    pub progress: Progress<'a>,
}

impl Default for ReadOptions<'_> {
    fn default() -> Self {
        Self { format: None, patterns: Patterns::built_in(), device_vendors: &[], progress: &|_, _| {} }
    }
}

impl<'a> ReadOptions<'a> {
    /// The vendor that the name of a device betrays.
    pub(crate) fn vendor_of(&self, device: &str) -> Option<&'a str> {
        let known = self.device_vendors.iter().find(|(part, _)| !part.is_empty() && device.contains(part.as_str()));
        known.map(|(_, vendor)| vendor.as_str())
    }
}
