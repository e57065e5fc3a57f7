// Products of a warp: mma.sync, and how their operands come from shared memory. Lane = 4 g + t; a register holds P = 4 / size elements.
//   a: register i has row g + 8 (i % 2), depth t P + 4 P (i / 2) ..     (m = 16)
//   b: register i has column g, depth t P + 4 P i ..                      (n = 8)
//   c: element i has row g + 8 (i / 2), column 2 t + i % 2
#pragma once

// Loops that are worth more of the compiler's time than those of kernels.
#define EMULATED_FAST __attribute__((optimize("O3,associative-math,no-signed-zeros,no-trapping-math")))

namespace emulated::ptx {

struct Half {
  static constexpr int kEach = 2;
  static constexpr bool kIsCut = false;
  static float of(unsigned r, int p) { return half_to_float((unsigned short)(r >> (16 * p))); }
  using Sum = float;
};
struct Bfloat {
  static constexpr int kEach = 2;
  static constexpr bool kIsCut = false;
  static float of(unsigned r, int p) { return bfloat_to_float((unsigned short)(r >> (16 * p))); }
  using Sum = float;
};
struct Tf32 {
  static constexpr int kEach = 1;
  static constexpr bool kIsCut = false;
  static float of(unsigned r, int) {
    return bits<float>(r & ~0x1fffu);
  }  // the units do not see the last bits
  using Sum = float;
};
struct Byte {
  static constexpr int kEach = 4;
  static constexpr bool kIsCut = false;
  static int of(unsigned r, int p) { return int((signed char)(r >> (8 * p))); }
  using Sum = int;
};

// Both are 8 bits; the last code of e4m3 is no number, e5m2 is the first half of a half.
struct E4M3 {
  static constexpr int kEach = 4;
  static constexpr bool kIsCut = true;
  static float of(unsigned r, int p) {
    const unsigned code = r >> (8 * p) & 0xff, magnitude = code & 0x7f;
    const float low = float(magnitude) * 0x1p-9f, high = bits<float>((magnitude << 20) + (120u << 23));
    const float size = magnitude == 0x7f ? bits<float>(0x7fc00000u) : magnitude < 8 ? low : high;
    return code & 0x80 ? -size : size;
  }
  using Sum = float;
};
struct E5M2 {
  static constexpr int kEach = 4;
  static constexpr bool kIsCut = true;
  static float of(unsigned r, int p) { return half_to_float((unsigned short)((r >> (8 * p) & 0xff) << 8)); }
  using Sum = float;
};

template <class D>
inline void cvt_f16x2_e4m3x2(D& d, unsigned codes) {
  put(d, unsigned(float_to_half(E4M3::of(codes, 0))) | unsigned(float_to_half(E4M3::of(codes, 1))) << 16);
}

// What is known of fp8 units: terms, the sum among them, are cut to 13 binary places of the largest one before they are added.
inline float cut_sum(float sum, const float* a, const float* b, int n) {
  float largest = __builtin_fabsf(sum), plain = sum;
  for (int k = 0; k < n; ++k) {
    plain += a[k] * b[k];
    largest = __builtin_fmaxf(largest, __builtin_fabsf(a[k] * b[k]));
  }
  if (!(__builtin_fabsf(plain) <= 3e38f) || largest == 0) return plain;
  int exponent;
  __builtin_frexpf(largest, &exponent);  // largest < 2^exponent
  const float unit = __builtin_ldexpf(1.0f, exponent - 14);
  const auto cut = [&](float x) { return __builtin_truncf(x / unit); };
  float units = cut(sum);
  for (int k = 0; k < n; ++k) units += cut(a[k] * b[k]);
  return units * unit;
}
// sum + a0 b0 + a1 b1 + .. of n pairs.
template <class T>
EMULATED_FAST inline typename T::Sum product_sum(typename T::Sum sum, const typename T::Sum* a,
                                                 const typename T::Sum* b, int n) {
  if constexpr (T::kIsCut) {
    return cut_sum(sum, a, b, n);
  } else {
    typename T::Sum products = 0;
    for (int k = 0; k < n; ++k) products += a[k] * b[k];
    return sum + products;
  }
}

template <class T, int K>
struct Tile {
  static constexpr int kA = K / T::kEach / 2, kB = K / T::kEach / 4;
  unsigned a[kA], b[kB];
  typename T::Sum c[4];
};
// U is the type of the right operand, of as many bits.
template <class T, class U, int K>
struct Multiply {
  EMULATED_FAST static void run(Tile<T, K>* const* all, unsigned) {
    constexpr int P = T::kEach;
    typename T::Sum a[16][K], b[8][K];
    for (int lane = 0; lane < 32; ++lane) {
      const int g = lane / 4, t = lane % 4;
      for (int i = 0; i < Tile<T, K>::kA; ++i)
        for (int p = 0; p < P; ++p)
          a[g + 8 * (i % 2)][t * P + 4 * P * (i / 2) + p] = T::of(all[lane]->a[i], p);
      for (int i = 0; i < Tile<T, K>::kB; ++i)
        for (int p = 0; p < P; ++p) b[g][t * P + 4 * P * i + p] = U::of(all[lane]->b[i], p);
    }
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
        all[lane]->c[i] = product_sum<T>(all[lane]->c[i], a[row], b[column], K);
      }
    }
  }
};
template <class T, class U, int K, class D>
inline void multiply(D& d0, D& d1, D& d2, D& d3, Tile<T, K>& own) {
  together(~0u, own, "mma.sync", Multiply<T, U, K>{});
  put(d0, own.c[0]), put(d1, own.c[1]), put(d2, own.c[2]), put(d3, own.c[3]);
}
// Operands as they stand in the instruction: d, a, b, c.
template <class T, class U, int K, class D, class... R>
inline void mma(D& d0, D& d1, D& d2, D& d3, R... rest) {
  using Own = Tile<T, K>;
  static_assert(sizeof...(R) == Own::kA + Own::kB + 4, "registers of mma.sync");
  const unsigned words[] = {get<unsigned>(rest)...};
  Own own;
  for (int i = 0; i < Own::kA; ++i) own.a[i] = words[i];
  for (int i = 0; i < Own::kB; ++i) own.b[i] = words[Own::kA + i];
  for (int i = 0; i < 4; ++i) own.c[i] = bits<typename T::Sum>(words[Own::kA + Own::kB + i]);
  multiply<T, U, K>(d0, d1, d2, d3, own);
}

// ldmatrix: N matrices of 8 x 8 elements of 16 bits; lane 8 j + r gives the address of row r of matrix j. A lane gets elements 2 t, 2 t + 1 of row g, or,
// transposed, element g of rows 2 t, 2 t + 1.
template <int N>
struct Rows {
  const unsigned short* from;
  unsigned r[N];
};
template <int N, bool kTurned>
struct LoadRows {
  static void run(Rows<N>* const* all, unsigned) {
    for (int lane = 0; lane < 32; ++lane) {
      const int g = lane / 4, t = lane % 4;
      for (int j = 0; j < N; ++j) {
        const unsigned low = kTurned ? all[8 * j + 2 * t]->from[g] : all[8 * j + g]->from[2 * t];
        const unsigned high = kTurned ? all[8 * j + 2 * t + 1]->from[g] : all[8 * j + g]->from[2 * t + 1];
        all[lane]->r[j] = low | high << 16;
      }
    }
  }
};
template <int N, bool kTurned, class... D>
inline void ldmatrix(unsigned address, D&... d) {
  static_assert(sizeof...(D) == N, "registers of ldmatrix");
  if (address % 16 != 0) emulated_machine->fail("ldmatrix: a row does not begin at a multiple of 16 bytes");
  Rows<N> own;
  // Lanes behind the last row may hold any address.
  own.from = emulated_machine->lane < 8 * N
                 ? static_cast<const unsigned short*>(emulated_machine->shared(address, 16))
                 : nullptr;
  together(~0u, own, "ldmatrix", LoadRows<N, kTurned>{});
  int i = 0;
  (put(d, own.r[i++]), ...);
}
template <int N, bool kTurned>
struct StoreRows {
  static void run(Rows<N>* const* all, unsigned) {
    for (int lane = 0; lane < 32; ++lane) {
      const int g = lane / 4, t = lane % 4;
      for (int j = 0; j < N; ++j) {
        const auto to = [&](int row, int column) -> unsigned short& {
          return const_cast<unsigned short*>(all[8 * j + row]->from)[column];
        };
        (kTurned ? to(2 * t, g) : to(g, 2 * t)) = (unsigned short)(all[lane]->r[j]);
        (kTurned ? to(2 * t + 1, g) : to(g, 2 * t + 1)) = (unsigned short)(all[lane]->r[j] >> 16);
      }
    }
  }
};
template <int N, bool kTurned, class... V>
inline void stmatrix(unsigned address, V... v) {
  Rows<N> own{nullptr, {get<unsigned>(v)...}};
  if (emulated_machine->lane < 8 * N)
    own.from = static_cast<const unsigned short*>(emulated_machine->shared(address, 16));
  together(~0u, own, "stmatrix", StoreRows<N, kTurned>{});
}

}  // namespace emulated::ptx
