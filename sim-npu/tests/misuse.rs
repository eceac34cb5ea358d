//! What is wrong is refused: the calls made directly, as any programme makes them, with the code that their documentation
//! gives the mistake, and a text that names it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unsafe_code)]

use std::{
    ffi::{CStr, c_char, c_void},
    ptr::null_mut,
    sync::LazyLock,
};

use libloading::Library;

type Handle = *mut c_void;

/// The simulator, which Cargo builds beside the tests.
static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    let directory = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let name = format!("{}sim_npu{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let path = [directory.join(&name), directory.parent().unwrap().join(&name)].into_iter().find(|path| path.is_file());
    unsafe { Library::new(path.unwrap()) }.unwrap()
});

/// A call by its name, with arguments of these types.
macro_rules! call {
    ($name:ident($($argument:expr => $type:ty),*)) => {
        unsafe {
            let call = LIBRARY.get::<unsafe extern "C" fn($($type),*) -> i32>(stringify!($name)).unwrap();
            call($($argument),*)
        }
    };
}

/// The text of the last mistake of this thread.
fn recent() -> String {
    unsafe {
        let call = LIBRARY.get::<unsafe extern "C" fn() -> *const c_char>("aclGetRecentErrMsg").unwrap();
        let text = call();
        if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
    }
}

/// A device and a stream of this thread's own.
fn stream() -> Handle {
    let status = call!(aclInit(null_mut() => *mut c_char));
    assert!(status == 0 || status == 100_002, "{status}");
    assert_eq!(call!(aclrtSetDevice(0 => i32)), 0);
    let mut stream = null_mut();
    assert_eq!(call!(aclrtCreateStreamWithConfig(&raw mut stream => *mut Handle, 0 => u32, 3 => u32)), 0);
    stream
}

fn memory(bytes: usize) -> Handle {
    let mut at = null_mut();
    assert_eq!(call!(aclrtMalloc(&raw mut at => *mut Handle, bytes => usize, 0 => i32)), 0);
    at
}

const F32: i32 = 0;
const F16: i32 = 1;
const I32: i32 = 3;
const I64: i32 = 9;

fn raw_tensor(at: Handle, dtype: i32, dims: &[i64], strides: &[i64], storage: i64) -> Handle {
    formatted(at, dtype, dims, strides, (2, &[storage]))
}

/// A tensor in a format, in a block of these dimensions.
fn formatted(at: Handle, dtype: i32, dims: &[i64], strides: &[i64], (format, block): (i32, &[i64])) -> Handle {
    unsafe {
        type Create =
            unsafe extern "C" fn(*const i64, u64, i32, *const i64, i64, i32, *const i64, u64, Handle) -> Handle;
        let create = LIBRARY.get::<Create>("aclCreateTensor").unwrap();
        let (count, blocks) = (dims.len() as u64, block.len() as u64);
        create(dims.as_ptr(), count, dtype, strides.as_ptr(), 0, format, block.as_ptr(), blocks, at)
    }
}

fn tensor(at: Handle, dtype: i32, dims: &[i64]) -> Handle {
    let strides: Vec<i64> = (0..dims.len()).map(|i| dims[i + 1..].iter().product()).collect();
    let made = raw_tensor(at, dtype, dims, &strides, dims.iter().product());
    assert!(!made.is_null(), "{}", recent());
    made
}

/// First phase of a product; its status, workspace and executor.
fn product(x: Handle, weight: Handle, out: Handle) -> (i32, u64, Handle) {
    let (mut size, mut executor) = (0u64, null_mut());
    let status = call!(aclnnMatmulGetWorkspaceSize(
        x => Handle, weight => Handle, out => Handle, 0 => i8, &raw mut size => *mut u64, &raw mut executor => *mut Handle
    ));
    (status, size, executor)
}

fn launch(workspace: Handle, size: u64, executor: Handle, stream: Handle) -> i32 {
    call!(aclnnMatmul(workspace => Handle, size => u64, executor => Handle, stream => Handle))
}

fn synchronize(stream: Handle) -> i32 {
    call!(aclrtSynchronizeStream(stream => Handle))
}

/// Operands of a product of (2, 3) and (3, 4), their memory, and workspace.
fn operands() -> ([Handle; 3], [Handle; 3], Handle) {
    let own = [memory(6 * 4), memory(12 * 4), memory(8 * 4)];
    let tensors = [tensor(own[0], F32, &[2, 3]), tensor(own[1], F32, &[3, 4]), tensor(own[2], F32, &[2, 4])];
    (tensors, own, memory(1 << 16))
}

fn event(flags: u32) -> Handle {
    let mut event = null_mut();
    assert_eq!(call!(aclrtCreateEventExWithFlag(&raw mut event => *mut Handle, flags => u32)), 0);
    event
}

#[path = "misuse/attention.rs"]
mod attention;
#[path = "misuse/cache.rs"]
mod cache;
#[path = "misuse/squares.rs"]
mod squares;

#[test]
fn order_dimensions_types_and_strides_of_arguments_are_looked_at() {
    stream();
    let ([x, weight, out], own, _) = operands();
    assert_eq!(product(x, weight, out).0, 0);
    for (given, words) in [([weight, x, out], "(3, 4) · (2, 3)"), ([x, weight, x], "'out' has dimensions [2, 3]")] {
        assert_eq!(product(given[0], given[1], given[2]).0, 161_002, "{words}");
        assert!(recent().contains("simulated") && recent().contains(words), "{}", recent());
    }
    assert_eq!(product(x, null_mut(), out).0, 161_001);
    let half = tensor(own[1], F16, &[3, 4]);
    assert_eq!(product(x, half, out).0, 161_002);
    assert!(recent().contains("F16"), "{}", recent());
    // Beyond its storage a tensor is not made, beyond its memory not taken.
    assert!(raw_tensor(own[1], F32, &[3, 4], &[8, 1], 12).is_null());
    let beyond = raw_tensor(own[1], F32, &[3, 4], &[8, 1], 20);
    assert_eq!(product(x, beyond, out).0, 161_002);
    assert!(recent().contains("no memory of the device"), "{}", recent());
    assert!(raw_tensor(own[1], 99, &[3, 4], &[4, 1], 12).is_null() && recent().contains("99"));
}

#[test]
fn an_executor_is_used_once_with_its_own_operator_and_enough_workspace() {
    let stream = stream();
    let ([x, weight, out], _, workspace) = operands();
    let (_, size, executor) = product(x, weight, out);
    assert!(size > 0);
    assert_eq!(launch(workspace, size - 1, executor, stream), 161_002);
    assert!(recent().contains("workspace"), "{}", recent());
    assert_eq!(launch(null_mut(), size, executor, stream), 161_002);
    assert_eq!(call!(aclnnMul(workspace => Handle, size => u64, executor => Handle, stream => Handle)), 161_002);
    assert_eq!(launch(workspace, size, executor, stream), 0);
    assert_eq!(launch(workspace, size, executor, stream), 161_002);
    assert!(recent().contains("prepare it anew"), "{}", recent());
    let (_, size, executor) = product(x, weight, out);
    assert_eq!(call!(aclDestroyAclOpExecutor(executor => Handle)), 0);
    assert_eq!(launch(workspace, size, executor, stream), 161_002);
    assert_eq!(synchronize(stream), 0);
}

#[test]
fn what_was_destroyed_or_freed_is_not_used() {
    let own = stream();
    let ([x, weight, out], memories, workspace) = operands();
    let (_, size, executor) = product(x, weight, out);
    assert_eq!(call!(aclDestroyTensor(weight => Handle)), 0);
    assert_eq!(launch(workspace, size, executor, own), 161_002);
    assert!(recent().contains("destroyed before the launch"), "{}", recent());
    assert_eq!(product(x, weight, out).0, 161_002);
    assert_eq!(call!(aclDestroyTensor(weight => Handle)), 161_002);
    // Memory that goes while work waits for it faults the stream, as on a device.
    let weight = tensor(memories[1], F32, &[3, 4]);
    let (_, size, executor) = product(x, weight, out);
    let gate = event(0x20);
    assert_eq!(call!(aclrtStreamWaitEvent(own => Handle, gate => Handle)), 0);
    assert_eq!(launch(workspace, size, executor, own), 0);
    assert_eq!(call!(aclrtFree(memories[1] => Handle)), 0);
    let other = stream();
    assert_eq!(call!(aclrtRecordEvent(gate => Handle, other => Handle)), 0);
    assert_eq!(synchronize(own), 507_015);
    assert!(recent().contains("freed"), "{}", recent());
    assert_eq!(product(x, weight, out).0, 161_002);
    assert_eq!(call!(aclrtFree(memories[1] => Handle)), 100_000);
    assert_eq!(call!(aclrtDestroyStream(other => Handle)), 0);
    assert_eq!(synchronize(other), 107_017);
    let gone = event(8);
    assert_eq!(call!(aclrtDestroyEvent(gone => Handle)), 0);
    assert_eq!(call!(aclrtDestroyEvent(gone => Handle)), 107_017);
}

#[test]
fn streams_and_memory_are_of_their_device() {
    let own = stream();
    let ([x, weight, out], memories, workspace) = operands();
    assert_eq!(call!(aclrtSetDevice(1 => i32)), 0);
    assert_eq!(synchronize(own), 107_003);
    assert_eq!(product(x, weight, out).0, 161_002);
    assert!(recent().contains("device"), "{}", recent());
    let bytes = [0u8; 8];
    let copy = call!(aclrtMemcpy(memories[0] => Handle, 8 => usize, bytes.as_ptr().cast() => *const c_void, 8 => usize, 1 => i32));
    assert_eq!(copy, 100_000);
    assert_eq!(call!(aclrtSetDevice(0 => i32)), 0);
    let (_, size, executor) = product(x, weight, out);
    assert_eq!(launch(workspace, size, executor, own), 0);
    assert_eq!(synchronize(own), 0);
    assert_eq!(call!(aclrtSetDevice(77 => i32)), 107_001);
    let status = std::thread::spawn(|| {
        let mut at = null_mut();
        call!(aclrtMalloc(&raw mut at => *mut Handle, 8 => usize, 0 => i32))
    });
    assert_eq!(status.join().unwrap(), 107_002, "a thread without a context");
}

#[test]
fn a_capture_is_spoilt_by_what_may_not_be_done_meanwhile() {
    let own = stream();
    let ([x, weight, out], memories, workspace) = operands();
    let begin = || assert_eq!(call!(aclmdlRICaptureBegin(own => Handle, 1 => i32)), 0);
    let end = || {
        let mut graph: Handle = null_mut();
        (call!(aclmdlRICaptureEnd(own => Handle, &raw mut graph => *mut Handle)), graph)
    };
    let bytes = [0u8; 8];
    let sync_copy = || call!(aclrtMemcpy(memories[0] => Handle, 8 => usize, bytes.as_ptr().cast() => *const c_void, 8 => usize, 1 => i32));
    let on_default = || {
        let (_, size, executor) = product(x, weight, out);
        launch(workspace, size, executor, null_mut())
    };
    let wrong: [(&str, i32, &dyn Fn() -> i32); 4] = [
        ("wait", 107_027, &|| synchronize(own)),
        ("copy", 107_030, &sync_copy),
        ("set", 107_030, &|| call!(aclrtMemset(memories[0] => Handle, 8 => usize, 0 => i32, 8 => usize))),
        ("default stream", 107_031, &on_default),
    ];
    for (what, code, wrong) in wrong {
        begin();
        assert_eq!(wrong(), code, "{what}: {}", recent());
        assert!(recent().contains("captured"), "{}", recent());
        assert_eq!(end().0, 507_903, "{what}");
    }
    // Memory that is not pinned, and an event from outside, are refused; the capture itself may go on.
    begin();
    let copy = call!(aclrtMemcpyAsync(
        memories[0] => Handle, 8 => usize, bytes.as_ptr().cast() => *const c_void, 8 => usize, 1 => i32, own => Handle
    ));
    assert_eq!(copy, 107_030);
    assert_eq!(call!(aclrtStreamWaitEvent(own => Handle, event(8) => Handle)), 107_024);
    let (_, size, executor) = product(x, weight, out);
    assert_eq!(launch(workspace, size, executor, own), 0);
    let (status, graph) = end();
    assert_eq!(status, 0, "{}", recent());
    assert_eq!(end().0, 107_029);
    assert_eq!(call!(aclmdlRICaptureBegin(null_mut() => Handle, 1 => i32)), 107_031);
    // A captured product computes nothing until it is replayed.
    let ones = [1f32; 12];
    for (at, count) in [(memories[0], 6), (memories[1], 12)] {
        let from = ones.as_ptr().cast();
        assert_eq!(
            call!(aclrtMemcpy(at => Handle, count * 4 => usize, from => *const c_void, count * 4 => usize, 1 => i32)),
            0
        );
    }
    let sums = || {
        let mut sums = [0f32; 8];
        let to = sums.as_mut_ptr().cast();
        assert_eq!(
            call!(aclrtMemcpy(to => Handle, 32 => usize, memories[2] => *const c_void, 32 => usize, 2 => i32)),
            0
        );
        sums
    };
    assert!(sums().iter().all(|sum| sum.is_nan()), "fresh memory is no number");
    assert_eq!(call!(aclmdlRIExecuteAsync(graph => Handle, own => Handle)), 0);
    assert_eq!(synchronize(own), 0);
    assert_eq!(sums(), [3.0; 8]);
    assert_eq!(call!(aclmdlRIDestroy(graph => Handle)), 0);
    assert_eq!(call!(aclmdlRIExecuteAsync(graph => Handle, own => Handle)), 107_017);
}

#[test]
fn only_tasks_that_take_lengths_of_the_host_are_updated() {
    let own = stream();
    let ([x, weight, out], _, workspace) = operands();
    assert_eq!(call!(aclmdlRICaptureTaskGrpBegin(own => Handle)), 107_029);
    assert_eq!(call!(aclmdlRICaptureBegin(own => Handle, 1 => i32)), 0);
    assert_eq!(call!(aclmdlRICaptureTaskGrpBegin(own => Handle)), 0);
    assert_eq!(call!(aclmdlRICaptureTaskGrpBegin(own => Handle)), 107_033);
    let (_, size, executor) = product(x, weight, out);
    assert_eq!(launch(workspace, size, executor, own), 0);
    let (mut group, mut graph) = (null_mut(), null_mut());
    assert_eq!(call!(aclmdlRICaptureTaskGrpEnd(own => Handle, &raw mut group => *mut Handle)), 0);
    assert_eq!(call!(aclmdlRICaptureEnd(own => Handle, &raw mut graph => *mut Handle)), 0);
    let other = stream();
    assert_eq!(call!(aclmdlRICaptureTaskUpdateEnd(other => Handle)), 107_033);
    assert_eq!(call!(aclmdlRICaptureTaskUpdateBegin(other => Handle, group => Handle)), 0);
    let (_, size, executor) = product(x, weight, out);
    assert_eq!(launch(workspace, size, executor, other), 207_019);
    assert!(recent().contains("cannot be updated"), "{}", recent());
    assert_eq!(call!(aclmdlRICaptureTaskUpdateEnd(other => Handle)), 107_033);
}

#[test]
fn an_index_beyond_its_table_faults_the_stream_and_events_without_a_time_have_none() {
    let own = stream();
    let (table, index, out) = (memory(4 * 4), memory(4), memory(8));
    let wrong = 9i32.to_ne_bytes();
    assert_eq!(
        call!(aclrtMemcpy(index => Handle, 4 => usize, wrong.as_ptr().cast() => *const c_void, 4 => usize, 1 => i32)),
        0
    );
    let (mut size, mut executor) = (0u64, null_mut());
    let given = [tensor(table, F32, &[2, 2]), tensor(index, I32, &[1]), tensor(out, F32, &[1, 2])];
    let status = call!(aclnnEmbeddingGetWorkspaceSize(
        given[0] => Handle, given[1] => Handle, given[2] => Handle, &raw mut size => *mut u64, &raw mut executor => *mut Handle
    ));
    assert_eq!(status, 0, "{}", recent());
    let marks = [event(8), event(8), event(1)];
    assert_eq!(call!(aclrtRecordEvent(marks[0] => Handle, own => Handle)), 0);
    assert_eq!(synchronize(own), 0);
    let elapsed = |from: Handle, to: Handle| {
        let mut ms = 0f32;
        (call!(aclrtEventElapsedTime(&raw mut ms => *mut f32, from => Handle, to => Handle)), ms)
    };
    assert_eq!(elapsed(marks[0], marks[0]), (0, 0.0));
    assert_eq!(elapsed(marks[0], marks[1]).0, 507_006);
    assert_eq!(elapsed(marks[0], marks[2]).0, 107_006);
    assert_eq!(call!(aclnnEmbedding(null_mut() => Handle, size => u64, executor => Handle, own => Handle)), 0);
    assert_eq!(synchronize(own), 507_015);
    assert!(recent().contains("index 9"), "{}", recent());
    let wide = tensor(index, I64, &[0]);
    assert_eq!(call!(aclDestroyTensor(wide => Handle)), 0);
}
