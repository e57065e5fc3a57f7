// Eigenvalues and singular values by Jacobi rotations, in numbers N (kernels/factor_numbers.h). Columns are taken in blocks of kPair / 2; two blocks are one
// small Hermitian problem, which one block of threads solves in shared memory, and its rotations are then a product with
// all rows of these columns. In a round every block of columns has one partner, in a sweep each has every other once.
//
// Before it stand kPair (a multiple of 4, at most 64), kThreads, kConverged and N.
// Matrices of work are column by column, `rows` long.
#pragma once

namespace rlx::cuda {

// What all of them know.
inline constexpr char kJacobiText[] = R"cuda(
constexpr int kHalf = kPair / 2, kStride = kPair + 1;

// Partners of round r among `count` players, an even number: pair t. The last one stays, the others go round.
inline void partners(int count, int r, int t, int& first, int& second) {
  const int others = count - 1;
  const int a = t == 0 ? others : (r + t) % others, b = (r + others - t) % others;
  first = a < b ? a : b, second = a < b ? b : a;
}

// Column q is turned, so that the element off the diagonal is real, and rotated with column p. q < 0: nothing to do.
struct Turn { f64 c, s; int p, q; N turn; };

// Rotations until s is diagonal, gathered in q; whether there was any. By columns first, then by rows.
inline bool diagonalise(N* s, N* q, Turn* turns, int* any, bool positive, int sweeps) {
  bool turned = false;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    if (threadIdx.x == 0) *any = 0;
    __syncthreads();
    for (int round = 0; round < kPair - 1; ++round) {
      for (int t = threadIdx.x; t < kHalf; t += kThreads) {
        int p, o;
        partners(kPair, round, t, p, o);
        const N element = s[p * kStride + o];
        const f64 off = real_off(element), pp = real_part(s[p * kStride + p]), oo = real_part(s[o * kStride + o]);
        const f64 scale = positive ? sqrt(fmax(pp, 0.0)) * sqrt(fmax(oo, 0.0)) : fmax(fabs(pp), fabs(oo));
        Turn turn{1, 0, p, -1, number(1)};
        if (fabs(off) > 1e-300 + kConverged * scale) {
          const f64 theta = (oo - pp) / (2 * off);
          const f64 tangent = (theta >= 0 ? 1.0 : -1.0) / (fabs(theta) + hypot(theta, 1.0));
          const f64 c = 1 / hypot(tangent, 1.0);
          turn = {c, tangent * c, p, o, turn_of(element)};
          *any = 1;
        }
        turns[t] = turn;
      }
      __syncthreads();
      for (int e = threadIdx.x; e < 2 * kHalf * kPair; e += kThreads) {
        const Turn turn = turns[e / kPair % kHalf];
        if (turn.q < 0) continue;
        N* const row = (e < kHalf * kPair ? s : q) + e % kPair * kStride;
        const N a = row[turn.p], b = in_phase(row[turn.q], turn.turn);
        row[turn.p] = turn.c * a - turn.s * b, row[turn.q] = turn.s * a + turn.c * b;
      }
      __syncthreads();
      for (int e = threadIdx.x; e < kHalf * kPair; e += kThreads) {
        const Turn turn = turns[e / kPair];
        if (turn.q < 0) continue;
        const int column = e % kPair;
        N *const first = s + turn.p * kStride + column, *const second = s + turn.q * kStride + column;
        const N a = *first, b = in_phase(*second, conjugate(turn.turn));
        *first = column == turn.q ? number(0) : turn.c * a - turn.s * b;
        *second = column == turn.p ? number(0) : turn.s * a + turn.c * b;
      }
      __syncthreads();
    }
    const bool more = *any != 0;
    __syncthreads();
    if (!more) break;
    turned = true;
  }
  return turned;
}

// Column c of the pair (first, second) of blocks of columns.
inline int column_of(int first, int second, int c) { return c < kHalf ? first * kHalf + c : second * kHalf + c - kHalf; }

// Up to 64 rows of the columns of a pair, from row0 on, times q[kPair, kPair]; all threads of a block. `tile` is room for
// them. Transposed, columns of a matrix whose rows are turned, by q conjugated.
template <int Threads>
void turn_tile(N* x, int height, bool transposed, int row0, int first, int second, N* tile, const N* q) {
  const i64 row = transposed ? height : 1, column = transposed ? 1 : height;
  const auto each = [&](auto visit) {
    for (int e = threadIdx.x; e < 64 * kPair; e += Threads) {
      const int r = transposed ? e / kPair : e % 64, c = transposed ? e % kPair : e / 64;
      if (row0 + r < height) visit(x[(row0 + r) * row + column_of(first, second, c) * column], tile[r * kStride + c]);
    }
  };
  each([](N& from, N& to) { to = from; });
  __syncthreads();
  constexpr int kTasks = 16 * (kPair / 4), kRounds = (kTasks + Threads - 1) / Threads;
  N sum[kRounds][4][4] = {};
  #pragma unroll
  for (int k = 0; k < kRounds; ++k) {
    const int task = int(threadIdx.x) + k * Threads, r0 = task % 16 * 4, c0 = task / 16 * 4;
    if (task >= kTasks) break;
    for (int d = 0; d < kPair; ++d) {
      N a[4], b[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = tile[(r0 + i) * kStride + d], b[i] = transposed ? conjugate(q[d * kStride + c0 + i]) : q[d * kStride + c0 + i];
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        #pragma unroll
        for (int j = 0; j < 4; ++j) sum[k][i][j] = plus_product(sum[k][i][j], a[i], b[j]);
      }
    }
  }
  __syncthreads();
  #pragma unroll
  for (int k = 0; k < kRounds; ++k) {
    const int task = int(threadIdx.x) + k * Threads, r0 = task % 16 * 4, c0 = task / 16 * 4;
    if (task >= kTasks) break;
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      #pragma unroll
      for (int j = 0; j < 4; ++j) tile[(r0 + i) * kStride + c0 + j] = sum[k][i][j];
    }
  }
  __syncthreads();
  each([](N& to, N& from) { to = from; });
}
)cuda";

// The small problem of each pair in a round: its rotations as a matrix [kPair, kPair]. kGram: of the products of columns,
// else of the rows of a symmetric matrix that these columns have. kWhole: there is one pair, and its block does all.
inline constexpr char kRotationsKernel[] = R"cuda(
// s = products of the columns of a pair, in tiles of 32 rows; a thread sums 2 x 4 products.
inline void products(const N* x, int rows, int first, int second, N* s, N* strip) {
  constexpr int kAcross = kPair / 4, kTasks = kHalf * kAcross;
  const int r0 = int(threadIdx.x) / kAcross * 2, c0 = int(threadIdx.x) % kAcross * 4;
  N sum[2][4] = {};
  for (int top = 0; top < rows; top += 32) {
    for (int e = threadIdx.x; e < kPair * 32; e += kThreads) {
      const int row = top + e % 32;
      strip[e / 32 * 33 + e % 32] = row < rows ? x[i64(column_of(first, second, e / 32)) * rows + row] : number(0);
    }
    __syncthreads();
    if (threadIdx.x < kTasks) {
      for (int d = 0; d < 32; ++d) {
        const N a[2] = {strip[r0 * 33 + d], strip[(r0 + 1) * 33 + d]};
        #pragma unroll
        for (int c = 0; c < 4; ++c) {
          const N b = strip[(c0 + c) * 33 + d];
          sum[0][c] = plus_inner(sum[0][c], a[0], b), sum[1][c] = plus_inner(sum[1][c], a[1], b);
        }
      }
    }
    __syncthreads();
  }
  if (threadIdx.x < kTasks) {
    for (int r = 0; r < 2; ++r) {
      for (int c = 0; c < 4; ++c) s[(r0 + r) * kStride + c0 + c] = sum[r][c];
    }
  }
}

inline void identity(N* q) {
  for (int e = threadIdx.x; e < kPair * kPair; e += kThreads) q[e / kPair * kStride + e % kPair] = number(e / kPair == e % kPair ? 1.0 : 0.0);
}

extern "C" __global__ void __launch_bounds__(kThreads)
rotations(N* work, N* vectors, int rows, int count, int round, int sweep, int sweeps, i32* turned, N* found, i32* idle) {
  extern __shared__ N memory[];
  __shared__ Turn turns[32];
  __shared__ int any;
  // s has room for 64 rows, q for a strip of products.
  N *const s = memory, *const q = s + 64 * kStride;
  const int pairs = count / kPair, pair = int(blockIdx.x % pairs);
  const i64 matrix = blockIdx.x / pairs;
  if (sweep > 0 && turned[matrix * sweeps + sweep - 1] == 0) return;
  int first, second;
  partners(2 * pairs, round, pair, first, second);
  N* const x = work + matrix * count * rows;
  if (kWhole && kGram) {
    for (int i = 0; i < sweeps; ++i) {
      products(x, rows, first, second, s, q);
      __syncthreads();
      identity(q);
      __syncthreads();
      if (!diagonalise(s, q, turns, &any, true, 8)) break;
      for (int row0 = 0; row0 < rows; row0 += 64) turn_tile<kThreads>(x, rows, false, row0, first, second, s, q), __syncthreads();
      turn_tile<kThreads>(vectors + matrix * kPair * kPair, kPair, false, 0, first, second, s, q);
      __syncthreads();
    }
    return;
  }
  if (kGram) {
    products(x, rows, first, second, s, q);
  } else {
    for (int e = threadIdx.x; e < kPair * kPair; e += kThreads)
      s[e / kPair * kStride + e % kPair] = conjugate(x[i64(column_of(first, second, e / kPair)) * rows + column_of(first, second, e % kPair)]);
  }
  __syncthreads();
  identity(q);
  __syncthreads();
  const bool some = diagonalise(s, q, turns, &any, kGram, kGram ? 8 : 24);
  if (kWhole) {
    for (int e = threadIdx.x; e < kPair * kPair; e += kThreads) {
      vectors[(matrix * kPair + e / kPair) * kPair + e % kPair] = q[e % kPair * kStride + e / kPair];
      if (e / kPair == e % kPair) x[i64(e / kPair) * rows + e / kPair] = s[e / kPair * kStride + e / kPair];
    }
    return;
  }
  if (threadIdx.x == 0) {
    idle[matrix * pairs + pair] = !some;
    if (some) turned[matrix * sweeps + sweep] = 1;
  }
  if (!some) return;
  N* const out = found + (matrix * pairs + pair) * kPair * kPair;
  for (int e = threadIdx.x; e < kPair * kPair; e += kThreads) out[e] = q[e / kPair * kStride + e % kPair];
}
)cuda";

// Columns times the rotations of their pair, 64 rows by a block: of `work` and then of `vectors`, whose rows are as many
// as its columns. Transposed, the rows of a square matrix are turned.
inline constexpr char kTurnKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256)
turn(N* work, N* vectors, int rows, int count, int transposed, int round, int sweep, int sweeps, const i32* turned, const N* found, const i32* idle) {
  extern __shared__ N memory[];
  N *const tile = memory, *const q = tile + 64 * kStride;
  const int pairs = count / kPair, here = (rows + 63) / 64, tiles = here + (transposed ? 0 : (count + 63) / 64);
  const int at = int(blockIdx.x % tiles), pair = int(blockIdx.x / tiles % pairs);
  const i64 matrix = blockIdx.x / tiles / pairs;
  if ((sweep > 0 && turned[matrix * sweeps + sweep - 1] == 0) || idle[matrix * pairs + pair] != 0) return;
  int first, second;
  partners(2 * pairs, round, pair, first, second);
  const N* const rotation = found + (matrix * pairs + pair) * kPair * kPair;
  for (int e = threadIdx.x; e < kPair * kPair; e += 256) q[e / kPair * kStride + e % kPair] = rotation[e];
  const bool of_work = at < here;
  const int height = of_work ? rows : count;
  N* const x = (of_work ? work : vectors) + matrix * count * height;
  turn_tile<256>(x, height, transposed != 0, (of_work ? at : at - here) * 64, first, second, tile, q);
}
)cuda";

}  // namespace rlx::cuda
