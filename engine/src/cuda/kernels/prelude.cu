// What every family is compiled with. No header is included: NVRTC on a machine without the toolkit has none. The host
// defines one of WEIGHT_F32, WEIGHT_F16, WEIGHT_BF16, WEIGHT_Q8 for the families that read matrices of weights.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;

#define KERNEL extern "C" __global__ void
#define WARP_LANES 32
#define MOST_WARPS 32
#define LANE (threadIdx.x % WARP_LANES)
#define WARP (threadIdx.x / WARP_LANES)
#define WARPS (blockDim.x / WARP_LANES)
#define ALL_LANES 0xffffffffu
#define LEAST __uint_as_float(0xff800000u) /* -infinity */
#define NO_NUMBER __uint_as_float(0x7fc00000u)

// Rows are the first dimension of a grid, which may be longer than the others; the blocks of a row are the second. This
// thread's share of n neighbours of its row: every so many.
#define ROW ((u64)blockIdx.x)
#define FOR_SHARE(i, n)                                                                                                \
    for (u64 i = (u64)blockIdx.y * blockDim.x + threadIdx.x; i < (n); i += (u64)gridDim.y * blockDim.x)

// The sum over the lanes of a warp, for all of them.
__device__ inline float warp_sum(float value) {
    for (u32 step = WARP_LANES / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
    return value;
}

// The sum over the threads of a block, for all of them. `scratch` has MOST_WARPS numbers.
__device__ inline float block_sum(float value, float *scratch) {
    value = warp_sum(value);
    if (LANE == 0) scratch[WARP] = value;
    __syncthreads();
    float sum = 0.0f;
    for (u32 warp = 0; warp < WARPS; warp++) sum += scratch[warp];
    __syncthreads();
    return sum;
}

// The sum of squares of a row, for all threads of the block that has it.
__device__ inline float squares(const float *x, u64 width, float *scratch) {
    float sum = 0.0f;
    for (u64 i = threadIdx.x; i < width; i += blockDim.x) sum = fmaf(x[i], x[i], sum);
    return block_sum(sum, scratch);
}
