//! Exit codes, which are a contract: 0 done, 1 done with findings, 2 usage or configuration, or an output that cannot be
//! written; 3 an input could not be read, or something of it, though the rest was, or ranks of its job are absent; 4 the tool
//! or device asked for is not there, 5 a gate was asked of two captures that may not be compared, 6 of captures that have
//! nothing to be judged by, or lack too much.

use parsers::ReadError;

/// How a subcommand that ran to its end ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// Done, and there are findings at or above the level asked for.
    Findings,
    /// A gate or a decision was asked of two captures that may not be compared.
    Refused,
    /// A gate was asked of captures that have nothing to be judged by, or lack too much.
    Unjudged,
    /// Done with what could be read; an input, or something of it, is damaged or could not be.
    Partly,
    /// Done, and a command that was run for it ended with this.
    Command(u8),
}

impl Exit {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Findings => 1,
            Self::Partly => 3,
            Self::Refused => 5,
            Self::Unjudged => 6,
            Self::Command(code) => code,
        }
    }
}

/// The command line or the configuration asks for something that cannot be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// The device or tool that was asked for is not on this machine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Missing(pub String);

/// What a tool was to write is not there, or not whole.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unread(pub String);

/// The exit code that belongs to an error. A reader that went away (broken pipe) has had enough: that is success.
pub fn code(error: &anyhow::Error) -> u8 {
    let broken_pipe = |e: &std::io::Error| e.kind() == std::io::ErrorKind::BrokenPipe;
    if error.chain().any(|cause| cause.downcast_ref().is_some_and(broken_pipe)) {
        return 0;
    }
    let known = error.chain().find_map(|cause| {
        if cause.is::<Usage>() {
            return Some(2);
        }
        if cause.is::<Unread>() {
            return Some(3);
        }
        if cause.is::<Missing>() {
            return Some(4);
        }
        if let Some(e) = cause.downcast_ref::<session::Error>() {
            return Some(match e {
                session::Error::Read(e) => of_read(e),
                session::Error::Store(e) => of_store(e),
                session::Error::Memory { .. } => 3,
                _ => 2,
            });
        }
        if let Some(e) = cause.downcast_ref::<ReadError>() {
            return Some(of_read(e));
        }
        if let Some(e) = cause.downcast_ref::<engine::Error>() {
            return Some(match e {
                engine::Error::Request(_) => 2,
                engine::Error::Unavailable { .. } => 4,
                _ => 3,
            });
        }
        cause.downcast_ref().map(of_store)
    });
    known.unwrap_or(2)
}

fn of_read(error: &ReadError) -> u8 {
    if matches!(error, ReadError::MissingTool { .. }) { 4 } else { 3 }
}

fn of_store(error: &store::Error) -> u8 {
    // What cannot be written is no fault of an input: a full disk ends as it does for every other output.
    let asked = matches!(error, store::Error::Query { .. } | store::Error::Occupied { .. }) || error.is_of_writing();
    if asked { 2 } else { 3 }
}

/// What a person is told of an error, with what it was about. Every error of a file names it, so a bare one is that of the standard
/// output.
pub fn message(error: &anyhow::Error) -> String {
    let is_bare = error.chain().len() == 1 && error.is::<std::io::Error>();
    if is_bare {
        return format!("cannot write to the standard output: {error}; send it to a place with room for it");
    }
    // Our own errors have their cause in their text already.
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn an_error_with_context_is_not_told_as_one_of_the_standard_output() {
        let refused = || std::io::Error::new(std::io::ErrorKind::NotFound, "no such directory");
        let told: anyhow::Error = Err::<(), _>(refused()).context("cannot make a temporary directory").unwrap_err();
        assert_eq!(message(&told), "cannot make a temporary directory: no such directory");
        assert!(message(&refused().into()).starts_with("cannot write to the standard output: no such directory"));
        let read = ReadError::Io { path: "x".into(), source: refused() };
        assert_eq!(message(&read.into()).matches("no such directory").count(), 1);
    }

    #[test]
    fn every_kind_of_error_has_its_code() {
        let path = std::path::PathBuf::from("x");
        let io = |kind| std::io::Error::new(kind, "no");
        let missing = ReadError::MissingTool { path: path.clone(), tool: "nsys".into(), command: "nsys export".into() };
        let unknown = ReadError::UnknownFormat { path: path.clone(), known: "kineto".into() };
        let written =
            store::Error::Io { path: path.clone(), doing: "write", source: io(std::io::ErrorKind::BrokenPipe) };
        let cases: Vec<(anyhow::Error, u8)> = vec![
            (Usage("no".into()).into(), 2),
            (Missing("no".into()).into(), 4),
            (Unread("no".into()).into(), 3),
            (engine::Error::Request("no".into()).into(), 2),
            (engine::Error::Unsupported { what: "no".into() }.into(), 3),
            (engine::Error::Unavailable { backend: "opencl", what: "no".into() }.into(), 4),
            (engine::Error::Device { doing: "no".into(), what: "no".into() }.into(), 3),
            (missing.into(), 4),
            (unknown.into(), 3),
            (store::Error::NotACapture { path: path.clone() }.into(), 3),
            (store::Error::Query { message: "m".into(), hint: "h".into() }.into(), 2),
            (store::Error::Occupied { path: path.clone() }.into(), 2),
            (store::Error::Io { path, doing: "write", source: io(std::io::ErrorKind::StorageFull) }.into(), 2),
            (written.into(), 0),
            (io(std::io::ErrorKind::BrokenPipe).into(), 0),
            (io(std::io::ErrorKind::StorageFull).into(), 2),
        ];
        for (error, expected) in cases {
            assert_eq!(code(&error), expected, "{error}");
        }
    }
}
