// Plan: rows go through four independent vectors of running results, which hide the latency of one operation;
// columns through four neighbouring vectors that stay in registers while the rows go by. Sums and products of
// f32 are carried in f64: two conversions and two additions per vector, still faster than memory delivers.
// Bound: one read of memory per element.
#include "rlx/backend/cpu/kernels/reduce.h"

#include "rlx/backend/cpu/simd/math_f64.h"

namespace rlx::cpu::RLX_ISA {
namespace {

template <class T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
  static constexpr int lanes = kVectorBytes / int(sizeof(T));
};
template <class T>
inline constexpr bool kFloat = T(1) / 2 != 0;
template <class T>
struct Limits {  // of integers
  static constexpr T highest = T(~T(0)) < 0 ? T((uint64_t(1) << (8 * sizeof(T) - 1)) - 1) : T(~T(0));
  static constexpr T lowest = T(-highest - 1);
};
template <>
struct Limits<uint8_t> {
  static constexpr uint8_t highest = 255, lowest = 0;
};
template <>
struct Limits<float> {
  static constexpr float highest = __builtin_inff(), lowest = -__builtin_inff();
};
template <>
struct Limits<double> {
  static constexpr double highest = __builtin_inf(), lowest = -__builtin_inf();
};

template <class T, Fold fold>
constexpr T neutral() {
  if constexpr (fold == Fold::sum) return 0;
  if constexpr (fold == Fold::prod) return 1;
  if constexpr (fold == Fold::max) return Limits<T>::lowest;
  return Limits<T>::highest;
}

// What stands in for the lanes behind the end of a row.
template <class T, Fold fold, Term term>
constexpr T padding() {
  if constexpr (term == Term::exponential) return Limits<T>::lowest;
  if constexpr (term == Term::square) return 0;
  return neutral<T, fold>();
}

// Integers wrap, and only unsigned ones may.
template <class V>
struct Wrapping {
  using Type = V;
};
template <>
struct Wrapping<I32> {
  using Type = U32;
};
template <>
struct Wrapping<I64> {
  using Type = U64;
};

// On scalars and vectors alike; a NaN in either stays.
template <Fold fold, class V>
RLX_INLINE V combine(V a, V b) {
  using U = typename Wrapping<V>::Type;
  if constexpr (fold == Fold::sum) return (V)((U)a + (U)b);
  if constexpr (fold == Fold::prod) return (V)((U)a * (U)b);
  if constexpr (fold == Fold::max) return ((b > a) | (b != b)) ? b : a;
  return ((b < a) | (b != b)) ? b : a;
}

/// One vector of running results.
template <class T, Fold fold, Term term>
struct Running {
  using V = typename VectorOf<T>::Type;
  V v = V{} + neutral<T, fold>();

  RLX_INLINE void add(V x, V centre) {
    if constexpr (term == Term::square) x = x * x;
    if constexpr (term == Term::centred_square) x = (x - centre) * (x - centre);
    if constexpr (term == Term::exponential) {
      if constexpr (sizeof(T) == 8) x = exp(x - centre);
    }
    v = combine<fold>(v, x);
  }
  RLX_INLINE T lane(int i) const { return v[i]; }
};
template <class T, Fold fold>
inline constexpr bool kWide = sizeof(T) == 4 && kFloat<T> && (fold == Fold::sum || fold == Fold::prod);

/// Sums and products of f32.
template <Fold fold, Term term>
struct RunningWide {
  F64Pair v = {set1(neutral<double, fold>()), set1(neutral<double, fold>())};

  RLX_INLINE void add(F32 x, F32 centre) {
    if constexpr (term == Term::exponential) x = exp(x - centre);
    F64Pair d = to_double(x);
    if constexpr (term == Term::square) d = {d.low * d.low, d.high * d.high};
    v = {combine<fold>(v.low, d.low), combine<fold>(v.high, d.high)};
  }
  RLX_INLINE double lane(int i) const { return i < kLanes64 ? v.low[i] : v.high[i - kLanes64]; }
};
/// The distance from a centre in f64.
template <>
struct RunningWide<Fold::sum, Term::centred_square> {
  F64Pair v = {};

  RLX_INLINE void add(F32 x, F64Pair centre) {
    const F64Pair d = to_double(x);
    const F64 low = d.low - centre.low, high = d.high - centre.high;
    v = {fma(low, low, v.low), fma(high, high, v.high)};
  }
  RLX_INLINE double lane(int i) const { return i < kLanes64 ? v.low[i] : v.high[i - kLanes64]; }
};

template <class T, Fold fold, Term term, bool wide = kWide<T, fold>>
struct Choose {
  using Type = Running<T, fold, term>;
};
template <class T, Fold fold, Term term>
struct Choose<T, fold, term, true> {
  using Type = RunningWide<fold, term>;
};

template <class T, Term term>
RLX_INLINE auto spread(double centre) {
  if constexpr (sizeof(T) == 4 && term == Term::centred_square) {
    return F64Pair{set1(centre), set1(centre)};
  } else {
    return typename VectorOf<T>::Type{} + T(term == Term::value ? 0 : centre);
  }
}
// The centres of the next lanes.
template <class T, Term term>
RLX_INLINE auto gather_centres(const double* centre, int lanes) {
  auto v = spread<T, term>(0);
  if constexpr (term == Term::centred_square || term == Term::exponential) {
    for (int i = 0; i < lanes; ++i) {
      if constexpr (sizeof(T) == 4 && term == Term::centred_square) {
        if (i < kLanes64)
          v.low[i] = centre[i];
        else
          v.high[i - kLanes64] = centre[i];
      } else {
        v[i] = T(centre[i]);
      }
    }
  }
  return v;
}

template <class T, Fold fold, class Value>
RLX_INLINE void fold_into(Carry& carry, Value value) {
  if constexpr (kFloat<T>) {
    carry.real = combine<fold>(carry.real, double(value));
  } else {
    using U = uint64_t;
    if constexpr (fold == Fold::sum) {
      carry.integer = int64_t(U(carry.integer) + U(int64_t(value)));
    } else if constexpr (fold == Fold::prod) {
      carry.integer = int64_t(U(carry.integer) * U(int64_t(value)));
    } else {
      carry.integer = combine<fold>(carry.integer, int64_t(value));
    }
  }
}

template <class T, Fold fold, Term term>
void fold_row(const void* from, int64_t n, double centre, Carry* carry) {
  using V = typename VectorOf<T>::Type;
  constexpr int lanes = VectorOf<T>::lanes;
  const T* x = static_cast<const T*>(from);
  typename Choose<T, fold, term>::Type r[4];
  const auto c = spread<T, term>(centre);
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) r[k].add(load_bytes<V>(x + i + k * lanes), c);
  }
  for (; i + lanes <= n; i += lanes) r[0].add(load_bytes<V>(x + i), c);
  if constexpr (term == Term::centred_square) {  // no padding has distance 0 from a centre that is no T
    for (; i < n; ++i) fold_into<T, fold>(*carry, (double(x[i]) - centre) * (double(x[i]) - centre));
  } else if (i < n) {
    V tail = V{} + padding<T, fold, term>();
    std::memcpy(&tail, x + i, size_t(n - i) * sizeof(T));
    r[1].add(tail, c);
  }
  // Lanes are added one by one: a short row leaves out those that saw nothing.
  const int used = n >= 4 * lanes ? 4 : n % lanes != 0 ? 2 : 1;
  for (int k = 0; k < used; ++k) {
    for (int lane = 0; lane < lanes; ++lane) fold_into<T, fold>(*carry, r[k].lane(lane));
  }
}

template <class T, Fold fold, Term term>
void fold_columns(const void* from, int64_t stride, int64_t n, int64_t width, const double* centre,
                  Carry* carry) {
  using V = typename VectorOf<T>::Type;
  using R = typename Choose<T, fold, term>::Type;
  constexpr int lanes = VectorOf<T>::lanes, together = 4;
  const T* x = static_cast<const T*>(from);
  int64_t i = 0;
  for (; i + together * lanes <= width; i += together * lanes) {
    R r[together];
    decltype(gather_centres<T, term>(centre, 0)) c[together];
    for (int k = 0; k < together; ++k) c[k] = gather_centres<T, term>(centre + i + k * lanes, lanes);
    for (int64_t j = 0; j < n; ++j) {
#pragma GCC unroll 4
      for (int k = 0; k < together; ++k) r[k].add(load_bytes<V>(x + j * stride + i + k * lanes), c[k]);
    }
    for (int k = 0; k < together; ++k) {
      for (int lane = 0; lane < lanes; ++lane)
        fold_into<T, fold>(carry[i + k * lanes + lane], r[k].lane(lane));
    }
  }
  for (; i < width; i += lanes) {
    const int left = width - i < lanes ? int(width - i) : lanes;
    R r;
    const auto c = gather_centres<T, term>(centre + i, left);
    for (int64_t j = 0; j < n; ++j) {
      V v = {};
      std::memcpy(&v, x + j * stride + i, size_t(left) * sizeof(T));
      r.add(v, c);
    }
    for (int lane = 0; lane < left; ++lane) fold_into<T, fold>(carry[i + lane], r.lane(lane));
  }
}

// ---- positions ----

template <bool largest, class V>
RLX_INLINE auto beats(V v, V best) {
  const auto wins = largest ? v > best : v < best;
  return wins | ((v != v) & (best == best));
}

// Indices have the size of the elements, so a row is searched in pieces that i32 can count.
template <class T, bool largest>
int64_t arg_row(const void* from, int64_t n) {
  using V = typename VectorOf<T>::Type;
  constexpr int lanes = VectorOf<T>::lanes;
  constexpr int64_t kPiece = int64_t(1) << 30;
  const T* x = static_cast<const T*>(from);
  int64_t best = 0;
  for (int64_t start = 0; start < n; start += kPiece) {
    const int64_t end = n - start < kPiece ? n : start + kPiece;
    int64_t i = start;
    if (end - start >= lanes) {
      V value = load_bytes<V>(x + start);
      decltype(value > value) index, at;
      for (int lane = 0; lane < lanes; ++lane) at[lane] = lane;
      index = at;
      for (i += lanes; i + lanes <= end; i += lanes) {
        at += lanes;
        const V v = load_bytes<V>(x + i);
        const auto takes = beats<largest>(v, value);
        value = takes ? v : value;
        index = takes ? at : index;
      }
      for (int lane = 0; lane < lanes; ++lane) {
        const int64_t j = start + index[lane];
        const bool equal = x[j] == x[best] || (x[j] != x[j] && x[best] != x[best]);
        if (beats<largest>(x[j], x[best]) || (equal && j < best)) best = j;
      }
    }
    for (; i < end; ++i) {
      if (beats<largest>(x[i], x[best])) best = i;
    }
  }
  return best;
}

template <class T, bool largest>
void arg_columns(const void* from, int64_t stride, int64_t n, int64_t width, int64_t* y) {
  using V = typename VectorOf<T>::Type;
  constexpr int lanes = VectorOf<T>::lanes;
  const T* x = static_cast<const T*>(from);
  for (int64_t i = 0; i < width; i += lanes) {
    const int left = width - i < lanes ? int(width - i) : lanes;
    const auto row = [&](int64_t j) {
      V v = {};
      if (left == lanes) return load_bytes<V>(x + j * stride + i);
      std::memcpy(&v, x + j * stride + i, size_t(left) * sizeof(T));
      return v;
    };
    V value = row(0);
    decltype(value > value) index = {}, at = {};
    for (int64_t j = 1; j < n; ++j) {
      at += 1;
      const V v = row(j);
      const auto takes = beats<largest>(v, value);
      value = takes ? v : value;
      index = takes ? at : index;
    }
    for (int lane = 0; lane < left; ++lane) y[i + lane] = index[lane];
  }
}

template <class T, Fold fold, Term term = Term::value>
constexpr FoldKernels fold_kernels() {
  return {fold_row<T, fold, term>, fold_columns<T, fold, term>};
}

}  // namespace

ReduceKernels reduce_kernels() {
#define RLX_FOLDS(T)                                                                         \
  fold_kernels<T, Fold::sum>(), fold_kernels<T, Fold::prod>(), fold_kernels<T, Fold::max>(), \
      fold_kernels<T, Fold::min>()
#define RLX_TERMS(T)                                                                              \
  fold_kernels<T, Fold::sum, Term::square>(), fold_kernels<T, Fold::sum, Term::centred_square>(), \
      fold_kernels<T, Fold::sum, Term::exponential>()
  return {{RLX_FOLDS(float), RLX_TERMS(float)},
          {RLX_FOLDS(double), RLX_TERMS(double)},
          {RLX_FOLDS(int32_t)},
          {RLX_FOLDS(int64_t)},
          {RLX_FOLDS(uint8_t)},
          {{arg_row<float, false>, arg_row<float, true>},
           {arg_row<double, false>, arg_row<double, true>},
           {arg_row<int32_t, false>, arg_row<int32_t, true>},
           {arg_row<int64_t, false>, arg_row<int64_t, true>}},
          {{arg_columns<float, false>, arg_columns<float, true>},
           {arg_columns<double, false>, arg_columns<double, true>},
           {arg_columns<int32_t, false>, arg_columns<int32_t, true>},
           {arg_columns<int64_t, false>, arg_columns<int64_t, true>}}};
#undef RLX_FOLDS
#undef RLX_TERMS
}

}  // namespace rlx::cpu::RLX_ISA
