// cuBLASLt without a device, for tests: one way of multiplying, in the types and layouts that the engine asks for. It is strict
// about what a real one is: sizes of attributes, what a heuristic was asked for, alignment, memory and workspace.

#pragma once

#include "cupti.h"

namespace cublaslt {

enum { SUCCESS = 0, INVALID = 7, NOT_SUPPORTED = 15 };
enum { R_32F = 0, R_16F = 2, R_16BF = 14 };

struct Library {
    int of = here();
};

struct Description {
    int turn_a = 0, epilogue = 1;
    const float *bias = nullptr;
};

struct Layout {
    int type;
    uint64_t rows, columns;
    int64_t step;

    size_t bytes() const {
        size_t each = type == R_32F ? 4 : 2;
        return columns ? ((columns - 1) * size_t(step) + rows) * each : 0;
    }

    float at(const void *from, uint64_t row, uint64_t column) const {
        size_t place = column * size_t(step) + row;
        if (type == R_32F) return static_cast<const float *>(from)[place];
        unsigned short bits = static_cast<const unsigned short *>(from)[place];
        return type == R_16F ? host_f16_to_float(bits) : __uint_as_float(unsigned(bits) << 16);
    }
};

struct Wish {
    size_t workspace = 0;
    uint32_t alignment[4] = {256, 256, 256, 256};
};

struct Algorithm {
    uint64_t mark, workspace, alignment[4], rest[2];
};

struct Found {
    Algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

const uint64_t MARK = 0x6c742d77617973;

Alive<Library> libraries;
Alive<Description> descriptions;
Alive<Layout> layouts;
Alive<Wish> wishes;

template <class T> bool set(T &to, const void *from, size_t bytes) {
    if (!from || bytes != sizeof to) return false;
    memcpy(&to, from, bytes);
    return true;
}

// What is multiplied: as many rows and columns as both sides have, the first one turned.
bool fit(const Description &of, const Layout &a, const Layout &b, const Layout &d) {
    bool types = a.type == b.type && d.type == R_32F && (a.type == R_32F || a.type == R_16F || a.type == R_16BF);
    return types && of.turn_a == 1 && a.rows == b.rows && a.columns == d.rows && b.columns == d.columns &&
           uint64_t(a.step) >= a.rows && uint64_t(b.step) >= b.rows && uint64_t(d.step) >= d.rows;
}

} // namespace cublaslt

extern "C" size_t cublasLtGetVersion() { return 120903; }

extern "C" int cublasLtCreate(void **library) {
    if (!is_inside()) return 1;
    *library = cublaslt::libraries.make();
    return cublaslt::SUCCESS;
}

extern "C" int cublasLtDestroy(void *library) { return cublaslt::libraries.destroy(library) ? 0 : cublaslt::INVALID; }

extern "C" int cublasLtMatmulDescCreate(void **description, int compute, int scale) {
    if (compute != 68 || scale != cublaslt::R_32F) return cublaslt::NOT_SUPPORTED;
    *description = cublaslt::descriptions.make();
    return cublaslt::SUCCESS;
}

extern "C" int cublasLtMatmulDescDestroy(void *description) {
    return cublaslt::descriptions.destroy(description) ? 0 : cublaslt::INVALID;
}

extern "C" int cublasLtMatmulDescSetAttribute(void *handle, int which, const void *from, size_t bytes) {
    auto *of = cublaslt::descriptions.find(handle);
    if (!of) return cublaslt::INVALID;
    bool done = which == 3 ? cublaslt::set(of->turn_a, from, bytes) : which == 7 ? cublaslt::set(of->epilogue, from, bytes)
              : which == 8 && cublaslt::set(of->bias, from, bytes);
    return done ? cublaslt::SUCCESS : cublaslt::INVALID;
}

extern "C" int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns, int64_t step) {
    auto *made = cublaslt::layouts.make();
    *made = {type, rows, columns, step};
    *layout = made;
    return cublaslt::SUCCESS;
}

extern "C" int cublasLtMatrixLayoutDestroy(void *layout) { return cublaslt::layouts.destroy(layout) ? 0 : cublaslt::INVALID; }

extern "C" int cublasLtMatmulPreferenceCreate(void **wish) {
    *wish = cublaslt::wishes.make();
    return cublaslt::SUCCESS;
}

extern "C" int cublasLtMatmulPreferenceDestroy(void *wish) { return cublaslt::wishes.destroy(wish) ? 0 : cublaslt::INVALID; }

extern "C" int cublasLtMatmulPreferenceSetAttribute(void *handle, int which, const void *from, size_t bytes) {
    auto *wish = cublaslt::wishes.find(handle);
    if (!wish) return cublaslt::INVALID;
    bool done = which == 1 ? cublaslt::set(wish->workspace, from, bytes)
                           : which >= 5 && which <= 8 && cublaslt::set(wish->alignment[which - 5], from, bytes);
    return done ? cublaslt::SUCCESS : cublaslt::INVALID;
}

extern "C" int cublasLtMatmulAlgoGetHeuristic(
    void *library, void *description, void *a, void *b, void *c, void *d, void *wish, int most, cublaslt::Found *found,
    int *count) {
    using namespace cublaslt;
    auto *of = descriptions.find(description);
    Layout *sides[] = {layouts.find(a), layouts.find(b), layouts.find(c), layouts.find(d)};
    Wish *asked = wishes.find(wish);
    if (!libraries.find(library) || !of || !sides[0] || !sides[1] || !sides[2] || !sides[3] || !asked || most < 1) {
        return INVALID;
    }
    *count = 0;
    if (!fit(*of, *sides[0], *sides[1], *sides[3])) return NOT_SUPPORTED;
    *found = {};
    found->algorithm = {MARK, asked->workspace, {}, {}};
    for (int side = 0; side < 4; side++) found->algorithm.alignment[side] = asked->alignment[side];
    found->workspace = asked->workspace, found->waves = 1.0f, *count = 1;
    return SUCCESS;
}

extern "C" int cublasLtMatmul(
    void *library, void *description, const void *alpha, const void *a, void *a_layout, const void *b, void *b_layout,
    const void *beta, const void *c, void *c_layout, void *d, void *d_layout, const cublaslt::Algorithm *algorithm,
    void *workspace, size_t workspace_bytes, void *on) {
    using namespace cublaslt;
    Library *own_library = libraries.find(library);
    auto *found = descriptions.find(description);
    Layout *ours[] = {layouts.find(a_layout), layouts.find(b_layout), layouts.find(c_layout), layouts.find(d_layout)};
    if (!is_inside() || !own_library || own_library->of != here() || !found || !ours[0] || !ours[1] || !ours[2] || !ours[3]) {
        return INVALID;
    }
    Description of = *found;
    Layout la = *ours[0], lb = *ours[1], ld = *ours[3];
    Stream *stream = own(on);
    if (!stream || !fit(of, la, lb, ld) || !algorithm || algorithm->mark != MARK) return INVALID;
    const void *sides[] = {a, b, c, d};
    for (int side = 0; side < 4; side++) {
        if (uintptr_t(sides[side]) % algorithm->alignment[side]) return INVALID;
        if (!device.has(uintptr_t(sides[side]), ours[side]->bytes())) return INVALID;
    }
    if (workspace_bytes < algorithm->workspace || !device.has(uintptr_t(workspace), workspace_bytes)) return INVALID;
    bool with_bias = of.epilogue == 4;
    if (with_bias && !device.has(uintptr_t(of.bias), ld.rows * 4)) return INVALID;
    float scale = *static_cast<const float *>(alpha), keep = *static_cast<const float *>(beta);
    if (keep != 0.0f) return NOT_SUPPORTED;
    // The library launches kernels of its own, under names of its own.
    cupti::Call call(307);
    cupti::launch(stream, call, {"simulated_cublaslt_gemm", [=] {
                      std::lock_guard<std::mutex> guard(one);
                      running = "cublasLtMatmul";
                      float *to = static_cast<float *>(d);
                      for (uint64_t column = 0; column < ld.columns; column++) {
                          for (uint64_t row = 0; row < ld.rows; row++) {
                              float sum = 0.0f;
                              for (uint64_t i = 0; i < la.rows; i++) {
                                  sum = fmaf(la.at(a, i, row), lb.at(b, i, column), sum);
                              }
                              to[column * size_t(ld.step) + row] = scale * sum + (with_bias ? of.bias[row] : 0.0f);
                          }
                      }
                      running = "no kernel";
                  }}, unsigned((ld.rows + 127) / 128), 128);
    return SUCCESS;
}
