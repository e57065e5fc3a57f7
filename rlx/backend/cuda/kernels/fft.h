// Discrete Fourier transforms of kPoints numbers, kLines of them in a block, in shared memory. A transform of more points is made of
// several such passes over memory: every pass is one step of the same recurrence (Stockham's, which leaves the results in order)
// that the stages of a pass are.
//
// With `done` = product of the factors that came before and P the next one, of n points in all:
//   for each j < n / P, k = j mod done:  v[r] = x[j + r n/P] e^(sign 2 pi i r k / (done P)),  v = transform of P points of v,
//   y[(j / done) done P + k + r done] = v[r].
//
// Before it stand kComplexNumbers, Real, kPoints, kLines, kThreads, kSign (-1 or 1), roots (kPoints complex numbers e^(sign 2 pi i k /
// kPoints)), and
//   kAcross   the lines are neighbouring columns of one longer transform of kWhole points, kColumns = kWhole / kPoints of them, of which
//             kDone is done; else whole transforms that lie one after the other
//   take(x, aid, row, i), give(y, aid, row, i, v)   element i of transform `row`, as memory holds it
//   outer(i, k)                                     e^(sign 2 pi i i k / (kDone kPoints)), where kAcross
// Behind it stand the butterflies of odd factors and the kernel, whose text names its stages.
#pragma once

namespace rlx::cuda {

inline constexpr char kFftStages[] = R"cuda(
typedef ComplexOf<Real> Complex;

inline Complex root(int i) { return {roots[2 * i], roots[2 * i + 1]}; }
// Times e^(sign 2 pi i / 4) and e^(sign 2 pi i / 8).
inline Complex quarter_turned(Complex a) { return kSign > 0 ? Complex{-a.y, a.x} : Complex{a.y, -a.x}; }
inline Complex eighth_turned(Complex a) {
  const Complex t = a + quarter_turned(a);
  return {t.x * Real(0.70710678118654752440), t.y * Real(0.70710678118654752440)};
}

// The transform of P numbers in registers.
template <int P> void butterfly(Complex* v);
template <> inline void butterfly<1>(Complex*) {}
template <> inline void butterfly<2>(Complex* v) {
  const Complex a = v[0], b = v[1];
  v[0] = a + b, v[1] = a - b;
}
inline void butterfly4(Complex& v0, Complex& v1, Complex& v2, Complex& v3) {
  const Complex a = v0 + v2, b = v0 - v2, c = v1 + v3, d = quarter_turned(v1 - v3);
  v0 = a + c, v1 = b + d, v2 = a - c, v3 = b - d;
}
template <> inline void butterfly<4>(Complex* v) { butterfly4(v[0], v[1], v[2], v[3]); }
template <> inline void butterfly<8>(Complex* v) {
  butterfly4(v[0], v[2], v[4], v[6]);
  butterfly4(v[1], v[3], v[5], v[7]);
  const Complex o1 = eighth_turned(v[3]), o2 = quarter_turned(v[5]), o3 = quarter_turned(eighth_turned(v[7]));
  const Complex e0 = v[0], e1 = v[2], e2 = v[4], e3 = v[6], o0 = v[1];
  v[0] = e0 + o0, v[1] = e1 + o1, v[2] = e2 + o2, v[3] = e3 + o3;
  v[4] = e0 - o0, v[5] = e1 - o1, v[6] = e2 - o2, v[7] = e3 - o3;
}
// Odd P by sums and differences of opposite numbers; c[m] and s[m] are the parts of e^(sign 2 pi i m / P).
template <int P> void odd_butterfly(Complex* v, const Real* c, const Real* s) {
  constexpr int H = (P - 1) / 2;
  Complex sum[H], difference[H];
  Complex all = v[0];
  #pragma unroll
  for (int j = 0; j < H; ++j) {
    sum[j] = v[j + 1] + v[P - 1 - j];
    difference[j] = v[j + 1] - v[P - 1 - j];
    all = all + sum[j];
  }
  #pragma unroll
  for (int k = 1; k <= H; ++k) {
    Complex a = v[0], b = {};
    #pragma unroll
    for (int j = 0; j < H; ++j) {
      const Real x = c[(j + 1) * k % P], y = s[(j + 1) * k % P];
      a = {op_fma(sum[j].x, x, a.x), op_fma(sum[j].y, x, a.y)};
      b = {op_fma(difference[j].x, y, b.x), op_fma(difference[j].y, y, b.y)};
    }
    v[k] = {a.x - b.y, a.y + b.x};
    v[P - k] = {a.x + b.y, a.y - b.x};
  }
  v[0] = all;
}

// Where element i of a line lies in shared memory: a gap behind every eighth keeps strides of eight on different banks.
inline int place(int line, int i) { return kAcross ? (i + i / 8) * kLines + line : line * (kPoints + kPoints / 8 + 1) + i + i / 8; }

template <int P, int Done, class Read, class Write> void stage(Read read, Write write) {
  constexpr int kGroups = kPoints / P;
  for (int b = threadIdx.x; b < kGroups * kLines; b += kThreads) {
    const int line = kAcross ? b % kLines : b / kGroups, j = kAcross ? b / kLines : b % kGroups, k = j % Done;
    Complex v[P];
    #pragma unroll
    for (int r = 0; r < P; ++r) v[r] = read(line, j + r * kGroups);
    #pragma unroll
    for (int r = 1; r < P && Done > 1; ++r) v[r] = v[r] * root(r * k * (kPoints / (Done * P)));
    butterfly<P>(v);
    #pragma unroll
    for (int r = 0; r < P; ++r) write(line, j / Done * Done * P + k + r * Done, v[r]);
  }
}
)cuda";

// %STAGES% is the list of stages, from `from_memory` to `to_memory` by way of `first` and `second` in shared memory.
inline constexpr char kFftKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(kThreads)
fft(const X* x, const Complex* take_aid, Y* y, const Complex* give_aid, i64 rows) {
  extern __shared__ uint4 memory[];
  Complex* const first = reinterpret_cast<Complex*>(memory);
  Complex* const second = first + place(kAcross ? 0 : kLines, kAcross ? kPoints : 0) + kLines;
  constexpr i64 kTiles = (kColumns + kLines - 1) / kLines;
  const i64 tile = i64(blockIdx.x) % kTiles, row0 = kAcross ? i64(blockIdx.x) / kTiles : i64(blockIdx.x) * kLines;
  const auto from_memory = [&](int line, int i) {
    if (!kAcross) return row0 + line < rows ? take(x, take_aid, row0 + line, i) : Complex{};
    const i64 column = tile * kLines + line;
    if (column >= kColumns) return Complex{};
    const Complex z = take(x, take_aid, row0, column + i * kColumns);
    return kDone > 1 ? z * outer(i, column % kDone) : z;
  };
  const auto to_memory = [&](int line, int i, Complex v) {
    if (!kAcross) {
      if (row0 + line < rows) give(y, give_aid, row0 + line, i, v);
      return;
    }
    const i64 column = tile * kLines + line;
    if (column < kColumns) give(y, give_aid, row0, column / kDone * kDone * kPoints + column % kDone + i * kDone, v);
  };
  const auto from_first = [&](int line, int i) { return first[place(line, i)]; };
  const auto to_first = [&](int line, int i, Complex v) { first[place(line, i)] = v; };
  const auto from_second = [&](int line, int i) { return second[place(line, i)]; };
  const auto to_second = [&](int line, int i, Complex v) { second[place(line, i)] = v; };
  // The results of columns of which nothing is done are runs of their own: they go through shared memory once more.
  const auto out_by_line = [&](auto from) {
    for (int e = threadIdx.x; e < kPoints * kLines; e += kThreads) to_memory(e / kPoints, e % kPoints, from(e / kPoints, e % kPoints));
  };
%STAGES%}
)cuda";

// The chirp c[k] = e^(sign pi i k^2 / n) of n points, and the line of kPoints numbers conj c[|k|] / kPoints whose transform multiplies
// that of x c (Bluestein: j k = (j^2 + k^2 - (k - j)^2) / 2). Squares are taken modulo the period 2 n, angles in f64.
inline constexpr char kFftChirp[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256) fft_chirp(ComplexOf<Real>* chirp, ComplexOf<Real>* line, i64 n, i64 points, int sign) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= points) return;
  const i64 k = e < n ? e : points - e;
  ComplexOf<Real> z = {};
  if (k < n) {
    const f64 angle = sign * 3.14159265358979323846 * f64(u64(k) * u64(k) % u64(2 * n)) / f64(n);
    const f64 c = cos(angle), s = sin(angle);
    if (e < n) chirp[e] = {Real(c), Real(s)};
    z = {Real(c / f64(points)), Real(-s / f64(points))};
  }
  line[e] = z;
}
)cuda";

}  // namespace rlx::cuda
