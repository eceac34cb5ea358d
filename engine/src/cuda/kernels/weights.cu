// Elements of a matrix from its bytes, for one type of weights. A row of Q8 has all its bytes first and then a bf16
// scale for every 32 of them.

// Eight neighbours are read at once where every row begins at a multiple of this many bytes.
#if defined(WEIGHT_F32)
#define WEIGHTED(name) name##_f32
#define ALIGNED 16
#elif defined(WEIGHT_F16)
#define WEIGHTED(name) name##_f16
#define ALIGNED 16
#elif defined(WEIGHT_BF16)
#define WEIGHTED(name) name##_bf16
#define ALIGNED 16
#else
#define WEIGHTED(name) name##_q8
#define ALIGNED 8
#endif

__device__ inline float bf16_to_float(u32 bits) { return __uint_as_float(bits << 16); }

// cuda_fp16.h has this instruction too, but is not there.
__device__ inline float f16_to_float(u32 bits) {
#ifdef __CUDA_ARCH__
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((u16)bits));
    return value;
#else
    return host_f16_to_float((u16)bits);
#endif
}

__device__ inline float scale_of(const u8 *row, u64 i, u64 width) {
    return bf16_to_float(((const u16 *)(row + (width + 31) / 32 * 32))[i / 32]);
}

__device__ inline float load1(const u8 *row, u64 i, u64 width) {
#if defined(WEIGHT_F32)
    return ((const float *)row)[i];
#elif defined(WEIGHT_F16)
    return f16_to_float(((const u16 *)row)[i]);
#elif defined(WEIGHT_BF16)
    return bf16_to_float(((const u16 *)row)[i]);
#else
    return (float)((const i8 *)row)[i] * scale_of(row, i, width);
#endif
}

#if defined(WEIGHT_F16) || defined(WEIGHT_BF16)
__device__ inline void two(u32 bits, float *to) {
#ifdef WEIGHT_F16
    to[0] = f16_to_float(bits & 0xffffu);
    to[1] = f16_to_float(bits >> 16);
#else
    to[0] = bf16_to_float(bits & 0xffffu);
    to[1] = __uint_as_float(bits & 0xffff0000u);
#endif
}
#elif defined(WEIGHT_Q8)
__device__ inline void four(u32 bits, float scale, float *to) {
    for (u32 k = 0; k < 4; k++) to[k] = (float)(i8)(bits >> 8 * k) * scale;
}
#endif

// Eight elements from i on, a multiple of eight.
__device__ inline void load8(const u8 *row, u64 i, u64 width, float *to) {
#if defined(WEIGHT_F32)
    float4 low = ((const float4 *)row)[i / 4], high = ((const float4 *)row)[i / 4 + 1];
    to[0] = low.x, to[1] = low.y, to[2] = low.z, to[3] = low.w;
    to[4] = high.x, to[5] = high.y, to[6] = high.z, to[7] = high.w;
#elif defined(WEIGHT_F16) || defined(WEIGHT_BF16)
    uint4 bits = ((const uint4 *)row)[i / 8];
    two(bits.x, to), two(bits.y, to + 2), two(bits.z, to + 4), two(bits.w, to + 6);
#else
    uint2 bits = ((const uint2 *)row)[i / 8];
    float scale = scale_of(row, i, width);
    four(bits.x, scale, to), four(bits.y, scale, to + 4);
#endif
}
