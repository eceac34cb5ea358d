//! The cache of executors.

use super::*;

/// A call without a result.
macro_rules! tell {
    ($name:ident($($argument:expr => $type:ty),*)) => {
        unsafe { LIBRARY.get::<unsafe extern "C" fn($($type),*)>(stringify!($name)).unwrap()($($argument),*) }
    };
}

static NAME: &CStr = c"aclnnMatmul";

/// What the cache has by `key` for tensors in `told`, before `then` is done under the same key.
fn asked<T>(key: &mut [u8], told: &[Handle], then: impl FnOnce() -> T) -> (Handle, T) {
    asked_by(NAME, key, told, then)
}

fn asked_by<T>(name: &CStr, key: &mut [u8], told: &[Handle], then: impl FnOnce() -> T) -> (Handle, T) {
    type Find = unsafe extern "C" fn(*mut u8, usize, *mut u64) -> Handle;
    type Can = unsafe extern "C" fn(*const c_char) -> bool;
    unsafe { LIBRARY.get::<Can>("CanUsePTACache").unwrap()(name.as_ptr()) };
    tell!(InitPTACacheThreadLocal());
    for at in told {
        tell!(AddTensorAddrToCachedList(*at => Handle));
    }
    tell!(SetPTACacheHashKey(key.as_mut_ptr() => *mut u8, key.len() => usize));
    let mut size = 0;
    let found = unsafe { LIBRARY.get::<Find>("PTAFindExecCache").unwrap()(key.as_mut_ptr(), key.len(), &raw mut size) };
    let done = then();
    tell!(UnInitPTACacheThreadLocal());
    (found, done)
}

#[test]
fn the_cache_has_what_was_prepared_under_a_key_for_the_same_memory() {
    let stream = stream();
    let ([x, weight, out], own, workspace) = operands();
    let key = &mut b"one product".to_vec();
    let (found, (status, size, executor)) = asked(key, &own, || product(x, weight, out));
    assert!(found.is_null() && status == 0);
    assert_eq!(launch(workspace, size, executor, stream), 0);
    for _ in 0..2 {
        let (found, ()) = asked(key, &own, || ());
        assert!(!found.is_null());
        assert_eq!([launch(workspace, size, found, stream), launch(workspace, size, found, stream)], [0, 161_002]);
    }
    let turned = [own[1], own[0], own[2]];
    assert!(asked(key, &turned, || ()).0.is_null() && asked(&mut b"another".to_vec(), &own, || ()).0.is_null());
    // A name that lies elsewhere is another operator's, and what the cache does not take it does not have.
    let copied = NAME.to_owned();
    assert!(asked_by(&copied, key, &own, || ()).0.is_null() && asked_by(c"other", key, &own, || ()).0.is_null());
    assert_eq!(synchronize(stream), 0);
    // Memory that was freed is no longer that of the first time.
    assert_eq!(call!(aclrtFree(own[2] => Handle)), 0);
    assert!(asked(key, &own, || ()).0.is_null());
}

#[test]
fn the_cache_is_told_of_all_memory_and_asked_only_between_begin_and_end() {
    stream();
    let ([x, weight, out], own, _) = operands();
    let key = &mut b"half told".to_vec();
    for told in [&own[..2], &[own[1], own[0], own[2]], &[own[0], own[1], own[2], own[2]]] {
        let (_, (status, ..)) = asked(key, told, || product(x, weight, out));
        assert_eq!(status, 161_002);
        assert!(recent().contains("in order"), "{}", recent());
    }
    assert_eq!(product(x, weight, out).0, 0);
    assert!(asked(key, &own, || ()).0.is_null());
}
