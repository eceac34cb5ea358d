//! Plans as files, which 'strato plan --format toml' writes.

use std::path::Path;

use diagnosis::compare::plan::{Asked, SCHEMA};

use super::exit::Usage;

/// Reads a plan.
///
/// # Errors
/// What is no plan, with the next step.
pub(super) fn read(plan: &Path) -> Result<Asked, Usage> {
    let file = plan.display();
    let text = input::text(plan, input::BY_HAND)
        .map_err(|e| Usage(format!("cannot read '{file}': {e}; name what 'strato plan --format toml' wrote")))?;
    let asked: Asked = toml::from_str(&text)
        .map_err(|e| Usage(format!("'{file}': {}; write it with 'strato plan --format toml'", e.message())))?;
    if asked.schema != SCHEMA {
        return Err(Usage(format!("'{file}' is no plan ('schema' is not {SCHEMA}); write one with 'strato plan'")));
    }
    if let Some(key) = asked.controls.keys().find(|key| model::manifest::field(key).is_none()) {
        return Err(Usage(format!(
            "'{file}': '{key}' is no field of the manifest; 'strato manifest show CAPTURE' lists them"
        )));
    }
    Ok(asked)
}
