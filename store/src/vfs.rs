//! What SQLite reads a capture file through: a file system (<https://www.sqlite.org/vfs.html>) that has one file, a
//! [`Reader`]. So every page that SQLite sees was held against the seal, nothing beside the file is looked at or made, no
//! lock is taken, and the name of the file may be any.

#![allow(unsafe_code)]

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    mem, ptr,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use libsqlite3_sys as sqlite;

use super::reader::{Outcome, Reader};

/// Name of the file system.
pub(super) const NAME: &str = "strato";
/// The same for SQLite.
const C_NAME: &CStr = c"strato";

/// Readers that SQLite is to open, each under a name that stands for it.
static WAITING: Mutex<Vec<(String, Reader)>> = Mutex::new(Vec::new());

/// Leaves a reader for SQLite to open under the name that is given back; `None` where SQLite takes no file system.
pub(super) fn offer(reader: Reader) -> Option<String> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    if !register() {
        return None;
    }
    let name = format!("capture{}", NEXT.fetch_add(1, Ordering::Relaxed));
    WAITING.lock().unwrap_or_else(PoisonError::into_inner).push((name.clone(), reader));
    Some(name)
}

/// Takes a reader back that SQLite did not come to open.
pub(super) fn take(name: &str) -> Option<Reader> {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    let at = waiting.iter().position(|(known, _)| known == name)?;
    Some(waiting.swap_remove(at).1)
}

/// Makes the file system known to SQLite, once.
fn register() -> bool {
    static DONE: OnceLock<bool> = OnceLock::new();
    *DONE.get_or_init(|| {
        // SAFETY: SQLite may be asked for its default file system at any time, which then lives as long as the program. The
        // copy differs where a file is opened or looked for; it is leaked, so that it lives as long, and registered once.
        unsafe {
            let base = sqlite::sqlite3_vfs_find(ptr::null());
            let Some(known) = base.as_ref() else { return false };
            let size = known.szOsFile.max(mem::size_of::<Open>() as c_int);
            let ours = sqlite::sqlite3_vfs {
                szOsFile: size,
                pNext: ptr::null_mut(),
                zName: C_NAME.as_ptr(),
                pAppData: base.cast(),
                xOpen: Some(open),
                xDelete: Some(delete),
                xAccess: Some(access),
                xFullPathname: Some(full_name),
                ..*known
            };
            sqlite::sqlite3_vfs_register(Box::into_raw(Box::new(ours)), 0) == sqlite::SQLITE_OK
        }
    })
}

/// An open file as SQLite holds it: the first field is that of every `sqlite3_file`.
#[repr(C)]
struct Open {
    methods: *const sqlite::sqlite3_io_methods,
    reader: *mut Reader,
}

static METHODS: sqlite::sqlite3_io_methods = sqlite::sqlite3_io_methods {
    // Neither shared memory (2) nor mapped pages (3).
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(number_is_nothing),
    xFileSize: Some(size),
    xLock: Some(number_is_nothing),
    xUnlock: Some(number_is_nothing),
    xCheckReservedLock: Some(reserved),
    xFileControl: Some(control),
    xSectorSize: Some(sector),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

// SAFETY of all functions below: SQLite calls them as its documentation says: pointers are to what their types name, live
// for the call and are not used elsewhere meanwhile. A `sqlite3_file` that has METHODS is an `Open` that `open` filled, since
// no other function gives it out, and has its reader until `close`.

unsafe extern "C" fn open(
    vfs: *mut sqlite::sqlite3_vfs,
    name: sqlite::sqlite3_filename,
    file: *mut sqlite::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: see above; `pAppData` is the default file system, which `register` put there, and `szOsFile` has room for
    // its files as well as for ours.
    unsafe {
        (*file).pMethods = ptr::null();
        if name.is_null() {
            // A temporary file for a large sort, which has no name and goes when it is closed.
            let base: *mut sqlite::sqlite3_vfs = (*vfs).pAppData.cast();
            return match (*base).xOpen {
                Some(open) => open(base, name, file, flags, out_flags),
                None => sqlite::SQLITE_CANTOPEN,
            };
        }
        let writes = sqlite::SQLITE_OPEN_READWRITE | sqlite::SQLITE_OPEN_CREATE;
        let reader = CStr::from_ptr(name).to_str().ok().filter(|_| flags & writes == 0).and_then(take);
        let Some(reader) = reader else { return sqlite::SQLITE_CANTOPEN };
        file.cast::<Open>().write(Open { methods: &raw const METHODS, reader: Box::into_raw(Box::new(reader)) });
        if !out_flags.is_null() {
            *out_flags = flags;
        }
    }
    sqlite::SQLITE_OK
}

unsafe extern "C" fn close(file: *mut sqlite::sqlite3_file) -> c_int {
    // SAFETY: see above; the box was made by `open` and is not used after this.
    unsafe { drop(Box::from_raw((*file.cast::<Open>()).reader)) };
    sqlite::SQLITE_OK
}

unsafe extern "C" fn read(file: *mut sqlite::sqlite3_file, out: *mut c_void, n: c_int, at: i64) -> c_int {
    let (Ok(n), Ok(at)) = (usize::try_from(n), u64::try_from(at)) else { return sqlite::SQLITE_IOERR_READ };
    // SAFETY: see above; there is room for `n` bytes, which are written before they are looked at: zeros first.
    let outcome = unsafe {
        ptr::write_bytes(out.cast::<u8>(), 0, n);
        (*(*file.cast::<Open>()).reader).read(std::slice::from_raw_parts_mut(out.cast(), n), at)
    };
    match outcome {
        Outcome::Whole => sqlite::SQLITE_OK,
        Outcome::Short => sqlite::SQLITE_IOERR_SHORT_READ,
        Outcome::Altered => sqlite::SQLITE_IOERR_DATA,
        Outcome::Failed => sqlite::SQLITE_IOERR_READ,
    }
}

unsafe extern "C" fn size(file: *mut sqlite::sqlite3_file, out: *mut i64) -> c_int {
    // SAFETY: see above.
    unsafe { *out = i64::try_from((*(*file.cast::<Open>()).reader).length).unwrap_or(i64::MAX) };
    sqlite::SQLITE_OK
}

unsafe extern "C" fn write(_: *mut sqlite::sqlite3_file, _: *const c_void, _: c_int, _: i64) -> c_int {
    sqlite::SQLITE_READONLY
}

unsafe extern "C" fn truncate(_: *mut sqlite::sqlite3_file, _: i64) -> c_int {
    sqlite::SQLITE_READONLY
}

/// Locks and writes to the disk: there is nothing to do.
unsafe extern "C" fn number_is_nothing(_: *mut sqlite::sqlite3_file, _: c_int) -> c_int {
    sqlite::SQLITE_OK
}

unsafe extern "C" fn reserved(_: *mut sqlite::sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: see above.
    unsafe { *out = 0 };
    sqlite::SQLITE_OK
}

unsafe extern "C" fn control(_: *mut sqlite::sqlite3_file, _: c_int, _: *mut c_void) -> c_int {
    sqlite::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector(_: *mut sqlite::sqlite3_file) -> c_int {
    4096
}

/// The file does not change while it is read: SQLite looks for no journal of it, whatever its header says.
unsafe extern "C" fn characteristics(_: *mut sqlite::sqlite3_file) -> c_int {
    sqlite::SQLITE_IOCAP_IMMUTABLE
}

unsafe extern "C" fn delete(_: *mut sqlite::sqlite3_vfs, _: *const c_char, _: c_int) -> c_int {
    sqlite::SQLITE_READONLY
}

/// There is no other file.
unsafe extern "C" fn access(_: *mut sqlite::sqlite3_vfs, _: *const c_char, _: c_int, out: *mut c_int) -> c_int {
    // SAFETY: see above.
    unsafe { *out = 0 };
    sqlite::SQLITE_OK
}

/// Names stand for readers and lie in no directory.
unsafe extern "C" fn full_name(
    _: *mut sqlite::sqlite3_vfs,
    name: *const c_char,
    room: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: see above; `name` ends with a zero, and `out` has room for `room` bytes.
    unsafe {
        let bytes = CStr::from_ptr(name).to_bytes_with_nul();
        if !usize::try_from(room).is_ok_and(|room| bytes.len() <= room) {
            return sqlite::SQLITE_CANTOPEN;
        }
        ptr::copy_nonoverlapping(bytes.as_ptr().cast(), out, bytes.len());
    }
    sqlite::SQLITE_OK
}
