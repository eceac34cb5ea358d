//! The simulated MSPTI is as strict as its headers: what is called in a wrong order or with what cannot be is refused with their
//! codes, and records hold what was done. One test, because there is one subscriber of a process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unsafe_code)]

use std::{
    ffi::{CStr, c_char, c_void},
    ptr::null_mut,
    sync::Mutex,
};

use libloading::Library;

type Handle = *mut c_void;
type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = unsafe extern "C" fn(*mut u8, usize, usize);

const INVALID: u32 = 1;

/// Bytes of every record that came back, the buffers one after the other.
static CAME: Mutex<Vec<u8>> = Mutex::new(Vec::new());

unsafe extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    let lent = Box::leak(vec![0u64; 1 << 10].into_boxed_slice());
    unsafe { (*buffer, *size, *most) = (lent.as_mut_ptr().cast(), size_of_val(lent), 0) };
}

unsafe extern "C" fn complete(buffer: *mut u8, size: usize, valid: usize) {
    assert!(valid <= size);
    let came = unsafe { std::slice::from_raw_parts(buffer, valid) };
    CAME.lock().unwrap().extend_from_slice(came);
}

/// A call by its name, with arguments of these types.
macro_rules! call {
    ($library:ident.$name:ident($($argument:expr => $type:ty),*) -> $gives:ty) => {
        unsafe {
            let call = $library.get::<unsafe extern "C" fn($($type),*) -> $gives>(stringify!($name)).unwrap();
            call($($argument),*)
        }
    };
}

fn library() -> Library {
    let directory = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let name = format!("{}sim_npu{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let path = [directory.join(&name), directory.parent().unwrap().join(&name)].into_iter().find(|path| path.is_file());
    unsafe { Library::new(path.unwrap()) }.unwrap()
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn calls_out_of_order_are_refused_and_records_say_what_was_done() {
    let npu = library();
    let subscribe = |out: *mut Handle| call!(npu.msptiSubscribe(out => *mut Handle, null_mut() => Handle, null_mut() => Handle) -> u32);
    let enable = |kind: u32| call!(npu.msptiActivityEnable(kind => u32) -> u32);
    let push = |kind: u32, id: u64| call!(npu.msptiActivityPushExternalCorrelationId(kind => u32, id => u64) -> u32);
    let pop = |last: *mut u64| call!(npu.msptiActivityPopExternalCorrelationId(2 => u32, last => *mut u64) -> u32);
    let flush = || call!(npu.msptiActivityFlushAll(0 => u32) -> u32);
    let (mut own, mut other, mut last) = (null_mut(), null_mut(), 0);
    assert_eq!(subscribe(&raw mut own), 6, "not preloaded");
    // SAFETY: no other thread of this test reads the environment.
    unsafe { std::env::set_var("LD_PRELOAD", "/x/libmspti.so") };
    assert_eq!(subscribe(null_mut()), INVALID);
    assert_eq!((enable(2), flush()), (INVALID, INVALID), "before anybody has subscribed");
    assert_eq!((subscribe(&raw mut own), subscribe(&raw mut other)), (0, 2), "there is one place");
    let register = |request: Option<Request>| call!(npu.msptiActivityRegisterCallbacks(request => Option<Request>, Some(complete as Complete) => Option<Complete>) -> u32);
    assert_eq!(enable(2), INVALID, "nobody gets the records");
    assert_eq!((register(None), register(Some(request))), (INVALID, 0));
    assert_eq!((enable(0), enable(14), enable(2), enable(3), enable(5), enable(8)), (INVALID, INVALID, 0, 0, 0, 0));
    assert_eq!((push(0, 1), push(5, 1), pop(&raw mut last), pop(null_mut())), (INVALID, INVALID, 5, INVALID));

    // Memory, and an operator under two ids of which the inner one counts.
    assert_eq!(call!(npu.aclInit(null_mut() => *mut c_char) -> i32), 0);
    assert_eq!(call!(npu.aclrtSetDevice(0 => i32) -> i32), 0);
    let mut at = null_mut();
    assert_eq!(call!(npu.aclrtMalloc(&raw mut at => *mut Handle, 64 => usize, 0 => i32) -> i32), 0);
    let mut stream = null_mut();
    assert_eq!(call!(npu.aclrtCreateStreamWithConfig(&raw mut stream => *mut Handle, 0 => u32, 3 => u32) -> i32), 0);
    let (dims, strides) = ([4i64], [1i64]);
    let tensor = call!(npu.aclCreateTensor(dims.as_ptr() => *const i64, 1 => u64, 0 => i32, strides.as_ptr() => *const i64, 0 => i64, 2 => i32, dims.as_ptr() => *const i64, 1 => u64, at => Handle) -> Handle);
    let (mut size, mut executor) = (0u64, null_mut());
    assert_eq!(
        call!(npu.aclnnInplaceRsqrtGetWorkspaceSize(tensor => Handle, &raw mut size => *mut u64, &raw mut executor => *mut Handle) -> i32),
        0
    );
    assert_eq!((push(2, 7), push(2, 8)), (0, 0));
    assert_eq!(
        call!(npu.aclnnInplaceRsqrt(null_mut() => Handle, 0 => u64, executor => Handle, stream => Handle) -> i32),
        0
    );
    assert_eq!((pop(&raw mut last), last, pop(&raw mut last), last, pop(&raw mut last)), (0, 8, 0, 7, 5));
    assert_eq!(call!(npu.aclrtSynchronizeStream(stream => Handle) -> i32), 0);
    assert_eq!(flush(), 0);

    let mut came = std::mem::take(&mut *CAME.lock().unwrap());
    let (mut record, mut found) = (null_mut::<u8>(), Vec::new());
    let begin = came.as_mut_ptr();
    let mut at_record = Vec::new();
    loop {
        let place = &raw mut record;
        let status =
            call!(npu.msptiActivityGetNextRecord(begin => *mut u8, came.len() => usize, place => *mut *mut u8) -> u32);
        if status != 0 {
            break assert_eq!(status, 3, "no more");
        }
        at_record.push(record.addr() - begin.addr());
    }
    for (at, end) in at_record.iter().zip(at_record.iter().skip(1).chain([&came.len()])) {
        let bytes = &came[*at..*end];
        found.push((u32::from_ne_bytes(bytes[..4].try_into().unwrap()), bytes.to_vec()));
    }
    let of = |kind: u32| found.iter().filter(|(own, _)| *own == kind).map(|(_, bytes)| bytes).collect::<Vec<_>>();
    let name = |at: u64| unsafe { CStr::from_ptr(std::ptr::with_exposed_provenance(at as usize)) }.to_str().unwrap();
    let (kernels, ids) = (of(2), of(8));
    assert_eq!((kernels.len(), kernels[0].len(), name(number(kernels[0], 44))), (1, 56, "aclnnInplaceRsqrt"));
    assert!(number(kernels[0], 4) <= number(kernels[0], 12));
    assert_eq!((ids.len(), number(ids[0], 8)), (1, 8), "of the ids the inner one");
    assert_eq!(number(ids[0], 16), number(kernels[0], 28), "what ties a task to its call");
    let calls: Vec<&str> = of(3).iter().map(|call| name(number(call, 36))).collect();
    assert_eq!(calls, ["aclnnInplaceRsqrt", "aclrtSynchronizeStream"]);
    assert_eq!(of(5).iter().map(|memory| number(memory, 44)).collect::<Vec<_>>(), [64]);

    let unsubscribe = |handle: Handle| call!(npu.msptiUnsubscribe(handle => Handle) -> u32);
    assert_eq!((unsubscribe(null_mut()), unsubscribe(own), unsubscribe(own)), (INVALID, 0, INVALID));
}
