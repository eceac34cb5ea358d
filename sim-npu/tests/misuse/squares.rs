//! Weights in NZ.

use super::*;

const NZ: i32 = 29;

/// The block and the format that a weight gets, with the status.
fn shape_of(weight: Handle, format: i32) -> (i32, Vec<i64>, i32) {
    shape_by(weight, format, -1)
}

fn shape_by(weight: Handle, format: i32, squares_of: i32) -> (i32, Vec<i64>, i32) {
    let (mut dims, mut count, mut actual) = (null_mut(), 0u64, 0i32);
    let status = call!(aclnnNpuFormatCastCalculateSizeAndFormat(
        weight => Handle, format => i32, squares_of => i32, &raw mut dims => *mut *mut i64, &raw mut count => *mut u64,
        &raw mut actual => *mut i32
    ));
    let dims = if dims.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(dims, count as usize) } };
    (status, dims.to_vec(), actual)
}

fn cast(from: Handle, to: Handle) -> (i32, u64, Handle) {
    let (mut size, mut executor) = (0u64, null_mut());
    let status = call!(aclnnNpuFormatCastGetWorkspaceSize(
        from => Handle, to => Handle, &raw mut size => *mut u64, &raw mut executor => *mut Handle
    ));
    (status, size, executor)
}

#[test]
fn a_product_takes_a_weight_in_squares_only_by_its_own_name() {
    let own = stream();
    let (at, block, workspace) = (memory(20 * 32 * 2), memory(1 << 14), memory(1 << 16));
    let plain = tensor(at, F16, &[20, 32]);
    assert_eq!(shape_of(plain, NZ), (0, vec![2, 2, 16, 16], NZ));
    assert_eq!((shape_of(plain, 4).0, shape_by(plain, NZ, F16).0), (161_002, 161_002));
    let turned = raw_tensor(at, F16, &[32, 20], &[1, 32], 20 * 32);
    for (wrong, words) in [(tensor(block, F32, &[20, 32]), "FLOAT16"), (turned, "contiguous")] {
        assert_eq!(shape_of(wrong, NZ).0, 161_002);
        assert!(recent().contains(words), "{}", recent());
    }
    // Made only in a block of its squares, and taken only where that is memory.
    assert!(formatted(block, F16, &[20, 32], &[32, 1], (NZ, &[2, 2, 32, 16])).is_null());
    assert!(recent().contains("[2, 2, 16, 16]"), "{}", recent());
    let narrow = formatted(at, F16, &[20, 32], &[32, 1], (NZ, &[2, 2, 16, 16]));
    assert_eq!(cast(plain, narrow).0, 161_002);
    assert!(recent().contains("reaches 1024 elements"), "{}", recent());
    let squared = formatted(block, F16, &[20, 32], &[32, 1], (NZ, &[2, 2, 16, 16]));
    assert_eq!((cast(squared, plain).0, cast(plain, plain).0), (161_002, 161_002));
    let (status, size, executor) = cast(plain, squared);
    assert_eq!(status, 0, "{}", recent());
    let run = call!(aclnnNpuFormatCast(workspace => Handle, size => u64, executor => Handle, own => Handle));
    assert_eq!((run, synchronize(own)), (0, 0));
    // Rows of the weight are columns of the product's right side.
    let weight = formatted(block, F16, &[32, 20], &[1, 32], (NZ, &[2, 2, 16, 16]));
    let (x, out) = (tensor(memory(64), F16, &[1, 32]), tensor(memory(40), F16, &[1, 20]));
    assert_eq!(product(x, weight, out).0, 161_002);
    assert!(recent().contains("NZ"), "{}", recent());
    let by_its_name = |weight: Handle| {
        let (mut size, mut executor) = (0u64, null_mut());
        call!(aclnnMatmulWeightNzGetWorkspaceSize(
            x => Handle, weight => Handle, out => Handle, 0 => i8, &raw mut size => *mut u64,
            &raw mut executor => *mut Handle
        ))
    };
    assert_eq!((by_its_name(weight), by_its_name(turned)), (0, 161_002));
}
