// The embedding table, or the part of it that a rank has: rows of tokens from `first` on. Of other tokens there are zeros, which
// the rank that has them adds to. Of the inputs of a step the token ids come first.

KERNEL WEIGHTED(strato_embed)(const u8 *table, const u32 *inputs, float *out, u64 width, u64 stride, u64 first, u64 rows) {
    u64 token = inputs[ROW];
    bool own = token >= first && token - first < rows;
    const u8 *from = table + (own ? token - first : 0) * stride;
    float *to = out + ROW * width;
    FOR_SHARE(i, width) to[i] = own ? load1(from, i, width) : 0.0f;
}
