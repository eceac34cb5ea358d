// Rotary embedding, the cache of keys and values, and causal attention over it. Of the inputs of a step the positions come
// after the token ids, and the sequences after them. A head of a token lies whole in a block of the cache.

__device__ inline u64 place(
    const u32 *table, u64 blocks, u64 block, u64 kv_heads, u64 head_dim, u64 sequence, u64 position, u64 head) {
    u64 in = table[sequence * blocks + position / block];
    return ((in * kv_heads + head) * block + position % block) * head_dim;
}

// Element i and element i + head_dim / 2 are a pair, the layout of Hugging Face checkpoints.
KERNEL strato_rope(float *x, const float *turns, u64 turns_at, u64 width, u64 at, u64 heads, u64 head_dim) {
    u64 half = head_dim / 2;
    const float *cosines = turns + turns_at + ROW * head_dim;
    const float *sines = cosines + half;
    FOR_SHARE(i, heads * half) {
        float *head = x + ROW * width + at + i / half * head_dim;
        u64 k = i % half;
        float a = head[k], b = head[k + half];
        head[k] = a * cosines[k] - b * sines[k];
        head[k + half] = b * cosines[k] + a * sines[k];
    }
}

KERNEL strato_kv_append(
    const float *qkv, float *keys, float *values, const u32 *inputs, const u32 *table, u64 blocks, u64 block,
    u64 kv_heads, u64 head_dim, u64 width, u64 q_width, u64 tokens) {
    u64 position = inputs[tokens + ROW], sequence = inputs[2 * tokens + ROW];
    const float *from = qkv + ROW * width + q_width;
    FOR_SHARE(i, kv_heads * head_dim) {
        u64 to = place(table, blocks, block, kv_heads, head_dim, sequence, position, i / head_dim) + i % head_dim;
        keys[to] = from[i];
        values[to] = from[kv_heads * head_dim + i];
    }
}

// Elements of a head that a lane has, for heads of up to 256; lower.rs says the same.
#define MOST_OF_LANE 8
#define MOST_HEAD (MOST_OF_LANE * WARP_LANES)
// Keys that a warp looks at together: their loads do not wait for one another.
#define KEYS 4
// Warps of a block; lower.rs starts as many.
#define ATTENTION_WARPS 8

// A block has a query head of a token, and each of its warps every so many keys. Sums are rescaled whenever a greater score
// turns up (Milakov and Gimelshein, arXiv 1805.02867), so that no memory grows with the context.
KERNEL strato_attention(
    const float *qkv, const float *keys, const float *values, float *out, const u32 *inputs, const u32 *table,
    u64 blocks, u64 block, u64 heads, u64 kv_heads, u64 head_dim, u64 width, u64 tokens) {
    __shared__ float most_of[ATTENTION_WARPS], sum_of[ATTENTION_WARPS];
    __shared__ float mixed_of[ATTENTION_WARPS][MOST_HEAD];
    u64 head = blockIdx.y, kv_head = head / (heads / kv_heads);
    u64 length = (u64)inputs[tokens + ROW] + 1, sequence = inputs[2 * tokens + ROW];
    const float *query = qkv + ROW * width + head * head_dim;
    float scale = 1.0f / sqrtf((float)head_dim), most = LEAST, sum = 0.0f;
    float q[MOST_OF_LANE], mixed[MOST_OF_LANE];
#pragma unroll
    for (u32 j = 0; j < MOST_OF_LANE; j++) {
        u32 i = j * WARP_LANES + LANE;
        q[j] = i < head_dim ? query[i] * scale : 0.0f;
        mixed[j] = 0.0f;
    }
    for (u64 first = (u64)WARP * KEYS; first < length; first += ATTENTION_WARPS * KEYS) {
        float scores[KEYS];
        u64 at[KEYS];
#pragma unroll
        for (u32 k = 0; k < KEYS; k++) {
            // What lies beyond the end counts for nothing: the last key in its place is read and left out.
            u64 position = first + k < length ? first + k : length - 1;
            at[k] = place(table, blocks, block, kv_heads, head_dim, sequence, position, kv_head);
            float dot = 0.0f;
#pragma unroll
            for (u32 j = 0; j < MOST_OF_LANE; j++) {
                u32 i = j * WARP_LANES + LANE;
                if (i < head_dim) dot = fmaf(q[j], keys[at[k] + i], dot);
            }
            scores[k] = dot;
        }
        float greatest = most;
#pragma unroll
        for (u32 k = 0; k < KEYS; k++) {
            scores[k] = first + k < length ? warp_sum(scores[k]) : LEAST;
            greatest = fmaxf(greatest, scores[k]);
        }
        float shrink = expf(most - greatest);
        most = greatest;
        sum *= shrink;
#pragma unroll
        for (u32 j = 0; j < MOST_OF_LANE; j++) mixed[j] *= shrink;
#pragma unroll
        for (u32 k = 0; k < KEYS; k++) {
            float weight = expf(scores[k] - most);
            sum += weight;
#pragma unroll
            for (u32 j = 0; j < MOST_OF_LANE; j++) {
                u32 i = j * WARP_LANES + LANE;
                if (i < head_dim) mixed[j] = fmaf(weight, values[at[k] + i], mixed[j]);
            }
        }
    }
    if (LANE == 0) most_of[WARP] = most, sum_of[WARP] = sum;
#pragma unroll
    for (u32 j = 0; j < MOST_OF_LANE; j++) mixed_of[WARP][j * WARP_LANES + LANE] = mixed[j];
    __syncthreads();
    // The first warp has at least one key, so the greatest score is a number.
    float greatest = LEAST, all = 0.0f;
    for (u32 warp = 0; warp < ATTENTION_WARPS; warp++) greatest = fmaxf(greatest, most_of[warp]);
    for (u32 warp = 0; warp < ATTENTION_WARPS; warp++) all += sum_of[warp] * expf(most_of[warp] - greatest);
    float *to = out + (ROW * heads + head) * head_dim;
    for (u64 i = threadIdx.x; i < head_dim; i += blockDim.x) {
        float value = 0.0f;
        for (u32 warp = 0; warp < ATTENTION_WARPS; warp++) {
            value = fmaf(mixed_of[warp][i], expf(most_of[warp] - greatest), value);
        }
        to[i] = value / all;
    }
}
