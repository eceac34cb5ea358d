// Activations in the type of the weights, which products of the vendor's library take on both sides.

KERNEL strato_cast_f16(const float *x, u16 *out, u64 width) {
    FOR_SHARE(i, width) out[ROW * width + i] = float_to_f16(x[ROW * width + i]);
}

KERNEL strato_cast_bf16(const float *x, u16 *out, u64 width) {
    FOR_SHARE(i, width) out[ROW * width + i] = float_to_bf16(x[ROW * width + i]);
}
