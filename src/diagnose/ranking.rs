//! Which finding comes first, and which gives way to another.

use super::finding::Finding;
use crate::analysis::Analysis;

/// Orders findings and lets one give way where two claim the same time.
pub fn settle(findings: &mut Vec<Finding>, _analysis: &Analysis) {
    findings.sort_by(|a, b| {
        let gain = |f: &Finding| f.estimate.mid_gain_share();
        b.severity.cmp(&a.severity).then(gain(b).total_cmp(&gain(a))).then(a.rule.cmp(b.rule))
    });
}
