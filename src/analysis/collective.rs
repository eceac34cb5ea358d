//! Transfer and wait of collectives as far as one rank alone can tell.

use std::collections::HashMap;

use model::{Ns, StringId};

/// How collectives of one rank were split.
#[derive(Clone, Debug, Default)]
pub struct Split {
    /// Collectives seen.
    pub instances: u64,
    /// Of those, instances whose transfer was estimated from the fast ones of the same kind (low confidence); the rest
    /// count as transfer altogether.
    pub estimated: u64,
    /// Estimated transfer by kernel name and payload, ns.
    pub transfer: HashMap<(StringId, Option<i64>), Ns>,
}
