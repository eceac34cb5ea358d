//! A second name for a library that is open. `cudarc` asks the loader for a library by a name of its own (`libnccl.so`), under
//! which the one that a run means is often not installed (`libnccl.so.2`, or the file that a variable names).
//!
//! The loader knows a library that is open by the name that it gives itself (`DT_SONAME`), and looks nowhere else then; and a
//! call that a library has not is looked for in those that it needs (`DT_NEEDED`). So the second name is that of an empty
//! library that needs the one that is meant. It has no code and lies in memory, not in a file.

#![allow(unsafe_code)]

use std::{
    fs::File,
    io::Write,
    os::fd::{AsRawFd, FromRawFd},
};

use libloading::Library;

/// ELF's number of this processor's instructions (`EM_X86_64`, `EM_AARCH64`).
#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;

/// Bytes of the file's header, of a program header and their number, of an entry of the dynamic section and their number, of a
/// symbol and of the table by which symbols are found, of which there are none.
const HEADER: u64 = 64;
const SEGMENT: u64 = 56;
const SEGMENTS: u64 = 3;
const ENTRY: u64 = 16;
const ENTRIES: u64 = 8;
const SYMBOL: u64 = 24;
const TABLE: u64 = 16;

/// Lets the loader answer `name` with the library that it finds under `target`, until the program ends.
///
/// # Errors
/// What the system refuses.
pub(super) fn give(name: &str, target: &str) -> Result<(), String> {
    // SAFETY: a text that ends with a zero, and a flag that is documented.
    let descriptor = unsafe { libc::memfd_create(c"alias".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error().to_string());
    }
    // SAFETY: just opened, and nobody else has it.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(&image(name, target)).map_err(|error| error.to_string())?;
    // SAFETY: it has no code that could run; what it needs is open already.
    let library = unsafe { Library::new(format!("/proc/self/fd/{}", file.as_raw_fd())) };
    library.map_err(|error| super::library::reason(&error)).map(|library| {
        // The loader tells files by their paths too: the number of this one must not come to another.
        std::mem::forget((file, library));
    })
}

/// The empty library, as the ELF specification (System V ABI) has it: three segments, of which the first holds everything.
fn image(name: &str, target: &str) -> Vec<u8> {
    let dynamic = HEADER + SEGMENTS * SEGMENT;
    let symbols = dynamic + ENTRIES * ENTRY;
    let table = symbols + SYMBOL;
    let texts = table + TABLE;
    let text = format!("\0{name}\0{target}\0");
    let end = texts + text.len() as u64;
    let mut image = Vec::new();
    // Of 64 bits, least byte first, version 1; a shared library, whose headers follow.
    image.extend(*b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    image.extend([3, MACHINE].map(u16::to_le_bytes).as_flattened());
    image.extend(1u32.to_le_bytes());
    image.extend([0, HEADER, 0].map(u64::to_le_bytes).as_flattened());
    image.extend(0u32.to_le_bytes());
    image.extend([HEADER, SEGMENT, SEGMENTS, 64, 0, 0].map(|size| (size as u16).to_le_bytes()).as_flattened());
    // `PT_LOAD`, `PT_DYNAMIC`, and `PT_GNU_STACK`, without which the loader would make stacks executable; all to be read and
    // written, as the loader does in the dynamic section.
    for (kind, from, bytes, alignment) in
        [(1u32, 0, end, 0x1_0000), (2, dynamic, ENTRIES * ENTRY, 8), (0x6474_e551, 0, 0, 16)]
    {
        image.extend([kind, 6].map(u32::to_le_bytes).as_flattened());
        image.extend([from, from, from, bytes, bytes, alignment].map(u64::to_le_bytes).as_flattened());
    }
    // `DT_SONAME`, `DT_NEEDED`, `DT_STRTAB`, `DT_STRSZ`, `DT_SYMTAB`, `DT_SYMENT`, `DT_HASH`, `DT_NULL`.
    let needed = 2 + name.len() as u64;
    let entries: [[u64; 2]; ENTRIES as usize] =
        [[14, 1], [1, needed], [5, texts], [10, text.len() as u64], [6, symbols], [11, SYMBOL], [4, table], [0, 0]];
    image.extend(entries.as_flattened().iter().flat_map(|number| number.to_le_bytes()));
    image.extend([0; SYMBOL as usize]);
    // One bucket and one symbol, which is none.
    image.extend([1, 1, 0, 0].map(u32::to_le_bytes).as_flattened());
    image.extend(text.as_bytes());
    image
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_library_is_found_under_its_second_name_with_its_calls() {
        // SAFETY: nothing of them is called; they do nothing when they are opened.
        let open = |name: &str| unsafe { Library::new(name) };
        // SAFETY: as above.
        let sine =
            |library: &Library| unsafe { library.get::<unsafe extern "C" fn(f64) -> f64>(b"sin").map(|f| *f as usize) };
        assert!(open("libstrato-alias.so").is_err(), "nothing is called so");
        let known = open("libm.so.6").unwrap();
        give("libstrato-alias.so", "libm.so.6").unwrap();
        assert_eq!(sine(&open("libstrato-alias.so").unwrap()).unwrap(), sine(&known).unwrap());
        // Another one is another one.
        give("libstrato-other.so", "libdl.so.2").unwrap();
        assert!(sine(&open("libstrato-alias.so").unwrap()).is_ok() && open("libstrato-other.so").is_ok());
        let refused = give("libstrato-third.so", "/nonexistent/libcuda.so").unwrap_err();
        assert!(refused.contains("/nonexistent/libcuda.so"), "{refused}");
    }
}
