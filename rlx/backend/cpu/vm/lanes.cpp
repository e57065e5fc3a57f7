#include "rlx/backend/cpu/vm/lanes.h"

#include "rlx/base/error.h"
#include "rlx/base/float16.h"

namespace rlx::cpu::vm {
namespace {

struct Half {
  uint16_t bits;
  operator float() const { return f16_to_f32(bits); }  // NOLINT: a number that is stored otherwise
};
struct Brain {
  uint16_t bits;
  operator float() const { return bf16_to_f32(bits); }  // NOLINT
};
struct Flag {
  uint8_t value;
};

/// body(element of type T) with the C++ type of a dtype.
template <class Body>
void with_element(DType t, Body body) {
  switch (t) {
    case DType::bool_:
      return body(Flag());
    case DType::u8:
      return body(uint8_t());
    case DType::i8:
      return body(int8_t());
    case DType::i16:
      return body(int16_t());
    case DType::i32:
      return body(int32_t());
    case DType::u32:
      return body(uint32_t());
    case DType::i64:
      return body(int64_t());
    case DType::f16:
      return body(Half());
    case DType::bf16:
      return body(Brain());
    case DType::f32:
      return body(float());
    case DType::f64:
      return body(double());
    default:
      RLX_CHECK(false, "vm: elements of ", t);
  }
}

template <class Body>
void with_lane(Lane lane, int width, Body body) {
  switch (lane) {
    case Lane::f32:
      return body(float());
    case Lane::f64:
      return body(double());
    case Lane::i32:
      return body(int32_t());
    case Lane::i64:
      return body(int64_t());
    case Lane::mask:
      return width == 8 ? body(int64_t()) : body(int32_t());
  }
}

template <class L, class T>
L to_lane(T x) {
  if constexpr (std::is_same_v<T, Flag>) {
    return x.value != 0 ? L(-1) : L(0);
  } else {
    return L(x);
  }
}

template <class T, class L>
T from_lane(L x) {
  if constexpr (std::is_same_v<T, Flag>) return Flag{uint8_t(x != 0)};
  if constexpr (std::is_same_v<T, Half>) return Half{f32_to_f16(float(x))};
  if constexpr (std::is_same_v<T, Brain>) return Brain{f32_to_bf16(float(x))};
  if constexpr (std::is_arithmetic_v<T>) return T(x);
}

template <class L>
L joined(Op op, L a, L b) {
  // NOLINTBEGIN(misc-redundant-expression): a number that is not itself is NaN
  if (op == Op::reduce_max) return a > b || a != a ? a : b;
  if (op == Op::reduce_min) return a < b || a != a ? a : b;
  // NOLINTEND(misc-redundant-expression)
  if constexpr (std::is_integral_v<L>) {
    return op == Op::reduce_sum ? L(uint64_t(a) + uint64_t(b)) : L(uint64_t(a) * uint64_t(b));
  } else {
    return op == Op::reduce_sum ? a + b : a * b;
  }
}

}  // namespace

void gather_lanes(DType t, Lane lane, int width, const std::byte* from, const int64_t* offsets, int64_t n,
                  std::byte* lanes) {
  with_element(t, [&](auto element) {
    using T = decltype(element);
    with_lane(lane, width, [&](auto number) {
      using L = decltype(number);
      for (int64_t i = 0; i < n; ++i)
        reinterpret_cast<L*>(lanes)[i] = to_lane<L>(reinterpret_cast<const T*>(from)[offsets[i]]);
    });
  });
}

void scatter_lanes(DType t, Lane lane, int width, const std::byte* lanes, const int64_t* offsets, int64_t n,
                   std::byte* to) {
  with_element(t, [&](auto element) {
    using T = decltype(element);
    with_lane(lane, width, [&](auto number) {
      using L = decltype(number);
      for (int64_t i = 0; i < n; ++i)
        reinterpret_cast<T*>(to)[offsets[i]] = from_lane<T>(reinterpret_cast<const L*>(lanes)[i]);
    });
  });
}

void start_lanes(Lane lane, const region::Constant& start, int64_t n, std::byte* lanes) {
  with_lane(lane, 0, [&](auto number) {
    using L = decltype(number);
    const L x = region::is_float(lane) ? L(start.real) : L(start.integer);
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<L*>(lanes)[i] = x;
  });
}

void join_lanes(Lane lane, Op op, const std::byte* others, int64_t n, std::byte* lanes) {
  with_lane(lane, 0, [&](auto number) {
    using L = decltype(number);
    L* to = reinterpret_cast<L*>(lanes);
    for (int64_t i = 0; i < n; ++i) to[i] = joined(op, to[i], reinterpret_cast<const L*>(others)[i]);
  });
}

}  // namespace rlx::cpu::vm
