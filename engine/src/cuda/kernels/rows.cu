// The embedding table. Of the inputs of a step the token ids come first.

KERNEL WEIGHTED(strato_embed)(const u8 *table, const u32 *inputs, float *out, u64 width, u64 stride) {
    const u8 *from = table + inputs[ROW] * stride;
    float *to = out + ROW * width;
    FOR_SHARE(i, width) to[i] = load1(from, i, width);
}
