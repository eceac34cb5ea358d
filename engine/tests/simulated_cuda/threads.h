// The threads of a block, one after the other on one core: each is a fiber of its own that runs until it has to wait for the
// others of its warp or its block. What kernels use of CUDA C, and no more.

#pragma once

#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include <ucontext.h>

struct uint3_ {
    unsigned x, y, z;
};

struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};

static uint3_ threadIdx, blockIdx, blockDim, gridDim;

namespace fibers {

constexpr unsigned WARP = 32, MOST = 1024;
constexpr size_t STACK = 256 << 10;

// Threads that wait for one another.
struct Group {
    unsigned live = 0, arrived = 0, generation = 0;
};

struct Fiber {
    std::unique_ptr<char[]> stack{new char[STACK]};
    ucontext_t first;
    jmp_buf at;
    bool is_started = false, is_done = true;
};

static std::vector<std::unique_ptr<Fiber>> all;
static Group block, warps[MOST / WARP];
// What lanes give each other, of every second exchange: who is late to read one waits in the next, so that no third begins.
static uint32_t exchanged[2][MOST];
static jmp_buf scheduler;
static Fiber *current;
static const std::function<void()> *body;
// Arrivals and ends so far: where a whole round has none, threads wait for one that never comes.
static unsigned long progress;

static void yield() {
    if (!_setjmp(current->at)) _longjmp(scheduler, 1);
}

static void release(Group &group) {
    group.arrived = 0;
    group.generation++;
}

static void wait_for(Group &group) {
    unsigned generation = group.generation;
    progress++;
    if (++group.arrived == group.live) return release(group);
    while (group.generation == generation) yield();
}

static void leave(Group &group) {
    if (--group.live > 0 && group.arrived == group.live) release(group);
}

// A fiber is used again for the next block.
static void run() {
    for (;;) {
        (*body)();
        leave(warps[threadIdx.x / WARP]);
        leave(block);
        current->is_done = true;
        progress++;
        yield();
    }
}

static void resume(Fiber &fiber) {
    current = &fiber;
    if (_setjmp(scheduler)) return;
    if (fiber.is_started) _longjmp(fiber.at, 1);
    fiber.is_started = true;
    getcontext(&fiber.first);
    fiber.first.uc_stack.ss_sp = fiber.stack.get();
    fiber.first.uc_stack.ss_size = STACK;
    fiber.first.uc_link = nullptr;
    makecontext(&fiber.first, run, 0);
    setcontext(&fiber.first);
}

static void run_block(const std::function<void()> &kernel, const char *name) {
    unsigned count = blockDim.x;
    while (all.size() < count) all.emplace_back(new Fiber);
    body = &kernel;
    block = {count, 0, 0};
    for (unsigned warp = 0; warp * WARP < count; warp++) warps[warp] = {WARP, 0, 0};
    if (count % WARP) warps[count / WARP].live = count % WARP;
    for (unsigned i = 0; i < count; i++) all[i]->is_done = false;
    for (unsigned left = count; left > 0;) {
        unsigned long before = progress;
        left = 0;
        for (unsigned i = 0; i < count; i++) {
            if (all[i]->is_done) continue;
            threadIdx = {i, 0, 0};
            resume(*all[i]);
            left += !all[i]->is_done;
        }
        if (left > 0 && progress == before) {
            fprintf(stderr, "simulated CUDA: threads of %s wait for others that never come\n", name);
            abort();
        }
    }
}

static void run_grid(const std::function<void()> &kernel, const char *name) {
    for (unsigned y = 0; y < gridDim.y; y++) {
        for (unsigned x = 0; x < gridDim.x; x++) {
            blockIdx = {x, y, 0};
            run_block(kernel, name);
        }
    }
}

} // namespace fibers

#define __global__
#define __device__
#define __shared__ static

static void __syncthreads() { fibers::wait_for(fibers::block); }

template <class T> static T __shfl_xor_sync(unsigned, T value, unsigned step) {
    static_assert(sizeof(T) == 4);
    unsigned own = threadIdx.x, warp = own / fibers::WARP;
    uint32_t *exchanged = fibers::exchanged[fibers::warps[warp].generation % 2];
    memcpy(&exchanged[own], &value, 4);
    fibers::wait_for(fibers::warps[warp]);
    memcpy(&value, &exchanged[own ^ step], 4);
    return value;
}

static float __uint_as_float(unsigned bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

// IEEE half precision, by its bits.
static float host_f16_to_float(unsigned short bits) {
    unsigned sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;
    if (rest >= 0x7c00u) return __uint_as_float(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    float value = __uint_as_float(rest << 13) * __uint_as_float(0x77800000u);
    return sign ? -value : value;
}

static unsigned __float_as_uint(float value) {
    unsigned bits;
    memcpy(&bits, &value, 4);
    return bits;
}

// To the nearest half, of two that are as near to the even one.
static unsigned short host_float_to_f16(float value) {
    unsigned bits = __float_as_uint(value), sign = bits >> 16 & 0x8000u;
    float size = fabsf(value);
    if (size >= 65520.0f) return (unsigned short)(sign | 0x7c00u);
    // A half has ten bits behind the first one; below 2^-14 its steps no longer shrink.
    int exponent = size < 0x1p-14f ? -14 : ilogbf(size);
    float rounded = rintf(ldexpf(size, 10 - exponent));
    if (exponent == -14 && rounded < 1024.0f) return (unsigned short)(sign | (unsigned)rounded);
    return (unsigned short)(sign | (((unsigned)(exponent + 14) << 10) + (unsigned)rounded));
}
