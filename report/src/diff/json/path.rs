//! Path against settings, as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::plain;
use diagnosis::compare::path::{Reading, Signatures, Trait};

/// Which ways the two went.
#[derive(Serialize, JsonSchema)]
pub(super) struct Path {
    same: Vec<SideBySide>,
    different: Vec<SideBySide>,
    unknown: Vec<SideBySide>,
    /// What path and settings say together.
    #[schemars(schema_with = "readings")]
    reading: &'static str,
}

fn readings(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let all = [Reading::Platform, Reading::Path, Reading::Settings, Reading::Both].map(Reading::key);
    schemars::json_schema!({ "type": "string", "enum": all })
}

/// Which settings the two had.
#[derive(Serialize, JsonSchema)]
pub(super) struct Configuration {
    same: Vec<SideBySide>,
    different: Vec<SideBySide>,
    unknown: Vec<SideBySide>,
}

/// A trait of both sides; null where a side does not show it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Trait")]
struct SideBySide {
    #[serde(rename = "trait")]
    key: &'static str,
    a: Option<String>,
    b: Option<String>,
}

pub(super) fn path(signatures: &Signatures) -> Path {
    let [same, different, unknown] = divided(&signatures.path, |feature| feature.key());
    Path { same, different, unknown, reading: signatures.reading().key() }
}

pub(super) fn configuration(signatures: &Signatures) -> Configuration {
    let [same, different, unknown] = divided(&signatures.settings, |key| key);
    Configuration { same, different, unknown }
}

/// Traits that are the same, that differ, and that a side does not show.
fn divided<K: Copy>(traits: &[Trait<K>], key: impl Fn(K) -> &'static str) -> [Vec<SideBySide>; 3] {
    [Some(true), Some(false), None].map(|same| {
        let own = traits.iter().filter(|t| t.same == same);
        own.map(|t| SideBySide { key: key(t.key), a: t.a.as_deref().map(plain), b: t.b.as_deref().map(plain) })
            .collect()
    })
}
