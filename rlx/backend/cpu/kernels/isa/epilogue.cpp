// Plan: a tile is at most a few kilobytes in L1, so each step is one pass over it: load, change, store, with
// the switch outside the loops. Two vectors a row; columns beyond the valid ones hold rubbish that is never
// written.
// Levels: also avx512vnni, for gemm_int8.cpp.
#include "rlx/backend/cpu/kernels/isa/epilogue.h"

#include "rlx/backend/cpu/kernels/isa/indices.h"
#include "rlx/backend/cpu/simd/narrow.h"
#include "rlx/backend/cpu/simd/unary_math.h"

namespace rlx::cpu::RLX_ISA {
namespace {

constexpr int kWidth = 2 * kLanes;

template <class T>
RLX_INLINE F32 load_part(const T* p, int lanes) {
  return lanes >= kLanes ? load(p) : (lanes > 0 ? load_n(p, lanes) : F32{});
}
template <class T>
RLX_INLINE void store_part(T* p, F32 v, int lanes) {
  if (lanes >= kLanes) {
    store(p, v);
  } else if (lanes > 0) {
    store_n(p, v, lanes);
  }
}

/// values = change(values, row, half); a half without valid columns stays as it is.
template <class F>
RLX_INLINE void each(const EpilogueTile& t, F change) {
  const bool both = t.columns > kLanes;
  for (int64_t r = 0; r < t.rows; ++r) {
    float* v = t.values + r * t.values_stride;
    store(v, change(load(v), r, 0));
    if (both) store(v + kLanes, change(load(v + kLanes), r, 1));
  }
}

template <class F>
RLX_INLINE void with_dtype(DType dtype, void* data, F body) {
  switch (dtype) {
    case DType::f16:
      return body(static_cast<F16*>(data));
    case DType::bf16:
      return body(static_cast<Bf16*>(data));
    default:
      return body(static_cast<float*>(data));
  }
}

template <Unary op>
void run_unary(const EpilogueTile& t) {
  each(t, [](F32 v, int64_t, int) { return apply<op>(v); });
}
template <Unary op>
void run_gate(const EpilogueTile& t) {
  each(t, [&](F32 v, int64_t r, int h) { return apply<op>(v) * load(t.second + r * kWidth + h * kLanes); });
}

using TileStep = void (*)(const EpilogueTile&);
struct UnarySteps {
  TileStep unary[kUnaryCount], gate[kUnaryCount];
};
template <int... i>
constexpr UnarySteps unary_steps(Indices<i...>) {
  return {{run_unary<Unary(i)>...}, {run_gate<Unary(i)>...}};
}
constexpr UnarySteps kUnarySteps = unary_steps(MakeIndices<kUnaryCount>());

void write(const EpilogueTile& t, DType dtype, void* data, int64_t row_stride) {
  with_dtype(dtype, data, [&](auto* p) {
    for (int64_t r = 0; r < t.rows; ++r) {
      auto* to = p + (t.row0 + r) * row_stride + t.column0;
      const float* v = t.values + r * t.values_stride;
      store_part(to, load(v), t.columns);
      store_part(to + kLanes, load(v + kLanes), t.columns - kLanes);
    }
  });
}

void run_step(const EpilogueTile& t, const EpilogueStep& step) {
  const float* floats = static_cast<const float*>(step.data);
  const F32 value = set1(step.value);
  const auto by_column = [&](auto change) {
    const float* p = floats + t.batch_index * step.batch_stride + t.column0;
    const F32 low = load_part(p, t.columns), high = load_part(p + kLanes, t.columns - kLanes);
    each(t, [&](F32 v, int64_t, int h) { return change(v, h ? high : low); });
  };
  const auto by_element = [&](auto change) {
    with_dtype(step.dtype, step.data, [&](const auto* p) {
      p += t.batch_index * step.batch_stride;
      each(t, [&](F32 v, int64_t r, int h) {
        return change(v, load_part(p + (t.row0 + r) * step.row_stride + t.column0 + h * kLanes,
                                   t.columns - h * kLanes));
      });
    });
  };
  switch (step.kind) {
    case EpilogueKind::scale:
      return each(t, [&](F32 v, int64_t, int) { return v * value; });
    case EpilogueKind::column_scale:
      return by_column([](F32 v, F32 x) { return v * x; });
    case EpilogueKind::column_bias:
      return by_column([](F32 v, F32 x) { return v + x; });
    case EpilogueKind::row_scale:
      return each(t, [&](F32 v, int64_t r, int) { return v * set1(floats[t.row0 + r]); });
    case EpilogueKind::row_bias:
      return each(t, [&](F32 v, int64_t r, int) { return v + set1(floats[t.row0 + r]); });
    case EpilogueKind::unary:
      return kUnarySteps.unary[int(step.function)](t);
    case EpilogueKind::gate:
      return kUnarySteps.gate[int(step.function)](t);
    case EpilogueKind::add:
      return by_element([&](F32 v, F32 x) { return fma(value, x, v); });
    case EpilogueKind::multiply:
      return by_element([](F32 v, F32 x) { return v * x; });
    case EpilogueKind::store:
      return with_dtype(step.dtype, step.data, [&](auto* p) {
        write(t, step.dtype, p + t.batch_index * step.batch_stride, step.row_stride);
      });
  }
}

}  // namespace

void finish_tile(const EpilogueTile& t, const Epilogue& program, int first) {
  for (int i = first; i < program.count; ++i) run_step(t, program.steps[i]);
  const bool there =
      t.c_dtype == DType::f32 && t.values == static_cast<float*>(t.c) + t.row0 * t.c_row_stride + t.column0;
  if (!there) write(t, t.c_dtype, t.c, t.c_row_stride);
}

}  // namespace rlx::cpu::RLX_ISA
