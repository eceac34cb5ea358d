// Operators that go element by element, and those that move rows. Of the inputs of a step the rows of last tokens come after
// three numbers for each token.

KERNEL strato_add(float *x, const float *delta, u64 width) {
    u64 row = ROW * width;
    FOR_SHARE(i, width) x[row + i] += delta[row + i];
}

KERNEL strato_square(const float *x, float *out, u64 width) {
    u64 row = ROW * width;
    FOR_SHARE(i, width) out[row + i] = x[row + i] * x[row + i];
}

KERNEL strato_reciprocal_root(float *x, u64 width, float eps) {
    u64 row = ROW * width;
    FOR_SHARE(i, width) x[row + i] = 1.0f / sqrtf(x[row + i] + eps);
}

KERNEL strato_scale_rows(const float *x, const float *by, float *out, u64 width) {
    u64 row = ROW * width;
    float factor = by[ROW];
    FOR_SHARE(i, width) out[row + i] = x[row + i] * factor;
}

KERNEL strato_scale_columns(float *x, const float *weight, u64 width) {
    u64 row = ROW * width;
    FOR_SHARE(i, width) x[row + i] *= weight[i];
}

__device__ inline float silu(float gate) { return gate / (1.0f + expf(-gate)); }

KERNEL strato_silu_mul(const float *gate_up, float *out, u64 width) {
    const float *gate = gate_up + ROW * 2 * width;
    float *to = out + ROW * width;
    FOR_SHARE(i, width) to[i] = silu(gate[i]) * gate[width + i];
}

KERNEL strato_silu(const float *gate_up, float *out, u64 width) {
    const float *gate = gate_up + ROW * 2 * width;
    float *to = out + ROW * width;
    FOR_SHARE(i, width) to[i] = silu(gate[i]);
}

KERNEL strato_mul_up(const float *gate_up, float *out, u64 width) {
    const float *up = gate_up + ROW * 2 * width + width;
    float *to = out + ROW * width;
    FOR_SHARE(i, width) to[i] *= up[i];
}

KERNEL strato_last_token(const float *x, const u32 *inputs, float *out, u64 width, u64 tokens) {
    const float *from = x + inputs[3 * tokens + ROW] * width;
    float *to = out + ROW * width;
    FOR_SHARE(i, width) to[i] = from[i];
}

// The row is one of the result, a column of what is transposed.
KERNEL strato_transpose(const float *x, float *out, u64 rows, u64 width) {
    float *to = out + ROW * rows;
    FOR_SHARE(i, rows) to[i] = x[i * width + ROW];
}

// What ranks gathered lies rank by rank, each with all rows of its part; a row of the result has the parts of all ranks.
KERNEL strato_side_by_side(const float *parts, float *out, u64 rows, u64 part, u64 width) {
    FOR_SHARE(i, width) out[ROW * width + i] = parts[(i / part * rows + ROW) * part + i % part];
}
