// Operators that move rows. The second dimension are rows of the result. Of the inputs of a step the token ids come first,
// and the rows of last tokens after three numbers for each token.

kernel void embed(
    global const uchar *table, global const uint *inputs, global float *out, ulong width, ulong stride, ulong first,
    ulong rows) {
    size_t token = inputs[ROW];
    bool own = token >= first && token - first < rows;
    global const uchar *from = table + (own ? token - first : 0) * stride;
    global float *to = out + ROW * width;
    FOR_SHARE(i, width) to[i] = own ? LOAD1(from, i, width) : 0.0f;
}

kernel void last_token(
    global const float *x, global const uint *inputs, global float *out, ulong width, ulong tokens) {
    global const float *from = x + inputs[3 * tokens + ROW] * width;
    global float *to = out + ROW * width;
    FOR_SHARE(i, width) to[i] = from[i];
}

kernel void transpose(global const float *x, global float *out, ulong rows, ulong width) {
    global float *to = out + ROW * rows;
    FOR_SHARE(i, rows) to[i] = x[i * width + ROW];
}
