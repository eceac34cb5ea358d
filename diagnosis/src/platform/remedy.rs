//! Remedies: what to do about a finding, per platform, dated because the advice ages with the software.

use serde::{Deserialize, Serialize};

/// One piece of advice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// In English.
    pub text_en: String,
    /// In Chinese.
    pub text_zh: String,
    /// Pack it comes from: `generic`, `cuda`, `ascend`, …
    pub platform: String,
    /// Where it comes from.
    pub source: String,
    /// When it was last checked, `YYYY-MM`.
    pub date: String,
    /// Manifest key and value of a run that follows the advice already.
    #[serde(skip)]
    pub unless: Option<(String, String)>,
    /// Fragments of names. The advice applies where the capture contains one of them; everywhere if there are none.
    #[serde(skip)]
    pub of: Vec<String>,
    /// Fragments of names of the kernels that the advice is about; none where it is about all that a finding names.
    #[serde(skip)]
    pub kernels: Vec<String>,
}

impl Remedy {
    /// Whether the advice is about any of the kernels named.
    pub fn is_about<'a>(&self, mut names: impl Iterator<Item = &'a str>) -> bool {
        self.kernels.is_empty() || names.any(|name| self.kernels.iter().any(|part| name.contains(part)))
    }
}

/// Advice as a pack writes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemedyEntry {
    /// Rules it answers.
    pub rules: Vec<String>,
    pub en: String,
    pub zh: String,
    /// Manifest key, and the value (or one of the values, separated by commas) with which the advice is followed already.
    pub unless: Option<(String, String)>,
    /// Fragments of names. The advice applies where the capture contains one of them.
    #[serde(default)]
    pub of: Vec<String>,
    /// Fragments of the names of the kernels that it is about; all where there are none.
    #[serde(default)]
    pub kernels: Vec<String>,
    pub source: Option<String>,
    pub date: Option<String>,
}
