// Eigenvalues and singular values by Jacobi rotations, in f64. Columns are taken in blocks of kPair / 2; two blocks are one
// small symmetric problem, which one block of threads solves in shared memory, and its rotations are then a product with
// all rows of these columns. In a round every block of columns has one partner, in a sweep each has every other once.
//
// Before it stand kPair (a multiple of 4, at most 64), kThreads, kConverged and the numbers of kernels/matrix_numbers.h,
// W being f64, with kernels/scaled_columns.h. Matrices of work are column by column, `rows` long.
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

struct Turn { f64 c, s; int p, q; };  // q < 0: nothing to turn

// Rotations until s is diagonal, gathered in q; whether there was any. By columns first, then by rows.
inline bool diagonalise(f64* s, f64* q, Turn* turns, int* any, bool positive, int sweeps) {
  bool turned = false;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    if (threadIdx.x == 0) *any = 0;
    __syncthreads();
    for (int round = 0; round < kPair - 1; ++round) {
      for (int t = threadIdx.x; t < kHalf; t += kThreads) {
        int p, o;
        partners(kPair, round, t, p, o);
        const f64 off = s[p * kStride + o], pp = s[p * kStride + p], oo = s[o * kStride + o];
        const f64 scale = positive ? sqrt(fmax(pp, 0.0)) * sqrt(fmax(oo, 0.0)) : fmax(fabs(pp), fabs(oo));
        Turn turn{1, 0, p, -1};
        if (fabs(off) > 1e-300 + kConverged * scale) {
          const f64 theta = (oo - pp) / (2 * off);
          const f64 tangent = (theta >= 0 ? 1.0 : -1.0) / (fabs(theta) + hypot(theta, 1.0));
          const f64 c = 1 / hypot(tangent, 1.0);
          turn = {c, tangent * c, p, o};
          *any = 1;
        }
        turns[t] = turn;
      }
      __syncthreads();
      for (int e = threadIdx.x; e < 2 * kHalf * kPair; e += kThreads) {
        const Turn turn = turns[e / kPair % kHalf];
        if (turn.q < 0) continue;
        f64* const row = (e < kHalf * kPair ? s : q) + e % kPair * kStride;
        const f64 a = row[turn.p], b = row[turn.q];
        row[turn.p] = turn.c * a - turn.s * b, row[turn.q] = turn.s * a + turn.c * b;
      }
      __syncthreads();
      for (int e = threadIdx.x; e < kHalf * kPair; e += kThreads) {
        const Turn turn = turns[e / kPair];
        if (turn.q < 0) continue;
        const int column = e % kPair;
        f64 *const first = s + turn.p * kStride + column, *const second = s + turn.q * kStride + column;
        const f64 a = *first, b = *second;
        *first = column == turn.q ? 0.0 : turn.c * a - turn.s * b;
        *second = column == turn.p ? 0.0 : turn.s * a + turn.c * b;
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
// them. Transposed, columns of a matrix whose rows are turned.
template <int Threads>
void turn_tile(f64* x, int height, bool transposed, int row0, int first, int second, f64* tile, const f64* q) {
  const i64 row = transposed ? height : 1, column = transposed ? 1 : height;
  const auto each = [&](auto visit) {
    for (int e = threadIdx.x; e < 64 * kPair; e += Threads) {
      const int r = transposed ? e / kPair : e % 64, c = transposed ? e % kPair : e / 64;
      if (row0 + r < height) visit(x[(row0 + r) * row + column_of(first, second, c) * column], tile[r * kStride + c]);
    }
  };
  each([](f64& from, f64& to) { to = from; });
  __syncthreads();
  constexpr int kTasks = 16 * (kPair / 4), kRounds = (kTasks + Threads - 1) / Threads;
  f64 sum[kRounds][4][4] = {};
  #pragma unroll
  for (int k = 0; k < kRounds; ++k) {
    const int task = int(threadIdx.x) + k * Threads, r0 = task % 16 * 4, c0 = task / 16 * 4;
    if (task >= kTasks) break;
    for (int d = 0; d < kPair; ++d) {
      f64 a[4], b[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = tile[(r0 + i) * kStride + d], b[i] = q[d * kStride + c0 + i];
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        #pragma unroll
        for (int j = 0; j < 4; ++j) sum[k][i][j] = fma(a[i], b[j], sum[k][i][j]);
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
  each([](f64& to, f64& from) { to = from; });
}
)cuda";

// The small problem of each pair in a round: its rotations as a matrix [kPair, kPair]. kGram: of the products of columns,
// else of the rows of a symmetric matrix that these columns have. kWhole: there is one pair, and its block does all.
inline constexpr char kRotationsKernel[] = R"cuda(
// s = products of the columns of a pair, in tiles of 32 rows; a thread sums 2 x 4 products.
inline void products(const f64* x, int rows, int first, int second, f64* s, f64* strip) {
  constexpr int kAcross = kPair / 4, kTasks = kHalf * kAcross;
  const int r0 = int(threadIdx.x) / kAcross * 2, c0 = int(threadIdx.x) % kAcross * 4;
  f64 sum[2][4] = {};
  for (int top = 0; top < rows; top += 32) {
    for (int e = threadIdx.x; e < kPair * 32; e += kThreads) {
      const int row = top + e % 32;
      strip[e / 32 * 33 + e % 32] = row < rows ? x[i64(column_of(first, second, e / 32)) * rows + row] : 0.0;
    }
    __syncthreads();
    if (threadIdx.x < kTasks) {
      for (int d = 0; d < 32; ++d) {
        const f64 a[2] = {strip[r0 * 33 + d], strip[(r0 + 1) * 33 + d]};
        #pragma unroll
        for (int c = 0; c < 4; ++c) {
          const f64 b = strip[(c0 + c) * 33 + d];
          sum[0][c] = fma(a[0], b, sum[0][c]), sum[1][c] = fma(a[1], b, sum[1][c]);
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

inline void identity(f64* q) {
  for (int e = threadIdx.x; e < kPair * kPair; e += kThreads) q[e / kPair * kStride + e % kPair] = e / kPair == e % kPair ? 1.0 : 0.0;
}

extern "C" __global__ void __launch_bounds__(kThreads)
rotations(f64* work, f64* vectors, int rows, int count, int round, int sweep, int sweeps, i32* turned, f64* found, i32* idle) {
  extern __shared__ char memory[];
  __shared__ Turn turns[32];
  __shared__ int any;
  // s has room for 64 rows, q for a strip of products.
  f64 *const s = reinterpret_cast<f64*>(memory), *const q = s + 64 * kStride;
  const int pairs = count / kPair, pair = int(blockIdx.x % pairs);
  const i64 matrix = blockIdx.x / pairs;
  if (sweep > 0 && turned[matrix * sweeps + sweep - 1] == 0) return;
  int first, second;
  partners(2 * pairs, round, pair, first, second);
  f64* const x = work + matrix * count * rows;
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
      s[e / kPair * kStride + e % kPair] = x[i64(column_of(first, second, e / kPair)) * rows + column_of(first, second, e % kPair)];
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
  f64* const out = found + (matrix * pairs + pair) * kPair * kPair;
  for (int e = threadIdx.x; e < kPair * kPair; e += kThreads) out[e] = q[e / kPair * kStride + e % kPair];
}
)cuda";

// Columns times the rotations of their pair, 64 rows by a block: of `work` and then of `vectors`, whose rows are as many
// as its columns. Transposed, the rows of a square matrix are turned.
inline constexpr char kTurnKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256)
turn(f64* work, f64* vectors, int rows, int count, int transposed, int round, int sweep, int sweeps, const i32* turned, const f64* found, const i32* idle) {
  extern __shared__ char memory[];
  f64 *const tile = reinterpret_cast<f64*>(memory), *const q = tile + 64 * kStride;
  const int pairs = count / kPair, here = (rows + 63) / 64, tiles = here + (transposed ? 0 : (count + 63) / 64);
  const int at = int(blockIdx.x % tiles), pair = int(blockIdx.x / tiles % pairs);
  const i64 matrix = blockIdx.x / tiles / pairs;
  if ((sweep > 0 && turned[matrix * sweeps + sweep - 1] == 0) || idle[matrix * pairs + pair] != 0) return;
  int first, second;
  partners(2 * pairs, round, pair, first, second);
  const f64* const rotation = found + (matrix * pairs + pair) * kPair * kPair;
  for (int e = threadIdx.x; e < kPair * kPair; e += 256) q[e / kPair * kStride + e % kPair] = rotation[e];
  const bool of_work = at < here;
  const int height = of_work ? rows : count;
  f64* const x = (of_work ? work : vectors) + matrix * count * height;
  turn_tile<256>(x, height, transposed != 0, (of_work ? at : at - here) * 64, first, second, tile, q);
}
)cuda";

// Values of each matrix in order, of equal ones the first first: values[n] of work, order[j] the place of value j. kGram:
// lengths of columns, descending; else the diagonal, ascending. `out` gets them at their own scale.
inline constexpr char kOrderKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(512)
order(const f64* work, int rows, int count, int n, const i32* exponents, f64* values, i32* places, X* out) {
  const i64 matrix = blockIdx.x;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, exponent = exponents[matrix];
  work += matrix * count * rows, values += matrix * count, places += matrix * count, out += matrix * n;
  for (int i = kGram ? warp : int(threadIdx.x); i < n; i += kGram ? 16 : 512) {
    if (!kGram) {
      values[i] = work[i64(i) * rows + i];
      continue;
    }
    f64 sum = 0;
    for (int r = lane; r < rows; r += 32) sum = fma(work[i64(i) * rows + r], work[i64(i) * rows + r], sum);
    sum = over_warp<Sum>(sum);
    if (lane == 0) values[i] = sqrt(sum);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 512) {
    const f64 mine = values[i];
    int rank = 0;
    for (int j = 0; j < n; ++j) {
      const f64 other = values[j];
      rank += (kGram ? other > mine : other < mine) || (other == mine && j < i);
    }
    places[rank] = i;
    narrowed(out[rank], exponent == kNotFinite ? not_a_number() : ldexp(mine, exponent));
  }
}
)cuda";

// Columns of unit length in order, and where a value is no more than rounding, any that completes them: the first unit
// vector that is far enough from the columns before it, less what they have of it, twice (Kahan, Parlett). A block for
// each matrix; spent[i] is the square of what the columns so far have of unit vector i.
inline constexpr char kDirectionsKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(512)
directions(const f64* work, int rows, int count, int n, const f64* values, const i32* places, f64* units, f64* spent, f64* dots) {
  __shared__ f64 parts[16];
  __shared__ int start;
  const i64 matrix = blockIdx.x;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  work += matrix * count * rows, units += matrix * count * rows;
  values += matrix * count, places += matrix * count, spent += matrix * rows, dots += matrix * count;
  const f64 least = values[places[0]] * 1e-15 * rows;
  int have = 0;  // values descend
  while (have < n && values[places[have]] > least) ++have;
  for (i64 e = threadIdx.x; e < i64(have) * rows; e += 512)
    units[e] = work[i64(places[e / rows]) * rows + e % rows] / values[places[e / rows]];
  __syncthreads();
  if (have == n) return;
  for (int i = threadIdx.x; i < rows; i += 512) {
    f64 sum = 0;
    for (int p = 0; p < have; ++p) sum = fma(units[i64(p) * rows + i], units[i64(p) * rows + i], sum);
    spent[i] = sum;
  }
  for (int j = have; j < n; ++j) {
    if (threadIdx.x == 0) start = rows - 1;
    __syncthreads();
    for (int i = threadIdx.x; i < rows; i += 512) {
      if (1 - spent[i] >= 0.25 / rows) { atomicMin(&start, i); break; }
    }
    __syncthreads();
    f64* const v = units + i64(j) * rows;
    for (int i = threadIdx.x; i < rows; i += 512) v[i] = i == start ? 1.0 : 0.0;
    for (int pass = 0; pass < 2; ++pass) {
      __syncthreads();
      for (int p = warp; p < j; p += 16) {
        f64 dot = 0;
        for (int i = lane; i < rows; i += 32) dot = fma(units[i64(p) * rows + i], v[i], dot);
        dot = over_warp<Sum>(dot);
        if (lane == 0) dots[p] = dot;
      }
      __syncthreads();
      for (int i = threadIdx.x; i < rows; i += 512) {
        f64 x = v[i];
        for (int p = 0; p < j; ++p) x = fma(-dots[p], units[i64(p) * rows + i], x);
        v[i] = x;
      }
    }
    f64 sum = 0;
    for (int i = threadIdx.x; i < rows; i += 512) sum = fma(v[i], v[i], sum);
    const f64 length = sqrt(over_block<Sum, 16>(sum, parts));
    for (int i = threadIdx.x; i < rows; i += 512) {
      const f64 x = v[i] / length;
      v[i] = x, spent[i] += x * x;
    }
  }
}
)cuda";

// Columns of `left` (rows long) to y[rows, n], turned so that their entry of largest modulus is positive; of entries that
// rounding may have told apart the first decides. `right` (where there is one) turns with them and goes to z[n, rows]. A
// warp for each column; places say where column j is, or nothing: at j.
inline constexpr char kVectorsKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(128)
vectors(const f64* left, i64 left_batch, int left_rows, int left_stride, const i32* left_places, const f64* right, i64 right_batch, int right_rows, int right_stride, const i32* right_places,
        int n, int count, const i32* exponents, X* y, X* z, i64 total) {
  const i64 at = i64(blockIdx.x) * 4 + threadIdx.x / 32;
  if (at >= total) return;
  const i64 matrix = at / n;
  const int j = int(at % n), lane = threadIdx.x % 32;
  const bool none = exponents[matrix] == kNotFinite;
  const f64 nan = not_a_number();
  const f64* const from = left + matrix * left_batch + i64(left_places ? left_places[matrix * count + j] : j) * left_stride;
  f64 largest = 0;
  for (int i = lane; i < left_rows; i += 32) largest = fmax(largest, fabs(from[i]));
  largest = over_warp<Max>(largest);
  int first = left_rows;
  for (int i = lane; i < left_rows && first == left_rows; i += 32) {
    if (fabs(from[i]) * (1 + 1e-9) >= largest) first = i;
  }
  first = over_warp<Min>(first);
  const f64 sign = first < left_rows && from[first] < 0 ? -1.0 : 1.0;
  for (int i = lane; i < left_rows; i += 32) narrowed(y[(matrix * left_rows + i) * n + j], none ? nan : sign * from[i]);
  if (right == nullptr) return;
  const f64* const other = right + matrix * right_batch + i64(right_places ? right_places[matrix * count + j] : j) * right_stride;
  for (int i = lane; i < right_rows; i += 32) narrowed(z[(matrix * n + j) * right_rows + i], none ? nan : sign * other[i]);
}
)cuda";

}  // namespace rlx::cuda
