// What every kernel is built with. The host defines LANES, the work-items of a group: 1 on a CPU, where one item has a core
// and its vectors to itself, and more elsewhere, where the items of a group are the vector. It also defines HEAD_DIM and one
// of WEIGHT_F32, WEIGHT_F16, WEIGHT_BF16, WEIGHT_Q8.

#define LANE ((size_t)get_local_id(0))
#define GROUP ((size_t)get_group_id(0))
#define ROW ((size_t)get_global_id(1))

// This item's share of n neighbours: on a CPU a piece of its own, elsewhere every so many.
#if LANES == 1
#define FOR_SHARE(i, n)                                                                                                \
    for (size_t piece_ = ((n) + get_global_size(0) - 1) / get_global_size(0), i = get_global_id(0) * piece_,          \
                end_ = min(i + piece_, (size_t)(n));                                                                   \
         i < end_; i++)
#define BARRIER
#else
#define FOR_SHARE(i, n) for (size_t i = get_global_id(0); i < (size_t)(n); i += get_global_size(0))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#endif

// Elements of a matrix from its bytes; a row of Q8 has all its bytes first and then a bf16 scale for every 32 of them.
#if defined(WEIGHT_F32)
#define LOAD8(row, i, width) (vload8(0, (global const float *)(row) + (i)))
#define LOAD1(row, i, width) (((global const float *)(row))[i])
#elif defined(WEIGHT_F16)
#define LOAD8(row, i, width) (vload_half8(0, (global const half *)(row) + (i)))
#define LOAD1(row, i, width) (vload_half((i), (global const half *)(row)))
#elif defined(WEIGHT_BF16)
#define LOAD8(row, i, width) (as_float8(convert_uint8(vload8(0, (global const ushort *)(row) + (i))) << 16))
#define LOAD1(row, i, width) (as_float((uint)((global const ushort *)(row))[i] << 16))
#else
#define SCALE(row, i, width) (as_float((uint)((global const ushort *)((row) + ((width) + 31) / 32 * 32))[(i) / 32] << 16))
#define LOAD8(row, i, width) ((convert_float8(vload8(0, (global const char *)(row) + (i))) * SCALE(row, i, width)))
#define LOAD1(row, i, width) ((convert_float(((global const char *)(row))[i]) * SCALE(row, i, width)))
#endif

float sum8(float8 v) {
    float4 half_ = v.lo + v.hi;
    float2 quarter = half_.lo + half_.hi;
    return quarter.x + quarter.y;
}

// The sum over the items of a group, for all of them.
float sum_of_lanes(float value, local float *scratch) {
#if LANES == 1
    return value;
#else
    scratch[LANE] = value;
    for (size_t half_ = LANES / 2; half_ > 0; half_ /= 2) {
        BARRIER;
        if (LANE < half_) scratch[LANE] += scratch[LANE + half_];
    }
    BARRIER;
    float sum = scratch[0];
    BARRIER;
    return sum;
#endif
}

// The sum of squares of a row, for all items of the group that has it.
float squares(global const float *x, size_t width, local float *scratch) {
    float8 wide = 0.0f;
    size_t vectors = width / 8;
    for (size_t i = LANE; i < vectors; i += LANES) {
        float8 v = vload8(i, x);
        wide = fma(v, v, wide);
    }
    float sum = sum8(wide);
    for (size_t i = vectors * 8 + LANE; i < width; i += LANES) sum = fma(x[i], x[i], sum);
    return sum_of_lanes(sum, scratch);
}
