//! Attention, whose arguments are many.

use super::*;

#[test]
fn attention_takes_no_single_precision_no_gaps_and_no_lengths_beyond_the_cache() {
    stream();
    let at = memory(1 << 16);
    let infer = |q: Handle, kv: Handle, lengths: &[i64], heads: i64| unsafe {
        let list = |tensor: Handle| {
            let create =
                LIBRARY.get::<unsafe extern "C" fn(*const Handle, u64) -> Handle>("aclCreateTensorList").unwrap();
            create([tensor].as_ptr(), 1)
        };
        let ints = LIBRARY.get::<unsafe extern "C" fn(*const i64, u64) -> Handle>("aclCreateIntArray").unwrap();
        let lengths = ints(lengths.as_ptr(), lengths.len() as u64);
        type Infer = unsafe extern "C" fn(
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            Handle,
            i64,
            f64,
            i64,
            i64,
            *const c_char,
            i64,
            i64,
            i64,
            i64,
            i64,
            bool,
            i64,
            i64,
            Handle,
            Handle,
            *mut u64,
            *mut Handle,
        ) -> i32;
        let call = LIBRARY.get::<Infer>("aclnnFusedInferAttentionScoreV2GetWorkspaceSize").unwrap();
        let (none, mut size, mut executor) = (null_mut(), 0u64, null_mut());
        call(
            q,
            list(kv),
            list(kv),
            none,
            none,
            none,
            lengths,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            heads,
            0.25,
            9,
            9,
            c"BSND".as_ptr(),
            2,
            0,
            0,
            0,
            0,
            false,
            0,
            0,
            q,
            none,
            &raw mut size,
            &raw mut executor,
        )
    };
    let (q, kv) = (tensor(at, F16, &[2, 1, 4, 16]), tensor(at, F16, &[2, 8, 2, 16]));
    assert_eq!(infer(q, kv, &[8, 3], 4), 0, "{}", recent());
    assert_eq!(infer(q, kv, &[9, 3], 4), 161_002);
    assert!(recent().contains("actualSeqLengthsKv"), "{}", recent());
    assert_eq!(infer(q, kv, &[8], 4), 161_002);
    assert_eq!(infer(q, kv, &[8, 3], 8), 161_002);
    let apart = raw_tensor(at, F16, &[2, 1, 4, 16], &[128, 128, 16, 1], 256);
    assert_eq!(infer(apart, kv, &[8, 3], 4), 161_002);
    assert!(recent().contains("not contiguous"), "{}", recent());
    let (single, keys) = (tensor(at, F32, &[2, 1, 4, 16]), tensor(at, F32, &[2, 8, 2, 16]));
    assert_eq!(infer(single, keys, &[8, 3], 4), 161_002);
    assert!(recent().contains("FLOAT16"), "{}", recent());
}
