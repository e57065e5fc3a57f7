#include "rlx/backend/cpu/kernels/rope.h"

#include <cstring>

#include "rlx/base/error.h"
#include "rlx/base/float16.h"
#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array, test::random_array;

// x as kept in `t`; x becomes what that means.
std::vector<std::byte> stored(Array<float>& x, DType t) {
  std::vector<std::byte> out(size_t(x.size()) * 4);
  for (int64_t i = 0; i < x.size(); ++i) {
    if (t == DType::f32) {
      std::memcpy(out.data() + 4 * i, &x[i], 4);
      continue;
    }
    const uint16_t bits = t == DType::f16 ? f32_to_f16(x[i]) : f32_to_bf16(x[i]);
    x[i] = t == DType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
    std::memcpy(out.data() + 2 * i, &bits, 2);
  }
  return out;
}
double element(const std::vector<std::byte>& data, int64_t i, DType t) {
  float f;
  uint16_t bits;
  std::memcpy(&f, data.data() + (t == DType::f32 ? 4 * i : 0), 4);
  std::memcpy(&bits, data.data() + 2 * i, 2);
  return double(t == DType::f32 ? f : t == DType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits));
}

struct Case {
  int64_t head_dim = 16, rotated = 16;
  bool interleaved = false, inverse = false, heads_first = false, per_row = false, positions = true;
  bool in_place = false;
  DType dtype = DType::f32;
  int64_t batch = 2, heads = 3, length = 5;
};

void check_case(Team team, const Case& c) {
  SCOPED_TRACE(testing::Message() << "dim " << c.head_dim << "/" << c.rotated << " interleaved "
                                  << c.interleaved << " inverse " << c.inverse << " dtype "
                                  << dtype_name(c.dtype));
  const int64_t rows = 9, width = c.rotated / 2 + 1, size = c.batch * c.heads * c.length * c.head_dim;
  const HeadStrides strides =
      c.heads_first ? HeadStrides{c.heads * c.length * c.head_dim, c.length * c.head_dim, c.head_dim}
                    : HeadStrides{c.heads * c.length * c.head_dim, c.head_dim, c.heads * c.head_dim};
  Array<float> x = random_array(size, 1, -2, 2), cos = random_array(rows * width, 2),
               sin = random_array(rows * width, 3);
  auto data = stored(x, c.dtype), cosines = stored(cos, c.dtype), sines = stored(sin, c.dtype);
  std::vector<int64_t> positions(size_t(c.batch * c.length));
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = int64_t(i * 5 % size_t(rows));
  std::vector<std::byte> out(data.size(), std::byte{7});
  rope(team, {.batch = c.batch,
              .heads = c.heads,
              .length = c.length,
              .head_dim = c.head_dim,
              .rotated = c.rotated,
              .interleaved = c.interleaved,
              .inverse = c.inverse,
              .dtype = c.dtype,
              .x = data.data(),
              .x_strides = strides,
              .y = c.in_place ? data.data() : out.data(),
              .y_strides = strides,
              .cos = cosines.data(),
              .sin = sines.data(),
              .table_rows = rows,
              .table_stride = width,
              .positions = c.positions ? positions.data() : nullptr,
              .position_stride = c.per_row ? c.length : 0});
  const auto& got = c.in_place ? data : out;
  // Two products of numbers up to 2 and one sum, then the rounding of the storage.
  const double epsilon = c.dtype == DType::f32 ? 0x1p-22 : c.dtype == DType::f16 ? 0x1p-9 : 0x1p-6;
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.heads; ++h) {
      for (int64_t i = 0; i < c.length; ++i) {
        const int64_t at = b * strides.batch + h * strides.head + i * strides.row, pairs = c.rotated / 2;
        const int64_t row = c.positions ? positions[size_t(c.per_row ? b * c.length + i : i)] : i;
        std::vector<double> want(x.data() + at, x.data() + at + c.head_dim);
        for (int64_t k = 0; k < pairs; ++k) {
          double& first = want[size_t(c.interleaved ? 2 * k : k)];
          double& second = want[size_t(c.interleaved ? 2 * k + 1 : k + pairs)];
          const double co = double(cos[row * width + k]),
                       si = double(sin[row * width + k]) * (c.inverse ? -1 : 1);
          const double rotated = first * co - second * si;
          second = second * co + first * si;
          first = rotated;
        }
        for (int64_t d = 0; d < c.head_dim; ++d) {
          ASSERT_NEAR(element(got, at + d, c.dtype), want[size_t(d)], epsilon) << b << h << i << " " << d;
        }
      }
    }
  }
}

TEST(Rope, pairings_partial_rotation_layouts_and_dtypes_agree_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (DType t : {DType::f32, DType::f16, DType::bf16}) {
      for (int64_t rotated : {0, 2, 6, 16, 30, 64, 70}) {
        for (int bits = 0; bits < 8; ++bits) {
          check_case(team, {.head_dim = rotated + (bits & 1 ? 3 : 0),
                            .rotated = rotated,
                            .interleaved = (bits & 2) != 0,
                            .inverse = (bits & 4) != 0,
                            .heads_first = (bits & 1) != 0,
                            .per_row = (bits & 2) != 0,
                            .positions = bits != 5,
                            .in_place = bits > 5,
                            .dtype = t});
        }
      }
    }
    check_case(team, {.length = 0});
    check_case(team, {.batch = 0});
    check_case(team, {.batch = 1, .heads = 1, .length = 1});
  });
}

TEST(Rope, the_inverse_takes_a_rotation_back) {
  test::at_every_level([](Team team) {
    const int64_t dim = 64, length = 40;
    const Array<float> x = random_array(length * dim, 1);
    Array<float> y = x, cos(length * dim / 2), sin(length * dim / 2);
    for (int64_t i = 0; i < cos.size(); ++i) cos[i] = std::cos(float(i)), sin[i] = std::sin(float(i));
    Rope p{.length = length,
           .head_dim = dim,
           .rotated = dim,
           .x = y.data(),
           .x_strides = {0, 0, dim},
           .y = y.data(),
           .y_strides = {0, 0, dim},
           .cos = cos.data(),
           .sin = sin.data(),
           .table_rows = length,
           .table_stride = dim / 2};
    rope(team, p);
    p.inverse = true;
    rope(team, p);
    test::expect_near(y.data(), x.data(), x.size(), 1e-6);
  });
}

// Large results of whole lines pass the caches, others of the same size do not.
TEST(Rope, large_results_are_the_same_at_aligned_and_odd_addresses) {
  const int64_t heads = 8, dim = 128, length = 4097;
  Array<float> x(heads * length * dim), table(length * dim / 2);
  for (int64_t i = 0; i < x.size(); ++i) x[i] = float(i % 1009) * 0.01f - 5;
  for (int64_t i = 0; i < table.size(); ++i) table[i] = float(i % 101) * 0.02f - 1;
  Array<float> aligned(x.size()), odd(x.size(), 1);
  test::at_every_level([&](Team team) {
    for (bool interleaved : {false, true}) {
      Rope p{.heads = heads,
             .length = length,
             .head_dim = dim,
             .rotated = dim,
             .interleaved = interleaved,
             .x = x.data(),
             .x_strides = {0, dim, heads * dim},
             .y_strides = {0, dim, heads * dim},
             .cos = table.data(),
             .sin = table.data() + 1,
             .table_rows = length,
             .table_stride = dim / 2 - 1};
      for (Array<float>* y : {&aligned, &odd}) {
        std::memset(y->data(), 0, size_t(y->size()) * 4);
        p.y = y->data();
        rope(team, p);
      }
      ASSERT_EQ(std::memcmp(aligned.data(), odd.data(), size_t(x.size()) * 4), 0);
    }
  });
  // The last run of the last level: head 3 of row 4001, interleaved.
  const int64_t at = (4001 * heads + 3) * dim, row = 4001 * (dim / 2 - 1);
  for (int64_t i = 0; i < dim / 2; ++i) {
    const double a = double(x[at + 2 * i]), b = double(x[at + 2 * i + 1]), c = double(table[row + i]),
                 s = double(table[row + i + 1]);
    ASSERT_NEAR(aligned[at + 2 * i], a * c - b * s, 2e-6);
    ASSERT_NEAR(aligned[at + 2 * i + 1], b * c + a * s, 2e-6);
  }
}

TEST(Rope, a_position_outside_the_tables_is_refused) {
  const Array<float> x = random_array(8, 1), table = random_array(4, 2);
  Array<float> y(8);
  const int64_t positions[] = {0, 2};
  try {
    rope(Team(default_pool()), {.length = 2,
                                .head_dim = 4,
                                .rotated = 4,
                                .x = x.data(),
                                .x_strides = {0, 0, 4},
                                .y = y.data(),
                                .y_strides = {0, 0, 4},
                                .cos = table.data(),
                                .sin = table.data(),
                                .table_rows = 2,
                                .table_stride = 2,
                                .positions = positions});
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "rope: position 2 is out of range; the tables have 2 rows");
  }
}

}  // namespace
}  // namespace rlx::cpu
