// The engine's own kernels, the same text that devices compile, and a table of them by name.

#pragma once

#include <cmath>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "threads.h"

#include "prelude.cu"

#define WEIGHT_F32
namespace of_f32 {
#include "weights.cu"
#include "rows.cu"
#include "linear.cu"
} // namespace of_f32
#undef WEIGHT_F32
#undef WEIGHTED
#undef ALIGNED

#define WEIGHT_F16
namespace of_f16 {
#include "weights.cu"
#include "rows.cu"
#include "linear.cu"
} // namespace of_f16
#undef WEIGHT_F16
#undef WEIGHTED
#undef ALIGNED

#define WEIGHT_BF16
namespace of_bf16 {
#include "weights.cu"
#include "rows.cu"
#include "linear.cu"
} // namespace of_bf16
#undef WEIGHT_BF16
#undef WEIGHTED
#undef ALIGNED

#define WEIGHT_Q8
namespace of_q8 {
#include "weights.cu"
#include "rows.cu"
#include "linear.cu"
} // namespace of_q8

#include "attention.cu"
#include "elementwise.cu"
#include "norm.cu"
#include "sample.cu"
#include "halves.cu"
#include "synthetic.cu"
#include "cast.cu"

// A kernel with its arguments copied, as a launch copies them.
using Bound = std::function<void()>;
using Bind = std::function<Bound(void **)>;

template <class... A, size_t... I> static Bound bound(void (*kernel)(A...), void **from, std::index_sequence<I...>) {
    auto arguments = std::make_tuple(*static_cast<std::remove_const_t<A> *>(from[I])...);
    return [=] { std::apply(kernel, arguments); };
}

template <class... A> static Bind binder(void (*kernel)(A...)) {
    return [=](void **from) { return bound(kernel, from, std::index_sequence_for<A...>()); };
}

#define OF(name) {#name, binder(name)}
#define OF_TYPES(name)                                                                                                 \
    {#name "_f32", binder(of_f32::name##_f32)}, {#name "_f16", binder(of_f16::name##_f16)},                            \
        {#name "_bf16", binder(of_bf16::name##_bf16)}, {#name "_q8", binder(of_q8::name##_q8)}

static const std::unordered_map<std::string, Bind> KERNELS = {
    OF_TYPES(strato_embed),
    OF_TYPES(strato_gemv),
    OF_TYPES(strato_gemv_batch),
    OF_TYPES(strato_gemm),
    OF(strato_rms_norm),
    OF(strato_add_rms_norm),
    OF(strato_head_norm),
    OF(strato_mean),
    OF(strato_add),
    OF(strato_square),
    OF(strato_reciprocal_root),
    OF(strato_scale_rows),
    OF(strato_scale_columns),
    OF(strato_silu_mul),
    OF(strato_silu),
    OF(strato_mul_up),
    OF(strato_last_token),
    OF(strato_transpose),
    OF(strato_rope),
    OF(strato_kv_append),
    OF(strato_attention),
    OF(strato_argmax),
    OF(strato_side_by_side),
    OF(strato_cast_f16),
    OF(strato_cast_bf16),
    OF(strato_synthetic_f32),
    OF(strato_synthetic_f16),
    OF(strato_synthetic_bf16),
};
