//! What the names of host records say of themselves.

use model::{Category, StringId, Trace};
use rustc_hash::FxHashMap;

use super::{HostLabel, Labels};
use crate::platform::Packs;

/// Parts of the names of frames that only pass a call on (PyTorch, functools, contextlib).
const PASSES_ON: [&str; 18] = [
    "_call_impl",
    "_wrapped_call_impl",
    "decorate_context",
    "decorate_autocast",
    "<built-in function next>",
    ": wrapper",
    ": wrapped",
    ": inner",
    ": _fn",
    ": compile_wrapper",
    "_disabled_torch_function_impl",
    "__torch_function__",
    "contextlib.py(",
    "functools.py(",
    "torch/_ops.py(",
    "<built-in method __call__",
    "<built-in method apply of ",
    "<built-in method call of ",
];

/// Parts of the names of frames in which a thread waits for what another one launches: the autograd engine runs backward passes
/// on a thread of its own.
const WAITS: [&str; 2] = ["run_backward", "<built-in method run_backward"];

/// The names of a capture.
pub(super) struct Frames<'a> {
    trace: &'a Trace,
    packs: &'a Packs,
    labels: &'a mut Labels,
    activities: FxHashMap<StringId, Option<HostLabel>>,
    words: FxHashMap<StringId, Words>,
}

/// What a name was found to say.
#[derive(Clone, Copy)]
struct Words {
    passes_on: bool,
    waits: bool,
    marks_step: bool,
    forward: bool,
}

impl<'a> Frames<'a> {
    pub(super) fn new(trace: &'a Trace, packs: &'a Packs, labels: &'a mut Labels) -> Self {
        Self { trace, packs, labels, activities: FxHashMap::default(), words: FxHashMap::default() }
    }

    /// The activity that packs know a name by.
    pub(super) fn activity(&mut self, name: StringId) -> Option<HostLabel> {
        let Self { trace, packs, labels, activities, .. } = self;
        *activities.entry(name).or_insert_with(|| Some(labels.id(packs.host_activity(trace.strings.get(name))?)))
    }

    /// Whether records of a category tell what a thread does.
    pub(super) fn speaks(&self, category: Category) -> bool {
        matches!(
            category,
            Category::HostApi
                | Category::FrameworkOp
                | Category::UserRange
                | Category::PythonFrame
                | Category::Overhead
                | Category::OsApi
                | Category::LibraryApi
                | Category::CollectiveCall
                | Category::Gc
                | Category::HostOther
        )
    }

    /// Whether a frame only passes a call on.
    pub(super) fn passes_on(&mut self, name: StringId) -> bool {
        self.words(name).passes_on
    }

    /// Whether a thread waits there for what another thread launches.
    pub(super) fn waits_for_thread(&mut self, name: StringId) -> bool {
        self.words(name).waits
    }

    /// Whether a range is the mark of a step.
    pub(super) fn marks_step(&mut self, name: StringId) -> bool {
        self.words(name).marks_step
    }

    /// Whether a record is the forward pass of a model or of a part of it.
    pub(super) fn is_forward(&mut self, name: StringId) -> bool {
        self.words(name).forward
    }

    fn words(&mut self, name: StringId) -> Words {
        let Self { trace, packs, words, .. } = self;
        *words.entry(name).or_insert_with(|| {
            let text = trace.strings.get(name);
            let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
            Words {
                passes_on: has(&PASSES_ON),
                waits: has(&WAITS),
                marks_step: text.starts_with("ProfilerStep#") || packs.step_label(text).is_some(),
                forward: is_forward(text),
            }
        })
    }
}

/// Whether a record of this name is the forward pass of a model or of a part of it.
pub fn is_forward(name: &str) -> bool {
    name.starts_with("nn.Module: ")
        || name.trim_end_matches(['#', ' ']).ends_with("forward")
        || name.starts_with("Torch-Compiled Region")
}

/// Whether a frame belongs to the interpreter or the framework's calling machinery, which owns no time of a program.
pub fn is_plumbing(name: &str) -> bool {
    let machinery = ["<frozen ", "contextlib.py(", "functools.py(", "torch/_ops.py(", "nn/modules/module.py("];
    name.starts_with("<built-in ")
        || machinery.iter().any(|part| name.contains(part))
        || PASSES_ON.iter().any(|part| name.contains(part))
}

/// A record's name as people say it: a frame without the folders of its file, an object without its address.
pub fn short(name: &str) -> String {
    let folders = name.find(".py(").and_then(|file| name.get(..file)?.rfind('/'));
    let name = folders.and_then(|end| name.get(end + 1..)).unwrap_or(name);
    let Some((before, address)) = name.split_once(" object at 0x") else { return name.to_owned() };
    before.to_owned() + address.trim_start_matches(|c: char| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn names_lose_folders_and_addresses() {
        assert_eq!(short("a/b/model.py(7): forward"), "model.py(7): forward");
        assert_eq!(short("<built-in method get of dict object at 0x7fac6a>"), "<built-in method get of dict>");
        assert_eq!(short("aten::mm"), "aten::mm");
    }
}
