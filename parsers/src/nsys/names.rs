//! Names: the string table, the names of API calls and the labels of enumerations.

use model::{StringId, TraceSink};
use rustc_hash::FxHashMap;

use super::{
    import::{Import, Kept},
    page::{Page, Text},
};

/// The string table of the export. A string enters the capture only when something that is kept is named by it: the
/// table also holds the output and the whole environment of every process.
#[derive(Default)]
pub(super) struct Names {
    texts: FxHashMap<i64, Box<str>>,
    interned: FxHashMap<i64, StringId>,
    calls: FxHashMap<i64, StringId>,
    labels: FxHashMap<(&'static str, i64), Box<str>>,
    /// References to strings that the table does not have.
    pub missing: u64,
}

impl Names {
    /// The text with this id.
    pub fn text(&self, id: i64) -> Option<&str> {
        self.texts.get(&id).map(AsRef::as_ref)
    }

    /// The name with this id; `#<id>` where the string is missing, as in exports that were trimmed.
    pub fn name(&mut self, sink: &mut dyn TraceSink, id: Option<i64>) -> StringId {
        let Some(id) = id else {
            self.missing += 1;
            return sink.intern("#");
        };
        if let Some(name) = self.interned.get(&id) {
            self.missing += u64::from(!self.texts.contains_key(&id));
            return *name;
        }
        let name = match self.texts.get(&id) {
            Some(text) => sink.intern(text),
            None => {
                self.missing += 1;
                sink.intern(&format!("#{id}"))
            }
        };
        self.interned.insert(id, name);
        name
    }

    /// The name of an API call without the suffixes of its binary interface.
    pub fn call(&mut self, sink: &mut dyn TraceSink, id: Option<i64>) -> StringId {
        if let Some(name) = id.and_then(|id| self.calls.get(&id)) {
            return *name;
        }
        let Some((id, text)) = id.and_then(|id| self.texts.get(&id).map(|text| (id, text))) else {
            return self.name(sink, id);
        };
        let name = sink.intern(call_name(text));
        self.calls.insert(id, name);
        name
    }

    /// The label of a value of an enumeration, if the export has the enumeration.
    pub fn label(&self, table: &'static str, value: i64) -> Option<&str> {
        self.labels.get(&(table, value)).map(AsRef::as_ref)
    }
}

/// An API name without `_v7000` (the CUDA version that the interface dates from) and without `_ptsz` or `_ptds` (the same
/// call with the thread's own default stream). `_v2` and `_v3` stay: they tell calls of the driver interface apart.
pub(super) fn call_name(name: &str) -> &str {
    let without_version = |name: &'_ str| -> usize {
        match name.rsplit_once("_v") {
            Some((stem, digits)) if digits.len() >= 4 && digits.bytes().all(|b| b.is_ascii_digit()) => stem.len(),
            _ => name.len(),
        }
    };
    let name = name.split_at(without_version(name)).0;
    let stem = name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).unwrap_or(name);
    stem.split_at(without_version(stem)).0
}

/// `StringIds(id, value)`.
pub(super) fn strings(import: &mut Import<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let (Some(id), Some(text)) = (page.int(0, row), page.inline(1, row)) else {
            kept.incomplete += 1;
            continue;
        };
        if !import.within_file(text.len()) {
            kept.refused += 1;
            continue;
        }
        import.names.texts.insert(id, text.into());
        kept.rows += 1;
    }
    kept
}

/// `ENUM_*(id, name, label)`.
pub(super) fn labels(import: &mut Import<'_>, page: &Page) -> Kept {
    let mut kept = Kept::default();
    for row in 0..page.rows {
        let (Some(id), Some(Text::Inline(label))) = (page.int(0, row), page.text(1, row)) else { continue };
        if import.within_file(label.len()) {
            import.names.labels.insert((import.table, id), label.into());
            kept.rows += 1;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suffixes_of_the_binary_interface_go_and_those_of_the_driver_interface_stay() {
        for (raw, name) in [
            ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
            ("cudaLaunchKernelExC_v11060", "cudaLaunchKernelExC"),
            ("cudaGetDeviceProperties_v2_v12000", "cudaGetDeviceProperties_v2"),
            ("cuMemAlloc_v2", "cuMemAlloc_v2"),
            ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel"),
            ("cudaMemcpyAsync_v3020_ptsz", "cudaMemcpyAsync"),
            ("cudaLaunchKernel", "cudaLaunchKernel"),
            ("_v7000", ""),
            ("é_v", "é_v"),
        ] {
            assert_eq!(call_name(raw), name);
        }
    }
}
