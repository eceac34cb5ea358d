// Operators that go element by element. The second dimension are rows.

kernel void add(global float *x, global const float *delta, ulong width) {
    global float *to = x + ROW * width;
    global const float *from = delta + ROW * width;
    FOR_SHARE(i, width) to[i] += from[i];
}

kernel void square(global const float *x, global float *out, ulong width) {
    size_t row = ROW * width;
    FOR_SHARE(i, width) out[row + i] = x[row + i] * x[row + i];
}

kernel void reciprocal_root(global float *x, ulong width, float eps) {
    size_t row = ROW * width;
    FOR_SHARE(i, width) x[row + i] = 1.0f / sqrt(x[row + i] + eps);
}

kernel void scale_rows(global const float *x, global const float *by, global float *out, ulong width) {
    size_t row = ROW * width;
    float factor = by[ROW];
    FOR_SHARE(i, width) out[row + i] = x[row + i] * factor;
}

kernel void scale_columns(global float *x, global const float *weight, ulong width) {
    size_t row = ROW * width;
    FOR_SHARE(i, width) x[row + i] *= weight[i];
}

kernel void silu_mul(global const float *gate_up, global float *out, ulong width) {
    global const float *gate = gate_up + ROW * 2 * width;
    global const float *up = gate + width;
    global float *to = out + ROW * width;
    FOR_SHARE(i, width) to[i] = gate[i] / (1.0f + exp(-gate[i])) * up[i];
}

kernel void silu(global const float *gate_up, global float *out, ulong width) {
    global const float *gate = gate_up + ROW * 2 * width;
    global float *to = out + ROW * width;
    FOR_SHARE(i, width) to[i] = gate[i] / (1.0f + exp(-gate[i]));
}

kernel void mul_up(global const float *gate_up, global float *out, ulong width) {
    global const float *up = gate_up + ROW * 2 * width + width;
    global float *to = out + ROW * width;
    FOR_SHARE(i, width) to[i] *= up[i];
}
