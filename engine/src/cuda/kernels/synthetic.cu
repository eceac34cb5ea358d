// Weights made from their places: what an element is `weights/synthetic.rs` says, and these are the same bits. SplitMix64 at the
// index of the element in its tensor; the sum of its four quarters, less the mean of that; one multiplication. Blocks of 8 bits
// are not made here: their scale needs the greatest of a block before its first element is known.

#define MEAN 131070 /* of the sum of four numbers below 2^16 */

__device__ inline float element(u64 seed, u64 index, float scale) {
    u64 z = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    u32 sum = (u32)(z & 0xffff) + (u32)(z >> 16 & 0xffff) + (u32)(z >> 32 & 0xffff) + (u32)(z >> 48);
    return (float)((int)sum - MEAN) * scale;
}

// This thread's share of a row of a tensor of `of` elements each, from (row, column) on, `width` of each row.
#define MAKE(type, convert)                                                                                            \
    type *to = (type *)out + ROW * width;                                                                              \
    u64 first = (row + ROW) * of + column;                                                                             \
    FOR_SHARE(i, width) to[i] = convert(element(seed, first + i, scale))

KERNEL strato_synthetic_f32(u8 *out, u64 seed, u64 row, u64 column, u64 of, u64 width, float scale) {
    MAKE(float, );
}

KERNEL strato_synthetic_f16(u8 *out, u64 seed, u64 row, u64 column, u64 of, u64 width, float scale) {
    MAKE(u16, float_to_f16);
}

KERNEL strato_synthetic_bf16(u8 *out, u64 seed, u64 row, u64 column, u64 of, u64 width, float scale) {
    MAKE(u16, float_to_bf16);
}
