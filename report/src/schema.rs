//! Schemas of the JSON documents, as `docs/schema` holds them.

use schemars::{JsonSchema, Schema, generate::SchemaSettings};

use super::{decide, diff, json, link_test, serving};

/// The schema of what `strato diagnose --format json` says.
pub fn diagnosis() -> Schema {
    of::<json::Diagnosis>("What strato diagnose --format json says")
}

/// The schema of what `strato diff --format json` says.
pub fn diff() -> Schema {
    of::<diff::json::Diff>("What strato diff --format json says")
}

/// The schema of what `strato diff --format json` says of two serving results.
pub fn serving() -> Schema {
    of::<serving::json::Serving>("What strato diff --format json says of two serving results")
}

/// The schema of what `strato diff --format json` says of two link tests.
pub fn links() -> Schema {
    of::<link_test::json::Compared>("What strato diff --format json says of two link tests")
}

/// The schema of what `strato decide --format json` says.
pub fn decide() -> Schema {
    of::<decide::json::Decided>("What strato decide --format json says")
}

fn of<T: JsonSchema>(title: &str) -> Schema {
    let mut schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    schema
}

#[cfg(test)]
mod tests {
    //! `STRATO_BLESS=1 cargo test -p stratoscope-report schema` rewrites `docs/schema`.
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::{fs, path::Path};

    use serde_json::Value;

    use super::*;
    use crate::sample;
    use diagnosis::i18n::Lang;

    #[test]
    fn the_schemas_are_those_of_the_types() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schema");
        for (name, schema) in [
            ("strato.diagnosis.json", diagnosis()),
            ("strato.diff.json", diff()),
            ("strato.serving.json", serving()),
            ("strato.links.json", links()),
            ("strato.decide.json", decide()),
        ] {
            let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
            if std::env::var_os("STRATO_BLESS").is_some() {
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join(name), &text).unwrap();
            }
            let held = fs::read_to_string(folder.join(name)).unwrap_or_default();
            assert!(held == text, "docs/schema/{name} is not of the types; run with STRATO_BLESS=1");
        }
    }

    #[test]
    fn the_report_written_by_hand_is_as_its_schema_says() {
        let validator = jsonschema::validator_for(diagnosis().as_value()).unwrap();
        for lang in [Lang::En, Lang::Zh] {
            let mut document: Value =
                serde_json::from_str(&json::render(&sample::report(true), lang).unwrap()).unwrap();
            let wrong: Vec<String> =
                validator.iter_errors(&document).map(|e| format!("{}: {e}", e.instance_path())).collect();
            assert!(wrong.is_empty(), "{wrong:#?}");
            document["findings"][0]["layer"] = "kernel".into();
            assert!(!validator.is_valid(&document), "a layer that there is none of");
            document["findings"][0].as_object_mut().unwrap().remove("layer");
            assert!(!validator.is_valid(&document), "a finding without its layer");
        }
    }
}
