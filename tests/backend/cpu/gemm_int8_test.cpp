#include "rlx/backend/cpu/kernels/gemm_int8.h"

#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;

// Codes of a matrix [rows, columns] over the whole range of the type, at chosen strides.
struct Codes {
  Array<int8_t> bytes{0};
  Matrix matrix;
  int at(int64_t i, int64_t j) const {
    const int8_t code = bytes[i * matrix.row_stride + j * matrix.column_stride];
    return matrix.dtype == DType::u8 ? uint8_t(code) : code;
  }
};

Codes make_codes(DType t, int64_t rows, int64_t columns, uint64_t seed, bool transposed = false,
                 int64_t gap = 0, int offset = 0) {
  Codes c;
  const int64_t major = (transposed ? rows : columns) + gap;
  c.bytes = Array<int8_t>(major * (transposed ? columns : rows), offset);
  for (int64_t i = 0; i < c.bytes.size(); ++i) {
    c.bytes[i] = int8_t(philox_block(seed, 0, uint64_t(i / 4))[size_t(i % 4)] >> 13);
  }
  c.matrix = {c.bytes.data(), t, transposed ? 1 : major, transposed ? major : 1};
  return c;
}

void run(Team team, const GemmInt8& g) {
  const AlignedBytes workspace = allocate_aligned(gemm_int8_workspace(g, team.threads()));
  gemm_int8(team, g, workspace.get());
}

// The definition, modulo 2^32.
std::vector<int32_t> plain_sums(const Codes& a, const Codes& b, int64_t m, int64_t n, int64_t k,
                                int32_t a_zero, const std::vector<int32_t>& zeros, const int32_t* bias) {
  std::vector<int32_t> sums(size_t(m * n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      int64_t sum = bias == nullptr ? 0 : bias[j];
      for (int64_t l = 0; l < k; ++l) sum += int64_t(a.at(i, l) - a_zero) * (b.at(l, j) - zeros[size_t(j)]);
      sums[size_t(i * n + j)] = int32_t(sum);
    }
  }
  return sums;
}

struct Case {
  DType a;
  int64_t m, n, k;
  bool a_transposed = false, b_transposed = false;
  int32_t a_zero = 0, b_zero = 0;
  bool zero_each_column = false, bias = false;
  int64_t gap = 0;
  int offset = 0;
};

void check_case(Team team, const Case& t) {
  SCOPED_TRACE(testing::Message() << dtype_name(t.a) << " m " << t.m << " n " << t.n << " k " << t.k << " ta "
                                  << t.a_transposed << " tb " << t.b_transposed << " zeros " << t.a_zero
                                  << " " << t.b_zero << " columns " << t.zero_each_column);
  const Codes a = make_codes(t.a, t.m, t.k, 1, t.a_transposed, t.gap, t.offset);
  const Codes b = make_codes(DType::i8, t.k, t.n, 2, t.b_transposed, t.gap, t.offset);
  std::vector<int32_t> zeros(size_t(t.n), t.b_zero);
  Array<int32_t> bias(t.n);
  for (int64_t j = 0; j < t.n; ++j) {
    bias[j] = int32_t(1000 * j - 7);
    if (t.zero_each_column) zeros[size_t(j)] = int32_t(j * 37 % 255 - 127);
  }
  const PackedInt8 packed =
      PackedInt8::pack(team, b.matrix, t.k, t.n, t.b_zero, t.zero_each_column ? zeros.data() : nullptr);
  const int64_t stride = t.n + t.gap;
  Array<int32_t> c(t.m * stride, t.offset);
  for (int64_t i = 0; i < c.size(); ++i) c[i] = -99;
  run(team, {.m = t.m,
             .n = t.n,
             .k = t.k,
             .a = a.matrix,
             .a_zero = t.a_zero,
             .b = &packed,
             .bias = t.bias ? bias.data() : nullptr,
             .c = c.data(),
             .c_row_stride = stride});
  const auto want = plain_sums(a, b, t.m, t.n, t.k, t.a_zero, zeros, t.bias ? bias.data() : nullptr);
  for (int64_t i = 0; i < t.m; ++i) {
    for (int64_t j = 0; j < t.n; ++j) {
      ASSERT_EQ(c[i * stride + j], want[size_t(i * t.n + j)]) << "at " << i << ", " << j;
    }
    for (int64_t j = t.n; j < stride; ++j) ASSERT_EQ(c[i * stride + j], -99);
  }
}

TEST(GemmInt8, sums_are_exact_for_every_row_count_and_tail) {
  test::at_every_level([](Team team) {
    for (int64_t m = 0; m <= 30; ++m) {
      check_case(team, {.a = m % 2 ? DType::u8 : DType::i8,
                        .m = m,
                        .n = 1 + m * 11 % 97,
                        .k = 1 + m * 7 % 41,
                        .a_zero = int32_t(m),
                        .bias = m % 3 == 0,
                        .gap = m % 2,
                        .offset = int(m % 3)});
    }
    for (int64_t n : {0, 1, 15, 31, 32, 33, 64, 257, 700}) {
      check_case(team, {.a = DType::u8, .m = 3, .n = n, .k = 19, .gap = 1, .offset = 1});
    }
    for (int64_t k : {0, 1, 2, 3, 4, 5, 63, 64, 65}) {
      check_case(team, {.a = DType::i8, .m = 16, .n = 40, .k = k, .a_zero = -5, .b_zero = 3, .bias = true});
    }
  });
}

TEST(GemmInt8, zero_points_and_transpositions_follow_the_definition) {
  test::at_every_level([](Team team) {
    for (bool ta : {false, true}) {
      for (bool tb : {false, true}) {
        for (DType t : {DType::u8, DType::i8}) {
          for (int32_t a_zero : {0, t == DType::u8 ? 255 : -128}) {
            for (int mode : {0, 1, 2}) {
              check_case(team, {t, 17, 41, 30, ta, tb, a_zero, mode == 1 ? -128 : 0, mode == 2, true, 3, 1});
            }
          }
        }
      }
    }
  });
}

TEST(GemmInt8, long_sums_and_many_rows_are_exact) {
  test::at_every_level([](Team team) {
    check_case(team, {.a = DType::u8, .m = 15, .n = 33, .k = 9001, .a_zero = 3, .b_zero = 1});
    check_case(team, {.a = DType::i8, .m = 300, .n = 70, .k = 33, .a_zero = 3, .b_zero = 1});
    check_case(team, {.a = DType::i8, .m = 1, .n = 300, .k = 600, .zero_each_column = true});
  });
}

TEST(GemmInt8, the_largest_codes_do_not_saturate) {
  test::at_every_level([](Team team) {
    const int64_t m = 15, n = 35, k = 130;
    Codes a = make_codes(DType::u8, m, k, 1), b = make_codes(DType::i8, k, n, 2);
    for (int8_t code : {int8_t(127), int8_t(-128)}) {
      for (int64_t i = 0; i < m * k; ++i) a.bytes[i] = int8_t(255);
      for (int64_t i = 0; i < k * n; ++i) b.bytes[i] = code;
      const PackedInt8 packed = PackedInt8::pack(team, b.matrix, k, n);
      Array<int32_t> c(m * n);
      run(team, {.m = m, .n = n, .k = k, .a = a.matrix, .b = &packed, .c = c.data(), .c_row_stride = n});
      for (int64_t i = 0; i < m * n; ++i) ASSERT_EQ(c[i], 255 * code * k);
    }
  });
}

int64_t plain_code(int32_t sum, double multiplier, int32_t zero, bool away, bool is_signed) {
  const double v = sum * multiplier;
  const double whole = away ? std::copysign(std::floor(std::abs(v) + 0.5), v) : std::nearbyint(v);
  const double low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
  return int64_t(std::min(high, std::max(low, whole + zero)));
}

TEST(GemmInt8, codes_are_rounded_in_double_and_saturated) {
  test::at_every_level([](Team team) {
    for (DType out : {DType::i8, DType::u8}) {
      for (bool away : {false, true}) {
        // 0.5 and 2^-8 make exact halves, their neighbours nearly so, 1/3000 ordinary codes, 1 saturates
        // nearly everything; 1e300 has no f32.
        for (double multiplier :
             {0.5, 0.5 + 0x1p-30, 0x1p-8, 0x1p-8 - 0x1p-40, 1.0 / 3000, 1.0, 1e-9, 1e300}) {
          for (bool each : {false, true}) {
            const int64_t m = 18, n = 45, k = 27;
            const Codes a = make_codes(DType::i8, m, k, 5), b = make_codes(DType::i8, k, n, 6);
            const PackedInt8 packed = PackedInt8::pack(team, b.matrix, k, n, 2);
            Array<double> multipliers(n);
            for (int64_t j = 0; j < n; ++j) multipliers[j] = multiplier * double(1 + j % 3);
            Array<int8_t> c(m * n, 1);
            run(team, {.m = m,
                       .n = n,
                       .k = k,
                       .a = a.matrix,
                       .a_zero = 4,
                       .b = &packed,
                       .c = c.data(),
                       .c_dtype = out,
                       .c_row_stride = n,
                       .requantize = {.multiplier = multiplier,
                                      .multipliers = each ? multipliers.data() : nullptr,
                                      .zero_point = 7,
                                      .half_away = away}});
            const auto sums = plain_sums(a, b, m, n, k, 4, std::vector<int32_t>(size_t(n), 2), nullptr);
            for (int64_t i = 0; i < m * n; ++i) {
              const int64_t got = out == DType::i8 ? int64_t(c[i]) : int64_t(uint8_t(c[i]));
              ASSERT_EQ(got, plain_code(sums[size_t(i)], each ? multipliers[i % n] : multiplier, 7, away,
                                        out == DType::i8))
                  << "element " << i << ", sum " << sums[size_t(i)] << ", multiplier " << multiplier;
            }
          }
        }
      }
    }
  });
}

TEST(GemmInt8, rows_in_place_and_packed_rows_agree) {
  test::at_every_level([](Team team) {
    const int64_t n = 300, k = 68;
    const Codes b = make_codes(DType::i8, k, n, 15);
    const PackedInt8 packed = PackedInt8::pack(team, b.matrix, k, n);
    Array<int32_t> bias(n);
    for (int64_t j = 0; j < n; ++j) bias[j] = int32_t(j * 1000 - 7);
    for (int64_t m : {1, 5, 14, 45, 130}) {
      const Codes a = make_codes(DType::u8, m, k, 16);
      Array<int32_t> c(m * n);
      const auto sums = plain_sums(a, b, m, n, k, 9, std::vector<int32_t>(size_t(n), 0), bias.data());
      // Rows next to each other at an odd address, a page apart, and columns next to each other.
      for (const auto& [row, column] : {std::pair<int64_t, int64_t>{k + 1, 1}, {4096, 1}, {1, m}}) {
        Array<uint8_t> codes((m - 1) * row + (k - 1) * column + 1, 3);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t l = 0; l < k; ++l) codes[i * row + l * column] = uint8_t(a.at(i, l));
        }
        run(team, {.m = m,
                   .n = n,
                   .k = k,
                   .a = {codes.data(), DType::u8, row, column},
                   .a_zero = 9,
                   .b = &packed,
                   .bias = bias.data(),
                   .c = c.data(),
                   .c_row_stride = n});
        for (int64_t i = 0; i < m * n; ++i) ASSERT_EQ(c[i], sums[size_t(i)]) << "m " << m << " at " << i;
      }
    }
  });
}

TEST(GemmInt8, real_results_pass_through_the_epilogue) {
  test::at_every_level([](Team team) {
    for (int64_t m : {1, 6, 29}) {
      const int64_t n = 75, k = 64;
      const Codes a = make_codes(DType::u8, m, k, 7), b = make_codes(DType::i8, k, n, 8);
      const Array<float> scales = test::random_array(n, 9, 1e-5f, 2e-5f),
                         rows = test::random_array(m, 10, 0.5f, 2);
      const Array<float> bias = test::random_array(n, 11);
      const PackedInt8 packed = PackedInt8::pack(team, b.matrix, k, n);
      Array<float> c(m * n);
      GemmInt8 g{.m = m,
                 .n = n,
                 .k = k,
                 .a = a.matrix,
                 .a_zero = 128,
                 .b = &packed,
                 .c = c.data(),
                 .c_dtype = DType::f32,
                 .c_row_stride = n};
      g.epilogue.then({.kind = EpilogueKind::column_scale, .data = const_cast<float*>(scales.data())})
          .then({.kind = EpilogueKind::row_scale, .data = const_cast<float*>(rows.data())})
          .then({.kind = EpilogueKind::column_bias, .data = const_cast<float*>(bias.data())})
          .then({.kind = EpilogueKind::unary, .function = Unary::silu});
      run(team, g);
      const auto sums = plain_sums(a, b, m, n, k, 128, std::vector<int32_t>(size_t(n), 0), nullptr);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double v = double(sums[size_t(i * n + j)]) * double(scales[j]) * double(rows[i]) + double(bias[j]);
          v = v / (1 + std::exp(-v));
          ASSERT_NEAR(c[i * n + j], v, 1e-5 * (1 + std::abs(v)));  // sums below 2^24 convert exactly
        }
      }
    }
  });
}

TEST(GemmInt8, groups_of_rows_use_their_own_matrices_and_biases) {
  test::at_every_level([](Team team) {
    const int64_t n = 50, k = 37;
    const Array<int64_t> offsets = [] {
      Array<int64_t> o(7);
      for (int i = 0; const int64_t v : {0, 5, 5, 6, 46, 46, 49}) o[i++] = v;
      return o;
    }();
    const int64_t groups = offsets.size() - 1, m = offsets[groups];
    const Codes a = make_codes(DType::i8, m, k, 12);
    Array<int32_t> bias(groups * n), c(m * n), want(m * n);
    for (int64_t i = 0; i < bias.size(); ++i) bias[i] = int32_t(i * i);
    std::vector<PackedInt8> packed;
    std::vector<Codes> b;
    for (int64_t g = 0; g < groups; ++g) {
      b.push_back(make_codes(DType::i8, k, n, uint64_t(20 + g)));
      packed.push_back(PackedInt8::pack(team, b.back().matrix, k, n, int32_t(g % 3)));  // some without
    }
    run(team, {.m = m,
               .n = n,
               .k = k,
               .a = a.matrix,
               .a_zero = -3,
               .b = packed.data(),
               .groups = {groups, offsets.data()},
               .bias = bias.data(),
               .c = c.data(),
               .c_row_stride = n});
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t i = offsets[g]; i < offsets[g + 1]; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          int64_t sum = bias[g * n + j];
          for (int64_t l = 0; l < k; ++l) {
            sum += (a.at(i, l) + 3) * (b[size_t(g)].at(l, j) - g % 3);
          }
          ASSERT_EQ(c[i * n + j], sum) << "group " << g << " row " << i << " column " << j;
        }
      }
    }
  });
}

}  // namespace
}  // namespace rlx::cpu
