//! What is seen, as files: the text of the screen, the rows of a table as CSV, the timeline as SVG. Files are written into the
//! working directory and never over another one.

pub mod picture;
pub mod screen;

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Files of one name that are tried.
const MOST: u32 = 1000;

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// What it shows, as the beginning of its name.
    pub name: String,
    /// Extension.
    pub extension: &'static str,
    /// Content.
    pub text: String,
}

/// Rows of a screen as a text.
pub fn text(rows: &[String]) -> String {
    let mut out = rows.join("\n");
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Rows as CSV (RFC 4180), the first with the names of the columns.
pub fn csv(rows: impl Iterator<Item = Vec<String>>) -> String {
    let cell = |cell: &String| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.clone(),
    };
    rows.map(|row| row.iter().map(cell).collect::<Vec<_>>().join(",") + "\r\n").collect()
}

/// Writes a file into `directory` under a name that is free: `strato-NAME.EXTENSION`, or with a number.
///
/// # Errors
/// When none can be written.
pub fn save(export: &Export, directory: &Path) -> io::Result<PathBuf> {
    for number in 0..MOST {
        let number = if number == 0 { String::new() } else { format!("-{number}") };
        let path = directory.join(format!("strato-{}{number}.{}", export.name, export.extension));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => return file.write_all(export.text.as_bytes()).map(|()| path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("there are {MOST} such files already")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn no_file_is_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let export = |text: &str| Export { name: "steps".into(), extension: "csv", text: text.into() };
        let first = save(&export("a"), directory.path()).unwrap();
        let second = save(&export("b"), directory.path()).unwrap();
        assert_eq!(first.file_name().unwrap(), "strato-steps.csv");
        assert_eq!(second.file_name().unwrap(), "strato-steps-1.csv");
        assert_eq!(std::fs::read_to_string(first).unwrap(), "a");
        assert!(save(&export("c"), &directory.path().join("none")).is_err());
    }

    #[test]
    fn what_has_a_meaning_in_a_form_is_quoted_in_it() {
        let rows = [vec!["a,b".to_owned(), "say \"x\"".into()], vec!["1".into(), "2\n3".into()]];
        assert_eq!(csv(rows.into_iter()), "\"a,b\",\"say \"\"x\"\"\"\r\n1,\"2\n3\"\r\n");
    }
}
