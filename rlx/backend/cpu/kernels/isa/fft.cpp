// Plan: as many transforms as a vector has lanes run side by side, one in each lane, so that every butterfly
// is arithmetic on whole vectors without shuffles and twiddle factors are broadcast from memory. The block
// lives in `work` as [m][re vector, im vector], twice, and the passes go back and forth between the two
// (Stockham's order: the result comes out in natural order, every pass reads at distance m / radix and writes
// at distance `outer`):
//   y[q + outer (radix p + k)] = w^(p k) sum over j of x[q + outer (p + inner j)] e^(-2 pi i j k / radix),
//   w = e^(-2 pi i / (radix inner)),  p < inner, q < outer.
// Rows are transposed into the lanes by squares of vectors; columns are read by the first pass and written by
// the last one as they are. Radix 8 takes 16 vectors of data, half of the registers of AVX-512.
// Bound: a block of up to 128 points stays in L1, where a pass costs two loads and two stores for a pair of
// vectors against about 12 arithmetic instructions, so arithmetic and stores share the time.
#include "rlx/backend/cpu/kernels/fft.h"
#include "rlx/backend/cpu/simd/butterfly.h"
#include "rlx/backend/cpu/simd/shuffle.h"
#include "rlx/backend/cpu/simd/transpose.h"

namespace rlx::cpu::RLX_ISA {
namespace {

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  using Type = F32;
};
template <>
struct VectorOf<double> {
  using Type = F64;
};
template <class T>
using Vec = typename VectorOf<T>::Type;
template <class T>
constexpr int kWidth = kVectorBytes / int(sizeof(T));

// ---- passes ----

/// Where a pass takes vectors from and puts them: element a of all lanes.
template <class T>
struct Work {
  T* at;
  RLX_INLINE void get(int64_t a, Vec<T>& re, Vec<T>& im) const {
    re = load(at + a * 2 * kWidth<T>), im = load(at + a * 2 * kWidth<T> + kWidth<T>);
  }
  RLX_INLINE void put(int64_t a, Vec<T> re, Vec<T> im) const {
    store(at + a * 2 * kWidth<T>, re);
    store(at + a * 2 * kWidth<T> + kWidth<T>, im);
  }
};
/// Neighbouring lanes in memory, all of them present: complex numbers as they are, or their parts apart.
template <class T, bool Swap>
struct PairColumns {
  T* at;
  int64_t step;
  T scale;
  RLX_INLINE void get(int64_t a, Vec<T>& re, Vec<T>& im) const {
    const Vec<T> low = load(at + a * step), high = load(at + a * step + kWidth<T>);
    re = every_second(low, high, Swap), im = every_second(low, high, !Swap);
  }
  RLX_INLINE void put(int64_t a, Vec<T> re, Vec<T> im) const {
    const Vec<T> first = (Swap ? im : re) * scale, second = (Swap ? re : im) * scale;
    store(at + a * step, interleave(first, second, false));
    store(at + a * step + kWidth<T>, interleave(first, second, true));
  }
};
template <class T>
struct PartColumns {
  T *re_at, *im_at;
  int64_t step;
  T scale;
  RLX_INLINE void get(int64_t a, Vec<T>& re, Vec<T>& im) const {
    re = load(re_at + a * step), im = load(im_at + a * step);
  }
  RLX_INLINE void put(int64_t a, Vec<T> re, Vec<T> im) const {
    store(re_at + a * step, re * scale);
    store(im_at + a * step, im * scale);
  }
};

template <int R, bool Twiddled, class T, class From, class To>
RLX_INLINE void pass_one(From from, int64_t x, int64_t x_step, To to, int64_t y, int64_t y_step, const T* w,
                         const T* roots) {
  Vec<T> re[R], im[R];
#pragma GCC unroll 16
  for (int j = 0; j < R; ++j) from.get(x + j * x_step, re[j], im[j]);
  butterfly<R>(re, im, roots);
#pragma GCC unroll 16
  for (int k = 0; k < R; ++k) {
    if (Twiddled && k > 0) turn(re[k], im[k], w[2 * k - 2], w[2 * k - 1]);
    to.put(y + k * y_step, re[k], im[k]);
  }
}

template <int R, class T, class From, class To>
__attribute__((noinline)) void pass(const FftStage& s, From from, To to, const T* factors) {
  const T* roots = factors + s.roots;
  const int64_t x_step = s.outer * s.inner, y_step = s.outer;
  for (int64_t q = 0; q < s.outer; ++q)  // p = 0: all factors are 1
    pass_one<R, false>(from, q, x_step, to, q, y_step, factors, roots);
  for (int64_t p = 1; p < s.inner; ++p) {
    const T* w = factors + s.twiddles + p * (R - 1) * 2;
    for (int64_t q = 0; q < s.outer; ++q)
      pass_one<R, true>(from, q + s.outer * p, x_step, to, q + s.outer * R * p, y_step, w, roots);
  }
}

template <class T, class From, class To>
__attribute__((noinline)) void pass_any(const FftStage& s, From from, To to, const T* factors) {
  const int R = s.radix;
  for (int64_t p = 0; p < s.inner; ++p) {
    const T* w = factors + s.twiddles + p * (R - 1) * 2;
    for (int64_t q = 0; q < s.outer; ++q) {
      Vec<T> re[kMaxRadix], im[kMaxRadix];
      for (int j = 0; j < R; ++j) from.get(q + s.outer * (p + s.inner * j), re[j], im[j]);
      butterfly_odd(R, re, im, factors + s.roots);
      for (int k = 0; k < R; ++k) {
        if (k > 0) turn(re[k], im[k], w[2 * k - 2], w[2 * k - 1]);
        to.put(q + s.outer * (R * p + k), re[k], im[k]);
      }
    }
  }
}

template <class T, class From, class To>
void run_pass(const FftStage& s, From from, To to, const T* factors) {
  switch (s.radix) {
    case 2:
      return pass<2>(s, from, to, factors);
    case 3:
      return pass<3>(s, from, to, factors);
    case 4:
      return pass<4>(s, from, to, factors);
    case 5:
      return pass<5>(s, from, to, factors);
    case 7:
      return pass<7>(s, from, to, factors);
    case 8:
      return pass<8>(s, from, to, factors);
    case 16:
      return pass<16>(s, from, to, factors);
    default:
      return pass_any(s, from, to, factors);
  }
}

/// The radices that passes at the ends of a block are compiled for.
bool ends_with(int radix) { return radix == 4 || radix == 8; }
template <class T, class From, class To>
void run_end(const FftStage& s, From from, To to, const T* factors) {
  s.radix == 8 ? pass<8>(s, from, to, factors) : pass<4>(s, from, to, factors);
}

// ---- between memory and lanes ----

template <class T>
RLX_INLINE Vec<T> load_some(const T* p, int n) {
  return n >= kWidth<T> ? load(p) : load_n(p, n > 0 ? n : 0);
}
template <class T>
RLX_INLINE void store_some(T* p, Vec<T> v, int n) {
  if (n >= kWidth<T>) {
    store(p, v);
  } else if (n > 0) {
    store_n(p, v, n);
  }
}

// One element of every lane, by the layout's fastest way; `columns`: lanes are neighbours in memory.
template <class T>
RLX_INLINE void load_element(const FftBlock<T>& b, int64_t a, bool interleaved, Vec<T>& re, Vec<T>& im) {
  constexpr int L = kWidth<T>;
  const T* at = b.x_re + a * b.x_step;
  if (interleaved && b.x_lane == 2) {
    const Vec<T> low = load_some(at, 2 * b.lanes), high = load_some(at + L, 2 * b.lanes - L);
    re = every_second(low, high, false), im = every_second(low, high, true);
  } else if (b.x_lane == 1) {
    re = load_some(at, b.lanes);
    im = b.x_im != nullptr ? load_some(b.x_im + a * b.x_step, b.lanes) : Vec<T>{};
  } else {
    re = im = Vec<T>{};
    for (int l = 0; l < b.lanes; ++l) {
      re[l] = at[l * b.x_lane];
      if (b.x_im != nullptr) im[l] = b.x_im[a * b.x_step + l * b.x_lane];
    }
  }
}

template <class T>
RLX_INLINE void store_element(const FftBlock<T>& b, int64_t a, bool interleaved, Vec<T> re, Vec<T> im) {
  constexpr int L = kWidth<T>;
  T* at = b.y_re + a * b.y_step;
  if (interleaved && b.y_lane == 2) {
    store_some(at, interleave(re, im, false), 2 * b.lanes);
    store_some(at + L, interleave(re, im, true), 2 * b.lanes - L);
  } else if (b.y_lane == 1) {
    store_some(at, re, b.lanes);
    if (b.y_im != nullptr) store_some(b.y_im + a * b.y_step, im, b.lanes);
  } else {
    for (int l = 0; l < b.lanes; ++l) {
      at[l * b.y_lane] = re[l];
      if (b.y_im != nullptr) b.y_im[a * b.y_step + l * b.y_lane] = im[l];
    }
  }
}

template <class T>
RLX_INLINE void put(const FftBlock<T>& b, T* work, int64_t a, Vec<T> re, Vec<T> im) {
  constexpr int L = kWidth<T>;
  if (b.twist != nullptr) {
    const Vec<T> c = load(b.twist + a * 2 * L), s = load(b.twist + a * 2 * L + L), r = re;
    re = fma(r, c, -(im * s));
    im = fma(r, s, im * c);
  }
  store(work + a * 2 * L, re);
  store(work + a * 2 * L + L, im);
}

// Rows that are missing repeat the last one; their results are not stored.
template <class T>
RLX_INLINE void load_square(const T* x, int64_t lane, int lanes, Vec<T> (&v)[kWidth<T>]) {
  for (int l = 0; l < kWidth<T>; ++l) v[l] = load(x + (l < lanes ? l : lanes - 1) * lane);
  transpose(v);
}
template <class T>
RLX_INLINE void store_square(T* y, int64_t lane, int lanes, Vec<T> (&v)[kWidth<T>]) {
  transpose(v);
  for (int l = 0; l < lanes; ++l) store(y + l * lane, v[l]);
}

template <class T>
void load_block(const FftBlock<T>& b, T* work) {
  constexpr int L = kWidth<T>;
  const bool interleaved = b.x_im == b.x_re + 1;
  int64_t a = 0;
  if (interleaved && b.x_step == 2) {
    for (; a + L / 2 <= b.m; a += L / 2) {
      Vec<T> v[L];
      load_square(b.x_re + 2 * a, b.x_lane, b.lanes, v);
      for (int i = 0; i < L / 2; ++i)
        put(b, work, a + i, v[2 * i + (b.swap_in ? 1 : 0)], v[2 * i + (b.swap_in ? 0 : 1)]);
    }
  } else if (b.x_step == 1 && b.x_im != nullptr) {
    for (; a + L <= b.m; a += L) {
      Vec<T> re[L], im[L];
      load_square((b.swap_in ? b.x_im : b.x_re) + a, b.x_lane, b.lanes, re);
      load_square((b.swap_in ? b.x_re : b.x_im) + a, b.x_lane, b.lanes, im);
      for (int i = 0; i < L; ++i) put(b, work, a + i, re[i], im[i]);
    }
  }
  for (; a < b.m; ++a) {
    Vec<T> re, im;
    load_element(b, a, interleaved, re, im);
    put(b, work, a, b.swap_in ? im : re, b.swap_in ? re : im);
  }
}

template <class T>
void store_block(const FftBlock<T>& b, const T* work) {
  constexpr int L = kWidth<T>;
  const bool interleaved = b.y_im == b.y_re + 1;
  const Vec<T> scale = set1(b.scale);
  const int64_t re_at = b.swap_out ? L : 0, im_at = L - re_at;
  int64_t a = 0;
  if (interleaved && b.y_step == 2) {
    for (; a + L / 2 <= b.m; a += L / 2) {
      Vec<T> v[L];
      for (int i = 0; i < L / 2; ++i) {
        v[2 * i] = load(work + (a + i) * 2 * L + re_at) * scale;
        v[2 * i + 1] = load(work + (a + i) * 2 * L + im_at) * scale;
      }
      store_square(b.y_re + 2 * a, b.y_lane, b.lanes, v);
    }
  } else if (b.y_step == 1 && b.y_im != nullptr) {
    for (; a + L <= b.m; a += L) {
      Vec<T> re[L], im[L];
      for (int i = 0; i < L; ++i) {
        re[i] = load(work + (a + i) * 2 * L + re_at) * scale;
        im[i] = load(work + (a + i) * 2 * L + im_at) * scale;
      }
      store_square(b.y_re + a, b.y_lane, b.lanes, re);
      store_square(b.y_im + a, b.y_lane, b.lanes, im);
    }
  }
  for (; a < b.m; ++a) {
    store_element(b, a, interleaved, load(work + a * 2 * L + re_at) * scale,
                  load(work + a * 2 * L + im_at) * scale);
  }
}

// The first pass reads whole columns itself and the last one writes them: a sweep over the block saved.
template <class T>
bool first_pass(const FftBlock<T>& b, Work<T> to) {
  if (b.stage_count < 2 || b.lanes < kWidth<T> || b.twist != nullptr || !ends_with(b.stages[0].radix))
    return false;
  T* re = const_cast<T*>(b.x_re);
  T* im = const_cast<T*>(b.x_im);
  if (b.x_lane == 2 && im == re + 1) {
    if (b.swap_in) {
      run_end(b.stages[0], PairColumns<T, true>{re, b.x_step, T(1)}, to, b.factors);
    } else {
      run_end(b.stages[0], PairColumns<T, false>{re, b.x_step, T(1)}, to, b.factors);
    }
    return true;
  }
  if (b.x_lane != 1 || im == nullptr) return false;
  run_end(b.stages[0], PartColumns<T>{b.swap_in ? im : re, b.swap_in ? re : im, b.x_step, T(1)}, to,
          b.factors);
  return true;
}

template <class T>
bool last_pass(const FftBlock<T>& b, Work<T> from) {
  const FftStage& s = b.stages[b.stage_count - 1];
  if (b.stage_count < 2 || b.lanes < kWidth<T> || !ends_with(s.radix)) return false;
  if (b.y_lane == 2 && b.y_im == b.y_re + 1) {
    if (b.swap_out) {
      run_end(s, from, PairColumns<T, true>{b.y_re, b.y_step, b.scale}, b.factors);
    } else {
      run_end(s, from, PairColumns<T, false>{b.y_re, b.y_step, b.scale}, b.factors);
    }
    return true;
  }
  if (b.y_lane != 1 || b.y_im == nullptr) return false;
  run_end(s, from,
          PartColumns<T>{b.swap_out ? b.y_im : b.y_re, b.swap_out ? b.y_re : b.y_im, b.y_step, b.scale},
          b.factors);
  return true;
}

// As many points as lanes, in rows: transposed, turned and transformed without leaving the registers.
template <class T, class To>
__attribute__((noinline)) void square(const FftBlock<T>& b, To to) {
  constexpr int L = kWidth<T>;
  Vec<T> re[L], im[L];
  load_square(b.x_re, b.x_lane, L, re);
  load_square(b.x_im, b.x_lane, L, im);
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i) {
    const Vec<T> c = load(b.twist + i * 2 * L), s = load(b.twist + i * 2 * L + L), r = re[i];
    re[i] = fma(r, c, -(im[i] * s));
    im[i] = fma(r, s, im[i] * c);
  }
  butterfly<L>(re, im, b.factors);
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i) to.put(i, re[i], im[i]);
}
template <class T>
bool square_pass(const FftBlock<T>& b) {
  constexpr int L = kWidth<T>;
  if (b.m != L || b.lanes != L || b.stage_count != 1 || b.twist == nullptr || b.x_step != 1 || b.swap_in)
    return false;
  if (b.y_lane == 2 && b.y_im == b.y_re + 1) {
    if (b.swap_out) {
      square(b, PairColumns<T, true>{b.y_re, b.y_step, b.scale});
    } else {
      square(b, PairColumns<T, false>{b.y_re, b.y_step, b.scale});
    }
    return true;
  }
  if (b.y_lane != 1 || b.y_im == nullptr) return false;
  square(b, PartColumns<T>{b.swap_out ? b.y_im : b.y_re, b.swap_out ? b.y_re : b.y_im, b.y_step, b.scale});
  return true;
}

template <class T>
void block(const FftBlock<T>& b) {
  if (square_pass(b)) return;
  Work<T> from{b.work}, to{b.work + b.m * 2 * kWidth<T>};
  int i = 0;
  if (first_pass(b, from)) {
    i = 1;
  } else {
    load_block(b, from.at);
  }
  for (; i < b.stage_count; ++i) {
    if (i + 1 == b.stage_count && last_pass(b, from)) return;
    run_pass(b.stages[i], from, to, b.factors);
    const Work<T> t = from;
    from = to, to = t;
  }
  store_block(b, from.at);
}

// ---- real signals ----

// With Z the transform of z[t] = x[2t] + i x[2t+1], E = (Z[k] + conj Z[h-k]) / 2 and O = (Z[k] - conj Z[h-k])
// / 2i are the transforms of the even and the odd samples, and X[k] = E + w^k O.
template <class T>
void unpack(const FftHalves<T>& p) {
  constexpr int L = kWidth<T>;
  const auto one = [&](int64_t k) {
    const int64_t a = k == p.h ? 0 : k, c = k == 0 ? 0 : p.h - k;
    const T er = T(0.5) * (p.x_re[a] + p.x_re[c]), ei = T(0.5) * (p.x_im[a] - p.x_im[c]);
    const T orr = T(0.5) * (p.x_im[a] + p.x_im[c]), oi = T(0.5) * (p.x_re[c] - p.x_re[a]);
    p.y_re[k * p.y_stride] = er + (p.w_re[k] * orr - p.w_im[k] * oi);
    p.y_im[k * p.y_stride] = ei + (p.w_re[k] * oi + p.w_im[k] * orr);
  };
  const bool interleaved = p.y_stride == 2 && p.y_im == p.y_re + 1;
  typename LanesOf<Vec<T>>::Index backwards;
  for (int i = 0; i < L; ++i) backwards[i] = L - 1 - i;
  int64_t k = 0;
  one(k++);
  for (; k + L <= p.h; k += L) {
    const Vec<T> ar = load(p.x_re + k), ai = load(p.x_im + k);
    const Vec<T> cr = shuffle(load(p.x_re + p.h - k - L + 1), backwards),
                 ci = shuffle(load(p.x_im + p.h - k - L + 1), backwards);
    const Vec<T> er = T(0.5) * (ar + cr), ei = T(0.5) * (ai - ci), orr = T(0.5) * (ai + ci),
                 oi = T(0.5) * (cr - ar), wr = load(p.w_re + k), wi = load(p.w_im + k);
    const Vec<T> re = er + fma(wr, orr, -(wi * oi)), im = ei + fma(wr, oi, wi * orr);
    if (interleaved) {
      store(p.y_re + 2 * k, interleave(re, im, false));
      store(p.y_re + 2 * k + L, interleave(re, im, true));
    } else {
      for (int i = 0; i < L; ++i) p.y_re[(k + i) * p.y_stride] = re[i], p.y_im[(k + i) * p.y_stride] = im[i];
    }
  }
  for (; k <= p.h; ++k) one(k);
}

// Backwards: Z[k] = (X[k] + conj X[h-k]) + i conj(w^k) (X[k] - conj X[h-k]), twice E + i O, since an unscaled
// inverse over 2h points is twice one over h.
template <class T>
void pack(const FftHalves<T>& p) {
  for (int64_t k = 0; k < p.h; ++k) {
    const int64_t a = k * p.x_stride, c = (p.h - k) * p.x_stride;
    const bool ends = k == 0;
    const T ai = ends ? T(0) : p.x_im[a], ci = ends ? T(0) : p.x_im[c];
    const T er = p.x_re[a] + p.x_re[c], ei = ai - ci, dr = p.x_re[a] - p.x_re[c], di = ai + ci;
    const T orr = p.w_re[k] * dr + p.w_im[k] * di, oi = p.w_re[k] * di - p.w_im[k] * dr;
    p.y_re[k] = er - oi;
    p.y_im[k] = ei + orr;
  }
}

template <class T>
void multiply(const T* a_re, const T* a_im, const T* b_re, const T* b_im, int64_t n, T* y_re, T* y_im) {
  constexpr int L = kWidth<T>;
  for (int64_t i = 0; i < n; i += L) {
    const int l = int(n - i < L ? n - i : L);
    const Vec<T> ar = load_some(a_re + i, l), ai = load_some(a_im + i, l), br = load_some(b_re + i, l),
                 bi = load_some(b_im + i, l);
    store_some(y_re + i, fma(ar, br, -(ai * bi)), l);
    store_some(y_im + i, fma(ar, bi, ai * br), l);
  }
}

template <class T>
FftKernelsOf<T> kernels_of() {
  return {kWidth<T>, block<T>, unpack<T>, pack<T>, multiply<T>};
}

}  // namespace

FftKernels fft_kernels() { return {kernels_of<float>(), kernels_of<double>()}; }

}  // namespace rlx::cpu::RLX_ISA
