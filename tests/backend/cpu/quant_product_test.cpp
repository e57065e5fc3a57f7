#include "rlx/backend/cpu/kernels/quant_product.h"

#include "rlx/base/error.h"
#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;
using test::random_array;

std::vector<std::byte> encode_rows(const quant::BlockFormat& f, const Array<float>& w) {
  std::vector<std::byte> out(static_cast<size_t>(quant::encoded_bytes(f, w.size())));
  quant::encode(f, {w.data(), size_t(w.size())}, out);
  return out;
}

struct Shape {
  int64_t m, n, k;
};

void check_product(Team team, const quant::BlockFormat& f, Shape s) {
  SCOPED_TRACE(testing::Message() << f.name << " m " << s.m << " n " << s.n << " k " << s.k);
  const std::vector<std::byte> encoded = encode_rows(f, random_array(s.n * s.k, 1));
  std::vector<float> w(static_cast<size_t>(s.n * s.k));
  quant::decode(f, encoded, w);
  const QuantMatrix packed = QuantMatrix::pack(team, f, encoded.data(), s.n, s.k);
  const int64_t stride = s.n + 3;
  const Array<float> x = random_array(s.m * (s.k + 1), 2, -2, 2, 1);
  Array<float> y(s.m * stride + 1, 1);
  for (int64_t i = 0; i < y.size(); ++i) y[i] = 55;
  const QuantProduct p{
      .m = s.m, .x = x.data(), .x_stride = s.k + 1, .w = &packed, .y = y.data(), .y_stride = stride};
  std::vector<std::byte> workspace(quant_product_workspace(p) + 64);
  quant_product(team, p,
                reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64));
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      // The stated bound: half a step of the rounded activations times |w|, and f32 sums.
      double want = 0, bound = 0, magnitude = 0;
      for (int64_t b = 0; b < s.k; b += 32) {
        double top = 0, weights = 0;
        for (int64_t l = b; l < b + 32; ++l) {
          const double a = double(x[i * (s.k + 1) + l]), v = double(w[size_t(j * s.k + l)]);
          want += a * v;
          top = std::max(top, std::abs(a));
          weights += std::abs(v);
          magnitude += std::abs(a * v);
        }
        bound += top / 127 * 0.5001 * weights;
      }
      ASSERT_NEAR(y[i * stride + j], want, bound + 1e-5 * magnitude + 1e-6) << "at " << i << ", " << j;
    }
    for (int64_t j = s.n; j < stride; ++j) ASSERT_EQ(y[i * stride + j], 55);
  }
}

TEST(QuantProduct, agrees_with_decode_then_multiply_within_the_stated_bound) {
  test::at_every_level([](Team team) {
    for (const char* name : {"q4_0", "q8_0", "q4_k", "q6_k"}) {
      const quant::BlockFormat& f = *quant::find_format(name);
      const int64_t unit = f.elements;
      for (int64_t m : {1, 2, 7, 64}) {
        for (int64_t n : {1, 16, 37}) check_product(team, f, {m, n, 3 * unit});
      }
      check_product(team, f, {3, 5, unit});
      check_product(team, f, {0, 5, unit});
      if (unit == 32) check_product(team, f, {2, 40, 11 * unit});
    }
  });
}

// Activations that are whole multiples of a power of two with 127 as the largest are kept exactly, so the
// product differs from decode-then-multiply by f32 rounding only: a wrong code or scale cannot hide in the
// bound.
TEST(QuantProduct, is_exact_for_activations_of_eight_bits) {
  test::at_every_level([](Team team) {
    for (const char* name : {"q4_0", "q8_0", "q4_k", "q6_k"}) {
      const quant::BlockFormat& f = *quant::find_format(name);
      const int64_t n = 35, k = 512;
      const std::vector<std::byte> encoded = encode_rows(f, random_array(n * k, 3));
      std::vector<float> w(static_cast<size_t>(n * k));
      quant::decode(f, encoded, w);
      const QuantMatrix packed = QuantMatrix::pack(team, f, encoded.data(), n, k);
      Array<float> x(k), y(n);
      for (int64_t i = 0; i < k; ++i)
        x[i] = i % 32 == 5 ? 127.0f : float(int(philox_block(4, 0, uint64_t(i))[0] % 255) - 127);
      const QuantProduct p{.m = 1, .x = x.data(), .x_stride = k, .w = &packed, .y = y.data(), .y_stride = n};
      std::vector<std::byte> workspace(quant_product_workspace(p) + 64);
      quant_product(
          team, p,
          reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64));
      for (int64_t j = 0; j < n; ++j) {
        double want = 0, magnitude = 0;
        for (int64_t i = 0; i < k; ++i) {
          want += double(x[i]) * double(w[size_t(j * k + i)]);
          magnitude += std::abs(double(x[i]) * double(w[size_t(j * k + i)]));
        }
        ASSERT_NEAR(y[j], want, magnitude * 4e-6) << name << " row " << j;
      }
    }
  });
}

TEST(QuantProduct, unpacking_gives_the_packed_bytes_back) {
  const Isa before = current_isa();
  Pool pool(2);
  for (Isa isa : available_isas()) {
    use_isa(isa);
    for (const char* name : {"q4_0", "q8_0", "q4_k", "q6_k"}) {
      const quant::BlockFormat& f = *quant::find_format(name);
      const int64_t n = 19, k = 512;
      const std::vector<std::byte> encoded = encode_rows(f, random_array(n * k, 5));
      const QuantMatrix packed = QuantMatrix::pack(pool, f, encoded.data(), n, k);
      const size_t row_bytes = encoded.size() / size_t(n);
      std::vector<std::byte> row(row_bytes);
      for (int64_t i = 0; i < n; ++i) {
        packed.unpack_row(i, row.data());
        ASSERT_TRUE(std::equal(row.begin(), row.end(), encoded.begin() + int64_t(row_bytes) * i))
            << name << " row " << i;
      }
    }
  }
  use_isa(before);
}

TEST(QuantProduct, refuses_formats_and_lengths_it_cannot_pack) {
  Pool pool(1);
  std::vector<std::byte> data(4096);
  EXPECT_THROW(QuantMatrix::pack(pool, *quant::find_format("q4_k"), data.data(), 1, 128), Error);
  EXPECT_THROW(QuantMatrix::pack(pool, *quant::find_format("q4_1"), data.data(), 1, 32), Error);
  EXPECT_EQ(QuantMatrix::kind_of(*quant::find_format("q4_1")), nullptr);
}

}  // namespace
}  // namespace rlx::cpu
