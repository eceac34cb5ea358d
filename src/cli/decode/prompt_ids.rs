//! Prompts given as token ids: in the command line, or in a text file with one prompt per line.

use std::path::Path;

use parsers::{Place, ReadError};

use crate::cli::exit::Usage;

/// Bytes of a file of prompts: those of the most tokens that a pass reads, several times over.
const MOST: u64 = 4 << 20;

/// The prompts, all of one length.
///
/// # Errors
/// What is neither a list of ids nor a file of such lists, with the word that is no id.
pub(super) fn read(given: &str) -> anyhow::Result<Vec<Vec<u32>>> {
    if given.chars().all(|c| c.is_ascii_digit() || separates(c)) && !Path::new(given).is_file() {
        let ids = ids(given).map_err(|word| Usage(format!("'{word}' is no token id; ids are numbers below 2^32")))?;
        if ids.is_empty() {
            return Err(Usage("a prompt needs at least one token id, such as 1,2,3".to_owned()).into());
        }
        return Ok(vec![ids]);
    }
    let path = Path::new(given);
    let io = |source| ReadError::Io { path: path.to_owned(), source };
    let text = input::text(path, MOST).map_err(io)?;
    let refuse = |expected: String, next: &str| ReadError::Malformed {
        path: path.to_owned(),
        place: Place::File,
        expected,
        next: next.to_owned(),
    };
    let mut prompts: Vec<Vec<u32>> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let ids = ids(line).map_err(|word| {
            refuse(format!("token ids in line {number}, not '{word}'"), "write numbers with commas between them")
        })?;
        if let Some(first) = prompts.first().filter(|first| !ids.is_empty() && first.len() != ids.len()) {
            let (own, other) = (ids.len(), first.len());
            let expected = format!("{other} ids in line {number}, not {own}");
            return Err(refuse(expected, "give prompts of one length").into());
        }
        prompts.extend(Some(ids).filter(|ids| !ids.is_empty()));
    }
    if prompts.is_empty() {
        return Err(refuse("token ids".to_owned(), "write one prompt per line").into());
    }
    Ok(prompts)
}

fn separates(c: char) -> bool {
    c == ',' || c.is_whitespace()
}

/// The ids of a text, or the first word that is none.
fn ids(text: &str) -> Result<Vec<u32>, String> {
    let words = text.split(separates).filter(|word| !word.is_empty());
    words.map(|word| word.parse().map_err(|_| word.chars().take(32).collect())).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn ids_stand_in_the_command_line_or_in_a_file() {
        assert_eq!(read("1,22, 3").unwrap(), [[1, 22, 3]]);
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("prompts.txt");
        std::fs::write(&file, "1, 2\n\n3 4\r\n").unwrap();
        assert_eq!(read(file.to_str().unwrap()).unwrap(), [[1, 2], [3, 4]]);
    }

    #[test]
    fn what_is_no_prompt_is_refused_with_the_word_and_the_line() {
        let directory = tempfile::tempdir().unwrap();
        let refused = |content: &[u8]| {
            let file = directory.path().join("prompts.txt");
            std::fs::write(&file, content).unwrap();
            read(file.to_str().unwrap()).unwrap_err().to_string()
        };
        assert!(refused(b"1,2\n3,x4\n").contains("line 2, not 'x4'"));
        assert!(refused(b"1,2\n3\n").contains("2 ids in line 2, not 1"));
        assert!(refused(b"\n \n").contains("one prompt per line"));
        assert!(refused(&vec![b' '; MOST as usize + 1]).contains("are not read"));
        assert!(!refused(&[0xff, 0xfe]).is_empty());
        assert!(read("1,99999999999").unwrap_err().to_string().contains("99999999999"));
        assert!(read(",").unwrap_err().to_string().contains("at least one"));
        assert!(read("no/such/file").unwrap_err().to_string().contains("no/such/file"));
    }
}
