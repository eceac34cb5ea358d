//! JSON documents held against the schemas in `docs/schema`.

use std::path::Path;

use jsonschema::Validator;
use serde_json::Value;

/// A schema by its name, such as `strato.diff`.
pub fn read(name: &str) -> Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema").join(format!("{name}.json"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

/// Fails where the document is not as the schema says; `what` names the document.
pub fn check(schema: &Validator, document: &Value, what: &str) {
    let wrong: Vec<String> =
        schema.iter_errors(document).take(8).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(wrong.is_empty(), "{what} is not as its schema says:\n{}", wrong.join("\n"));
}
