// The choice of the next token. A block has a row of logits; of equal ones the first is taken, and of a row that has no
// number greater than -infinity the first token.

__device__ inline bool is_better(float value, u32 place, float than, u32 there) {
    return value > than || (value == than && place < there);
}

KERNEL strato_argmax(const float *logits, u32 *chosen, u64 width) {
    __shared__ float values[MOST_WARPS];
    __shared__ u32 places[MOST_WARPS];
    const float *row = logits + ROW * width;
    float best = LEAST;
    u32 place = 0;
    for (u64 i = threadIdx.x; i < width; i += blockDim.x) {
        if (row[i] > best) best = row[i], place = (u32)i;
    }
    for (u32 step = WARP_LANES / 2; step > 0; step /= 2) {
        float value = __shfl_xor_sync(ALL_LANES, best, step);
        u32 there = __shfl_xor_sync(ALL_LANES, place, step);
        if (is_better(value, there, best, place)) best = value, place = there;
    }
    if (LANE == 0) values[WARP] = best, places[WARP] = place;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (u32 warp = 1; warp < WARPS; warp++) {
        if (is_better(values[warp], places[warp], best, place)) best = values[warp], place = places[warp];
    }
    chosen[ROW] = place;
}
