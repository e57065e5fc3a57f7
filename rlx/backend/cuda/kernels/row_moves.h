// Rows of heads, moved and turned.
#pragma once

namespace rlx::cuda {

inline constexpr char kRowMoves[] = R"cuda(
template <int N, class Table> void read_numbers(f32 (&to)[N], const Table* from) {
  constexpr int kTogether = 16 / sizeof(Table) < N ? 16 / sizeof(Table) : N;
  #pragma unroll
  for (int i = 0; i < N; i += kTogether) {
    const auto some = load<kTogether>(from + i);
    #pragma unroll
    for (int u = 0; u < kTogether; ++u) to[i + u] = as_f32(some.v[u]);
  }
}

// A pair of a rotation.
template <class X> void turn_pair(f32 own, f32 other, f32 c, f32 s, X& x, X& y) {
  put(x, own * c - other * s);
  put(y, other * c + own * s);
}

// N pairs: (a, b) becomes (a c - b s, b c + a s); the first of a are at lane `first`, those of b at `second`.
template <int N, class X, class Table>
void turn(const X* from, X* to, int first, int second, const Table* cosines, const Table* sines, f32 sign) {
  f32 c[N], s[N];
  read_numbers(c, cosines);
  read_numbers(s, sines);
  const auto a = load<N>(from + first), b = load<N>(from + second);
  Pack<X, N> x, y;
  #pragma unroll
  for (int i = 0; i < N; ++i) {
    turn_pair(as_f32(a.v[i]), as_f32(b.v[i]), c[i], sign * s[i], x.v[i], y.v[i]);
  }
  store(to + first, x);
  store(to + second, y);
}
)cuda";

}  // namespace rlx::cuda
