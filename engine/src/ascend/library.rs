//! The libraries of CANN, opened when a run asks for them. What is not there is said by name, and nothing of it is needed to
//! build this program or to start it.

#![allow(unsafe_code)]

use std::{
    error::Error as _,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use libloading::Library;

use super::calls::Api;

/// Where CANN lies that nobody says otherwise of (its installation guide: "toolkit", and "cann" since 8.5).
const HOMES: [&str; 2] = ["/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/cann"];
/// Libraries that hold the calls: runtime, base of operators, operators, which newer versions divide, and collectives.
const NAMES: [&str; 8] = [
    "libascendcl.so",
    "libnnopbase.so",
    "libopapi_math.so",
    "libopapi_nn.so",
    "libopapi_transformer.so",
    "libopapi_legacy.so",
    "libopapi.so",
    "libhccl.so",
];
/// What brings a device, or one that is simulated.
pub(super) const REMEDY: &str = "install CANN 8.2 or later and source its set_env.sh, or let STRATO_ASCEND_LIB name a library \
                                 that has its calls, such as that of sim-npu";

fn homes() -> Vec<PathBuf> {
    let given = ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    given.chain(HOMES.map(PathBuf::from)).collect()
}

/// Where a library of CANN may lie, in order; a bare name is looked for where the loader looks.
pub(super) fn places(name: &str) -> Vec<PathBuf> {
    let paths = homes().into_iter().map(|home| home.join("lib64").join(name));
    paths.chain([PathBuf::from(name)]).collect()
}

/// Libraries that are open.
pub(super) struct Libraries {
    open: Vec<(String, Library)>,
}

impl Libraries {
    /// Opens `only`, or the libraries of CANN that this machine has.
    fn open(only: Option<&Path>) -> Result<Self, String> {
        if let Some(path) = only {
            return Ok(Self { open: vec![open(path)?] });
        }
        let mut found = Vec::new();
        for name in NAMES {
            let opened = places(name).into_iter().map(|path| open(&path)).find_map(Result::ok);
            match opened {
                Some(library) => found.push(library),
                None if found.is_empty() => {
                    let looked: Vec<String> = homes().iter().map(|home| home.display().to_string()).collect();
                    return Err(format!(
                        "{name}, the runtime of CANN, cannot be opened (looked in lib64 of {}, and where the loader looks); \
                         {REMEDY}",
                        looked.join(", ")
                    ));
                }
                None => (),
            }
        }
        Ok(Self { open: found })
    }

    /// The call of that name.
    ///
    /// # Safety
    /// `F` must be the type of a function with the arguments that the documentation gives the call.
    pub(super) unsafe fn call<F: Copy>(&self, name: &str) -> Result<F, String> {
        // SAFETY: the caller vouches for the type; the libraries stay open as long as the program runs.
        let found = self.open.iter().find_map(|(_, library)| unsafe { library.get::<F>(name) }.ok().map(|call| *call));
        found.ok_or_else(|| {
            let open: Vec<&str> = self.open.iter().map(|(name, _)| name.as_str()).collect();
            format!("{name} is in none of {}; {REMEDY}", open.join(", "))
        })
    }

    /// Whether there is a call of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        // SAFETY: nothing is called.
        unsafe { self.call::<unsafe extern "C" fn()>(name) }.is_ok()
    }

    /// What was opened first.
    pub(super) fn first(&self) -> &str {
        self.open.first().map_or("", |(name, _)| name)
    }
}

fn open(path: &Path) -> Result<(String, Library), String> {
    // SAFETY: the libraries of CANN, or the one that whoever runs this names, may run what they run when they are opened.
    let opened = unsafe { Library::new(path) };
    let library = opened.map_err(|error| {
        // The error itself says only that opening failed.
        let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        format!("{} cannot be opened ({why}); {REMEDY}", path.display())
    })?;
    Ok((path.display().to_string(), library))
}

/// The calls of `only`, or of CANN: found once, and there as long as the program runs.
pub(super) fn api(only: Option<&Path>) -> Result<&'static Api, String> {
    type Known = Vec<(Option<PathBuf>, Result<&'static Api, String>)>;
    static KNOWN: Mutex<Known> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, found)) = known.iter().find(|(of, _)| of.as_deref() == only) {
        return found.clone();
    }
    let libraries = Libraries::open(only);
    let found = libraries.and_then(|libraries| {
        let api = Api::find(&libraries)?;
        // A library that is closed takes threads of its own with it.
        std::mem::forget(libraries);
        Ok(&*Box::leak(Box::new(api)))
    });
    known.push((only.map(Path::to_owned), found.clone()));
    found
}
