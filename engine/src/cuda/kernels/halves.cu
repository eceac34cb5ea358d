// Single precision to numbers of 16 bits: to the nearest, of two that are as near to the even one.

// What is no number stays none.
__device__ inline u16 float_to_bf16(float value) {
    u32 bits = __float_as_uint(value);
    if (value != value) return (u16)(bits >> 16 | 0x40u);
    return (u16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

__device__ inline u16 float_to_f16(float value) {
#ifdef __CUDA_ARCH__
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    return host_float_to_f16(value);
#endif
}
