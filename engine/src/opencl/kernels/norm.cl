// Norms and means. A group has a row, or a head of one.

kernel void rms_norm(global const float *x, global const float *weight, global float *out, ulong width, float eps) {
    local float scratch[LANES];
    global const float *from = x + GROUP * width;
    global float *to = out + GROUP * width;
    float scale = 1.0f / sqrt(squares(from, width, scratch) / width + eps);
    for (size_t i = LANE; i < width; i += LANES) to[i] = from[i] * scale * weight[i];
}

kernel void add_rms_norm(
    global float *x, global const float *delta, global const float *weight, global float *out, ulong width, float eps) {
    local float scratch[LANES];
    global float *from = x + GROUP * width;
    global const float *more = delta + GROUP * width;
    global float *to = out + GROUP * width;
    for (size_t i = LANE; i < width; i += LANES) from[i] += more[i];
#if LANES > 1
    barrier(CLK_GLOBAL_MEM_FENCE);
#endif
    float scale = 1.0f / sqrt(squares(from, width, scratch) / width + eps);
    for (size_t i = LANE; i < width; i += LANES) to[i] = from[i] * scale * weight[i];
}

kernel void head_norm(global float *x, global const float *weight, ulong width, ulong at, ulong heads, float eps) {
    local float scratch[LANES];
    global float *head = x + GROUP / heads * width + at + GROUP % heads * HEAD_DIM;
    float scale = 1.0f / sqrt(squares(head, HEAD_DIM, scratch) / HEAD_DIM + eps);
    for (size_t i = LANE; i < HEAD_DIM; i += LANES) head[i] *= scale * weight[i];
}

kernel void mean(global const float *x, global float *out, ulong width) {
    local float scratch[LANES];
    global const float *from = x + GROUP * width;
    float sum = 0.0f;
    for (size_t i = LANE; i < width; i += LANES) sum += from[i];
    sum = sum_of_lanes(sum, scratch);
    if (LANE == 0) out[GROUP] = sum / width;
}
