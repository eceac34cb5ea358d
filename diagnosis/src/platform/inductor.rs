//! Names of kernels that TorchInductor generates: `triton_<kind>_fused_<ATen operators>_<number>`. What the kernel does
//! is read from the operators in its name.

use serde::Deserialize;

use super::op::CanonicalOp;

/// Kinds of generated kernels: pointwise, reduction, persistent reduction, template, split scan, combined.
const KINDS: [&str; 6] = ["poi", "red", "per", "tem", "spl", "for"];

/// A pack's rule for one canonical operator.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InductorEntry {
    /// Canonical operator.
    pub name: String,
    /// ATen operators that must all be there.
    #[serde(default)]
    pub all: Vec<String>,
    /// ATen operators of which at least one must be there.
    #[serde(default)]
    pub any: Vec<String>,
    /// ATen operators of which none may be there.
    #[serde(default)]
    pub none: Vec<String>,
    /// Kinds of generated kernels that it is for; all where empty.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// The only ATen operators that may be there.
    #[serde(default)]
    pub only: Vec<String>,
    #[serde(default)]
    #[allow(dead_code)] // read by people, in the pack; required to be text here
    pub source: Option<String>,
}

/// The rules of all packs in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Inductor {
    rules: Vec<(InductorEntry, CanonicalOp, String)>,
    /// ATen operators whose names hold an underscore, longest first.
    compound: Vec<String>,
}

impl Inductor {
    /// Adds a rule of a pack.
    pub fn add(&mut self, entry: InductorEntry, op: CanonicalOp, pack: &str) {
        for name in
            entry.all.iter().chain(&entry.any).chain(&entry.none).chain(&entry.only).filter(|name| name.contains('_'))
        {
            if !self.compound.contains(name) {
                self.compound.push(name.clone());
            }
        }
        self.rules.push((entry, op, pack.to_owned()));
    }

    /// Makes longer names win over their own prefixes; called once after the last [`Self::add`].
    pub fn finish(&mut self) {
        self.compound.sort_by_key(|name| std::cmp::Reverse(name.len()));
    }

    /// The operator and the pack that knew it; `None` for a name that TorchInductor did not make.
    pub fn find(&self, name: &str) -> Option<(CanonicalOp, &str)> {
        let (kind, rest) = name.strip_prefix("triton_")?.split_once("_fused")?;
        if !KINDS.contains(&kind) {
            return None;
        }
        let atens = self.atens(rest.strip_prefix('_').unwrap_or(rest));
        let has = |op: &String| atens.contains(&op.as_str());
        self.rules
            .iter()
            .find(|(rule, ..)| {
                (rule.kinds.is_empty() || rule.kinds.iter().any(|k| k == kind))
                    && rule.all.iter().all(has)
                    && !rule.none.iter().any(has)
                    && (rule.any.is_empty() || rule.any.iter().any(has))
                    && (rule.only.is_empty()
                        || !atens.is_empty() && atens.iter().all(|a| rule.only.iter().any(|o| o == a)))
            })
            .map(|(_, op, pack)| (*op, pack.as_str()))
    }

    /// The ATen operators of a name. Underscores both separate operators and occur in them, so known compound names are
    /// taken first.
    fn atens<'a>(&self, mut rest: &'a str) -> Vec<&'a str> {
        let mut atens = Vec::new();
        while !rest.is_empty() {
            let compound = self.compound.iter().find(|name| {
                rest.strip_prefix(name.as_str()).is_some_and(|after| after.is_empty() || after.starts_with('_'))
            });
            let len = compound.map_or_else(|| rest.find('_').unwrap_or(rest.len()), |name| name.len());
            let (token, after) = rest.split_at(len);
            if !token.is_empty() && !token.bytes().all(|b| b.is_ascii_digit()) {
                atens.push(token);
            }
            rest = after.strip_prefix('_').unwrap_or(after);
        }
        atens
    }
}
