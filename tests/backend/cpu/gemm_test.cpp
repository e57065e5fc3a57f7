#include "rlx/backend/cpu/kernels/gemm.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "rlx/base/float16.h"
#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;

// A matrix of any dtype with its exact values beside it as double (complex for c64).
struct Operand {
  Array<std::byte> bytes{0};
  std::vector<std::complex<double>> values;  // logical [rows, columns]
  Matrix matrix;
};

double rounding(DType t) {  // half a unit in the last place, relative
  switch (t) {
    case DType::f16:
      return 0x1p-11;
    case DType::bf16:
      return 0x1p-8;
    case DType::f64:
      return 0x1p-53;
    default:
      return 0x1p-24;
  }
}

// `transposed` stores the columns one after the other; `gap` leaves room between rows; `offset` misaligns.
Operand make_operand(DType t, int64_t rows, int64_t columns, bool transposed, int64_t gap, int offset,
                     uint64_t seed) {
  Operand o;
  const int64_t major = (transposed ? rows : columns) + gap;
  const int64_t count = major * (transposed ? columns : rows);
  const int64_t size = int64_t(dtype_size(t));
  o.bytes = Array<std::byte>(count * size + 1, int(offset * size));
  o.values.resize(size_t(rows * columns));
  o.matrix = {o.bytes.data(), t, transposed ? 1 : major, transposed ? major : 1};
  const Array<float> random = test::random_array(2 * rows * columns + 1, seed);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const float x = random[2 * (i * columns + j)], y = random[2 * (i * columns + j) + 1];
      std::byte* at = o.bytes.data() + (i * o.matrix.row_stride + j * o.matrix.column_stride) * size;
      std::complex<double>& v = o.values[size_t(i * columns + j)];
      const uint16_t half = t == DType::f16 ? f32_to_f16(x) : f32_to_bf16(x);
      const double wide = double(x) + double(y) * 0x1p-26;
      switch (t) {
        case DType::f16:
          v = double(f16_to_f32(half)), std::memcpy(at, &half, 2);
          break;
        case DType::bf16:
          v = double(bf16_to_f32(half)), std::memcpy(at, &half, 2);
          break;
        case DType::f64:
          v = wide, std::memcpy(at, &wide, 8);
          break;
        case DType::c64:
          v = {x, y}, std::memcpy(at, &x, 4), std::memcpy(at + 4, &y, 4);
          break;
        default:
          v = x, std::memcpy(at, &x, 4);
      }
    }
  }
  return o;
}

std::complex<double> element(const void* data, DType t, int64_t i) {
  uint16_t half;
  float f[2];
  double d;
  switch (t) {
    case DType::f16:
      std::memcpy(&half, static_cast<const uint16_t*>(data) + i, 2);
      return double(f16_to_f32(half));
    case DType::bf16:
      std::memcpy(&half, static_cast<const uint16_t*>(data) + i, 2);
      return double(bf16_to_f32(half));
    case DType::f64:
      std::memcpy(&d, static_cast<const double*>(data) + i, 8);
      return d;
    case DType::c64:
      std::memcpy(f, static_cast<const float*>(data) + 2 * i, 8);
      return {f[0], f[1]};
    default:
      std::memcpy(f, static_cast<const float*>(data) + i, 4);
      return f[0];
  }
}

// Nothing is written behind the workspace.
void run(Team team, const Gemm& g) {
  constexpr size_t kBehind = 64 << 10;
  const size_t bytes = gemm_workspace(g, team.threads());
  const AlignedBytes workspace = allocate_aligned(bytes + kBehind);
  std::byte* const end = workspace.get() + bytes;
  std::fill(end, end + kBehind, std::byte(0x5a));
  gemm(team, g, workspace.get());
  ASSERT_TRUE(std::all_of(end, end + kBehind, [](std::byte b) { return b == std::byte(0x5a); }))
      << g.m << " x " << g.n << " x " << g.k << ", " << team.threads() << " threads";
}

// |sum of products| is at most k for entries below 1 in size; a chain of k multiply-adds errs by at most
// k units of rounding of the sum of magnitudes, the result once more in its own type.
double tolerance(int64_t k, DType accumulated, DType result) {
  const double magnitude = accumulated == DType::c64 ? 4.0 * double(k) : double(k);
  return magnitude * (double(k + 2) * (accumulated == DType::f64 ? 0x1p-53 : 0x1p-24) + rounding(result));
}

struct Case {
  DType a, b, c;
  int64_t m, n, k;
  bool a_transposed, b_transposed, packed;
  int64_t gap;
  int offset;
};

void check_case(Team team, const Case& t) {
  SCOPED_TRACE(testing::Message() << dtype_name(t.a) << " x " << dtype_name(t.b) << " -> " << dtype_name(t.c)
                                  << ", m " << t.m << " n " << t.n << " k " << t.k << " ta " << t.a_transposed
                                  << " tb " << t.b_transposed << " packed " << t.packed << " gap " << t.gap);
  const Operand a = make_operand(t.a, t.m, t.k, t.a_transposed, t.gap, t.offset, 1);
  const Operand b = make_operand(t.b, t.k, t.n, t.b_transposed, t.gap, t.offset, 2);
  const int64_t stride = t.n + t.gap, size = int64_t(dtype_size(t.c));
  Array<std::byte> c(t.m * stride * size + 1, int(t.offset * size));
  for (int64_t i = 0; i < c.size(); ++i) c[i] = std::byte(0x11);
  Gemm g{.m = t.m,
         .n = t.n,
         .k = t.k,
         .a = a.matrix,
         .b = b.matrix,
         .c = c.data(),
         .c_dtype = t.c,
         .c_row_stride = stride};
  PackedMatrix packed;
  if (t.packed) {
    packed = PackedMatrix::pack(team, b.matrix, t.k, t.n, t.b);
    g.packed_b = &packed;
  }
  run(team, g);
  const double bound = tolerance(t.k, t.a, t.c);
  for (int64_t i = 0; i < t.m; ++i) {
    for (int64_t j = 0; j < t.n; ++j) {
      std::complex<double> want = 0;
      for (int64_t k = 0; k < t.k; ++k) want += a.values[size_t(i * t.k + k)] * b.values[size_t(k * t.n + j)];
      ASSERT_LE(std::abs(element(c.data(), t.c, i * stride + j) - want), bound) << "at " << i << ", " << j;
    }
    for (int64_t j = t.n * size; j < stride * size; ++j) ASSERT_EQ(c[i * stride * size + j], std::byte(0x11));
  }
}

TEST(Gemm, every_row_count_and_tail_agrees_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (int64_t m = 0; m <= 30; ++m) {
      check_case(team, {DType::f32, DType::f32, DType::f32, m, 1 + m * 11 % 97, 1 + m * 7 % 40, false, false,
                        true, m % 2, int(m % 3)});
    }
    for (int64_t n : {0, 1, 31, 32, 33, 64, 257, 700}) {
      check_case(team, {DType::f32, DType::f32, DType::f32, 3, n, 19, false, false, true, 1, 1});
    }
    check_case(team, {DType::f32, DType::f32, DType::f32, 5, 7, 0, false, false, true, 0, 0});
  });
}

TEST(Gemm, long_sums_and_many_rows_agree_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    check_case(team, {DType::f32, DType::f32, DType::f32, 37, 45, 1300, false, false, true, 0, 0});
    check_case(team, {DType::f32, DType::f32, DType::f32, 300, 70, 33, false, false, true, 0, 0});
    check_case(team, {DType::f32, DType::f32, DType::f32, 1, 300, 600, false, false, true, 0, 1});
    // Long enough for several tasks; the last blocks hold single tiles with fewer rows than the others.
    for (int64_t m : {29, 97, 225}) {
      check_case(team, {DType::f32, DType::f32, DType::f32, m, 330, 50, false, false, true, 1, 0});
    }
  });
}

// Many narrow panels of which the last stands alone: tiles pass over it together, as many as a block may have.
TEST(Gemm, blocks_stay_within_their_scratch_memory) {
  test::at_every_level([](Team team) {
    const int64_t m = 600, k = 128, n = 32 * 24 * 23 + 17;
    const Array<float> a = test::random_array(m * k, 1), b = test::random_array(k * n, 2);
    Array<float> c(m * n);
    run(team, {.m = m,
               .n = n,
               .k = k,
               .a = {a.data(), DType::f32, k, 1},
               .b = {b.data(), DType::f32, n, 1},
               .c = c.data(),
               .c_row_stride = n});
  });
}

TEST(Gemm, asks_for_the_scratch_memory_of_its_sizes_and_threads) {
  test::at_every_level([](Team) {
    const Gemm small{
        .m = 4, .n = 4, .k = 8, .a = {.row_stride = 8}, .b = {.row_stride = 4}, .c_row_stride = 4};
    EXPECT_LE(gemm_workspace(small, 8), 512u);
    // Too little for a second thread; rows in place need no room.
    Gemm turned = small;
    turned.b = {.row_stride = 1, .column_stride = 8};
    EXPECT_LE(gemm_workspace(turned, 8), 1536u);
    const Gemm large{.m = 300, .n = 400, .k = 64, .a = {.row_stride = 65}, .b = {.row_stride = 400}};
    EXPECT_GT(gemm_workspace(large, 2), gemm_workspace(large, 1) + 4096);
  });
}

TEST(Gemm, every_transposition_and_dtype_agrees_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (bool ta : {false, true}) {
      for (bool tb : {false, true}) {
        for (bool packed : {false, true}) {
          for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::c64}) {
            check_case(team, {t, t, t, 17, 41, 29, ta, tb, packed, 3, 1});
          }
          for (DType t : {DType::f64, DType::c64}) {
            for (int64_t m : {1, 3}) check_case(team, {t, t, t, m, 150, 29, ta, tb, packed, 0, 0});
          }
          check_case(team, {DType::f32, DType::bf16, DType::f32, 4, 50, 31, ta, tb, packed, 0, 0});
          check_case(team, {DType::bf16, DType::f16, DType::f16, 9, 33, 64, ta, tb, packed, 0, 1});
        }
      }
    }
  });
}

TEST(Gemm, results_are_bit_equal_between_thread_counts_and_row_counts) {
  const Isa before = current_isa();
  for (Isa isa : available_isas()) {
    use_isa(isa);
    const int64_t m = 61, n = 530, k = 700;
    const Operand a = make_operand(DType::f32, m, k, false, 0, 0, 3),
                  b = make_operand(DType::f32, k, n, false, 0, 0, 4);
    Pool one(1), three(3);
    const PackedMatrix packed = PackedMatrix::pack(one, b.matrix, k, n, DType::f32);
    Array<float> c1(m * n), c3(m * n), rows(m * n);
    Gemm g{.m = m, .n = n, .k = k, .a = a.matrix, .packed_b = &packed, .c = c1.data(), .c_row_stride = n};
    run(one, g);
    g.c = c3.data();
    run(three, g);
    g.m = 1;
    for (int64_t i = 0; i < m; ++i) {
      g.a.data = static_cast<const float*>(a.matrix.data) + i * k;
      g.c = rows.data() + i * n;
      run(three, g);
    }
    for (int64_t i = 0; i < m * n; ++i) {
      ASSERT_EQ(c1[i], c3[i]);
      ASSERT_EQ(c1[i], rows[i]);
    }
  }
  use_isa(before);
}

TEST(Gemm, rows_in_place_and_packed_rows_give_the_same_bits) {
  test::at_every_level([](Team team) {
    for (DType t : {DType::f32, DType::f64}) {
      for (int64_t m : {1, 2, 13, 45}) {
        const int64_t n = 70, k = 90, size = int64_t(dtype_size(t));
        // Gaps that leave rows anywhere; rows a page apart, in smaller tiles; columns, which are packed.
        const Operand near = make_operand(t, m, k, false, 3, 1, 31),
                      b = make_operand(t, k, n, false, 0, 0, 32);
        const int64_t page = 4096 / size;
        Array<std::byte> far(m * page * size), turned(m * k * size);
        for (int64_t i = 0; i < m; ++i) {
          const std::byte* row = near.bytes.data() + i * near.matrix.row_stride * size;
          std::memcpy(far.data() + i * page * size, row, size_t(k * size));
          for (int64_t j = 0; j < k; ++j) {
            std::memcpy(turned.data() + (j * m + i) * size, row + j * size, size_t(size));
          }
        }
        Array<std::byte> c[3] = {Array<std::byte>(m * n * size), Array<std::byte>(m * n * size),
                                 Array<std::byte>(m * n * size)};
        Gemm g{.m = m, .n = n, .k = k, .a = near.matrix, .b = b.matrix, .c_dtype = t, .c_row_stride = n};
        g.c = c[0].data();
        run(team, g);
        g.a = {far.data(), t, page, 1}, g.c = c[1].data();
        run(team, g);
        g.a = {turned.data(), t, 1, m}, g.c = c[2].data();
        run(team, g);
        ASSERT_EQ(std::memcmp(c[0].data(), c[1].data(), size_t(m * n * size)), 0);
        ASSERT_EQ(std::memcmp(c[0].data(), c[2].data(), size_t(m * n * size)), 0);
        g.a = {far.data(), t, 0, 1};
        run(team, g);
        for (int64_t i = 0; i < m; ++i) {
          ASSERT_EQ(std::memcmp(c[2].data() + i * n * size, c[0].data(), size_t(n * size)), 0) << "row " << i;
        }
        // From the last row upwards.
        g.a = near.matrix;
        g.a.data = near.bytes.data() + (m - 1) * near.matrix.row_stride * size;
        g.a.row_stride = -near.matrix.row_stride;
        run(team, g);
        for (int64_t i = 0; i < m; ++i) {
          ASSERT_EQ(
              std::memcmp(c[2].data() + i * n * size, c[0].data() + (m - 1 - i) * n * size, size_t(n * size)),
              0)
              << "row " << i;
        }
      }
    }
  });
}

// A bias and a residual are added before the sums leave the registers, wherever the panel is cut off and however often k is
// cut; the rest of the epilogue runs on C. All of it must have the bits of steps taken one after the other.
TEST(Gemm, an_epilogue_has_the_bits_of_its_steps_alone) {
  test::at_every_level([](Team team) {
    for (int64_t k : {1, 2, 3, 384, 385, 1537}) {
      for (int64_t m : {1, 8, 32, 101}) {
        const int64_t n = k > 400 ? 40 : 70;
        const Array<float> a = test::random_array(m * k, 1), b = test::random_array(k * n, 2);
        const Array<float> bias = test::random_array(n, 3), residual = test::random_array(m * n, 4);
        Array<float> want(m * n), c(m * n), own = residual;
        Gemm g{.m = m, .n = n, .k = k, .a = {a.data(), DType::f32, k, 1}, .b = {b.data(), DType::f32, n, 1}};
        g.c = want.data(), g.c_row_stride = n;
        run(team, g);
        for (int64_t i = 0; i < m * n; ++i) want[i] = want[i] + bias[i % n] + residual[i];
        unary(team, Unary::gelu, want.data(), want.data(), m * n);
        const auto add = [](const float* x, int64_t stride) {
          return EpilogueStep{.kind = EpilogueKind::add, .data = const_cast<float*>(x), .row_stride = stride};
        };
        const EpilogueStep column{.kind = EpilogueKind::column_bias, .data = const_cast<float*>(bias.data())};
        const EpilogueStep gelu{.kind = EpilogueKind::unary, .function = Unary::gelu};
        Gemm with = g;
        with.c = c.data();
        with.epilogue.then(column).then(add(residual.data(), n)).then(gelu);
        run(team, with);
        ASSERT_EQ(std::memcmp(c.data(), want.data(), size_t(m * n) * 4), 0) << m << " rows, k " << k;
        // The residual may be C itself.
        Gemm onto = g;
        onto.c = own.data();
        onto.epilogue.then(column).then(add(own.data(), n)).then(gelu);
        run(team, onto);
        ASSERT_EQ(std::memcmp(own.data(), want.data(), size_t(m * n) * 4), 0) << m << " rows onto C, k " << k;
      }
    }
  });
}

TEST(Gemm, batches_broadcast_either_operand) {
  test::at_every_level([](Team team) {
    for (int64_t batch : {1, 2, 5}) {
      for (int shared : {0, 1, 2, 3}) {  // nothing, A, B, B packed
        const int64_t m = 6, n = 35, k = 20;
        const Operand a = make_operand(DType::f32, batch * m, k, false, 0, 0, 5);
        const Operand b = make_operand(DType::f32, batch * k, n, false, 0, 0, 6);
        Array<float> c(batch * m * n);
        Gemm g{.m = m,
               .n = n,
               .k = k,
               .batch = batch,
               .a = a.matrix,
               .a_batch_stride = shared == 1 ? 0 : m * k,
               .b = b.matrix,
               .b_batch_stride = shared >= 2 ? 0 : k * n,
               .c = c.data(),
               .c_row_stride = n,
               .c_batch_stride = m * n};
        const PackedMatrix packed = PackedMatrix::pack(team, b.matrix, k, n, DType::f32);
        if (shared == 3) g.packed_b = &packed;
        run(team, g);
        for (int64_t item = 0; item < batch; ++item) {
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              double want = 0;
              for (int64_t x = 0; x < k; ++x) {
                want += a.values[size_t(((shared == 1 ? 0 : item) * m + i) * k + x)].real() *
                        b.values[size_t(((shared >= 2 ? 0 : item) * k + x) * n + j)].real();
              }
              ASSERT_NEAR(c[(item * m + i) * n + j], want, tolerance(k, DType::f32, DType::f32));
            }
          }
        }
      }
    }
  });
}

TEST(Gemm, batches_of_transposed_operands_agree_in_every_dtype) {
  test::at_every_level([](Team team) {
    const int64_t batch = 3, m = 5, n = 18, k = 7;
    for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::c64}) {
      for (bool transposed : {false, true}) {
        // One matrix [batch * m, k] or its transpose holds all items, so their stride follows the layout.
        const Operand a = make_operand(t, batch * m, k, transposed, 0, 1, 16);
        const Operand b = make_operand(t, k, batch * n, transposed, 0, 1, 17);
        Array<std::byte> c(batch * m * n * int64_t(dtype_size(t)));
        const Gemm g{.m = m,
                     .n = n,
                     .k = k,
                     .batch = batch,
                     .a = a.matrix,
                     .a_batch_stride = m * a.matrix.row_stride,
                     .b = b.matrix,
                     .b_batch_stride = n * b.matrix.column_stride,
                     .c = c.data(),
                     .c_dtype = t,
                     .c_row_stride = n,
                     .c_batch_stride = m * n};
        run(team, g);
        for (int64_t i = 0; i < batch * m * n; ++i) {
          const int64_t item = i / (m * n), row = i / n % m, column = i % n;
          std::complex<double> want = 0;
          for (int64_t x = 0; x < k; ++x) {
            want += a.values[size_t((item * m + row) * k + x)] *
                    b.values[size_t(x * batch * n + item * n + column)];
          }
          ASSERT_LE(std::abs(element(c.data(), t, i) - want), tolerance(k, t, t))
              << dtype_name(t) << " transposed " << transposed << " at " << i;
        }
      }
    }
  });
}

TEST(Gemm, the_epilogue_runs_its_steps_in_order) {
  test::at_every_level([](Team team) {
    for (int64_t m : {1, 5, 16, 33}) {
      const int64_t n = 75, k = 24;
      const Operand a = make_operand(DType::f32, m, k, false, 0, 0, 7),
                    b = make_operand(DType::f32, k, n, false, 0, 0, 8);
      Array<float> bias = test::random_array(n, 9), row = test::random_array(m, 10),
                   residual = test::random_array(m * n, 11);
      Array<float> columns = test::random_array(n, 12), c(m * n), before(m * n);
      const PackedMatrix packed = PackedMatrix::pack(team, b.matrix, k, n, DType::f32);
      Gemm g{.m = m, .n = n, .k = k, .a = a.matrix, .packed_b = &packed, .c = c.data(), .c_row_stride = n};
      g.epilogue.then({.kind = EpilogueKind::scale, .value = 0.5f})
          .then({.kind = EpilogueKind::column_bias, .data = bias.data()})
          .then({.kind = EpilogueKind::row_bias, .data = row.data()})
          .then({.kind = EpilogueKind::store, .data = before.data(), .row_stride = n})
          .then({.kind = EpilogueKind::unary, .function = Unary::gelu_tanh})
          .then({.kind = EpilogueKind::column_scale, .data = columns.data()})
          .then({.kind = EpilogueKind::row_scale, .data = row.data()})
          .then({.kind = EpilogueKind::add, .value = 2, .data = residual.data(), .row_stride = n});
      run(team, g);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double v = 0;
          for (int64_t x = 0; x < k; ++x)
            v += a.values[size_t(i * k + x)].real() * b.values[size_t(x * n + j)].real();
          v = 0.5 * v + double(bias[j]) + double(row[i]);
          ASSERT_NEAR(before[i * n + j], v, 1e-5);
          v = v / (1 + std::exp(-2 * 0.7978845608028654 * (v + 0.044715 * v * v * v)));
          v = v * double(columns[j]) * double(row[i]) + 2 * double(residual[i * n + j]);
          ASSERT_NEAR(c[i * n + j], v, 2e-5);
        }
      }
    }
  });
}

TEST(Gemm, a_paired_matrix_gives_the_gated_product) {
  test::at_every_level([](Team team) {
    for (int64_t m : {1, 2, 7, 20}) {
      for (int64_t n : {8, 50, 96}) {
        const int64_t k = 21;
        const Operand a = make_operand(DType::f32, m, k, false, 0, 0, 13);
        const Operand gate = make_operand(DType::f32, k, n, false, 0, 0, 14),
                      up = make_operand(DType::f32, k, n, false, 0, 0, 15);
        const PackedMatrix packed = PackedMatrix::pack_pair(team, gate.matrix, up.matrix, k, n, DType::f32);
        Array<uint16_t> c(m * n);
        Gemm g{.m = m,
               .n = n,
               .k = k,
               .a = a.matrix,
               .packed_b = &packed,
               .c = c.data(),
               .c_dtype = DType::bf16,
               .c_row_stride = n};
        g.epilogue.then({.kind = EpilogueKind::gate, .function = Unary::silu});
        run(team, g);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            double x = 0, y = 0;
            for (int64_t l = 0; l < k; ++l) {
              x += a.values[size_t(i * k + l)].real() * gate.values[size_t(l * n + j)].real();
              y += a.values[size_t(i * k + l)].real() * up.values[size_t(l * n + j)].real();
            }
            const double want = x / (1 + std::exp(-x)) * y;
            ASSERT_NEAR(bf16_to_f32(c[i * n + j]), want, std::abs(want) * 0x1p-8 + 1e-5);
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace rlx::cpu
