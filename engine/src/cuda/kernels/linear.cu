// Matrix products with a type of weights. `first` is the first row of the matrix that is computed, and the column of the
// result that it goes to; `count` rows are.

#define BIAS 1u
#define SPOIL 2u
// Tokens that one reading of the weights serves in `strato_gemv_batch`; lower.rs says the same.
#define MOST_TOKENS 8
// Rows and tokens of a tile of `strato_gemm`, the depth of what a block holds of both, and of each the share of a thread.
#define TILE 64
#define DEPTH 16
#define SHARE 4

// Where a run suffers a NaN on purpose, it is the first element of what is computed.
__device__ inline void put(float sum, float *out, const float *bias, u64 row, bool is_first, u32 flags) {
    if (flags & BIAS) sum += bias[row];
    out[row] = is_first && (flags & SPOIL) ? NO_NUMBER : sum;
}

// A warp has a row of the matrix against all tokens.
template <int TOKENS>
__device__ inline void rows_by_warp(
    const float *x, const u8 *weights, const float *bias, float *out, u64 width, u64 stride, u64 first, u64 count,
    u64 out_width, u64 tokens, u32 flags) {
    u64 row = (u64)blockIdx.x * WARPS + WARP;
    if (row >= count) return;
    const u8 *from = weights + (first + row) * stride;
    float sums[TOKENS];
    for (int t = 0; t < TOKENS; t++) sums[t] = 0.0f;
    u64 whole = stride % ALIGNED == 0 && width % 4 == 0 ? width / 8 * 8 : 0;
#pragma unroll 2
    for (u64 i = LANE * 8; i < whole; i += WARP_LANES * 8) {
        float w[8];
        load8(from, i, width, w);
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            if (TOKENS > 1 && t >= tokens) break;
            const float4 *of = (const float4 *)(x + t * width + i);
            float4 low = of[0], high = of[1];
            sums[t] = fmaf(w[0], low.x, sums[t]);
            sums[t] = fmaf(w[1], low.y, sums[t]);
            sums[t] = fmaf(w[2], low.z, sums[t]);
            sums[t] = fmaf(w[3], low.w, sums[t]);
            sums[t] = fmaf(w[4], high.x, sums[t]);
            sums[t] = fmaf(w[5], high.y, sums[t]);
            sums[t] = fmaf(w[6], high.z, sums[t]);
            sums[t] = fmaf(w[7], high.w, sums[t]);
        }
    }
    for (u64 i = whole + LANE; i < width; i += WARP_LANES) {
        float w = load1(from, i, width);
        for (int t = 0; t < TOKENS && t < tokens; t++) sums[t] = fmaf(w, x[t * width + i], sums[t]);
    }
#pragma unroll
    for (int t = 0; t < TOKENS; t++) {
        if (TOKENS > 1 && t >= tokens) break;
        float sum = warp_sum(sums[t]);
        if (LANE == 0) put(sum, out + t * out_width, bias, first + row, row == 0 && t == 0, flags);
    }
}

// One token.
KERNEL WEIGHTED(strato_gemv)(
    const float *x, const u8 *weights, const float *bias, float *out, u64 width, u64 stride, u64 first, u64 count,
    u64 out_width, u64 tokens, u32 flags) {
    rows_by_warp<1>(x, weights, bias, out, width, stride, first, count, out_width, tokens, flags);
}

// A few tokens.
KERNEL WEIGHTED(strato_gemv_batch)(
    const float *x, const u8 *weights, const float *bias, float *out, u64 width, u64 stride, u64 first, u64 count,
    u64 out_width, u64 tokens, u32 flags) {
    rows_by_warp<MOST_TOKENS>(x, weights, bias, out, width, stride, first, count, out_width, tokens, flags);
}

// Many tokens. A block has a tile of rows against a tile of tokens, a thread SHARE of each, TILE / SHARE apart, so that
// neighbours write next to one another.
KERNEL WEIGHTED(strato_gemm)(
    const float *x, const u8 *weights, const float *bias, float *out, u64 width, u64 stride, u64 first, u64 count,
    u64 out_width, u64 tokens, u32 flags) {
    // One more than a tile: the threads that fill a column then write to different banks.
    __shared__ float ws[DEPTH][TILE + 1];
    __shared__ float xs[DEPTH][TILE + 1];
    const u32 apart = TILE / SHARE;
    u64 row = (u64)blockIdx.x * TILE, token = (u64)blockIdx.y * TILE;
    u32 own_row = threadIdx.x % apart, own_token = threadIdx.x / apart;
    float sums[SHARE][SHARE];
    for (u32 t = 0; t < SHARE; t++) {
        for (u32 r = 0; r < SHARE; r++) sums[t][r] = 0.0f;
    }
    for (u64 at = 0; at < width; at += DEPTH) {
        for (u32 i = threadIdx.x; i < DEPTH * TILE; i += blockDim.x) {
            u64 k = at + i % DEPTH, r = row + i / DEPTH, t = token + i / DEPTH;
            ws[i % DEPTH][i / DEPTH] = k < width && r < count ? load1(weights + (first + r) * stride, k, width) : 0.0f;
            xs[i % DEPTH][i / DEPTH] = k < width && t < tokens ? x[t * width + k] : 0.0f;
        }
        __syncthreads();
        for (u32 k = 0; k < DEPTH; k++) {
            float w[SHARE], v[SHARE];
            for (u32 j = 0; j < SHARE; j++) w[j] = ws[k][own_row + j * apart], v[j] = xs[k][own_token + j * apart];
            for (u32 t = 0; t < SHARE; t++) {
                for (u32 r = 0; r < SHARE; r++) sums[t][r] = fmaf(w[r], v[t], sums[t][r]);
            }
        }
        __syncthreads();
    }
    for (u32 j = 0; j < SHARE; j++) {
        u64 t = token + own_token + j * apart;
        for (u32 i = 0; i < SHARE; i++) {
            u64 r = row + own_row + i * apart;
            if (t < tokens && r < count) {
                put(sums[j][i], out + t * out_width, bias, first + r, r == 0 && t == 0, flags);
            }
        }
    }
}
