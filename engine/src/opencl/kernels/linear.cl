// Matrix products. `first` is the first row of the matrix that is computed, and the column of the result that it goes to.

#define BIAS 1u
#define SPOIL 2u

float finished(float sum, global const float *bias, size_t row, uint flags) {
    return flags & BIAS ? sum + bias[row] : sum;
}

// Where a run suffers a NaN on purpose, it is the first element of what is computed.
void store(float sum, global float *out, global const float *bias, size_t row, bool is_first, uint flags) {
    out[row] = is_first && (flags & SPOIL) ? NAN : finished(sum, bias, row, flags);
}

#if LANES == 1

// One token: `each` rows of the matrix for an item, four of them at a time, so that four streams of weights are under way.
kernel void vector_product(
    global const float *x, global const uchar *weights, global const float *bias, global float *out, ulong width,
    ulong stride, ulong first, ulong count, ulong out_width, ulong tokens, ulong each, uint flags) {
    size_t begin = get_global_id(0) * each, end = min(begin + each, (size_t)count);
    for (size_t row = begin; row < end; row += 4) {
        global const uchar *w0 = weights + (first + row) * stride;
        global const uchar *w1 = weights + (first + min(row + 1, end - 1)) * stride;
        global const uchar *w2 = weights + (first + min(row + 2, end - 1)) * stride;
        global const uchar *w3 = weights + (first + min(row + 3, end - 1)) * stride;
        float8 a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f, b0 = 0.0f, b1 = 0.0f, b2 = 0.0f, b3 = 0.0f;
        size_t i = 0;
        for (; i + 16 <= width; i += 16) {
            float8 v = vload8(0, x + i), u = vload8(0, x + i + 8);
            a0 = fma(LOAD8(w0, i, width), v, a0);
            b0 = fma(LOAD8(w0, i + 8, width), u, b0);
            a1 = fma(LOAD8(w1, i, width), v, a1);
            b1 = fma(LOAD8(w1, i + 8, width), u, b1);
            a2 = fma(LOAD8(w2, i, width), v, a2);
            b2 = fma(LOAD8(w2, i + 8, width), u, b2);
            a3 = fma(LOAD8(w3, i, width), v, a3);
            b3 = fma(LOAD8(w3, i + 8, width), u, b3);
        }
        float s0 = sum8(a0 + b0), s1 = sum8(a1 + b1), s2 = sum8(a2 + b2), s3 = sum8(a3 + b3);
        for (; i < width; i++) {
            s0 = fma(LOAD1(w0, i, width), x[i], s0);
            s1 = fma(LOAD1(w1, i, width), x[i], s1);
            s2 = fma(LOAD1(w2, i, width), x[i], s2);
            s3 = fma(LOAD1(w3, i, width), x[i], s3);
        }
        store(s0, out, bias, first + row, row == 0, flags);
        if (row + 1 < end) store(s1, out, bias, first + row + 1, false, flags);
        if (row + 2 < end) store(s2, out, bias, first + row + 2, false, flags);
        if (row + 3 < end) store(s3, out, bias, first + row + 3, false, flags);
    }
}

// Several tokens: two rows of the matrix against four tokens, so that a weight that was widened serves four times.
kernel void matrix_product(
    global const float *x, global const uchar *weights, global const float *bias, global float *out, ulong width,
    ulong stride, ulong first, ulong count, ulong out_width, ulong tokens, ulong each, uint flags) {
    size_t begin = get_global_id(0) * each, end = min(begin + each, (size_t)count);
    for (size_t row = begin; row < end; row += 2) {
        global const uchar *w0 = weights + (first + row) * stride;
        global const uchar *w1 = weights + (first + min(row + 1, end - 1)) * stride;
        for (size_t token = 0; token < tokens; token += 4) {
            size_t t1 = min(token + 1, (size_t)tokens - 1), t2 = min(token + 2, (size_t)tokens - 1);
            size_t t3 = min(token + 3, (size_t)tokens - 1);
            global const float *x0 = x + token * width, *x1 = x + t1 * width, *x2 = x + t2 * width, *x3 = x + t3 * width;
            float8 a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f, b0 = 0.0f, b1 = 0.0f, b2 = 0.0f, b3 = 0.0f;
            size_t i = 0;
            for (; i + 8 <= width; i += 8) {
                float8 v = LOAD8(w0, i, width), u = LOAD8(w1, i, width);
                float8 y0 = vload8(0, x0 + i), y1 = vload8(0, x1 + i), y2 = vload8(0, x2 + i), y3 = vload8(0, x3 + i);
                a0 = fma(v, y0, a0);
                b0 = fma(u, y0, b0);
                a1 = fma(v, y1, a1);
                b1 = fma(u, y1, b1);
                a2 = fma(v, y2, a2);
                b2 = fma(u, y2, b2);
                a3 = fma(v, y3, a3);
                b3 = fma(u, y3, b3);
            }
            float4 s = (float4)(sum8(a0), sum8(a1), sum8(a2), sum8(a3));
            float4 r = (float4)(sum8(b0), sum8(b1), sum8(b2), sum8(b3));
            for (; i < width; i++) {
                float4 y = (float4)(x0[i], x1[i], x2[i], x3[i]);
                s = fma((float4)LOAD1(w0, i, width), y, s);
                r = fma((float4)LOAD1(w1, i, width), y, r);
            }
            float sums[4], others[4];
            vstore4(s, 0, sums);
            vstore4(r, 0, others);
            for (size_t t = token; t < min(token + 4, (size_t)tokens); t++) {
                store(sums[t - token], out + t * out_width, bias, first + row, row == 0 && t == 0, flags);
                if (row + 1 < end) store(others[t - token], out + t * out_width, bias, first + row + 1, false, flags);
            }
        }
    }
}

#else

// A group has a row of the matrix, and a token of the second dimension.
kernel void vector_product(
    global const float *x, global const uchar *weights, global const float *bias, global float *out, ulong width,
    ulong stride, ulong first, ulong count, ulong out_width, ulong tokens, ulong each, uint flags) {
    local float scratch[LANES];
    global const uchar *row = weights + (first + GROUP) * stride;
    global const float *from = x + ROW * width;
    float8 wide = 0.0f;
    size_t whole = width / 8 * 8;
    for (size_t i = LANE * 8; i < whole; i += LANES * 8) wide = fma(LOAD8(row, i, width), vload8(0, from + i), wide);
    float sum = sum8(wide);
    for (size_t i = whole + LANE; i < width; i += LANES) sum = fma(LOAD1(row, i, width), from[i], sum);
    sum = sum_of_lanes(sum, scratch);
    if (LANE == 0) store(sum, out + ROW * out_width, bias, first + GROUP, GROUP == 0 && ROW == 0, flags);
}

// A group has a row of the matrix, and four tokens of the second dimension.
kernel void matrix_product(
    global const float *x, global const uchar *weights, global const float *bias, global float *out, ulong width,
    ulong stride, ulong first, ulong count, ulong out_width, ulong tokens, ulong each, uint flags) {
    local float scratch[LANES];
    global const uchar *row = weights + (first + GROUP) * stride;
    size_t token = ROW * 4, left = min((size_t)tokens - token, (size_t)4);
    global const float *x0 = x + token * width;
    size_t s1 = left > 1 ? width : 0, s2 = left > 2 ? 2 * width : 0, s3 = left > 3 ? 3 * width : 0;
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (size_t i = LANE; i < width; i += LANES) {
        float w = LOAD1(row, i, width);
        sums[0] = fma(w, x0[i], sums[0]);
        sums[1] = fma(w, x0[i + s1], sums[1]);
        sums[2] = fma(w, x0[i + s2], sums[2]);
        sums[3] = fma(w, x0[i + s3], sums[3]);
    }
    for (size_t t = 0; t < left; t++) {
        float sum = sum_of_lanes(sums[t], scratch);
        if (LANE == 0) {
            store(sum, out + (token + t) * out_width, bias, first + GROUP, GROUP == 0 && token + t == 0, flags);
        }
    }
}

#endif
