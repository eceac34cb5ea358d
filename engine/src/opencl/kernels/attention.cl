// Rotary embedding, the cache of keys and values, and causal attention over it. Of the inputs of a step the positions come
// after the token ids, and the sequences after them. A head of a token lies whole in a block of the cache.

size_t place(global const uint *table, ulong blocks, ulong block, ulong kv_heads, size_t sequence, size_t position,
             size_t head) {
    size_t in = table[sequence * blocks + position / block];
    return ((in * kv_heads + head) * block + position % block) * HEAD_DIM;
}

// Element i and element i + HEAD_DIM / 2 are a pair, the layout of Hugging Face checkpoints.
kernel void rope(
    global float *x, global const float *turns, ulong turns_at, ulong width, ulong at, ulong heads) {
    const size_t half_ = HEAD_DIM / 2;
    global const float *cosines = turns + turns_at + ROW * HEAD_DIM;
    global const float *sines = cosines + half_;
    FOR_SHARE(i, heads * half_) {
        global float *head = x + ROW * width + at + i / half_ * HEAD_DIM;
        size_t k = i % half_;
        float a = head[k], b = head[k + half_];
        head[k] = a * cosines[k] - b * sines[k];
        head[k + half_] = b * cosines[k] + a * sines[k];
    }
}

kernel void kv_append(
    global const float *qkv, global float *keys, global float *values, global const uint *inputs,
    global const uint *table, ulong blocks, ulong block, ulong kv_heads, ulong width, ulong q_width, ulong tokens) {
    size_t position = inputs[tokens + ROW], sequence = inputs[2 * tokens + ROW];
    global const float *from = qkv + ROW * width + q_width;
    FOR_SHARE(i, kv_heads * HEAD_DIM) {
        size_t to = place(table, blocks, block, kv_heads, sequence, position, i / HEAD_DIM) + i % HEAD_DIM;
        keys[to] = from[i];
        values[to] = from[kv_heads * HEAD_DIM + i];
    }
}

float dot_of_heads(global const float *a, global const float *b) {
#if HEAD_DIM % 8 == 0
    float8 sum = 0.0f;
    for (size_t i = 0; i < HEAD_DIM; i += 8) sum = fma(vload8(0, a + i), vload8(0, b + i), sum);
    return sum8(sum);
#else
    float sum = 0.0f;
    for (size_t i = 0; i < HEAD_DIM; i++) sum = fma(a[i], b[i], sum);
    return sum;
#endif
}

// Keys that are looked at together.
#define TILE 64

// A group has a query head of a token. Sums are rescaled whenever a greater score turns up (Milakov and Gimelshein,
// arXiv 1805.02867), so that no memory grows with the context.
kernel void attention(
    global const float *qkv, global const float *keys, global const float *values, global float *out,
    global const uint *inputs, global const uint *table, ulong blocks, ulong block, ulong heads, ulong kv_heads,
    ulong width, ulong tokens) {
    local float scores[TILE];
    size_t head = GROUP, kv_head = head / (heads / kv_heads);
    size_t length = inputs[tokens + ROW] + 1, sequence = inputs[2 * tokens + ROW];
    global const float *query = qkv + ROW * width + head * HEAD_DIM;
    float most = -INFINITY, sum = 0.0f, scale = 1.0f / sqrt((float)HEAD_DIM);
    float mixed[(HEAD_DIM + LANES - 1) / LANES];
    for (size_t j = 0; j < (HEAD_DIM + LANES - 1) / LANES; j++) mixed[j] = 0.0f;
    for (size_t tile = 0; tile < length; tile += TILE) {
        size_t count = min(length - tile, (size_t)TILE);
        for (size_t p = LANE; p < count; p += LANES) {
            global const float *key = keys + place(table, blocks, block, kv_heads, sequence, tile + p, kv_head);
            scores[p] = dot_of_heads(query, key) * scale;
        }
        BARRIER;
        float greatest = most;
        for (size_t p = 0; p < count; p++) greatest = fmax(greatest, scores[p]);
        float shrink = exp(most - greatest);
        most = greatest;
        BARRIER;
        for (size_t p = LANE; p < count; p += LANES) scores[p] = exp(scores[p] - most);
        BARRIER;
        sum *= shrink;
        for (size_t j = 0; j < (HEAD_DIM + LANES - 1) / LANES; j++) mixed[j] *= shrink;
        for (size_t p = 0; p < count; p++) {
            global const float *value = values + place(table, blocks, block, kv_heads, sequence, tile + p, kv_head);
            float weight = scores[p];
            sum += weight;
            for (size_t i = LANE, j = 0; i < HEAD_DIM; i += LANES, j++) mixed[j] = fma(weight, value[i], mixed[j]);
        }
        BARRIER;
    }
    global float *to = out + (ROW * heads + head) * HEAD_DIM;
    for (size_t i = LANE, j = 0; i < HEAD_DIM; i += LANES, j++) to[i] = mixed[j] / sum;
}
