//! Where MSPTI lies, and how it gets into this process: it must be there before CANN is, so the program is started anew with it,
//! once.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use super::Unavailable;

/// What the loader is told in, and what MSPTI itself looks at.
pub const PRELOAD: &str = "LD_PRELOAD";
/// Says that the program was started anew, so that this is not tried for ever.
pub const GUARD: &str = "STRATO_MSPTI_PRELOADED";
/// The name by which MSPTI looks for itself in [`PRELOAD`].
const NAME: &str = "libmspti.so";
/// Where CANN lies that nobody says otherwise of (its installation guide: "toolkit", and "cann" since 8.5).
const HOMES: [&str; 2] = ["/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/cann"];

/// What is to be done before a process can be observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preload {
    /// Nothing: the library is there.
    Done(PathBuf),
    /// The program is to be started anew, with this in [`PRELOAD`] and something in [`GUARD`].
    Restart(OsString),
}

/// The file of the library. One that `STRATO_MSPTI` names is the only one; and where another library stands for CANN, that of CANN
/// would record nothing.
///
/// # Errors
/// [`Unavailable::Library`].
pub fn find(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf, Unavailable> {
    let lacks = |why: String| Err(Unavailable::Library { why });
    let given = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(file) = given("STRATO_MSPTI") {
        return match file.file_name().is_some_and(|name| name.to_string_lossy().contains(NAME)) {
            // It is looked up from wherever the program is started anew.
            true => std::path::absolute(&file).or_else(|error| lacks(format!("{}: {error}", file.display()))),
            false => lacks(format!("'{}' is not called {NAME}, as it looks for itself by that name", file.display())),
        };
    }
    if let Some(library) = given("STRATO_ASCEND_LIB") {
        return lacks(format!("'{}' stands for CANN, and STRATO_MSPTI names no MSPTI of it", library.display()));
    }
    let homes = ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"].into_iter().filter_map(given);
    let mut tried = Vec::new();
    for home in homes.chain(HOMES.map(PathBuf::from)) {
        let file = home.join("lib64").join(NAME);
        if file.exists() {
            return Ok(file);
        }
        tried.push(home.display().to_string());
    }
    lacks(format!("no {NAME} in lib64 of {}", tried.join(", ")))
}

/// What is to be done so that `file` is in this process from its begin.
///
/// # Errors
/// [`Unavailable::NotPreloaded`], where the program was started anew and it still is not.
pub fn preload(file: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Preload, Unavailable> {
    let before = variable(PRELOAD).filter(|files| !files.is_empty());
    if before.as_ref().is_some_and(|files| files.to_string_lossy().contains(NAME)) {
        return Ok(Preload::Done(file.to_owned()));
    }
    if variable(GUARD).is_some() {
        return Err(Unavailable::NotPreloaded { file: file.to_owned() });
    }
    let mut files = file.as_os_str().to_owned();
    if let Some(before) = before {
        files.push(":");
        files.push(before);
    }
    Ok(Preload::Restart(files))
}

/// What is left of [`PRELOAD`] for a program that is started from here and is not to be observed: nothing of it is known to MSPTI,
/// and whatever it would do in there takes time. `None` where nothing is left.
pub fn without(files: &OsStr) -> Option<OsString> {
    let text = files.to_string_lossy();
    // The loader takes both between names (ld.so(8)).
    let others: Vec<&str> = text.split([':', ' ']).filter(|file| !file.is_empty() && !file.contains(NAME)).collect();
    (!others.is_empty()).then(|| others.join(":").into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// An environment of these variables.
    fn of<'a>(set: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<OsString> + 'a {
        move |name| set.iter().find(|(own, _)| *own == name).map(|(_, value)| OsString::from(value))
    }

    #[test]
    fn a_named_file_is_the_only_one_and_the_simulators_cann_has_none_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("lib64/libmspti.so");
        let home = root.path().to_str().unwrap();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        assert!(find(&of(&[("ASCEND_HOME_PATH", home)])).unwrap_err().to_string().contains(home));
        std::fs::write(&file, "").unwrap();
        assert_eq!(find(&of(&[("ASCEND_HOME_PATH", home)])), Ok(file));
        let named = [("ASCEND_HOME_PATH", home), ("STRATO_MSPTI", "/x/libmspti.so")];
        assert_eq!(find(&of(&named)), Ok(PathBuf::from("/x/libmspti.so")));
        for (set, said) in [
            (("STRATO_MSPTI", "/x/libother.so"), "not called libmspti.so"),
            (("STRATO_ASCEND_LIB", "/x/libsim_npu.so"), "stands for CANN"),
        ] {
            let why = find(&of(&[("ASCEND_HOME_PATH", home), set])).unwrap_err().to_string();
            assert!(why.contains(said), "{why}");
        }
    }

    #[test]
    fn the_program_is_started_anew_once_and_what_was_preloaded_stays() {
        let file = Path::new("/x/libmspti.so");
        let restart = |files: &str| Ok(Preload::Restart(files.into()));
        assert_eq!(preload(file, &of(&[])), restart("/x/libmspti.so"));
        assert_eq!(preload(file, &of(&[(PRELOAD, "/y/libz.so")])), restart("/x/libmspti.so:/y/libz.so"));
        let done = [(PRELOAD, "/x/libmspti.so"), (GUARD, "1")];
        assert_eq!(preload(file, &of(&done)), Ok(Preload::Done(file.into())));
        let why = preload(file, &of(&[(GUARD, "1")])).unwrap_err();
        assert!(why.to_string().contains("LD_PRELOAD=/x/libmspti.so"));
    }

    #[test]
    fn tools_that_are_started_from_here_are_not_observed() {
        let left = |files: &str| without(OsStr::new(files));
        assert_eq!(left("/x/libmspti.so"), None);
        assert_eq!(left("/x/libmspti.so:/y/libz.so /y/liba.so"), Some("/y/libz.so:/y/liba.so".into()));
        assert_eq!(left("/y/libz.so"), Some("/y/libz.so".into()));
    }
}
