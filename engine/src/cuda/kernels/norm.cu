// Norms and means. A block has a row, or a head of one.

KERNEL strato_rms_norm(const float *x, const float *weight, float *out, u64 width, float eps) {
    __shared__ float scratch[MOST_WARPS];
    const float *from = x + ROW * width;
    float *to = out + ROW * width;
    float scale = 1.0f / sqrtf(squares(from, width, scratch) / width + eps);
    for (u64 i = threadIdx.x; i < width; i += blockDim.x) to[i] = from[i] * scale * weight[i];
}

// Each thread reads again only what it has written itself.
KERNEL strato_add_rms_norm(float *x, const float *delta, const float *weight, float *out, u64 width, float eps) {
    __shared__ float scratch[MOST_WARPS];
    float *from = x + ROW * width;
    const float *more = delta + ROW * width;
    float *to = out + ROW * width;
    for (u64 i = threadIdx.x; i < width; i += blockDim.x) from[i] += more[i];
    float scale = 1.0f / sqrtf(squares(from, width, scratch) / width + eps);
    for (u64 i = threadIdx.x; i < width; i += blockDim.x) to[i] = from[i] * scale * weight[i];
}

KERNEL strato_head_norm(float *x, const float *weight, u64 width, u64 at, u64 head_dim, float eps) {
    __shared__ float scratch[MOST_WARPS];
    float *head = x + ROW * width + at + blockIdx.y * head_dim;
    float scale = 1.0f / sqrtf(squares(head, head_dim, scratch) / head_dim + eps);
    for (u64 i = threadIdx.x; i < head_dim; i += blockDim.x) head[i] *= scale * weight[i];
}

KERNEL strato_mean(const float *x, float *out, u64 width) {
    __shared__ float scratch[MOST_WARPS];
    float sum = 0.0f;
    for (u64 i = threadIdx.x; i < width; i += blockDim.x) sum += x[ROW * width + i];
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0) out[ROW] = sum / width;
}
