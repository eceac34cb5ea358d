//! Checkpoints of Hugging Face: one `model.safetensors`, or several with an index.

use std::{
    collections::HashMap,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use half::{bf16, f16};
use safetensors::{Dtype as Stored, tensor::Metadata};

use super::Source;
use crate::Error;

/// Longest header that is read; the format itself allows 100 MB.
const MAX_HEADER: u64 = 100_000_000;

/// Where a tensor lies in a file.
#[derive(Clone, Debug)]
struct Place {
    file: usize,
    dtype: Stored,
    shape: Vec<usize>,
    /// Offset in the file, bytes.
    start: u64,
    /// Length, bytes.
    len: u64,
    /// Whether somebody has asked for it.
    used: bool,
}

/// An open checkpoint.
#[derive(Debug)]
pub struct Checkpoint {
    files: Vec<(PathBuf, File)>,
    tensors: HashMap<String, Place>,
}

impl Checkpoint {
    /// Opens the checkpoint in a directory.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Damaged`], which name the file.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let index = directory.join("model.safetensors.index.json");
        let names = if index.is_file() { shards(&index)? } else { vec!["model.safetensors".to_owned()] };
        let mut checkpoint = Self { files: Vec::new(), tensors: HashMap::new() };
        for name in names {
            checkpoint.add(directory.join(name))?;
        }
        Ok(checkpoint)
    }

    fn add(&mut self, path: PathBuf) -> Result<(), Error> {
        let io = |source| Error::Io { path: path.clone(), source };
        let damaged = |what: String| Error::Damaged { path: path.clone(), what };
        let mut file = input::open(&path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(|_| damaged("it is shorter than a header".to_owned()))?;
        let header = u64::from_le_bytes(length);
        if header > MAX_HEADER || header.saturating_add(8) > size {
            return Err(damaged(format!("its header claims {header} of {size} bytes")));
        }
        let mut bytes = Vec::new();
        (&mut file).take(header).read_to_end(&mut bytes).map_err(io)?;
        let metadata: Metadata = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        for (name, info) in metadata.tensors() {
            let (start, end) = info.data_offsets;
            let (start, len) = (8 + header + start as u64, end.saturating_sub(start) as u64);
            if start.saturating_add(len) > size {
                return Err(damaged(format!("tensor '{name}' ends after the file does")));
            }
            let shape = info.shape.clone();
            self.tensors
                .insert(name, Place { file: self.files.len(), dtype: info.dtype, shape, start, len, used: false });
        }
        self.files.push((path, file));
        Ok(())
    }
}

/// The files that an index names, each once.
fn shards(index: &Path) -> Result<Vec<String>, Error> {
    let damaged = |what: String| Error::Damaged { path: index.to_owned(), what };
    let text = input::bytes(index, input::DOCUMENT).map_err(|source| Error::Io { path: index.to_owned(), source })?;
    let json: serde_json::Value = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    let map = json.get("weight_map").and_then(|map| map.as_object());
    let map = map.ok_or_else(|| damaged("it has no weight_map".to_owned()))?;
    let mut names: Vec<String> = map.values().filter_map(|name| name.as_str()).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    // A name is a file beside the index, and nothing else.
    match names.iter().find(|name| Path::new(name).file_name().is_none_or(|file| file != name.as_str())) {
        Some(name) => Err(damaged(format!("it names '{name}', which is not a file beside it"))),
        None => Ok(names),
    }
}

/// Bytes of an element, of the types that weights have.
fn element_size(dtype: Stored) -> Option<usize> {
    match dtype {
        Stored::F32 => Some(4),
        Stored::F16 | Stored::BF16 => Some(2),
        _ => None,
    }
}

impl Source for Checkpoint {
    fn rows(
        &mut self,
        name: &str,
        rows: usize,
        width: usize,
        each: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<(), Error> {
        let wrong = |what: String| Error::Tensor { name: name.to_owned(), what };
        let place = self.tensors.get_mut(name).ok_or_else(|| wrong("is not in the checkpoint".to_owned()))?;
        place.used = true;
        let fits = match *place.shape.as_slice() {
            [length] => rows == 1 && length == width,
            [height, length] => height == rows && length == width,
            _ => false,
        };
        if !fits {
            return Err(wrong(format!("has the shape {:?}, not {rows} × {width}", place.shape)));
        }
        let size = element_size(place.dtype).ok_or_else(|| wrong(format!("is of type {:?}", place.dtype)))?;
        if place.len != (rows * width * size) as u64 {
            return Err(wrong(format!("has {} bytes for {rows} × {width} elements", place.len)));
        }
        let Some((path, file)) = self.files.get_mut(place.file) else {
            return Err(wrong("is in no open file".to_owned()));
        };
        let io = |source| Error::Io { path: path.clone(), source };
        file.seek(SeekFrom::Start(place.start)).map_err(io)?;
        let mut bytes = vec![0; width * size];
        let mut values = vec![0.0; width];
        let mut reader = std::io::BufReader::with_capacity(1 << 20, file.take(place.len));
        for row in 0..rows {
            reader.read_exact(&mut bytes).map_err(io)?;
            decode(place.dtype, &bytes, &mut values);
            each(row, &values);
        }
        Ok(())
    }

    fn unused(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.tensors.iter().filter(|(_, place)| !place.used).map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    }
}

fn decode(dtype: Stored, bytes: &[u8], values: &mut [f32]) {
    match dtype {
        Stored::F32 => {
            let (words, _) = bytes.as_chunks::<4>();
            values.iter_mut().zip(words).for_each(|(value, word)| *value = f32::from_le_bytes(*word));
        }
        _ => {
            let (words, _) = bytes.as_chunks::<2>();
            let half = |word: [u8; 2]| match dtype {
                Stored::F16 => f16::from_le_bytes(word).to_f32(),
                _ => bf16::from_le_bytes(word).to_f32(),
            };
            values.iter_mut().zip(words).for_each(|(value, word)| *value = half(*word));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(data);
        bytes
    }

    fn read(directory: &Path, name: &str, rows: usize, width: usize) -> Result<Vec<f32>, Error> {
        let mut all = Vec::new();
        Checkpoint::open(directory)?.rows(name, rows, width, &mut |_, row| all.extend_from_slice(row))?;
        Ok(all)
    }

    #[test]
    fn tensors_of_every_type_and_several_files_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes).unwrap();
        let header = r#"{"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}}"#;
        write("1.safetensors", &file(header, &[0, 0, 128, 63, 0, 0, 0, 64]));
        let header = r#"{"b":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"c":{"dtype":"F16","shape":[1],"data_offsets":[4,6]}}"#;
        write("2.safetensors", &file(header, &[128, 63, 0, 192, 0, 60]));
        let index = r#"{"weight_map": {"a": "1.safetensors", "b": "2.safetensors", "c": "2.safetensors"}}"#;
        write("model.safetensors.index.json", index.as_bytes());
        assert_eq!(read(directory.path(), "a", 2, 1).unwrap(), [1.0, 2.0]);
        assert_eq!(read(directory.path(), "b", 1, 2).unwrap(), [1.0, -2.0]);
        assert_eq!(read(directory.path(), "c", 1, 1).unwrap(), [1.0]);
        let error = |name, rows, width| read(directory.path(), name, rows, width).unwrap_err().to_string();
        assert!(error("a", 1, 2).contains("[2, 1], not 1 × 2"));
        assert!(error("d", 1, 2).contains("'d': is not in the checkpoint"));
        write("model.safetensors.index.json", br#"{"weight_map": {"a": "../1.safetensors"}}"#);
        assert!(error("a", 2, 1).contains("not a file beside it"));
    }

    #[test]
    fn a_damaged_file_is_named_with_what_is_wrong() {
        let header = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
        let whole = file(header, &[0; 8]);
        for (bytes, words) in [
            (Vec::new(), "shorter than a header"),
            (u64::MAX.to_le_bytes().to_vec(), "header claims"),
            (whole[..whole.len() - 1].to_vec(), "ends after the file"),
            (file("{]", &[]), "model.safetensors"),
            (file(r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}"#, &[0; 4]), "model.safetensors"),
        ] {
            let directory = tempfile::tempdir().unwrap();
            std::fs::write(directory.path().join("model.safetensors"), bytes).unwrap();
            let error = read(directory.path(), "a", 1, 2).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("model.safetensors"), "{error}");
        }
        let empty = tempfile::tempdir().unwrap();
        assert!(read(empty.path(), "a", 1, 2).unwrap_err().to_string().contains("cannot read"));
    }
}
