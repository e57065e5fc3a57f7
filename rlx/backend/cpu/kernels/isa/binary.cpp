// Plan: one loop per function, type and kind of operand (array or single element), which the compiler turns
// into vectors of the level; pow works on vectors itself, rem and the division of integers have no vector
// form. Bound: memory, two reads and one write per element.
#include "rlx/backend/cpu/kernels/binary.h"

#include "rlx/backend/cpu/kernels/isa/indices.h"
#include "rlx/backend/cpu/simd/math_f64.h"

namespace rlx::cpu::RLX_ISA {
namespace {

template <class T>
struct Wrapping {
  using Type = T;
};
template <>
struct Wrapping<int32_t> {
  using Type = uint32_t;
};
template <>
struct Wrapping<int64_t> {
  using Type = uint64_t;
};
template <class T>
inline constexpr bool kInteger = T(1) / 2 == 0;

template <Binary op, class T>
RLX_INLINE T apply(T a, T b) {
  using U = typename Wrapping<T>::Type;
  if constexpr (op == Binary::add) return T(U(a) + U(b));
  if constexpr (op == Binary::sub) return T(U(a) - U(b));
  if constexpr (op == Binary::mul) return T(U(a) * U(b));
  if constexpr (op == Binary::max) return ((a > b) | (a != a)) ? a : b;
  if constexpr (op == Binary::min) return ((a < b) | (a != a)) ? a : b;
  if constexpr (op == Binary::div) {
    if constexpr (kInteger<T>) return b == 0 ? T(0) : (b == T(-1) ? T(U(0) - U(a)) : T(a / b));
    return T(a / b);
  }
  if constexpr (op == Binary::rem) {
    if constexpr (kInteger<T>) return b == 0 || b == T(-1) ? T(0) : T(a % b);
    if constexpr (!kInteger<T>)
      return T(sizeof(T) == 4 ? __builtin_fmodf(float(a), float(b)) : __builtin_fmod(a, b));
  }
  return a;
}

template <Comparison op, class T>
RLX_INLINE uint8_t holds(T a, T b) {
  if constexpr (op == Comparison::eq) return a == b;
  if constexpr (op == Comparison::ne) return a != b;
  if constexpr (op == Comparison::lt) return a < b;
  if constexpr (op == Comparison::le) return a <= b;
  if constexpr (op == Comparison::gt) return a > b;
  return a >= b;
}

// y may be a or b: element i is read before it is written, and no other.
template <class T, class Y, class F>
RLX_INLINE void line(const T* a, bool one_a, const T* b, bool one_b, Y* y, int64_t n, F f) {
  if (n <= 0) return;
  const T a0 = *a, b0 = *b;
  if (one_a && one_b) {
    const Y v = f(a0, b0);
    for (int64_t i = 0; i < n; ++i) y[i] = v;
  } else if (one_a) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = f(a0, b[i]);
  } else if (one_b) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b0);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
  }
}

template <class T>
void power(const T* a, bool one_a, const T* b, bool one_b, T* y, int64_t n) {
  constexpr int width = kVectorBytes / int(sizeof(T));
  if (one_b && *b == 2) return line(a, one_a, b, one_b, y, n, [](T v, T) { return v * v; });
  for (int64_t i = 0; i < n; i += width) {
    const int lanes = n - i < width ? int(n - i) : width;
    const auto fetch = [&](const T* p, bool one) { return one ? set1(*p) : load_n(p + i, lanes); };
    store_n(y + i, pow(fetch(a, one_a), fetch(b, one_b)), lanes);
  }
}

template <Binary op, class T>
void binary_line(const void* a, bool one_a, const void* b, bool one_b, void* y, int64_t n) {
  const T *p = static_cast<const T*>(a), *q = static_cast<const T*>(b);
  if constexpr (op == Binary::pow) {
    power(p, one_a, q, one_b, static_cast<T*>(y), n);
  } else {
    line(p, one_a, q, one_b, static_cast<T*>(y), n, [](T u, T v) { return apply<op>(u, v); });
  }
}

template <Comparison op, class T>
void compare_line(const void* a, bool one_a, const void* b, bool one_b, void* y, int64_t n) {
  line(static_cast<const T*>(a), one_a, static_cast<const T*>(b), one_b, static_cast<uint8_t*>(y), n,
       [](T u, T v) { return holds<op>(u, v); });
}

template <class T>
void select_line(const uint8_t* condition, const void* a, bool one_a, const void* b, bool one_b, void* y,
                 int64_t n) {
  if (n <= 0) return;
  const T *p = static_cast<const T*>(a), *q = static_cast<const T*>(b);
  T* out = static_cast<T*>(y);
  const T p0 = *p, q0 = *q;
  if (one_a && one_b) {
    for (int64_t i = 0; i < n; ++i) out[i] = condition[i] ? p0 : q0;
  } else if (one_a) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T v = q[i];
      out[i] = condition[i] ? p0 : v;
    }
  } else if (one_b) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T u = p[i];
      out[i] = condition[i] ? u : q0;
    }
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T u = p[i], v = q[i];
      out[i] = condition[i] ? u : v;
    }
  }
}

void stream_line(const void* from, void* to, int64_t bytes) {
  const char* f = static_cast<const char*>(from);
  char* t = static_cast<char*>(to);
  int64_t i = 0;
  for (; i + kVectorBytes <= bytes; i += kVectorBytes) {
    stream(reinterpret_cast<float*>(t + i), load_bytes<F32>(f + i));
  }
  std::memcpy(t + i, f + i, size_t(bytes - i));
}
void fence() { stream_fence(); }

template <int... i, int... j, int... c>
BinaryKernels make(Indices<i...>, Indices<j...>, Indices<c...>) {
  return {{binary_line<Binary(i), float>...},
          {binary_line<Binary(i), double>...},
          {binary_line<Binary(j), int32_t>...},
          {binary_line<Binary(j), int64_t>...},
          {compare_line<Comparison(c), float>...},
          {compare_line<Comparison(c), double>...},
          {compare_line<Comparison(c), int32_t>...},
          {compare_line<Comparison(c), int64_t>...},
          {compare_line<Comparison(c), uint8_t>...},
          {select_line<uint8_t>, select_line<uint16_t>, select_line<uint32_t>, select_line<uint64_t>},
          stream_line,
          fence};
}

}  // namespace

BinaryKernels binary_kernels() {
  return make(MakeIndices<kBinaryCount>(), MakeIndices<kBinaryCount - 1>(), MakeIndices<kComparisonCount>());
}

}  // namespace rlx::cpu::RLX_ISA
